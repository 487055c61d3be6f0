"""The plans of the queries on the return path: no scan, no cartesian product, no eager operator that isn't noted.

A file notes what it needs in its header: `// Plan: eager (why).`
"""

from __future__ import annotations

import re
from typing import Any

import neo4j
import pytest

from tracegraph.graph import cypher, cypher_folder

NAMES = sorted(
    f"{folder}/{path.stem}"
    for folder in ("admission", "departure", "write")
    for path in (cypher_folder() / folder).glob("*.cypher")
    if path.stem not in ("create_workspace", "forget_workspace")
)
UNWANTED = {
    "scan": ("AllNodesScan", "NodeByLabelScan", "DirectedRelationshipTypeScan", "UndirectedRelationshipTypeScan"),
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
