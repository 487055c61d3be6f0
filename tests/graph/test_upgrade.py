"""What an earlier release left behind: its exports are read, and its schema is brought to this one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import tracegraph
from tracegraph import TracegraphError
from tracegraph import graph as core
from tracegraph.exporting import export
from tracegraph.scenarios import forget

pytestmark = pytest.mark.anyio
KEPT = sorted((Path(__file__).parent / "kept").glob("*.jsonl"))


def begins(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8").splitlines()[0]))


def same(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("file", KEPT, ids=lambda path: path.stem)
async def test_an_export_of_an_earlier_release_is_rebuilt_whole(
    graph: tracegraph.Graph, file: Path, tmp_path: Path
) -> None:
    header = begins(file)
    id = header["workspace"]
    await forget(graph, id)
    try:
        imported = await graph.import_(file)
        ws = await graph.workspace(id, invalidation=None)
        assert (imported.epoch, imported.digest) == (header["epoch"], header["head"])
        verified = await ws.verify()
        assert verified.intact
        assert (verified.epoch, verified.digest) == (header["epoch"], header["head"])
        found = await graph._driver.execute_query(
            "MATCH (k:ReturnCycle {workspace: $id}) RETURN k.id AS id, k.decision AS decision", id=id
        )
        assert {row["decision"] for row in found.records} == {"blocked", "admitted"}
        for row in found.records:
            assert (await ws.replay(row["id"])).equal
        again = tmp_path / "again.jsonl"
        await export(graph, id, again)
        assert same(again, file)
    finally:
        await forget(graph, id)


@pytest.fixture
async def schema(graph: tracegraph.Graph) -> AsyncIterator[tracegraph.Graph]:
    yield graph
    await graph._driver.execute_query("MATCH (s:TracegraphSchema) SET s.version = $v", v=core.SCHEMA_VERSION)
    await graph.ready()


async def test_an_earlier_schema_is_brought_to_this_one(schema: tracegraph.Graph) -> None:
    driver = schema._driver
    async with driver.session() as session:
        await (await session.run("DROP INDEX tracegraph_item_epoch")).consume()
        await (await session.run("MATCH (s:TracegraphSchema) SET s.version = 1")).consume()
    await schema.ready()

    assert await schema.schema() == core.SCHEMA_VERSION
    found = await driver.execute_query("SHOW INDEXES YIELD name, state WHERE name = 'tracegraph_item_epoch'")
    assert [row["state"] for row in found.records] == ["ONLINE"]


async def test_a_later_schema_is_left_alone(schema: tracegraph.Graph) -> None:
    await schema._driver.execute_query("MATCH (s:TracegraphSchema) SET s.version = $v", v=core.SCHEMA_VERSION + 1)
    with pytest.raises(TracegraphError, match=r"schema \d+; this tracegraph knows \d+") as refused:
        await schema.ready()

    assert refused.value.code == "unavailable"
    assert refused.value.hint == "Upgrade tracegraph."
    assert await schema.schema() == core.SCHEMA_VERSION + 1
