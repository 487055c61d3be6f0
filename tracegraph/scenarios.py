"""Plays a scenario against the product and compares what comes of it with what is expected (DESIGN §13).

    report = await check(graph, load("travel.trace.yaml"))

Each check has a fresh workspace, a clock that only `at:` moves and keys of its own, and leaves nothing
behind. Every act goes through the workspace as any caller's does; no rule of the product is repeated here.
Never shows content.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegraph import audit
from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import (
    Committed,
    Frontier,
    Item,
    Obligation,
    Receipt,
    ReceiptRef,
    Result,
    Support,
    micros,
    new_id,
)
from tracegraph.scenario_file import MalformedScenario, Scenario, Step, load
from tracegraph.signing import Keys
from tracegraph.workspace import Workspace, open_workspace
from tracegraph.write import commit, lock

if TYPE_CHECKING:
    from tracegraph.invalidation.pipeline import Invalidation

__all__ = ["Expectation", "MalformedScenario", "Report", "Scenario", "check", "forget", "load"]

TOLERANCE = 1e-6
"""How far a coverage may be from the expected number: a third may be written 0.333333."""
FORGET_BATCH = 5_000


@dataclass(frozen=True)
class Expectation:
    """One thing expected of one step. Values are JSON: text, number, sorted list, mapping of lists, None."""

    step: int
    line: int
    act: str
    field: str
    """A field of `expect`; for `rejected`, with the item: `rejected h0`."""
    expected: Any
    got: Any
    passed: bool
    detail: str = ""
    """The product's message when a step was refused against expectation."""

    def __str__(self) -> str:
        what = f"step {self.step} {self.act}: {self.field}"
        if self.passed:
            return f"{what}: {_words(self.expected)}"
        return f"{what}: expected {_words(self.expected)}, got {_words(self.got)}" + (
            f" ({self.detail})" if self.detail else ""
        )


@dataclass(frozen=True)
class Report:
    """How a scenario came out: an entry an expectation, and one for each step refused against expectation."""

    path: str
    scenario: str
    expectations: tuple[Expectation, ...]

    @property
    def failures(self) -> tuple[Expectation, ...]:
        return tuple(one for one in self.expectations if not one.passed)

    @property
    def passed(self) -> bool:
        return not self.failures


async def check(graph: Graph, scenario: Scenario, *, invalidation: Invalidation | None = None) -> Report:
    """Play a scenario on a fresh workspace, deleted afterwards. Raises `unavailable` and nothing else.

    No scan runs, whatever the environment says, unless a pipeline is given and the scenario's policy asks for it.
    """
    import anyio

    clock = _Clock(scenario.clock)
    id = new_id("check")
    with tempfile.TemporaryDirectory(prefix="tracegraph-check-") as folder:
        try:
            ws = await open_workspace(
                graph,
                id,
                owner=new_id("owner"),
                clock=clock,
                policy=scenario.policy,
                keys=Keys(Path(folder)),
                invalidation=invalidation,
            )
            if scenario.grants:
                await commit(graph, id, scenario.grants, author=None, now=micros(clock.now))
            given = [step.given for step in scenario.steps if isinstance(step.given, Mapping)]
            player = _Player(ws, clock, {one["known_at"] for one in given if one.get("known_at") is not None})
            expectations: list[Expectation] = []
            for step in scenario.steps:
                expectations += await player.step(step)
        finally:
            with anyio.CancelScope(shield=True):
                await forget(graph, id)
    return Report(scenario.path, scenario.name, tuple(expectations))


async def forget(graph: Graph, workspace: str) -> None:
    """Delete a scratch workspace with all it holds, in batches."""

    async def work(tx: Tx) -> int:
        row = await tx.row("write/forget_workspace", workspace=workspace, limit=FORGET_BATCH)
        return int(row["deleted"]) if row else 0

    while await graph.write(work) == FORGET_BATCH:
        pass


class _Clock:
    """Stands still until it is set."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


# --- playing ----------------------------------------------------------------------------------------------


class _Player:
    """One workspace, and what the scenario's later steps may refer to."""

    def __init__(self, ws: Workspace, clock: _Clock, asked: set[str]) -> None:
        self.ws = ws
        self.clock = clock
        self.asked = asked
        """The names of steps whose epoch some step asks for."""
        self.tickets: dict[str, str] = {}
        """Principal to its last ticket."""
        self.views: dict[str, str] = {}
        """Principal to its last view."""
        self.epochs: dict[str, int] = {}
        """Name of a step that is asked for to the latest epoch after it."""
        self.written: dict[str, str] = {}
        """Name of a step to the id by which what it wrote can be withdrawn."""

    async def step(self, step: Step) -> list[Expectation]:
        if step.at is not None:
            self.clock.now = step.at
        wanted = step.expect.get("error")
        try:
            found = await self._act(step)
            if step.name is not None and step.name in self.asked:
                self.epochs[step.name] = await self._epoch()
        except TracegraphError as error:
            if error.code == "unavailable" and wanted != "unavailable":
                raise
            return [_refusal(step, wanted, error.code, "" if error.code == wanted else error.message)]
        if wanted is not None:
            return [_refusal(step, wanted, None, "the step was carried out")]
        return list(_compare(step, found))

    async def _epoch(self) -> int:
        async def work(tx: Tx) -> int:
            return int((await lock(tx, self.ws.id))["epoch"])

        return await self.ws.graph.under_lock(work)

    async def _act(self, step: Step) -> Mapping[str, Any]:
        """Carry the act out; what `expect` may ask about it."""
        ws = self.ws
        given = dict(step.given) if isinstance(step.given, Mapping) else {}
        author = given.pop("by", None)
        match step.act:
            case "record":
                authors = [record.get("by") for record in step.given]
                items = [_item(record) for record in step.given]
                if len(set(authors)) <= 1:
                    await ws.record(*items, author=authors[0] if authors else None)
                else:
                    now = micros(self.clock())
                    await commit(ws.graph, ws.id, items, author=None, authors=authors, now=now)
            case "open_obligation":
                frontier = given.pop("frontier", None)
                owed = Obligation(frontier=None if frontier is None else Frontier(**frontier), **given)
                await ws.open_obligation(owed, author=author)
            case "advance":
                await ws.advance(**given, author=author)
            case "resolve":
                self._keep(step, await ws.resolve(**given, author=author))
            case "revoke":
                self._keep(step, await ws.revoke(**given, author=author))
            case "retract":
                await ws.retract(**given, author=author)
            case "withdraw":
                target = given["target"]
                if target not in self.written:
                    raise TracegraphError(
                        f"No step {target!r} that can be withdrawn was carried out.", code="unknown_item"
                    )
                await ws.withdraw(self.written[target])
            case "erase":
                await ws.erase(**given)
            case "grant":
                self._keep(step, await ws.grant(**given))
            case "deny":
                self._keep(step, await ws.deny(**given))
            case "policy":
                await ws.set_policy(**given)
            case "verdict":
                self._keep(step, await ws.verdict(**given))
            case "depart":
                self.tickets[given["principal"]] = await ws.depart(**given)
            case "admit":
                ticket = self.tickets.get(given["principal"], "")
                return await self._returned(step, await ws.admit(ticket, **self._clocks(given)))
            case "join":
                return await self._returned(step, await ws.join(**self._clocks(given)))
            case "remember":
                await ws.remember(**given)
            case "recall":
                view = self.views.get(given["principal"])
                return {"recalled": [one.id for one in await ws.recall(view, principal=given["principal"])]}
            case "read":
                return {"items": [item.id for item in await ws.read(**self._clocks(given))]}
        return {}

    def _keep(self, step: Step, committed: Committed) -> None:
        if step.name is not None:
            (self.written[step.name],) = committed.ids

    def _clocks(self, given: dict[str, Any]) -> dict[str, Any]:
        """The fields with `known_at` as an epoch, when it names a step, or as an instant."""
        known_at = given.get("known_at")
        if known_at is None:
            return given
        if known_at in self.epochs:
            return {**given, "known_at": self.epochs[known_at]}
        try:
            return {**given, "known_at": datetime.fromisoformat(known_at)}
        except ValueError:
            raise TracegraphError(
                f"known_at {known_at[:64]!r} is neither an instant nor an earlier step that was carried out.",
                code="unknown_item",
            ) from None

    async def _returned(self, step: Step, result: Result) -> Mapping[str, Any]:
        if result.view is not None:
            self.views[step.given["principal"]] = result.view
        if not step.expect:
            return {}
        return (await audit.cycle(self.ws.graph, self.ws.id, result.cycle_id)).model_dump()


def _item(record: Mapping[str, Any]) -> Item:
    fields = {name: value for name, value in record.items() if name not in ("by", "receipt", "supports")}
    given = record.get("receipts", [record["receipt"]] if "receipt" in record else [])
    fields["receipts"] = tuple(
        ReceiptRef(**one) if "sha256" in one else Receipt(**{"text": "", **one}) for one in given
    )
    fields["supports"] = tuple(
        Support(dependency=one) if isinstance(one, str) else Support(**one) for one in record.get("supports", ())
    )
    return Item(**fields)


# --- comparing --------------------------------------------------------------------------------------------


def _refusal(step: Step, wanted: str | None, code: str | None, detail: str) -> Expectation:
    line = step.lines.get("error", step.line)
    return Expectation(step.number, line, step.act, "error", wanted, code, wanted == code, detail)


def _compare(step: Step, found: Mapping[str, Any]) -> Iterator[Expectation]:
    """One expectation a field, for `rejected` one an item."""
    for field, expected in step.expect.items():
        got = found[field]
        if field == "rejected":
            for id, reasons in expected.items():
                there = sorted(got.get(id, ())) if id in found["pool"] else None
                detail = "" if there is not None else "not in the pool"
                yield _compared(step, field, f"rejected {id}", sorted(set(reasons)), there, detail)
        elif field == "selection":
            wanted = {id: sorted(set(reasons)) for id, reasons in sorted(expected.items())}
            selected = {id: sorted(reasons) for id, reasons in sorted(got.items())}
            yield _compared(step, field, field, wanted, selected)
        elif isinstance(expected, tuple):
            yield _compared(step, field, field, sorted(set(expected)), sorted(got))
        else:
            yield _compared(step, field, field, expected, got)


def _compared(step: Step, field: str, label: str, expected: Any, got: Any, detail: str = "") -> Expectation:
    if isinstance(expected, (int, float)):
        passed = math.isclose(expected, got, rel_tol=0.0, abs_tol=TOLERANCE)
    else:
        passed = expected == got
    return Expectation(step.number, step.lines[field], step.act, label, expected, got, passed, detail)


def _words(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{id}: {_words(reasons)}" for id, reasons in value.items()) + "}"
    return str(value)
