"""A writer without the right: each way to end, replace or judge what is another's, and what a refusal leaves behind.

The attacker `A1` may write `trip` and knows every id of `payroll`, where it may do nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.security.conftest import START, Team, team_of
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, ReceiptRef, TracegraphError, Workspace
from tracegraph.scenarios import forget
from tracegraph.signing import Keys

pytestmark = pytest.mark.anyio

WORDS = "The bonus of Ada is 12,000."
MEMO = "Signed by Grace on Friday."


@dataclass
class Payroll:
    ws: Workspace
    ids: dict[str, str]
    """Of what can be withdrawn."""


@pytest.fixture(scope="module")
async def payroll(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Payroll]:
    """B1's statements in `payroll`, and one of A1's in `trip` that shares a receipt with them."""
    ws = (await team_of(graph, Keys(tmp_path_factory.mktemp("keys")))).ws
    shared = Receipt(id="r_shared", uri="mail:0", text="Shared.")
    bonus = Item(id="b0", key="bonus", scope="payroll", content=WORDS,
                 receipts=[Receipt(id="r_b0", uri="mail:1", text=MEMO), shared])  # fmt: skip
    await ws.record(
        bonus, Item(id="b1", scope="payroll", content="Paid monthly.", receipts=[shared_ref()]), author="B1"
    )
    owed = Obligation(id="o0", scope="payroll", content="Pay.", frontier=Frontier(id="f0", content="Not paid."))
    await ws.open_obligation(owed, author="B1")
    await ws.record(Item(id="t0", scope="trip", content="Sunrise.", receipts=[ReceiptRef(id="r_shared")]))
    await ws.record(Item(id="b2", scope="payroll", content="Void.", receipts=[shared_ref()]), author="B1")
    ids = {
        "verdict": (await ws.verdict(later="b0", earlier="b1", says="compatible", author="B1")).ids[0],
        "revocation": (await ws.revoke("b2", author="B1")).ids[0],
        "denial": (await ws.deny(role="itinerary", read=["vault"], write=["vault"])).ids[0],
        "grant": (await ws.grant(role="payer", read=["vault"], write=["vault"])).ids[0],
    }
    yield Payroll(ws, ids)
    await forget(graph, ws.id)


def shared_ref() -> ReceiptRef:
    return ReceiptRef(id="r_shared")


def item(**more: Any) -> Item:
    return Item(**{"scope": "trip", "content": "Mine.", "receipts": [Receipt(uri="mail:9", text="Mine.")], **more})


Act = Callable[[Payroll], Awaitable[Any]]
FORBIDDEN: dict[str, tuple[str, Act]] = {
    "supersede it by name": ("write_not_granted", lambda p: p.ws.record(item(supersedes=["b0"]), author="A1")),
    "supersede it among others": (
        "write_not_granted",
        lambda p: p.ws.record(item(supersedes=["t0", "b0"]), author="A1"),
    ),
    "take its receipt's id, so that `revoke` would miss the receipt": (
        "conflict",
        lambda p: p.ws.record(item(id="r_b0"), author="A1"),
    ),
    "give its id to a receipt": (
        "conflict",
        lambda p: p.ws.record(item(receipts=[Receipt(id="b0", uri="mail:9", text="Mine.")]), author="A1"),
    ),
    "record a version of its identity": (
        "write_not_granted",
        lambda p: p.ws.record(item(scope="payroll", key="bonus"), author="A1"),
    ),
    "record a correction of its past": (
        "write_not_granted",
        lambda p: p.ws.record(item(scope="payroll", key="bonus", valid_from=START.replace(year=2020), valid_to=START),
                              author="A1"),
    ),
    "hide a forbidden record behind allowed ones": (
        "write_not_granted",
        lambda p: p.ws.record(*(item() for _ in range(20)), item(supersedes=["b0"]), author="A1"),
    ),
    "supersede within the batch what the batch may not write": (
        "write_not_granted",
        lambda p: p.ws.record(item(id="x", scope="payroll"), item(supersedes=["x"]), author="A1"),
    ),
    "revoke it": ("write_not_granted", lambda p: p.ws.revoke("b0", author="A1")),
    "revoke it for the past": (
        "write_not_granted",
        lambda p: p.ws.revoke("b0", author="A1", effective_from=START.replace(year=2020)),
    ),
    "revoke its receipt": ("write_not_granted", lambda p: p.ws.revoke("r_b0", author="A1")),
    "revoke a receipt it shares": ("write_not_granted", lambda p: p.ws.revoke("r_shared", author="A1")),
    "retract it": ("write_not_granted", lambda p: p.ws.retract("b0", author="A1")),
    "retract a receipt it shares": ("write_not_granted", lambda p: p.ws.retract("r_shared", author="A1")),
    "resolve its obligation": ("write_not_granted", lambda p: p.ws.resolve("o0", author="A1")),
    "advance its obligation": ("write_not_granted", lambda p: p.ws.advance("o0", "Paid.", author="A1")),
    "open an obligation there": (
        "write_not_granted",
        lambda p: p.ws.open_obligation(Obligation(scope="payroll", content="Pay me."), author="A1"),
    ),
    "invalidate it by a verdict": (
        "write_not_granted",
        lambda p: p.ws.verdict(later="t0", earlier="b0", says="invalidates", author="A1"),
    ),
    "propose a verdict on it": (
        "write_not_granted",
        lambda p: p.ws.verdict(later="t0", earlier="b0", says="proposed", author="A1"),
    ),
    "restore it by a verdict": (
        "write_not_granted",
        lambda p: p.ws.verdict(later="t0", earlier="b0", says="restores", author="A1"),
    ),
    "withdraw a verdict on it": ("write_not_granted", lambda p: p.ws.withdraw(p.ids["verdict"], author="A1")),
    "withdraw its revocation": ("write_not_granted", lambda p: p.ws.withdraw(p.ids["revocation"], author="A1")),
    "withdraw a denial": ("not_owner", lambda p: p.ws.withdraw(p.ids["denial"], author="A1")),
    "withdraw a grant": ("not_owner", lambda p: p.ws.withdraw(p.ids["grant"], author="A1")),
    "grant itself the scope": (
        "not_owner",
        lambda p: p.ws.grant(role="itinerary", read=["payroll"], write=["payroll"], author="A1"),
    ),
    "grant itself the role": ("not_owner", lambda p: p.ws.grant(role="payer", principal="A1", author="A1")),
    "deny the others": ("not_owner", lambda p: p.ws.deny(role="payer", write=["payroll"], author="A1")),
    "set the policy": ("not_owner", lambda p: p.ws.set_policy(coverage=0, author="A1")),
    "erase it": ("not_owner", lambda p: p.ws.erase("b0", author="A1")),
    "erase its own": ("not_owner", lambda p: p.ws.erase("t0", author="A1")),
    "write as nobody known": ("unknown_principal", lambda p: p.ws.record(item(), author="stranger")),
    "write as a role": ("unknown_principal", lambda p: p.ws.record(item(), author="payer")),
    "remember as nobody known": (
        "unknown_principal",
        lambda p: p.ws.remember("Mine.", principal="stranger", grounded_in=["t0"]),
    ),
    "take an id that is taken": ("conflict", lambda p: p.ws.record(item(id="b0"), author="A1")),
    "take a receipt's id that is taken": (
        "conflict",
        lambda p: p.ws.record(item(receipts=[Receipt(id="r_b0", uri="mail:9", text="Forged.")]), author="A1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FORBIDDEN)
async def test_a_writer_without_the_right_cannot(payroll: Payroll, what: str) -> None:
    code, act = FORBIDDEN[what]
    before = await state(payroll.ws)
    with pytest.raises(TracegraphError) as error:
        await act(payroll)
    assert error.value.code == code
    assert WORDS not in str(error.value)
    assert await state(payroll.ws) == before


async def state(ws: Workspace) -> Any:
    """What B1 reads, the head of the log, and the policy."""
    items = await ws.read(principal="B1", role="payer", task="pay")
    head = await ws.verify()
    assert head.intact
    return [(one.id, one.content) for one in items], head.epoch, head.digest, await ws.policy()


async def test_a_grant_that_lapsed_or_was_denied_writes_nothing(payroll: Payroll) -> None:
    ws = payroll.ws
    await ws.grant(
        role="temp",
        principal="T1",
        write=["payroll"],
        valid_from=START.replace(month=3),
        valid_to=START.replace(month=4),
    )
    await ws.grant(role="barred", principal="T2", write=["payroll"])
    await ws.deny(role="barred", write=["payroll"])
    for author in ("T1", "T2"):
        with pytest.raises(TracegraphError) as error:
            await ws.revoke("b0", author=author)
        assert error.value.code == "write_not_granted"


async def test_a_quote_is_no_way_to_guess_at_words_one_may_not_read(payroll: Payroll) -> None:
    """Whether a verdict counts would otherwise tell its author, who reads the earlier item, that the quote is there."""
    ws = payroll.ws
    for later, right, wrong in (("b0", "12,000", "13,000"), ("b0", "Grace", "Linus"), ("mine", "Grace", "Linus")):
        if later == "mine":  # the hidden receipt, bound to an item of one's own
            await ws.record(item(id="mine", receipts=[ReceiptRef(id="r_b0")]), author="A1")
        seen = []
        for quote in (right, wrong):
            done = await ws.record(item(), author="A1")
            verdict = await ws.verdict(later=later, earlier=done.ids[-1], says="invalidates", quote=quote, author="A1")
            read = await ws.read(principal="A1", role="itinerary", task="plan")
            seen.append((done.ids[-1] in [one.id for one in read], [*verdict.uncertain.values()]))
        assert seen[0] == seen[1], (later, right)


async def test_a_quote_of_what_its_author_may_read_counts(payroll: Payroll) -> None:
    ws = payroll.ws
    await ws.record(item(id="e0", content="Pickup from Sunrise."), author="A1")
    await ws.verdict(later="t0", earlier="e0", says="invalidates", quote="Sunrise", author="A1")
    assert "e0" not in [one.id for one in await ws.read(principal="A1", role="itinerary", task="plan")]
    await ws.record(item(id="e1"), author="A1")
    await ws.verdict(later="b0", earlier="e1", says="invalidates", quote="12,000")  # the owner reads everything
    assert "e1" not in [one.id for one in await ws.read(principal="A1", role="itinerary", task="plan")]


async def test_a_verdict_that_is_not_taken_as_what_it_says_tells_its_author(payroll: Payroll) -> None:
    ws = payroll.ws
    await ws.record(item(id="d0", content="Pickup from Sunrise."), author="A1")

    async def say(**more: Any) -> list[str]:
        done = await ws.verdict(**{"later": "t0", "earlier": "d0", "says": "invalidates", "author": "A1"} | more)
        assert set(done.uncertain) <= set(done.ids)
        return list(done.uncertain.values())

    assert await say(quote="Sunset", batch_id="doubt") == ["quote"]
    assert await say(confidence=0.1) == ["confidence"]
    assert await say(says="uncertain") == []
    assert await say(quote="Sunrise", confidence=0.9) == []
    assert await say(quote="Sunset", batch_id="doubt") == []  # sent again: nothing was written now


async def test_a_batch_id_of_another_is_no_way_to_its_result(payroll: Payroll) -> None:
    ws = payroll.ws
    mine = Item(id="once", scope="payroll", content="Once.", receipts=[Receipt(id="r_once", uri="m", text="Once.")])
    await ws.record(mine, author="B1", batch_id="the batch")
    with pytest.raises(TracegraphError) as error:
        await ws.record(mine, author="A1", batch_id="the batch")
    assert error.value.code == "conflict"


async def test_a_call_cannot_loosen_the_policy_to_read_more(payroll: Payroll) -> None:
    for change in ({"max_items": 65}, {"coverage": 0.5}, {"view_minutes": 16}, {"max_item_chars": 8001}):
        with pytest.raises(TracegraphError) as error:
            await payroll.ws.join(principal="A1", role="itinerary", task="plan", policy=change)
        assert error.value.code == "policy_loosened"


async def test_no_one_remembers_or_recalls_for_another(team: Team) -> None:
    await team.ws.record(item(id="t1"), author="A1")
    await team.ws.grant(role="itinerary", principal="C1")
    await team.ws.remember("A1's own.", principal="A1", grounded_in=["t1"])
    for who in ("A1", "C1"):
        view = (await team.ws.join(principal=who, role="itinerary", task="plan")).view
        recalled = [one.content for one in await team.ws.recall(view, principal=who)]
        assert recalled == (["A1's own."] if who == "A1" else [])
