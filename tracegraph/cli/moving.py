"""Moving a workspace to another server, and keeping the embedded one: export, import, backup, restore, compact."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tracegraph.cli import Json, app, progress, run, show, usage
from tracegraph.errors import Unavailable

MOVING = "Backup and moving"
Version = Annotated[str | None, typer.Option("--neo4j-version", help="Which embedded server, if not the default.")]


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


def _embedded_only(what: str, instead: str) -> None:
    if os.environ.get("NEO4J_URI"):
        raise Unavailable(f"{what} is for the embedded server, and NEO4J_URI names another.", hint=instead)


def _stage(words: str) -> None:
    if sys.stderr.isatty():
        typer.echo(f"{words} ...", err=True)


@app.command(rich_help_panel=MOVING)
def backup(
    file: Annotated[Path, typer.Argument(help="The file, mode 0600.")], version: Version = None, as_json: Json = False
) -> None:
    """Dump the embedded server's database into a file. The server is stopped meanwhile, and started again if it ran.

    Keep the signing keys too (tracegraph keys show): they are no part of it.

    Example: tracegraph backup trip.dump
    """
    from tracegraph.embedded.store import backup as dump

    _embedded_only("backup", "Use neo4j-admin database dump there, your provider's backups, or tracegraph export.")
    size = dump(file, version=version, tell=_stage)
    show({"file": str(file), "bytes": size}, as_json, [f"{file}: {size / 1e6:.1f} MB"])


@app.command(rich_help_panel=MOVING)
def restore(
    file: Annotated[Path, typer.Argument(help="What backup wrote.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the store that is there.")] = False,
    version: Version = None,
    as_json: Json = False,
) -> None:
    """Load a backup into the embedded server. The old store is deleted only once the new one was opened.

    Example: tracegraph restore trip.dump --overwrite
    """
    from tracegraph.embedded.store import restore as load

    _embedded_only("restore", "Use neo4j-admin database load there, or tracegraph import.")
    found = load(file, version=version, overwrite=overwrite, tell=_stage)
    show({"workspaces": found}, as_json, [f"{len(found)} workspaces: {', '.join(found)}" if found else "no workspaces"])


@app.command(rich_help_panel=MOVING)
def compact(version: Version = None, as_json: Json = False) -> None:
    """Rebuild the embedded server's store, so that what was erased is in none of its files.

    Erased words stay in Neo4j's transaction logs and in free records of its store until then. All workspaces are
    exported, imported into a new store and compared before the old store and its logs are deleted. Files are deleted,
    not shredded; backups and copies made before are yours to delete.

    Example: tracegraph compact
    """
    from tracegraph.embedded.store import compact as rebuild

    _embedded_only("compact", "Export its workspaces, import them into a fresh database, and drop the old one.")
    done = rebuild(version=version, tell=_stage)
    sizes = f"{done.before / 1e6:.1f} MB are {done.after / 1e6:.1f}"
    show(done, as_json, [f"{len(done.workspaces)} workspaces rebuilt and compared; {sizes}"])
