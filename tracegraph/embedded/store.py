"""The embedded server's store as a whole: backed up, restored, and compacted so that erased words are nowhere in it.

Each stops the server, keeps others from starting it meanwhile, and starts it again where it ran. A new store is built
and opened beside the old one, which is deleted only then; cut short, the next start finds one of them whole.

Why a compaction is an export and an import: after an erasure and a clean stop the words were still found in the
transaction log (an erasing command carries what it erases) and in the property store (a deleted record is only marked
so); a dump carries both along, and so does its load. Community has no command that copies a store record by record.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio

from tracegraph.embedded import admin_command, data_dir, launch
from tracegraph.embedded.jars import Lock, read_lock
from tracegraph.embedded.machine import any_port, faults_of_the_disk, free, held, need_space
from tracegraph.embedded.process import Server, end_strays, find, settle, terminate
from tracegraph.errors import TracegraphError, Unavailable
from tracegraph.model import Model

DATABASE = "neo4j"
SPARE = 500_000_000
"""Bytes to leave free beyond what a new store may take."""
SMALL = 200_000_000
"""Bytes of a store whose work is over before a server has warmed up."""

Tell = Callable[[str], None]
"""Is told of each stage, in a few words."""


class Compacted(Model):
    """A finished compaction: what was rebuilt, and the store's size in bytes."""

    workspaces: tuple[str, ...]
    before: int
    after: int


def _silent(_: str) -> None:
    return None


def backup(file: Path, data: Path | None = None, *, version: str | None = None, tell: Tell = _silent) -> int:
    """Dump the database into a file of mode 0600; gives its size in bytes. The server is away meanwhile."""
    lock, home = _home(data, version)
    if not (home / "data" / "databases" / DATABASE).is_dir():
        raise Unavailable(f"There is no store in {home}.", hint="Start the server once: tracegraph up")
    with (
        faults_of_the_disk(file.parent),
        _offline(lock, home, tell),
        tempfile.TemporaryDirectory(prefix=".tracegraph-", dir=file.parent) as folder,
    ):
        tell("dumping")
        _admin(home, lock, "dump", f"--to-path={folder}")
        dumped = Path(folder) / f"{DATABASE}.dump"
        dumped.chmod(0o600)
        dumped.replace(file)
    return file.stat().st_size


def restore(
    file: Path,
    data: Path | None = None,
    *,
    version: str | None = None,
    overwrite: bool = False,
    tell: Tell = _silent,
) -> tuple[str, ...]:
    """Load what `backup` wrote in place of the store; gives the workspaces it holds.

    Raises `conflict` over a store that is there without `overwrite`. A file that cannot be loaded and opened changes
    nothing.
    """
    lock, home = _home(data, version)
    if not file.is_file():
        raise Unavailable(f"There is no file {file}.", hint="Give what tracegraph backup wrote.")
    if (home / "data" / "databases" / DATABASE).is_dir() and not overwrite:
        raise TracegraphError(
            f"There is a store in {home}.", code="conflict", hint="Back it up, and replace it with --overwrite."
        )
    with _offline(lock, home, tell), _rebuilt(home) as new:
        tell("loading")
        source = new / "source"
        source.mkdir(mode=0o700)
        (source / f"{DATABASE}.dump").symlink_to(file.resolve())
        _admin(new, lock, "load", f"--from-path={source}", "--overwrite-destination=true")
        tell("opening what was loaded")
        with _private(lock, new, _size(new / "data")) as server:
            found = anyio.run(_workspaces, server)
        _swap(home, new)
    return found


def compact(data: Path | None = None, *, version: str | None = None, tell: Tell = _silent) -> Compacted:
    """Rebuild the store from its histories, so that what was erased is nowhere under the data directory.

    The new store's histories must come out to the byte as the old one's. Raises `conflict` when the database holds what
    is not tracegraph's, and `invalid_record` when a workspace doesn't verify; then the old store stays.
    """
    lock, home = _home(data, version)
    if not (home / "data" / "databases" / DATABASE).is_dir():
        raise Unavailable(f"There is no store in {home}.", hint="Start the server once: tracegraph up")
    with _offline(lock, home, tell), _rebuilt(home) as new:
        before = _size(home / "data")
        need_space(home, 2 * before + SPARE)
        histories = new / "histories"
        histories.mkdir(mode=0o700)
        with _private(lock, home, before) as server:
            wanted = anyio.run(_export_all, server, histories, tell)
        with _private(lock, new, before) as server:
            anyio.run(_import_all, server, histories, wanted, tell)
        _swap(home, new)
        # Nobody's words belong into Neo4j's logs, but nobody can say so of every fault; they are the old store's.
        for log in (home / "logs").iterdir():
            if log.is_dir():
                shutil.rmtree(log)
            else:
                log.unlink()
        shutil.rmtree(home / "run" / "tmp", ignore_errors=True)
        return Compacted(workspaces=tuple(wanted), before=before, after=_size(home / "data"))


# --- stores -----------------------------------------------------------------------------------------------


def _home(data: Path | None, version: str | None) -> tuple[Lock, Path]:
    lock = read_lock(version)
    return lock, data_dir(data, lock.version)


@contextmanager
def _offline(lock: Lock, home: Path, tell: Tell) -> Iterator[None]:
    """The server stopped, and nobody able to start it; started again afterwards, where it ran, if it did."""
    with faults_of_the_disk(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(home / "start.lock", "another process that is starting or stopping this server"):
            running = find(home)
            if running is not None:
                tell("stopping the server")
                terminate(running.process)
            end_strays(home)
            (home / "server.json").unlink(missing_ok=True)
            settle(home)
            try:
                yield
            finally:
                if running is not None:
                    tell("starting the server")
                    bolt, http = (port if free(port) else None for port in (running.bolt_port, running.http_port))
                    launch(lock, home, bolt, http)


@contextmanager
def _private(lock: Lock, home: Path, size: int) -> Iterator[Server]:
    """A server at ports that nobody knows, for a store of this size; stopped afterwards."""
    import psutil

    server = launch(lock, home, any_port(), any_port(), brief=size < SMALL)
    try:
        yield server
    finally:
        with suppress(psutil.NoSuchProcess):
            terminate(psutil.Process(server.pid))
        (home / "server.json").unlink(missing_ok=True)


@contextmanager
def _rebuilt(home: Path) -> Iterator[Path]:
    """A server's home inside this one, with its users and password and no database yet; deleted afterwards."""
    new = home / "rebuilt"
    new.mkdir(mode=0o700)
    try:
        if (home / "data").is_dir():
            kept = (home / "data" / "databases", home / "data" / "transactions")
            shutil.copytree(
                home / "data",
                new / "data",
                ignore=lambda folder, _: {DATABASE, "store_lock"} if Path(folder) in kept else set(),
            )
        if (home / "password").exists():
            shutil.copy2(home / "password", new / "password")
        yield new
        if not (home / "password").exists():
            shutil.copy2(new / "password", home / "password")
    finally:
        shutil.rmtree(new)


def _swap(home: Path, new: Path) -> None:
    """Put the new store into the old one's place; `settle` finishes or undoes what is cut short here."""
    old, data = home / "data.old", home / "data"
    if data.exists():
        data.rename(old)
    (new / "data").rename(data)
    for folder in (home, new):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    if old.exists():
        shutil.rmtree(old)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _admin(home: Path, lock: Lock, *args: str) -> None:
    command, *options = args
    done = admin_command("database", command, DATABASE, *options, data=home, version=lock.version)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        why = next((line for line in lines if line.startswith(("Failed", "The database", "Dump", "Load"))), "")
        raise Unavailable(
            f"neo4j-admin database {command} failed: {why or f'exit code {done.returncode}'}",
            hint="A backup is read by its own release line of Neo4j; between lines use tracegraph export and import.",
        )


# --- what they hold ---------------------------------------------------------------------------------------


async def _workspaces(server: Server) -> tuple[str, ...]:
    from tracegraph.graph import Tx, connect

    async def work(tx: Tx) -> tuple[str, ...]:
        return tuple(row["id"] for row in await tx.rows("moving/workspaces"))

    async with connect(server.bolt_uri, username=server.username, password=server.password) as graph:
        return await graph.read(work)


async def _export_all(server: Server, folder: Path, tell: Tell) -> dict[str, Any]:
    """Every workspace's history, in files by its number; gives what each holds, by workspace."""
    from tracegraph.exporting import export
    from tracegraph.graph import Tx, connect

    async def foreign(tx: Tx) -> list[dict[str, Any]]:
        return await tx.rows("moving/foreign")

    wanted: dict[str, Any] = {}
    names = await _workspaces(server)
    async with connect(server.bolt_uri, username=server.username, password=server.password) as graph:
        _only_ours(await graph.read(foreign))
        for number, workspace in enumerate(names):
            tell(f"exporting {workspace}")
            wanted[workspace] = await export(graph, workspace, folder / str(number))
    return wanted


def _only_ours(found: Sequence[dict[str, Any]]) -> None:
    if found:
        some = ", ".join(f"{row['nodes']} {':'.join(row['labels']) or 'without a label'}" for row in found[:3])
        raise TracegraphError(
            f"The database also holds what is not tracegraph's, and would be lost: {some}.",
            code="conflict",
            hint="Move it to a database of its own first.",
        )


async def _import_all(server: Server, folder: Path, wanted: dict[str, Any], tell: Tell) -> None:
    """Import every history, and see that each comes out to the byte as it went in."""
    from tracegraph.exporting import export_to
    from tracegraph.graph import connect
    from tracegraph.importing import import_from

    async with connect(server.bolt_uri, username=server.username, password=server.password) as graph:
        for number, workspace in enumerate(wanted):
            tell(f"importing {workspace}")
            await import_from(graph, folder / str(number))
            found = await export_to(graph, workspace, lambda _: None)
            if found != wanted[workspace]:
                raise TracegraphError(
                    f"The workspace {workspace!r} came out otherwise; the old store stays.",
                    code="conflict",
                    hint="Keep a backup, and report it.",
                )
