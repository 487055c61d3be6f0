"""On a cluster a read may reach a server that lags behind: what a return reads follows what its lock saw."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

import tracegraph
from tracegraph import Item
from tracegraph.graph import Tx
from tracegraph.write import lock

pytestmark = pytest.mark.anyio


def reached(neo4j: dict[str, str], scheme: str) -> AbstractAsyncContextManager[tracegraph.Graph]:
    uri = f"{scheme}://{neo4j['NEO4J_URI'].partition('://')[2]}"
    return tracegraph.connect(uri, username=neo4j["NEO4J_USERNAME"], password=neo4j["NEO4J_PASSWORD"])


async def epoch(graph: tracegraph.Graph, workspace: tracegraph.Workspace) -> int:
    async def look(tx: Tx) -> int:
        return int((await lock(tx, workspace.id))["epoch"])

    return await graph.under_lock(look)


async def test_on_a_cluster_the_lock_leaves_a_bookmark_by_which_reads_follow_anybodys_write(
    workspace: tracegraph.Workspace, neo4j: dict[str, str]
) -> None:
    async with reached(neo4j, "neo4j") as other:
        await other.schema()
        await workspace.record(Item(scope="s", content="It is."))
        before = await other._bookmarks.get_bookmarks()
        assert await epoch(other, workspace) == 1
        assert await other._bookmarks.get_bookmarks() != before


async def test_on_a_single_server_taking_the_lock_writes_nothing(
    workspace: tracegraph.Workspace, neo4j: dict[str, str]
) -> None:
    async with reached(neo4j, "bolt") as other:
        await workspace.record(Item(scope="s", content="It is."))
        before = await other._bookmarks.get_bookmarks()
        assert await epoch(other, workspace) == 1
        assert await other._bookmarks.get_bookmarks() == before
