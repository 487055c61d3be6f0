"""The values of the invalidation pipeline, and the two protocols that people bring their own of (DESIGN §8).

A `Scanner` proposes pairs (later, earlier), a `Verifier` judges each. Pure: no I/O, no prompt, no Cypher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from tracegraph.model import Says, digest, iso

if TYPE_CHECKING:
    from tracegraph.invalidation.ledger import Ledger
    from tracegraph.invalidation.prompts import Prompt

Ask = Literal["judge", "restore"]
Stage = Literal["read", "scan", "verify"]
Progress = Callable[[Stage, int, int, "Usage"], None]
"""Called with the stage, how many are done, how many there are, and what was spent so far."""

TRANSIENT = frozenset({"timeout", "rate_limited", "unavailable", "endpoint", "error"})
"""Causes that say nothing about the pair: it was not judged, and a later return asks again."""
UNSCANNED = "unscanned"
"""The cause on a PROPOSED edge that only says its target was not scanned; taken back once it is."""


@dataclass(frozen=True)
class Usage:
    """What calls cost: tokens as the endpoint counts them, retries of the client, wall time in seconds."""

    calls: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.retries + other.retries,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
        )

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def row(self) -> dict[str, int]:
        """As kept in the graph."""
        return {
            "calls": self.calls,
            "retries": self.retries,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "milliseconds": round(self.seconds * 1000),
        }


@dataclass(frozen=True)
class Evidence:
    """One item with the text of its receipts that are in force. Times in microseconds."""

    id: str
    key: str
    kind: str
    content: str
    digest: str
    task: str | None
    valid_from: int
    valid_to: int
    recorded_at: int
    receipts: tuple[str, ...] = ()

    def texts(self) -> Iterator[str]:
        """Where a quote may stand."""
        yield self.content
        yield from self.receipts

    def shown(self, room: int) -> dict[str, object]:
        """What a model reads of it: the statement whole, the receipts' text cut to `room` characters in all."""
        receipts: list[str] = []
        cut = False
        left = max(0, room - len(self.content))
        for text in self.receipts:
            if text != self.content:
                receipts.append(text[:left])
                cut |= len(text) > left
                left -= len(receipts[-1])
        shown: dict[str, object] = {
            "statement": self.content,
            "about": self.key,
            "kind": self.kind,
            "holds_from": iso(self.valid_from),
            "recorded_at": iso(self.recorded_at),
        }
        end = iso(self.valid_to)
        if end is not None:
            shown["holds_until"] = end
        if receipts:
            shown["receipts"] = [text for text in receipts if text]
        if cut:
            shown["receipts_cut"] = True
        return shown


@dataclass(frozen=True)
class Pair:
    """What a verifier judges: may `earlier` still be acted on for `task` once `later` is known?

    To `restore`, `behind` holds what had invalidated `earlier` and no longer stands; `later` took its place.
    """

    later: Evidence
    earlier: Evidence
    task: str | None
    ask: Ask = "judge"
    behind: tuple[Evidence, ...] = ()

    def key(self, prompt: str, model: str) -> str:
        """The pair's name in the graph and in every answer. No item's text can hold it: it hashes their digests."""
        return digest(
            {
                "later": self.later.digest,
                "earlier": self.earlier.digest,
                "task": self.task,
                "prompt": prompt,
                "model": model,
            }
        )


@dataclass(frozen=True)
class Answer:
    """A verifier's answer. `cause` says why it is uncertain."""

    says: Says
    confidence: float | None = None
    quote: str | None = None
    rationale: str | None = None
    cause: str | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def judged(self) -> bool:
        """False when the endpoint failed, so that the pair may be asked again."""
        return self.cause not in TRANSIENT


class Verifier(Protocol):
    """Judges one pair. Anything it cannot tell is `uncertain`; what it raises counts as that."""

    model: str

    def prompt(self, ask: Ask) -> str:
        """The digest of how it asks: another prompt judges anew."""
        ...

    async def verify(self, pair: Pair) -> Answer: ...


@dataclass(frozen=True)
class Placed:
    """Where an item is in time."""

    task: str | None
    valid_from: int
    epoch: int


@dataclass(frozen=True)
class Scope:
    """Which pairs are to be looked at: `later` may speak against `earlier`; one of the two is `fresh`.

    `fresh` None is all. A pair counts when its later item was recorded in a later epoch or holds from a later
    instant than its earlier one; what one batch says of one instant is not judged against itself, and the items of one
    task not against those of another.
    """

    task: str | None
    valid_at: int
    epoch: int
    placed: Mapping[str, Placed]
    later: frozenset[str]
    earlier: frozenset[str]
    invalidated: frozenset[str]
    """What would be in `earlier` had no verdict spoken against it."""
    fresh: frozenset[str] | None
    settled: Mapping[str, Set[str]] = field(default_factory=dict)
    """For each earlier item, the later ones that need no judgment."""

    def has(self, later: str, earlier: str) -> bool:
        """Whether the pair is one to look at."""
        if later == earlier or later not in self.later or earlier not in self.earlier:
            return False
        if self.fresh is not None and later not in self.fresh and earlier not in self.fresh:
            return False
        if later in self.settled.get(earlier, ()):
            return False
        one, other = self.placed[later], self.placed[earlier]
        if one.task is not None and other.task is not None and one.task != other.task:
            return False
        return one.epoch > other.epoch or one.valid_from > other.valid_from

    def laters(self, earlier: str) -> list[str]:
        """The later items of one target, in order of time."""
        among = self.later if self.fresh is None or earlier in self.fresh else self.later & self.fresh
        found = [id for id in among if self.has(id, earlier)]
        return sorted(found, key=lambda id: (self.placed[id].valid_from, self.placed[id].epoch, id))

    def task_of(self, later: str, earlier: str) -> str | None:
        """A pair is judged for the task its items belong to; for every task when they belong to none."""
        return self.placed[earlier].task or self.placed[later].task


@dataclass
class Scanned:
    """What a scan found: the pairs proposed, and for each target it could not finish one pair that says so."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    unscanned: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Request:
    """One question as a batch file carries it: what it is for (`ids`), and what is asked of which model."""

    key: str
    what: Literal["read", "scan", "judge", "restore"]
    ids: tuple[str, ...]
    task: str | None
    model: str
    prompt: Prompt
    data: Mapping[str, object]


class Scanner(Protocol):
    """Proposes pairs of a scope: broadly, since a missed pair cannot be mended and a false one costs a judgment."""

    model: str
    prompt: str
    """The digest of how it reads."""

    async def scan(self, scope: Scope, ledger: Ledger, meter: Meter, progress: Progress | None = None) -> Scanned: ...

    async def forecast(self, scope: Scope, ledger: Ledger) -> Forecast:
        """What `scan` would cost, without a call."""
        ...


@dataclass(frozen=True)
class Forecast:
    """What is left to do: calls and estimated tokens of the scan, and the pairs it can name already."""

    calls: int
    tokens: int
    pairs: tuple[tuple[str, str], ...]


class Meter:
    """The token budget of one return, and what was spent. None is no limit.

    Stops also after `patience` failures of the endpoint in a row: what is left counts as unjudged.
    """

    def __init__(self, budget: int | None, patience: int = 16) -> None:
        self.budget = budget
        self.patience = patience
        self.usage = Usage()
        self.stopped = False
        """Whether a call was refused its room: nothing more is asked."""
        self._reserved = 0
        self._failed = 0

    def reserve(self, tokens: int) -> bool:
        """Take room for a call, or say that there is none."""
        spent = self.usage.tokens + self._reserved
        if self._failed >= self.patience or (self.budget is not None and spent + tokens > self.budget):
            self.stopped = True
            return False
        self._reserved += tokens
        return True

    def settle(self, reserved: int, usage: Usage, *, failed: bool = False) -> None:
        """Put what a call used in place of what was reserved for it."""
        self._reserved -= reserved
        self.usage += usage
        self._failed = self._failed + 1 if failed else 0


def tokens_of(text: str) -> int:
    """An estimate from the UTF-8 length, for budgets and forecasts before the endpoint has counted."""
    return len(text.encode()) // 4 + 1
