"""A team with a clock that tests set, and keys of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tracegraph import Graph, Workspace
from tracegraph.model import new_id
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


@dataclass
class Clock:
    """Stands still until it is moved."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class Team:
    """`lead` owns it; `A1` reads and writes `trip` as `itinerary`, `B1` reads and writes `payroll` as `payer`."""

    ws: Workspace
    clock: Clock
    keys: Keys
    held: str
    """The grant by which A1 holds its role."""


async def team_of(graph: Graph, keys: Keys) -> Team:
    clock = Clock()
    ws = await open_workspace(graph, new_id("security"), owner="lead", clock=clock, keys=keys)
    await ws.grant(role="itinerary", read=["trip"], write=["trip"])
    held = await ws.grant(role="itinerary", principal="A1")
    await ws.grant(role="payer", principal="B1", read=["payroll"], write=["payroll"])
    return Team(ws, clock, keys, held.ids[0])


@pytest.fixture
async def team(graph: Graph, tmp_path: Path) -> AsyncIterator[Team]:
    made = await team_of(graph, Keys(tmp_path / "keys"))
    yield made
    await forget(graph, made.ws.id)
