"""Asking why, who was shown what, what was, and whether the log still says what the graph holds (DESIGN §12)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

import pytest

import tracegraph
from tracegraph import Frontier, Item, Obligation, Receipt, ReceiptRef, Support, TracegraphError, Workspace, chain
from tracegraph.admission import gates
from tracegraph.audit import render_why
from tracegraph.graph import Graph, Patience, Tx, cypher_folder
from tracegraph.model import OPEN, Result, new_id
from tracegraph.pages import whole_return, why_page
from tracegraph.scenarios import forget

pytestmark = pytest.mark.anyio
T = TypeVar("T")
START = datetime(2026, 5, 1, 9, tzinfo=UTC)


@dataclass
class Clock:
    now: datetime = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def source(id: str, text: str = "It is so.") -> Receipt:
    return Receipt(id=f"r_{id}", uri=f"mail:{id}", text=text)


async def run(graph: Graph, text: str, **parameters: Any) -> list[dict[str, Any]]:
    """Cypher as a person would paste it."""
    async with graph._driver.session() as session:
        return await (await session.run(cast(Any, text), parameters)).data()


# --- the travel case --------------------------------------------------------------------------------------


@dataclass
class Travel:
    ws: Workspace
    blocked: Result
    admitted: Result


@pytest.fixture(scope="module")
async def travel(graph: Graph) -> AsyncIterator[Travel]:
    clock = Clock()
    policy = {"max_items": 8, "max_chars": 2000, "fill": "none"}
    ws = await graph.workspace(new_id("audit"), owner="host", clock=clock, policy=policy)
    for principal, role in (("A1", "itinerary"), ("A2", "booking"), ("A4", "transport")):
        await ws.grant(role=role, principal=principal, read=["trip"], write=["trip"])

    async def record(id: str, by: str, key: str, content: str, supports: str, text: str | None) -> None:
        receipts = [] if text is None else [source(id, text)]
        item = Item(id=id, key=key, scope="trip", content=content, supports=[supports], receipts=receipts)
        await ws.record(item, author=by)

    await record("c", "A1", "wishes", "A quiet hotel near the station.", "d_c", "Quiet, please.")
    await record("h0", "A2", "hotel", "Sunrise Hotel is booked.", "d_h", "Sunrise reserved.")
    await record("t0", "A4", "train", "The train departs at 9:00.", "d_t", "The 9:00 train.")
    await record("p0", "A4", "advice", "Pickup at 8:00 from Sunrise.", "d_p", "8:00 from Sunrise.")
    ticket = await ws.depart(principal="A1", role="itinerary", task="plan")
    clock.now = START + timedelta(days=2)
    await record("h1", "A2", "hotel", "Riverside is booked, $282.", "d_h", "I have booked Riverside.")
    await record("t1", "A4", "train", "The train departs at 9:30.", "d_t", "Departure moved to 9:30.")
    for id, needs in (("o_h", ["d_h!", "d_c!"]), ("o_t", ["d_t!", "d_p!", "d_c!"])):
        front = Frontier(id=f"f{id[1:]}", content="The family was not told.")
        owed = Obligation(
            id=id, scope="trip", role="itinerary", task="plan", content="Tell them.", requires=needs, frontier=front
        )
        await ws.open_obligation(owed)
    await record("p_rumour", "A4", "rumour", "Maybe a pickup at 8:45?", "d_p", None)
    await ws.verdict(
        later="h1", earlier="p0", says="invalidates", task="plan", confidence=0.93, quote="booked Riverside"
    )
    await ws.verdict(later="t1", earlier="p0", says="compatible", task="plan", confidence=0.8, quote="9:30")
    blocked = await ws.admit(ticket, principal="A1", purpose="prepare")
    await record("p1", "A4", "pickup", "Pickup confirmed at 8:30 from Riverside.", "d_p", "8:30, Riverside.")
    admitted = await ws.admit(ticket, principal="A1", purpose="prepare")
    assert admitted.view is not None
    await ws.open_view(admitted.view, principal="A1")
    yield Travel(ws, blocked, admitted)
    await forget(graph, ws.id)


async def test_the_old_pickup_is_explained_by_the_verdict_and_what_its_later_item_replaced(travel: Travel) -> None:
    found = await travel.ws.why("p0", travel.blocked.cycle_id)
    assert found.outcome == "rejected"
    assert found.reasons == ("invalidated",)
    assert [gate.gate for gate in found.gates if not gate.passed] == ["temporal"]
    (verdict,) = found.verdicts
    assert (verdict.later, verdict.quote, verdict.confidence) == ("h1", "booked Riverside", 0.93)
    assert verdict.supersedes == ("h0",)
    lines = render_why(found)
    assert lines[0] == "p0 rejected: invalidated by h1 «booked Riverside»; h1 supersedes h0"
    assert "    path: p0 <-INVALIDATES- h1 -SUPERSEDES-> h0" in lines
    assert "  passed: authorization, applicability, provenance, size" in lines


async def test_the_old_hotel_is_explained_by_the_version_that_replaced_it(travel: Travel) -> None:
    found = await travel.ws.why("h0", travel.blocked.cycle_id)
    (by,) = found.superseded_by
    assert (by.id, by.how, by.author, by.content) == ("h1", "version", "A2", "Riverside is booked, $282.")
    assert by.valid_from.tzinfo is not None
    assert render_why(found)[0] == "h0 rejected: superseded by h1"


async def test_an_eligible_item_of_a_blocked_return_is_said_to_have_passed(travel: Travel) -> None:
    found = await travel.ws.why("h1", travel.blocked.cycle_id)
    assert found.outcome == "eligible"
    assert all(gate.passed for gate in found.gates)
    assert "uncovered d_p" in render_why(found)[-1]


async def test_an_admitted_item_is_explained_by_its_rank_its_purpose_and_its_view(travel: Travel) -> None:
    found = await travel.ws.why("p1", travel.admitted.cycle_id)
    assert (found.outcome, found.admitted_for) == ("admitted", "cover")
    assert found.rank == [item.id for item in travel.admitted.items].index("p1")
    assert found.view is not None
    assert found.view in render_why(found)[0]


async def test_an_unknown_item_or_cycle_is_unknown(travel: Travel) -> None:
    for item, cycle in (("nobody", travel.blocked.cycle_id), ("p0", "cycle-nowhere")):
        with pytest.raises(TracegraphError) as error:
            await travel.ws.why(item, cycle)
        assert error.value.code == "unknown_item"


async def test_recorded_returns_replay_to_the_same_decision(travel: Travel) -> None:
    for result in (travel.blocked, travel.admitted):
        replayed = await travel.ws.replay(result.cycle_id)
        assert replayed.equal, replayed.differences
        assert replayed.decision == result.decision


async def test_a_refused_return_replays_as_refused(travel: Travel) -> None:
    for principal, role, reason in (
        ("stranger", "itinerary", "unknown_principal"),
        ("A2", "itinerary", "role_not_held"),
    ):
        result = await travel.ws.join(principal=principal, role=role, task="plan")
        assert result.reason == reason
        replayed = await travel.ws.replay(result.cycle_id)
        assert (replayed.decision, replayed.equal) == ("refused", True)
        found = await travel.ws.why("h1", result.cycle_id)
        assert found.outcome == "not_judged"
        assert reason in render_why(found)[0]


async def test_a_decision_that_was_changed_in_the_graph_does_not_replay(graph: Graph, travel: Travel) -> None:
    replayed = await inside(
        graph,
        "MATCH (k:ReturnCycle {id: $cycle})-[r:REJECTED]->(:WorkItem {id: 'p0'}) SET r.reasons = ['expired'] "
        "SET k.decision = 'reset', k.critical = 0.5, k.uncovered = []",
        lambda there: tracegraph.replay.replay(there, travel.ws.id, travel.blocked.cycle_id),
        cycle=travel.blocked.cycle_id,
    )
    told = {(one.field, one.item): (one.recorded, one.replayed) for one in replayed.differences}
    assert told == {
        ("decision", None): ("reset", "blocked"),
        ("reasons", "p0"): ("expired", "invalidated"),
        ("critical", None): ("0.5", "0.75"),
        ("uncovered", None): ("none", "d_p"),
    }


async def test_exposure_names_the_views_who_opened_them_and_what_ended_the_item_since(graph: Graph) -> None:
    clock = Clock()
    ws = await graph.workspace(new_id("audit"), owner="host", clock=clock)
    try:
        await ws.grant(role="r", principal="p", read=["s"])
        await ws.record(
            Item(id="base", key="base", scope="s", content="The gate is 4.", receipts=[source("base")]),
            Item(id="plan", scope="s", content="Meet there.", depends_on=["base"], receipts=[source("plan")]),
        )
        shown = await ws.join(principal="p", role="r", task="t", workload="w")
        assert shown.view is not None
        await ws.open_view(shown.view, principal="p")
        before = await ws.exposure("plan")
        assert before.since == ()
        (view,) = before.views
        assert (view.principal, view.role, view.task, view.workload) == ("p", "r", "t", "w")
        assert view.ended == ()
        assert [opened.principal for opened in view.opened] == ["p"]
        assert view.issued_at < view.opened[0].at < view.expires_at
        await ws.record(Item(id="gate", key="base", scope="s", content="The gate is 7.", receipts=[source("gate")]))
        after = await ws.exposure("plan")
        assert after.views[0].ended == ("premise_invalid",)
        (happened,) = after.since
        assert (happened.path, happened.reason, happened.by) == (("plan", "base"), "superseded", "gate")
        assert (await ws.exposure("gate")).views == ()
        with pytest.raises(TracegraphError, match="unknown_item"):
            await ws.exposure("nobody")
    finally:
        await forget(graph, ws.id)


async def test_history_shows_each_version_on_both_clocks_and_what_replaced_it(graph: Graph) -> None:
    clock = Clock()
    ws = await graph.workspace(new_id("audit"), owner="host", clock=clock)
    day = timedelta(days=1)
    try:

        async def version(id: str, start: datetime, end: datetime | None = None, scope: str = "s") -> None:
            await ws.record(Item(id=id, key="rate", scope=scope, content=id, valid_from=start, valid_to=end))

        await version("first", START)
        clock.now = START + 10 * day
        await version("third", START + 8 * day)
        await version("second", START + 4 * day)
        await version("past", START + 1 * day, START + 2 * day)
        await version("elsewhere", START, scope="other")
        await ws.retract("second", author="host")
        await ws.revoke("third", reason="closed")
        found = {one.id: one for one in await ws.history("rate", scope="s")}
        assert list(found) == ["first", "past", "second", "third"]
        assert [(one.id, one.how) for one in found["first"].superseded_by] == [
            ("past", "correction"),
            ("third", "version"),
        ]
        assert found["past"].correction
        assert found["past"].valid_to == START + 2 * day
        assert found["second"].retraction is not None
        assert found["second"].valid_from < found["third"].valid_from
        assert found["second"].recorded_at > found["third"].recorded_at
        assert [one.reason for one in found["third"].revocations] == ["closed"]
        assert len(await ws.history("rate")) == 5
        assert len(await ws.history("rate", kind="constraint")) == 0
    finally:
        await forget(graph, ws.id)


# --- every reason -----------------------------------------------------------------------------------------


@dataclass
class Reasons:
    ws: Workspace
    result: Result


@pytest.fixture(scope="module")
async def reasons(graph: Graph) -> AsyncIterator[Reasons]:
    """One blocked return whose pool has an item for every reason, named by it."""
    clock = Clock()
    ws = await graph.workspace(new_id("audit"), owner="host", clock=clock)
    scopes = ["s", "closed"]
    await ws.grant(role="r", principal="p", read=scopes)
    await ws.deny(role="r", read=["closed"])
    lapsed = await ws.grant(role="r", read=["secret"])
    await ws.withdraw(lapsed.ids[0])
    await ws.record(Item(id="before", key="before", scope="s", content="Before.", receipts=[source("before")]))
    await ws.record(Item(id="then", key="before", scope="s", content="Then.", receipts=[source("then")]))
    ticket = await ws.depart(principal="p", role="r", task="t")

    def fact(id: str, **more: Any) -> Item:
        given: dict[str, Any] = {"id": id, "scope": "s", "content": f"The {id}.", "receipts": [source(id)], **more}
        return Item(**given)

    hour = timedelta(hours=1)
    await ws.record(
        fact("scope_not_granted", scope="secret"),
        fact("denied", scope="closed"),
        fact("middle", derived_from=["scope_not_granted"]),
        fact("source_not_readable", derived_from=["middle"]),
        fact("not_yet_valid", valid_from=START + hour),
        fact("expired", valid_from=START - 2 * hour, valid_to=START + timedelta(seconds=1)),
        fact("superseded", key="key"),
        fact("revoked"),
        fact("retracted"),
        fact("invalidated"),
        fact("restored"),
        fact("erased"),
        fact("unverified"),
        fact("wrong_purpose", purposes=["cook", "clean"]),
        fact("kind_not_allowed", kind="constraint"),
        fact("wrong_role", role="other"),
        fact("missing_receipt", receipts=[]),
        fact("unproven", receipts=[], derived_from=["missing_receipt"]),
        fact("receipt_mismatch", receipts=[ReceiptRef(id="r_then", sha256="0" * 64)]),
        fact("receipt_revoked"),
        fact("unbound_support", supports=[Support(dependency="d", receipt="r_then")]),
        fact("no_support", receipts=[], supports=["d"]),
        fact("over_item_budget", content="x" * 200),
        fact("ground", key="ground", content="The ground."),
        fact("floor", depends_on=["ground"]),
        fact("premise_invalid", depends_on=["floor"]),
        fact("changed", key="changed", content="One."),
        fact("on_changed", depends_on=["changed"]),
        fact("ring_a", depends_on=["ring_b"]),
        fact("ring_b", depends_on=["ring_a"]),
        # a circle that only closes through the version that holds a premise's place
        fact("loop_old", key="loop", content="Round."),
        fact("loop_new", key="loop", content="Round.", depends_on=["loop_end"]),
        fact("loop_end", depends_on=["loop_old"]),
        *(fact(f"step{n}", depends_on=[f"step{n + 1}"] if n < 33 else []) for n in range(34)),
    )
    await ws.record(fact("later", key="key"), fact("anew", key="changed", content="Two."))
    # the premise is refreshed with the same words; only the refreshing version rests on what fails
    await ws.record(fact("ground2", key="ground", content="The ground.", derived_from=["revoked"]))
    await ws.open_obligation(Obligation(id="resolved", scope="s", content="Do it."))
    await ws.open_obligation(
        Obligation(
            id="owed", scope="s", content="Owe it.", requires=["d!"], frontier=Frontier(id="open", content="Open.")
        )
    )
    await ws.resolve("resolved")
    await ws.revoke("revoked", reason="no longer so")
    await ws.retract("retracted")
    await ws.revoke("r_receipt_revoked", reason="forged")
    await ws.verdict(later="later", earlier="invalidated", says="invalidates", quote="The later", rationale="It moved.")
    await ws.verdict(later="later", earlier="restored", says="invalidates")
    await ws.verdict(later="anew", earlier="restored", says="restores", quote="Two")
    await ws.verdict(later="later", earlier="unverified", says="proposed")
    await ws.erase("erased", reason="asked to")
    strict = {"kinds": ["fact"], "max_item_chars": 100, "verification": "required"}
    result = await ws.admit(ticket, principal="p", purpose="eat", policy=strict)
    yield Reasons(ws, result)
    await forget(graph, ws.id)


EXPLAINED = {
    "scope_not_granted": "the role r has no grant to read secret",
    "denied": "the role r is denied closed",
    "source_not_readable": "path: source_not_readable -DERIVED_FROM-> middle -DERIVED_FROM-> scope_not_granted",
    "not_yet_valid": "valid only from 2026-05-01 10:00:00Z",
    "expired": "expired at 2026-05-01 09:00:01Z",
    "superseded": 'superseded by later: "The later."',
    "revoked": "revoked by host from",
    "resolved": "resolved by host from",
    "retracted": "retracted by host at",
    "invalidated": "invalidated by later «The later»",
    "erased": "erased by host at",
    "unverified": 'whether later "The later." ends it was not answered yet',
    "wrong_purpose": "it is for clean, cook; the return is for eat",
    "kind_not_allowed": "it is a constraint; the policy allows fact",
    "wrong_role": "it is for the role other; the returning one is r",
    "missing_receipt": "it has no receipt",
    "receipt_mismatch": "it is bound to r_then with sha256 0000000000000000…",
    "receipt_revoked": "r_receipt_revoked was revoked by host",
    "unbound_support": "it claims d by the receipt r_then, which it is not bound to",
    "over_item_budget": "it has 200 characters; the policy allows 100 an item",
    "premise_invalid": " -DEPENDS_ON|DERIVED_FROM-> ".join(("", "floor", "ground", "ground2", "revoked")).strip(),
}


@pytest.mark.parametrize("reason", EXPLAINED)
async def test_every_gate_reason_is_explained_with_its_evidence(reasons: Reasons, reason: str) -> None:
    found = await reasons.ws.why(reason, reasons.result.cycle_id)
    assert found.outcome == "rejected"
    assert reason in found.reasons
    assert any(EXPLAINED[reason] in line for line in render_why(found)), render_why(found)


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ("on_changed", 'which anew replaced by: "Two."'),
        ("ring_a", "its premises rest on each other: ring_a -> ring_b -> ring_a"),
        ("loop_end", "its premises rest on each other: loop_end -> loop_old -> loop_new -> loop_end"),
        ("step0", "longer than 32"),
        ("unproven", "path: unproven -DERIVED_FROM-> missing_receipt"),
        ("no_support", "it claims d without a receipt of its own"),
        ("restored", "invalidated by later before, which anew answered «Two»"),
        ("scope_not_granted", "was not in force then"),
    ],
)
async def test_evidence_that_takes_a_second_look_is_found_too(reasons: Reasons, item: str, line: str) -> None:
    lines = render_why(await reasons.ws.why(item, reasons.result.cycle_id))
    assert any(line in one for one in lines), lines


async def test_the_recorded_reasons_are_given_back_whole(reasons: Reasons) -> None:
    report = await reasons.ws.cycle(reasons.result.cycle_id)
    for item in report.pool:
        found = await reasons.ws.why(item, report.cycle_id)
        assert sorted(found.reasons) == sorted(report.rejected.get(item, ())), item


async def test_an_item_outside_the_pool_is_told_why(reasons: Reasons) -> None:
    ws = reasons.ws
    await ws.record(Item(id="foreign", scope="s", content="Foreign.", task="other", receipts=[source("foreign")]))
    late = await ws.record(Item(id="late", scope="s", content="Late.", receipts=[source("late")]))
    join = await ws.join(principal="p", role="r", task="t", known_at=late.epoch - 1)
    assert (await ws.why("foreign", join.cycle_id)).outside == ("wrong_task",)
    assert (await ws.why("late", join.cycle_id)).outside == ("recorded_later",)
    gone = await ws.why("before", join.cycle_id)
    assert (gone.outcome, gone.outside, gone.gates) == ("outside_pool", ("superseded",), ())
    assert render_why(gone)[0] == "before was outside the pool: superseded by then"
    assert (await ws.why("revoked", join.cycle_id)).outside == ("revoked",)
    assert (await ws.why("resolved", join.cycle_id)).outside == ("resolved",)


async def test_an_eligible_item_without_room_is_left_out_for_a_reason(graph: Graph, workspace: Workspace) -> None:
    await workspace.grant(role="r", principal="p", read=["s"])
    for id in ("one", "two"):
        await workspace.record(Item(id=id, scope="s", content=id, receipts=[source(id)]))
    result = await workspace.join(principal="p", role="r", task="t", policy={"max_items": 1})
    assert [item.id for item in result.items] == ["two"]
    left = await workspace.why("one", result.cycle_id)
    assert (left.outcome, left.selection) == ("left_out", ("not_selected",))
    assert (await workspace.why("two", result.cycle_id)).admitted_for == "fill"


async def test_an_inadmissible_obligation_shows_what_the_selection_made_of_it(workspace: Workspace) -> None:
    await workspace.grant(role="r", principal="p", read=["s"])
    await workspace.open_obligation(Obligation(id="o", scope="hidden", role="r", content="Owed."))
    result = await workspace.join(principal="p", role="r", task="t")
    found = await workspace.why("o", result.cycle_id)
    assert found.selection == ("missing_frontier", "obligation_not_admissible")
    assert "scope_not_granted" in found.reasons


async def test_hostile_words_stay_on_one_printable_line(workspace: Workspace) -> None:
    await workspace.grant(role="r", principal="p", read=["s"])
    await workspace.record(Item(id="a", key="k", scope="s", content="a", receipts=[source("a")]))
    ticket = await workspace.depart(principal="p", role="r", task="t")
    await workspace.record(Item(id="b", key="k", scope="s", content="x\n\x1b[31mred " * 40, receipts=[source("b")]))
    result = await workspace.admit(ticket, principal="p")
    lines = render_why(await workspace.why("a", result.cycle_id))
    assert all(line.isprintable() and len(line) < 200 for line in lines)


async def test_a_return_whose_item_was_erased_since_says_so(workspace: Workspace) -> None:
    await workspace.grant(role="r", principal="p", read=["s"])
    await workspace.record(Item(id="a", scope="s", content="a", receipts=[source("a")]))
    result = await workspace.join(principal="p", role="r", task="t")
    assert (await workspace.replay(result.cycle_id)).equal
    await workspace.erase("a", reason="asked")
    replayed = await workspace.replay(result.cycle_id)
    assert not replayed.equal
    assert replayed.erased == ("a",)
    found = await workspace.why("a", result.cycle_id)
    assert (found.outcome, found.item.content) == ("admitted", None)
    assert found.erasure is not None
    assert (await workspace.exposure("a")).views[0].ended == ("erased",)


# --- the pasted files -------------------------------------------------------------------------------------

FILES = sorted(
    f"{folder}/{path.stem}" for folder in ("audit", "browser") for path in (cypher_folder() / folder).glob("*.cypher")
)


def paste(name: str) -> tuple[str, dict[str, str]]:
    """A file's text, and its `:param` lines as expressions."""
    text = (cypher_folder() / f"{name}.cypher").read_text(encoding="utf-8")
    return text, dict(re.findall(r"^// :param (\w+) => (.+)$", text, re.MULTILINE))


@pytest.mark.parametrize("name", FILES)
async def test_each_audit_file_runs_as_it_is_by_its_own_parameters(graph: Graph, travel: Travel, name: str) -> None:
    text, params = paste(name)
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
    assert set(re.findall(r"\$(\w+)", code)) == set(params)
    assert text.startswith("// ")
    values = {}
    for param, expression in params.items():
        values[param] = (await run(graph, f"RETURN {expression} AS value"))[0]["value"]
    here = {"workspace": travel.ws.id, "cycle": travel.blocked.cycle_id}
    if name == "audit/absences":
        await travel.ws.depart(principal="A2", role="booking", task="plan")
    rows = await run(graph, text, **{**values, **{param: here[param] for param in params if param in here}})
    assert rows, name
    assert EXPECTED[name](rows), rows


EXPECTED: dict[str, Callable[[list[dict[str, Any]]], bool]] = {
    "audit/absences": lambda rows: [row["principal"] for row in rows] == ["A2"] and rows[0]["epochs_missed"] == 0,
    "audit/blocked": lambda rows: (
        rows[0]["uncovered"] == ["d_p"]
        and [one["id"] for one in rows[0]["obligations"]] == ["o_t"]
        and {one["id"]: one["reasons"] for one in rows[0]["obligations"][0]["uncovered"][0]["candidates"]}
        == {"p0": ["invalidated"], "p_rumour": ["missing_receipt", "unbound_support"]}
    ),
    "audit/coverage": lambda rows: (
        [row["obligation"] for row in rows] == ["o_h", "o_t"]
        and [(need["dependency"], need["covered"]) for need in rows[1]["needs"]]
        == [("d_c", True), ("d_p", False), ("d_t", True)]
        and rows[1]["needs"][1]["supporters"] == ["p0", "p_rumour"]
        and rows[0]["frontiers"] == ["f_h"]
    ),
    "audit/cycle": lambda rows: rows[0]["decision"] == "blocked",
    "audit/exposure": lambda rows: rows[0]["item"]["id"] == "h0" and rows[0]["since"][0]["by"] == "h1",
    "audit/history": lambda rows: [row["id"] for row in rows] == ["h0", "h1"] and rows[0]["valid_to"] is None,
    "audit/inputs": lambda rows: rows[0]["held"] and rows[0]["known_principal"],
    "audit/returns": lambda rows: (
        [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
        and {row["decision"] for row in rows} >= {"admitted", "blocked"}
    ),
    "audit/verdicts": lambda rows: [row["quote"] for row in rows] == ["booked Riverside"],
    "audit/why": lambda rows: rows[0]["item"]["id"] == "p0" and rows[0]["outcome"] == "rejected",
    # drawn: each row holds what Browser draws
    "browser/blocked": lambda rows: (
        [{one["id"] for path in row["rejected"] for one in path[4:5]} for row in rows] == [{"p0", "p_rumour"}]
    ),
    "browser/chain": lambda rows: (
        any([one["id"] for one in row["path"][::2]] == ["p0", "h1", "h0"] for row in rows)
        and rows[0]["quotes"] == ["booked Riverside"]
    ),
    "browser/cycle": lambda rows: {path[2]["id"] for path in rows[0]["kept_out"]} == {"h0", "t0", "p0", "p_rumour"},
    "browser/exposure": lambda rows: not rows[0]["shown"] and len(rows[0]["taken_along"]) == 4,
    "browser/history": lambda rows: (
        [row["id"] for row in rows] == ["h0", "h1"] and rows[0]["ended_by"][0][2]["id"] == "h1"
    ),
    "browser/returns": lambda rows: (
        [row["decision"] for row in rows] == ["admitted", "blocked"] and rows[1]["kept_out"] is not None
    ),
    "browser/visible": lambda rows: (
        {row["item"]["id"] for row in rows} == {"c", "h0", "t0", "p0"} and rows[0]["who"]["id"] == "A1"
    ),
    "browser/why": lambda rows: (
        rows[0]["reasons"] == ["invalidated"]
        and any([one["id"] for one in path[::2]] == ["p0", "h1", "h0"] for path in rows[0]["evidence"])
    ),
}


async def test_the_drawn_reasons_have_drawn_evidence(graph: Graph, reasons: Reasons) -> None:
    """Whatever the gate, its evidence is drawn beside the item, save where the item's own words say it all."""
    text, _ = paste("browser/why")
    alone = {
        "missing_receipt",
        "wrong_purpose",
        "kind_not_allowed",
        "wrong_role",
        "over_item_budget",
        "not_yet_valid",
        "expired",
        "retracted",
    }
    for id, found in (await reasons.ws.cycle(reasons.result.cycle_id)).rejected.items():
        rows = await run(graph, text, workspace=reasons.ws.id, cycle=reasons.result.cycle_id, item=id)
        assert rows[0]["kept_out"], id
        assert rows[0]["evidence"] or set(found) <= alone, (id, found)


async def test_every_reason_is_on_its_items_page_with_a_picture(reasons: Reasons) -> None:
    report = await reasons.ws.cycle(reasons.result.cycle_id)
    for id, found in report.rejected.items():
        page = why_page(await reasons.ws.why(id, report.cycle_id))
        assert 'class="box rejected"' in page, id
        assert all(reason.replace("_", " ") in page for reason in found), id
    assert (await whole_return(reasons.ws, report.cycle_id)).count("✗ rejected") >= len(report.rejected)


async def test_what_a_role_could_read_follows_its_grants_of_that_moment(graph: Graph, reasons: Reasons) -> None:
    text, _ = paste("browser/visible")

    async def seen(role: str | None, principal: str | None, at: datetime) -> set[str]:
        rows = await run(graph, text, workspace=reasons.ws.id, at=at, role=role, principal=principal)
        return {row["id"] for row in rows}

    now = START + timedelta(minutes=30)
    visible = await seen("r", None, now)
    assert "then" in visible
    assert not visible & {"scope_not_granted", "denied", "source_not_readable", "before", "revoked", "erased"}
    assert await seen(None, "p", now) == visible
    assert await seen(None, "stranger", now) == set()
    assert await seen("r", None, START - timedelta(days=1)) == set()


# --- the walk of the log ----------------------------------------------------------------------------------


class Inside:
    """A graph seen from inside one open transaction: what is tampered with there never gets out."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return await work(Tx(self._tx, Patience(60)))

    under_lock = read


async def inside(graph: Graph, text: str, work: Callable[[Any], Awaitable[T]], **parameters: Any) -> T:
    async with graph._driver.session() as session, await session.begin_transaction() as tx:
        changed = await (await tx.run(cast(Any, text), parameters)).consume()
        assert changed.counters.contains_updates
        try:
            return await work(Inside(tx))
        finally:
            await tx.rollback()


@dataclass
class Logged:
    ws: Workspace
    names: dict[str, str]
    """The ids that were given to what the tests tamper with."""


@pytest.fixture(scope="module")
async def logged(graph: Graph) -> AsyncIterator[Logged]:
    """A workspace with every kind of record."""
    clock = Clock()
    ws = await graph.workspace(new_id("audit"), owner="host", clock=clock, policy={"max_items": 9})
    grant = await ws.grant(role="r", principal="p", read=["s", "t"], write=["s"])
    denial = await ws.deny(role="q", read=["s"])
    await ws.record(
        Item(id="a", key="k", scope="s", content="First.", supports=[Support(dependency="d", receipt="r_a")],
             receipts=[source("a")]),
        Item(id="b", scope="s", content="Rests.", depends_on=["a"], derived_from=["a"], role="r", purposes=["x"]),
    )  # fmt: skip
    await ws.record(Item(id="c", key="k", scope="s", content="Second.", supersedes=["b"], receipts=[source("c")]))
    past = START - timedelta(days=1)
    await ws.record(Item(id="past", key="k", scope="s", content="Then.", valid_from=past, valid_to=START))
    owed = Obligation(id="o", scope="s", content="Owed.", requires=["d!", "e"], frontier=Frontier(id="f", content="F."))
    await ws.open_obligation(owed)
    await ws.advance("o", "Further.", id="f2")
    revocation = await ws.revoke("b", reason="over")
    await ws.revoke("r_c", reason="forged")
    verdict = await ws.verdict(
        later="c", earlier="a", says="invalidates", quote="Second", confidence=0.9, rationale="It says so."
    )
    second = await ws.verdict(later="c", earlier="b", says="restores", task="t", effective_from=START)
    await ws.remember("Mine.", principal="p", grounded_in=["a", "c"], id="m")
    await ws.set_policy(coverage=0.5, max_items=3)
    await ws.depart(principal="p", role="r", task="t")
    await ws.retract("f2")
    await ws.withdraw(second.ids[0])
    await ws.withdraw(denial.ids[0])
    await ws.record(Item(id="x", scope="s", content="Private.", receipts=[source("x")]))
    await ws.record(Item(id="y", scope="s", content="Of it.", derived_from=["x"]))
    await ws.remember("About it.", principal="p", grounded_in=["y"], id="mx")
    await ws.verdict(later="c", earlier="x", says="compatible", quote="Second")
    await ws.erase("x", reason="asked")
    await ws.record(Item(id="z", scope="s", content="Last.", receipts=[source("z")]))
    names = {
        "grant": grant.ids[0],
        "denial": denial.ids[0],
        "revocation": revocation.ids[0],
        "verdict": verdict.ids[0],
        "withdrawn": second.ids[0],
    }
    yield Logged(ws, names)
    await forget(graph, ws.id)


async def test_an_untouched_log_is_intact_at_any_page_size(logged: Logged, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = await logged.ws.verify()
    assert whole.broken is None
    assert whole.intact
    assert whole.digest is not None
    monkeypatch.setattr(chain, "PAGE", 2)
    one_by_one = {act: (query, check, 1) for act, (query, check, _) in chain._READ.items()}
    monkeypatch.setattr(chain, "_READ", one_by_one)
    steps: list[tuple[int, int]] = []
    assert await logged.ws.verify(progress=lambda done, of: steps.append((done, of))) == whole
    assert steps[-1] == (whole.epoch, whole.epoch)
    assert len(steps) > 10


async def test_an_empty_workspace_is_intact(workspace: Workspace) -> None:
    found = await workspace.verify()
    assert (found.intact, found.epoch, found.records) == (True, 0, 0)


MOVED = (
    "MATCH (m:WorkItem {workspace: $ws, id: '%s'})-[e:%s]->(there) "
    "CALL (m, e, there) { CREATE (decoy {workspace: 'elsewhere', id: there.id}) SET decoy:$(labels(there)) "
    "CREATE (m)-[moved:$(type(e))]->(decoy) SET moved = properties(e) } DELETE e"
)
ITEM = "MATCH (m:WorkItem {workspace: $ws, id: '%s'}) "
EDGE = "MATCH (:WorkItem {workspace: $ws, id: '%s'})-[e:%s]->() "
NEW = f"workspace: $ws, epoch: 3, retired_epoch: {OPEN}, valid_from: 0, valid_to: {OPEN}"
TAMPERED: dict[str, tuple[str, str, str]] = {
    # items
    "an item's words": (ITEM % "a" + "SET m.content = 'Worst.'", "item a", "content_digest"),
    "an item's words with their digest": (
        ITEM % "a" + "SET m.content = 'Third.', m.content_digest = $sha",
        "item a",
        "not those",
    ),
    "an item's words gone": (ITEM % "a" + "REMOVE m.content", "item a", "missing"),
    "an item erased by an epoch that is yet to come": (
        ITEM % "a" + "SET m.erased_epoch = 1000000 REMOVE m.content",
        "item a",
        "counts as erased",
    ),
    "a receipt erased by an epoch that is yet to come": (
        "MATCH (r:Receipt {workspace: $ws, id: 'r_a'}) SET r.erased_epoch = 1000000 REMOVE r.text",
        "receipt r_a",
        "counts as erased",
    ),
    "a grant undone by an epoch that is yet to come": (
        "MATCH ()-[g:HOLDS {workspace: $ws}]->() SET g.retired_epoch = 1000000",
        "grant $grant",
        "do not agree",
    ),
    "a whole grant undone by an epoch that is yet to come": (
        "MATCH ()-[g:HOLDS|MAY_READ|MAY_WRITE {workspace: $ws}]->() SET g.retired_epoch = 1000000",
        "grant $grant",
        "counts as undone",
    ),
    "an item retracted by an epoch that is yet to come": (
        ITEM % "a" + "SET m.retired_epoch = 1000000",
        "item a",
        "counts as undone",
    ),
    "a binding to a receipt of the same id elsewhere": (
        MOVED % ("a", "BOUND_TO"),
        "item a",
        "outside the workspace",
    ),
    "a supersession of an item of the same id elsewhere": (
        MOVED % ("c", "SUPERSEDES {named: true}"),
        "item c",
        "outside the workspace",
    ),
    "a derivation from an item of the same id elsewhere": (
        MOVED % ("b", "DERIVED_FROM"),
        "item b",
        "outside the workspace",
    ),
    "an item's end": (ITEM % "a" + "SET m.valid_to = 9", "item a", "not those"),
    "an item's beginning as text": (ITEM % "a" + "SET m.valid_from = 'soon'", "item a", "not those"),
    "an item's kind": (ITEM % "a" + "SET m.kind = 'rumour'", "item a", "never has"),
    "an item's beginning gone": (ITEM % "a" + "REMOVE m.valid_from", "item a", "not those"),
    "an item's role": (ITEM % "b" + "REMOVE m.role", "item b", "not those"),
    "an item's purposes": (ITEM % "b" + "SET m.purposes = []", "item b", "not those"),
    "an item's author": (ITEM % "a" + "SET m.author = 'p'", "item a", "not those"),
    "an item's place": (ITEM % "b" + "SET m.place = 7", "item b", "not those"),
    "an item's digest": (ITEM % "a" + "SET m.digest = $sha", "item a", "not those"),
    "an item's digest gone": (ITEM % "a" + "REMOVE m.digest", "item a", "not those"),
    "an item's epoch": (ITEM % "a" + "SET m.epoch = 2", "item a", "claims the epoch 2"),
    "an item's moment": (ITEM % "a" + "SET m.recorded_at = 2", "item a", "another moment"),
    "an item's future": (ITEM % "a" + "SET m.epoch = 999", "item a", "not given out"),
    "an item removed": (ITEM % "b" + "DETACH DELETE m", "item b", "missing"),
    "an item added": (
        f"CREATE (:WorkItem {{{NEW}, id: 'n', scope: 's', kind: 'fact', key: 'n'}})",
        "item n",
        "no epoch names it",
    ),
    "an item added without an id": (
        f"CREATE (:WorkItem {{{NEW}, scope: 's', kind: 'fact', key: 'k', place: 0}})",
        "item ?",
        "no epoch names it",
    ),
    "a correction's label": (ITEM % "past" + "REMOVE m:Correction", "item past", "label"),
    "an identity": (
        "MATCH (i:Identity {workspace: $ws, key: 'b'}) DELETE i",
        "item b",
        "no return would find it",
    ),
    # links
    "a premise removed": (EDGE % ("b", "DEPENDS_ON") + "DELETE e", "item b", "not those"),
    "a source removed": (EDGE % ("b", "DERIVED_FROM") + "DELETE e", "item b", "not those"),
    "a source added": (
        ITEM % "c" + "MATCH (x:WorkItem {workspace: $ws, id: 'a'}) CREATE (m)-[:DERIVED_FROM {epoch: 4}]->(x)",
        "item c",
        "not those",
    ),
    "a binding's digest": (EDGE % ("a", "BOUND_TO") + "SET e.sha256 = $sha", "item a", "not those"),
    "a claim's receipt": (EDGE % ("a", "SUPPORTS") + "REMOVE e.receipt", "item a", "not those"),
    "a claim added": (
        ITEM % "f" + "MATCH (d:Dependency {workspace: $ws, id: 'd'}) CREATE (m)-[:SUPPORTS {epoch: 6}]->(d)",
        "item f",
        "never has",
    ),
    "a need no longer critical": (EDGE % ("o", "REQUIRES") + "SET e.critical = false", "item o", "not those"),
    "a frontier's obligation": (EDGE % ("f", "FRONTIER_OF") + "DELETE e", "item f", "not those"),
    "a link's epoch": (EDGE % ("b", "DEPENDS_ON") + "SET e.epoch = 9", "item b", "another epoch"),
    "a supersession by name removed": (
        "MATCH (:WorkItem {workspace: $ws, id: 'c'})-[e:SUPERSEDES {named: true}]->() DELETE e",
        "item c",
        "not those",
    ),
    "a supersession from elsewhere": (
        ITEM % "c"
        + f"CREATE (m)<-[:SUPERSEDES {{named: true, epoch: 3}}]-(:WorkItem {{epoch: 3, retired_epoch: {OPEN}}})",
        "item c",
        "outside the workspace",
    ),
    # receipts
    "a receipt's text": (
        "MATCH (r:Receipt {workspace: $ws, id: 'r_a'}) SET r.text = 'Otherwise.'",
        "receipt r_a",
        "text_digest",
    ),
    "a receipt's address": (
        "MATCH (r:Receipt {workspace: $ws, id: 'r_a'}) SET r.uri = 'x'",
        "receipt r_a",
        "not those",
    ),
    "a receipt removed": ("MATCH (r:Receipt {workspace: $ws, id: 'r_z'}) DETACH DELETE r", "item z", "not those"),
    "a receipt added": ("CREATE (:Receipt {workspace: $ws, id: 'r_n', epoch: 3})", "receipt r_n", "no epoch"),
    "a receipt retracted": (
        "MATCH (r:Receipt {workspace: $ws, id: 'r_a'}) SET r.retired_epoch = 5",
        "receipt r_a",
        "undone",
    ),
    # revocations
    "a revocation's reason": (
        "MATCH (v:Revocation {id: $revocation}) SET v.reason = ''",
        "revoke $revocation",
        "not those",
    ),
    "a revocation's moment": (
        "MATCH (v:Revocation {id: $revocation}) SET v.effective_from = 9",
        "revoke $revocation",
        "not those",
    ),
    "a revocation's target": (
        "MATCH (v:Revocation {id: $revocation})-[e:REVOKES]->() DELETE e WITH v "
        "MATCH (m:WorkItem {workspace: $ws, id: 'z'}) CREATE (v)-[:REVOKES]->(m)",
        "revoke $revocation",
        "not those",
    ),
    "a revocation's second target": (
        "MATCH (v:Revocation {id: $revocation}), (m:WorkItem {workspace: $ws, id: 'z'}) CREATE (v)-[:REVOKES]->(m)",
        "revoke $revocation",
        "2 things",
    ),
    "a revocation withdrawn": (
        "MATCH (v:Revocation {id: $revocation}) SET v.retired_epoch = 12",
        "revoke $revocation",
        "undone",
    ),
    "a revocation removed": ("MATCH (v:Revocation {id: $revocation}) DETACH DELETE v", "revoke $revocation", "missing"),
    "a revocation added": (
        ITEM % "z"
        + f"CREATE (:Revocation {{workspace: $ws, id: 'n', epoch: 3, retired_epoch: {OPEN}}})-[:REVOKES]->(m)",
        "revoke n",
        "no epoch names it",
    ),
    # grants and denials
    "a grant's end": (
        "MATCH ()-[g:HOLDS|MAY_READ|MAY_WRITE {workspace: $ws, id: $grant}]->() SET g.valid_to = 9",
        "grant $grant",
        "not those",
    ),
    "one edge's end": (
        "MATCH ()-[g:MAY_WRITE {id: $grant}]->() SET g.valid_to = 9",
        "grant $grant",
        "do not agree",
    ),
    "a grant's edge removed": ("MATCH ()-[g:MAY_WRITE {id: $grant}]->() DELETE g", "grant $grant", "not those"),
    "a holder removed": ("MATCH ()-[g:HOLDS {id: $grant}]->() DELETE g", "grant $grant", "not those"),
    "a scope renamed": ("MATCH (s:Scope {workspace: $ws, id: 't'}) SET s.id = 'u'", "grant $grant", "not those"),
    "a grant removed": (
        "MATCH ()-[g:HOLDS|MAY_READ|MAY_WRITE {workspace: $ws, id: $grant}]->() DELETE g",
        "grant $grant",
        "missing",
    ),
    "a bare grant added": (
        "MATCH (r:Role {workspace: $ws, id: 'q'}), (s:Scope {workspace: $ws, id: 's'}) CREATE (r)-[:MAY_READ]->(s)",
        "grant ?",
        "no epoch names it",
    ),
    "a denial removed": ("MATCH ()-[g:DENIED_READ {id: $denial}]->() DELETE g", "deny $denial", "missing"),
    "a grant withdrawn": (
        "MATCH ()-[g:HOLDS|MAY_READ|MAY_WRITE {workspace: $ws, id: $grant}]->() SET g.retired_epoch = 5",
        "grant $grant",
        "undone",
    ),
    # verdicts
    "a verdict's quote": ("MATCH ()-[v:INVALIDATES {id: $verdict}]->() SET v.quote = 'x'", "verdict $verdict", "quote"),
    "a verdict's quote gone": (
        "MATCH ()-[v:INVALIDATES {id: $verdict}]->() REMOVE v.quote",
        "verdict $verdict",
        "quote",
    ),
    "a verdict's confidence": (
        "MATCH ()-[v:INVALIDATES {id: $verdict}]->() SET v.confidence = 1.0",
        "verdict $verdict",
        "not those",
    ),
    "a verdict's moment": (
        "MATCH ()-[v:INVALIDATES {id: $verdict}]->() SET v.effective_from = 9",
        "verdict $verdict",
        "another moment",
    ),
    "a verdict's answer": (
        "MATCH (a)-[v:INVALIDATES {id: $verdict}]->(b) CREATE (a)-[w:CLEARED]->(b) SET w = properties(v) DELETE v",
        "verdict $verdict",
        "not those",
    ),
    "a verdict removed": ("MATCH ()-[v:INVALIDATES {id: $verdict}]->() DELETE v", "verdict $verdict", "missing"),
    "a verdict added": (
        "MATCH (a:WorkItem {workspace: $ws, id: 'z'}), (b:WorkItem {workspace: $ws, id: 'c'}) "
        f"CREATE (a)-[:INVALIDATES {{epoch: 3, retired_epoch: {OPEN}, effective_from: 0}}]->(b)",
        "verdict ?",
        "no epoch names it",
    ),
    # memories, policies, departures
    "a memory's words": (
        "MATCH (x:Experience {workspace: $ws, id: 'm'}) SET x.content = 'Ours.'",
        "remember m",
        "content_digest",
    ),
    "a memory's ground removed": (
        "MATCH (:Experience {workspace: $ws, id: 'm'})-[e:GROUNDED_IN]->(:WorkItem {id: 'a'}) DELETE e",
        "remember m",
        "not those",
    ),
    "a memory's owner": ("MATCH (x:Experience {workspace: $ws, id: 'm'}) SET x.owner = 'q'", "remember m", "not those"),
    "a memory removed": ("MATCH (x:Experience {workspace: $ws, id: 'm'}) DETACH DELETE x", "remember m", "missing"),
    "a memory added": (
        "CREATE (:Experience {workspace: $ws, id: 'n', owner: 'p', epoch: 3})",
        "remember n",
        "no epoch",
    ),
    "a policy's field": (
        "MATCH (y:Policy {workspace: $ws, revision: 2}) SET y.coverage = 0.0",
        "policy 2",
        "not those",
    ),
    "the first policy's field": (
        "MATCH (y:Policy {workspace: $ws, revision: 1}) SET y.max_items = 99",
        "workspace",
        "first policy",
    ),
    "a policy removed": ("MATCH (y:Policy {workspace: $ws, revision: 2}) DELETE y", "policy 2", "missing"),
    "a policy added": ("CREATE (:Policy {workspace: $ws, revision: 9, epoch: 3})", "policy 9", "no epoch"),
    "a departure's items": ("MATCH (c:Checkpoint {workspace: $ws}) SET c.item_ids = []", "depart ", "not those"),
    "a departure's expiry": ("MATCH (c:Checkpoint {workspace: $ws}) SET c.expires_at = 9", "depart ", "not those"),
    "a departure removed": ("MATCH (c:Checkpoint {workspace: $ws}) DELETE c", "depart ", "missing"),
    "a departure added": ("CREATE (:Checkpoint {workspace: $ws, id: 'n', epoch: 3})", "depart n", "no epoch"),
    # what was undone
    "a retraction undone": (ITEM % "f2" + f"SET m.retired_epoch = {OPEN}", "retract f2", "in force"),
    "a retraction's author": (ITEM % "f2" + "SET m.retired_by = 'p'", "retract f2", "not those"),
    "a retraction moved": (ITEM % "f2" + "SET m.retired_epoch = 9", "item f2", "undone"),
    "a retraction added": (ITEM % "a" + "SET m.retired_epoch = 5, m.retired_by = 'host'", "item a", "undone"),
    "a withdrawal undone": (
        f"MATCH ()-[g:DENIED_READ {{id: $denial}}]->() SET g.retired_epoch = {OPEN}",
        "withdraw $denial",
        "in force",
    ),
    "a verdict's withdrawal undone": (
        f"MATCH ()-[v:RESTORES {{id: $withdrawn}}]->() SET v.retired_epoch = {OPEN}",
        "withdraw $withdrawn",
        "in force",
    ),
    # erasures
    "an erasure's reason": ("MATCH (x:Erasure {workspace: $ws}) SET x.reason = ''", "erase x", "not those"),
    "an erasure removed": ("MATCH (x:Erasure {workspace: $ws}) DETACH DELETE x", "item x", "erased"),
    "an erasure added": ("CREATE (:Erasure {workspace: $ws, target: 'a', epoch: 3})", "erase a", "no epoch"),
    "erased words back": (ITEM % "y" + "SET m.content = 'Of it.'", "item y", "though it was erased"),
    "an erased text back": (
        "MATCH (r:Receipt {workspace: $ws, id: 'r_x'}) SET r.text = 'It is so.'",
        "receipt r_x",
        "though it was erased",
    ),
    "an erased memory back": (
        "MATCH (x:Experience {workspace: $ws, id: 'mx'}) SET x.content = 'About it.' REMOVE x.erased_epoch",
        "erase x",
        "words that it erased",
    ),
    "an erased quote back": (
        "MATCH (:WorkItem {workspace: $ws, id: 'c'})-[v:CLEARED]->() SET v.quote = 'Second'",
        "verdict ",
        "quote",
    ),
    "words hidden as erased": (ITEM % "a" + "SET m.erased_epoch = 5 REMOVE m.content", "item a", "erased"),
    # epochs and the workspace
    "an epoch removed": ("MATCH (e:Epoch {workspace: $ws, number: 3}) DELETE e", "", "missing"),
    "the first epoch removed": ("MATCH (e:Epoch {workspace: $ws, number: 1}) DELETE e", "", "missing"),
    "the last epoch removed": (
        "MATCH (w:Workspace {id: $ws}) MATCH (e:Epoch {workspace: $ws, number: w.epoch}) DELETE e",
        "",
        "missing",
    ),
    "the last epoch hidden": ("MATCH (w:Workspace {id: $ws}) SET w.epoch = w.epoch - 1", "", "not given out"),
    "an epoch's author": ("MATCH (e:Epoch {workspace: $ws, number: 3}) SET e.author = 'p'", "", "not what its digest"),
    "an epoch's moment": ("MATCH (e:Epoch {workspace: $ws, number: 3}) SET e.recorded_at = 0", "", "recorded before"),
    "an epoch's link": ("MATCH (e:Epoch {workspace: $ws, number: 3}) SET e.previous = $sha", "", "previous"),
    "an epoch's record dropped": (
        "MATCH (e:Epoch {workspace: $ws, number: 3}) SET e.records = e.records[1..], e.subjects = e.subjects[1..]",
        "",
        "not what its digest",
    ),
    "an epoch's subject": (
        "MATCH (e:Epoch {workspace: $ws, number: 3}) SET e.subjects = ['item z'] + e.subjects[1..]",
        "item z",
        "",
    ),
    "the workspace's owner": ("MATCH (w:Workspace {id: $ws}) SET w.owner = 'p'", "workspace", "owner"),
}


@pytest.mark.parametrize("what", TAMPERED)
async def test_tampering_is_found_and_named(graph: Graph, logged: Logged, what: str) -> None:
    text, record, told = TAMPERED[what]
    for name, id in logged.names.items():
        record = record.replace(f"${name}", id)
    found = await inside(
        graph,
        text,
        lambda there: chain.verify(there, logged.ws.id),
        ws=logged.ws.id,
        sha="f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b",
        **logged.names,
    )
    assert not found.intact
    assert found.broken is not None
    assert (found.broken.record or "").startswith(record)
    assert bool(found.broken.record) == bool(record) or record == ""
    assert told in found.broken.what


async def test_the_first_break_is_the_earliest_epochs(graph: Graph, logged: Logged) -> None:
    found = await inside(
        graph,
        "MATCH (m:WorkItem {workspace: $ws}) WHERE m.id IN ['z', 'c'] SET m.key = 'other'",
        lambda there: chain.verify(there, logged.ws.id),
        ws=logged.ws.id,
    )
    assert found.broken is not None
    assert (found.broken.epoch, found.broken.record) == (4, "item c")


async def test_returns_are_listed_newest_first_and_by_what_was_before_them(travel: Travel) -> None:
    found = await travel.ws.returns("p0")
    assert [(one.cycle_id, one.decision) for one in found][-1] == (travel.blocked.cycle_id, "blocked")
    assert found[-1].reasons == ("invalidated",)
    assert not found[-1].admitted
    assert await travel.ws.returns("nothing") == ()
    assert await travel.ws.returns(limit=1) == (await travel.ws.returns())[:1]
    with pytest.raises(TracegraphError, match="limit is 0"):
        await travel.ws.returns(limit=0)


# --- what counts, and what does not -----------------------------------------------------------------------


async def test_browser_draws_no_verdict_revocation_or_successor_that_does_not_count(graph: Graph) -> None:
    clock = Clock()
    ws = await graph.workspace(new_id("audit"), owner="host", clock=clock)
    try:
        await ws.grant(role="r", principal="P", read=["s"], write=["s"])
        for id in ("e", "l1", "l2", "l3", "l4"):
            await ws.record(Item(id=id, scope="s", content=id, receipts=[source(id)]))
        await ws.verdict(later="l1", earlier="e", says="invalidates", task="plan")
        await ws.verdict(later="l2", earlier="e", says="invalidates", task="another")
        await ws.verdict(later="l3", earlier="e", says="invalidates", task="plan")
        await ws.verdict(
            later="l4", earlier="e", says="invalidates", task="plan", effective_from=START + timedelta(days=99)
        )
        await ws.retract("l3")
        await ws.withdraw((await ws.revoke("l1", reason="by mistake")).ids[0])
        await ws.record(Item(id="l1b", key="l1", scope="s", content="newer", receipts=[source("l1b")]))
        await ws.retract("l1b")
        result = await ws.join(principal="P", role="r", task="plan")
        assert result.rejected["e"] == ("invalidated",)
        folder = cypher_folder() / "browser"
        (why,) = await run(graph, (folder / "why.cypher").read_text(), workspace=ws.id, cycle=result.cycle_id, item="e")
        assert [one["later"] for one in why["verdicts"]] == ["l1"]
        assert len(why["evidence"]) == 2  # l1, and l1 with its receipt
        assert await run(graph, (folder / "chain.cypher").read_text(), workspace=ws.id, item="l1") == []
        drawn = await run(graph, (folder / "history.cypher").read_text(), workspace=ws.id, item="l1")
        assert [(row["id"], row["ended_by"]) for row in drawn] == [("l1", []), ("l1b", [])]
    finally:
        await forget(graph, ws.id)


async def test_what_was_owed_is_what_its_role_owed(graph: Graph) -> None:
    ws = await graph.workspace(new_id("audit"), owner="host", clock=Clock())
    try:
        for role in ("r", "q"):
            await ws.grant(role=role, principal="P", read=["s"], write=["s"])
            owed = Obligation(
                id=f"o_{role}", scope="s", role=role, content="Owed.", requires=[f"{role}!"],
                frontier=Frontier(id=f"f_{role}", content="Nothing yet."),
            )  # fmt: skip
            await ws.open_obligation(owed)
        await ws.record(Item(id="a", scope="s", content="a", supports=["r"], receipts=[source("a")]))
        result = await ws.join(principal="P", role="r", task="plan")
        assert result.decision == "admitted"
        text = (cypher_folder() / "audit" / "coverage.cypher").read_text()
        listed = text[text.index("reason IN [") : text.index("])")]
        assert set(re.findall(r"'(\w+)'", listed)) == gates.STANDING | {"wrong_role", "wrong_purpose"}
        rows = await run(graph, text, workspace=ws.id, cycle=result.cycle_id)
        assert [(row["obligation"], row["needs"][0]["covered"]) for row in rows] == [("o_r", True)]
    finally:
        await forget(graph, ws.id)


async def test_a_premise_is_said_to_be_ended_by_what_still_counts(graph: Graph) -> None:
    ws = await graph.workspace(new_id("audit"), owner="host", clock=Clock())
    try:
        await ws.grant(role="r", principal="P", read=["s"], write=["s"])
        for id in ("base", "l1", "l2"):
            await ws.record(Item(id=id, scope="s", content=id, receipts=[source(id)]))
        await ws.record(Item(id="rests", scope="s", content="rests", depends_on=["base"], receipts=[source("rests")]))
        await ws.verdict(later="l1", earlier="base", says="invalidates")
        await ws.verdict(later="l1", earlier="base", says="restores")
        await ws.verdict(later="l2", earlier="base", says="invalidates")
        result = await ws.join(principal="P", role="r", task="plan")
        assert result.rejected["rests"] == ("premise_invalid",)
        (premise,) = (await ws.why("rests", result.cycle_id)).premises
        assert [(cause.reason, cause.id) for cause in premise.by] == [("invalidated", "l2")]
    finally:
        await forget(graph, ws.id)
