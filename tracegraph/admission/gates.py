"""The four gates: what speaks against each item, decided in Cypher and carried along premises and sources.

`cypher/admission/gates.cypher` gives each item's reasons on its own evidence. What follows from other items' answers
(paper §3.3; DESIGN §3.1 rule 6, §7) is carried here level by level, one query a level, over distinct items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from tracegraph.graph import Tx
from tracegraph.model import PREMISE_DEPTH, Policy

GATES: dict[str, tuple[str, ...]] = {
    "authorization": ("scope_not_granted", "denied", "source_not_readable"),
    "temporal": (
        "not_yet_valid",
        "expired",
        "superseded",
        "revoked",
        "resolved",
        "retracted",
        "invalidated",
        "premise_invalid",
        "erased",
        "unverified",
    ),
    "applicability": ("wrong_task", "wrong_purpose", "kind_not_allowed", "wrong_role"),
    "provenance": ("missing_receipt", "receipt_mismatch", "receipt_revoked", "unbound_support"),
    "size": ("over_item_budget",),
}
GATE_OF = {reason: gate for gate, reasons in GATES.items() for reason in reasons}
AUTHORIZATION = frozenset(GATES["authorization"])
STANDING = frozenset(GATES["temporal"]) - {"unverified"}
"""Reasons for which an item doesn't stand (§3.1)."""
OPEN_RULES = frozenset({"not_yet_valid", "expired", "superseded", "revoked", "resolved", "retracted"})
"""Reasons that break rules 1 to 4 of §3.1."""
PROVENANCE = frozenset(GATES["provenance"])


@dataclass(frozen=True)
class Clocks:
    """The two clocks of a decision, and the clocks of authorization (microseconds, epochs)."""

    valid_at: int
    epoch: int
    now: int
    latest: int


@dataclass(frozen=True)
class Return:
    """Who returns, as what, what for, under which policy."""

    role: str | None
    task: str | None
    purpose: str | None = None
    policy: Policy = field(default_factory=Policy)


@dataclass
class Judged:
    """One item after the gates; the fields are in the order of the query's rows."""

    id: str
    reasons: set[str]
    current: str | None
    """The current version of its identity."""
    content_digest: str
    premises: list[str]
    sources: list[str]
    kind: str
    length: int
    valid_from: int
    epoch: int
    place: int
    task: str | None
    receipts: int
    supports: list[str]
    requires: list[tuple[str, bool]]
    obligation: str | None

    def stands(self) -> bool:
        """Rules 1 to 6 of §3.1."""
        return not self.reasons & STANDING

    def readable(self) -> bool:
        """Whether it passes the whole authorization gate."""
        return not self.reasons & AUTHORIZATION

    def eligible(self) -> bool:
        """Whether it passes every gate."""
        return not self.reasons


async def judge(tx: Tx, workspace: str, ids: Iterable[str], back: Return, clocks: Clocks) -> dict[str, Judged]:
    """Every item of `ids`, and everything they rest on, with all their reasons."""
    found: dict[str, Judged] = {}
    level = sorted(set(ids))
    while level:
        for row in await tx.rows(
            "admission/gates",
            workspace=workspace,
            ids=level,
            role=back.role,
            task=back.task,
            purpose=back.purpose,
            kinds=list(back.policy.kinds),
            max_item_chars=back.policy.max_item_chars,
            unverified=back.policy.verification == "required",
            valid_at=clocks.valid_at,
            epoch=clocks.epoch,
            now=clocks.now,
            latest=clocks.latest,
        ):
            for id, reasons, *rest in row["rows"]:
                found[id] = Judged(id, set(reasons), *rest)
        level = sorted({id for one in found.values() for id in _rests_on(one, found) if id not in found})
    _carry_sources(found)
    _carry_receipts(found)
    _carry_premises(found)
    return found


async def words(tx: Tx, workspace: str, ids: Collection[str]) -> dict[str, dict[str, Any]] | None:
    """The words and marks of items that passed; None when one was erased since, and the gates must judge anew."""
    row = await tx.row("admission/contents", workspace=workspace, ids=list(ids))
    items = {item["id"]: item for item in (row["items"] if row else [])}
    return None if any(item["content"] is None for item in items.values()) else items


async def stands(tx: Tx, workspace: str, id: str, *, valid_at: int, epoch: int, task: str | None) -> bool:
    """Whether one item stands (§3.1) at these clocks for this task."""
    clocks = Clocks(valid_at=valid_at, epoch=epoch, now=valid_at, latest=epoch)
    found = await judge(tx, workspace, [id], Return(role=None, task=task), clocks)
    return found[id].stands()


def _rests_on(one: Judged, found: dict[str, Judged]) -> list[str]:
    """The items whose answers this one's depends on, as far as they are known."""
    ids = [*one.premises, *one.sources]
    if one.obligation is not None:
        ids.append(one.obligation)
    for premise in one.premises:
        current = found[premise].current if premise in found else None
        if current is not None:
            ids.append(current)
    return ids


def _carry_sources(found: dict[str, Judged]) -> None:
    """`source_not_readable`: some item it is derived from, however far, may not be read."""
    used_by: dict[str, list[str]] = {}
    for one in found.values():
        for source in one.sources:
            used_by.setdefault(source, []).append(one.id)
    hidden = [id for id, one in found.items() if one.reasons & {"scope_not_granted", "denied"}]
    while hidden:
        for id in used_by.get(hidden.pop(), ()):
            if "source_not_readable" not in found[id].reasons:
                found[id].reasons.add("source_not_readable")
                hidden.append(id)


def _carry_receipts(found: dict[str, Judged]) -> None:
    """`missing_receipt` of a derived item without receipts: its direct sources must all be proven; a cycle fails."""
    waiting = {
        id for id, one in found.items() if one.receipts == 0 and one.sources and one.kind in ("fact", "constraint")
    }
    proven = {id for id, one in found.items() if id not in waiting and not one.reasons & PROVENANCE}
    while True:
        ready = {id for id in waiting if all(source in proven for source in found[id].sources)}
        if not ready:
            break
        waiting -= ready
        proven |= {id for id in ready if not found[id].reasons & PROVENANCE}
    for id in waiting:
        found[id].reasons.add("missing_receipt")


def _carry_premises(found: dict[str, Judged]) -> None:
    """`premise_invalid`: a premise holds when its identity's current version says the same and stands (rule 6)."""
    resolved: dict[str, list[str | None]] = {}
    for one in found.values():
        resolved[one.id] = [_holder(found[premise], found) for premise in one.premises]
        if one.obligation is not None:
            resolved[one.id].append(one.obligation)
    depth: dict[str, int] = {}
    waiting = dict.fromkeys(found)
    while True:
        ready = [id for id in waiting if all(holder is None or holder in depth for holder in resolved[id])]
        if not ready:
            break
        for id in ready:
            del waiting[id]
            holders = resolved[id]
            links = [depth[holder] + 1 for holder in holders if holder is not None]
            depth[id] = max(links, default=0)
            if depth[id] > PREMISE_DEPTH or any(holder is None or not found[holder].stands() for holder in holders):
                found[id].reasons.add("premise_invalid")
    for id in waiting:
        found[id].reasons.add("premise_invalid")


def _holder(premise: Judged, found: dict[str, Judged]) -> str | None:
    """The version that may hold this premise: the current one, if its words are the same."""
    if premise.current is None:
        return None
    current = found[premise.current]
    return current.id if current.content_digest == premise.content_digest else None
