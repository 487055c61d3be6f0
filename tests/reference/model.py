"""The words and the two clocks: what a workspace holds, and when an item stands (DESIGN.md §2, §3).

Instants are integers, microseconds since 1970 UTC, an open end is `OPEN`. An epoch is an integer. Nothing
here writes: `writing` does. Every question about the past or the present is put to a `Moment`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

OPEN = 2**63 - 1
BEGINNING = -(2**63)
MAX_CHAIN = 32  # rule 6: a chain of premises deeper than this fails closed


class Refusal(Exception):
    """An act that is refused, with its code of §13."""

    def __init__(self, code: str, why: str = "") -> None:
        super().__init__(f"{code}: {why}" if why else code)
        self.code = code


# ---------------------------------------------------------------- what is stored (§2, §4)


@dataclass(eq=False)
class Lasting:
    """A thing recorded in an epoch, whose end is turned once from open to a later epoch (§3)."""

    epoch: int
    retired_epoch: int = field(default=OPEN, kw_only=True)

    def counts_at(self, epoch: int) -> bool:
        """Recorded by that epoch, and not taken back at it."""
        return self.epoch <= epoch < self.retired_epoch


@dataclass(eq=False)
class Receipt(Lasting):
    id: str
    sha256: str
    text: str


@dataclass(frozen=True)
class Binding:
    """A BOUND_TO edge: the receipt, and the digest claimed for it."""

    receipt: str
    sha256: str


@dataclass(frozen=True)
class Support:
    """A SUPPORTS edge. A bare support names no receipt."""

    dependency: str
    receipt: str | None = None


@dataclass(eq=False)
class Item(Lasting):
    id: str
    key: str
    kind: str  # fact, constraint, obligation, frontier
    scope: str
    content: str
    content_digest: str
    valid_from: int
    valid_to: int
    place: int  # in its batch
    recorded_at: int
    task: str | None = None
    purposes: tuple[str, ...] = ()
    role: str | None = None
    supports: tuple[Support, ...] = ()
    depends_on: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()
    requires: tuple[tuple[str, bool], ...] = ()  # an obligation's dependencies: (name, critical)
    obligation: str | None = None  # a frontier's
    erased: bool = False  # §12: at every known_at

    @property
    def identity(self) -> tuple[str, str, str]:
        return (self.scope, self.kind, self.key)

    @property
    def order(self) -> tuple[int, int]:
        """The order of recording."""
        return (self.epoch, self.place)

    @property
    def length(self) -> int:
        """In Unicode code points."""
        return len(self.content)

    @property
    def dependencies(self) -> frozenset[str]:
        """D(m): what the item supports (§9)."""
        return frozenset(support.dependency for support in self.supports)

    @property
    def corrects_the_past(self) -> bool:
        """A version whose valid_to was not after the moment it was recorded (§3.1)."""
        return self.valid_to <= self.recorded_at


@dataclass(eq=False)
class Revocation(Lasting):
    target: str  # an item or a receipt
    code: str  # revoked, resolved
    effective_from: int


@dataclass(eq=False)
class Verdict(Lasting):
    later: str
    earlier: str
    says: str  # invalidates, compatible, uncertain, restores, proposed
    task: str | None
    effective_from: int


@dataclass(eq=False)
class Edge(Lasting):
    """A bitemporal edge of permission: HOLDS (principal → role), MAY_READ … DENIED_WRITE (role → scope)."""

    kind: str
    source: str
    target: str
    valid_from: int
    valid_to: int


@dataclass(frozen=True)
class Experience:
    id: str
    owner: str
    grounded_in: tuple[str, ...]


@dataclass(frozen=True)
class Policy:
    """§5. Thresholds are exact; `kinds` are of facts and constraints."""

    coverage: Fraction = Fraction(1)
    critical: Fraction = Fraction(1)
    on_incomplete: str = "block"
    max_items: int = 64
    max_chars: int = 24_000
    max_item_chars: int = 8_000
    kinds: frozenset[str] = frozenset({"fact", "constraint"})
    fill: str = "recency"
    verification: str = "none"  # of a scenario, unless its policy says otherwise (§13)
    confidence: Fraction = Fraction("0.65")
    view_minutes: int = 15
    ticket_days: int = 30

    def loosens(self, other: Policy) -> bool:
        """Whether this, asked for by a call, is looser anywhere than the workspace's (§5)."""
        strength = ("none", "best_effort", "required")
        return (
            self.coverage < other.coverage
            or self.critical < other.critical
            or self.confidence < other.confidence
            or self.max_items > other.max_items
            or self.max_chars > other.max_chars
            or self.max_item_chars > other.max_item_chars
            or self.view_minutes > other.view_minutes
            or self.ticket_days > other.ticket_days
            or not self.kinds <= other.kinds
            or strength.index(self.verification) < strength.index(other.verification)
        )


@dataclass
class Ticket:
    """A departure ticket with its checkpoint (§6). Spent: consumed or voided."""

    principal: str
    role: str
    task: str | None
    epoch: int
    items: frozenset[str]
    expires_at: int
    spent: bool = False


@dataclass(frozen=True)
class View:
    """A signed Return View (§10). A reset view holds no items and promises no coverage."""

    principal: str
    role: str
    task: str | None
    purpose: str | None
    policy: Policy
    items: frozenset[str]
    reset: bool
    expires_at: int


@dataclass
class Workspace:
    """One team's state. `now` is the wall clock, moved by whoever plays."""

    now: int
    epoch: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)  # (number, recorded_at)
    items: dict[str, Item] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    revocations: list[Revocation] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    principals: set[str] = field(default_factory=set)
    policies: list[tuple[int, Policy]] = field(default_factory=lambda: [(0, Policy())])
    experiences: dict[str, Experience] = field(default_factory=dict)
    tickets: dict[str, Ticket] = field(default_factory=dict)  # a principal's last
    absences: dict[tuple[str, str, str | None], Ticket] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)  # a principal's last

    def next_epoch(self) -> int:
        """A committed write batch raises the epoch by one, recorded at this moment."""
        self.epoch += 1
        self.epochs.append((self.epoch, self.now))
        return self.epoch

    def epoch_known_at(self, instant: int) -> int:
        """§3: 'as of this wall time' is the last epoch recorded by then."""
        return max((number for number, recorded_at in self.epochs if recorded_at <= instant), default=0)

    def policy_at(self, epoch: int) -> Policy:
        return [policy for since, policy in self.policies if since <= epoch][-1]

    def revise_policy(self, changes: dict[str, object]) -> None:
        """A new revision names what it changes."""
        current = self.policy_at(self.epoch)
        self.policies.append((self.next_epoch(), replace(current, **changes)))  # type: ignore[arg-type]

    # Permission, always judged at this moment and the latest epoch (§5, §7)

    def edge_holds(self, kind: str, source: str, target: str) -> bool:
        return any(
            edge.kind == kind
            and edge.source == source
            and edge.target == target
            and edge.counts_at(self.epoch)
            and edge.valid_from <= self.now < edge.valid_to
            for edge in self.edges
        )

    def holds_role(self, principal: str, role: str) -> bool:
        return self.edge_holds("HOLDS", principal, role)

    def may_read(self, role: str, scope: str) -> bool:
        return self.edge_holds("MAY_READ", role, scope) and not self.edge_holds("DENIED_READ", role, scope)

    def may_write(self, author: str | None, scope: str) -> bool:
        """Through some role the author holds at this moment. The owner (None) may write everything."""
        if author is None:
            return True
        roles = {edge.target for edge in self.edges if edge.kind == "HOLDS" and edge.source == author}
        return any(
            self.holds_role(author, role)
            and self.edge_holds("MAY_WRITE", role, scope)
            and not self.edge_holds("DENIED_WRITE", role, scope)
            for role in roles
        )


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- when an item stands (§3.1)


@dataclass
class Moment:
    """A point on both clocks, and the task asked for: (valid_at v, epoch e, task τ)."""

    workspace: Workspace
    valid_at: int
    epoch: int
    task: str | None
    _chains: dict[str, int | None] = field(default_factory=dict)
    _versions: dict[tuple[str, str, str], list[Item]] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Gathers what counts and has begun: each identity's versions, and what is named in `supersedes`."""
        for item in self.workspace.items.values():
            if self.counts(item) and self.begun(item):
                self._versions.setdefault(item.identity, []).append(item)
                self._named.update(item.supersedes)

    # Rule 1: recorded

    def recorded(self, item: Item) -> bool:
        return item.epoch <= self.epoch

    def retracted(self, item: Item) -> bool:
        return item.retired_epoch <= self.epoch

    def counts(self, item: Item) -> bool:
        return self.recorded(item) and not self.retracted(item)

    # Rule 2: valid

    def begun(self, item: Item) -> bool:
        return item.valid_from <= self.valid_at

    def over(self, item: Item) -> bool:
        return item.valid_to <= self.valid_at

    # Rule 3: not superseded

    def current(self, identity: tuple[str, str, str]) -> Item | None:
        """The current version of an identity, or none."""
        versions = self._versions.get(identity, [])
        regular = max(
            (item for item in versions if not item.corrects_the_past),
            key=lambda item: (item.valid_from, item.epoch, item.place),
            default=None,
        )
        corrections = [
            item
            for item in versions
            if item.corrects_the_past and not self.over(item) and (regular is None or item.order > regular.order)
        ]
        return max(corrections, key=lambda item: item.order, default=regular)

    def superseded(self, item: Item) -> bool:
        if not self.begun(item) or not self.counts(item):
            return False
        current = self.current(item.identity)
        if current is not None and current.id != item.id:
            return True
        return item.id in self._named

    # Rule 4: not revoked (or resolved: a revocation with that code)

    def ended_by(self, target: str, code: str) -> bool:
        return any(
            revocation.target == target
            and revocation.code == code
            and revocation.counts_at(self.epoch)
            and revocation.effective_from <= self.valid_at
            for revocation in self.workspace.revocations
        )

    # Rule 5: not invalidated

    def for_this_task(self, verdict: Verdict) -> bool:
        """For τ, or for every task."""
        return verdict.task is None or verdict.task == self.task

    def in_effect(self, verdict: Verdict) -> bool:
        return (
            verdict.counts_at(self.epoch)
            and self.for_this_task(verdict)
            and not self.retracted(self.workspace.items[verdict.later])
            and verdict.effective_from <= self.valid_at
        )

    def invalidated(self, item: Item) -> bool:
        about = [v for v in self.workspace.verdicts if v.earlier == item.id and self.in_effect(v)]
        restored = max((v.epoch for v in about if v.says == "restores"), default=-1)
        return any(v.says == "invalidates" and restored <= v.epoch for v in about)

    # Rule 6: its premises hold

    def premises_hold(self, item: Item) -> bool:
        return self._chain(item, ()) is not None

    def _chain(self, item: Item, above: tuple[str, ...]) -> int | None:
        """How many premises deep the item rests; None where one fails, in a cycle, or too deep."""
        if item.id in self._chains:
            return self._chains[item.id]
        if item.id in above:
            return None
        depth: int | None = 0
        for premise in self._premises(item):
            below = None
            if premise is not None and self.stands_alone(premise):
                below = self._chain(premise, (*above, item.id))
            if below is None or below + 1 > MAX_CHAIN:
                depth = None
                break
            assert depth is not None
            depth = max(depth, below + 1)
        self._chains[item.id] = depth
        return depth

    def _premises(self, item: Item) -> Iterable[Item | None]:
        """What must stand for the item: the current version of each premise, None where its words changed."""
        for name in (*item.depends_on, *item.derived_from):
            premise = self.workspace.items[name]
            current = self.current(premise.identity)
            same = current is not None and current.content_digest == premise.content_digest
            yield current if same else None
        if item.obligation is not None:
            yield self.workspace.items[item.obligation]

    # Together

    def meets_rules_1_to_4(self, item: Item) -> bool:
        return (
            self.counts(item)
            and self.begun(item)
            and not self.over(item)
            and not self.superseded(item)
            and not self.ended_by(item.id, "revoked")
            and not self.ended_by(item.id, "resolved")
        )

    def stands_alone(self, item: Item) -> bool:
        """Rules 1 to 5, and not erased (§12): all but its premises."""
        return self.meets_rules_1_to_4(item) and not self.invalidated(item) and not item.erased

    def stands(self, item: Item) -> bool:
        return self.stands_alone(item) and self.premises_hold(item)
