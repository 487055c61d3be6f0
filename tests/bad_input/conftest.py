"""A workspace in which everything there is to name exists, and the command line in this process."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import typer

import tracegraph.cli
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, Workspace
from tracegraph.model import new_id
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace


@dataclass
class Filled:
    """`P` holds `role`, which reads and writes `s`; item `i`, obligation `o`, and what P was given."""

    ws: Workspace
    ticket: str
    view: str
    cycle: str
    grant: str


@pytest.fixture(scope="module")
async def filled(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Filled]:
    ws = await open_workspace(graph, new_id("bad"), owner="lead", keys=Keys(tmp_path_factory.mktemp("keys")))
    granted = await ws.grant(role="role", principal="P", read=["s"], write=["s"])
    await ws.record(Item(id="i", scope="s", content="Words.", receipts=[Receipt(id="r", uri="m", text="Words.")]))
    await ws.open_obligation(Obligation(id="o", scope="s", content="Owed.", frontier=Frontier(id="f", content="Open.")))
    joined = await ws.join(principal="P", role="role", task="t")
    assert joined.view is not None
    ticket = await ws.depart(principal="P", role="role", task="t")
    yield Filled(ws, ticket, joined.view, joined.cycle_id, granted.ids[0])
    await forget(graph, ws.id)


@dataclass
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def command() -> click.Command:
    """The commands, put together once and not for every run."""
    return typer.main.get_command(tracegraph.cli.app)


@pytest.fixture
def tracegraph_(
    command: click.Command,
    neo4j: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command as the entry point does; no run may show a stack trace or blame itself."""
    for name, value in neo4j.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRACEGRAPH_KEYS", str(tmp_path / "keys"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tracegraph.cli, "app", command)

    def run(*arguments: str) -> Ran:
        from tracegraph.cli import main

        monkeypatch.setattr(sys, "argv", ["tracegraph", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            contextvars.Context().run(main)  # of no event loop, whatever tests ran before
        out, err = capfd.readouterr()
        code = left.value.code
        ran = Ran(0 if code is None else int(code), out, err)
        assert "Traceback" not in ran.out + ran.err
        assert "fault of tracegraph" not in ran.err, (arguments, ran.err)
        assert ran.code in (0, 1, 2)
        return ran

    return run
