"""Several processes at one workspace: the log stays one chain, decisions come out again, a ticket is used once.

TRACEGRAPH_CROWD_SECONDS says for how long the crowd works, by default 8.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.faults.crowd import AGENTS, WRITERS
from tracegraph import Graph, Item, Workspace
from tracegraph.model import new_id
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

ROOT = Path(__file__).parent.parent.parent
SECONDS = float(os.environ.get("TRACEGRAPH_CROWD_SECONDS", "8"))
PROCESSES = 2

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(200 + 4 * SECONDS)]


@pytest.fixture
async def ws(graph: Graph, tmp_path: Path) -> AsyncIterator[Workspace]:
    made = await open_workspace(graph, new_id("crowd"), owner="lead", keys=Keys(tmp_path))
    await made.grant(role="r", read=["s"], write=["s"])
    yield made
    await forget(graph, made.id)


def process(neo4j: dict[str, str], tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "tests.faults.crowd", *arguments],
        cwd=ROOT,
        env={**os.environ, **neo4j, "TRACEGRAPH_KEYS": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_sixteen_writers_and_four_agents_in_two_processes_keep_one_chain(
    ws: Workspace, neo4j: dict[str, str], tmp_path: Path
) -> None:
    names = [chr(ord("a") + number) for number in range(PROCESSES)]
    for name in names:
        for number in range(AGENTS):
            await ws.grant(role="r", principal=f"agent-{name}{number}")
    await ws.record(Item(id="first", scope="s", content="c"))  # these give every query its plan
    await ws.revoke("first")
    ticket = await ws.depart(principal="agent-a0", role="r", task="t")
    assert (await ws.replay((await ws.admit(ticket, principal="agent-a0")).cycle_id)).equal
    first = (await ws.verify()).epoch
    at_work = [process(neo4j, tmp_path, "crowd", ws.id, name, str(SECONDS)) for name in names]
    ended: dict[str, tuple[str, str]] = {}

    async def hear(name: str, one: subprocess.Popen[str]) -> None:
        ended[name] = await anyio.to_thread.run_sync(one.communicate)

    try:
        async with anyio.create_task_group() as group:  # one whose pipe is full stands still with its locks
            for name, one in zip(names, at_work, strict=True):
                group.start_soon(hear, name, one)
    finally:
        for one in at_work:
            one.kill()
    assert [one.returncode for one in at_work] == [0] * PROCESSES, [errors for _, errors in ended.values()]
    told: list[dict[str, Any]] = [json.loads(line) for out, _ in ended.values() for line in out.splitlines()]
    batches = [one for one in told if "batch" in one]
    returns = [one for one in told if "cycle" in one]

    assert len({one["batch"].partition("-")[0] for one in batches}) == WRITERS * PROCESSES
    assert not any(one["repeated"] for one in batches)
    assert all(one["decision"] == "admitted" and one["equal"] for one in returns)  # while the writers wrote
    assert any(one["items"] for one in returns)
    last = await ws.verify()
    assert last.intact
    found = await ws.graph._driver.execute_query(
        "MATCH (e:Epoch {workspace: $id}) RETURN e.number, e.batch_id, e.digest ORDER BY e.number", id=ws.id
    )
    log = [row.values() for row in found.records]
    assert [number for number, _, _ in log] == list(range(1, last.epoch + 1))
    unsure = sum("unsure" in one for one in told)
    assert 0 <= len(log) - first - len(batches) - len(returns) <= unsure  # a departure is a batch, too
    by_id = {batch: [number, digest] for number, batch, digest in log}
    assert all(by_id[one["batch"]] == [one["epoch"], one["digest"]] for one in batches)
    for one in returns:
        assert (await ws.replay(one["cycle"])).equal  # and after they stopped
    print({"seconds": SECONDS, "batches": len(batches), "returns": len(returns), "epochs": len(log), "unsure": unsure})


async def test_of_two_processes_with_one_ticket_one_returns(
    ws: Workspace, neo4j: dict[str, str], tmp_path: Path
) -> None:
    await ws.grant(role="r", principal="P")
    both = [process(neo4j, tmp_path, "return", ws.id, "P") for _ in range(2)]

    async def line(one: subprocess.Popen[str]) -> dict[str, Any]:
        assert one.stdout is not None
        read: dict[str, Any] = json.loads(await anyio.to_thread.run_sync(one.stdout.readline))
        return read

    try:
        assert [await line(one) for one in both] == [{"ready": True}] * 2
        for _ in range(10):
            ticket = await ws.depart(principal="P", role="r", task="t")
            for one in both:
                assert one.stdin is not None
                one.stdin.write(ticket + "\n")
                one.stdin.flush()
            outcomes = [(await line(one))["outcome"] for one in both]
            assert sorted(outcomes) == ["admitted", "ticket_consumed"]
    finally:
        for one in both:
            one.kill()
            one.communicate()
    found = await ws.graph._driver.execute_query(
        "MATCH (c:Checkpoint {workspace: $id}) "
        "RETURN COUNT { (c)<-[:RETURNED_FROM]-(k:ReturnCycle) WHERE k.decision = 'admitted' } AS returns",
        id=ws.id,
    )
    assert [row["returns"] for row in found.records] == [1] * 10
