"""How batches reach the graph: each is one epoch, and those that wait for the lock together share a transaction.

Takes acts, returns `Committed`. `acts.py` says what a batch needs and lays out; here it gets its turn, its epoch, its
place in the digest chain, and is written whole (DESIGN §5). Never decides what an agent may act on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import anyio

from tracegraph import telemetry
from tracegraph.acts import Check, Moment, References, Rows, epoch_digest, fail, references, resolve
from tracegraph.errors import TracegraphError
from tracegraph.graph import SEND_AGAIN, Graph, Patience, Tx, server_faults
from tracegraph.model import Act, Committed, Item, Limits, Policy, digest, instant, new_id

TOGETHER = 64
"""How many batches share a transaction at most."""
RECORDS_TOGETHER = 1_000
"""How many records they hold at most; a larger batch has a transaction of its own."""
RECORD = ("items", "receipts", "bindings", "premises", "sources", "supports", "replaced", "requires", "frontiers")
"""The rows that `write/record` takes, each with its epoch."""


async def commit(
    graph: Graph,
    workspace: str,
    acts: Sequence[Act],
    *,
    author: str | None,
    now: int,
    batch_id: str | None = None,
    authors: Sequence[str | None] | None = None,
) -> Committed:
    """Write one batch. `author` None is the owner. Raises what DESIGN §5 lists; then nothing is written.

    `authors`, one an item, is for a batch of items by several (None is `author`): each needs its own author's
    permission and names it; the epoch names `author`.
    """
    committed, _ = await written(graph, workspace, acts, author=author, now=now, batch_id=batch_id, authors=authors)
    return committed


async def written(
    graph: Graph,
    workspace: str,
    acts: Sequence[Act],
    *,
    author: str | None,
    now: int,
    batch_id: str | None = None,
    authors: Sequence[str | None] | None = None,
) -> tuple[Committed, Rows]:
    """`commit`, and what it laid out; of a batch that had been committed before, no rows."""
    if not acts:
        fail("invalid_record", "The batch is empty.")
    if len(acts) > Limits.batch:
        fail("limit_exceeded", f"The batch holds {len(acts)} records; at most {Limits.batch} are taken.")
    if batch_id is not None and not 1 <= len(batch_id) <= Limits.id:
        fail("limit_exceeded", f"A batch_id has 1 to {Limits.id} characters.")
    asked: dict[str, Any] = {
        "acts": [[type(act).__name__, act.model_dump(mode="json", exclude_unset=True)] for act in acts]
    }
    if authors is not None:
        if len(authors) != len(acts) or not all(isinstance(act, Item) for act in acts):
            fail("invalid_record", "Authors of their own are for items, one each.")
        asked["authors"] = list(authors)
    batch = Batch(
        id=batch_id or new_id("batch"),
        acts=acts,
        author=author,
        authors=authors or [None] * len(acts),
        now=now,
        request=digest(asked),
        ids=references(acts),
        patience=Patience(graph.patience),
    )
    committed = await graph.line(workspace).commit(graph, workspace, batch)
    return committed, batch.rows or Rows()


@dataclass(eq=False)
class Batch:
    """One call's acts, while they wait for the lock."""

    id: str
    acts: Sequence[Act]
    author: str | None
    authors: Sequence[str | None]
    """One an act; None is `author`."""
    now: int
    request: str
    ids: References
    patience: Patience
    """How long it waits in line for the server to answer those before it."""
    outcome: Committed | Exception | None = None
    rows: Rows | None = None
    """What was written in a transaction of this call, whose commit may have been lost sight of."""

    def by(self, owner: str) -> str:
        return owner if self.author is None else self.author

    def each(self, owner: str) -> list[str]:
        return [self.by(owner) if one is None else one for one in self.authors]


class Line:
    """The batches of one workspace that wait in this process: the first in line writes the ones behind it too.

    Each keeps its own epoch, author, checks and outcome; what they share is the lock, the round trips and the commit.
    A batch waits in line for as long as the server answers those before it: after the connection's patience without an
    answer it is given up, so that a dead server is not waited for by each in turn.
    """

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._waiting: deque[Batch] = deque()

    async def commit(self, graph: Graph, workspace: str, batch: Batch) -> Committed:
        self._waiting.append(batch)
        try:
            with server_faults(SEND_AGAIN), batch.patience.waiting():
                await self._turn.acquire()
            try:
                if batch.outcome is None:  # it is the first in line: the turn is given in order
                    await self._write(graph, workspace)
            finally:
                self._turn.release()
        finally:
            if batch.outcome is None:
                self._waiting.remove(batch)
        if isinstance(batch.outcome, Committed):
            return batch.outcome
        assert batch.outcome is not None
        raise batch.outcome

    async def _write(self, graph: Graph, workspace: str) -> None:
        group = self._group()

        async def work(tx: Tx) -> list[Committed | TracegraphError]:
            return await _write(tx, workspace, group)

        outcomes: Sequence[Committed | Exception]
        try:
            outcomes = await graph.write(work, again=True, tell=self._moves)
        except Exception as fault:
            outcomes = [fault] * len(group)
        for one, outcome in zip(group, outcomes, strict=True):
            one.outcome = outcome
            if one in self._waiting:  # else its caller gave up meanwhile
                self._waiting.remove(one)
            if isinstance(outcome, Exception):
                telemetry.refused(workspace, outcome)
            elif not outcome.repeated:
                telemetry.wrote(workspace, len(one.acts), outcome.epoch)

    def _moves(self) -> None:
        for one in self._waiting:
            one.patience.renew()

    def _group(self) -> list[Batch]:
        """The first in line, and those behind it that only record items and neither give nor name its ids."""
        group = [self._waiting[0]]
        records = len(group[0].acts)
        given, known, names = group[0].ids.given(), group[0].ids.every(), {group[0].id}
        for one in islice(self._waiting, 1, TOGETHER):
            records += len(one.acts)
            apart = given & one.ids.every() or known & one.ids.given() or one.id in names
            if apart or records > RECORDS_TOGETHER or not _only_items(group[0]) or not _only_items(one):
                break
            group.append(one)
            given |= one.ids.given()
            known |= one.ids.every()
            names.add(one.id)
        return group


def _only_items(batch: Batch) -> bool:
    return all(isinstance(act, Item) for act in batch.acts)


async def _write(tx: Tx, workspace: str, group: Sequence[Batch]) -> list[Committed | TracegraphError]:
    """Write these batches under one lock, an epoch each; one that is refused takes none."""
    locked = await lock(tx, workspace, [batch.id for batch in group])
    owner = str(locked["owner"])
    done = {row["batch_id"]: row for row in locked["done"]}
    moment = Moment(
        workspace=workspace,
        owner=owner,
        epoch=locked["epoch"] + 1,
        now=max(*(batch.now for batch in group), locked["recorded_at"] or locked["created_at"]),
        previous=locked["previous"],
        policy=stored_policy(locked["policy"]),
        revision=locked["policy"]["revision"],
    )
    new = [batch for batch in group if batch.id not in done]
    found: dict[str, Any] = {}
    if new:
        authors = {author for batch in new for author in batch.each(owner)}
        acts = [act for batch in new for act in batch.acts]
        found = await resolve(tx, moment, authors, acts, [batch.ids for batch in new])
    outcomes: list[Committed | TracegraphError] = []
    parts: list[Part] = []
    for batch in group:
        by = batch.by(owner)
        try:
            if (before := done.get(batch.id)) is not None:
                if before["request"] != batch.request or before["author"] != by:
                    number = before["number"]
                    fail("conflict", f"The batch_id {batch.id!r} was used at epoch {number} for another batch.")
                outcomes.append(_committed(workspace, before, batch.rows))
                continue
            batch.rows = await Check(tx, moment, batch.each(owner), batch.acts, batch.ids, found).rows()
        except TracegraphError as refusal:
            outcomes.append(refusal)
            continue
        epoch = _epoch(batch, by, moment, batch.rows)
        parts.append(Part(moment, by, batch.rows, epoch))
        outcomes.append(_committed(workspace, epoch, batch.rows))
        moment = replace(moment, epoch=moment.epoch + 1, previous=epoch["digest"])
    if parts:
        await write_parts(tx, workspace, parts)
    return outcomes


def _epoch(batch: Batch, by: str, moment: Moment, rows: Rows) -> dict[str, Any]:
    """The batch's entry in the digest chain."""
    records = sorted(rows.records)
    epoch = {
        "number": moment.epoch,
        "batch_id": batch.id,
        "author": by,
        "recorded_at": moment.now,
        "previous": moment.previous,
        "records": [found for found, _ in records],
    }
    return epoch | {
        "digest": epoch_digest(moment.workspace, epoch),
        "subjects": [subject for _, subject in records],
        "request": batch.request,
        "ids": rows.ids,
    }


async def lock(tx: Tx, workspace: str, batch_ids: Sequence[str] = ()) -> dict[str, Any]:
    """Take the workspace's write lock; `unknown_item` when there is no such workspace."""
    locked = await tx.row("write/lock", workspace=workspace, batch={"ids": list(batch_ids)})
    if locked is None:
        fail("unknown_item", f"There is no workspace {workspace!r}.")
    return locked


def stored_policy(properties: dict[str, Any]) -> Policy:
    """The policy in a Policy node's properties."""
    return Policy(**{name: properties[name] for name in Policy.model_fields if name in properties})


def _committed(workspace: str, epoch: dict[str, Any], rows: Rows | None) -> Committed:
    """`rows`: what was written now; None when it had been committed before."""
    recorded_at = instant(epoch["recorded_at"])
    assert recorded_at is not None
    return Committed(
        workspace=workspace,
        epoch=epoch["number"],
        batch_id=epoch["batch_id"],
        author=epoch["author"],
        recorded_at=recorded_at,
        digest=epoch["digest"],
        ids=tuple(epoch["ids"]),
        repeated=rows is None,
        uncertain=rows.uncertain if rows else {},
    )


@dataclass
class Part:
    """One checked batch on its way into the graph."""

    moment: Moment
    author: str
    rows: Rows
    epoch: dict[str, Any]


async def write_parts(tx: Tx, workspace: str, parts: Sequence[Part]) -> None:
    """Write what checked batches laid out, and close their epochs."""
    batch = {
        name: [{**row, "epoch": part.moment.epoch} for part in parts for row in getattr(part.rows, name)]
        for name in RECORD
    }
    if batch["items"]:
        await tx.run("write/record", workspace=workspace, recorded_at=parts[0].moment.now, batch=batch)
    for part in parts:
        await _write_acts(tx, part)
    await tx.run("write/epochs", workspace=workspace, batch={"epochs": [part.epoch for part in parts]})


async def _write_acts(tx: Tx, part: Part) -> None:
    """Write what is not an item; of a batch of items alone, nothing."""
    rows, moment = part.rows, part.moment
    at: dict[str, Any] = {"workspace": moment.workspace, "epoch": moment.epoch}
    recorded: dict[str, Any] = {**at, "recorded_at": moment.now}
    signed: dict[str, Any] = {**at, "author": part.author}
    if rows.revocations:
        await tx.run("write/revoke", **recorded, author=part.author, revocations=rows.revocations)
    if rows.retracted_items or rows.retracted_receipts:
        await tx.run("write/retract", **signed, items=rows.retracted_items, receipts=rows.retracted_receipts)
    if rows.withdrawn:
        await tx.run("write/withdraw", **signed, ids=rows.withdrawn)
    if rows.held or rows.scoped:
        await tx.run("write/grant", **signed, held=rows.held, scoped=rows.scoped)
    if rows.verdicts:
        await tx.run("write/verdict", **recorded, author=part.author, verdicts=rows.verdicts)
    if rows.experiences:
        await tx.run("write/remember", **recorded, experiences=rows.experiences)
    if rows.policies:
        await tx.run("write/policy", **signed, policies=rows.policies)
    if rows.checkpoints:
        await tx.run("write/checkpoint", **recorded, checkpoints=rows.checkpoints)
    for erasure in rows.erasures:
        await tx.run("write/erase", **signed, erasure=erasure)
