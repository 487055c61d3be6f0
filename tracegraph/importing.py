"""A history file rebuilt as a workspace: same epochs, digests, ids, times and decisions (see `tracegraph.exporting`).

The whole file is read and every digest recomputed before anything is written; then its batches are written in order,
as they were laid out, several to a transaction. Who might write what was checked when each batch was recorded, and is
not asked again: whoever may import may write the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracegraph.acts import EDGE_OF, Moment, Rows
from tracegraph.chain import verify
from tracegraph.errors import TracegraphError
from tracegraph.exporting import CYCLE_TIMES, VIEW_TIMES, Progress
from tracegraph.graph import Graph, Tx
from tracegraph.model import OPEN, Model
from tracegraph.records import Batch, Beside, CycleLine, Header, History, KeptItem, KeptWorkspace, stored
from tracegraph.write import Part, lock, stored_policy, write_parts

TOGETHER, RECORDS_TOGETHER = 50, 500
"""Batches of one transaction, and their records unless one batch holds more."""


class Imported(Model):
    """A finished import. `batches` and `cycles` were written now; what was there before was left as it is."""

    workspace: str
    epoch: int
    """The workspace's last; above the file's when the workspace had gone on from it."""
    digest: str
    """The head of the chain."""
    batches: int
    cycles: int


async def import_from(graph: Graph, file: Path, *, progress: Progress | None = None) -> Imported:
    """Rebuild the workspace of a history file, or finish what an interrupted import began.

    Raises `invalid_record` for a file that is cut short, changed or no history, and `conflict` when the workspace is
    there with another history; then nothing was written.
    """
    size = 2 * max(1, _size(file))

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, size)

    header = next(iter(History(file)))
    assert isinstance(header, Header)

    async def standing(tx: Tx) -> dict[str, Any] | None:
        return await tx.row("moving/standing", workspace=header.workspace, epoch=header.epoch)

    there = await graph.read(standing)
    _check(file, header, there, tell)
    await _begin(graph, header)
    batches = cycles = 0
    for part in _together(History(file), tell, size // 2):
        with _made_up(file):
            if isinstance(part[0], Batch):
                batches += await _write(graph, header.workspace, [one for one in part if isinstance(one, Batch)])
            elif isinstance(part[0], CycleLine):
                lines = [one for one in part if isinstance(one, CycleLine)]
                cycles += await _write_cycles(graph, header.workspace, lines)
            else:
                await _keep(graph, header.workspace, [one for one in part if isinstance(one, KeptItem | KeptWorkspace)])
    found = await verify(graph, header.workspace)
    if not found.intact or found.digest is None or (found.epoch == header.epoch and found.digest != header.head):
        raise TracegraphError(
            f"The workspace {header.workspace!r} does not verify after the import.",
            code="conflict",
            hint="Something else wrote to it meanwhile; see tracegraph verify.",
        )
    tell(size)
    return Imported(workspace=header.workspace, epoch=found.epoch, digest=found.digest, batches=batches, cycles=cycles)


@contextmanager
def _made_up(file: Path) -> Iterator[None]:
    """A file whose digests are right, but which no tracegraph wrote: an id given twice, a return without one."""
    from neo4j.exceptions import ClientError

    try:
        yield
    except (ClientError, KeyError, TypeError, ValueError) as error:
        name = error.code if isinstance(error, ClientError) else type(error).__name__
        raise TracegraphError(
            f"{file.name} holds what no workspace can hold ({name}).",
            code="invalid_record",
            hint="It was written so far; delete the workspace it began.",
        ) from None


def _check(file: Path, header: Header, there: Mapping[str, Any] | None, tell: Callable[[int], None]) -> None:
    """Read the whole file once; `conflict` when the workspace that is there has another history."""
    other = TracegraphError(
        f"The workspace {header.workspace!r} is there, with another history.",
        code="conflict",
        hint="Import into another database, or delete that workspace first; nothing was written.",
    )
    if there is not None and (there["owner"] != header.owner or there["digest"] != header.digest):
        raise other
    history = History(file)
    for part in history:
        if isinstance(part, Batch):
            same = there is None or part.number != there["number"] or part.epoch["digest"] == there["reached"]
            if not same:
                raise other
        tell(history.at)


def _together(history: History, tell: Callable[[int], None], read: int) -> Iterator[list[Batch | Beside]]:
    """Parts that are written in one transaction, all of one kind."""
    held: list[Batch | Beside] = []
    records = 0
    for part in history:
        if isinstance(part, Header):
            continue
        more = len(part.records) if isinstance(part, Batch) else 1
        full = len(held) == TOGETHER or (records + more > RECORDS_TOGETHER)
        if held and (full or type(part) is not type(held[0])):
            yield held
            tell(read + history.at)
            held, records = [], 0
        held.append(part)
        records += more
    if held:
        yield held


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise TracegraphError(
            f"{file} cannot be read: {error.strerror}.", code="unavailable", hint="Check the name."
        ) from None


def _end(record: Mapping[str, Any]) -> int:
    return stored(record["valid_to"]) if "valid_to" in record else OPEN


# --- writing ----------------------------------------------------------------------------------------------


async def _begin(graph: Graph, header: Header) -> None:
    async def work(tx: Tx) -> None:
        row = await tx.row(
            "write/create_workspace",
            workspace=header.workspace,
            owner=header.owner,
            policy=header.policy,
            recorded_at=stored(header.recorded_at),
            digest=header.digest,
        )
        if row is None or row["owner"] != header.owner:
            raise TracegraphError(f"The workspace {header.workspace!r} belongs to another owner.", code="conflict")

    await graph.write(work, again=True)


async def _write(graph: Graph, workspace: str, batches: Sequence[Batch]) -> int:
    """Write these batches, save those that are there; gives how many were written."""

    async def work(tx: Tx) -> int:
        locked = await lock(tx, workspace)
        at, previous, written = locked["epoch"], locked["previous"], 0
        for batch in batches:
            if batch.number <= at:
                continue
            if batch.number != at + 1 or batch.previous != previous:
                raise TracegraphError(
                    f"The workspace {workspace!r} was written to while it was imported.", code="conflict"
                )
            moment = Moment(
                workspace=workspace,
                owner=locked["owner"],
                epoch=batch.number,
                now=batch.epoch["recorded_at"],
                previous=previous,
                policy=stored_policy(locked["policy"]),
                revision=locked["policy"]["revision"],
            )
            rows = rows_of(batch.records, await _items(tx, workspace, batch.records))
            await write_parts(tx, workspace, [Part(moment, batch.epoch["author"], rows, batch.epoch)])
            at, previous, written = batch.number, batch.epoch["digest"], written + 1
        return written

    return await graph.write(work, again=True)


async def _items(tx: Tx, workspace: str, records: Sequence[Mapping[str, Any]]) -> set[str]:
    """Which targets of these records' retractions are items; the others are receipts."""
    targets = [record["target"] for record in records if record["act"] == "retract"]
    if not targets:
        return set()
    row = await tx.row(
        "write/resolve",
        workspace=workspace,
        now=0,
        batch={
            "authors": [],
            "items": targets,
            "receipts": [],
            "experiences": [],
            "withdrawals": [],
            "quoted": [],
        },
    )
    assert row is not None
    return {one["id"] for one in row["items"]} | {record["id"] for record in records if record["act"] == "item"}


def rows_of(records: Sequence[Mapping[str, Any]], items: set[str]) -> Rows:
    """What the records of one batch write, as `write.Check` laid it out. `items`: the targets that are items."""
    out = Rows()
    for record in sorted(records, key=lambda one: one.get("place", 0)):
        _RECORD[record["act"]](out, record, items)
    return out


def _only(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: record.get(name) for name in names}


def _item(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    id = record["id"]
    links = ("receipts", "depends_on", "derived_from", "supersedes", "supports", "requires", "obligation")
    own = {name: value for name, value in record.items() if name not in (*links, "act")}
    out.items.append({**own, "valid_from": stored(record["valid_from"]), "valid_to": _end(record)})
    found = {name: record.get(name, ()) for name in links}
    out.bindings += [{"item": id, "receipt": receipt, "sha256": claimed} for receipt, claimed in found["receipts"]]
    out.premises += [{"item": id, "target": target} for target in found["depends_on"]]
    out.sources += [{"item": id, "target": target} for target in found["derived_from"]]
    out.replaced += [{"item": id, "target": target} for target in found["supersedes"]]
    out.supports += [
        {"item": id, "dependency": name, "receipt": receipt or None} for name, receipt in found["supports"]
    ]
    out.requires += [{"item": id, "dependency": name, "critical": critical} for name, critical in found["requires"]]
    if found["obligation"]:
        out.frontiers.append({"item": id, "obligation": found["obligation"]})


def _receipt(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    observed = record.get("observed_at")
    own = {name: value for name, value in record.items() if name != "act"}
    out.receipts.append({**own, "observed_at": None if observed is None else stored(observed)})


def _revoke(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    own = _only(record, "id", "target", "code", "reason", "digest")
    out.revocations.append({**own, "effective_from": stored(record["effective_from"])})


def _retract(out: Rows, record: Mapping[str, Any], items: set[str]) -> None:
    (out.retracted_items if record["target"] in items else out.retracted_receipts).append(record["target"])


def _withdraw(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    out.withdrawn.append(record["target"])


def _grant(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    edge = {**_only(record, "id", "digest"), "valid_from": stored(record["valid_from"]), "valid_to": _end(record)}
    role = record["role"]
    if "principal" in record:
        out.held.append({"principal": record["principal"], "role": role, "edge": edge})
    verb = "DENIED" if record["act"] == "deny" else "MAY"
    for scopes, access in ((record["read"], "READ"), (record["write"], "WRITE")):
        out.scoped += [{"role": role, "scope": scope, "type": f"{verb}_{access}", "edge": edge} for scope in scopes]


def _verdict(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    ends = ("act", "later", "earlier", "says", "effective_from")
    given = None if "effective_from" not in record else stored(record["effective_from"])
    edge = {**{name: value for name, value in record.items() if name not in ends}, "effective_given": given}
    row = {**_only(record, "later", "earlier"), "type": EDGE_OF[record["says"]]}
    out.verdicts.append({**row, "effective_from": given, "edge": edge})


def _remember(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    names = ("id", "owner", "content", "content_digest", "digest", "grounded_in")
    out.experiences.append(_only(record, *names))


def _policy(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    out.policies.append({name: value for name, value in record.items() if name != "act"})


def _depart(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    own = {name: value for name, value in record.items() if name != "act"}
    out.checkpoints.append({**own, **{name: stored(record[name]) for name in ("valid_at", "expires_at")}})


def _erase(out: Rows, record: Mapping[str, Any], _: set[str]) -> None:
    out.erasures.append(_only(record, "target", "reason", "erased", "digest"))


_RECORD = {
    "item": _item,
    "receipt": _receipt,
    "revoke": _revoke,
    "retract": _retract,
    "withdraw": _withdraw,
    "grant": _grant,
    "deny": _grant,
    "verdict": _verdict,
    "remember": _remember,
    "policy": _policy,
    "depart": _depart,
    "erase": _erase,
}
"""Each act's part of a batch."""


async def _write_cycles(graph: Graph, workspace: str, lines: Sequence[CycleLine]) -> int:
    """Write these returns, save those that are there; gives how many were written."""

    async def work(tx: Tx) -> int:
        await lock(tx, workspace)
        row = await tx.row("moving/known", workspace=workspace, ids=[line.cycle["id"] for line in lines])
        known = set(row["ids"]) if row else set()
        fresh = [line for line in lines if line.cycle["id"] not in known]
        for line in fresh:
            await tx.run(
                "admission/record",
                workspace=workspace,
                cycle=_undated(line.cycle, CYCLE_TIMES),
                checkpoint=line.departed,
                rejected=[
                    {"id": id, "gates": gates, "reasons": reasons, "detail": detail}
                    for id, gates, reasons, detail in line.rejected
                ],
                view=None if line.view is None else _undated(line.view, VIEW_TIMES),
                admits=[{"id": id, "why": why, "rank": rank} for id, why, rank in line.admits],
            )
        opened = [
            {"jti": line.view["jti"], "principal": principal, "at": stored(at)}
            for line in lines
            if line.view is not None
            for principal, at in line.opened
        ]
        if opened:
            await tx.run("moving/opened", workspace=workspace, opened=opened)
        return len(fresh)

    return await graph.write(work, again=True)


async def _keep(graph: Graph, workspace: str, lines: Sequence[KeptItem | KeptWorkspace]) -> None:
    async def work(tx: Tx) -> None:
        items = [line.model_dump(exclude={"kept"}) for line in lines if isinstance(line, KeptItem)]
        if items:
            await tx.run("moving/keep_items", workspace=workspace, items=items)
        for line in lines:
            if isinstance(line, KeptWorkspace):
                await tx.run("moving/keep_workspace", workspace=workspace, **line.model_dump(exclude={"kept"}))

    await graph.write(work, again=True)


def _undated(row: Mapping[str, Any], times: tuple[str, ...]) -> dict[str, Any]:
    return {name: stored(str(value)) if name in times else value for name, value in row.items()}
