"""Leaving and returning: depart, read, admit, join, the cover, the view, recall (DESIGN.md §6, §9, §10, §11).

Only `depart` raises the epoch. A decision is computed by `decide` from a pool and a moment; `admit` and
`join` say which, and what becomes of ticket, absence and view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from .gates import Gates, Return, admits_purpose, admits_role, authorization, is_statement
from .model import Item, Moment, Policy, Refusal, Ticket, View, Workspace

MINUTE = 60 * 1_000_000
DAY = 24 * 60 * MINUTE


@dataclass(frozen=True)
class Decision:
    """What a return cycle decided: for auditors, with everything (§7: `expect` sees all)."""

    decision: str  # admitted, blocked, reset, refused
    coverage: Fraction | None = None
    critical: Fraction | None = None
    admitted: frozenset[str] = frozenset()
    rejected: dict[str, frozenset[str]] = field(default_factory=dict)  # every pool item → its gate reasons
    selection: dict[str, frozenset[str]] = field(default_factory=dict)
    pool: frozenset[str] = frozenset()
    uncovered: frozenset[str] = frozenset()


# ---------------------------------------------------------------- depart and read (§6, §13)


def need_role(ws: Workspace, principal: str, role: str) -> None:
    if principal not in ws.principals:
        raise Refusal("unknown_principal")
    if not ws.holds_role(principal, role):
        raise Refusal("role_not_held")


def depart(ws: Workspace, principal: str, role: str, task: str | None) -> Ticket:
    need_role(ws, principal, role)
    epoch = ws.next_epoch()
    seen = readable(ws, role, Moment(ws, ws.now, epoch, task))
    expires_at = ws.now + ws.policy_at(epoch).ticket_days * DAY
    checkpoint = frozenset(item.id for item in seen if item.task in (None, task))
    end_absence(ws, principal, role, task)  # departing again voids the first ticket
    ticket = Ticket(principal, role, task, epoch, checkpoint, expires_at)
    ws.absences[principal, role, task] = ticket
    ws.tickets[principal] = ticket
    return ticket


def read(
    ws: Workspace, principal: str, role: str, task: str | None, valid_at: int | None, epoch: int | None
) -> frozenset[str]:
    need_role(ws, principal, role)
    return frozenset(item.id for item in readable(ws, role, moment(ws, task, valid_at, epoch)))


def readable(ws: Workspace, role: str, at: Moment) -> list[Item]:
    """What stands and passes the authorization gate, whatever its task."""
    return [item for item in ws.items.values() if at.stands(item) and not authorization(ws, role, item)]


def moment(ws: Workspace, task: str | None, valid_at: int | None, epoch: int | None) -> Moment:
    """valid_at defaults to now, known_at to the latest epoch."""
    return Moment(ws, ws.now if valid_at is None else valid_at, ws.epoch if epoch is None else epoch, task)


def end_absence(ws: Workspace, principal: str, role: str, task: str | None) -> None:
    ticket = ws.absences.pop((principal, role, task), None)
    if ticket is not None:
        ticket.spent = True


# ---------------------------------------------------------------- admit and join (§6)


@dataclass(frozen=True)
class Asked:
    """What a call may add: a purpose, either clock (then it is a preview), a tighter policy."""

    purpose: str | None = None
    valid_at: int | None = None
    epoch: int | None = None
    policy: Callable[[Policy], Policy] = lambda policy: policy

    @property
    def preview(self) -> bool:
        return self.valid_at is not None or self.epoch is not None


def admit(ws: Workspace, principal: str, asked: Asked) -> Decision:
    """With the principal's last ticket."""
    ticket = ws.tickets.get(principal)
    if ticket is None:
        raise Refusal("not_absent")
    if ticket.spent:
        raise Refusal("ticket_consumed")
    if ws.now >= ticket.expires_at:
        raise Refusal("ticket_expired")
    policy = tightened(ws, asked)
    if asked.epoch is not None and asked.epoch < ticket.epoch:
        raise Refusal("invalid_record", "known_at before the departure")
    returning = Return(principal, ticket.role, ticket.task, asked.purpose, policy)
    return come_back(ws, returning, asked, ticket)


def join(ws: Workspace, principal: str, role: str, task: str | None, asked: Asked) -> Decision:
    """The same without a ticket, for one who was never here or lost it."""
    return come_back(ws, Return(principal, role, task, asked.purpose, tightened(ws, asked)), asked, None)


def tightened(ws: Workspace, asked: Asked) -> Policy:
    """A call may tighten the workspace's policy, never loosen it (§5)."""
    standing = ws.policy_at(ws.epoch)
    policy = asked.policy(standing)
    if policy.loosens(standing):
        raise Refusal("policy_loosened")
    return policy


def come_back(ws: Workspace, returning: Return, asked: Asked, ticket: Ticket | None) -> Decision:
    if returning.principal not in ws.principals or not ws.holds_role(returning.principal, returning.role):
        return Decision("refused")  # nothing is listed
    at = moment(ws, returning.task, asked.valid_at, asked.epoch)
    decision = decide(Gates(ws, at, returning), pool(at, ticket))
    if not asked.preview and decision.decision in ("admitted", "reset"):
        end_absence(ws, returning.principal, returning.role, returning.task)
        ws.views[returning.principal] = View(
            principal=returning.principal,
            role=returning.role,
            task=returning.task,
            purpose=returning.purpose,
            policy=returning.policy,
            items=decision.admitted,
            reset=decision.decision == "reset",
            expires_at=ws.now + returning.policy.view_minutes * MINUTE,
        )
    return decision


def pool(at: Moment, ticket: Ticket | None) -> list[Item]:
    """Broad on purpose: a gate can reject a false candidate, nothing can restore a missed one."""
    candidates = [item for item in at.workspace.items.values() if item.task in (None, at.task) and at.recorded(item)]
    return [
        item
        for item in candidates
        if (ticket is not None and (item.id in ticket.items or item.epoch > ticket.epoch))
        or at.meets_rules_1_to_4(item)
    ]


# ---------------------------------------------------------------- cover (§9)


def decide(gates: Gates, candidates: Sequence[Item]) -> Decision:
    policy = gates.returning.policy
    rejected = {item.id: gates.reasons(item) for item in candidates}
    eligible = [item for item in candidates if not rejected[item.id]]
    selection: dict[str, set[str]] = {}

    def report(item: Item, reason: str) -> None:
        selection.setdefault(item.id, set()).add(reason)

    # 1. the open obligations: one that fails any gate is never dropped in silence
    owed = open_obligations(gates.moment, gates.returning, candidates)
    for obligation in owed:
        if rejected[obligation.id]:
            report(obligation, "obligation_not_admissible")

    # 2. mandatory: the admissible obligations, and the eligible frontiers of all of them
    frontiers = [item for item in eligible if item.obligation in {o.id for o in owed}]
    for obligation in owed:
        if obligation.id not in {frontier.obligation for frontier in frontiers}:
            report(obligation, "missing_frontier")
    mandatory = [obligation for obligation in owed if not rejected[obligation.id]] + frontiers
    selected: list[Item] = []
    if fits(policy, mandatory):
        selected = cover(policy, owed, mandatory, [item for item in eligible if is_statement(item)])
    else:
        for item in mandatory:
            report(item, "mandatory_over_budget")

    # 4. admit when covered and complete
    coverage, critical = covered(owed, selected)
    uncovered = required(owed) - supported(selected)
    if not selection and coverage >= policy.coverage and critical >= policy.critical:
        decision = "admitted"
        selected = fill(policy, selected, eligible)  # 5.
        for item in eligible:
            if item not in selected:
                report(item, "not_selected")
    else:
        decision = "reset" if policy.on_incomplete == "reset" else "blocked"
        selected = []
    return Decision(
        decision=decision,
        coverage=coverage,
        critical=critical,
        admitted=frozenset(item.id for item in selected),
        rejected=rejected,
        selection={name: frozenset(reasons) for name, reasons in selection.items()},
        pool=frozenset(rejected),
        uncovered=uncovered,
    )


def open_obligations(at: Moment, returning: Return, candidates: Iterable[Item]) -> list[Item]:
    """O: those that stand, whose purposes admit the return's and whose role is the returning one or none."""
    return [
        item
        for item in candidates
        if item.kind == "obligation"
        and at.stands(item)
        and admits_purpose(item, returning.purpose)
        and admits_role(item, returning.role)
    ]


def cover(policy: Policy, owed: Sequence[Item], mandatory: Sequence[Item], offered: Sequence[Item]) -> list[Item]:
    """3. Repeatedly the item that still fits and newly covers most, by weight per character."""
    selected = list(mandatory)
    weights = {name: 2 if name in critical_of(owed) else 1 for name in required(owed)}
    while True:
        missing = weights.keys() - supported(selected)

        def gain(item: Item, missing: frozenset[str] = frozenset(missing)) -> Fraction:
            return Fraction(sum(weights[name] for name in item.dependencies & missing), max(1, item.length))

        useful = [item for item in offered if gain(item) > 0 and fits(policy, [*selected, item])]
        if not useful:
            return selected
        # ties: lower cost, then later valid_from, then smaller id
        selected.append(min(useful, key=lambda i: (-gain(i), i.length, -i.valid_from, i.id)))


def fill(policy: Policy, selected: Sequence[Item], eligible: Sequence[Item]) -> list[Item]:
    """5. What is left of the budgets, most recent first. `relevance` is a full-text score, which the
    reference doesn't have: it takes every score as equal, right for a call without a query."""
    filled = list(selected)
    if policy.fill == "none":
        return filled
    for item in sorted(eligible, key=lambda i: (-i.valid_from, -i.epoch, i.id)):
        if item not in filled and fits(policy, [*filled, item]):
            filled.append(item)
    return filled


def fits(policy: Policy, items: Sequence[Item]) -> bool:
    return len(items) <= policy.max_items and sum(item.length for item in items) <= policy.max_chars


def covered(owed: Sequence[Item], selected: Iterable[Item]) -> tuple[Fraction, Fraction]:
    """Cov and Crit. An empty set of obligations or critical dependencies counts 1."""
    got = supported(selected)
    done = [obligation for obligation in owed if required([obligation]) <= got]
    critical = critical_of(owed)
    return (
        Fraction(len(done), len(owed)) if owed else Fraction(1),
        Fraction(len(got & critical), len(critical)) if critical else Fraction(1),
    )


def required(owed: Iterable[Item]) -> frozenset[str]:
    return frozenset(name for obligation in owed for name, _ in obligation.requires)


def critical_of(owed: Iterable[Item]) -> frozenset[str]:
    return frozenset(name for obligation in owed for name, critical in obligation.requires if critical)


def supported(items: Iterable[Item]) -> frozenset[str]:
    return frozenset(name for item in items for name in item.dependencies)


# ---------------------------------------------------------------- open_view (§10) and recall (§11)


def open_view(ws: Workspace, view: View) -> None:
    """At this moment and the latest epoch, by the view's own policy: refused, not trimmed.

    Signature, identity and digests are the product's; a scenario's view is never forged.
    """
    if ws.now >= view.expires_at:
        raise Refusal("view_expired")
    if not ws.holds_role(view.principal, view.role):
        raise Refusal("view_stale", "role_not_held")
    at = Moment(ws, ws.now, ws.epoch, view.task)
    returning = Return(view.principal, view.role, view.task, view.purpose, view.policy)
    gates = Gates(ws, at, returning)
    items = [ws.items[name] for name in sorted(view.items)]
    if any(gates.reasons(item) for item in items):
        raise Refusal("view_stale", "an admitted item fails a gate")
    if view.reset:
        return  # it promises no coverage
    coverage, critical = covered(open_obligations(at, returning, pool(at, None)), items)
    if coverage < view.policy.coverage or critical < view.policy.critical:
        raise Refusal("view_stale", "the open obligations are no longer covered")


def recall(ws: Workspace, principal: str) -> frozenset[str]:
    """Through the last view: only the owner's, and only those all of whose groundings it admits."""
    view = ws.views.get(principal)
    if view is None or (principal, view.role, view.task) in ws.absences:
        return frozenset()
    open_view(ws, view)
    return frozenset(
        experience.id
        for experience in ws.experiences.values()
        if experience.owner == principal and set(experience.grounded_in) <= view.items
    )


def with_changes(changes: dict[str, object]) -> Callable[[Policy], Policy]:
    return lambda policy: replace(policy, **changes)  # type: ignore[arg-type]
