"""A workspace exported and imported again is the same workspace; a file that was changed is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tests.reference.histories import dump, history
from tracegraph import TracegraphError, scenarios
from tracegraph.graph import Graph, Tx
from tracegraph.model import instant
from tracegraph.scenarios import check, forget, load

pytestmark = pytest.mark.anyio

SCENARIOS = Path(__file__).parent.parent / "scenarios"
PLAYED = ("acts", "experiences", "gate-erased", "retraction-mid-chain", "refused-permissions", "verdict-restores")
"""Between them every act, every kind of decision, and private memories."""


# --- both sides -------------------------------------------------------------------------------------------


async def everything(graph: Graph, workspace: str) -> dict[str, Any]:
    """All that the database holds of a workspace, by value: its nodes, and its relationships with both ends."""

    async def ask(query: str) -> list[Any]:
        async with graph._driver.session() as session:
            result = await session.run(cast(Any, query), {"workspace": workspace})
            return sorted((record.values() for record in await result.fetch(1_000_000)), key=repr)

    nodes = await ask("MATCH (n {workspace: $workspace}) RETURN labels(n), properties(n)")
    edges = await ask(
        "MATCH (n {workspace: $workspace})-[r]->(m) RETURN type(r), properties(r), labels(n), n.id, labels(m), m.id"
    )
    return {"nodes": nodes, "edges": edges}


async def answers(graph: Graph, workspace: str) -> dict[str, Any]:
    """What the workspace says when it is asked: verify, and read, replay, why and exposure at several clocks."""
    ws = await graph.workspace(workspace, invalidation=None)
    verified = await ws.verify()
    assert verified.intact, verified.broken

    async def asked(tx: Tx) -> list[dict[str, Any]]:
        return await tx.rows("moving/cycles", workspace=workspace, after="", latest=2**40, limit=1000)

    out: dict[str, Any] = {"verify": verified}
    for number, row in enumerate(await graph.read(asked)):
        cycle = row["cycle"]
        out[f"cycle {cycle['id']}"] = await ws.cycle(cycle["id"])
        out[f"replay {cycle['id']}"] = await ws.replay(cycle["id"])
        if number % 4:
            continue
        for item in sorted(cycle["pool"])[:1]:
            out[f"why {item} {cycle['id']}"] = ordered((await ws.why(item, cycle["id"])).model_dump())
        for item, _, _ in row["admits"][:1]:
            out[f"exposure {item}"] = (await ws.exposure(item)).views
        at = instant(cycle["valid_at"])
        assert at is not None
        for known_at in {verified.epoch, verified.epoch // 2}:
            for valid_at in (at, at - timedelta(days=2)):
                try:
                    found: Any = await ws.read(
                        principal=cycle["principal"],
                        role=cycle["role"],
                        task=cycle["task"],
                        valid_at=valid_at,
                        known_at=known_at,
                    )
                except TracegraphError as error:
                    found = error.code
                out[f"read {cycle['id']} {known_at} {valid_at}"] = found
    return out


def ordered(value: Any) -> Any:
    """A value whose lists have one order: evidence is found in no particular one."""
    if isinstance(value, dict):
        return {name: ordered(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return sorted((ordered(one) for one in value), key=repr)
    return value


@pytest.fixture
def played(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Any]:
    """Plays a scenario file and leaves its workspace; gives its id."""

    async def play(path: Path) -> str:
        kept: list[str] = []

        async def keep(_: Graph, workspace: str) -> None:
            kept.append(workspace)

        with monkeypatch.context() as patch:
            patch.setattr(scenarios, "forget", keep)
            await check(graph, load(path))
        return kept[0]

    return play


async def there_and_back(graph: Graph, workspace: str, file: Path) -> None:
    """Export, forget, import; both sides hold the same and answer the same."""
    held, said = await everything(graph, workspace), await answers(graph, workspace)
    exported = await (await graph.workspace(workspace, invalidation=None)).export(file)
    await forget(graph, workspace)
    assert (await everything(graph, workspace)) == {"nodes": [], "edges": []}
    imported = await graph.import_(file)
    assert (imported.epoch, imported.digest) == (exported.epoch, exported.digest)
    assert (imported.batches, imported.cycles) == (exported.epoch, exported.cycles)
    assert await everything(graph, workspace) == held
    assert await answers(graph, workspace) == said
    again = file.with_suffix(".again")
    await (await graph.workspace(workspace, invalidation=None)).export(again)
    assert again.read_bytes() == file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    await forget(graph, workspace)


@pytest.mark.parametrize("name", PLAYED)
async def test_a_played_scenario_is_the_same_after_its_journey(
    graph: Graph, played: Callable[[Path], Any], tmp_path: Path, name: str
) -> None:
    workspace = await played(SCENARIOS / f"{name}.trace.yaml")
    await there_and_back(graph, workspace, tmp_path / "history.jsonl")


@pytest.mark.parametrize("seed", [11, 12])
async def test_a_random_history_is_the_same_after_its_journey(
    graph: Graph, played: Callable[[Path], Any], tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "random.trace.yaml"
    with path.open("w", encoding="utf-8") as stream:
        dump(history(seed), stream)
    await there_and_back(graph, await played(path), tmp_path / "history.jsonl")
