"""The cover against an exact solver and against the plain rule it is a fast form of."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracegraph.admission.cover import cover, fill, meets, relevance
from tracegraph.admission.gates import Judged
from tracegraph.model import Policy


def item(
    id: str,
    *,
    kind: str = "fact",
    length: int = 1,
    supports: tuple[str, ...] = (),
    requires: tuple[tuple[str, bool], ...] = (),
    reasons: tuple[str, ...] = (),
    obligation: str | None = None,
    valid_from: int = 0,
    epoch: int = 1,
) -> Judged:
    return Judged(
        id=id,
        reasons=set(reasons),
        current=id,
        content_digest="",
        premises=[],
        sources=[],
        kind=kind,
        length=length,
        valid_from=valid_from,
        epoch=epoch,
        place=0,
        task=None,
        receipts=1,
        supports=list(supports),
        requires=list(requires),
        obligation=obligation,
    )


def pool(*items: Judged) -> dict[str, Judged]:
    return {one.id: one for one in items}


def owed(id: str, *requires: str) -> tuple[Judged, Judged]:
    needs = tuple((name.rstrip("!"), name.endswith("!")) for name in requires)
    return (
        item(id, kind="obligation", requires=needs),
        item(f"f-{id}", kind="frontier", obligation=id),
    )


NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def pools(draw: st.DrawFn) -> tuple[dict[str, Judged], Policy]:
    items: list[Judged] = []
    for number in range(draw(st.integers(1, 3))):
        needs = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
        items += owed(f"o{number}", *(name + draw(st.sampled_from(["", "!"])) for name in needs))
    for number in range(draw(st.integers(0, 7))):
        supports = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
        items.append(
            item(
                f"i{number}",
                length=draw(st.integers(1, 6)),
                supports=tuple(supports),
                valid_from=draw(st.integers(0, 2)),
                reasons=draw(st.sampled_from([(), (), ("superseded",)])),
            )
        )
    policy = Policy(max_items=draw(st.integers(2, 10)), max_chars=draw(st.integers(2, 25)), fill="none")
    return pool(*items), policy


def plainly(found: dict[str, Judged], policy: Policy) -> list[str] | None:
    """DESIGN §9 step 3 as it is written: every candidate looked at anew in each round, with exact fractions."""
    open_ = [one for one in found.values() if one.kind == "obligation"]
    mandatory = [one for one in found.values() if one.kind in ("obligation", "frontier")]
    items, chars = policy.max_items - len(mandatory), policy.max_chars - sum(one.length for one in mandatory)
    if items < 0 or chars < 0:
        return None
    weight = {name: 1 for one in open_ for name, _ in one.requires}
    weight |= {name: 2 for one in open_ for name, critical in one.requires if critical}
    taken: list[str] = []
    while True:
        best = None
        for one in found.values():
            if one.kind != "fact" or one.reasons or one.id in taken or one.length > chars or items < 1:
                continue
            gain = sum(weight.get(name, 0) for name in one.supports)
            rank = (-Fraction(gain, max(1, one.length)), one.length, -one.valid_from, one.id)
            if gain and (best is None or rank < best):
                best = rank
        if best is None:
            return taken
        one = found[best[3]]
        taken.append(one.id)
        items, chars = items - 1, chars - one.length
        weight = {name: value for name, value in weight.items() if name not in one.supports}


@given(pools())
def test_the_heap_takes_what_the_plain_rule_takes_in_the_same_order(case: tuple[dict[str, Judged], Policy]) -> None:
    found, policy = case
    wanted = plainly(found, policy)
    got = cover(found, policy)
    if wanted is None:
        assert got.selected == {}
        assert all("mandatory_over_budget" in reasons for reasons in got.reasons.values())
    else:
        assert [id for id, why in got.selected.items() if why == "cover"] == wanted


@given(pools())
def test_no_selection_within_the_budgets_covers_what_the_cover_calls_impossible(
    case: tuple[dict[str, Judged], Policy],
) -> None:
    found, policy = case
    got = cover(found, policy)
    facts = [one for one in found.values() if one.kind == "fact" and not one.reasons]
    reachable = {name for one in facts for name in one.supports}
    needed = {name for one in found.values() for name, _ in one.requires}
    assert needed - reachable <= set(got.uncovered)
    chosen = [found[id] for id in got.selected]
    assert len(chosen) <= policy.max_items
    assert sum(one.length for one in chosen) <= policy.max_chars
    if got.coverage == 1:
        mandatory = [one for one in chosen if one.kind != "fact"]
        assert any(
            needed <= {name for one in some for name in one.supports}
            and len(some) + len(mandatory) <= policy.max_items
            and sum(one.length for one in (*some, *mandatory)) <= policy.max_chars
            for size in range(len(facts) + 1)
            for some in itertools.combinations(facts, size)
        )


def test_ratios_that_floats_cannot_tell_apart_are_told_apart() -> None:
    # 1/65535 and 2/131070 would be equal; 65535/65536-like neighbours must not be.
    close = pool(
        *owed("o", *[f"n{n}" for n in range(3)]),
        item("big", length=65_536, supports=("n0", "n1", "n2")),
        item("small", length=21_845, supports=("n0",)),
    )
    policy = Policy(max_chars=10**6)
    assert next(id for id, why in cover(close, policy).selected.items() if why == "cover") == "small"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (item("b", length=1, supports=("a",)), item("a", length=2, supports=("a", "b"))),
        (item("b", valid_from=5, supports=("a",)), item("a", valid_from=4, supports=("a",))),
        (item("a", supports=("a",)), item("b", supports=("a",))),
    ],
    ids=["lower cost", "later valid_from", "smaller id"],
)
def test_ties_go_by_cost_then_valid_from_then_id(first: Judged, second: Judged) -> None:
    got = cover(pool(*owed("o", "a", "b"), second, first), Policy(fill="none"))
    assert next(id for id, why in got.selected.items() if why == "cover") == first.id


def test_thresholds_are_the_decimals_they_were_written_as() -> None:
    assert meets(Fraction(1, 5), Fraction(3, 10), Policy(coverage=0.2, critical=0.3))
    assert not meets(Fraction(2, 3), Fraction(1), Policy(coverage=0.667))


def test_an_obligation_that_fails_another_gate_is_reported_and_takes_no_budget() -> None:
    obligation, frontier = owed("o", "a")
    obligation.reasons.add("over_item_budget")
    got = cover(pool(obligation, frontier, item("i", supports=("a",))), Policy(max_items=2))
    assert got.reasons == {"o": ["obligation_not_admissible"]}
    assert list(got.selected) == ["f-o", "i"]
    assert not got.complete


def test_filling_goes_by_recency_and_reports_what_is_left_out() -> None:
    found = pool(
        item("old", valid_from=1), item("new", valid_from=2), item("newer", valid_from=2, epoch=2), item("x", length=9)
    )
    policy = Policy(max_items=2, max_chars=5, fill="recency")
    got = cover(found, policy)
    fill(got, found, policy, {})
    assert list(got.selected) == ["newer", "new"]
    assert got.reasons == {"old": ["not_selected"], "x": ["not_selected"]}


def test_relevance_ranks_by_rare_shared_words_and_gives_nothing_to_strangers() -> None:
    scores = relevance("quiet hotel", {"a": "a quiet hotel", "b": "a hotel", "c": "a train", "d": "the hotel bar"})
    assert scores["a"] > scores["b"] > 0
    assert scores["c"] == 0
