"""The plans of the queries on the return path: no scan, no cartesian product, no eager operator that isn't noted.

A file notes what it needs in its header: `// Plan: eager (why).`
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import neo4j
import pytest

from tracegraph import Graph, Item, Receipt, Workspace
from tracegraph.graph import Tx, cypher, cypher_folder
from tracegraph.model import new_id
from tracegraph.scenarios import forget

NAMES = sorted(
    f"{folder}/{path.stem}"
    for folder in ("admission", "departure", "write")
    for path in (cypher_folder() / folder).glob("*.cypher")
    if path.stem not in ("create_workspace", "forget_workspace")
)
UNWANTED = {
    "scan": (
        "AllNodesScan",
        "NodeByLabelScan",
        "NodeIndexScan",
        "DirectedRelationshipTypeScan",
        "UndirectedRelationshipTypeScan",
        "DirectedRelationshipIndexScan",
        "UndirectedRelationshipIndexScan",
    ),
    "cartesian product": ("CartesianProduct",),
    "eager": ("Eager",),
}


@pytest.fixture(scope="module")
def driver(neo4j: dict[str, str]) -> Any:
    from neo4j import GraphDatabase

    auth = (neo4j["NEO4J_USERNAME"], neo4j["NEO4J_PASSWORD"])
    with GraphDatabase.driver(neo4j["NEO4J_URI"], auth=auth, notifications_min_severity="OFF") as driver:
        yield driver


def operators(plan: dict[str, Any]) -> set[str]:
    found = {plan["operatorType"].partition("@")[0]}
    return found.union(*(operators(child) for child in plan.get("children", ())))


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("name", NAMES)
def test_a_query_reads_by_index_and_notes_what_is_eager(driver: neo4j.Driver, name: str) -> None:
    text = cypher(name)
    header = "\n".join(line for line in text.splitlines() if line.startswith("//"))
    option, _, statement = text.partition("\n")
    with driver.session() as session:
        plan = session.run(f"{option} EXPLAIN\n{statement}").consume().plan  # type: ignore[arg-type]
    assert plan is not None
    found = operators(plan)
    for what, names in UNWANTED.items():
        if found & set(names):
            notes = " ".join(re.findall(r"^// Plan:.*(?:\n// .*)*", header, re.MULTILINE))
            assert what in notes.replace("\n// ", " "), f"{name}: {what}: {found & set(names)}"


def hits(plan: dict[str, Any]) -> int:
    return int(plan["args"].get("DbHits", 0)) + sum(hits(child) for child in plan.get("children", ()))


@pytest.fixture
def profiled(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many records of the store each named query has touched."""
    out: Counter[str] = Counter()

    async def rows(self: Tx, name: str, **parameters: Any) -> list[dict[str, Any]]:
        option, _, statement = cypher(name).partition("\n")
        result = await self._inner.run(f"{option} PROFILE\n{statement}", parameters)
        found = await result.data()
        plan = (await result.consume()).profile
        assert plan is not None
        out[name] += hits(plan)
        return found

    async def run(self: Tx, name: str, **parameters: Any) -> None:
        await rows(self, name, **parameters)

    monkeypatch.setattr(Tx, "rows", rows)
    monkeypatch.setattr(Tx, "run", run)
    return out


async def one_return(ws: Workspace, profiled: Counter[str]) -> Counter[str]:
    """Somebody leaves, ten new versions are recorded, they come back, open their view and ask."""
    profiled.clear()
    ticket = await ws.depart(principal="p", role="r", task="t")
    await ws.record(*(version(number, "new") for number in range(10)))
    result = await ws.admit(ticket, principal="p")
    assert result.decision == "admitted"
    assert len(result.items) == 30
    assert result.view is not None
    await ws.open_view(result.view, principal="p")
    await ws.recall(result.view, principal="p")
    await ws.why(result.items[0].id, result.cycle_id)
    await ws.join(principal="p", role="r", task="t")
    return Counter(profiled)


def version(number: int, content: str) -> Item:
    receipt = Receipt(uri="u", text=content)
    return Item(key=f"k{number}", scope="s", task="t", content=content, supports=["d"], receipts=[receipt])


@pytest.mark.anyio
async def test_no_query_of_a_return_touches_more_when_the_history_is_deep_or_the_store_is_large(
    graph: Graph, workspace: Workspace, profiled: Counter[str]
) -> None:
    await workspace.grant(role="r", principal="p", read=["s"])
    await workspace.record(*(version(number, "first") for number in range(30)))
    flat = await one_return(workspace, profiled)

    deep = await graph.workspace(new_id("test"), owner="owner")
    try:
        await deep.grant(role="r", principal="p", read=["s"])
        for _ in range(2):  # 41 versions of each key, and as many items of other tasks
            await deep.record(*(version(number % 30, "older") for number in range(600)))
            await deep.record(*(Item(scope="s", task="other", content="-") for _ in range(600)))
        await deep.record(*(version(number, "first") for number in range(30)))
        found = await one_return(deep, profiled)
    finally:
        await forget(graph, deep.id)

    assert set(found) == set(flat)
    grown = {name: (flat[name], found[name]) for name in found if found[name] > 1.2 * flat[name] + 50}
    assert not grown, f"hits, in a flat history and in a deep one: {grown}"
