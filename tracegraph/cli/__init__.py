"""The command line: the acts of the API under the same names, and the server, checks and audits around them.

Prints data as text, or as one JSON document with --json. Refusals go to stderr with their code and hint; exit codes
are 0 (done; admitted or reset), 1 (refused, blocked, or a failed expectation), 2 (usage, or a malformed file).
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from tracegraph.errors import TracegraphError

if TYPE_CHECKING:
    from datetime import datetime

    from tracegraph.model import Committed
    from tracegraph.workspace import Workspace

T = TypeVar("T")

app = typer.Typer(
    name="tracegraph",
    help="Decides what a returning agent may still act on. Work state lives in Neo4j: the embedded one, or NEO4J_URI.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
keys_app = typer.Typer(help="The keys that sign tickets and views.", no_args_is_help=True)
eval_app = typer.Typer(help="Play real benchmark data through the store.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")
app.add_typer(eval_app, name="eval")

SERVER, ACTS, RETURNS, AUDIT = "Server", "Recording", "Leaving and returning", "Audit and checks"

Name = Annotated[
    str,
    typer.Option("--workspace", "-w", envvar="TRACEGRAPH_WORKSPACE", help="The workspace's id.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
By = Annotated[str | None, typer.Option("--by", help="The author; by default the workspace's owner.")]
Batch = Annotated[str | None, typer.Option("--batch-id", help="Makes the write safe to repeat.")]
Principal = Annotated[str, typer.Option("--principal", "-p", help="Who.")]
Role = Annotated[str, typer.Option("--role", "-r", help="As what.")]
Task = Annotated[str, typer.Option("--task", "-t", help="For which task.")]
ValidAt = Annotated[str | None, typer.Option(help="When in the world: an instant such as 2026-05-01T09:00:00Z.")]
KnownAt = Annotated[str | None, typer.Option(help="As known when: an epoch or an instant.")]
AsOf = Annotated[str | None, typer.Option(help="Both clocks at one instant.")]
Purpose = Annotated[str | None, typer.Option(help="What for.")]
Query = Annotated[str | None, typer.Option(help="Words that the filling items should match (fill: relevance).")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="A policy field, as name=value; may be given several times.")
]
Id = Annotated[str | None, typer.Option(help="The new record's id; by default a random one.")]


# --- running --------------------------------------------------------------------------------------------------


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run one command's work on an event loop."""
    import anyio

    return anyio.run(work)


def on(workspace: str, work: Callable[[Workspace], Awaitable[T]]) -> T:
    """Run work on an existing workspace."""
    import tracegraph

    if not workspace:
        usage("Say which workspace: --workspace, or TRACEGRAPH_WORKSPACE.")

    async def connected() -> T:
        async with tracegraph.connect() as graph:
            return await work(await graph.workspace(workspace))

    return run(connected)


def main() -> NoReturn:
    """The entry point: no refusal and no fault shows a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    logging.getLogger("neo4j").addHandler(logging.NullHandler())
    try:
        app(standalone_mode=True)
    except TracegraphError as error:
        refuse(error)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        inner = error
        while isinstance(inner, ExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, TracegraphError):
            refuse(inner)
        if os.environ.get("TRACEGRAPH_DEBUG"):
            raise
        typer.echo(f"error: {type(inner).__name__}: this is a fault of tracegraph.", err=True)
        typer.echo("Set TRACEGRAPH_DEBUG=1 to see where, and report it.", err=True)
        sys.exit(1)
    sys.exit(0)


def refuse(error: TracegraphError) -> NoReturn:
    """Print a refusal with its code and hint, and leave with 1."""
    if "--json" in sys.argv:
        fault = {"code": error.code, "message": error.message, "hint": error.hint, "reasons": error.reasons}
        typer.echo(json.dumps({"error": fault}), err=True)
    else:
        lines = error.message.split("\n") if error.code == "unavailable" else [error.message]  # a log's last lines
        for line in (f"{error.code}: {lines[0]}", *lines[1:], *([error.hint] if error.hint else [])):
            typer.echo(harmless(line), err=True)
    sys.exit(1)


def usage(message: str) -> NoReturn:
    """Leave with 2: the call, or a file it names, is malformed."""
    typer.echo(harmless(message), err=True)
    sys.exit(2)


def show(data: Any, as_json: bool, lines: Iterable[str]) -> None:
    """Print data as JSON, or its lines."""
    if as_json:
        typer.echo(_STEERING.sub(_escaped, json.dumps(plain(data), indent=2, ensure_ascii=False)))
    else:
        for line in lines:
            typer.echo(harmless(line))


_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What steers a terminal, or the order in which it shows a line, and stands in JSON as it is."""
_UNPRINTED = re.compile(f"[\x00-\x1f]|{_STEERING.pattern}")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def harmless(line: str) -> str:
    """One line as it may be shown: recorded words neither end it nor steer the terminal."""
    return _UNPRINTED.sub(_escaped, line)


def plain(data: Any) -> Any:
    """Models and their containers as JSON values."""
    dump = getattr(data, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if isinstance(data, dict):
        return {str(name): plain(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    if isinstance(data, Path):
        return str(data)
    return data


def moment(text: str | None) -> datetime | None:
    from tracegraph.model import parse_instant

    return None if text is None else parse_instant(text)


def known(text: str | None) -> int | datetime | None:
    if text is not None and text.isdecimal() and len(text) <= 19:
        return int(text)
    return moment(text)


def settings(pairs: Sequence[str] | None) -> dict[str, Any]:
    """name=value pairs of a policy; values in JSON, or a word, or words joined by commas for `kinds`."""
    out: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals:
            usage(f"--set {pair!r} must be name=value, for example max_items=8.")
        try:
            out[name] = json.loads(text)
        except (ValueError, RecursionError):
            out[name] = text.split(",") if name == "kinds" else text
    return out


def text_of(value: str) -> str:
    """The value itself, all of the standard input for `-`, or all of a file for `@file`."""
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_bytes().decode("utf-8")
        except (OSError, ValueError) as error:
            usage(f"{value[1:64]}: cannot be read ({type(error).__name__}).")
    return words_of(value)


def token_of(value: str) -> str:
    """A ticket or a view: like `text_of`, without the blanks and newlines around it."""
    return text_of(value).strip()


def words_of(value: str) -> str:
    """A statement: the value itself, or the standard input for `-` save its last newline; never a file.

    Who records what others said would hand out what the file holds that they named.
    """
    if value != "-":
        return value
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        usage("The standard input is not UTF-8.")
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def program() -> str:
    """How a person calls this command here: by its name, or by its path while that is not on PATH."""
    called = Path(sys.argv[0])
    by_name = called.stem != "tracegraph" or shutil.which("tracegraph") is not None
    return "tracegraph" if by_name else shlex.quote(os.path.relpath(called))


UNCERTAIN = {
    "quote": "the quote does not stand in the later item's words or its receipts' text that the author may read",
    "confidence": "the confidence is below the policy's",
}
"""Why a verdict was not taken as what it said."""


def wrote(done: Committed, as_json: bool) -> None:
    repeated = " (committed before; nothing was written)" if done.repeated else ""
    doubts = [f"taken as uncertain: {UNCERTAIN[cause]}" for cause in done.uncertain.values()]
    show(done, as_json, [f"epoch {done.epoch}: {', '.join(done.ids) or done.batch_id}{repeated}", *doubts])


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; silence in a pipe. Yields a function that advances it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda by: bar.advance(task, by)


from tracegraph.cli import checking, moving, recording, returning, server  # noqa: E402, F401
