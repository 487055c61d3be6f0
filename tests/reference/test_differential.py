"""Random histories through the reference and through the product on Neo4j (DESIGN §16).

TRACEGRAPH_HISTORIES sets how many seeds are compared (by default 120), TRACEGRAPH_FIRST_SEED where they begin.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import tracegraph
from tests.reference.histories import expected, history
from tracegraph.scenarios import check, load

SEEDS = int(os.environ.get("TRACEGRAPH_HISTORIES", "120"))
FIRST = int(os.environ.get("TRACEGRAPH_FIRST_SEED", "1000"))
BATCH = 10

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, BATCH))
async def test_the_product_decides_every_step_as_the_reference_does(
    graph: tracegraph.Graph, tmp_path: Path, first: int
) -> None:
    import anyio

    turn = anyio.CapacityLimiter(4)
    failures: list[str] = []
    compared = 0

    async def one(seed: int) -> None:
        nonlocal compared
        path = tmp_path / f"history-{seed}.trace.yaml"
        path.write_text(json.dumps(expected(history(seed)), ensure_ascii=False), encoding="utf-8")  # JSON is YAML too
        async with turn:
            report = await check(graph, load(path))
        compared += len(report.expectations)
        failures.extend(f"seed {seed}, line {one.line}: {one}" for one in report.failures)

    async with anyio.create_task_group() as group:
        for seed in range(first, min(first + BATCH, FIRST + SEEDS)):
            group.start_soon(one, seed)
    assert compared > 0
    assert not failures, "\n".join(failures)
