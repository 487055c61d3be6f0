"""The cover: which eligible items satisfy the open obligations under the budgets (paper §3.4, C.3; DESIGN §9).

Pure: takes judged items, returns a selection. Gains are compared exactly, as integers multiplied across.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from tracegraph.admission.gates import Judged
from tracegraph.model import Policy

Why = Literal["obligation", "frontier", "cover", "fill"]


@dataclass
class Cover:
    """What was selected, in order of rank, how far it covers, and the selection's own reasons."""

    selected: dict[str, Why] = field(default_factory=dict)
    coverage: Fraction = Fraction(1)
    critical: Fraction = Fraction(1)
    uncovered: list[str] = field(default_factory=list)
    """Required dependencies that nothing selected supports."""
    uncovered_readable: list[str] = field(default_factory=list)
    """The same, of the obligations that the role may read."""
    reasons: dict[str, list[str]] = field(default_factory=dict)
    complete: bool = True
    """Whether nothing but coverage can keep the return from being admitted."""


def obligations(pool: Iterable[Judged]) -> list[Judged]:
    """O: the obligations that stand, whose purposes admit the return's and whose role is the returning one or none."""
    return [
        one
        for one in pool
        if one.kind == "obligation" and one.stands() and not one.reasons & {"wrong_purpose", "wrong_role"}
    ]


def covered(open_: Collection[Judged], supported: Collection[str]) -> tuple[Fraction, Fraction]:
    """Cov and Crit of a set that supports these dependencies; an empty denominator counts 1."""
    whole = sum(all(name in supported for name, _ in one.requires) for one in open_)
    needed = {name for one in open_ for name, critical in one.requires if critical}
    return (
        Fraction(whole, len(open_)) if open_ else Fraction(1),
        Fraction(sum(name in supported for name in needed), len(needed)) if needed else Fraction(1),
    )


def meets(coverage: Fraction, critical: Fraction, policy: Policy) -> bool:
    """Whether both shares reach the policy's thresholds, taken as the decimals they were written as."""
    return coverage >= Fraction(repr(policy.coverage)) and critical >= Fraction(repr(policy.critical))


def cover(pool: Mapping[str, Judged], policy: Policy) -> Cover:
    """Mandatory items, then the greedy cover. Filling is `fill`'s, once the return is admitted."""
    out = Cover()
    open_ = obligations(pool.values())
    ids = {one.id for one in open_}
    frontiers = [one for one in pool.values() if one.obligation in ids and one.eligible()]
    with_frontier = {one.obligation for one in frontiers}
    mandatory = [*sorted((one for one in open_ if one.eligible()), key=_order), *sorted(frontiers, key=_order)]
    for one in open_:
        if not one.eligible():
            out.reasons.setdefault(one.id, []).append("obligation_not_admissible")
        if one.id not in with_frontier:
            out.reasons.setdefault(one.id, []).append("missing_frontier")
    room = _Room(policy.max_items, policy.max_chars)
    if len(mandatory) > room.items or sum(one.length for one in mandatory) > room.chars:
        for one in mandatory:
            out.reasons.setdefault(one.id, []).append("mandatory_over_budget")
    else:
        for one in mandatory:
            room.take(one)
            out.selected[one.id] = "obligation" if one.kind == "obligation" else "frontier"
        _greedy(pool, open_, out, room)
    out.complete = not out.reasons
    supported = {name for id in out.selected for name in pool[id].supports}
    out.coverage, out.critical = covered(open_, supported)
    out.uncovered = _missing(open_, supported)
    out.uncovered_readable = _missing([one for one in open_ if one.readable()], supported)
    return out


def _missing(open_: Iterable[Judged], supported: Collection[str]) -> list[str]:
    return sorted({name for one in open_ for name, _ in one.requires} - set(supported))


def _order(one: Judged) -> tuple[int, str]:
    return -one.valid_from, one.id


@dataclass
class _Room:
    """What is left of the two budgets."""

    items: int
    chars: int

    def fits(self, one: Judged) -> bool:
        return self.items >= 1 and one.length <= self.chars

    def take(self, one: Judged) -> None:
        self.items -= 1
        self.chars -= one.length


def _greedy(pool: Mapping[str, Judged], open_: list[Judged], out: Cover, room: _Room) -> None:
    """Repeatedly the item that still fits with the greatest weight newly covered per character.

    A lazy heap: gains only fall as items are taken, so an entry that is still the greatest when recomputed is the
    greatest of all. An item that doesn't fit never will again, since the budgets only shrink.

    gain / cost is compared as the integer gain * 2**64 // cost. Costs are at most 2**16 (Limits.content), so two
    different ratios differ by at least 2**-32 and never share that integer; equal ones do.
    """
    weight: dict[str, int] = {}
    for one in open_:
        for name, critical in one.requires:
            weight[name] = max(weight.get(name, 0), 2 if critical else 1)

    def entry(one: Judged) -> tuple[int, int, int, str] | None:
        gain = sum(weight.get(name, 0) for name in one.supports)
        return (-((gain << 64) // max(1, one.length)), one.length, -one.valid_from, one.id) if gain else None

    candidates = [one for one in pool.values() if one.eligible() and one.id not in out.selected]
    heap = [first for one in candidates if (first := entry(one)) is not None]
    heapq.heapify(heap)
    while heap and weight:
        top = heapq.heappop(heap)
        one = pool[top[3]]
        if not room.fits(one) or (now := entry(one)) is None:
            continue
        if now != top:
            heapq.heappush(heap, now)
            continue
        room.take(one)
        out.selected[one.id] = "cover"
        for name in one.supports:
            weight.pop(name, None)


def fill(out: Cover, pool: Mapping[str, Judged], policy: Policy, scores: Mapping[str, float]) -> None:
    """Fill what an admitted view has left: by recency, by relevance (`scores`, then recency), or not at all."""
    rest = [one for one in pool.values() if one.eligible() and one.id not in out.selected]
    if policy.fill != "none":
        room = _Room(policy.max_items, policy.max_chars)
        for id in out.selected:
            room.take(pool[id])
        rest.sort(key=lambda one: (-scores.get(one.id, 0.0), -one.valid_from, -one.epoch, one.id))
        for one in rest:
            if room.fits(one):
                room.take(one)
                out.selected[one.id] = "fill"
    for one in rest:
        if one.id not in out.selected:
            out.reasons.setdefault(one.id, []).append("not_selected")


def relevance(query: str, texts: Mapping[str, str]) -> dict[str, float]:
    """BM25 (k1 1.2, b 0.75) of each text for the query, over these texts alone.

    Only eligible items are ranked and counted, so no score tells of an item the caller may not see.
    """
    words = {id: Counter(_words(text)) for id, text in texts.items()}
    mean = sum(count.total() for count in words.values()) / max(1, len(words)) or 1.0
    scores = dict.fromkeys(texts, 0.0)
    for term in set(_words(query)):
        having = sum(term in count for count in words.values())
        rarity = math.log(1 + (len(words) - having + 0.5) / (having + 0.5))
        for id, count in words.items():
            often = count[term]
            scores[id] += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * count.total() / mean))
    return scores


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
