"""The embedded store backed up, restored and compacted, with a server of its own: what is erased is nowhere.

Everything is carried out once, in order, on one small store; the tests look at what came of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

import tracegraph
from tracegraph import Item, Receipt, TracegraphError, Workspace, embedded
from tracegraph.embedded import process, store
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

pytestmark = pytest.mark.timeout(1200)

WORDS = {
    "content": "The surgeon will arrive at the northern gate on Tuesday evening.",
    "receipt": "A letter in blue ink says so about the northern gate and the surgeon.",
    "quote": "The surgeon will arrive at the northern gate on Tuesday evening",
    "rationale": "Somebody who goes to the southern gate would miss the surgeon.",
    "memory": "I promised the surgeon a lantern at the northern gate, and must not forget it.",
    "derived": "A lantern is needed at the northern gate for the surgeon and for her two bags.",
}
KEPT = "The ferry leaves from the eastern pier every morning at six."


@dataclass
class Story:
    home: Path
    found: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """By moment: which erased words were in which files."""
    said: dict[str, Any] = field(default_factory=dict)
    servers: list[embedded.Server] = field(default_factory=list)
    compacted: store.Compacted | None = None
    backup: Path = Path()
    restored: tuple[str, ...] = ()
    commands: subprocess.CompletedProcess[str] | None = None
    refused: dict[str, str] = field(default_factory=dict)
    files: dict[str, set[str]] = field(default_factory=dict)

    def search(self, moment: str) -> None:
        self.found[moment] = {name: holding(self.home, words) for name, words in WORDS.items()}
        self.files[moment] = {path.name for path in self.home.iterdir()}


def holding(home: Path, words: str) -> list[str]:
    """The files below a folder that hold these words, in any of the encodings a JVM might write them in."""
    forms = [words.encode(), words.encode("utf-16-le"), words.encode("utf-16-be")]
    files = [path for path in home.rglob("*") if path.is_file()]
    return [str(path.relative_to(home)) for path in files if any(form in path.read_bytes() for form in forms)]


def ask(server: embedded.Server, work: Callable[[tracegraph.Graph], Awaitable[Any]]) -> Any:
    """Run work on the server; in a thread, as this one may have the run's event loop."""

    async def connected() -> Any:
        auth = {"username": server.username, "password": server.password}
        async with tracegraph.connect(server.bolt_uri, **auth) as graph:
            return await work(graph)

    return apart(anyio.run, connected)


def on(server: embedded.Server, keys: Keys, work: Callable[[Workspace], Awaitable[Any]]) -> Any:
    """Run work on the server's workspace."""

    async def opened(graph: tracegraph.Graph) -> Any:
        return await work(await open_workspace(graph, "trip", owner="owner", keys=keys))

    return ask(server, opened)


def apart(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call, *args, **kwargs).result()


async def write(ws: Workspace) -> None:
    await ws.grant(role="guide", principal="A1", read=["trip"], write=["trip"])
    source = Receipt(uri="mail:1", text=WORDS["receipt"])
    await ws.record(Item(id="secret", key="visit", scope="trip", content=WORDS["content"], receipts=[source]))
    await ws.record(Item(id="derived", scope="trip", content=WORDS["derived"], derived_from=["secret"]))
    await ws.record(Item(id="kept", scope="trip", content=KEPT, receipts=[Receipt(uri="mail:2", text=KEPT)]))
    await ws.verdict(
        later="secret", earlier="kept", says="compatible", quote=WORDS["quote"], rationale=WORDS["rationale"]
    )
    await ws.remember(WORDS["memory"], principal="A1", grounded_in=["secret"])
    result = await ws.join(principal="A1", role="guide", task="visit")
    assert result.view is not None
    await ws.open_view(result.view, principal="A1", role="guide", task="visit")
    await ws.erase("secret", reason="asked to")


async def answers(ws: Workspace) -> dict[str, Any]:
    read = await ws.read(principal="A1", role="guide", task="visit")
    returns = await ws.returns()
    replays = [await ws.replay(one.cycle_id) for one in returns]
    views = (await ws.exposure("kept")).views
    return {"verify": await ws.verify(), "read": read, "returns": returns, "replays": replays, "exposure": views}


def shell(home: Path) -> subprocess.CompletedProcess[str]:
    """The block of docs/team.md as it stands, where the store was restored; and whether that verifies."""
    page = (Path(__file__).parents[2] / "docs" / "team.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    known = {name: value for name, value in os.environ.items() if not name.startswith("NEO4J_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(  # noqa: S603
        ["/bin/bash", "-e", "-c", f"{block}tracegraph up > up\ntracegraph verify -w trip"],
        cwd=home,
        env={**known, "TRACEGRAPH_HOME": str(home), "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _slow(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--neo4j") != "embedded":
        pytest.skip("the embedded server's store is tested where the embedded server is")
    if "TRACEGRAPH_SLOW" not in os.environ:
        pytest.skip("rebuilds stores for minutes; TRACEGRAPH_SLOW=1 runs it")


@pytest.fixture(scope="module")
def story(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    _slow(pytestconfig)
    version = pytestconfig.getoption("--neo4j-version")
    folder = tmp_path_factory.mktemp("store")
    told = Story(folder / "home")
    keys, home = Keys(folder / "keys"), told.home
    given: dict[str, Any] = {"data": home, "version": version}
    another = folder / "team" / f"neo4j-{embedded.read_lock(version).line}"

    def refusal(what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        with pytest.raises(TracegraphError) as error:
            apart(call, *args, **kwargs)
        told.refused[what] = f"{error.value.code}: {error.value.message}"

    try:
        refusal("nothing to compact", store.compact, **given)
        refusal("nothing to back up", store.backup, folder / "none", **given)
        told.servers.append(embedded.start(version, data=home, progress=False))
        on(told.servers[0], keys, write)
        told.said["before"] = on(told.servers[0], keys, answers)
        told.search("erased")
        told.compacted = apart(store.compact, **given)
        running = embedded.status(home)
        assert running is not None
        told.servers.append(running)
        told.said["after"] = on(running, keys, answers)
        told.search("compacted, running")
        embedded.stop(home)
        told.search("compacted, stopped")
        told.backup = folder / "trip.dump"
        apart(store.backup, told.backup, **given)
        refusal("over a store", store.restore, told.backup, **given)
        (folder / "junk").write_bytes(b"no dump")
        refusal("junk", store.restore, folder / "junk", overwrite=True, **given)
        refusal("no file", store.restore, folder / "nowhere", overwrite=True, **given)
        told.search("after all")
        told.restored = apart(store.restore, told.backup, data=another, version=version)
        told.commands = shell(folder / "team") if version is None else None
        yield told
    finally:
        embedded.stop(home)
        embedded.stop(another)


def test_after_an_erasure_the_words_are_still_in_the_stores_files(story: Story) -> None:
    assert any(story.found["erased"].values())


@pytest.mark.parametrize("moment", ["compacted, running", "compacted, stopped", "after all"])
def test_after_a_compaction_they_are_in_no_file_below_the_data_directory(story: Story, moment: str) -> None:
    assert story.found[moment] == {name: [] for name in WORDS}


def test_what_was_not_erased_is_still_there_and_is_found_the_same_way(story: Story) -> None:
    assert holding(story.home, KEPT)


def test_a_compacted_store_answers_as_it_did_at_the_same_address_with_the_same_password(story: Story) -> None:
    before, after = story.servers
    assert story.said["after"] == story.said["before"]
    assert story.said["after"]["verify"].intact
    assert (before.bolt_uri, before.http_uri, before.password) == (after.bolt_uri, after.http_uri, after.password)
    assert before.pid != after.pid
    assert story.compacted is not None
    assert story.compacted.workspaces == ("trip",)


def test_nothing_of_the_rebuilding_is_left(story: Story) -> None:
    assert not story.files["compacted, stopped"] & {"rebuilt", "data.old", "server.json"}
    assert story.files["after all"] == story.files["compacted, stopped"]


def test_a_backup_is_the_users_alone_and_is_restored_elsewhere(story: Story) -> None:
    assert story.backup.stat().st_mode & 0o777 == 0o600
    assert story.restored == ("trip",)
    assert [path.name for path in story.backup.parent.glob(".tracegraph-*")] == []


def test_the_commands_of_the_page_for_teams_do_the_same(story: Story) -> None:
    if story.commands is None:
        pytest.skip("they are about the default release")
    assert story.commands.returncode == 0, story.commands.stderr
    assert "\nintact: " in story.commands.stdout


def test_what_cannot_be_done_is_refused_and_the_store_stays(story: Story) -> None:
    assert story.refused["nothing to compact"].startswith("unavailable: There is no store")
    assert story.refused["nothing to back up"].startswith("unavailable: There is no store")
    assert story.refused["over a store"].startswith("conflict: There is a store")
    assert "Not a valid Neo4j archive" in story.refused["junk"]
    assert story.refused["no file"].startswith("unavailable: There is no file")


def test_a_workspace_moves_on_from_the_lts_release_as_a_history_and_as_a_backup(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    _slow(pytestconfig)
    old, new, keys = tmp_path / "old", tmp_path / "new", Keys(tmp_path / "keys")
    history, backup = tmp_path / "trip.jsonl", tmp_path / "trip.dump"
    try:
        lts = embedded.start("5.26", data=old, progress=False)
        on(lts, keys, write)
        before = on(lts, keys, answers)
        on(lts, keys, lambda ws: ws.export(history))
        apart(store.backup, backup, data=old, version="5.26")
        server = embedded.start(data=new, progress=False)
        ask(server, lambda graph: graph.import_(history))
        assert on(server, keys, answers) == before
        assert before["verify"].intact
        assert len(before["replays"]) == 1
        apart(store.restore, backup, data=new, overwrite=True)
        assert on(embedded.start(data=new, progress=False), keys, answers) == before
    finally:
        embedded.stop(old, version="5.26")
        embedded.stop(new)


# --- without a server -------------------------------------------------------------------------------------


def folder(path: Path, content: str) -> None:
    path.mkdir()
    (path / "store").write_text(content)


def test_a_swap_cut_short_leaves_the_old_store_or_the_new_one_whole(tmp_path: Path) -> None:
    folder(tmp_path / "data.old", "old")
    folder(tmp_path / "rebuilt", "new")
    process.settle(tmp_path)
    assert (tmp_path / "data" / "store").read_text() == "old"
    folder(tmp_path / "data.old", "older")
    process.settle(tmp_path)
    assert (tmp_path / "data" / "store").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_database_with_what_is_not_tracegraphs_is_not_compacted() -> None:
    store._only_ours([])
    with pytest.raises(TracegraphError, match="3 Entity:Person, 1 without a label") as error:
        store._only_ours([{"labels": ["Entity", "Person"], "nodes": 3}, {"labels": [], "nodes": 1}])
    assert error.value.code == "conflict"


def test_every_label_that_is_written_counts_as_tracegraphs() -> None:
    texts = {path.name: path.read_text() for path in tracegraph.graph.cypher_folder().rglob("*.cypher")}
    listed = set(re.findall(r"'(\w+)'", texts["foreign.cypher"]))
    written = re.compile(r"(?:CREATE|MERGE|CONSTRAINT \w+ IF NOT EXISTS\s+FOR) \(\w*:(\w+)")
    assert {label for text in texts.values() for label in written.findall(text)} <= listed


@pytest.mark.parametrize("command", [["backup", "x.dump"], ["restore", "x.dump"], ["compact"]])
def test_a_server_of_ones_own_is_not_touched(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from tracegraph.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    found = CliRunner().invoke(app, command)
    assert isinstance(found.exception, TracegraphError)
    assert found.exception.code == "unavailable"
    assert os.listdir(tmp_path) == []
