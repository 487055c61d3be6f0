"""Plays StateBench timelines as work state and scores what each policy admits, without a model.

    scores = await evaluate(graph, load([Path("dev.jsonl")]), ["trace", "latest"])

`Timeline` is all a policy can know of a timeline, `Labels` all that scoring can; both are read from one line
and meet in `evaluate` alone. `work_state` maps a timeline to statements, the same for every policy; `trace`
plays them through the product, `written` answers for the policies that need none.

The mapping follows the meaning of StateBench's fields and of the marks that begin its values:

- Work state is what was written to the layers `persistent_facts`, `working_set` and `environment`. Turns of
  conversation are transcript, not state, for every policy alike. Who asks becomes principal and role,
  `environment.now` the clock's start.
- A layer is a scope. A value marked `[RESTRICTED: … restricted to GROUP]` has a scope of its own, which only
  a role named GROUP may read: the data grants it to nobody else, and the default is to deny.
- A working set entry marked `[SCOPE: X]`, and a write whose scope is not global or project, is for that task
  alone. A query names no task, so it is asked in another.
- `supersedes` names an id or a key: the newest earlier statement so called. Layer and key are the identity.
- A superseding value marked `[INVALIDATED …]` puts nothing in the place of what it supersedes: a revocation.
- Each event is a batch at its `ts`. The asker departs after the initial state and returns with each query.

The 1.0 release holds no expiry, and every `depends_on` is empty. `is_valid` and `superseded_by` are not read:
they may tell the future.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import anyio
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tracegraph.graph import Graph
from tracegraph.model import Act, Grant, Item, Receipt, Revoke, micros, new_id
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace
from tracegraph.write import commit

PolicyName = Literal["trace", "static", "latest", "reset"]
POLICIES: tuple[PolicyName, ...] = ("trace", "static", "latest", "reset")
"""tracegraph's admitted context; all that was ever written; the newest per layer and key; nothing."""

LAYERS = ("persistent_facts", "working_set", "environment")
TASK = "answer"
AT_ONCE = 4
"""Timelines played at a time."""

Read = TypeVar("Read", bound=BaseModel)


# --- what a policy may know -------------------------------------------------------------------------------


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


Ts = Annotated[datetime, AfterValidator(_utc)]


class _Part(BaseModel):
    """A part of a line: the fields it names, and nothing else of what is there."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Source(_Part):
    type: str = "system"
    authority: str = "system"


class Write(_Part):
    id: str
    key: str
    value: str
    source: Source = Source()
    layer: Literal["persistent_facts", "working_set", "environment"] = "persistent_facts"
    scope: str = "global"
    supersedes: str | None = None
    depends_on: tuple[str, ...] = ()
    is_constraint: bool = False


class InitialFact(Write):
    ts: Ts


class Entry(_Part):
    content: str
    ts: Ts


class Environment(_Part):
    """The time, and what else is known of the world, by name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str] = Field(init=False)
    now: Ts


class InitialState(_Part):
    persistent_facts: tuple[InitialFact, ...]
    working_set: tuple[Entry, ...]
    environment: Environment


class User(_Part):
    id: str
    role: str


class Actors(_Part):
    user: User


class Event(_Part):
    type: Literal["conversation_turn", "state_write", "supersession", "query"]
    ts: Ts
    writes: tuple[Write, ...] = ()


class Timeline(_Part):
    """A timeline without its answers, and without its id, which tells the track."""

    actors: Actors
    initial_state: InitialState
    events: tuple[Event, ...]


# --- what only scoring may know ---------------------------------------------------------------------------


class GroundTruth(_Part):
    must_mention: tuple[str, ...]
    must_not_mention: tuple[str, ...]


class LabelledEvent(_Part):
    ts: Ts
    ground_truth: GroundTruth | None = None


class Labels(_Part):
    """A timeline's track and answers."""

    track: str
    events: tuple[LabelledEvent, ...]

    def queries(self) -> list[GroundTruth]:
        """The answers in the order in which the queries are asked."""
        return [one.ground_truth for one in sorted(self.events, key=lambda one: one.ts) if one.ground_truth]


class MalformedTimelineError(Exception):
    """A line of a file is no timeline of StateBench 1.0; says which."""


def load(paths: Sequence[Path], limit: int | None = None) -> list[tuple[Timeline, Labels]]:
    """The first `limit` timelines of the files. Raises `MalformedTimelineError` and OSError."""
    found: list[tuple[Timeline, Labels]] = []
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if limit is not None and len(found) >= limit:
                    return found
                where = f"{path}:{number}"
                found.append((_parse(Timeline, line, where), _parse(Labels, line, where)))
    return found


def _parse(kind: type[Read], line: str, where: str) -> Read:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "line"
        raise MalformedTimelineError(f"{where}: {path}: {first['msg']}") from None


# --- the mapping ------------------------------------------------------------------------------------------

_RESTRICTED = re.compile(r"\[RESTRICTED: .* restricted to ([^\]]+)\]")
_SCOPE = re.compile(r"\[SCOPE: ([^\]]+)\]")
_INVALIDATED = re.compile(r"\[INVALIDATED\b")


@dataclass(frozen=True)
class Statement:
    """One thing written, as every policy is given it."""

    id: str
    at: datetime
    layer: str
    key: str
    content: str
    act: Item | Revoke
    """What is recorded for it."""


@dataclass(frozen=True)
class Query:
    """A moment at which the asker wants an answer."""

    at: datetime


@dataclass(frozen=True)
class WorkState:
    """What stood at the start, then events and queries in the order of time."""

    asker: User
    start: datetime
    initial: tuple[Statement, ...]
    steps: tuple[tuple[Statement, ...] | Query, ...]


def work_state(timeline: Timeline) -> WorkState:
    """The statements and queries of a timeline, in the order in which they are recorded and asked."""
    initial, mapping = timeline.initial_state, _Mapping()
    start = initial.environment.now
    first = [mapping.statement(fact, fact.ts) for fact in initial.persistent_facts]
    for name, words in initial.environment.__pydantic_extra__.items():
        note = Write(id=name, key=name, value=words, layer="environment")
        first.append(mapping.statement(note, start))
    for number, entry in enumerate(initial.working_set):
        marked, name = _SCOPE.match(entry.content), f"entry-{number}"
        scope = marked[1] if marked else "global"
        note = Write(id=name, key=name, value=entry.content, layer="working_set", scope=scope)
        first.append(mapping.statement(note, entry.ts))
    steps: list[tuple[Statement, ...] | Query] = []
    for event in sorted(timeline.events, key=lambda one: one.ts):
        if event.type == "query":
            steps.append(Query(event.ts))
        elif event.writes:
            steps.append(tuple(mapping.statement(write, event.ts) for write in event.writes))
    return WorkState(timeline.actors.user, start, tuple(first), tuple(steps))


class _Mapping:
    """Turns writes into statements, in the order of recording."""

    def __init__(self) -> None:
        self.count = 0
        self.newest: dict[str, str] = {}
        """An id or a key to the newest item so called."""

    def statement(self, write: Write, at: datetime) -> Statement:
        self.count += 1
        id = f"s{self.count}"
        replaced = self._named([write.supersedes] if write.supersedes else [])
        act: Item | Revoke
        if replaced and _INVALIDATED.match(write.value):
            act = Revoke(target=replaced[0], reason=write.value, effective_from=at)
        else:
            restricted, source = _RESTRICTED.match(write.value), write.source
            receipt = Receipt(
                uri=f"statebench:{id}",
                text=write.value,
                issuer=source.type,
                origin=source.authority,
                observed_at=at,
            )
            act = Item(
                id=id,
                key=write.key,
                kind="constraint" if write.is_constraint else "fact",
                scope=_restricted_to(restricted[1]) if restricted else write.layer,
                content=write.value,
                task=None if write.scope in ("global", "project") else write.scope,
                valid_from=at,
                supersedes=replaced,
                depends_on=self._named(write.depends_on),
                receipts=[receipt],
            )
            self.newest[write.id] = self.newest[write.key] = id
        return Statement(id, at, write.layer, write.key, write.value, act)

    def _named(self, names: Iterable[str]) -> list[str]:
        return [self.newest[name] for name in names if name in self.newest]


def _restricted_to(group: str) -> str:
    return f"restricted to {group}"


# --- the policies -----------------------------------------------------------------------------------------


def written(state: WorkState, policy: PolicyName) -> list[list[str]]:
    """Each query's context under a policy that needs no product: the contents it gives."""
    so_far = list(state.initial)
    contexts = []
    for step in state.steps:
        if not isinstance(step, Query):
            so_far += step
        elif policy == "static":
            contexts.append([one.content for one in so_far])
        elif policy == "latest":
            by_time = sorted(so_far, key=lambda one: one.at)
            contexts.append(list({(one.layer, one.key): one.content for one in by_time}.values()))
        else:
            contexts.append([])
    return contexts


async def trace(graph: Graph, state: WorkState, keys: Keys) -> list[list[str]]:
    """Each query's context as tracegraph admits it, from a workspace of its own, deleted afterwards."""
    now, workspace = state.start, new_id("statebench")
    who, role = state.asker.id, state.asker.role
    contexts = []
    try:
        ws = await open_workspace(
            graph,
            workspace,
            owner="statebench",
            clock=lambda: now,
            policy={"verification": "none"},
            keys=keys,
        )
        opening: list[Act] = [Grant(role=role, principal=who)]
        opening += [Grant(role=role, read=(*LAYERS, _restricted_to(role)))]
        opening += [one.act for one in state.initial]
        await commit(graph, workspace, opening, author=None, now=micros(now))
        ticket = await ws.depart(principal=who, role=role, task=TASK)
        for step in state.steps:
            if isinstance(step, Query):
                now = max(now, step.at)
                result = await ws.admit(ticket, principal=who)
                contexts.append([item.content for item in result.items])
                if step is not state.steps[-1]:
                    ticket = await ws.depart(principal=who, role=role, task=TASK)
            else:
                now = max(now, step[0].at)
                await commit(graph, workspace, [one.act for one in step], author=None, now=micros(now))
    finally:
        with anyio.CancelScope(shield=True):
            await forget(graph, workspace)
    return contexts


# --- scoring ----------------------------------------------------------------------------------------------

_PARAPHRASES = (("do not", "don't"), ("cannot", "can't"), ("should not", "shouldn't"))


def contains(text: str, phrase: str) -> bool:
    """StateBench's deterministic rule (EVALUATION.md, `contains_phrase`)."""
    if phrase.startswith("regex:"):
        return re.search(phrase.removeprefix("regex:"), text, re.IGNORECASE) is not None
    text, phrase = text.lower(), phrase.lower()
    return (
        phrase in text
        or ("|" in phrase and any(option.strip() in text for option in phrase.split("|")))
        or any(
            one in phrase and phrase.replace(one, other) in text
            for long, short in _PARAPHRASES
            for one, other in ((long, short), (short, long))
        )
    )


def _holds(context: Sequence[str], phrases: Sequence[str]) -> list[bool]:
    text = "\n".join(context)
    return [contains(text, phrase) for phrase in phrases]


@dataclass
class Score:
    """The counts of one track, or of all."""

    queries: int = 0
    with_must: int = 0
    """Queries that have a must-mention phrase."""
    with_must_not: int = 0
    """Queries that have a must-not-mention phrase."""
    stated: int = 0
    """Of `with_must`: every must-mention phrase occurs in something written by then."""
    decidable: int = 0
    """Of `with_must`: every must-mention phrase occurs in something written by then that holds no phrase that
    must not be, so that some choice among the statements is a right context."""
    policies: dict[PolicyName, Counter[str]] = field(default_factory=dict)
    """Queries whose context holds every must-mention phrase (`must`), one that must not be (`must_not`), and
    decidable ones whose context does the first and not the second (`right`)."""

    def count(self, truth: GroundTruth, stated: Sequence[str], contexts: Mapping[PolicyName, Sequence[str]]) -> None:
        must, must_not = truth.must_mention, truth.must_not_mention
        clean = [one for one in stated if not any(_holds([one], must_not))]
        decidable = bool(must) and all(_holds(clean, must))
        self.queries += 1
        self.with_must += bool(must)
        self.with_must_not += bool(must_not)
        self.stated += bool(must) and all(_holds(stated, must))
        self.decidable += decidable
        for policy, context in contexts.items():
            every, forbidden = bool(must) and all(_holds(context, must)), any(_holds(context, must_not))
            counts = self.policies.setdefault(policy, Counter())
            counts.update(must=every, must_not=forbidden, right=decidable and every and not forbidden)

    def shares(self, policy: PolicyName) -> dict[str, float | None]:
        """The policy's shares, in [0, 1], of the queries each concerns; None where there are none."""
        of = {"must": self.with_must, "must_not": self.with_must_not, "right": self.decidable}
        return {name: self.policies[policy][name] / all_ if all_ else None for name, all_ in of.items()}


async def evaluate(
    graph: Graph | None,
    timelines: Sequence[tuple[Timeline, Labels]],
    policies: Sequence[PolicyName] = POLICIES,
    played: Callable[[int], None] = lambda _: None,
) -> dict[str, Score]:
    """The score of each track, and of `all`. Only `trace` needs the graph; `played` counts its timelines."""
    states = [work_state(timeline) for timeline, _ in timelines]
    traced = await _trace_all(graph, states, played) if graph is not None and "trace" in policies else {}
    scores: dict[str, Score] = {}
    for number, (state, (_, labels)) in enumerate(zip(states, timelines, strict=True)):
        contexts = {name: traced[number] if name == "trace" else written(state, name) for name in policies}
        stated = written(state, "static")
        for query, truth in enumerate(labels.queries()):
            given = {name: contexts[name][query] for name in policies}
            for track in (labels.track, "all"):
                scores.setdefault(track, Score()).count(truth, stated[query], given)
    return {track: scores[track] for track in sorted(scores, key=lambda track: (track == "all", track))}


async def _trace_all(
    graph: Graph, states: Sequence[WorkState], played: Callable[[int], None]
) -> dict[int, list[list[str]]]:
    found: dict[int, list[list[str]]] = {}
    turn = anyio.CapacityLimiter(AT_ONCE)

    async def play(number: int, keys: Keys) -> None:
        async with turn:
            found[number] = await trace(graph, states[number], keys)
        played(1)

    with tempfile.TemporaryDirectory(prefix="tracegraph-statebench-") as folder:
        try:
            async with anyio.create_task_group() as group:
                for number in range(len(states)):
                    group.start_soon(play, number, Keys(Path(folder)))
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
    return found


def as_json(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Each track's counts, and each policy's shares."""
    counts = ("queries", "with_must", "with_must_not", "stated", "decidable")
    return {
        track: {name: getattr(score, name) for name in counts}
        | {"policies": {policy: score.shares(policy) for policy in score.policies}}
        for track, score in scores.items()
    }


def as_lines(scores: Mapping[str, Score]) -> list[str]:
    """The scores as a table for a person, in percent."""
    policies = list(next(iter(scores.values())).policies) if scores else []
    head = f"{'track':24}{'queries':>8}{'stated':>8}{'decidable':>11}"
    lines = [
        head + "".join(f"{name:>20}" for name in policies),
        " " * len(head) + f"{'must   not right':>20}" * len(policies),
    ]
    for track, score in scores.items():
        line = f"{track:24}{score.queries:>8}{score.stated:>8}{score.decidable:>11}  "
        for policy in policies:
            shares = score.shares(policy).values()
            line += "  " + "".join("     –" if one is None else f"{100 * one:6.1f}" for one in shares)
        lines.append(line)
    return [
        *lines,
        "stated: every must-mention phrase occurs in something written by then; decidable: in something that",
        "holds no must-not-mention phrase. must: the context holds every must-mention phrase; not: it holds",
        "a must-not-mention phrase; both in percent of the queries that have one. right: the first and not",
        "the second, in percent of the decidable queries.",
    ]
