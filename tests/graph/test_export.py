"""A workspace exported and imported again is the same workspace; a file that was changed is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tests.reference.histories import dump, history
from tracegraph import Item, Receipt, ReceiptRef, TracegraphError, Workspace, exporting, importing, scenarios
from tracegraph.graph import Graph, Tx
from tracegraph.invalidation.evidence import Usage
from tracegraph.invalidation.ledger import Ledger
from tracegraph.model import instant, new_id
from tracegraph.scenarios import check, forget, load

pytestmark = pytest.mark.anyio

SCENARIOS = Path(__file__).parent.parent / "scenarios"
PLAYED = ("acts", "experiences", "gate-erased", "verdict-restores")
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
    assert same(again, file)
    await forget(graph, workspace)


def same(one: Path, other: Path) -> bool:
    """Whether two exports are equal to the byte, and the user's alone."""
    return one.read_bytes() == other.read_bytes() and one.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", PLAYED)
async def test_a_played_scenario_is_the_same_after_its_journey(
    graph: Graph, played: Callable[[Path], Any], tmp_path: Path, name: str
) -> None:
    workspace = await played(SCENARIOS / f"{name}.trace.yaml")
    await there_and_back(graph, workspace, tmp_path / "history.jsonl")


@pytest.mark.parametrize("seed", [11])
async def test_a_random_history_is_the_same_after_its_journey(
    graph: Graph, played: Callable[[Path], Any], tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "random.trace.yaml"
    with path.open("w", encoding="utf-8") as stream:
        dump(history(seed), stream)
    await there_and_back(graph, await played(path), tmp_path / "history.jsonl")


async def test_what_verification_read_and_scanned_travels_and_a_batch_that_is_out_too(
    graph: Graph, workspace: Workspace, tmp_path: Path
) -> None:
    await workspace.record(*(Item(id=id, scope="trip", content=f"{id}.") for id in ("a", "b", "gone")))
    ledger = Ledger(graph, workspace.id, now=lambda: 0)
    spent = Usage().row()
    topics = [
        {"type": how, "aspect": "place", "says": f"It {how}.", "words": ["hotel", "station"]}
        for how in ("RELIES_ON", "CHANGES")
    ]
    readings = [{"item": id, "cause": None, "topics": topics, **spent} for id in ("a", "b", "gone")]
    await ledger.remember_readings(readings, prompt="p", model="m")
    scans = [{"target": "a", "laters": laters, "cause": None, **spent} for laters in (["b"], ["gone"], [])]
    await ledger.remember_scans(scans, prompt="p", model="m")
    await ledger.remember_sweep(task=None, method="x", epoch=1, valid_at=5, pairs={"proposed": 2}, usage=Usage())
    await ledger.remember_dialect("e", "m", {"form": "json", "limit": "max_tokens", "temperature": True})
    await ledger.keep_job({"id": "j", "status": "submitted", "keys": ["k"], "created_at": 1})
    await workspace.erase("gone")
    await there_and_back(graph, workspace.id, tmp_path / "history.jsonl")


# --- a small workspace, exported once ---------------------------------------------------------------------


@dataclass
class Small:
    ws: Workspace
    lines: list[bytes]

    def at(self, what: str, number: int = 0) -> int:
        """The line of the number-th record, batch or return of this kind."""
        return [line for line, raw in enumerate(self.lines) if raw.startswith(b'{"' + what.encode())][number]

    def changed(self, line: int, **fields: Any) -> list[bytes]:
        out = [*self.lines]
        raw = {**json.loads(out[line]), **fields}
        gone = {name for name, value in fields.items() if value is None}
        out[line] = json.dumps({name: value for name, value in raw.items() if name not in gone}).encode() + b"\n"
        return out


@pytest.fixture(scope="module")
async def small(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Small]:
    ws = await graph.workspace(new_id("small"), owner="owner", policy={"fill": "recency"}, invalidation=None)
    await ws.grant(role="planner", principal="A1", read=["trip"], write=["trip"])
    receipts = [Receipt(id="r1", uri="mail:1", text="Sunrise secretly confirmed.")]
    await ws.record(Item(id="h0", key="hotel", scope="trip", content="Sunrise is booked.", receipts=receipts))
    await ws.record(Item(id="n0", scope="trip", content="Quiet.", derived_from=["h0"]), batch_id="mine")
    await ws.record(Item(id="h1", key="hotel", scope="trip", content="Riverside.", receipts=[ReceiptRef(id="r1")]))
    await ws.verdict(later="h1", earlier="n0", says="compatible", quote="Riverside", rationale="Still secretly quiet.")
    result = await ws.join(principal="A1", role="planner", task="plan")
    assert result.view is not None
    await ws.open_view(result.view, principal="A1")
    await ws.erase("n0", reason="asked")
    await ws.revoke("h1", reason="cancelled")
    file = tmp_path_factory.mktemp("export") / "small.jsonl"
    await ws.export(file)
    yield Small(ws, file.read_bytes().splitlines(keepends=True))
    await forget(graph, ws.id)


def write(folder: Path, lines: list[bytes]) -> Path:
    file = folder / "changed.jsonl"
    file.write_bytes(b"".join(lines))
    file.chmod(0o600)
    return file


async def refusal(graph: Graph, file: Path) -> TracegraphError:
    with pytest.raises(TracegraphError) as error:
        await graph.import_(file)
    return error.value


async def test_the_file_tells_batches_and_their_records_and_a_tombstone_has_no_words(small: Small) -> None:
    lines = [json.loads(line) for line in small.lines]
    assert [line["batch"] for line in lines if "batch" in line] == list(range(1, 8))
    acts = [line["act"] for line in lines if "act" in line]
    assert acts == ["grant", "receipt", "item", "item", "item", "verdict", "erase", "revoke"]
    assert [line["content"] for line in lines if "content" in line] == ["Sunrise is booked.", "Riverside."]
    assert [line["text"] for line in lines if "text" in line] == ["Sunrise secretly confirmed."]
    assert b"Quiet." not in b"".join(small.lines)
    assert b"Still secretly quiet." not in b"".join(small.lines)
    assert sum("cycle" in line for line in lines) == 1


CHANGES: dict[str, tuple[Callable[[Small], list[bytes]], str]] = {
    "words": (lambda s: s.changed(s.at('act":"item', 0), content="Sunset is booked."), "epoch 2"),
    "words taken out": (lambda s: s.changed(s.at('act":"item', 2), content=None), "epoch 4"),
    "a receipt's text taken out": (lambda s: s.changed(s.at('act":"receipt'), text=None), "epoch 2"),
    "a key": (lambda s: s.changed(s.at('act":"item', 2), key="other"), "epoch 4"),
    "a field": (lambda s: s.changed(s.at('act":"revoke'), reason="because"), "epoch 7"),
    "a field of its own": (lambda s: s.changed(s.at('act":"revoke'), colour="red"), "epoch 7"),
    "a field of another type": (lambda s: s.changed(s.at('act":"item'), length="18"), "epoch 2"),
    "an act": (lambda s: s.changed(s.at('act":"erase'), act="forgive"), "epoch 6"),
    "an author": (lambda s: s.changed(s.at("batch", 2), author="A1"), "epoch 3"),
    "a time": (lambda s: s.changed(s.at("batch", 0), recorded_at="2020-01-01T00:00:00.000000Z"), "epoch 1"),
    "a batch left out": (lambda s: s.lines[: s.at("batch", 6)] + s.lines[s.at("cycle") :], "ends at epoch 6"),
    "a batch in the middle left out": (lambda s: s.lines[: s.at("batch", 3)] + s.lines[s.at("batch", 4) :], "epoch 4"),
    "a record left out": (lambda s: s.lines[: s.at('act":"item')] + s.lines[s.at('act":"item') + 1 :], "epoch 2"),
    "a request": (lambda s: s.changed(s.at("batch", 2), request="0" * 64), "it was changed"),
    "a return": (lambda s: s.changed(s.at("cycle"), departed="somewhere"), "it was changed"),
    "a return left out": (lambda s: s.lines[: s.at("cycle")] + s.lines[s.at("cycle") + 1 :], "it was changed"),
    "the owner": (lambda s: s.changed(0, owner="A1"), "epoch 0"),
    "the policy": (lambda s: s.changed(0, policy={**json.loads(s.lines[0])["policy"], "coverage": 0.0}), "epoch 0"),
    "the last line": (lambda s: s.lines[:-1], "cut short"),
    "half a line": (lambda s: [*s.lines[:-1], s.lines[-1][:-9]], "cut short"),
    "more behind it": (lambda s: [*s.lines, s.lines[1]], "follows"),
    "another format": (lambda s: s.changed(0, format=2), "has format 2"),
    "another file": (lambda s: [b"%PDF-1.7\n"], "not JSON"),
    "nothing": (lambda s: [], "cut short"),
}


async def test_a_file_that_is_not_there_is_unavailable(graph: Graph, tmp_path: Path) -> None:
    assert (await refusal(graph, tmp_path / "none.jsonl")).code == "unavailable"


async def test_importing_what_is_there_changes_nothing(graph: Graph, small: Small, tmp_path: Path) -> None:
    before = await everything(graph, small.ws.id)
    imported = await graph.import_(write(tmp_path, small.lines))
    assert (imported.batches, imported.cycles) == (0, 0)
    assert await everything(graph, small.ws.id) == before


@pytest.fixture
async def moved(graph: Graph, small: Small, tmp_path: Path) -> AsyncIterator[Path]:
    """The small workspace's file, and its workspace away from the database during the test."""
    file = write(tmp_path, small.lines)
    await forget(graph, small.ws.id)
    yield file
    await forget(graph, small.ws.id)
    await graph.import_(file)


async def test_a_changed_file_is_refused_and_nothing_is_written(
    graph: Graph, small: Small, moved: Path, tmp_path: Path
) -> None:
    for what, (change, named) in CHANGES.items():
        error = await refusal(graph, write(tmp_path, change(small)))
        assert (what, error.code) == (what, "invalid_record")
        assert named in error.message, f"{what}: {error.message}"
    assert (await everything(graph, small.ws.id))["nodes"] == []
    write(tmp_path, small.lines)


async def test_a_made_up_file_whose_digests_are_right_is_refused_where_it_makes_no_sense(
    graph: Graph, small: Small, moved: Path, tmp_path: Path
) -> None:
    lines = small.changed(small.at("cycle"), cycle={"decision": "admitted"})
    end = json.loads(lines[-1])
    lines[-1] = json.dumps({**end, "sha256": hashlib.sha256(b"".join(lines[:-1])).hexdigest()}).encode() + b"\n"
    error = await refusal(graph, write(tmp_path, lines))
    assert (error.code, "no workspace can hold" in error.message) == ("invalid_record", True)
    write(tmp_path, small.lines)


async def test_a_workspace_with_another_history_is_a_conflict_and_stays(
    graph: Graph, small: Small, moved: Path
) -> None:
    other = await graph.workspace(small.ws.id, owner="owner", invalidation=None)
    assert (await refusal(graph, moved)).code == "conflict"
    await other.record(Item(scope="trip", content="Of the other."))
    assert (await other.verify()).epoch == 1
    assert (await refusal(graph, moved)).code == "conflict"
    assert (await other.verify()).epoch == 1


async def test_a_workspace_that_went_another_way_after_the_import_is_a_conflict(
    graph: Graph, small: Small, moved: Path, tmp_path: Path
) -> None:
    await graph.import_(moved)
    await small.ws.record(Item(id="after", scope="trip", content="Written at the new place."))
    ahead = await graph.import_(moved)
    assert (ahead.epoch, ahead.batches) == (8, 0)
    newer = tmp_path / "newer.jsonl"
    await small.ws.export(newer)
    await forget(graph, small.ws.id)
    await graph.import_(moved)
    await small.ws.record(Item(id="after", scope="trip", content="Written at the old place."))
    error = await refusal(graph, newer)
    assert error.code == "conflict"


async def test_a_later_export_brings_what_is_new_to_an_earlier_import(
    graph: Graph, small: Small, moved: Path, tmp_path: Path
) -> None:
    await graph.import_(moved)
    await small.ws.record(Item(id="after", scope="trip", content="New."))
    await small.ws.join(principal="A1", role="planner", task="plan")
    newer = tmp_path / "newer.jsonl"
    await small.ws.export(newer)
    held = await everything(graph, small.ws.id)
    await forget(graph, small.ws.id)
    await graph.import_(moved)
    done = await graph.import_(newer)
    assert (done.batches, done.cycles) == (1, 1)
    assert await everything(graph, small.ws.id) == held


async def test_an_interrupted_import_continues(
    graph: Graph, small: Small, moved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "TOGETHER", 2)

    def stop(done: int, of: int) -> None:
        if done > of * 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await graph.import_(moved, progress=stop)
    begun = await graph.workspace(small.ws.id, invalidation=None)
    half = (await begun.verify()).epoch
    assert 0 < half < 7
    done = await graph.import_(moved)
    assert done.batches == 7 - half
    monkeypatch.undo()
    again = moved.with_name("again.jsonl")
    await begun.export(again)
    assert same(again, moved)


async def test_a_batch_sent_again_after_the_move_gives_its_first_result(
    graph: Graph, small: Small, moved: Path
) -> None:
    await graph.import_(moved)
    first = await small.ws.record(Item(id="n0", scope="trip", content="Quiet.", derived_from=["h0"]), batch_id="mine")
    assert (first.repeated, first.epoch) == (True, 3)
    with pytest.raises(TracegraphError) as error:
        await small.ws.record(Item(id="n0", scope="trip", content="Loud.", derived_from=["h0"]), batch_id="mine")
    assert error.value.code == "conflict"


async def test_a_broken_workspace_is_not_exported(graph: Graph, small: Small, moved: Path, tmp_path: Path) -> None:
    await graph.import_(moved)
    async with graph._driver.session() as session:
        text = "MATCH (m:WorkItem {workspace: $ws, id: 'h1'}) SET m.content = 'Nowhere.'"
        await (await session.run(text, {"ws": small.ws.id})).consume()
    with pytest.raises(TracegraphError) as error:
        await small.ws.export(tmp_path / "broken.jsonl")
    assert error.value.code == "invalid_record"
    assert "epoch 4" in error.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["changed.jsonl"]  # noqa: ASYNC240


async def test_an_erasure_during_an_export_ends_it(graph: Graph, small: Small, moved: Path, tmp_path: Path) -> None:
    await graph.import_(moved)
    original = exporting._cycles

    async def slow(*given: Any) -> int:
        await small.ws.erase("h0")
        return await original(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "_cycles", slow)
        with pytest.raises(TracegraphError) as error:
            await small.ws.export(tmp_path / "raced.jsonl")
    assert error.value.code == "conflict"
    assert not (tmp_path / "raced.jsonl").exists()


def test_the_commands_move_a_workspace(
    neo4j: dict[str, str], small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from tracegraph.cli import app

    for name, value in neo4j.items():
        monkeypatch.setenv(name, value)

    def tracegraph(*words: str) -> Any:
        """In a thread of its own: this one may have the run's event loop."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(CliRunner().invoke, app, words, catch_exceptions=False).result()

    assert tracegraph("export", small.ws.id).stdout_bytes == b"".join(small.lines)
    file = tmp_path / "out.jsonl"
    written = tracegraph("export", small.ws.id, "-o", str(file), "--json")
    assert json.loads(written.stdout)["epoch"] == 7
    imported = tracegraph("import", str(file), "--json")
    assert json.loads(imported.stdout)["batches"] == 0
