"""SIGKILL of the server at random moments: what was acknowledged is there, nothing is there by half, all goes on.

TRACEGRAPH_KILLS says how often, by default 3 times; a tenth of them, and at least one, while the schema is made.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.faults.servers import Own
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, TracegraphError, Workspace
from tracegraph.departure import read_ticket
from tracegraph.graph import SCHEMA_VERSION, cypher_folder, reach
from tracegraph.model import Committed
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

KILLS = int(os.environ.get("TRACEGRAPH_KILLS", "3"))
OF_SCHEMA = max(1, KILLS // 10)
A_WORKSPACE = 10
"""Kills that one workspace goes through, so that a long run's later rounds are no slower than its first."""

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120 + 60 * KILLS)]


chance = random.Random()  # noqa: S311


class Crew:
    """Who works on one workspace, and what each of them was told."""

    def __init__(self, steady: Workspace, hasty: Workspace, keys: Keys) -> None:
        self.steady = steady
        """Its calls wait for a server that is away."""
        self.hasty = hasty
        """Its calls are given up soon, and made again by us."""
        self.keys = keys
        self.over = False
        self.sent: dict[str, dict[str, str]] = {}
        """By batch_id, the items it records and their words."""
        self.acknowledged: dict[str, Committed] = {}
        self.calls: dict[str, Callable[[], Awaitable[Committed]]] = {}
        self.tickets: dict[str, str] = {}
        """By checkpoint, what came of its return."""
        self.cycles: list[str] = []
        self.seen: Counter[str] = Counter()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            for number in range(2):
                group.start_soon(self._records, self.steady, f"s{number}")
            for number in range(2):
                group.start_soon(self._records, self.hasty, f"h{number}")
            group.start_soon(self._returns, self.steady, "P")
            group.start_soon(self._returns, self.hasty, "Q")
            yield
            self.over = True

    async def _records(self, ws: Workspace, name: str) -> None:
        number = 0
        while not self.over:
            id = f"{name}-{number}"
            self.sent[id], self.calls[id] = _batch(ws, name, number)
            unsure = False
            while (done := await self._ask(self.calls[id])) is None:
                unsure = True
            assert unsure or not done.repeated
            if unsure:
                self.seen["batches sent again that were there" if done.repeated else "batches sent again"] += 1
            self.acknowledged[id] = done
            number += 1

    async def _returns(self, ws: Workspace, principal: str) -> None:
        while not self.over:
            ticket = await self._ask(lambda: ws.depart(principal=principal, role="r", task="t"))
            if ticket is None:
                continue
            checkpoint = read_ticket(self.keys, ticket, workspace=ws.id, principal=principal).checkpoint
            unsure = False
            while checkpoint not in self.tickets:
                try:
                    result = await self._ask(lambda ticket=ticket: ws.admit(ticket, principal=principal))  # type: ignore[misc]
                except TracegraphError as error:
                    if not unsure or error.code != "ticket_consumed":
                        raise
                    self.tickets[checkpoint] = "a return of which nothing was heard"
                else:
                    if result is None:
                        unsure = True
                        continue
                    assert result.decision == "admitted"
                    self.cycles.append(result.cycle_id)
                    self.tickets[checkpoint] = "a return tried again" if unsure else "a return"
                self.seen[self.tickets[checkpoint]] += 1

    async def _ask(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """What came of it; None when the server was unavailable."""
        try:
            return await call()
        except TracegraphError as error:
            if error.code != "unavailable":
                raise
            self.seen["unavailable"] += 1
            await anyio.sleep(0.1)
            return None

    async def check(self) -> None:
        """What the graph holds under the workspace's lock, against what was sent and what was acknowledged."""
        acknowledged, tickets = dict(self.acknowledged), dict(self.tickets)
        async with self.steady.graph._driver.session() as session, await session.begin_transaction() as tx:

            async def rows(query: str) -> list[list[Any]]:
                return [row.values() for row in [one async for one in await tx.run(query, id=self.steady.id)]]

            await rows("MATCH (w:Workspace {id: $id}) SET w.lock = true RETURN w.epoch")
            epochs = await rows(
                "MATCH (e:Epoch {workspace: $id}) RETURN e.number, e.batch_id, e.digest ORDER BY e.number"
            )
            items = await rows("MATCH (m:WorkItem {workspace: $id}) RETURN m.epoch, m.id, m.content")
            bound = await rows("MATCH (m:WorkItem {workspace: $id})-[:BOUND_TO]->(r:Receipt) RETURN m.id, r.text")
            cycles = await rows(
                "MATCH (k:ReturnCycle {workspace: $id}) RETURN k.id, k.decision, size(k.selected), "
                "COUNT { (k)-[:ISSUED]->(:ReturnView) }, COUNT { (k)-[:ISSUED]->(:ReturnView)-[:ADMITS]->() }, "
                "[(k)-[:RETURNED_FROM]->(c) | c.id]"
            )
        assert [number for number, _, _ in epochs] == list(range(1, len(epochs) + 1))
        log = {batch: (number, digest) for number, batch, digest in epochs}
        assert len(log) == len(epochs)
        for id, done in acknowledged.items():
            assert log[id] == (done.epoch, done.digest)
        held: dict[int, dict[str, str]] = {}
        for number, id, words in items:
            held.setdefault(number, {})[id] = words
        for batch, (number, _) in log.items():
            assert held.pop(number, {}) == self.sent.get(batch, {})  # whole, acknowledged or not
        assert held == {}
        facts = {id for id, _ in bound}
        assert facts >= {id for batch in log for id in self.sent.get(batch, {}) if id[0] == "i"}
        for _, decision, selected, views, admits, departures in cycles:
            assert (decision, views, admits, len(departures)) == ("admitted", 1, selected, 1)
        consumed = [departures[0] for *_, departures in cycles]
        assert len(consumed) == len(set(consumed))
        assert set(tickets) <= set(consumed)
        assert set(self.cycles) <= {id for id, *_ in cycles}
        assert (await self.steady.verify()).intact

    async def finish(self) -> None:
        """Everything goes on: batches sent once more are known, decisions come out again, a return is admitted."""
        await self.check()
        some = chance.sample(sorted(self.acknowledged), min(20, len(self.acknowledged)))
        for id in some:
            again = await self.calls[id]()
            assert (again.repeated, again.epoch) == (True, self.acknowledged[id].epoch)
        for cycle in self.cycles[-10:] + chance.sample(self.cycles, min(10, len(self.cycles))):
            assert (await self.steady.replay(cycle)).equal
        ticket = await self.hasty.depart(principal="P", role="r", task="t")
        assert (await self.hasty.admit(ticket, principal="P")).decision == "admitted"


def _batch(ws: Workspace, name: str, number: int) -> tuple[dict[str, str], Callable[[], Awaitable[Committed]]]:
    """The items of one batch and their words, and the call that records it."""
    at, id = f"{name}-{number}", f"{name}-{number}"
    if number % 4 == 2:
        owed = Obligation(
            id=f"o-{at}",
            scope="s",
            role="another",
            content=f"Owed {at}.",
            frontier=Frontier(id=f"f-{at}", content="Open."),
        )
        return {f"o-{at}": f"Owed {at}.", f"f-{at}": "Open."}, lambda: ws.open_obligation(owed, batch_id=id)
    if number % 4 == 3:
        return {}, lambda: ws.revoke(f"i-{name}-{number - 3}-0", batch_id=id)
    items = [
        Item(
            id=f"i-{at}-{place}",
            key=f"{name}-{place}",
            scope="s",
            content=f"Number {number} of {name}, {place}.",
            receipts=[Receipt(uri=f"mail:{at}", text=f"Words of {at}, {place}")],
        )
        for place in range(1 + number % 3)
    ]
    return {item.id: item.content for item in items}, lambda: ws.record(*items, batch_id=id)


async def test_a_schema_set_up_that_was_killed_is_finished_by_the_next(own: Own, tmp_path: Path) -> None:
    wanted = len(list((cypher_folder() / "schema").glob("[0-9]*.cypher")))
    cut = 0
    for number in range(OF_SCHEMA):

        async def set_up() -> None:
            nonlocal cut
            try:
                async with own.connect(patience=5):
                    pass
            except TracegraphError as error:
                if error.code != "unavailable":
                    raise
                cut += 1

        async with reach(own.uri, password=own.password) as onlooker, anyio.create_task_group() as group:
            await half_made(onlooker)  # its plan
            group.start_soon(set_up)
            group.start_soon(set_up)
            with anyio.move_on_after(60 if number == 0 else chance.uniform(0.1, 2.5)):
                while not (number == 0 and await half_made(onlooker)):  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            await own.kill()
        await own.start()
        async with reach(own.uri, password=own.password) as graph:
            assert number > 0 or await half_made(graph)
        async with own.connect() as graph:
            assert not await half_made(graph)
            assert await graph.schema() == SCHEMA_VERSION
            states = await indexes(graph)
            assert set(states.values()) == {"ONLINE"}
            assert len(states) >= wanted
            ws = await open_workspace(graph, f"schema-{number}", owner="lead", keys=Keys(tmp_path / "keys"))
            assert (await ws.record(Item(id="a", scope="s", content="c"))).epoch == 1
            assert (await ws.verify()).intact
            if number < OF_SCHEMA - 1:
                await forget_schema(graph)
    print({"kills": OF_SCHEMA, "set-ups cut": cut})


async def half_made(graph: Graph) -> list[str]:
    """The indexes of constraints that are not there yet: the worst moment for a kill."""
    found = await graph._driver.execute_query(
        "SHOW INDEXES YIELD name, owningConstraint "
        "WHERE name IN ['tracegraph_item', 'tracegraph_epoch'] AND owningConstraint IS NULL RETURN name"
    )
    return [row["name"] for row in found.records]


async def test_what_was_acknowledged_outlives_every_kill(own: Own, tmp_path: Path) -> None:
    keys, left, seen = Keys(tmp_path / "keys"), max(1, KILLS - OF_SCHEMA), Counter[str]()
    while left > 0:
        async with own.connect() as first, own.connect(patience=10) as second:
            steady = await open_workspace(first, f"kills-{left}", owner="lead", keys=keys)
            hasty = await open_workspace(second, f"kills-{left}", owner=None, keys=keys)
            crew = Crew(steady, hasty, keys)
            for principal in ("P", "Q"):
                await steady.grant(role="r", principal=principal, read=["s"])
            async with crew.at_work():
                await progress(crew, 10)
                until = left - A_WORKSPACE
                while left > max(0, until):
                    await anyio.sleep(chance.uniform(0, 3))
                    await own.kill()
                    left -= 1
                    while left > 0 and chance.random() < (0.4 if left > 1 else 1):
                        if not await own.kill_while_it_starts(chance.uniform(0.2, 8)):
                            break
                        seen["kills while it recovered"] += 1
                        left -= 1
                    await own.start()
                    await crew.check()
                    if left % 4 == 1:
                        await progress(crew, 5)
                await progress(crew, 5)
            await crew.finish()
            seen += crew.seen
            seen["batches"] += len(crew.acknowledged)
            print({"kills": KILLS - OF_SCHEMA - left} | dict(seen), flush=True)


async def progress(crew: Crew, batches: int) -> None:
    """Until so many batches more were acknowledged, and a return."""
    enough, returns = len(crew.acknowledged) + batches, len(crew.cycles)
    with anyio.fail_after(90):
        while len(crew.acknowledged) < enough or len(crew.cycles) == returns:  # noqa: ASYNC110
            await anyio.sleep(0.05)


async def indexes(graph: Graph) -> dict[str, str]:
    found = await graph._driver.execute_query("SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'tracegraph_'")
    return {row["name"]: row["state"] for row in found.records}


async def forget_schema(graph: Graph) -> None:
    """The workspaces stay: their next set-up has nodes to index."""
    run = graph._driver.execute_query
    await run("MATCH (s:TracegraphSchema) DELETE s")
    for row in (await run("SHOW CONSTRAINTS YIELD name WHERE name STARTS WITH 'tracegraph_'")).records:
        await run(f"DROP CONSTRAINT {row['name']}")
    for name in await indexes(graph):
        await run(f"DROP INDEX {name}")
