"""From a return, or a sweep, to verdict edges: select the pairs, scan, propose, judge, write (paper §3.2; DESIGN §8).

The gates know only the edges. Nothing here decides what an agent may act on, and no fault of a model or an endpoint
leaves this module: a pair that was not judged stays PROPOSED or UNVERIFIED.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import perf_counter
from typing import Literal

import anyio

from tracegraph.admission import gates
from tracegraph.graph import Graph, Tx
from tracegraph.invalidation.endpoint import Dialect, Endpoint
from tracegraph.invalidation.evidence import (
    UNSCANNED,
    Answer,
    Ask,
    Evidence,
    Meter,
    Pair,
    Placed,
    Progress,
    Scanned,
    Scanner,
    Scope,
    Usage,
    Verifier,
)
from tracegraph.invalidation.ledger import Ledger, chunks, once
from tracegraph.invalidation.scan import CHUNK, PairScanner, PremiseScanner
from tracegraph.invalidation.verify import ModelVerifier, estimate
from tracegraph.model import Pairs, digest
from tracegraph.write import lock

BUDGET = 50_000
"""Tokens one return may spend: a tenth of what the paper's pipeline spends on an episode."""
EVIDENCE = ("fact", "constraint")
_UNPROVEN = frozenset({"missing_receipt", "receipt_mismatch", "receipt_revoked"})
_OPEN = frozenset({"unverified"})
_UNANSWERED = (None, "PROPOSED")
ASKS: tuple[Ask, ...] = ("judge", "restore")


@dataclass(frozen=True)
class Plan:
    """What a sweep would do: items and pairs it can name, calls, and estimated tokens.

    `pairs` counts what is proposed already and what readings kept in the graph propose; what is still to be read or
    scanned will add to it.
    """

    items: int
    pairs: int
    scan_calls: int
    verify_calls: int
    tokens: int


@dataclass(frozen=True)
class Todo:
    """A pair to judge, by the ids of its items."""

    later: str
    earlier: str
    task: str | None
    ask: Ask = "judge"
    behind: tuple[str, ...] = ()


class Invalidation:
    """A scanner and a verifier, and what a return may spend on them. `budget` in tokens, `lease` in seconds."""

    def __init__(
        self,
        scanner: Scanner,
        verifier: Verifier,
        *,
        budget: int | None = BUDGET,
        concurrency: int = 8,
        patience: float = 240.0,
        lease: float = 60.0,
        endpoint: Endpoint | None = None,
    ) -> None:
        self.scanner = scanner
        self.verifier = verifier
        self.budget = budget
        self.concurrency = concurrency
        self.patience = patience
        self.lease = lease
        self.endpoint = endpoint

    @classmethod
    def on(
        cls,
        endpoint: Endpoint,
        model: str,
        *,
        scan_model: str | None = None,
        strategy: Literal["premises", "pairs"] = "premises",
        budget: int | None = BUDGET,
        lease: float = 60.0,
    ) -> Invalidation:
        """Chat models on an OpenAI-compatible endpoint."""
        scanner = PremiseScanner if strategy == "premises" else PairScanner
        return cls(
            scanner(endpoint, scan_model or model),
            ModelVerifier(endpoint, model),
            budget=budget,
            concurrency=endpoint.concurrency,
            patience=endpoint.deadline + lease,
            lease=lease,
            endpoint=endpoint,
        )

    @classmethod
    def from_environment(cls) -> Invalidation | None:
        """The one that TRACEGRAPH_MODEL, TRACEGRAPH_SCAN_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY describe.

        None without TRACEGRAPH_MODEL: no key that is meant for something else sends the team's words anywhere.
        """
        model = os.environ.get("TRACEGRAPH_MODEL")
        if not model:
            return None
        return cls.on(Endpoint(), model, scan_model=os.environ.get("TRACEGRAPH_SCAN_MODEL"))

    @property
    def method(self) -> str:
        """What scans and judges, in one name: a sweep by another method starts anew."""
        return digest(
            {
                "scan": [self.scanner.prompt, self.scanner.model],
                "verify": [self.verifier.model, *(self.verifier.prompt(ask) for ask in ASKS)],
            }
        )

    async def close(self) -> None:
        if self.endpoint is not None:
            await self.endpoint.close()

    def ledger(self, graph: Graph, workspace: str, now: Callable[[], int]) -> Ledger:
        return Ledger(graph, workspace, now=now, lease=self.lease)

    # --- a return ---

    async def check(
        self,
        ledger: Ledger,
        back: gates.Return,
        departed: tuple[str, int] | None,
        *,
        progress: Progress | None = None,
    ) -> Pairs:
        """Judge what a return rests on; `departed` as for the decision: (checkpoint, epoch), None on a join."""
        started = perf_counter()
        meter = Meter(self.budget)

        pairs = await self._run(ledger, lambda: self._of_return(ledger, back, departed), back, meter, progress)
        return pairs.model_copy(update={"seconds": perf_counter() - started})

    async def _of_return(
        self, ledger: Ledger, back: gates.Return, departed: tuple[str, int] | None
    ) -> tuple[Scope, dict[str, gates.Judged]]:
        """What the returning role may read and would be given, against what it had when it left."""
        had = None if departed is None else await ledger.departed(departed[0])

        clocks = await pinned(ledger)

        async def work(tx: Tx) -> tuple[dict[str, gates.Judged], set[str]]:
            candidates = await tx.row(
                "admission/pool",
                workspace=ledger.workspace,
                task=back.task,
                checkpoint=departed[0] if departed else None,
                departed=departed[1] if departed else clocks.epoch,
                epoch=clocks.epoch,
                valid_at=clocks.valid_at,
            )
            assert candidates is not None
            pool = {*candidates["remembered"], *candidates["current"]}
            return await gates.judge(tx, ledger.workspace, pool, back, clocks), pool

        judged, pool = await ledger.graph.read(work)
        readable = {id: one for id, one in judged.items() if one.readable() and one.kind in EVIDENCE}
        later = {id for id in readable if id in pool and readable[id].stands() and not readable[id].reasons & _UNPROVEN}
        wanted = {id for id, one in readable.items() if one.reasons - {"invalidated"} <= _OPEN}
        wanted |= {  # what they rest on decides about them, whatever else speaks against handing it out
            premise
            for id in wanted
            for premise in _rests_on(judged, id)
            if premise in readable and readable[premise].stands()
        }
        fresh = None if had is None else (later | wanted) - had
        return await self._scope(ledger, back.task, clocks, readable, later, wanted, fresh), judged

    async def _scope(
        self,
        ledger: Ledger,
        task: str | None,
        clocks: gates.Clocks,
        judged: dict[str, gates.Judged],
        later: Collection[str],
        wanted: Collection[str],
        fresh: Collection[str] | None,
    ) -> Scope:
        invalidated = {id for id in wanted if "invalidated" in judged[id].reasons}
        earlier = frozenset(wanted) - invalidated
        return Scope(
            task=task,
            valid_at=clocks.valid_at,
            epoch=clocks.epoch,
            placed={id: Placed(judged[id].task, judged[id].valid_from, judged[id].epoch) for id in {*later, *wanted}},
            later=frozenset(later),
            earlier=earlier,
            invalidated=frozenset(invalidated),
            fresh=None if fresh is None else frozenset(fresh),
            settled=await ledger.settled(earlier, task=task, ask="judge", verifier=self.verifier),
        )

    # --- a sweep ---

    async def sweep(self, ledger: Ledger, *, budget: int | None = None, progress: Progress | None = None) -> Pairs:
        """Judge what is new since the last sweep against what stands, for every task. Interrupted, it goes on."""
        started = perf_counter()
        meter = Meter(budget)
        total = Pairs()
        for task in (None, *await ledger.tasks()):
            clocks = await pinned(ledger)
            before = meter.usage
            select = partial(self.of_sweep, ledger, task, clocks)
            pairs = await self._run(ledger, select, None, meter, progress)
            spent = pairs.model_copy(update=_spent(meter.usage, before))
            total = Pairs(**{name: value + getattr(spent, name) for name, value in total.model_dump().items()})
            if pairs.unjudged == 0 and not meter.stopped:
                usage = Usage(spent.calls, spent.retries, spent.tokens_in, spent.tokens_out)
                await ledger.remember_sweep(
                    task=task,
                    method=self.method,
                    epoch=clocks.epoch,
                    valid_at=clocks.valid_at,
                    pairs=pairs.counts(),
                    usage=usage,
                )
        return total.model_copy(update={"seconds": perf_counter() - started})

    async def plan(self, ledger: Ledger) -> Plan:
        """What `sweep` would do, without a call."""
        items = pairs = scan_calls = verify_calls = tokens = 0
        seen: set[tuple[str, str]] = set()
        for task in (None, *await ledger.tasks()):
            scope, _ = await self.of_sweep(ledger, task, await pinned(ledger))
            forecast = await self.scanner.forecast(scope, ledger)
            waiting, _ = await self._waiting(ledger, scope, None)
            new = {(todo.later, todo.earlier) for todo in waiting} | set(forecast.pairs)
            new -= seen
            seen |= new
            items += len(scope.later | scope.earlier if scope.fresh is None else scope.fresh)
            pairs += len(new)
            scan_calls += forecast.calls
            verify_calls += len(new)
            tokens += forecast.tokens
            for part in chunks(sorted(new)):
                evidence = await ledger.evidence({id for pair in part for id in pair})
                tokens += sum(
                    estimate(Pair(evidence[later], evidence[earlier], None))
                    for later, earlier in part
                    if later in evidence and earlier in evidence
                )
        return Plan(items, pairs, scan_calls, verify_calls, tokens)

    async def of_sweep(
        self, ledger: Ledger, task: str | None, clocks: gates.Clocks
    ) -> tuple[Scope, dict[str, gates.Judged]]:
        """Everything of a task or of none that stands, or will; fresh is what did not at the last sweep."""
        last = await ledger.last_sweep(task=task, method=self.method)
        upcoming = await ledger.upcoming(task=task, epoch=clocks.epoch, valid_at=clocks.valid_at)

        async def at(when: gates.Clocks, more: Iterable[str]) -> dict[str, gates.Judged]:
            async def work(tx: Tx) -> dict[str, gates.Judged]:
                candidates = await tx.row(
                    "admission/pool",
                    workspace=ledger.workspace,
                    task=task or "",
                    checkpoint=None,
                    departed=when.epoch,
                    epoch=when.epoch,
                    valid_at=when.valid_at,
                )
                assert candidates is not None
                ids = {*candidates["current"], *more}
                judged = await gates.judge(tx, ledger.workspace, ids, gates.Return(None, task), when)
                return {id: one for id, one in judged.items() if id in ids and one.kind in EVIDENCE}

            return await ledger.graph.read(work)

        judged = await at(clocks, upcoming)
        standing = {id for id, one in judged.items() if one.reasons & gates.STANDING <= {"not_yet_valid"}}
        invalidated = {id for id, one in judged.items() if one.reasons & gates.STANDING == {"invalidated"}}
        fresh: set[str] | None = None
        if last is not None:
            epoch, valid_at = last
            before = await at(gates.Clocks(valid_at, epoch, valid_at, epoch), upcoming)
            fresh = standing - {
                id
                for id, one in before.items()
                if one.epoch <= epoch and one.reasons & gates.STANDING <= {"not_yet_valid"}
            }
        later = {id for id in standing if not judged[id].reasons & _UNPROVEN}
        scope = await self._scope(ledger, task, clocks, judged, later, standing | invalidated, fresh)
        return scope, judged

    # --- the pipeline ---

    async def _run(
        self,
        ledger: Ledger,
        select: Callable[[], Awaitable[tuple[Scope, dict[str, gates.Judged]]]],
        back: gates.Return | None,
        meter: Meter,
        progress: Progress | None,
    ) -> Pairs:
        await self._dialects(ledger)
        scope, judged = await select()
        asked: dict[Todo, Answer] = {}
        recoveries = await self.recoveries(ledger, scope, judged, back)
        if recoveries:
            await self._judge(ledger, recoveries, meter, asked, progress)
            if any(answer.says == "restores" for answer in asked.values()):
                scope, judged = await select()
        before = await ledger.states(scope.earlier | scope.invalidated, task=scope.task)
        hidden = await self._hidden(ledger, {later for later, _ in before}, scope, judged, back)
        scanned = await self.scanner.scan(scope, ledger, meter, progress)
        todos, unscanned = await self.todos(ledger, scope, scanned, back)
        await self._judge(ledger, todos, meter, asked, progress)
        await self._keep_dialects(ledger)
        states = await ledger.states({todo.earlier for todo in [*recoveries, *todos]}, task=scope.task)
        written = Counter(states.get((todo.later, todo.earlier)) for todo in asked)
        left = [
            todo
            for todo in [*recoveries, *todos]
            if not (asked[todo].judged if todo in asked else states.get((todo.later, todo.earlier)) not in _UNANSWERED)
        ]
        return Pairs(
            proposed=len(recoveries) + len(todos),
            judged=sum(answer.judged for answer in asked.values()),
            reused=sum(kind != "PROPOSED" and later not in hidden for (later, _), kind in before.items()),
            unjudged=len(left) + unscanned,
            invalidated=written["INVALIDATES"],
            cleared=written["CLEARED"],
            unverified=written["UNVERIFIED"],
            restored=written["RESTORES"],
            **_spent(meter.usage, Usage()),
        )

    async def todos(
        self, ledger: Ledger, scope: Scope, scanned: Scanned, back: gates.Return | None
    ) -> tuple[list[Todo], int]:
        """Write what a scan proposes, and give what is to be judged and how many targets were not scanned."""
        waiting, placeholders = await self._waiting(ledger, scope, back)
        marked = {earlier for _, earlier in placeholders}
        known = {(todo.later, todo.earlier) for todo in waiting}
        new = [
            Todo(later, earlier, scope.task_of(later, earlier))
            for later, earlier in dict.fromkeys([*scanned.pairs, *await self._succeeding(ledger, scope)])
            if (later, earlier) not in known
        ]
        await ledger.propose((todo.later, todo.earlier, todo.task) for todo in new)
        open_ = {earlier for _, earlier in scanned.unscanned}
        await ledger.propose(
            (
                (later, earlier, scope.task_of(later, earlier))
                for later, earlier in scanned.unscanned
                if earlier not in marked
            ),
            cause=UNSCANNED,
        )
        done = [id for (_, earlier), ids in placeholders.items() if earlier not in open_ for id in ids]
        await ledger.withdraw(done)
        return [*waiting, *new], len(open_)

    async def _waiting(
        self, ledger: Ledger, scope: Scope, back: gates.Return | None
    ) -> tuple[list[Todo], dict[tuple[str, str], list[str]]]:
        """The pairs of a scope that wait for an answer, and the marks of targets that were not scanned.

        A pair waits even when its later item no longer stands; not when the returning role may not read that.
        """
        waiting, placeholders = await ledger.pending(scope.earlier, task=scope.task)
        waiting = {(later, old) for later, old in waiting if later not in scope.settled.get(old, ())}
        others = {later for later, _ in waiting} - set(scope.placed)
        seen = await self._current(ledger, others, scope, {}, back)
        tasks = {**{id: one.task for id, one in scope.placed.items()}, **{id: seen[id].task for id in others}}
        hidden = {id for id in others if back is not None and not seen[id].readable()}
        return [
            Todo(later, old, tasks[old] or tasks[later]) for later, old in sorted(waiting) if later not in hidden
        ], placeholders

    async def recoveries(
        self, ledger: Ledger, scope: Scope, judged: dict[str, gates.Judged], back: gates.Return | None
    ) -> list[Todo]:
        """What was invalidated by items none of which stands any more, with what took their place.

        The model is shown those items: not when the returning role may not read one of them.
        """
        rows = await ledger.recoverable(scope.invalidated, task=scope.task, epoch=scope.epoch, valid_at=scope.valid_at)
        behind: dict[str, dict[str, list[str]]] = {}
        for earlier, later, retracted, named in rows:
            if not retracted:
                behind.setdefault(earlier, {})[later] = named
        if not behind:
            return []
        everything = {later for laters in behind.values() for later in laters}
        current = await self._current(ledger, everything, scope, judged, back)
        asked = await ledger.settled(list(behind), task=scope.task, ask="restore", verifier=self.verifier)
        todos = []
        for earlier, laters in sorted(behind.items()):
            if any(current[later].reasons & gates.STANDING <= {"not_yet_valid"} for later in laters):
                continue
            if back is not None and not all(current[later].readable() for later in laters):
                continue
            successors = {current[later].current for later in laters} | {
                id for named in laters.values() for id in named
            }
            todos += [
                Todo(
                    id,
                    earlier,
                    scope.placed[earlier].task or scope.placed[id].task,
                    "restore",
                    tuple(sorted(laters)),
                )
                for id in sorted(one for one in successors if one is not None)
                if id in scope.later and id not in laters and id != earlier and id not in asked.get(earlier, ())
            ]
        return todos

    async def _succeeding(self, ledger: Ledger, scope: Scope) -> list[tuple[str, str]]:
        """What took the place of a retracted item, against what stands again because that was retracted."""
        rows = await ledger.recoverable(scope.earlier, task=scope.task, epoch=scope.epoch, valid_at=scope.valid_at)
        gone = [(earlier, later, named) for earlier, later, retracted, named in rows if retracted]
        if not gone:
            return []
        current = await self._current(ledger, {later for _, later, _ in gone}, scope, {})
        return [
            (id, earlier)
            for earlier, later, named in gone
            for id in {current[later].current, *named}
            if id is not None and scope.has(id, earlier)
        ]

    async def _hidden(
        self, ledger: Ledger, ids: set[str], scope: Scope, judged: dict[str, gates.Judged], back: gates.Return | None
    ) -> set[str]:
        """Which of these items the returning role may not read; on a sweep none is hidden."""
        if back is None:
            return set()
        seen = await self._current(ledger, ids, scope, judged, back)
        return {id for id in ids if not seen[id].readable()}

    async def _current(
        self,
        ledger: Ledger,
        ids: set[str],
        scope: Scope,
        judged: dict[str, gates.Judged],
        back: gates.Return | None = None,
    ) -> dict[str, gates.Judged]:
        """These items as the gates see them: whether they stand, and the current version of their identity."""
        clocks = gates.Clocks(scope.valid_at, scope.epoch, scope.valid_at, scope.epoch)

        async def work(tx: Tx) -> dict[str, gates.Judged]:
            return await gates.judge(
                tx, ledger.workspace, ids - set(judged), back or gates.Return(None, scope.task), clocks
            )

        return {**judged, **(await ledger.graph.read(work) if ids - set(judged) else {})}

    async def _judge(
        self,
        ledger: Ledger,
        todos: Sequence[Todo],
        meter: Meter,
        asked: dict[Todo, Answer],
        progress: Progress | None,
    ) -> None:
        """Judge each pair once among all processes, and write what was answered."""
        prompts = {ask: self.verifier.prompt(ask) for ask in ASKS}
        model = self.verifier.model
        evidence: dict[str, Evidence] = {}
        for part in chunks(list(todos), 2_000):
            evidence |= await ledger.evidence({id for todo in part for id in (todo.later, todo.earlier, *todo.behind)})
        work: dict[str, Todo] = {}
        for todo in todos:
            if todo.later in evidence and todo.earlier in evidence:
                work[pair_of(todo, evidence).key(prompts[todo.ask], model)] = todo
        count = 0

        async def run(some: Sequence[Todo]) -> bool:
            nonlocal count
            answers: dict[Todo, Answer] = {}
            room = anyio.CapacityLimiter(self.concurrency)

            async def one(todo: Todo) -> None:
                async with room:
                    answer = await self._verify(pair_of(todo, evidence), meter)
                if answer is not None:
                    answers[todo] = answer

            try:
                async with anyio.create_task_group() as group:
                    for todo in some:
                        group.start_soon(one, todo)
            finally:
                with anyio.CancelScope(shield=True):
                    kept = _only_all(some, answers)
                    if kept:
                        await ledger.answer(
                            [(pair_of(todo, evidence), answer) for todo, answer in kept.items()],
                            model=model,
                            prompts=prompts,
                        )
            asked.update(kept)
            count += len(kept)
            if progress is not None:
                progress("verify", count, len(work), meter.usage)
            return not meter.stopped

        await once(ledger, work, open_=partial(self.unjudged, ledger), run=run, chunk=CHUNK, patience=self.patience)

    async def unjudged(self, ledger: Ledger, some: Collection[Todo]) -> set[int]:
        """The positions of the pairs that nobody has judged yet."""
        answered: set[tuple[str, str, str | None, Ask]] = set()
        for task in {todo.task for todo in some}:
            for ask in ASKS:
                ids = {todo.earlier for todo in some if (todo.task, todo.ask) == (task, ask)}
                found = await ledger.settled(ids, task=task, ask=ask, verifier=self.verifier)
                answered |= {(later, id, task, ask) for id, laters in found.items() for later in laters}
        return {at for at, todo in enumerate(some) if (todo.later, todo.earlier, todo.task, todo.ask) not in answered}

    async def _verify(self, pair: Pair, meter: Meter) -> Answer | None:
        """One answer; None when the budget has no room for it."""
        reserved = estimate(pair)
        if not meter.reserve(reserved):
            return None
        answer = Answer("uncertain", cause="error", usage=Usage(calls=1))
        try:
            answer = await self.verifier.verify(pair)
        except Exception:  # noqa: S110 - a verifier of anybody's making; the pair counts as not judged
            pass
        finally:
            meter.settle(reserved, answer.usage, failed=not answer.judged)
        return answer

    # --- what was found out about the endpoint ---

    async def _dialects(self, ledger: Ledger) -> None:
        if self.endpoint is not None:
            self.endpoint.prepare()
            for row in await ledger.dialects(self.endpoint.name):
                self.endpoint.dialects.setdefault(row.pop("model"), Dialect(**row))
            self._kept = dict(self.endpoint.dialects)

    async def _keep_dialects(self, ledger: Ledger) -> None:
        if self.endpoint is not None:
            for model, dialect in self.endpoint.dialects.items():
                if self._kept.get(model) != dialect:
                    await ledger.remember_dialect(self.endpoint.name, model, asdict(dialect))


def pair_of(todo: Todo, evidence: dict[str, Evidence]) -> Pair:
    behind = tuple(evidence[id] for id in todo.behind if id in evidence)
    return Pair(evidence[todo.later], evidence[todo.earlier], todo.task, todo.ask, behind)


def _only_all(some: Iterable[Todo], answers: dict[Todo, Answer]) -> dict[Todo, Answer]:
    """A RESTORES answers every verdict against its item: it counts only when all successors agree."""
    split = {
        todo.earlier
        for todo in some
        if todo.ask == "restore" and (todo not in answers or answers[todo].says != "restores")
    }
    return {
        todo: replace(answer, says="compatible")
        if todo.ask == "restore" and todo.earlier in split and answer.says == "restores"
        else answer
        for todo, answer in answers.items()
    }


def _rests_on(judged: dict[str, gates.Judged], id: str) -> set[str]:
    """The items that an item's premises are held by, however far."""
    found: set[str] = set()
    level = [id]
    while level:
        one = judged.get(level.pop())
        for premise in one.premises if one else ():
            holder = judged[premise].current if premise in judged else None
            if holder is not None and holder not in found:
                found.add(holder)
                level.append(holder)
    return found


def _spent(usage: Usage, before: Usage) -> dict[str, int]:
    return {
        name: getattr(usage, name) - getattr(before, name) for name in ("calls", "retries", "tokens_in", "tokens_out")
    }


async def pinned(ledger: Ledger) -> gates.Clocks:
    """This moment and the latest epoch, read under the workspace's lock."""
    now = ledger.now()

    async def pin(tx: Tx) -> tuple[int, int]:
        locked = await lock(tx, ledger.workspace)
        return int(locked["epoch"]), max(now, locked["recorded_at"] or locked["created_at"])

    epoch, moment = await ledger.graph.under_lock(pin)
    return gates.Clocks(moment, epoch, moment, epoch)


__all__ = ["BUDGET", "Invalidation", "Plan", "Todo", "pinned"]
