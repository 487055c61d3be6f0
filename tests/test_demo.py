"""The demo as a person runs it, with canned verdicts and with a verifier."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.invalidation.stub import Stub, says, scripted
from tracegraph.cli import program


def tracegraph(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", "from tracegraph.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_the_demo_tells_the_travel_case_and_where_to_look(neo4j: dict[str, str], tmp_path: Path) -> None:
    done = tracegraph("demo", **neo4j)
    assert done.returncode == 0, done.stderr
    told = done.stdout
    assert "Obligations covered 1/2, critical dependencies 3/4; nothing valid supports d_p." in told
    assert "→ blocked: nothing is released" in told
    assert "→ admitted with 8 items, in a signed view" in told
    assert "comes back:  m_c" in told
    assert "p0 <-INVALIDATES- h1 -SUPERSEDES-> h0" in told
    assert "MATCH path =" in told
    commands = [shlex.split(line) for line in told.splitlines() if line.startswith("  tracegraph ")]
    assert [command[1] for command in commands] == ["browser", "why"]
    for command in commands:
        done = tracegraph(*command[1:], folder=tmp_path, **neo4j)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "audits" / "favourites.zip").is_file()
    assert done.stdout.startswith("p0 rejected: invalidated by h1")


def test_commands_are_shown_as_they_can_be_called_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv" / "bin" / "tracegraph")])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == ".venv/bin/tracegraph"
    (tmp_path / "tracegraph").write_text("")
    (tmp_path / "tracegraph").chmod(0o700)
    assert program() == "tracegraph"


def test_with_a_model_the_verifier_decides_the_same_case(neo4j: dict[str, str]) -> None:
    judge = says(("Riverside is booked", "from Sunrise", "invalidates"))
    with Stub(scripted(judge)) as stub:
        done = tracegraph(
            "demo",
            "--llm",
            "--json",
            **neo4j,
            OPENAI_BASE_URL=stub.url,
            OPENAI_API_KEY="none",
            TRACEGRAPH_MODEL="stub",
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["blocked"]["decision"] == "blocked"
    assert told["blocked"]["rejected"]["p0"] == ["invalidated"]
    assert told["blocked"]["verification"] == "verified"
    assert told["blocked"]["pairs"]["calls"] > 0
    assert told["admitted"]["decision"] == "admitted"
    assert [one["id"] for one in told["recalled"]] == ["m_c"]


def test_without_a_model_the_demo_says_what_to_set(neo4j: dict[str, str]) -> None:
    done = tracegraph("demo", "--llm", **neo4j, TRACEGRAPH_MODEL="")
    assert done.returncode == 1
    assert "TRACEGRAPH_MODEL" in done.stderr
    assert "Traceback" not in done.stderr
