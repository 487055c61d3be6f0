"""The command line: the acts of the API under the same names, and the server, checks and audits around them.

Prints data as text, or as one JSON document with --json. Refusals go to stderr with their code and hint; exit codes
are 0 (done; admitted or reset), 1 (refused, blocked, or a failed expectation), 2 (usage, or a malformed file).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from tracegraph.errors import TracegraphError

if TYPE_CHECKING:
    from datetime import datetime

    from tracegraph.model import Committed, Result
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
    str, typer.Option("--workspace", "-w", envvar="TRACEGRAPH_WORKSPACE", help="The workspace's id.", show_default=False)
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


# --- running ----------------------------------------------------------------------------------------------


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
        typer.echo(f"{error.code}: {error.message}", err=True)
        if error.hint:
            typer.echo(error.hint, err=True)
    sys.exit(1)


def usage(message: str) -> NoReturn:
    """Leave with 2: the call, or a file it names, is malformed."""
    typer.echo(message, err=True)
    sys.exit(2)


def show(data: Any, as_json: bool, lines: Iterable[str]) -> None:
    """Print data as JSON, or its lines."""
    if as_json:
        typer.echo(json.dumps(plain(data), indent=2, ensure_ascii=False))
    else:
        for line in lines:
            typer.echo(line)


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
    if text is not None and text.isdecimal():
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
        except ValueError:
            out[name] = text.split(",") if name == "kinds" else text
    return out


def text_of(value: str) -> str:
    """The value itself, the standard input for `-`, or a file's text for `@file`."""
    if value == "-":
        return sys.stdin.read().strip()
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            usage(f"{value[1:]}: cannot be read ({type(error).__name__}).")
    return value


def wrote(done: Committed, as_json: bool) -> None:
    repeated = " (committed before; nothing was written)" if done.repeated else ""
    show(done, as_json, [f"epoch {done.epoch}: {', '.join(done.ids) or done.batch_id}{repeated}"])


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


# --- the server -------------------------------------------------------------------------------------------


@app.command(rich_help_panel=SERVER)
def up(
    version: Annotated[str | None, typer.Option("--neo4j-version", help="2026.09.0 (default) or 5.26.")] = None,
    as_json: Json = False,
) -> None:
    """Start the embedded Neo4j, or find it running. The first start fetches it once.

    Example: tracegraph up
    """
    from tracegraph import embedded

    server = embedded.start(version)
    show(_server(server), as_json, _server_lines(server))


@app.command(rich_help_panel=SERVER)
def down(
    version: Annotated[str | None, typer.Option("--neo4j-version", help="Which one, if not the default.")] = None,
    as_json: Json = False,
) -> None:
    """Stop the embedded Neo4j; its data stays.

    Example: tracegraph down
    """
    from tracegraph import embedded

    stopped = embedded.stop(version=version)
    show({"stopped": stopped}, as_json, ["stopped" if stopped else "was not running"])


@app.command(rich_help_panel=SERVER)
def status(
    version: Annotated[str | None, typer.Option("--neo4j-version", help="Which one, if not the default.")] = None,
    as_json: Json = False,
) -> None:
    """Say whether the embedded Neo4j runs, and where. Exit code 1 when it does not.

    Example: tracegraph status --json
    """
    from tracegraph import embedded

    server = embedded.status(version=version)
    if server is None:
        show({"running": False}, as_json, ["not running; start it with: tracegraph up"])
        raise typer.Exit(1)
    show(_server(server), as_json, _server_lines(server))


def _server(server: Any) -> dict[str, Any]:
    return {
        "running": True,
        "version": server.version,
        "bolt": server.bolt_uri,
        "browser": f"{server.http_uri}/browser",
        "username": server.username,
        "password_file": str(server.password_file),
        "pid": server.pid,
        "data": str(server.data),
    }


def _server_lines(server: Any) -> list[str]:
    return [
        f"Neo4j {server.version} at {server.bolt_uri}, process {server.pid}",
        f"Browser: {server.http_uri}/browser  (user {server.username}, password in {server.password_file})",
        f"Data: {server.data}",
    ]


@app.command(rich_help_panel=SERVER)
def demo(as_json: Json = False) -> None:
    """Play the paper's travel case and explain each decision.

    Example: tracegraph demo
    """
    from tracegraph.demo import play

    run(lambda: play(as_json))


@keys_app.command("show")
def keys_show(as_json: Json = False) -> None:
    """Say which key signs, and where the keys are.

    Example: tracegraph keys show
    """
    from tracegraph.signing import default_keys

    keys = default_keys()
    kid = keys.current()
    show({"current": kid, "folder": str(keys.folder)}, as_json, [f"{kid} in {keys.folder}"])


@keys_app.command("rotate")
def keys_rotate(as_json: Json = False) -> None:
    """Sign with a new key from now on; what the old one signed still verifies.

    Example: tracegraph keys rotate
    """
    from tracegraph.signing import default_keys

    kid = default_keys().rotate()
    show({"current": kid}, as_json, [kid])


# --- recording --------------------------------------------------------------------------------------------


@app.command(rich_help_panel=ACTS)
def create(
    workspace: Annotated[str, typer.Argument(help="The new workspace's id.")],
    owner: Annotated[str, typer.Option(help="Who may write everything, grant, deny, set the policy and erase.")],
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Create a workspace with its owner and the first revision of its policy.

    Example: tracegraph create trip --owner lead --set max_items=8
    """
    import tracegraph

    async def work() -> None:
        async with tracegraph.connect() as graph:
            await graph.workspace(workspace, owner=owner, policy=settings(set_))

    run(work)
    show({"workspace": workspace, "owner": owner}, as_json, [f"workspace {workspace}, owner {owner}"])


@app.command(rich_help_panel=ACTS)
def record(
    content: Annotated[str | None, typer.Argument(help="The statement; - reads it from standard input.")] = None,
    scope: Annotated[str | None, typer.Option(help="The unit of permission it belongs to.")] = None,
    workspace: Name = "",
    id: Id = None,
    key: Annotated[str | None, typer.Option(help="What it is about; by default its id.")] = None,
    kind: Annotated[str, typer.Option(help="fact or constraint.")] = "fact",
    task: Annotated[str | None, typer.Option(help="The one task it is for.")] = None,
    for_purpose: Annotated[list[str] | None, typer.Option(help="A purpose it is for.")] = None,
    for_role: Annotated[str | None, typer.Option(help="The one role it is for.")] = None,
    valid_from: Annotated[str | None, typer.Option(help="By default the moment of recording.")] = None,
    valid_to: Annotated[str | None, typer.Option(help="By default an open end.")] = None,
    supports: Annotated[list[str] | None, typer.Option(help="A dependency it satisfies.")] = None,
    depends_on: Annotated[list[str] | None, typer.Option(help="An item it rests on.")] = None,
    derived_from: Annotated[list[str] | None, typer.Option(help="An item it was made from.")] = None,
    supersedes: Annotated[list[str] | None, typer.Option(help="An item of another key that it replaces.")] = None,
    receipt_uri: Annotated[str | None, typer.Option(help="Where it came from.")] = None,
    receipt_text: Annotated[str | None, typer.Option(help="The source's words; @file reads them.")] = None,
    receipt: Annotated[list[str] | None, typer.Option(help="An earlier receipt's id.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="A JSONL file of items, one a line, as one batch; - is standard input.")
    ] = None,
    by: By = None,
    batch_id: Batch = None,
    as_json: Json = False,
) -> None:
    """Record a statement, or a file of them, as one batch.

    Example: tracegraph record "Riverside is booked." -w trip --by A2 --key hotel --scope trip
    --supports hotel --receipt-uri mail:3 --receipt-text "Riverside confirmed"
    """
    from tracegraph.model import Item, Receipt, ReceiptRef

    if file is not None:
        if content is not None:
            usage("Give a statement or --file, not both.")
        items = _items(file)
    elif content is None or scope is None:
        usage("Give a statement and its --scope, or --file.")
    else:
        receipts: list[Receipt | ReceiptRef] = [ReceiptRef(id=one) for one in receipt or ()]
        if receipt_uri is not None:
            receipts.append(Receipt(uri=receipt_uri, text=text_of(receipt_text or "")))
        items = [
            Item(
                content=text_of(content),
                scope=scope,
                key=key,
                kind=kind,  # type: ignore[arg-type]
                task=task,
                purposes=for_purpose or [],
                role=for_role,
                valid_from=moment(valid_from),
                valid_to=moment(valid_to),
                supports=supports or [],
                depends_on=depends_on or [],
                derived_from=derived_from or [],
                supersedes=supersedes or [],
                receipts=receipts,
                **({} if id is None else {"id": id}),
            )
        ]
    wrote(on(workspace, lambda ws: ws.record(*items, author=by, batch_id=batch_id)), as_json)


def _items(file: Path) -> list[Any]:
    from pydantic import ValidationError

    from tracegraph.model import Item, refusal

    text = text_of("-" if str(file) == "-" else f"@{file}")
    items = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            items.append(Item.model_validate_json(line))
        except ValidationError as error:
            refusal(error, f"line {number}: Item")
        except TracegraphError as error:
            raise TracegraphError(f"line {number}: {error.message}", code=error.code, hint=error.hint) from None
    return items


@app.command(rich_help_panel=ACTS)
def open_obligation(
    content: Annotated[str, typer.Argument(help="What is owed.")],
    scope: Annotated[str, typer.Option(help="The unit of permission it belongs to.")],
    workspace: Name = "",
    id: Id = None,
    role: Annotated[str | None, typer.Option(help="Which role owes it; by default every role.")] = None,
    task: Annotated[str | None, typer.Option(help="For which task; by default every task.")] = None,
    for_purpose: Annotated[list[str] | None, typer.Option(help="A purpose it is for.")] = None,
    requires: Annotated[
        list[str] | None, typer.Option(help="A dependency it needs; a trailing ! makes it critical.")
    ] = None,
    frontier: Annotated[str | None, typer.Option(help="What remains unresolved.")] = None,
    by: By = None,
    batch_id: Batch = None,
    as_json: Json = False,
) -> None:
    """Record what a role owes, and the evidence it needs.

    Example: tracegraph open-obligation "Arrange the stay." -w trip --scope trip --role itinerary --task plan
    --requires hotel! --requires quiet --frontier "Nothing confirmed yet."
    """
    from tracegraph.model import Frontier, Obligation

    owed = Obligation(
        content=text_of(content),
        scope=scope,
        role=role,
        task=task,
        purposes=tuple(for_purpose or ()),
        requires=tuple(requires or ()),
        frontier=None if frontier is None else Frontier(content=frontier),
        **({} if id is None else {"id": id}),
    )
    wrote(on(workspace, lambda ws: ws.open_obligation(owed, author=by, batch_id=batch_id)), as_json)


@app.command(rich_help_panel=ACTS)
def advance(
    obligation: Annotated[str, typer.Argument(help="The obligation's id.")],
    content: Annotated[str, typer.Argument(help="What remains unresolved now.")],
    workspace: Name = "",
    id: Id = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Record the next frontier of an obligation.

    Example: tracegraph advance o1 "Only the pickup is open." -w trip --by A2
    """
    wrote(on(workspace, lambda ws: ws.advance(obligation, text_of(content), author=by, id=id)), as_json)


@app.command(rich_help_panel=ACTS)
def resolve(
    target: Annotated[str, typer.Argument(help="The obligation's id.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Close an obligation.

    Example: tracegraph resolve o1 -w trip --by A2
    """
    wrote(on(workspace, lambda ws: ws.resolve(target, author=by)), as_json)


@app.command(rich_help_panel=ACTS)
def revoke(
    target: Annotated[str, typer.Argument(help="An item's or a receipt's id.")],
    workspace: Name = "",
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    effective_from: Annotated[str | None, typer.Option(help="From when; by default now.")] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """End an item or a receipt; nothing older comes back.

    Example: tracegraph revoke h1 -w trip --by A2 --reason "booking cancelled"
    """
    start = moment(effective_from)
    wrote(
        on(workspace, lambda ws: ws.revoke(target, author=by, reason=reason, effective_from=start)), as_json
    )


@app.command(rich_help_panel=ACTS)
def retract(
    target: Annotated[str, typer.Argument(help="An item's or a receipt's id.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say that an item or a receipt was recorded by mistake; its predecessor stands again.

    Example: tracegraph retract h1 -w trip --by A2
    """
    wrote(on(workspace, lambda ws: ws.retract(target, author=by)), as_json)


@app.command(rich_help_panel=ACTS)
def withdraw(
    target: Annotated[str, typer.Argument(help="A grant's, denial's, revocation's or verdict's id.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Take back a grant, a denial, a revocation or a verdict.

    Example: tracegraph withdraw grant-1 -w trip
    """
    wrote(on(workspace, lambda ws: ws.withdraw(target, author=by)), as_json)


@app.command(rich_help_panel=ACTS)
def verdict(
    later: Annotated[str, typer.Argument(help="The later item's id.")],
    earlier: Annotated[str, typer.Argument(help="The earlier item's id.")],
    says: Annotated[str, typer.Argument(help="invalidates, compatible, uncertain, restores or proposed.")],
    workspace: Name = "",
    task: Annotated[str | None, typer.Option(help="For which task; by default every task.")] = None,
    confidence: Annotated[float | None, typer.Option(help="0 to 1; too little makes it uncertain.")] = None,
    quote: Annotated[str | None, typer.Option(help="Words of the later item or its receipts.")] = None,
    rationale: Annotated[str | None, typer.Option(help="One line of why.")] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say whether an earlier item may still be acted on, given a later one.

    Example: tracegraph verdict h1 p0 invalidates -w trip --task plan --confidence 0.9 --quote Riverside
    """
    from tracegraph.model import Verdict

    judged = Verdict(
        later=later,
        earlier=earlier,
        says=says,  # type: ignore[arg-type]
        task=task,
        confidence=confidence,
        quote=quote,
        rationale=rationale,
    )
    fields = judged.model_dump(include={"later", "earlier", "says", "task", "confidence", "quote", "rationale"})
    wrote(on(workspace, lambda ws: ws.verdict(author=by, **fields)), as_json)


def _grant_options(deny: bool) -> Callable[..., None]:
    def command(
        role: Role,
        workspace: Name = "",
        principal: Annotated[str | None, typer.Option("--principal", "-p", help="Who is to hold the role.")] = None,
        read: Annotated[list[str] | None, typer.Option(help="A scope to read.")] = None,
        write: Annotated[list[str] | None, typer.Option(help="A scope to write.")] = None,
        valid_from: Annotated[str | None, typer.Option(help="By default now.")] = None,
        valid_to: Annotated[str | None, typer.Option(help="By default an open end.")] = None,
        by: By = None,
        as_json: Json = False,
    ) -> None:
        start, end = moment(valid_from), moment(valid_to)
        if deny and principal is not None:
            usage("A denial concerns a role's scopes, not a principal.")

        async def work(ws: Workspace) -> Committed:
            scopes: dict[str, Any] = {"read": read or (), "write": write or ()}
            if deny:
                return await ws.deny(role=role, valid_from=start, valid_to=end, author=by, **scopes)
            return await ws.grant(
                role=role, principal=principal, valid_from=start, valid_to=end, author=by, **scopes
            )

        wrote(on(workspace, work), as_json)

    return command


app.command(
    "grant",
    rich_help_panel=ACTS,
    help="Let a principal hold a role, or a role read and write scopes.\n\n"
    "Example: tracegraph grant -w trip --role booking --read trip --write trip --principal A2",
)(_grant_options(deny=False))
app.command(
    "deny",
    rich_help_panel=ACTS,
    help="Forbid a role to read or write scopes; beats any grant.\n\n"
    "Example: tracegraph deny -w trip --role booking --read payroll",
)(_grant_options(deny=True))


@app.command(rich_help_panel=ACTS)
def policy(workspace: Name = "", set_: Set = None, by: By = None, as_json: Json = False) -> None:
    """Show the policy in force, or set its next revision with --set.

    Example: tracegraph policy -w trip --set max_items=8 --set fill=none
    """
    changes = settings(set_)
    if changes:
        wrote(on(workspace, lambda ws: ws.set_policy(author=by, **changes)), as_json)
        return
    found = on(workspace, lambda ws: ws.policy())
    show(found, as_json, [f"{name}: {value}" for name, value in plain(found).items()])


@app.command(rich_help_panel=ACTS)
def erase(
    target: Annotated[str, typer.Argument(help="The item's id.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept with the tombstone.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Remove an item's words, and all that is derived from it, for good.

    Example: tracegraph erase c1 -w trip --reason "subject's request"
    """
    wrote(on(workspace, lambda ws: ws.erase(target, reason=reason, author=by)), as_json)


# --- leaving and returning --------------------------------------------------------------------------------


@app.command(rich_help_panel=RETURNS)
def depart(principal: Principal, role: Role, task: Task, workspace: Name = "", as_json: Json = False) -> None:
    """Leave in a role and a task; prints the ticket that admit takes.

    Example: tracegraph depart -w trip -p A1 -r itinerary -t plan > ticket
    """
    ticket = on(workspace, lambda ws: ws.depart(principal=principal, role=role, task=task))
    show({"ticket": ticket}, as_json, [ticket])


@app.command(rich_help_panel=RETURNS)
def admit(
    ticket: Annotated[str, typer.Argument(help="The ticket, @file, or - for standard input.")],
    principal: Principal,
    workspace: Name = "",
    purpose: Purpose = None,
    workload: Annotated[str | None, typer.Option(help="What runs with the view; kept in it.")] = None,
    query: Query = None,
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    as_of: AsOf = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Decide a return: what the one who departed may act on now. A given clock makes it a preview.

    Example: tracegraph admit @ticket -w trip -p A1 --purpose prepare
    """
    token, clocks = text_of(ticket), _clocks(valid_at, known_at, as_of)
    result = on(
        workspace,
        lambda ws: ws.admit(
            token,
            principal=principal,
            purpose=purpose,
            workload=workload,
            query=query,
            policy=settings(set_),
            **clocks,
        ),
    )
    decided(result, as_json)


@app.command(rich_help_panel=RETURNS)
def join(
    principal: Principal,
    role: Role,
    task: Task,
    workspace: Name = "",
    purpose: Purpose = None,
    workload: Annotated[str | None, typer.Option(help="What runs with the view; kept in it.")] = None,
    query: Query = None,
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    as_of: AsOf = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Enter without a ticket: for one who was never here, or lost it.

    Example: tracegraph join -w trip -p A1 -r itinerary -t plan
    """
    clocks = _clocks(valid_at, known_at, as_of)
    result = on(
        workspace,
        lambda ws: ws.join(
            principal=principal,
            role=role,
            task=task,
            purpose=purpose,
            workload=workload,
            query=query,
            policy=settings(set_),
            **clocks,
        ),
    )
    decided(result, as_json)


def _clocks(valid_at: str | None, known_at: str | None, as_of: str | None) -> dict[str, Any]:
    return {"valid_at": moment(valid_at), "known_at": known(known_at), "as_of": moment(as_of)}


def decided(result: Result, as_json: bool) -> None:
    """Print a decision; exit code 1 unless it released a view."""
    report = result.coverage
    lines = [
        f"{result.decision}{f' ({result.reason})' if result.reason else ''}"
        f"{', a preview' if result.preview else ''}: cycle {result.cycle_id}, epoch {result.epoch}",
        f"coverage {report.coverage:.3g}, critical {report.critical:.3g}"
        + (f", uncovered: {', '.join(report.uncovered)}" if report.uncovered else ""),
        *(f"  + {item.id} [{item.why}] {item.content}" for item in result.items),
        *(f"  - {id}: {', '.join(reasons)}" for id, reasons in result.rejected.items()),
        *(f"  ! {id}: {', '.join(reasons)}" for id, reasons in result.selection.items()),
    ]
    if result.view:
        lines += ["view:", result.view]
    show(result, as_json, lines)
    if result.decision not in ("admitted", "reset"):
        raise typer.Exit(1)


@app.command(rich_help_panel=RETURNS)
def view(
    token: Annotated[str, typer.Argument(help="The Return View, @file, or - for standard input.")],
    principal: Principal,
    workspace: Name = "",
    role: Annotated[str | None, typer.Option("--role", "-r", help="The role it must be for.")] = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="The task it must be for.")] = None,
    as_json: Json = False,
) -> None:
    """Open a Return View: check it again, and print what it holds.

    Example: tracegraph view @view -w trip -p A1
    """
    signed = text_of(token)
    opened = on(workspace, lambda ws: ws.open_view(signed, principal=principal, role=role, task=task))
    show(
        opened,
        as_json,
        [
            f"valid until {opened.expires_at.isoformat()}, verification {opened.verification}",
            *(f"  {item.id} [{item.kind}] {item.content}" for item in opened.items),
        ],
    )


@app.command(rich_help_panel=RETURNS)
def read(
    principal: Principal,
    role: Role,
    task: Task,
    workspace: Name = "",
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List what stands for a task and a role may read, on both clocks.

    Example: tracegraph read -w trip -p A1 -r itinerary -t plan --as-of 2026-05-01T09:00:00Z
    """
    clocks = _clocks(valid_at, known_at, as_of)
    items = on(workspace, lambda ws: ws.read(principal=principal, role=role, task=task, **clocks))
    show(items, as_json, [f"{item.id} [{item.key}] {item.content}" for item in items])


@app.command(rich_help_panel=RETURNS)
def remember(
    content: Annotated[str, typer.Argument(help="The memory; - reads it from standard input.")],
    principal: Principal,
    grounded_in: Annotated[list[str], typer.Option(help="An item it rests on.")],
    workspace: Name = "",
    id: Id = None,
    as_json: Json = False,
) -> None:
    """Keep a private memory, grounded in work items.

    Example: tracegraph remember "Quiet matters most." -w trip -p A1 --grounded-in c1
    """
    words = text_of(content)
    wrote(
        on(workspace, lambda ws: ws.remember(words, principal=principal, grounded_in=grounded_in, id=id)), as_json
    )


@app.command(rich_help_panel=RETURNS)
def recall(
    token: Annotated[str, typer.Argument(help="The Return View, @file, or - for standard input.")],
    principal: Principal,
    workspace: Name = "",
    query: Annotated[str | None, typer.Option(help="Words that should match; the best come first.")] = None,
    as_json: Json = False,
) -> None:
    """List the private memories that a view lets its owner use.

    Example: tracegraph recall @view -w trip -p A1
    """
    signed = text_of(token)
    found = on(workspace, lambda ws: ws.recall(signed, principal=principal, query=query))
    show(found, as_json, [f"{one.id} {one.content}" for one in found])


# --- audit and checks -------------------------------------------------------------------------------------


@app.command(rich_help_panel=AUDIT)
def check(
    files: Annotated[list[Path], typer.Argument(help="Scenario files, or folders of *.trace.yaml.")],
    as_json: Json = False,
) -> None:
    """Run scenario files, each on a fresh workspace: one line per expectation.

    Exit code 1 when an expectation fails, 2 when a file is malformed.

    Example: tracegraph check tests/scenarios/travel.trace.yaml
    """
    import anyio

    import tracegraph
    from tracegraph.scenarios import MalformedScenario, Report
    from tracegraph.scenarios import check as check_one
    from tracegraph.scenarios import load

    paths = [
        found for path in files for found in (sorted(path.rglob("*.trace.yaml")) if path.is_dir() else [path])
    ]
    scenarios, malformed = [], []
    for path in paths:
        try:
            scenarios.append(load(path))
        except MalformedScenario as error:
            malformed.append(str(error))
    reports: dict[int, Report] = {}

    async def work() -> None:
        turn = anyio.CapacityLimiter(4)
        async with tracegraph.connect() as graph:
            with progress("Checking", len(scenarios)) as advance:

                async def one(number: int) -> None:
                    async with turn:
                        reports[number] = await check_one(graph, scenarios[number])
                        advance(1)

                async with anyio.create_task_group() as group:
                    for number in range(len(scenarios)):
                        group.start_soon(one, number)

    if scenarios:
        run(work)
    done = [reports[number] for number in range(len(scenarios))]
    show(
        {"scenarios": [asdict(report) | {"passed": report.passed} for report in done], "malformed": malformed},
        as_json,
        [
            f"{'ok  ' if one.passed else 'FAIL'} {report.path}:{one.line}: {one}"
            for report in done
            for one in report.expectations
        ],
    )
    for fault in malformed:
        typer.echo(fault, err=True)
    failed = sum(not report.passed for report in done)
    if not as_json:
        typer.echo(f"{len(done) - failed} passed, {failed} failed, {len(malformed)} malformed", err=True)
    if malformed or failed:
        raise typer.Exit(2 if malformed else 1)


# --- real input -------------------------------------------------------------------------------------------


@eval_app.command("statebench")
def eval_statebench(
    files: Annotated[list[Path], typer.Argument(help="StateBench 1.0 timelines, JSONL.")],
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="trace, static, latest or reset; may be repeated. By default all four."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Play only the first so many timelines.")] = None,
    as_json: Json = False,
) -> None:
    """Play StateBench timelines as work state, without a model, and compare what each policy admits.

    trace is what tracegraph admits, static all that was ever written, latest the newest per key, reset
    nothing. Exit code 2 when a file is malformed.

    Example: tracegraph eval statebench train.jsonl dev.jsonl --policy trace --policy latest --limit 100
    """
    import tracegraph
    from tracegraph.evals import statebench

    chosen = [name for name in statebench.POLICIES if policies is None or name in policies]
    unknown = set(policies or ()) - set(chosen)
    if unknown:
        usage(f"--policy {', '.join(sorted(unknown))}: choose among {', '.join(statebench.POLICIES)}.")
    try:
        timelines = statebench.load(files, limit)
    except statebench.MalformedTimelineError as error:
        usage(str(error))
    except (OSError, UnicodeDecodeError) as error:
        usage(f"A file cannot be read ({type(error).__name__}): {getattr(error, 'filename', None) or error}.")

    async def work() -> dict[str, statebench.Score]:
        if "trace" not in chosen:
            return await statebench.evaluate(None, timelines, chosen)
        async with tracegraph.connect() as graph:
            with progress("Playing", len(timelines)) as advance:
                return await statebench.evaluate(graph, timelines, chosen, advance)

    scores = run(work)
    show(statebench.as_json(scores), as_json, statebench.as_lines(scores))
