"""What a check reports, and that it leaves nothing behind."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

import tracegraph
from tracegraph import audit
from tracegraph.errors import TracegraphError
from tracegraph.graph import Tx, cypher, cypher_folder
from tracegraph.model import new_id
from tracegraph.scenarios import Report, check, forget, load

pytestmark = pytest.mark.anyio

UNMET = """\
scenario: unmet
clock: 2026-05-01T09:00:00Z
roles: {dev: {read: [open], write: [open]}}
principals: {P: [dev]}
steps:
  - record: {id: a, scope: open, content: the secret plan, key: k}
  - record: {id: b, scope: open, content: the better plan, key: k, receipt: {uri: "log:1"}}
  - retract: {target: nothing}
  - read: {principal: P, role: dev, task: t}
    expect: {items: [a]}
  - join: {principal: P, role: dev, task: t}
    expect:
      decision: blocked
      coverage: 0.5
      admitted: [b]
      rejected: {b: [superseded], a: []}
      selection: {b: [not_selected]}
  - retract: {target: b}
    expect: {error: conflict}
"""


async def played(graph: tracegraph.Graph, folder: Path, text: str) -> Report:
    (folder / "a.trace.yaml").write_text(text)
    return await check(graph, load(folder / "a.trace.yaml"))


async def test_each_unmet_expectation_is_one_line_that_names_items_and_reasons_but_no_content(
    graph: tracegraph.Graph, tmp_path: Path
) -> None:
    report = await played(graph, tmp_path, UNMET)
    assert [(failure.line, str(failure)) for failure in report.failures] == [
        (
            8,
            "step 3 retract: error: expected none, got unknown_item"
            " (There is no item or receipt 'nothing' to retract.)",
        ),
        (10, "step 4 read: items: expected [a], got [b]"),
        (13, "step 5 join: decision: expected blocked, got admitted"),
        (14, "step 5 join: coverage: expected 0.5, got 1.0"),
        (16, "step 5 join: rejected b: expected [superseded], got []"),
        (16, "step 5 join: rejected a: expected [], got none (not in the pool)"),
        (17, "step 5 join: selection: expected {b: [not_selected]}, got {}"),
        (19, "step 6 retract: error: expected conflict, got none (the step was carried out)"),
    ]
    assert [str(met) for met in report.expectations if met.passed] == ["step 5 join: admitted: [b]"]
    assert "plan" not in json.dumps(asdict(report))


async def test_a_check_leaves_nothing_behind(
    graph: tracegraph.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def noted(what: str) -> str:
        made.append(new_id(what))
        return made[-1]

    monkeypatch.setattr("tracegraph.scenarios.new_id", noted)
    await played(graph, tmp_path, UNMET)
    assert [id.split("-")[0] for id in made] == ["check", "owner"]
    assert await left(graph, made[0]) == 0


async def left(graph: tracegraph.Graph, workspace: str) -> int:
    """How many nodes there are of a workspace."""

    async def work(tx: Tx) -> int:
        found = await tx._inner.run("MATCH (n {workspace: $id}) RETURN count(n) AS left", id=workspace)
        return int((await found.single(strict=True))["left"])

    return await graph.read(work)


async def test_forgetting_a_workspace_deletes_all_it_held_in_batches(
    graph: tracegraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracegraph.scenarios.FORGET_BATCH", 7)
    id = new_id("test")
    ws = await graph.workspace(id, owner="owner")
    for number in range(5):
        await ws.record(tracegraph.Item(id=f"i{number}", key="k", scope="s", content="x", supports=("d",)))
    await ws.grant(role="r", principal="p", read=["s"])
    await ws.remember("x", principal="p", grounded_in=["i0"])
    await ws.depart(principal="p", role="r", task="t")
    await ws.join(principal="p", role="r", task="t")

    assert await left(graph, id) > 7
    await forget(graph, id)
    assert await left(graph, id) == 0


def test_forgetting_knows_every_label_that_a_workspace_can_hold() -> None:
    made = re.compile(r"(?:CREATE|MERGE) \(\w*:(\w+)")
    labels = {label for path in cypher_folder().rglob("*.cypher") for label in made.findall(path.read_text())}
    forgotten = set(re.findall(r"\(n:(\w+)", cypher("write/forget_workspace")))
    assert labels - {"TracegraphSchema"} == forgotten


async def test_an_auditor_sees_what_the_caller_is_not_told(workspace: tracegraph.Workspace) -> None:
    await workspace.grant(role="guest", principal="G", read=["lobby"])
    await workspace.record(tracegraph.Item(id="hidden", scope="vault", content="x"))
    result = await workspace.join(principal="G", role="guest", task="t")
    report = await audit.cycle(workspace.graph, workspace.id, result.cycle_id)
    assert result.rejected == {}
    assert report.pool == ("hidden",)
    assert report.rejected == {"hidden": ("missing_receipt", "scope_not_granted")}
    with pytest.raises(TracegraphError) as refused:
        await audit.cycle(workspace.graph, workspace.id, "no cycle")
    assert refused.value.code == "unknown_item"
