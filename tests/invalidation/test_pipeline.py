"""Returns verified on a stub endpoint: what is asked, what is written, and what the gates then say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.invalidation.stub import Stub, read_words, says, scripted, verdict
from tracegraph import Item, Receipt

pytestmark = pytest.mark.anyio
MOVED = says(("Riverside", "Sunrise", "invalidates"))


@pytest.mark.parametrize("strategy", ["premises", "pairs"])
async def test_a_later_event_takes_away_what_an_earlier_item_rests_on(team: Any, strategy: str) -> None:
    with Stub(scripted(MOVED)) as stub:
        t = await team(stub, strategy=strategy)
        await t.tell(pickup="Pickup at 8:00 from Sunrise.", meal="Dinner is vegetarian.")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(hotel="We moved to Riverside.")
        result = await t.ws.admit(ticket, principal="a")
    assert result.rejected == {"pickup": ("invalidated",)}
    assert {item.id for item in result.items} == {"hotel", "meal"}
    assert result.verification == "verified"
    assert (result.pairs.proposed, result.pairs.judged, result.pairs.unjudged) == (2, 2, 0)
    assert (result.pairs.invalidated, result.pairs.cleared) == (1, 1)
    (edge,) = await t.edges("INVALIDATES")
    assert (edge["later"], edge["earlier"], edge["quote"]) == ("hotel", "pickup", "We moved to Riverside.")
    assert edge["model"] == "judge-1"
    assert edge["tokens"] == edge["tokens_in"] + edge["tokens_out"] > 0
    assert (edge["calls"], edge["retries"]) == (1, 0)
    assert len(stub.of("verify")) == 2


async def test_the_second_and_the_third_agent_pay_nothing(team: Any) -> None:
    with Stub(scripted(MOVED)) as stub:
        t = await team(stub)
        await t.tell(pickup="Pickup at 8:00 from Sunrise.", meal="Dinner is vegetarian.")
        tickets = {who: await t.ws.depart(principal=who, role="worker", task=f"plan {who}") for who in "abc"}
        await t.tell(hotel="We moved to Riverside.")
        first = await t.ws.admit(tickets["a"], principal="a")
        stub.clear()
        others = [await t.ws.admit(tickets[who], principal=who) for who in "bc"]
    assert first.pairs.calls == 5
    assert stub.asked == []
    for other in others:
        assert other.rejected == first.rejected
        assert (other.pairs.calls, other.pairs.judged, other.pairs.reused) == (0, 0, 2)


async def test_after_a_sweep_a_return_makes_no_call(team: Any) -> None:
    with Stub(scripted(MOVED, read=read_words)) as stub:
        t = await team(stub)
        await t.tell(pickup="Pickup at 8:00 from Sunrise hotel.", meal="Dinner is vegetarian.")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(hotel="The hotel pickup moved to Riverside.")
        plan = await t.ws.sweep_plan()
        assert (plan.items, plan.scan_calls, stub.asked) == (3, 3, [])
        seen: list[tuple[str, int, int]] = []
        swept = await t.ws.sweep(progress=lambda stage, done, total, usage: seen.append((stage, done, total)))
        assert seen[-1] == ("verify", 1, 1)
        assert swept.invalidated == 1
        stub.clear()
        again = await t.ws.sweep()
        result = await t.ws.admit(ticket, principal="a")
        assert (again.calls, result.pairs.calls, stub.asked) == (0, 0, [])
        assert result.rejected == {"pickup": ("invalidated",)}
        await t.tell(bus="The bus stops at nine.")
        more = await t.ws.sweep_plan()
        assert (more.items, more.scan_calls) == (1, 1)


async def test_an_unclean_answer_is_unverified_with_its_cause(team: Any) -> None:
    from tests.invalidation.stub import Reply

    odd: dict[str, Any] = {
        "json": "invalidates!",
        "schema": lambda asked: verdict(asked, "invalidates", extra=1),
        "quote": lambda asked: verdict(asked, "invalidates", quote="never said"),
        "confidence": lambda asked: verdict(asked, "invalidates", confidence=0.64),
        "wrong_pair": lambda asked: {**verdict(asked, "invalidates"), "pair": "another"},
        "undecided": lambda asked: verdict(asked, "uncertain"),
        "refusal": Reply(None, refusal="I cannot help with that."),
        "cut_off": Reply('{"pair": "', finish="length"),
        "empty": Reply(""),
        "response": Reply(raw=b"<html>gateway</html>"),
    }

    def judge(asked: Any) -> Any:
        found = odd[asked.data["earlier"]["about"]]
        return found(asked) if callable(found) else found

    with Stub(scripted(judge)) as stub:
        t = await team(stub)
        await t.tell(**{name: f"The {name} statement." for name in odd}, fine="The last statement.")
        odd["fine"] = lambda asked: verdict(asked, "compatible")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(event="Something happened.")
        result = await t.ws.admit(ticket, principal="a")
        causes = {row["earlier"]: row["cause"] for row in await t.edges("UNVERIFIED")}
        assert causes == {name: name for name in odd if name != "fine"}
        assert result.rejected == {name: ("unverified",) for name in odd if name != "fine"}
        assert (result.pairs.judged, result.pairs.unverified, result.pairs.cleared) == (11, 10, 1)
        stub.clear()
        again = await t.ws.admit(await t.ws.depart(principal="a", role="worker", task="plan"), principal="a")
        assert stub.asked == []
        assert set(again.rejected) == set(result.rejected)


async def test_what_the_endpoint_failed_to_say_is_asked_again(team: Any) -> None:
    from tests.invalidation.stub import Reply, error

    down = True

    def judge(asked: Any) -> Any:
        if down:
            which = asked.data["earlier"]["about"]
            return error(503, "overloaded") if which == "one" else Reply("{}", delay=1.0)
        return verdict(asked, "compatible")

    with Stub(scripted(judge)) as stub:
        t = await team(stub, timeout=0.3, deadline=0.8, retries=0)
        await t.tell(one="The first.", two="The second.")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(event="Something happened.")
        result = await t.ws.admit(ticket, principal="a")
        causes = {row["earlier"]: row["cause"] for row in await t.edges("UNVERIFIED")}
        assert causes == {"one": "unavailable", "two": "timeout"}
        assert result.rejected == {"one": ("unverified",), "two": ("unverified",)}
        assert (result.pairs.judged, result.pairs.unjudged) == (0, 2)
        down = False
        again = await t.ws.admit(await t.ws.depart(principal="a", role="worker", task="plan"), principal="a")
        assert (again.pairs.judged, again.rejected) == (2, {})


async def test_a_rate_limit_is_waited_out(team: Any) -> None:
    import time

    from tests.invalidation.stub import error

    at: list[float] = []

    def judge(asked: Any) -> Any:
        at.append(time.monotonic())
        return error(429, "slow down", Retry_After="1") if len(at) == 1 else verdict(asked, "compatible")

    with Stub(scripted(judge)) as stub:
        t = await team(stub)
        await t.tell(one="The first.")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(event="Something happened.")
        result = await t.ws.admit(ticket, principal="a")
    assert result.pairs.cleared == 1
    assert at[1] - at[0] >= 1
    (edge,) = await t.edges("CLEARED")
    assert (edge["retries"], edge["calls"]) == (1, 1)
    assert edge["milliseconds"] >= 1000
    assert result.pairs.retries == 1


async def test_a_stream_cut_in_the_middle_is_tried_again_and_then_given_up(team: Any) -> None:
    from tests.invalidation.stub import Reply

    cut: list[int] = []

    def judge(asked: Any) -> Any:
        good = verdict(asked, "compatible")
        if asked.data["earlier"]["about"] == "never" or not cut:
            cut.append(1)
            return Reply(raw=b'{"id": "chatcmpl-1", "choices": [' + b" " * 400, cut=True)
        return good

    with Stub(scripted(judge)) as stub:
        t = await team(stub, retries=1, concurrency=1)
        await t.tell(first="The first.", never="The second.")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(event="Something happened.")
        result = await t.ws.admit(ticket, principal="a")
    assert result.rejected == {"never": ("unverified",)}
    assert [row["cause"] for row in await t.edges("UNVERIFIED")] == ["unavailable"]


@pytest.mark.parametrize(("strategy", "budget"), [("premises", 4_000), ("pairs", 1_600)])
async def test_what_the_budget_leaves_is_not_admitted_and_judged_later(team: Any, strategy: str, budget: int) -> None:
    with Stub(scripted(MOVED)) as stub:
        t = await team(stub, budget=budget, strategy=strategy, concurrency=1)
        await t.tell(**{f"i{n}": f"Statement number {n}." for n in range(4)})
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(hotel="We moved to Riverside.")
        first = await t.ws.admit(ticket, principal="a")
        assert first.pairs.unjudged > 0
        assert first.pairs.tokens_in + first.pairs.tokens_out <= budget
        open_ = {id for id, reasons in first.rejected.items() if reasons == ("unverified",)}
        assert len(open_) + len(first.items) == 5
        assert open_
        for who in "bcabcabc":
            last = await t.ws.join(principal=who, role="worker", task="plan")
            if not last.rejected:
                break
    assert last.rejected == {}
    assert len({(one.data["later"]["about"], one.data["earlier"]["about"]) for one in stub.of("verify")}) == len(
        stub.of("verify")
    )


def proven(id: str, content: str, **fields: Any) -> Item:
    return Item(**{"id": id, "scope": "s", "content": content, "receipts": [Receipt(uri="m", text=content)], **fields})


async def test_explicit_evidence_is_never_asked_about(team: Any) -> None:
    with Stub(scripted()) as stub:
        t = await team(stub)
        await t.tell(base="The base.", gone="To be revoked.", old="To be superseded.")
        await t.tell(hidden=proven("hidden", "Hidden.", scope="secret"), key1=proven("key1", "One.", key="k"))
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.ws.revoke("gone")
        await t.ws.record(proven("new", "New.", supersedes=["old"]))
        await t.ws.record(proven("key2", "Two.", key="k"))
        await t.ws.record(proven("derived", "It follows.", derived_from=["base"]))
        await t.ws.record(Item(id="rumour", scope="s", content="Unproven."))
        await t.ws.admit(ticket, principal="a")
    told = [(one.data["later"]["statement"], one.data["earlier"]["statement"]) for one in stub.of("verify")]
    assert sorted(told) == [
        ("It follows.", "New."),
        ("It follows.", "Two."),
        ("New.", "The base."),
        ("Two.", "New."),
        ("Two.", "The base."),
    ]
    assert not any("Hidden" in one.user for one in stub.asked)


async def test_a_policy_of_none_asks_nothing_and_says_so(team: Any) -> None:
    with Stub(scripted(MOVED)) as stub:
        t = await team(stub, policy={"verification": "none"})
        await t.tell(pickup="Pickup at 8:00 from Sunrise.")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(hotel="We moved to Riverside.")
        result = await t.ws.admit(ticket, principal="a")
    assert (result.verification, result.pairs, stub.asked, result.rejected) == ("not_checked", None, [], {})


async def test_best_effort_reports_what_is_open_and_admits_it(team: Any) -> None:
    with Stub(scripted(lambda asked: verdict(asked, "uncertain"))) as stub:
        t = await team(stub, policy={"verification": "best_effort"})
        await t.tell(pickup="Pickup at 8:00 from Sunrise.")
        ticket = await t.ws.depart(principal="a", role="worker", task="plan")
        await t.tell(hotel="We moved to Riverside.")
        result = await t.ws.admit(ticket, principal="a")
        view = await t.ws.open_view(result.view, principal="a")
    assert (result.verification, result.rejected, result.pairs.unverified) == ("best_effort", {}, 1)
    assert view.verification == "best_effort"
    assert view.pairs == result.pairs.counts()
    assert view.pairs["proposed"] == 1


async def test_the_default_is_required_with_a_verifier_and_none_without(team: Any) -> None:
    with Stub(scripted()) as stub:
        assert (await (await team(stub)).ws.policy()).verification == "required"
    plain = await team()
    assert (await plain.ws.policy()).verification == "none"
    assert (await plain.ws.join(principal="a", role="worker", task="t")).verification == "not_checked"


async def test_a_preview_asks_nothing(team: Any) -> None:
    with Stub(scripted()) as stub:
        t = await team(stub)
        await t.tell(one="The first.", two="The second.")
        result = await t.ws.join(principal="a", role="worker", task="t", as_of=t.now())
    assert (stub.asked, result.verification) == ([], "not_checked")
