"""`tracegraph doctor`: what it says of a sound installation, and of each thing that can be wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracegraph import doctor as module
from tracegraph import embedded
from tracegraph.doctor import Finding, doctor
from tracegraph.graph import Graph
from tracegraph.signing import Keys

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of the test's own, and no server or model in the environment."""
    for name in [name for name in os.environ if name.startswith(("NEO4J_", "OPENAI_", "TRACEGRAPH_MODEL"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("TRACEGRAPH_KEYS", raising=False)
    monkeypatch.setenv("TRACEGRAPH_HOME", str(tmp_path / "home"))


async def findings(*names: str) -> dict[str, Finding]:
    found = {one.what: one for one in await doctor()}
    return {name: found[name] for name in names} if names else found


async def test_a_sound_server_passes_everything(
    neo4j: dict[str, str], graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in neo4j.items():
        monkeypatch.setenv(name, value)
    found = await findings()
    assert list(found) == ["java", "jars", "keys", "disk", "model", "server", "schema", "indexes", "clock"]
    assert {one.status for one in found.values()} == {"ok"}
    assert "Neo4j" in found["server"].detail


async def test_a_server_that_is_away_or_refuses_the_password_is_a_failure(
    neo4j: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    away = (await findings("server"))["server"]
    assert (away.status, away.hint) == ("failure", "Check NEO4J_URI, and that its server is up.")
    monkeypatch.setenv("NEO4J_URI", neo4j["NEO4J_URI"])
    monkeypatch.setenv("NEO4J_PASSWORD", "surely not")
    refused = (await findings("server"))["server"]
    assert refused.status == "failure"
    assert "surely not" not in refused.model_dump_json()
    assert "NEO4J_PASSWORD" in (refused.hint or "")


async def test_a_stopped_embedded_server_is_said_and_not_started(tmp_path: Path) -> None:
    found = await findings()
    assert found["server"].status == "warning"
    assert "stopped" in found["server"].detail
    assert "schema" not in found
    assert embedded.status() is None
    assert not (tmp_path / "home").exists()


async def test_a_jar_with_another_hash_is_a_failure_and_a_missing_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_CACHE", str(tmp_path / "cache"))
    none = (await findings("jars"))["jars"]
    assert none.status == "warning"
    jar = embedded.jars.read_lock().jars[0]
    (embedded.jar_dir() / jar.path).parent.mkdir(parents=True)
    (embedded.jar_dir() / jar.path).write_bytes(b"other")
    wrong = (await findings("jars"))["jars"]
    assert wrong.status == "failure"
    assert jar.path in wrong.detail


async def test_a_key_that_others_may_read_is_a_failure(tmp_path: Path) -> None:
    assert (await findings("keys"))["keys"].status == "ok"
    keys = Keys()
    kid = keys.current()
    assert (await findings("keys"))["keys"].status == "ok"
    path = keys.folder / f"{kid}.json"
    path.chmod(0o640)
    readable = (await findings("keys"))["keys"]
    assert readable.status == "failure"
    assert str(path) in readable.detail
    assert "chmod" in (readable.hint or "")
    path.unlink()
    assert (await findings("keys"))["keys"].status == "failure"


async def test_a_full_disk_a_model_without_a_key_and_a_wrong_clock_are_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=900_000_000))
    monkeypatch.setenv("TRACEGRAPH_MODEL", "some-model")
    found = await findings("disk", "model")
    assert [one.status for one in found.values()] == ["failure", "failure"]
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:secret@models.example/v1")
    named = (await findings("model"))["model"]
    assert named.status == "ok"
    assert "models.example" in named.detail
    assert "secret" not in named.detail
    now = time.time()
    clocks = [module._clock(now + ahead, now - 0.1, now + 0.1).status for ahead in (0.9, -30, 90)]
    assert clocks == ["ok", "warning", "failure"]


async def test_missing_failed_and_unfinished_indexes_are_told_apart() -> None:
    sound = {
        name: "ONLINE"
        for path in (module.cypher_folder() / "schema").glob("[0-9]*.cypher")
        for name in path.read_text(encoding="utf-8").split()
        if name.startswith("tracegraph_")
    }
    assert module._indexes(sound).status == "ok"
    first, *rest = sound
    assert module._indexes(dict.fromkeys(rest, "ONLINE")).detail == f"missing: {first}"
    assert module._indexes({**sound, first: "FAILED"}).status == "failure"
    assert module._indexes({**sound, first: "POPULATING"}).status == "warning"


def test_the_command_prints_its_findings_and_its_exit_code_says_whether_one_failed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from tracegraph.cli import main; main()", "doctor", "--json"]
    fit = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert fit.returncode == 0, fit.stderr
    assert json.loads(fit.stdout)["fit"] is True
    broken = {**os.environ, "TRACEGRAPH_MODEL": "some-model"}
    unfit = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=broken)  # noqa: S603
    assert unfit.returncode == 1
    assert json.loads(unfit.stdout)["fit"] is False
