"""The paper's travel case (C.6) with its canned verdicts taken out: the verifier decides it, in a scenario."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import tracegraph
from tests.invalidation.conftest import pipeline
from tests.invalidation.stub import Asked, Stub, read_words, says, scripted
from tracegraph.scenarios import check, load

FILE = Path(os.environ.get("TRACEGRAPH_SHARED") or Path(__file__).parents[3] / "shared") / "scenarios/travel.trace.yaml"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not FILE.exists(), reason="the shared scenarios are not here"),
]


def read(asked: Asked) -> dict[str, Any]:
    """As a model reads: what nobody says in words, the pickup is where the hotel is."""
    found = read_words(asked)
    place = {"aspect": "place", "words": ["hotel", "stay"], "says": "The hotel is where it was booked."}
    relies, changes = {"pickup advice": (1, 0), "hotel": (0, 1)}.get(asked.data["item"]["about"], (0, 0))
    return {
        **found,
        "relies_on": found["relies_on"] + [place] * relies,
        "changes": found["changes"] + [place] * changes,
    }


@pytest.mark.parametrize("strategy", ["premises", "pairs"])
async def test_the_travel_case_is_decided_by_the_verifier(
    graph: tracegraph.Graph, tmp_path: Path, strategy: str
) -> None:
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("  - verdict:")]
    told = "\n".join(lines).replace("policy: {", "policy: {verification: required, ")
    (tmp_path / "travel.trace.yaml").write_text(told)
    judge = says(("Riverside is booked", "from Sunrise", "invalidates"))
    with Stub(scripted(judge, read=read)) as stub:
        method = pipeline(stub, strategy=strategy)
        report = await check(graph, load(tmp_path / "travel.trace.yaml"), invalidation=method)
        await method.close()
    assert len(report.expectations) > 10
    assert not report.failures, "\n".join(f"line {failure.line}: {failure}" for failure in report.failures)
    assert any(one.data["later"]["about"] == "hotel" for one in stub.of("verify"))


async def test_a_scenario_runs_no_scan_of_its_own(graph: tracegraph.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(scripted()) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        monkeypatch.setenv("TRACEGRAPH_MODEL", "judge-1")
        assert not (await check(graph, load(FILE))).failures
    assert stub.asked == []


async def test_the_environment_names_the_verifier(graph: tracegraph.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracegraph.invalidation.pipeline import Invalidation

    monkeypatch.delenv("TRACEGRAPH_MODEL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "for something else")
    assert Invalidation.from_environment() is None
    monkeypatch.setenv("TRACEGRAPH_MODEL", "judge-1")
    monkeypatch.setenv("TRACEGRAPH_SCAN_MODEL", "scan-1")
    found = Invalidation.from_environment()
    assert found is not None
    assert (found.verifier.model, found.scanner.model) == ("judge-1", "scan-1")
