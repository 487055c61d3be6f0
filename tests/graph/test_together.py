"""Batches that wait for the lock together: one transaction, and still an epoch, checks and an outcome each."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

import tracegraph
from tracegraph import Item, Receipt, ReceiptRef, TracegraphError
from tracegraph.graph import Tx
from tracegraph.model import new_id
from tracegraph.scenarios import forget

pytestmark = pytest.mark.anyio
START = datetime(2026, 1, 1, tzinfo=UTC)


class Counted:
    """Counts the transactions that a graph writes."""

    def __init__(self, graph: tracegraph.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = 0
        write = graph.write

        async def counted(work: Any, **how: Any) -> Any:
            self.writes += 1
            return await write(work, **how)

        monkeypatch.setattr(graph, "write", counted)


@pytest.fixture
async def other(graph: tracegraph.Graph) -> AsyncIterator[tracegraph.Workspace]:
    id = new_id("test")
    yield await graph.workspace(id, owner="owner")
    await forget(graph, id)


async def at_once(*calls: Any) -> list[Any]:
    """Await these together, in their order in line; what each returned or raised."""
    outcomes: list[Any] = [None] * len(calls)

    async def one(number: int, call: Any) -> None:
        try:
            outcomes[number] = await call
        except TracegraphError as refusal:
            outcomes[number] = refusal

    async with anyio.create_task_group() as group:
        for number, call in enumerate(calls):
            group.start_soon(one, number, call)
    return outcomes


def fact(id: str, **more: Any) -> Item:
    return Item(id=id, scope="s", content=f"It is {id}.", **more)


async def test_fifty_recorders_share_few_transactions_and_lose_no_epoch(
    graph: tracegraph.Graph, workspace: tracegraph.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = Counted(graph, monkeypatch)
    done = await at_once(*(workspace.record(fact(f"i{n}")) for n in range(50)))

    assert sorted(one.epoch for one in done) == list(range(1, 51))
    assert [one.ids for one in done] == [(f"i{n}",) for n in range(50)]
    assert count.writes <= 3
    assert (await workspace.verify()).intact
    assert len(await authors(workspace)) == 50


async def test_one_that_is_refused_takes_no_epoch_and_the_others_go_on(workspace: tracegraph.Workspace) -> None:
    await workspace.record(fact("taken"))
    done = await at_once(
        workspace.record(fact("first")),
        workspace.record(fact("a")),
        workspace.record(fact("taken")),
        workspace.record(fact("b"), author="stranger"),
        workspace.record(fact("c", depends_on=["nothing"])),
        workspace.record(fact("d")),
    )

    codes = [one.code if isinstance(one, TracegraphError) else one.epoch for one in done]
    assert codes == [2, 3, "conflict", "unknown_principal", "unknown_item", 4]
    assert set(await authors(workspace)) == {"taken", "first", "a", "d"}
    assert (await workspace.verify()).intact


async def test_a_batch_id_used_twice_at_once_is_written_once(workspace: tracegraph.Workspace) -> None:
    same, others = fact("a"), (workspace.record(fact(f"i{n}")) for n in range(3))
    done = await at_once(
        next(others),
        workspace.record(same, batch_id="b"),
        workspace.record(same, batch_id="b"),
        workspace.record(fact("z"), batch_id="b"),
        *others,
    )

    assert (done[1].epoch, done[1].repeated) == (done[2].epoch, False)
    assert done[2].repeated
    assert done[3].code == "conflict"
    assert {one.epoch for one in (*done[:2], *done[4:])} == {1, 2, 3, 4}


async def test_one_may_name_what_the_one_before_it_in_line_records(workspace: tracegraph.Workspace) -> None:
    done = await at_once(
        workspace.record(fact("first")),
        workspace.record(fact("a", receipts=[Receipt(id="r", uri="u", text="t")])),
        workspace.record(fact("b", depends_on=["a"], receipts=[ReceiptRef(id="r")])),
        workspace.revoke("a"),
        workspace.record(fact("a")),
    )

    assert [getattr(one, "epoch", None) for one in done] == [1, 2, 3, 4, None]
    assert done[4].code == "conflict"


async def test_the_authors_of_one_transaction_need_their_own_permission(workspace: tracegraph.Workspace) -> None:
    await workspace.grant(role="writer", write=["s"], principal="w")
    await workspace.grant(role="reader", read=["s"], principal="x")
    done = await at_once(
        workspace.record(fact("a"), author="w"),
        workspace.record(fact("b"), author="w"),
        workspace.record(fact("c"), author="x"),
        workspace.record(fact("d")),
    )

    assert [getattr(one, "author", None) for one in done] == ["w", "w", None, "owner"]
    assert done[2].code == "write_not_granted"
    assert await authors(workspace) == {"a": "w", "b": "w", "d": "owner"}


async def test_a_recorder_that_gives_up_takes_nobody_with_it(
    graph: tracegraph.Graph, workspace: tracegraph.Workspace
) -> None:
    locked, go = anyio.Event(), anyio.Event()

    async def hold() -> None:
        async def work(tx: Tx) -> None:
            await tx.row("write/lock", workspace=workspace.id, batch={"ids": []})
            locked.set()
            await go.wait()

        await graph.under_lock(work)

    async with anyio.create_task_group() as group:
        group.start_soon(hold)
        await locked.wait()
        with anyio.CancelScope() as given_up:
            async with anyio.create_task_group() as inner:
                for number in range(3):
                    inner.start_soon(workspace.record, fact(f"gone{number}"))
                await anyio.sleep(0.05)
                group.start_soon(workspace.record, fact("a"))
                await anyio.sleep(0.05)
                given_up.cancel()
        group.start_soon(workspace.record, fact("b"))
        go.set()

    # the first of the three was already asking the server for the lock, which may have written it before it heard
    assert set(await authors(workspace)) - {"gone0"} == {"a", "b"}
    assert (await workspace.verify()).intact


async def authors(ws: tracegraph.Workspace) -> dict[str, str]:
    """The workspace's items, and who recorded them."""
    found = await ws.graph._driver.execute_query(
        "MATCH (m:WorkItem {workspace: $id}) RETURN m.id AS id, m.author AS author", id=ws.id
    )
    return {row["id"]: row["author"] for row in found.records}


@pytest.mark.parametrize("seed", range(6))
async def test_versions_recorded_together_are_in_the_order_of_versions_recorded_apart(
    graph: tracegraph.Graph, workspace: tracegraph.Workspace, other: tracegraph.Workspace, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311
    batches = []
    for number in range(24):
        days = [chance.randrange(6) for _ in range(chance.choice((1, 1, 2)))]
        batches.append(
            [
                fact(f"v{number}-{place}", key=chance.choice("kl"), valid_from=START + timedelta(days=day))
                for place, day in enumerate(days)
            ]
        )
    for batch in batches:
        await workspace.record(*batch)
    done = await at_once(*(other.record(*batch) for batch in batches))

    assert [one.epoch for one in done] == list(range(1, 25))

    async def edges(id: str) -> set[tuple[Any, ...]]:
        found = await graph._driver.execute_query(
            "MATCH (a:WorkItem {workspace: $id})-[s:SUPERSEDES]->(b) RETURN a.id, s.epoch, s.named, b.id", id=id
        )
        return {tuple(row.values()) for row in found.records}

    assert await edges(workspace.id) == await edges(other.id)
    assert (await other.verify()).intact


@pytest.mark.parametrize("query", ["", "words"])
async def test_what_is_erased_between_the_gates_and_the_words_is_judged_anew(
    graph: tracegraph.Graph, monkeypatch: pytest.MonkeyPatch, workspace: tracegraph.Workspace, query: str
) -> None:
    ws, who = workspace, {"principal": "P", "role": "r", "task": "t"}
    await ws.set_policy(fill="relevance")
    await ws.grant(role="r", read=["s"], write=["s"], principal="P")
    await ws.record(*(fact(id, receipts=[Receipt(uri="u", text=id)]) for id in ("a", "b", "c", "d")))
    ticket = await ws.depart(**who)
    rows, left = Tx.rows, ["a", "b"]

    async def erased_first(self: Tx, name: str, **parameters: Any) -> list[dict[str, Any]]:
        if name == "admission/contents" and left:
            await ws.erase(left.pop(), reason="now")
        return await rows(self, name, **parameters)

    monkeypatch.setattr(Tx, "rows", erased_first)
    found = await ws.admit(ticket, principal="P", query=query or None)
    assert {one.id for one in found.items} == {"c", "d"}
    assert found.rejected["b"] == ("erased",)
    left.append("c")
    assert [one.id for one in await ws.read(**who)] == ["d"]
    assert (await ws.verify()).intact


async def test_a_join_ends_no_absence_that_began_after_its_decision(
    monkeypatch: pytest.MonkeyPatch, workspace: tracegraph.Workspace
) -> None:
    ws, who = workspace, {"principal": "P", "role": "r", "task": "t"}
    await ws.grant(role="r", read=["s"], write=["s"], principal="P")
    await ws.record(fact("a", receipts=[Receipt(uri="u", text="a")]))
    run, tickets = Tx.rows, list[str]()

    async def left_first(self: Tx, name: str, **parameters: Any) -> list[dict[str, Any]]:
        if name == "admission/contents" and not tickets:
            tickets.append(await ws.depart(**who))
        return await run(self, name, **parameters)

    monkeypatch.setattr(Tx, "rows", left_first)
    assert (await ws.join(**who)).decision == "admitted"
    assert (await ws.admit(tickets[0], principal="P")).decision == "admitted"
