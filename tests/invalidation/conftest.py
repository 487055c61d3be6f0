"""A fresh team for the pipeline's tests; endpoints are local stubs (stub.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tracegraph
from tests.invalidation.stub import Stub
from tracegraph import Item, Receipt, Workspace
from tracegraph.invalidation.endpoint import Endpoint
from tracegraph.invalidation.pipeline import Invalidation
from tracegraph.model import Grant, new_id
from tracegraph.scenarios import forget

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


class Team:
    """A workspace with one role that reads and writes one scope, and a clock that moves a minute a look."""

    ws: Workspace
    minutes = 0

    def now(self) -> datetime:
        self.minutes += 1
        return START + timedelta(minutes=self.minutes)

    async def tell(self, **items: str | Item) -> None:
        """Record each statement as a batch of its own, proven by a receipt that says the same."""
        for id, item in items.items():
            if isinstance(item, str):
                item = Item(
                    id=id, scope="s", content=item, receipts=[Receipt(id=f"{id}.r", uri="mail:1", text=f"Mail: {item}")]
                )
            await self.ws.record(item)

    async def edges(self, kind: str) -> list[dict[str, Any]]:
        """The verdict edges of a kind, by later and earlier item."""
        driver = self.ws.graph._driver
        found, _, _ = await driver.execute_query(
            "MATCH (l)-[v {workspace: $ws}]->(e) WHERE type(v) = $kind"
            " RETURN l.id AS later, e.id AS earlier, properties(v) AS v ORDER BY later, earlier, v.epoch",
            ws=self.ws.id,
            kind=kind,
        )
        return [{"later": row["later"], "earlier": row["earlier"], **row["v"]} for row in found]

    async def pairs(self, kind: str) -> list[tuple[str, str]]:
        return [(row["later"], row["earlier"]) for row in await self.edges(kind)]


MakeTeam = Callable[..., Any]


@pytest.fixture
async def team(graph: tracegraph.Graph) -> AsyncIterator[MakeTeam]:
    """Make a team whose returns are verified on a stub, or by nothing."""
    methods: list[Invalidation] = []
    made: list[str] = []

    async def make(stub: Stub | None = None, *, policy: dict[str, Any] | None = None, **settings: Any) -> Team:
        method = None if stub is None else pipeline(stub, **settings)
        if method is not None:
            methods.append(method)
        team = Team()
        team.ws = ws = await graph.workspace(
            new_id("ws"), owner="lead", clock=lambda: team.now(), policy=policy, invalidation=method
        )
        made.append(ws.id)
        grants = [Grant(role="worker", principal=who) for who in "abc"]
        await ws._commit([*grants, Grant(role="worker", read=["s"], write=["s"])], None)
        return team

    yield make
    for method in methods:
        await method.close()
    for name in made:
        await forget(graph, name)


def pipeline(stub: Stub, **settings: Any) -> Invalidation:
    """The pipeline on a stub, with short waits."""
    own = {name: settings.pop(name) for name in ("timeout", "deadline", "retries", "concurrency") if name in settings}
    endpoint = Endpoint(base_url=stub.url, api_key="k", **{"timeout": 5.0, "deadline": 20.0, **own})
    return Invalidation.on(endpoint, settings.pop("model", "judge-1"), **settings)
