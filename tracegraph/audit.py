"""What happened and why, read back from the graph with an auditor's eyes (DESIGN §12). Only reads.

Reasons are those recorded with a decision; the evidence beside them is what `cypher/audit/*.cypher` finds,
and the same files can be pasted into Neo4j Browser.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Literal

from tracegraph.admission import gates
from tracegraph.errors import TracegraphError
from tracegraph.explanation import render_why
from tracegraph.graph import Graph, Tx
from tracegraph.model import Kind, Model

__all__ = ["CycleReport", "Exposure", "Version", "Why", "cycle", "exposure", "history", "render_why", "why"]

Decision = Literal["admitted", "blocked", "reset", "refused"]


# --- cycle ------------------------------------------------------------------------------------------------


class CycleReport(Model):
    """One recorded return with every reason, those of items its caller may not read included."""

    cycle_id: str
    principal: str
    role: str
    task: str
    purpose: str | None
    decision: Literal["admitted", "blocked", "reset", "refused"]
    reason: str | None
    """Why it was refused."""
    preview: bool
    epoch: int
    valid_at: datetime
    coverage: float
    critical: float
    uncovered: tuple[str, ...]
    """Every required dependency that nothing selected supports."""
    pool: tuple[str, ...]
    admitted: tuple[str, ...]
    """By rank."""
    rejected: dict[str, tuple[str, ...]]
    """Pool item to its gate reasons; an item that passes every gate is not here."""
    selection: dict[str, tuple[str, ...]]


async def cycle(graph: Graph, workspace: str, cycle_id: str) -> CycleReport:
    """The return `cycle_id` as it was decided; `unknown_item` when there is none."""

    row = await _one(graph, "audit/cycle", workspace=workspace, cycle=cycle_id)
    if row is None:
        raise TracegraphError(f"There is no return cycle {cycle_id!r}.", code="unknown_item")
    selection = json.loads(row["selection"])
    return CycleReport(
        **{
            **row,
            "rejected": dict(sorted(row["rejected"])),
            "selection": {id: tuple(reasons) for id, reasons in selection.items()},
        }
    )


class Returned(Model):
    """One return in a list of them."""

    cycle_id: str
    principal: str
    role: str
    task: str
    decision: Literal["admitted", "blocked", "reset", "refused"]
    preview: bool
    at: datetime
    admitted: bool
    """Whether its view shows the item that was asked about."""
    reasons: tuple[str, ...]
    """Why that item was kept out."""


async def returns(graph: Graph, workspace: str, *, item: str | None, limit: int) -> tuple[Returned, ...]:
    """The latest returns, or those that had an item before them; the newest first."""
    rows = await _rows(graph, "audit/returns", workspace=workspace, item=item, limit=limit)
    return tuple(Returned(**row) for row in rows)


class Need(Model):
    """A dependency that an obligation requires; `covered` by what was selected. `supporters` are items of the pool."""

    dependency: str
    critical: bool
    covered: bool
    supporters: tuple[str, ...]


class Owed(Model):
    """One obligation of a return's pool."""

    obligation: str
    needs: tuple[Need, ...]
    frontiers: tuple[str, ...]


async def owed(graph: Graph, workspace: str, cycle_id: str) -> tuple[Owed, ...]:
    """What the return owed and what of its pool supports it; empty when it owed nothing."""
    rows = await _rows(graph, "audit/coverage", workspace=workspace, cycle=cycle_id)
    return tuple(Owed(**row) for row in rows)


# --- why --------------------------------------------------------------------------------------------------


class Subject(Model):
    """The item a question is about. `content` is None once erased."""

    id: str
    key: str
    kind: Kind
    scope: str
    content: str | None
    task: str | None
    role: str | None
    purposes: tuple[str, ...]
    author: str
    length: int
    valid_from: datetime
    valid_to: datetime | None
    epoch: int
    recorded_at: datetime


class Return(Model):
    """The return a question is about, with its clocks."""

    id: str
    principal: str
    role: str
    task: str
    purpose: str | None
    decision: Decision
    reason: str | None
    preview: bool
    coverage: float
    critical: float
    uncovered: tuple[str, ...]
    valid_at: datetime
    epoch: int
    authorized_at: datetime
    authorized_epoch: int


class Gate(Model):
    """One gate's recorded outcome."""

    gate: str
    passed: bool
    reasons: tuple[str, ...]


class Permission(Model):
    """What the role may do with the item's scope, at the moment of the return."""

    role: str
    scope: str
    granted: bool
    denied: bool
    denials: tuple[str, ...]
    """Ids of the denials in force."""
    lapsed: tuple[str, ...]
    """Ids of grants that were over, withdrawn, or not yet begun."""


class Unreadable(Model):
    """A source the role may not read. `path` leads to it along DERIVED_FROM."""

    path: tuple[str, ...]
    scope: str
    reasons: tuple[str, ...]


class Superseding(Model):
    """What took the item's place: the current `version`, a `correction` of the past, or what `named` it."""

    id: str
    how: Literal["version", "correction", "named"]
    key: str
    scope: str
    content: str | None
    author: str
    valid_from: datetime
    epoch: int


class Revoked(Model):
    id: str
    code: Literal["revoked", "resolved"]
    reason: str
    author: str
    effective_from: datetime
    epoch: int


class Retracted(Model):
    epoch: int
    at: datetime
    by: str


class Erased(Model):
    """`target` is the item whose erasure took this one along."""

    epoch: int
    at: datetime
    by: str
    target: str
    reason: str


class Answer(Model):
    """What answered a verdict: a restoration, or a later judgment of the same pair."""

    id: str
    says: str
    later: str
    content: str | None
    quote: str | None
    rationale: str | None
    confidence: float | None
    author: str
    epoch: int


class Judged(Model):
    """A verdict on the item, as the edge from the `later` item says. One with `answers` no longer counts."""

    id: str
    says: Literal["INVALIDATES", "PROPOSED", "UNVERIFIED"]
    later: str
    key: str
    content: str | None
    supersedes: tuple[str, ...]
    quote: str | None
    rationale: str | None
    confidence: float | None
    model: str | None
    prompt: str | None
    tokens: int | None
    cause: str | None
    task: str | None
    author: str
    effective_from: datetime
    epoch: int
    answers: tuple[Answer, ...]


class Refreshed(Model):
    id: str
    content: str | None


class Cause(Model):
    """What ended a premise: `id` is the later item or the revocation, `content` its words or reason."""

    reason: str
    id: str | None
    content: str | None
    quote: str | None
    author: str


class BrokenPremise(Model):
    """A premise that fails. `path` leads to it; a version that holds a premise's place follows it."""

    path: tuple[str, ...]
    premise: str
    content: str | None
    reasons: tuple[str, ...]
    refreshed: Refreshed | None
    """The premise's current version, when its words are others."""
    by: tuple[Cause, ...]


class Compared(Model):
    """A plain comparison: what the return wanted or allowed, and what the item has."""

    reason: str
    wanted: str | None
    got: str | None


class BoundReceipt(Model):
    """`claimed` is the digest in the item's binding, `sha256` the receipt's own."""

    id: str
    uri: str
    issuer: str | None
    origin: str | None
    sha256: str
    claimed: str
    mismatch: bool
    retracted: bool
    revocations: tuple[Revoked, ...]


class Unbound(Model):
    dependency: str
    receipt: str | None
    problem: Literal["no_receipt", "not_bound", "receipt_dead"]


class Why(Model):
    """Why an item came out of a return as it did; `render_why` says it in words."""

    item: Subject
    cycle: Return
    outcome: Literal["admitted", "rejected", "left_out", "eligible", "outside_pool", "not_judged"]
    """`left_out` of an admitted view; `eligible` where nothing was released; `not_judged` when refused."""
    admitted_for: Literal["obligation", "frontier", "cover", "fill"] | None
    rank: int | None
    view: str | None
    """The Return View that shows it; None in a preview."""
    gates: tuple[Gate, ...]
    """As recorded; empty outside the pool."""
    outside: tuple[str, ...]
    """Why it was not in the pool: `wrong_task`, `recorded_later`, or the rules 1 to 4 it broke."""
    selection: tuple[str, ...]
    permission: Permission
    sources: tuple[Unreadable, ...]
    superseded_by: tuple[Superseding, ...]
    revocations: tuple[Revoked, ...]
    retraction: Retracted | None
    erasure: Erased | None
    verdicts: tuple[Judged, ...]
    premises: tuple[BrokenPremise, ...]
    circle: tuple[str, ...]
    """Premises that rest on each other."""
    compared: tuple[Compared, ...]
    receipts: tuple[BoundReceipt, ...]
    unbound: tuple[Unbound, ...]
    unproven: tuple[tuple[str, ...], ...]
    """Paths along DERIVED_FROM to sources without valid receipts."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every recorded gate reason."""
        return tuple(reason for gate in self.gates for reason in gate.reasons)


async def why(graph: Graph, workspace: str, item: str, cycle_id: str) -> Why:
    """The answer of `cypher/audit/why.cypher`; `unknown_item` when there is no such cycle or item."""
    row = await _one(graph, "audit/why", workspace=workspace, cycle=cycle_id, item=item)
    if row is None:
        raise TracegraphError(f"There is no return cycle {cycle_id!r} or no item {item!r}.", code="unknown_item")
    return Why(**{**row, "circle": row["circle"][0] if row["circle"] else ()})


# --- history ----------------------------------------------------------------------------------------------


class Successor(Model):
    id: str
    how: Literal["version", "correction", "named"]
    epoch: int
    valid_from: datetime
    valid_to: datetime | None


class Ended(Revoked):
    withdrawn_epoch: int | None


class Version(Model):
    """One version of an identity on both clocks. A `correction` of the past replaces only its own period."""

    scope: str
    kind: Kind
    key: str
    id: str
    content: str | None
    task: str | None
    author: str
    correction: bool
    valid_from: datetime
    valid_to: datetime | None
    epoch: int
    recorded_at: datetime
    superseded_by: tuple[Successor, ...]
    revocations: tuple[Ended, ...]
    retraction: Retracted | None
    erasure: Erased | None


async def history(
    graph: Graph, workspace: str, key: str, *, scope: str | None = None, kind: str | None = None
) -> tuple[Version, ...]:
    """Every version of every identity with this key, in its order; empty when there is none."""
    rows = await _rows(graph, "audit/history", workspace=workspace, key=key, scope=scope, kind=kind)
    return tuple(Version(**row) for row in rows)


# --- exposure ---------------------------------------------------------------------------------------------


class Opened(Model):
    principal: str
    at: datetime


class Shown(Model):
    """One Return View that admitted the item. `ended` says why it stands no longer for that task."""

    view: str
    cycle: str
    principal: str
    role: str
    task: str
    purpose: str | None
    workload: str | None
    why: Literal["obligation", "frontier", "cover", "fill"]
    rank: int
    epoch: int
    issued_at: datetime
    expires_at: datetime
    opened: tuple[Opened, ...]
    ended: tuple[str, ...]


class Happened(Model):
    """What happened to the item, or to a premise at the end of `path`. `task` limits a verdict."""

    path: tuple[str, ...]
    reason: str
    by: str | None
    words: str | None
    task: str | None
    at: datetime


class Exposed(Model):
    id: str
    key: str
    scope: str
    kind: Kind
    content: str | None
    task: str | None


class Exposure(Model):
    """Who was shown an item, and what has happened since; whether that ended it, each view's `ended` says."""

    item: Exposed
    views: tuple[Shown, ...]
    since: tuple[Happened, ...]


async def exposure(graph: Graph, workspace: str, item: str, *, latest: int, now: int) -> Exposure:
    """Every view that admitted the item, and whether it stands at this moment; else `unknown_item`."""

    async def work(tx: Tx) -> tuple[dict[str, Any] | None, dict[str, tuple[str, ...]]]:
        row = await tx.row("audit/exposure", workspace=workspace, item=item, now=now)
        ended: dict[str, tuple[str, ...]] = {}
        for task in sorted({view["task"] for view in row["views"]}) if row else ():
            clocks = gates.Clocks(valid_at=now, epoch=latest, now=now, latest=latest)
            found = await gates.judge(tx, workspace, [item], gates.Return(role=None, task=task), clocks)
            ended[task] = tuple(sorted(found[item].reasons & gates.STANDING))
        return row, ended

    row, ended = await graph.read(work)
    if row is None:
        raise TracegraphError(f"There is no item {item!r}.", code="unknown_item")
    plain = _plain(row)
    return Exposure(**{**plain, "views": tuple({**view, "ended": ended[view["task"]]} for view in plain["views"])})


# --- rows -------------------------------------------------------------------------------------------------


async def _rows(graph: Graph, name: str, **parameters: Any) -> list[dict[str, Any]]:
    async def work(tx: Tx) -> list[dict[str, Any]]:
        return await tx.rows(name, **parameters)

    return [_plain(row) for row in await graph.read(work)]


async def _one(graph: Graph, name: str, **parameters: Any) -> dict[str, Any] | None:
    rows = await _rows(graph, name, **parameters)
    return rows[0] if rows else None


def _plain(value: Any) -> Any:
    """A row with the driver's times as UTC datetimes and its lists as tuples."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(_plain(one) for one in value)
    if hasattr(value, "to_native"):
        return value.to_native().astimezone(UTC)
    return value
