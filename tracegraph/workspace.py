"""A workspace: every act of DESIGN §2 under its one name. Each checks its arguments and hands on to its stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegraph import audit
from tracegraph.acts import workspace_digest
from tracegraph.admission.decision import Asked, decide
from tracegraph.admission.private import Experience, recall
from tracegraph.admission.reading import read
from tracegraph.admission.view import View, open_view, pin_view, read_view
from tracegraph.audit import CycleReport, Exposure, Returned, Version, Why
from tracegraph.chain import Verification, verify
from tracegraph.departure import depart, read_ticket
from tracegraph.errors import TracegraphError, Unavailable
from tracegraph.exporting import Exported, export
from tracegraph.graph import Graph, Tx
from tracegraph.model import (
    Act,
    AdmittedItem,
    Advance,
    Committed,
    Erase,
    Grant,
    Id,
    Item,
    Limits,
    Model,
    Note,
    Obligation,
    Pairs,
    Policy,
    Remember,
    Result,
    Retract,
    Revoke,
    Says,
    SetPolicy,
    Verdict,
    Withdraw,
    micros,
)
from tracegraph.replay import Replay, replay
from tracegraph.signing import Keys, default_keys
from tracegraph.write import commit, lock, stored_policy

if TYPE_CHECKING:
    from tracegraph.invalidation.batch import Batched
    from tracegraph.invalidation.evidence import Progress
    from tracegraph.invalidation.pipeline import Invalidation, Plan

Clock = Callable[[], datetime]


class Arguments(Model):
    """The arguments that name something: checked like ids."""

    workspace: Id | None = None
    owner: Id | None = None
    author: Id | None = None
    batch_id: Id | None = None
    principal: Id | None = None
    role: Id | None = None
    task: Id | None = None
    purpose: Id | None = None
    workload: Id | None = None
    query: Note | None = None
    item: Id | None = None
    cycle: Id | None = None
    key: Id | None = None
    scope: Id | None = None
    kind: Id | None = None


def _need(**names: Any) -> None:
    """Refuse a name that is not given, and check the others."""
    for name, value in names.items():
        if value is None:
            raise TracegraphError(f"The {name} must be given.", code="invalid_record")
    Arguments(**names)


def _need_kind(value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        message = f"It takes {kind.__name__}, not {type(value).__name__}."
        raise TracegraphError(message, code="invalid_record")


def _now() -> datetime:
    return datetime.now(UTC)


async def open_workspace(
    graph: Graph,
    id: str,
    *,
    owner: str | None,
    clock: Clock | None = None,
    policy: Mapping[str, Any] | None = None,
    keys: Keys | None = None,
    invalidation: Invalidation | None = None,
) -> Workspace:
    """Open a workspace, or create it when an owner is given. See `Graph.workspace`."""
    _need(workspace=id)
    Arguments(owner=owner)
    first = Policy().changed(policy or {}).model_dump(mode="json")
    tick = clock or _now

    async def work(tx: Tx) -> dict[str, Any] | None:
        now = micros(tick())
        return await tx.row(
            "write/create_workspace",
            workspace=id,
            owner=owner,
            policy=first,
            recorded_at=now,
            digest=None if owner is None else workspace_digest(id, owner, first, now),
        )

    row = await graph.write(work, again=True)
    if row is None:
        raise TracegraphError(
            f"There is no workspace {id!r}.",
            code="unknown_item",
            hint="Check the name; with an owner it is created: tracegraph create NAME --owner OWNER.",
        )
    if owner is not None and row["owner"] != owner:
        raise TracegraphError(f"The workspace {id!r} belongs to another owner.", code="conflict")
    for name in policy or {}:
        if (row["policy"] or {}).get(name) != first[name]:
            raise TracegraphError(
                f"The workspace {id!r} was created with another {name} in its policy.",
                code="conflict",
                hint="Open it without a policy, and change that: set_policy, or tracegraph policy --set.",
            )
    return Workspace(graph, id, clock=tick, keys=keys or default_keys(), invalidation=invalidation)


class Workspace:
    """One team's state. Get one from `Graph.workspace`.

    Every write is one transaction and one epoch, and returns `Committed`; an omitted `author` is the owner. A
    `batch_id` makes a write idempotent. Refusals are `TracegraphError`s; then nothing was written.
    """

    def __init__(
        self, graph: Graph, id: str, *, clock: Clock, keys: Keys, invalidation: Invalidation | None = None
    ) -> None:
        self.graph = graph
        self.id = id
        self.invalidation = invalidation
        self._clock = clock
        self._keys = keys

    def _moment(self) -> int:
        return micros(self._clock())

    async def _commit(self, acts: Sequence[Act], author: str | None, batch_id: str | None = None) -> Committed:
        Arguments(author=author, batch_id=batch_id)
        return await commit(self.graph, self.id, acts, author=author, now=self._moment(), batch_id=batch_id)

    # --- recording ---

    async def record(self, *items: Item, author: str | None = None, batch_id: str | None = None) -> Committed:
        """Record versions of facts and constraints, with their receipts, as one batch (paper §3.1)."""
        for item in items:
            _need_kind(item, Item)
        return await self._commit(items, author, batch_id)

    async def open_obligation(
        self, obligation: Obligation, *, author: str | None = None, batch_id: str | None = None
    ) -> Committed:
        """Record what a role owes, the evidence it needs, and its first frontier."""
        _need_kind(obligation, Obligation)
        return await self._commit([obligation], author, batch_id)

    async def advance(
        self,
        obligation: str,
        content: str,
        *,
        author: str | None = None,
        id: str | None = None,
        batch_id: str | None = None,
    ) -> Committed:
        """Record the next frontier of an obligation that stands, else `conflict`."""
        named = {} if id is None else {"id": id}
        return await self._commit([Advance(obligation=obligation, content=content, **named)], author, batch_id)

    async def resolve(self, target: str, *, author: str | None = None, batch_id: str | None = None) -> Committed:
        """Close an obligation, from now on."""
        return await self._commit([Revoke(target=target, code="resolved")], author, batch_id)

    async def revoke(
        self,
        target: str,
        *,
        author: str | None = None,
        reason: str = "",
        effective_from: datetime | None = None,
        batch_id: str | None = None,
    ) -> Committed:
        """End an item or a receipt from an instant on, by default from now; nothing older comes back."""
        act = Revoke(target=target, reason=reason, effective_from=effective_from)
        return await self._commit([act], author, batch_id)

    async def retract(self, target: str, *, author: str | None = None, batch_id: str | None = None) -> Committed:
        """Say that an item or a receipt was recorded by mistake: its predecessor stands again."""
        return await self._commit([Retract(target=target)], author, batch_id)

    async def withdraw(self, target: str, *, author: str | None = None, batch_id: str | None = None) -> Committed:
        """Take back a grant, a denial, a revocation or a verdict, by the id its write returned."""
        return await self._commit([Withdraw(target=target)], author, batch_id)

    async def verdict(
        self,
        *,
        later: str,
        earlier: str,
        says: Says,
        task: str | None = None,
        confidence: float | None = None,
        quote: str | None = None,
        rationale: str | None = None,
        effective_from: datetime | None = None,
        author: str | None = None,
        batch_id: str | None = None,
    ) -> Committed:
        """Write a verdict on (later, earlier) for a task, or for every task.

        A quote that does not stand in the later item's words or its receipts' text, or a confidence below the
        policy's, makes it `uncertain` (paper §3.2); `Committed.uncertain` then says so.
        """
        act = Verdict(
            later=later,
            earlier=earlier,
            says=says,
            task=task,
            confidence=confidence,
            quote=quote,
            rationale=rationale,
            effective_from=effective_from,
        )
        return await self._commit([act], author, batch_id)

    # --- permission and policy: the owner's ---

    async def grant(
        self,
        *,
        role: str,
        principal: str | None = None,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        author: str | None = None,
        batch_id: str | None = None,
    ) -> Committed:
        """Let a principal hold a role, or a role read and write scopes. The owner's alone."""
        act = Grant(
            role=role,
            principal=principal,
            read=read,
            write=write,
            valid_from=valid_from,
            valid_to=valid_to,
        )
        return await self._commit([act], author, batch_id)

    async def deny(
        self,
        *,
        role: str,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        author: str | None = None,
        batch_id: str | None = None,
    ) -> Committed:
        """Forbid a role to read or write scopes; beats any grant. The owner's alone."""
        act = Grant(
            role=role,
            read=read,
            write=write,
            deny=True,
            valid_from=valid_from,
            valid_to=valid_to,
        )
        return await self._commit([act], author, batch_id)

    async def set_policy(
        self, /, *, author: str | None = None, batch_id: str | None = None, **changes: Any
    ) -> Committed:
        """Set the next revision of the policy: the fields of `Policy` that change. The owner's alone."""
        Policy().changed(changes)
        return await self._commit([SetPolicy(changes=changes)], author, batch_id)

    async def policy(self) -> Policy:
        """The policy in force."""

        async def pin(tx: Tx) -> Policy:
            found = stored_policy((await lock(tx, self.id))["policy"])
            return found.resolved(verifier=self.invalidation is not None)

        return await self.graph.under_lock(pin)

    async def erase(
        self, target: str, *, reason: str = "", author: str | None = None, batch_id: str | None = None
    ) -> Committed:
        """Remove an item's words, and all that is derived from it, for good. The owner's alone."""
        return await self._commit([Erase(target=target, reason=reason)], author, batch_id)

    # --- leaving and returning ---

    async def depart(self, *, principal: str, role: str, task: str) -> str:
        """Leave in a role and a task; returns the signed ticket that `admit` takes."""
        _need(principal=principal, role=role, task=task)
        return await depart(
            self.graph, self._keys, self.id, principal=principal, role=role, task=task, now=self._moment()
        )

    async def admit(
        self,
        ticket: str,
        *,
        principal: str,
        purpose: str | None = None,
        workload: str | None = None,
        query: str | None = None,
        valid_at: datetime | None = None,
        known_at: int | datetime | None = None,
        as_of: datetime | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> Result:
        """Decide the return of the one who departed with this ticket (paper §3; DESIGN §6).

        `policy` may tighten the workspace's. With `valid_at`, `known_at` (an epoch or an instant) or `as_of` (both)
        it is a preview: nothing is signed and the ticket stays. Raises `invalid_ticket`, `ticket_consumed`,
        `ticket_expired`, `policy_loosened`, `invalid_record`.
        """
        if not ticket:
            raise TracegraphError(f"{principal!r} has no ticket.", code="not_absent")
        _need(principal=principal)
        Arguments(purpose=purpose, workload=workload, query=query)
        read = read_ticket(self._keys, ticket, workspace=self.id, principal=principal)
        valid_at, known_at = _clocks(valid_at, known_at, as_of)
        asked = Asked(
            principal=principal,
            role=read.role,
            task=read.task,
            ticket=read,
            purpose=purpose,
            workload=workload,
            query=query,
            valid_at=valid_at,
            known_at=known_at,
            policy=policy or {},
        )
        return await decide(self.graph, self._keys, self.id, asked, clock=self._moment, invalidation=self.invalidation)

    async def join(
        self,
        *,
        principal: str,
        role: str,
        task: str,
        purpose: str | None = None,
        workload: str | None = None,
        query: str | None = None,
        valid_at: datetime | None = None,
        known_at: int | datetime | None = None,
        as_of: datetime | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> Result:
        """Decide the entry of one who was never here or lost the ticket; ends an absence in this role and task."""
        _need(principal=principal, role=role, task=task)
        Arguments(purpose=purpose, workload=workload, query=query)
        valid_at, known_at = _clocks(valid_at, known_at, as_of)
        asked = Asked(
            principal=principal,
            role=role,
            task=task,
            purpose=purpose,
            workload=workload,
            query=query,
            valid_at=valid_at,
            known_at=known_at,
            policy=policy or {},
        )
        return await decide(self.graph, self._keys, self.id, asked, clock=self._moment, invalidation=self.invalidation)

    async def sweep(
        self,
        *,
        budget: int | None = None,
        invalidation: Invalidation | None = None,
        progress: Progress | None = None,
    ) -> Pairs:
        """Judge what is new since the last sweep against what stands, so that returns find their answers (DESIGN §8).

        `budget` in tokens, without one no limit; interrupted, the next sweep goes on. Raises `unavailable` when no
        verifier is configured.
        """
        method = self._verifier(invalidation)
        ledger = method.ledger(self.graph, self.id, self._moment)
        return await method.sweep(ledger, budget=budget, progress=progress)

    async def sweep_plan(self, *, invalidation: Invalidation | None = None) -> Plan:
        """What a sweep would do: pairs, calls and estimated tokens, without a call."""
        method = self._verifier(invalidation)
        return await method.plan(method.ledger(self.graph, self.id, self._moment))

    async def sweep_batch(self, *, invalidation: Invalidation | None = None) -> Batched:
        """One step of a sweep through the Batch API: submit, poll, collect. Run it again until it is `done`."""
        from tracegraph.invalidation.batch import BatchSweep

        method = self._verifier(invalidation)
        return await BatchSweep(method, method.ledger(self.graph, self.id, self._moment)).step()

    def _verifier(self, invalidation: Invalidation | None) -> Invalidation:
        method = invalidation or self.invalidation
        if method is None:
            raise Unavailable(
                "No verifier is configured.",
                hint="Set TRACEGRAPH_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY, or pass one to graph.workspace.",
            )
        return method

    async def open_view(self, view: str, *, principal: str, role: str | None = None, task: str | None = None) -> View:
        """Check a Return View before exposing it: refused, never trimmed (DESIGN §10).

        Raises `view_invalid`, `view_expired`, or `view_stale` with its reasons.
        """
        _need(principal=principal)
        Arguments(role=role, task=task)
        claims = read_view(self._keys, view, workspace=self.id, principal=principal, role=role, task=task)
        here = await pin_view(self.graph, self.id, claims, now=self._moment())
        return await self.graph.write(lambda tx: open_view(tx, self.id, claims, here), again=True)

    async def read(
        self,
        *,
        principal: str,
        role: str,
        task: str,
        valid_at: datetime | None = None,
        known_at: int | datetime | None = None,
        as_of: datetime | None = None,
    ) -> tuple[AdmittedItem, ...]:
        """What stands for the task and the role may read, other tasks' items included; no decision, no view.

        Raises `unknown_principal`, `role_not_held`.
        """
        _need(principal=principal, role=role, task=task)
        valid_at, known_at = _clocks(valid_at, known_at, as_of)
        return await read(
            self.graph,
            self.id,
            principal=principal,
            role=role,
            task=task,
            valid_at=valid_at,
            known_at=known_at,
            now=self._moment(),
        )

    # --- private memories ---

    async def remember(
        self,
        content: str,
        *,
        principal: str,
        grounded_in: Sequence[str],
        id: str | None = None,
        batch_id: str | None = None,
    ) -> Committed:
        """Keep a private memory, grounded in at least one item."""
        named = {} if id is None else {"id": id}
        act = Remember(principal=principal, content=content, grounded_in=grounded_in, **named)
        return await self._commit([act], principal, batch_id)

    async def recall(self, view: str | None, *, principal: str, query: str | None = None) -> list[Experience]:
        """The principal's memories that the view lets it use; none without a view or while absent."""
        _need(principal=principal)
        Arguments(query=query)
        if view is None:
            return []
        claims = read_view(self._keys, view, workspace=self.id, principal=principal, role=None, task=None)
        return await recall(self.graph, self.id, claims, query=query, now=self._moment())

    # --- audit ---

    async def returns(self, item: str | None = None, *, limit: int = 50) -> tuple[Returned, ...]:
        """The latest returns, the newest first; with `item`, those that had it before them, and what came of it."""
        Arguments(item=item)
        if not 1 <= limit <= Limits.batch:
            raise TracegraphError(f"limit is {limit}; it is 1 to {Limits.batch}.", code="invalid_record")
        return await audit.returns(self.graph, self.id, item=item, limit=limit)

    async def cycle(self, cycle_id: str) -> CycleReport:
        """One recorded return with every reason, those its caller was not told included."""
        _need(cycle=cycle_id)
        return await audit.cycle(self.graph, self.id, cycle_id)

    async def why(self, item: str, cycle_id: str) -> Why:
        """Why an item came out of a return as it did: each gate's outcome with its evidence (DESIGN §12).

        `tracegraph.audit.render_why` says it in words. Raises `unknown_item`.
        """
        _need(item=item, cycle=cycle_id)
        return await audit.why(self.graph, self.id, item, cycle_id)

    async def history(self, key: str, *, scope: str | None = None, kind: str | None = None) -> tuple[Version, ...]:
        """Every version of the identities with this key, on both clocks, in their order."""
        _need(key=key)
        Arguments(scope=scope, kind=kind)
        return await audit.history(self.graph, self.id, key, scope=scope, kind=kind)

    async def exposure(self, item: str) -> Exposure:
        """Every view that admitted an item, who opened it, and what has ended the item since."""
        _need(item=item)

        async def pin(tx: Tx) -> tuple[int, int]:
            locked = await lock(tx, self.id)
            return locked["epoch"], max(self._moment(), locked["recorded_at"] or locked["created_at"])

        latest, now = await self.graph.under_lock(pin)
        return await audit.exposure(self.graph, self.id, item, latest=latest, now=now)

    async def replay(self, cycle_id: str) -> Replay:
        """Decide a recorded return again from the graph, and say what comes out otherwise."""
        _need(cycle=cycle_id)
        return await replay(self.graph, self.id, cycle_id)

    async def verify(self, *, progress: Callable[[int, int], None] | None = None) -> Verification:
        """Walk the epoch chain and recompute every record's digest; names the first break.

        `progress` is told how many epochs of how many are done.
        """
        return await verify(self.graph, self.id, progress=progress)

    async def export(self, file: Path, *, progress: Callable[[int, int], None] | None = None) -> Exported:
        """Write the workspace's history into a file, for `Graph.import_` at another server.

        `progress` is told how many epochs of how many are done. Raises `invalid_record` when it doesn't verify.
        """
        return await export(self.graph, self.id, file, progress=progress)


def _clocks(
    valid_at: datetime | None, known_at: int | datetime | None, as_of: datetime | None
) -> tuple[datetime | None, int | datetime | None]:
    if as_of is not None:
        if valid_at is not None or known_at is not None:
            raise TracegraphError("as_of sets both clocks; give no other.", code="invalid_record")
        valid_at = known_at = as_of
    for name, value in (("valid_at", valid_at), ("known_at", known_at)):
        if isinstance(value, datetime):
            micros(value)
        elif value is not None and (name == "valid_at" or type(value) is not int):
            kinds = "an instant or an epoch" if name == "known_at" else "an instant"
            raise TracegraphError(f"{name} must be {kinds}.", code="invalid_record")
    return valid_at, known_at
