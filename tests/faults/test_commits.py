"""A connection that ends during a commit: what was written is known again, and nothing is written twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import tracegraph
from tests.faults.proxy import Proxy
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, TracegraphError, Workspace
from tracegraph.model import new_id
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

pytestmark = pytest.mark.anyio

WHO = {"principal": "P", "role": "r", "task": "t"}


@pytest.fixture
async def far(proxy: Proxy, neo4j: dict[str, str]) -> AsyncIterator[Graph]:
    """The run's server through the proxy."""
    user, password = neo4j["NEO4J_USERNAME"], neo4j["NEO4J_PASSWORD"]
    async with tracegraph.connect(proxy.uri, username=user, password=password) as graph:
        yield graph


@pytest.fixture
async def ws(far: Graph, graph: Graph, tmp_path: Path) -> AsyncIterator[Workspace]:
    made = await open_workspace(far, new_id("commit"), owner="lead", keys=Keys(tmp_path))
    await made.grant(role="r", principal="P", read=["s"], write=["s"])
    await made.record(item("a"))
    await made.open_obligation(
        Obligation(id="o", scope="s", content="Owed.", frontier=Frontier(id="f", content="Open."))
    )
    yield made
    await forget(graph, made.id)


def item(id: str) -> Item:
    return Item(id=id, scope="s", content=f"It is {id}.", receipts=[Receipt(uri="m", text="m")])


async def unavailable(call: Awaitable[Any]) -> TracegraphError:
    with pytest.raises(TracegraphError) as error:
        await call
    assert error.value.code == "unavailable"
    return error.value


async def count(graph: Graph, label: str, ws: Workspace) -> int:
    found = await graph._driver.execute_query(
        "MATCH (n {workspace: $id}) WHERE $label IN labels(n) RETURN count(n) AS n", id=ws.id, label=label
    )
    return int(found.records[0]["n"])


WRITES: dict[str, Callable[[Workspace], Awaitable[Any]]] = {
    "record": lambda ws: ws.record(item("b")),
    "record with an id": lambda ws: ws.record(item("b"), batch_id="mine"),
    "grant": lambda ws: ws.grant(role="r", read=["more"]),
    "revoke": lambda ws: ws.revoke("a"),
    "resolve": lambda ws: ws.resolve("o"),
    "advance": lambda ws: ws.advance("o", "Nearly."),
    "erase": lambda ws: ws.erase("a"),
    "set_policy": lambda ws: ws.set_policy(max_items=3),
    "remember": lambda ws: ws.remember("m", principal="P", grounded_in=["a"]),
}


@pytest.mark.parametrize("fault", ["lost", "swallowed"])
@pytest.mark.parametrize("write", WRITES)
async def test_a_write_whose_commit_is_lost_is_there_once(ws: Workspace, proxy: Proxy, write: str, fault: str) -> None:
    setattr(proxy, fault, 1)
    done = await WRITES[write](ws)
    assert (done.epoch, done.repeated) == (4, False)
    assert proxy.lost + proxy.swallowed == 0
    found = await ws.verify()
    assert (found.intact, found.epoch) == (True, 4)


@pytest.mark.parametrize(("fault", "written"), [("lost", True), ("swallowed", False)])
async def test_a_batch_sent_again_after_its_outcome_was_unknown_is_written_once(
    ws: Workspace, proxy: Proxy, fault: str, written: bool
) -> None:
    setattr(proxy, fault, 2)
    error = await unavailable(ws.record(item("b"), batch_id="mine"))
    assert "during a commit" in error.message
    assert "same batch_id" in error.hint
    again = await ws.record(item("b"), batch_id="mine")
    assert (again.epoch, again.repeated) == (4, written)
    assert (await ws.verify()).epoch == 4


async def test_batches_that_shared_a_lost_commit_each_get_their_own_outcome(ws: Workspace, proxy: Proxy) -> None:
    await ws.record(item("old"), batch_id="old")
    proxy.lost = 1
    outcomes: dict[str, Any] = {}

    async def record(id: str) -> None:
        try:
            outcomes[id] = await ws.record(item(id), batch_id=id)
        except TracegraphError as refusal:
            outcomes[id] = refusal.code

    before = proxy.commits
    async with anyio.create_task_group() as group:
        for id in ("first", "b", "old", "a", "c"):
            group.start_soon(record, id)
    assert proxy.commits - before < 5  # they did share
    epochs = [outcomes[id].epoch for id in ("old", "first", "b", "c")]
    assert epochs == [4, 5, 6, 7]
    assert [outcomes[id].repeated for id in ("old", "first", "b", "c")] == [True, False, False, False]
    assert outcomes["a"] == "conflict"
    assert (await ws.verify()).epoch == 7


@pytest.mark.parametrize("fault", ["lost", "swallowed"])
@pytest.mark.parametrize("act", ["admit", "join"])
async def test_a_return_whose_commit_is_lost_is_decided_and_recorded_once(
    ws: Workspace, graph: Graph, proxy: Proxy, act: str, fault: str
) -> None:
    ticket = await ws.depart(**WHO)
    setattr(proxy, fault, 1)
    result = await (ws.admit(ticket, principal="P") if act == "admit" else ws.join(**WHO))
    assert result.decision == "admitted"
    assert proxy.lost + proxy.swallowed == 0
    assert await count(graph, "ReturnCycle", ws) == await count(graph, "ReturnView", ws) == 1
    assert (await ws.replay(result.cycle_id)).equal
    assert (await ws.open_view(result.view or "", principal="P")).cycle_id == result.cycle_id
    with pytest.raises(TracegraphError) as error:
        await ws.admit(ticket, principal="P")
    assert error.value.code == "ticket_consumed"


@pytest.mark.parametrize(("fault", "recorded"), [("lost", 1), ("swallowed", 0)])
async def test_a_ticket_is_consumed_by_a_return_that_was_recorded_and_by_no_other(
    ws: Workspace, graph: Graph, proxy: Proxy, fault: str, recorded: int
) -> None:
    ticket = await ws.depart(**WHO)
    setattr(proxy, fault, 2)
    await unavailable(ws.admit(ticket, principal="P"))
    assert await count(graph, "ReturnCycle", ws) == recorded
    if recorded:
        with pytest.raises(TracegraphError) as error:
            await ws.admit(ticket, principal="P")
        assert error.value.code == "ticket_consumed"
        assert (await ws.join(**WHO)).decision == "admitted"
    else:
        assert (await ws.admit(ticket, principal="P")).decision == "admitted"


@pytest.mark.parametrize("fault", ["lost", "swallowed"])
async def test_a_read_that_ends_with_its_connection_is_made_again(ws: Workspace, proxy: Proxy, fault: str) -> None:
    proxy.reads = True
    setattr(proxy, fault, 1)
    assert [one.id for one in await ws.read(**WHO)] == ["a", "f", "o"]
    setattr(proxy, fault, 1)
    assert (await ws.join(**WHO)).decision == "admitted"
    assert proxy.lost + proxy.swallowed == 0


@pytest.mark.parametrize("fault", ["lost", "swallowed"])
async def test_a_view_whose_opening_is_lost_is_opened_once(
    ws: Workspace, graph: Graph, proxy: Proxy, fault: str
) -> None:
    view = (await ws.join(**WHO)).view or ""
    setattr(proxy, fault, 1)
    assert {one.id for one in (await ws.open_view(view, principal="P")).items} == {"a", "f", "o"}
    assert proxy.lost + proxy.swallowed == 0
    found = await graph._driver.execute_query(
        "MATCH (:Principal {workspace: $id})-[o:OPENED]->(:ReturnView) RETURN count(o) AS n", id=ws.id
    )
    assert found.records[0]["n"] == 1


@pytest.mark.parametrize("fault", ["lost", "swallowed"])
async def test_a_departure_whose_commit_is_lost_is_one_departure(ws: Workspace, proxy: Proxy, fault: str) -> None:
    setattr(proxy, fault, 1)
    ticket = await ws.depart(**WHO)
    assert (await ws.admit(ticket, principal="P")).decision == "admitted"
    assert (await ws.verify()).epoch == 4


@pytest.mark.parametrize("fault", ["lost", "swallowed"])
async def test_a_workspace_whose_first_commit_is_lost_is_made_once(
    far: Graph, graph: Graph, proxy: Proxy, fault: str
) -> None:
    id = new_id("commit")
    setattr(proxy, fault, 1)
    made = await far.workspace(id, owner="lead")
    try:
        assert (await made.record(item("a"))).epoch == 1
        assert (await made.verify()).intact
        assert await count(graph, "Policy", made) == 1
    finally:
        await forget(graph, id)


async def test_a_recorder_that_gives_up_while_its_batch_is_committed_takes_nobody_with_it(
    ws: Workspace, proxy: Proxy
) -> None:
    """The three share a transaction; the second's caller leaves while the server is at it."""
    outcomes: list[str] = []

    async def record(id: str) -> None:
        await ws.record(item(id))
        outcomes.append(id)

    async with anyio.create_task_group() as group:
        proxy.freeze()
        scope = anyio.CancelScope()

        async def leaves() -> None:
            with scope:
                await record("gone")

        proxy.thaw()
        async with ws.graph.line(ws.id)._turn:
            group.start_soon(record, "b")
            group.start_soon(leaves)
            group.start_soon(record, "c")
            await anyio.sleep(0.05)
            proxy.freeze()
        await anyio.sleep(0.2)
        scope.cancel()
        await anyio.sleep(0.05)
        proxy.thaw()
    assert sorted(outcomes) == ["b", "c"]
    assert (await ws.verify()).intact
