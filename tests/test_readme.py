"""Every command and example of the README and the page for teams, run in order as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

from tracegraph import connect
from tracegraph.scenarios import forget

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEAM = (ROOT / "docs" / "team.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README + TEAM, re.MULTILINE | re.DOTALL)
MADE = ("make demo", "make test")
"""The suite itself, and the demo, which tests/test_demo.py runs; that make knows both is checked below."""
NOT_RUN_HERE = (*MADE, "docker compose ", "export NEO4J_", "tracegraph up", "tracegraph down")
"""tests/docker runs the compose file, tests/embedded the server."""


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(  # noqa: S603
        ["/bin/bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def environment(neo4j: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A shell with the test server, none of the README's workspaces on it, and this environment's commands."""

    async def clear() -> None:
        async with connect(
            neo4j["NEO4J_URI"], username=neo4j["NEO4J_USERNAME"], password=neo4j["NEO4J_PASSWORD"]
        ) as graph:
            for name in ("trip", "trip2"):
                await forget(graph, name)

    with ThreadPoolExecutor(1) as aside:  # the run's own event loop may hold this thread
        aside.submit(anyio.run, clear).result()
    return {
        **os.environ,
        **neo4j,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TRACEGRAPH_KEYS": str(tmp_path / "keys"),
    }


def test_the_first_two_commands_are_targets_of_make() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {command.split()[1] for command in MADE} <= set(targets)


def test_the_python_example_admits_the_new_hotel_and_says_why_the_old_one_is_out(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (example,) = blocks("python")
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    printed = run(f"{sys.executable} example.py", tmp_path, environment)
    assert printed.startswith("admitted")
    assert "Riverside is booked." in printed
    assert "'h0': ('superseded',)" in printed
    assert "h1" in printed.splitlines()[-1] or "h1" in printed


def test_the_commands_run_in_the_order_they_are_read(tmp_path: Path, environment: dict[str, str]) -> None:
    for scenario in blocks("yaml"):
        (tmp_path / "hotel.trace.yaml").write_text(scenario, encoding="utf-8")
    lines = [
        line for block in blocks("console") for line in block.splitlines() if line and not line.startswith(NOT_RUN_HERE)
    ]
    printed = run("\n".join(lines), tmp_path, environment)
    assert "premise_invalid" in printed or "premise" in printed
    assert "Riverside is booked." in printed


def test_the_cypher_of_the_readme_draws_a_path(tmp_path: Path, environment: dict[str, str]) -> None:
    import neo4j

    (query,) = blocks("cypher")
    auth = (environment["NEO4J_USERNAME"], environment["NEO4J_PASSWORD"])
    with neo4j.GraphDatabase.driver(environment["NEO4J_URI"], auth=auth) as driver:
        # The commands' test may not have run in this process: ask only that the query is accepted.
        driver.execute_query(query)  # type: ignore[arg-type]


def test_the_readme_names_every_reason_of_every_gate() -> None:
    from tracegraph.admission.gates import GATES

    for gate, reasons in GATES.items():
        row = re.search(rf"^\| {gate} \| (.+) \|$", README, re.MULTILINE)
        named = re.findall(r"`(\w+)`", row[1] if row else README)
        assert set(reasons) <= set(named) if row is None else set(reasons) == set(named), gate


def test_every_command_is_documented_by_an_example_in_its_help() -> None:
    import typer

    from tracegraph.cli import app

    command = typer.main.get_command(app)
    for name, sub in command.commands.items():  # type: ignore[attr-defined]
        for one in getattr(sub, "commands", {name: sub}).values():
            assert "Example: tracegraph" in (one.help or ""), name
