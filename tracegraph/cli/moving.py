"""Moving a workspace to another server, and keeping the embedded one: export, import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tracegraph.cli import Json, app, progress, run, show, usage

MOVING = "Backup and moving"


@contextmanager
def _told(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for those who tell how much of how much is done."""
    with progress(what, None) as advance:
        seen = 0

        def tell(done: int, _: int) -> None:
            nonlocal seen
            advance(done - seen)
            seen = done

        yield tell


@app.command("export", rich_help_panel=MOVING)
def export_(
    workspace: Annotated[
        str, typer.Argument(envvar="TRACEGRAPH_WORKSPACE", help="The workspace's id.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file, mode 0600; by default the standard output.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a workspace's history, every batch, return and view of it, as JSON lines for `tracegraph import`.

    What was erased travels as a tombstone. Tickets and views signed before verify at the other end only with the same
    keys: move their folder (tracegraph keys show) too.

    Example: tracegraph export trip --output trip.jsonl
    """
    import tracegraph
    from tracegraph.exporting import Exported, export, export_to
    from tracegraph.workspace import Arguments

    Arguments(workspace=workspace)
    if as_json and output is None:
        usage("--json prints a summary and needs --output for the history.")

    async def work() -> Exported:
        async with tracegraph.connect() as graph:
            with _told("Exporting") as tell:
                if output is not None:
                    return await export(graph, workspace, output, progress=tell)
                return await export_to(graph, workspace, sys.stdout.buffer.write, progress=tell)

    done = run(work)
    if output is not None:
        line = f"{done.workspace}: {done.records} records in {done.epoch} epochs and {done.cycles} returns"
        show(done, as_json, [line, f"head {done.digest}"])


@app.command("import", rich_help_panel=MOVING)
def import_(file: Annotated[Path, typer.Argument(help="What export wrote.")], as_json: Json = False) -> None:
    """Rebuild a workspace from its history: same epochs, ids, digests and decisions. Interrupted, run it again.

    Refuses a file that was changed or cut short, and to import over another history of the same workspace.

    Example: tracegraph import trip.jsonl
    """
    import tracegraph
    from tracegraph.importing import Imported, import_from

    async def work() -> Imported:
        async with tracegraph.connect() as graph:
            with _told("Importing") as tell:
                return await import_from(graph, file, progress=tell)

    done = run(work)
    show(
        done,
        as_json,
        [
            f"{done.workspace}: epoch {done.epoch}, intact; {done.batches} batches and {done.cycles} returns were "
            "written now",
            f"head {done.digest}",
        ],
    )
