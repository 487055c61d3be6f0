"""The scenarios handed to every implementation of the design.

TRACEGRAPH_SHARED names the folder that holds them, else it is `shared` beside the checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tracegraph
from tracegraph.scenarios import check, load

FOLDER = Path(os.environ.get("TRACEGRAPH_SHARED") or Path(__file__).parents[3] / "shared") / "scenarios"
FILES = sorted(FOLDER.rglob("*.trace.yaml"))

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not FILES, reason="the shared scenarios are not here; TRACEGRAPH_SHARED names their folder"),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
async def test_every_expectation_of_a_shared_scenario_is_met(graph: tracegraph.Graph, path: Path) -> None:
    report = await check(graph, load(path))
    assert report.expectations
    assert not report.failures, "\n".join(f"line {failure.line}: {failure}" for failure in report.failures)
