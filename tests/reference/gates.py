"""The four gates and the size limit: every reason that applies to an item (DESIGN.md §7).

Reasons are independent of each other, and a check that cannot be made fails. Authorization is judged at this
moment and the latest epoch, everything else at the return's moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .model import Item, Moment, Policy, Workspace


@dataclass(frozen=True)
class Return:
    """Who returns, as what, what for, and by which policy."""

    principal: str
    role: str
    task: str | None
    purpose: str | None
    policy: Policy


@dataclass
class Gates:
    workspace: Workspace
    moment: Moment
    returning: Return
    _provenance: dict[str, frozenset[str]] = field(default_factory=dict)

    def reasons(self, item: Item) -> frozenset[str]:
        found = authorization(self.workspace, self.returning.role, item)
        found |= self.temporal(item) | self.applicability(item) | self.provenance(item) | self.size(item)
        return frozenset(found)

    # -------------------------------------------------------- temporal

    def temporal(self, item: Item) -> set[str]:
        at = self.moment
        checks = {
            "not_yet_valid": not at.begun(item),
            "expired": at.over(item),
            "superseded": at.superseded(item),
            "revoked": at.ended_by(item.id, "revoked"),
            "resolved": at.ended_by(item.id, "resolved"),
            "retracted": at.retracted(item),
            "invalidated": at.invalidated(item),
            "premise_invalid": not at.premises_hold(item),
            "erased": item.erased,
            "unverified": self.returning.policy.verification == "required" and self.unverified(item),
        }
        return names(checks)

    def unverified(self, item: Item) -> bool:
        """A pair (later, item) is proposed or uncertain, and no later verdict of the same pair settles it."""
        at = self.moment
        about = [
            verdict
            for verdict in self.workspace.verdicts
            if verdict.earlier == item.id and at.for_this_task(verdict) and verdict.counts_at(at.epoch)
        ]
        for verdict in about:
            later = self.workspace.items[verdict.later]
            if verdict.says not in ("proposed", "uncertain") or at.retracted(later) or not at.begun(later):
                continue
            settled = any(
                other.later == verdict.later
                and other.says in ("invalidates", "compatible", "restores")
                and other.epoch > verdict.epoch
                for other in about
            )
            if not settled:
                return True
        return False

    # -------------------------------------------------------- applicability

    def applicability(self, item: Item) -> set[str]:
        returning = self.returning
        checks = {
            "wrong_task": item.task is not None and item.task != returning.task,
            "wrong_purpose": not admits_purpose(item, returning.purpose),
            "kind_not_allowed": is_statement(item) and item.kind not in returning.policy.kinds,
            "wrong_role": not admits_role(item, returning.role),
        }
        return names(checks)

    # -------------------------------------------------------- provenance

    def provenance(self, item: Item, above: tuple[str, ...] = ()) -> set[str]:
        """A derived item's own check asks the items it is directly derived from, as recorded, and so on."""
        if item.id not in self._provenance:
            checks = {
                "missing_receipt": self.missing_receipt(item, above),
                "receipt_mismatch": any(
                    binding.sha256 != self.workspace.receipts[binding.receipt].sha256 for binding in item.bindings
                ),
                "receipt_revoked": bool(item.bindings) and all(self.dead(binding.receipt) for binding in item.bindings),
                "unbound_support": self.unbound_support(item),
            }
            self._provenance[item.id] = frozenset(names(checks))
        return set(self._provenance[item.id])

    def missing_receipt(self, item: Item, above: tuple[str, ...]) -> bool:
        if not is_statement(item) or item.bindings:
            return False
        above = (*above, item.id)
        asked = [self.workspace.items[name] for name in item.derived_from]
        # a source above it: a cycle of items without receipts of their own, which fails
        return not asked or any(source.id in above or self.provenance(source, above) for source in asked)

    def unbound_support(self, item: Item) -> bool:
        bound = {binding.receipt for binding in item.bindings}
        for support in item.supports:
            if support.receipt is not None and (support.receipt not in bound or self.dead(support.receipt)):
                return True
        if item.bindings:
            return False
        backed: set[str] = set()
        for name in item.derived_from:
            backed |= self.workspace.items[name].dependencies
        return not item.dependencies <= backed

    def dead(self, receipt: str) -> bool:
        """Revoked or retracted."""
        at = self.moment
        return self.workspace.receipts[receipt].retired_epoch <= at.epoch or at.ended_by(receipt, "revoked")

    # -------------------------------------------------------- size

    def size(self, item: Item) -> set[str]:
        return names({"over_item_budget": item.length > self.returning.policy.max_item_chars})


# ---------------------------------------------------------------- authorization


def authorization(ws: Workspace, role: str, item: Item) -> set[str]:
    checks = {
        "scope_not_granted": not ws.edge_holds("MAY_READ", role, item.scope),
        "denied": ws.edge_holds("DENIED_READ", role, item.scope),
        "source_not_readable": any(not ws.may_read(role, source.scope) for source in sources(ws, item)),
    }
    return names(checks)


def sources(ws: Workspace, item: Item) -> list[Item]:
    """All it is DERIVED_FROM, however far, as recorded."""
    found: set[str] = set()
    level = set(item.derived_from)
    while level - found:
        found |= level
        level = {name for source in level for name in ws.items[source].derived_from}
    return [ws.items[name] for name in found]


# ---------------------------------------------------------------- small words


def names(checks: Mapping[str, bool]) -> set[str]:
    return {reason for reason, applies in checks.items() if applies}


def is_statement(item: Item) -> bool:
    return item.kind in ("fact", "constraint")


def admits_purpose(item: Item, purpose: str | None) -> bool:
    return not item.purposes or purpose in item.purposes


def admits_role(item: Item, role: str) -> bool:
    return item.role is None or item.role == role
