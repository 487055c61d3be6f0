"""A workspace's history as a file of JSON lines, in the terms of DESIGN §5: batches with the records they logged.

    {"tracegraph": "history", "format": 1, "workspace", "owner", "recorded_at", "policy", "digest", "epoch", "head"}
    {"batch": 1, "batch_id", "author", "recorded_at", "request", "ids", "records": 2, "digest"}
    {"act": "item", ...}                the record as the epoch's digest covers it, and its words beside
    {"act": "receipt", ...}
    ...
    {"cycle": {...}, "departed", "rejected", "view", "admits", "opened"}      a return: no batch, so beside the log
    {"kept": "item", "item", "readings", "scans"}         what verification looked at, so that no model is asked again
    {"kept": "workspace", "sweeps", "endpoints", "jobs"}
    {"end": {"epoch", "records", "cycles", "kept"}, "sha256"}                 of all bytes before this line

A record's digest is the sha256 of the canonical JSON of its line without its words (content, text, quote, rationale);
an epoch's is that of `tracegraph.write.epoch_digest`. What was erased has no words: a tombstone. Instants are RFC 3339.
Never exports a workspace that does not verify, and holds at most a page of it, or one batch, in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tracegraph.chain import KEPT_BESIDE, BreakError, Walk, covered, pin
from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import Model, iso
from tracegraph.records import FORMAT, WORDS

PAGE = 200
"""Records of one page; an epoch that holds more is a page of its own."""
CYCLES = 20
"""Return cycles of one page; each names its whole pool."""
KEPT = 50
"""Items of one page of what verification keeps."""
CYCLE_TIMES, VIEW_TIMES = ("valid_at", "authorized_at"), ("expires_at",)

Progress = Callable[[int, int], None]
"""Is told how much of how much is done: epochs of an export, bytes of an import."""


class Exported(Model):
    """What a finished export holds. `digest` is the head of the chain, which the import must reach."""

    workspace: str
    epoch: int
    digest: str
    records: int
    cycles: int
    sha256: str
    """Of all lines before the last: equal histories are equal files."""


async def export_to(
    graph: Graph, workspace: str, write: Callable[[bytes], object], *, progress: Progress | None = None
) -> Exported:
    """Write the history up to the latest epoch, a line at a time.

    Raises `unknown_item`; `invalid_record` where the workspace does not verify; `conflict` when something was erased
    meanwhile. What was written before is then no history: its last line is missing.
    """
    hashed = hashlib.sha256()

    def put(line: Mapping[str, Any]) -> None:
        raw = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
        hashed.update(raw)
        write(raw)

    found: dict[int, list[tuple[str, dict[str, Any]]]] = {}

    def visit(number: int, subject: str, act: str, row: Mapping[str, Any]) -> None:
        words = {name: row["stored"].get(name) for name in WORDS.get(act, ())}
        found.setdefault(number, []).append((subject, {"act": act, **_set(covered(act, row)), **_set(words)}))

    latest, begin = await graph.under_lock(lambda tx: pin(tx, workspace))
    walk = Walk(graph, workspace, latest["epoch"], PAGE, visit)
    try:
        walk.begin(begin)
        apart = {*KEPT_BESIDE, "revision"}
        policy = _set({name: value for name, value in begin["policy"].items() if name not in apart})
        put(
            {
                "tracegraph": "history",
                "format": FORMAT,
                "workspace": workspace,
                "owner": begin["owner"],
                "recorded_at": iso(begin["recorded_at"]),
                "policy": policy,
                "digest": begin["digest"],
                "epoch": walk.latest,
                "head": latest["previous"],
            }
        )
        while walk.at < walk.latest:
            for epoch in await walk.page():
                records = found.pop(epoch["number"], [])
                order = {id: at for at, id in enumerate(epoch["ids"])}
                records.sort(key=lambda one: (order.get(one[0].partition(" ")[2], len(order)), one[0]))
                put(
                    {
                        "batch": epoch["number"],
                        **{name: epoch[name] for name in ("batch_id", "author")},
                        "recorded_at": iso(epoch["recorded_at"]),
                        **{name: epoch[name] for name in ("request", "ids")},
                        "records": len(records),
                        "digest": epoch["digest"],
                    }
                )
                for _, record in records:
                    put(record)
            if progress is not None:
                progress(walk.at, walk.latest)
        await walk.end()
    except BreakError as error:
        at = f"epoch {error.found.epoch}" + (f", {error.found.record}" if error.found.record else "")
        raise TracegraphError(
            f"The workspace {workspace!r} is broken at {at}: {error.found.what}.",
            code="invalid_record",
            hint="A history that does not verify is not exported; see tracegraph verify, or restore a backup.",
        ) from None
    cycles = await _cycles(graph, workspace, walk.latest, put)
    kept = await _kept(graph, workspace, walk.latest, put)
    await _nothing_erased(graph, workspace, walk.latest)
    counts = {"epoch": walk.latest, "records": walk.records, "cycles": cycles}
    whole = hashed.hexdigest()
    put({"end": {**counts, "kept": kept}, "sha256": whole})
    return Exported(workspace=workspace, digest=latest["previous"], sha256=whole, **counts)


async def export(graph: Graph, workspace: str, file: Path, *, progress: Progress | None = None) -> Exported:
    """Write the history into a file, whole or not at all, that the user alone can read."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            done = await export_to(graph, workspace, stream.write, progress=progress)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    except OSError as error:
        raise TracegraphError(
            f"{file} cannot be written: {error.strerror}.", code="unavailable", hint="Choose another place."
        ) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return done


async def _cycles(graph: Graph, workspace: str, latest: int, put: Callable[[Mapping[str, Any]], None]) -> int:
    after, count = "", 0
    while True:

        async def page(tx: Tx, after: str = after) -> list[dict[str, Any]]:
            return await tx.rows("moving/cycles", workspace=workspace, after=after, latest=latest, limit=CYCLES)

        rows = await graph.read(page)
        for row in rows:
            view = row["view"]
            put(
                {
                    "cycle": _dated(row["cycle"], CYCLE_TIMES),
                    "departed": row["departed"],
                    "rejected": row["rejected"],
                    "view": None if view is None else _dated(view, VIEW_TIMES),
                    "admits": row["admits"],
                    "opened": [[principal, iso(at)] for principal, at in row["opened"]],
                }
            )
        count += len(rows)
        if len(rows) < CYCLES:
            return count
        after = rows[-1]["cycle"]["id"]


async def _kept(graph: Graph, workspace: str, latest: int, put: Callable[[Mapping[str, Any]], None]) -> int:
    after, count = "", 0
    while True:

        async def page(tx: Tx, after: str = after) -> list[dict[str, Any]]:
            return await tx.rows("moving/kept_items", workspace=workspace, after=after, latest=latest, limit=KEPT)

        rows = await graph.read(page)
        for row in rows:
            readings = [{"reading": _plain(one["reading"]), "topics": one["topics"]} for one in row["readings"]]
            scans = [_plain(one) for one in row["scans"]]
            put({"kept": "item", "item": row["item"], "readings": readings, "scans": scans})
        count += len(rows)
        if len(rows) < KEPT:
            break
        after = rows[-1]["item"]

    async def whole(tx: Tx) -> dict[str, Any] | None:
        return await tx.row("moving/kept_workspace", workspace=workspace)

    beside = await graph.read(whole) or {}
    if any(beside.values()):
        put({"kept": "workspace", **{name: [_plain(one) for one in found] for name, found in beside.items()}})
        count += 1
    return count


async def _nothing_erased(graph: Graph, workspace: str, latest: int) -> None:
    async def work(tx: Tx) -> bool:
        await tx.run("write/lock", workspace=workspace, batch={"ids": []})
        row = await tx.row("moving/erased", workspace=workspace, latest=latest)
        return row is not None and bool(row["erased"])

    if await graph.under_lock(work):
        raise TracegraphError(
            "Something was erased while the workspace was exported.", code="conflict", hint="Export it again."
        )


def _set(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set, by name: the graph keeps them in no order."""
    return {name: value for name, value in sorted(row.items()) if value is not None}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in _set(row).items() if name != "workspace"}


def _dated(row: Mapping[str, Any], times: tuple[str, ...]) -> dict[str, Any]:
    return {name: iso(value) if name in times else value for name, value in _plain(row).items()}
