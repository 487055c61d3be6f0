"""On a cluster a read may reach a server that lags behind: what a return reads follows what its lock saw."""

from __future__ import annotations

import pytest

import tracegraph
from tracegraph import Item
from tracegraph.admission.pin import pin
from tracegraph.graph import Tx
from tracegraph.write import lock

pytestmark = pytest.mark.anyio


async def test_taking_the_lock_leaves_the_bookmark_of_the_last_write_whoever_wrote_it(
    graph: tracegraph.Graph, workspace: tracegraph.Workspace, neo4j: dict[str, str]
) -> None:
    async with tracegraph.connect(
        neo4j["NEO4J_URI"], username=neo4j["NEO4J_USERNAME"], password=neo4j["NEO4J_PASSWORD"]
    ) as other:
        await workspace.record(Item(scope="s", content="It is."))
        written = await graph._bookmarks.get_bookmarks()
        assert await other._bookmarks.get_bookmarks() != written

        async def look(tx: Tx) -> int:
            await pin(tx, workspace.id, principal="p", role="r", task="t", now=0)
            return int((await lock(tx, workspace.id))["epoch"])

        assert await other.under_lock(look) == 1
        assert await other._bookmarks.get_bookmarks() == written


async def test_taking_the_lock_changes_nothing(graph: tracegraph.Graph, workspace: tracegraph.Workspace) -> None:
    async def look(tx: Tx) -> int:
        return int((await lock(tx, workspace.id))["epoch"])

    before = await graph._bookmarks.get_bookmarks()
    await graph.under_lock(look)
    assert await graph._bookmarks.get_bookmarks() == before
