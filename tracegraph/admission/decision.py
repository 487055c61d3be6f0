"""One return, from the pinned clocks to the recorded decision (paper §3; DESIGN §6).

Read in order: `decide` pins, judges the pool (gates.py), covers the obligations (cover.py), signs (view.py), records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from tracegraph import telemetry
from tracegraph.admission import cover, gates
from tracegraph.admission.pin import Pin, pin
from tracegraph.admission.view import Issued, admitted, issue
from tracegraph.departure import SECOND, Ticket
from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import Coverage, Pairs, Policy, Result, instant, iso, micros, new_id, sha256
from tracegraph.signing import Keys
from tracegraph.telemetry import stage

if TYPE_CHECKING:
    from tracegraph.invalidation.pipeline import Invalidation

COSTS = ("calls", "retries", "tokens_in", "tokens_out", "seconds")
"""What verification cost, as a cycle keeps it."""
Decision = Literal["admitted", "blocked", "reset", "refused"]


@dataclass(frozen=True)
class Asked:
    """A return as the caller asks for it. A `ticket` makes it an admission, none a join."""

    principal: str
    role: str
    task: str
    ticket: Ticket | None = None
    purpose: str | None = None
    workload: str | None = None
    query: str | None = None
    valid_at: datetime | None = None
    known_at: int | datetime | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)

    @property
    def preview(self) -> bool:
        """Whether the caller gave a clock: then nothing is signed and no ticket is consumed."""
        return self.valid_at is not None or self.known_at is not None


@dataclass(frozen=True)
class Pinned:
    """What a decision is pinned to, read under the workspace's lock."""

    clocks: gates.Clocks
    policy: Policy
    revision: int
    refused: Literal["unknown_principal", "role_not_held"] | None
    left: str | None
    """The last departure in this role and task: a join ends that absence, and none that begins meanwhile."""


@dataclass
class Decided:
    """A decision before it is signed and recorded; `replay` computes it again and compares."""

    decision: Decision
    pool: dict[str, gates.Judged]
    judged: dict[str, gates.Judged]
    """The pool and everything it rests on."""
    cover: cover.Cover


async def decide(
    graph: Graph,
    keys: Keys,
    workspace: str,
    asked: Asked,
    *,
    clock: Callable[[], int],
    invalidation: Invalidation | None = None,
) -> Result:
    """Decide one return and record it as a cycle; what it rests on is verified first (DESIGN §8)."""
    with telemetry.returning() as told:
        told.note(workspace=workspace, joined=asked.ticket is None, preview=asked.preview)
        result = await _decide(graph, keys, workspace, asked, clock, invalidation)
        told.note(
            decision=result.decision,
            cycle=result.cycle_id,
            epoch=result.epoch,
            items=len(result.items),
            rejected=len(result.rejected),
            coverage=result.coverage.coverage,
            **({} if result.pairs is None else {"tokens": result.pairs.tokens_in + result.pairs.tokens_out}),
        )
        return result


async def _decide(
    graph: Graph,
    keys: Keys,
    workspace: str,
    asked: Asked,
    clock: Callable[[], int],
    invalidation: Invalidation | None,
) -> Result:
    async def settled() -> Pinned:
        with stage("pin"):
            return await graph.under_lock(
                lambda tx: settle(tx, workspace, asked, clock(), verifier=invalidation is not None)
            )

    pinned = await settled()
    departed = None if asked.ticket is None else (asked.ticket.checkpoint, asked.ticket.epoch)
    pairs: Pairs | None = None
    if invalidation and pinned.refused is None and not asked.preview and pinned.policy.verification != "none":
        back = gates.Return(asked.role, asked.task, asked.purpose, pinned.policy)
        with stage("verify") as told:
            pairs = await invalidation.check(invalidation.ledger(graph, workspace, clock), back, departed)
            told.note(calls=pairs.calls, tokens_in=pairs.tokens_in, tokens_out=pairs.tokens_out, **pairs.counts())
        pinned = await settled()
    back = gates.Return(asked.role, asked.task, asked.purpose, pinned.policy)

    async def read(tx: Tx) -> tuple[Decided, dict[str, dict[str, Any]]]:
        while True:
            decided = await evaluate(tx, workspace, back, pinned.clocks, departed, asked.query)
            if decided.decision != "admitted":
                return decided, {}
            words = await gates.words(tx, workspace, decided.cover.selected)
            if words is not None:
                return decided, words

    if pinned.refused is not None:
        nothing = cover.Cover(coverage=Fraction(0), critical=Fraction(0))
        return await _conclude(graph, keys, workspace, asked, pinned, Decided("refused", {}, {}, nothing), {}, pairs)
    decided, words = await graph.read(read)
    return await _conclude(graph, keys, workspace, asked, pinned, decided, words, pairs)


async def evaluate(
    tx: Tx,
    workspace: str,
    back: gates.Return,
    clocks: gates.Clocks,
    departed: tuple[str, int] | None,
    query: str | None,
) -> Decided:
    """Judge the pool and cover the obligations: the decision itself, without signing or recording it."""
    with stage("judge") as told:
        candidates = await tx.row(
            "admission/pool",
            workspace=workspace,
            task=back.task,
            checkpoint=departed[0] if departed else None,
            departed=departed[1] if departed else clocks.epoch,
            epoch=clocks.epoch,
            valid_at=clocks.valid_at,
        )
        assert candidates is not None
        remembered, current = set(candidates["remembered"]), set(candidates["current"])
        judged = await gates.judge(tx, workspace, remembered | current, back, clocks)
        told.note(remembered=len(remembered), current=len(current), judged=len(judged))
    pool = {
        id: judged[id]
        for id in sorted(remembered | current)
        if id in remembered or not judged[id].reasons & gates.OPEN_RULES
    }
    with stage("cover") as told:
        covering = cover.cover(pool, back.policy)
        decision: Decision
        if covering.complete and cover.meets(covering.coverage, covering.critical, back.policy):
            decision = "admitted"
            cover.fill(covering, pool, back.policy, await _scores(tx, workspace, pool, covering, back.policy, query))
        else:
            decision = "reset" if back.policy.on_incomplete == "reset" else "blocked"
        told.note(
            pool=len(pool),
            eligible=sum(one.eligible() for one in pool.values()),
            selected=len(covering.selected),
            coverage=float(covering.coverage),
        )
    return Decided(decision, pool, judged, covering)


async def _scores(
    tx: Tx,
    workspace: str,
    pool: Mapping[str, gates.Judged],
    covering: cover.Cover,
    policy: Policy,
    query: str | None,
) -> dict[str, float]:
    if policy.fill != "relevance" or not query:
        return {}
    rest = [id for id, one in pool.items() if one.eligible() and id not in covering.selected]
    row = await tx.row("admission/contents", workspace=workspace, ids=rest)
    return cover.relevance(query, {item["id"]: item["content"] or "" for item in (row["items"] if row else [])})


async def settle(tx: Tx, workspace: str, asked: Asked, now: int, *, verifier: bool = False) -> Pinned:
    """Pin the clocks and the policy, and refuse what can be refused before the gates, in DESIGN §5's order."""
    known_at = asked.known_at
    here = await pin(
        tx,
        workspace,
        principal=asked.principal,
        role=asked.role,
        task=asked.task,
        now=now,
        checkpoint=asked.ticket.checkpoint if asked.ticket else None,
        known_at=micros(known_at) if isinstance(known_at, datetime) else None,
    )
    if asked.ticket is not None:
        _check_ticket(asked.ticket, here)
    policy = here.policy.resolved(verifier=verifier).tightened(asked.policy)
    epoch = here.epoch if known_at is None else here.known if isinstance(known_at, datetime) else known_at
    if not 0 <= epoch <= here.epoch:
        raise TracegraphError(f"known_at {epoch} is not an epoch: the latest is {here.epoch}.", code="invalid_record")
    if asked.ticket is not None and epoch < asked.ticket.epoch:
        raise TracegraphError(
            f"known_at {epoch} is before the departure at epoch {asked.ticket.epoch}.", code="invalid_record"
        )
    valid_at = here.now if asked.valid_at is None else micros(asked.valid_at)
    refused: Literal["unknown_principal", "role_not_held"] | None = None
    if not here.known_principal:
        refused = "unknown_principal"
    elif not here.held:
        refused = "role_not_held"
    return Pinned(
        clocks=gates.Clocks(valid_at=valid_at, epoch=epoch, now=here.now, latest=here.epoch),
        policy=policy,
        revision=here.revision,
        refused=refused,
        left=here.last,
    )


def _check_ticket(ticket: Ticket, here: Pin) -> None:
    if here.checkpoint is None:
        raise TracegraphError("The ticket's departure is not in this database.", code="invalid_ticket")
    _check_unused(ticket, here)
    if here.now >= ticket.exp * SECOND:
        raise TracegraphError(f"The ticket expired at {iso(ticket.exp * SECOND)}.", code="ticket_expired")


def _check_unused(ticket: Ticket, here: Pin) -> None:
    if here.last != ticket.checkpoint:
        raise TracegraphError("A later departure replaced this ticket.", code="ticket_consumed")
    if not here.absent:
        raise TracegraphError("The ticket was used, or a join ended its absence.", code="ticket_consumed")


async def _conclude(
    graph: Graph,
    keys: Keys,
    workspace: str,
    asked: Asked,
    pinned: Pinned,
    decided: Decided,
    words: Mapping[str, Mapping[str, Any]],
    pairs: Pairs | None,
) -> Result:
    """Sign what was decided, and record it under the lock unless another return was faster."""
    covering = decided.cover
    report = Coverage(
        coverage=float(covering.coverage),
        critical=float(covering.critical),
        uncovered=tuple(covering.uncovered_readable),
    )
    selected = covering.selected if decided.decision == "admitted" else {}
    cycle = new_id("cycle")
    verification = "not_checked"
    if pairs is not None:
        verification = "verified" if pinned.policy.verification == "required" else "best_effort"
    counts = pairs.counts() if pairs else {}
    view: dict[str, Any] | None = None
    token: str | None = None
    if decided.decision in ("admitted", "reset") and not asked.preview:
        jti = new_id("view")
        with stage("sign"):
            token, expires = issue(
                keys,
                Issued(
                    workspace=workspace,
                    principal=asked.principal,
                    role=asked.role,
                    task=asked.task,
                    purpose=asked.purpose,
                    workload=asked.workload,
                    cycle=cycle,
                    jti=jti,
                    epoch=pinned.clocks.epoch,
                    valid_at=pinned.clocks.valid_at,
                    now=pinned.clocks.now,
                    policy=pinned.policy,
                    revision=pinned.revision,
                    reset=decided.decision == "reset",
                    coverage=report,
                    verification=verification,
                    pairs=counts,
                    items={id: str(words[id]["digest"]) for id in selected},
                ),
            )
        view = {"jti": jti, "digest": sha256(token), "expires_at": expires}
    row = {
        "id": cycle,
        "principal": asked.principal,
        "role": asked.role,
        "task": asked.task,
        "purpose": asked.purpose,
        "workload": asked.workload,
        "query": asked.query,
        "decision": decided.decision,
        "reason": pinned.refused,
        "preview": asked.preview,
        "joined": asked.ticket is None,
        "coverage": report.coverage,
        "critical": report.critical,
        "uncovered": covering.uncovered,
        "selection": json.dumps(covering.reasons),
        "left_out": [f"{reason} {id}" for id, reasons in covering.reasons.items() for reason in reasons],
        "selected": list(selected),
        "selected_why": list(selected.values()),
        "pool": list(decided.pool),
        "policy": pinned.policy.model_dump_json(),
        "policy_revision": pinned.revision,
        "kinds": list(pinned.policy.kinds),
        "max_item_chars": pinned.policy.max_item_chars,
        "verification": verification,
        **({f"pairs_{name}": count for name, count in counts.items()}),
        **({f"verify_{name}": getattr(pairs, name) for name in COSTS} if pairs else {}),
        "valid_at": pinned.clocks.valid_at,
        "epoch": pinned.clocks.epoch,
        "authorized_at": pinned.clocks.now,
        "authorized_epoch": pinned.clocks.latest,
    }

    sent = False

    async def work(tx: Tx) -> None:
        nonlocal sent
        here = await pin(
            tx,
            workspace,
            principal=asked.principal,
            role=asked.role,
            task=asked.task,
            now=pinned.clocks.now,
        )
        if sent and await tx.row("admission/cycle", workspace=workspace, cycle=cycle):
            return  # the connection ended while it was committed
        sent = True
        if asked.ticket is not None:
            _check_unused(asked.ticket, here)
            checkpoint: str | None = asked.ticket.checkpoint
        else:
            ends = decided.decision in ("admitted", "reset") and not asked.preview and here.absent
            checkpoint = here.last if ends and here.last == pinned.left else None
        await tx.run(
            "admission/record",
            workspace=workspace,
            cycle=row,
            checkpoint=checkpoint,
            rejected=[_rejection(one) for one in decided.pool.values() if one.reasons],
            view=view,
            admits=[{"id": id, "why": why, "rank": rank} for rank, (id, why) in enumerate(selected.items())],
        )

    with stage("record"):
        await graph.write(work, again=True)
    valid_at = instant(pinned.clocks.valid_at)
    assert valid_at is not None
    visible = {id: one for id, one in decided.pool.items() if one.readable()}
    return Result(
        decision=decided.decision,
        cycle_id=cycle,
        reason=pinned.refused,
        preview=asked.preview,
        epoch=pinned.clocks.epoch,
        valid_at=valid_at,
        coverage=report,
        items=tuple(admitted(words[id], why) for id, why in selected.items()),
        rejected={id: tuple(sorted(one.reasons)) for id, one in visible.items() if one.reasons},
        selection={id: tuple(reasons) for id, reasons in covering.reasons.items() if id in visible},
        verification=verification,
        pairs=pairs,
        view=token,
    )


def _rejection(one: gates.Judged) -> dict[str, Any]:
    reasons = sorted(one.reasons)
    detail = f"superseded by {one.current}" if "superseded" in reasons and one.current not in (None, one.id) else None
    return {
        "id": one.id,
        "gates": sorted({gates.GATE_OF[reason] for reason in reasons}),
        "reasons": reasons,
        "detail": detail,
    }
