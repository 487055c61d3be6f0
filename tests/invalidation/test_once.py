"""Each pair is judged once: by two processes at work, after a crash, in a batch; and what was undone is judged anew."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest

from tests.invalidation.conftest import pipeline
from tests.invalidation.stub import Reply, Stub, says, scripted, verdict
from tracegraph import Item, Receipt
from tracegraph.errors import TracegraphError
from tracegraph.invalidation.batch import BatchSweep
from tracegraph.invalidation.ledger import Ledger

pytestmark = pytest.mark.anyio
MOVED = says(("Riverside", "Sunrise", "invalidates"))

SWEEP = """
import asyncio, sys, tracegraph
from tests.invalidation.conftest import pipeline
from types import SimpleNamespace
async def main():
    async with tracegraph.connect() as graph:
        method = pipeline(SimpleNamespace(url=sys.argv[2]), lease=float(sys.argv[3]))
        ws = await graph.workspace(sys.argv[1], invalidation=method)
        print("at work", flush=True)
        print((await ws.sweep()).judged)
        await method.close()
asyncio.run(main())
"""


def asked_pairs(stub: Stub) -> list[tuple[str, str]]:
    return sorted((one.data["later"]["about"], one.data["earlier"]["about"]) for one in stub.of("verify"))


def process(workspace: str, stub: Stub, lease: float = 30.0) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SWEEP, workspace, stub.url, str(lease)], stdout=subprocess.PIPE, text=True
    )


async def test_two_processes_judge_each_pair_once(team: Any) -> None:
    slow = scripted(lambda asked: Reply(str(verdict(asked, "compatible")).replace("'", '"'), delay=0.02))
    with Stub(slow) as stub:
        t = await team(stub)
        await t.tell(**{f"i{n}": f"Statement number {n}." for n in range(7)})
        both = [process(t.ws.id, stub) for _ in range(2)]
        outs = [await anyio.to_thread.run_sync(one.communicate) for one in both]
        judged = [int(out.split()[-1]) for out, _ in outs]
        again = await t.ws.sweep()
    assert sum(judged) == 21
    assert len(asked_pairs(stub)) == len(set(asked_pairs(stub))) == 21
    assert len(stub.of("read")) == 7
    assert again.calls == 0


async def test_a_killed_process_blocks_nobody_for_long(team: Any) -> None:
    with Stub(scripted(lambda asked: Reply("{}", delay=3.0))) as stub:
        t = await team(stub, lease=1.0)
        await t.tell(one="The first.", two="The second.")
        killed = process(t.ws.id, stub, lease=1.0)
        with anyio.fail_after(60):
            while not stub.of("verify"):  # noqa: ASYNC110 - the stub is in another thread
                await anyio.sleep(0.05)
        killed.kill()
        killed.communicate()
        stub.script = scripted()
        stub.clear()
        result = await t.ws.sweep()
    assert result.cleared == 1
    assert len(stub.asked) == 1


async def test_what_was_read_before_a_crash_is_not_read_again(team: Any) -> None:
    def break_off(asked: Any) -> Any:
        raise KeyboardInterrupt

    with Stub(scripted()) as stub:
        t = await team(stub)
        await t.tell(one="The first.", two="The second.", three="The third.")

        def stop(stage: str, done: int, total: int, usage: Any) -> None:
            if stage == "read":
                raise RuntimeError("killed")

        with pytest.raises(RuntimeError):
            await t.ws.sweep(progress=stop)
        assert len(stub.of("read")) == 3
        result = await t.ws.sweep()
    assert len(stub.of("read")) == 3
    assert result.judged == 3


async def test_another_model_judges_anew_and_another_hand_is_heeded(team: Any) -> None:
    with Stub(scripted()) as stub:
        t = await team(stub)
        await t.tell(one="The first.", two="The second.")
        await t.ws.sweep()
        other = pipeline(stub, model="judge-2")
        result = await t.ws.sweep(invalidation=other)
        await other.close()
        assert result.judged == 1
        await t.tell(three="The third.")
        for earlier in ("one", "two"):
            await t.ws.verdict(later="three", earlier=earlier, says="compatible")
        stub.clear()
        await t.ws.sweep()
    assert stub.of("verify") == []


async def test_what_a_person_proposes_is_judged_and_what_one_withdraws_is_not_asked_again(team: Any) -> None:
    with Stub(scripted(lambda asked: verdict(asked, "invalidates"), read=lambda asked: {})) as stub:
        t = await team(stub)
        await t.tell(one="Apples.", two="Pears.")
        await t.ws.verdict(later="two", earlier="one", says="proposed")
        result = await t.ws.join(principal="a", role="worker", task="t")
        assert result.rejected == {"one": ("invalidated",)}
        (edge,) = await t.edges("INVALIDATES")
        await t.ws.withdraw(edge["id"])
        stub.clear()
        again = await t.ws.join(principal="a", role="worker", task="t")
        assert (again.rejected, stub.asked) == ({"one": ("unverified",)}, [])
        await t.ws.verdict(later="two", earlier="one", says="compatible")
        last = await t.ws.join(principal="a", role="worker", task="t")
    assert (last.rejected, stub.asked) == ({}, [])


async def test_a_successor_may_restore_what_its_predecessor_invalidated(team: Any) -> None:
    def restore(asked: Any) -> Any:
        assert [one["statement"] for one in asked.data["behind"]] == ["We moved to Riverside."]
        return verdict(asked, "restores" if "Sunrise" in asked.data["later"]["statement"] else "invalidates")

    with Stub(scripted(MOVED, restore=restore)) as stub:
        t = await team(stub)
        await t.tell(pickup="Pickup at 8:00 from Sunrise.")
        await t.ws.record(hotel("h1", "We moved to Riverside."))
        first = await t.ws.join(principal="a", role="worker", task="t")
        assert first.rejected == {"pickup": ("invalidated",)}
        await t.ws.record(hotel("h2", "Back at Sunrise after all."))
        before = t.now()
        second = await t.ws.join(principal="a", role="worker", task="t")
        assert (second.pairs.restored, second.rejected.get("pickup")) == (1, None)
        assert {item.id for item in second.items} == {"pickup", "h2"}
        assert await t.pairs("RESTORES") == [("h2", "pickup")]
        past = await t.ws.join(principal="a", role="worker", task="t", as_of=before)
        assert past.rejected["pickup"] == ("invalidated",)
        stub.clear()
        third = await t.ws.join(principal="a", role="worker", task="t")
    assert (third.rejected.get("pickup"), stub.asked) == (None, [])


@pytest.mark.parametrize("undo", ["supersede", "revoke"])
async def test_a_successor_that_agrees_with_its_predecessor_restores_nothing(team: Any, undo: str) -> None:
    restore = lambda asked: verdict(asked, "invalidates")  # noqa: E731
    with Stub(scripted(MOVED, restore=restore)) as stub:
        t = await team(stub)
        await t.tell(pickup="Pickup at 8:00 from Sunrise.")
        await t.ws.record(hotel("h1", "We moved to Riverside."))
        await t.ws.sweep()
        if undo == "revoke":
            await t.ws.revoke("h1")
            assert (await t.ws.sweep()).judged == 0
        await t.ws.record(hotel("h2", "We moved to Riverside II."))
        result = await t.ws.sweep()
    assert (result.judged, result.invalidated, result.restored) == (1, 1, 0)
    assert await t.pairs("INVALIDATES") == [("h1", "pickup"), ("h2", "pickup")]


async def test_what_took_the_place_of_a_retracted_item_is_judged_against_what_stands_again(team: Any) -> None:
    with Stub(scripted(MOVED)) as stub:
        t = await team(stub)
        await t.tell(pickup="Pickup at 8:00 from Sunrise.")
        await t.ws.record(hotel("h1", "We moved to Riverside."))
        await t.ws.sweep()
        await t.ws.retract("h1")
        stub.script = scripted(MOVED, read=lambda asked: {})
        await t.ws.record(hotel("h2", "We are at Riverside II."))
        stub.clear()
        result = await t.ws.join(principal="a", role="worker", task="t")
    assert asked_pairs(stub) == [("hotel", "pickup")]
    assert result.rejected["pickup"] == ("invalidated",)


async def test_a_restoring_verdict_needs_every_item_behind_to_be_gone(team: Any) -> None:
    judge = says(("Riverside", "Sunrise", "invalidates"), ("strike", "Sunrise", "invalidates"))
    with Stub(scripted(judge, restore=lambda asked: verdict(asked, "restores"))) as stub:
        t = await team(stub)
        await t.tell(pickup="Pickup at 8:00 from Sunrise.")
        await t.ws.record(hotel("h1", "We moved to Riverside."))
        await t.tell(strike="The drivers are on strike.")
        await t.ws.sweep()
        await t.ws.record(hotel("h2", "Back at Sunrise."))
        result = await t.ws.join(principal="a", role="worker", task="t")
    assert stub.of("restore") == []
    assert result.rejected["pickup"] == ("invalidated",)


async def test_erasing_an_item_forgets_what_was_read_in_it(team: Any) -> None:
    with Stub(scripted()) as stub:
        t = await team(stub)
        await t.tell(one="The first.", two="The second.")
        await t.ws.sweep()

        async def readings() -> list[tuple[int, list[str]]]:
            found, _, _ = await t.ws.graph._driver.execute_query(
                "MATCH (:WorkItem {workspace: $ws, id: 'one'})<-[:READING_OF]-(r)"
                " RETURN r.tokens_in AS tokens, COLLECT { MATCH (r)-[:RELIES_ON]->(p) RETURN p.says } AS says",
                ws=t.ws.id,
            )
            return [(row["tokens"], row["says"]) for row in found]

        ((tokens, says),) = await readings()
        assert says == ["the state of things"]
        assert tokens > 0
        await t.ws.erase("one")
        assert await readings() == []


async def test_a_sweep_in_batches_asks_the_same_and_goes_on_after_a_crash(
    team: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stub(scripted(MOVED), polls=2) as stub:
        t = await team(stub)
        await t.tell(pickup="Pickup at 8:00 from Sunrise.", meal="Dinner is vegetarian.")
        await t.tell(hotel="We moved to Riverside.")
        method = t.ws.invalidation

        def sweep() -> BatchSweep:
            return BatchSweep(method, method.ledger(t.ws.graph, t.ws.id, t.ws._moment))

        # killed after the upload, before the batch was noted
        keep = Ledger.keep_job

        async def crash(self: Ledger, job: Any) -> None:
            if job["status"] == "submitted":
                raise RuntimeError("killed")
            await keep(self, job)

        monkeypatch.setattr(Ledger, "keep_job", crash)
        with pytest.raises(RuntimeError):
            await sweep().step()
        monkeypatch.setattr(Ledger, "keep_job", keep)
        assert (len(stub.batches), stub.asked) == (1, [])
        report = await sweep().step()
        assert (len(stub.batches), report.sent, list(report.jobs.values())) == (1, 0, ["submitted"])
        # meanwhile, nobody else asks what is out
        result = await t.ws.join(principal="a", role="worker", task="t")
        assert (stub.asked, result.pairs.unjudged) == ([], 3 - 1)
        assert set(result.rejected) == {"pickup", "meal"}
        steps = []
        for _ in range(8):
            report = await sweep().step()
            steps.append((report.sent, report.collected.calls))
            if report.done:
                break
        assert report.done
        assert [step for step in steps if step != (0, 0)] == [(3, 3), (0, 3)]
        stub.clear()
        result = await t.ws.join(principal="a", role="worker", task="t")
    assert (stub.asked, result.rejected) == ([], {"pickup": ("invalidated",)})
    (edge,) = await t.edges("INVALIDATES")
    assert edge["quote"] == "We moved to Riverside."


async def test_a_batch_that_is_collected_twice_writes_its_verdicts_once(team: Any) -> None:
    with Stub(scripted()) as stub:
        t = await team(stub, strategy="pairs")
        await t.tell(one="The first.", two="The second.")
        method = t.ws.invalidation
        ledger = method.ledger(t.ws.graph, t.ws.id, t.ws._moment)
        sweep = BatchSweep(method, ledger)
        await sweep.step()
        await sweep.step()
        await sweep.poll()
        (job,) = await ledger.jobs()
        await sweep.collect()
        await ledger.keep_job({**job, "status": "ended"})
        again = await sweep.collect()
    assert again.judged == 0
    assert await t.pairs("CLEARED") == [("two", "one")]


async def test_a_sweep_without_a_verifier_says_what_to_set(team: Any) -> None:
    t = await team()
    with pytest.raises(TracegraphError, match="TRACEGRAPH_MODEL") as found:
        await t.ws.sweep()
    assert found.value.code == "unavailable"


def hotel(id: str, content: str) -> Item:
    return Item(id=id, key="hotel", scope="s", content=content, receipts=[Receipt(uri="mail:1", text=content)])


async def test_an_erased_item_leaves_no_pair_that_every_sweep_waits_for(team: Any) -> None:
    with Stub(scripted(MOVED)) as stub:
        t = await team(stub)
        await t.tell(old="Sunrise is booked.", new="Something else.")
        await t.ws.verdict(later="new", earlier="old", says="proposed")
        await t.ws.erase("new", reason="asked for")
        swept = await t.ws.sweep()
        assert (swept.judged, swept.unjudged) == (0, 0)
        assert (await t.ws.sweep_plan()).pairs == 0
