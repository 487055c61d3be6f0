"""A return decided once more from the graph: the decision's own code on its recorded inputs (DESIGN §12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from tracegraph.admission import gates
from tracegraph.admission.decision import Decision, evaluate
from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import Model, Policy


class Difference(Model):
    """One field that came out otherwise; `item` when it is about one."""

    field: Literal[
        "decision", "reason", "pool", "reasons", "selection", "admitted", "coverage", "critical", "uncovered"
    ]
    item: str | None
    recorded: str
    replayed: str


class Replay(Model):
    """A return decided once more from the graph, with its recorded inputs."""

    cycle_id: str
    decision: Decision
    """As recorded."""
    equal: bool
    differences: tuple[Difference, ...]
    erased: tuple[str, ...]
    """Items of that time that were erased since: they stand nowhere now, so a difference may be theirs."""


async def replay(graph: Graph, workspace: str, cycle_id: str) -> Replay:
    """Decide a recorded return again, with its policy, clocks, query and departure; else `unknown_item`."""

    async def work(tx: Tx) -> tuple[dict[str, Any], dict[str, Any]]:
        row = await tx.row("audit/inputs", workspace=workspace, cycle=cycle_id)
        if row is None:
            raise TracegraphError(f"There is no return cycle {cycle_id!r}.", code="unknown_item")
        return row, await _decide(tx, workspace, row)

    row, again = await graph.read(work)
    cycle = row["cycle"]
    recorded = {
        "decision": cycle["decision"],
        "reason": cycle.get("reason"),
        "pool": dict.fromkeys(cycle["pool"], True),
        "reasons": {id: sorted(reasons) for id, reasons in row["rejected"]},
        "selection": {id: sorted(reasons) for id, reasons in json.loads(cycle["selection"]).items()},
        "admitted": list(zip(cycle["selected"], cycle["selected_why"], strict=True)),
        "coverage": cycle["coverage"],
        "critical": cycle["critical"],
        "uncovered": cycle["uncovered"],
    }
    if row["admits"] and [list(pair) for pair in recorded["admitted"]] != row["admits"]:
        recorded["admitted"] = [tuple(pair) for pair in row["admits"]]  # the view's own word against the cycle's
    differences = tuple(_differences(recorded, again))
    return Replay(
        cycle_id=cycle_id,
        decision=cycle["decision"],
        equal=not differences,
        differences=differences,
        erased=tuple(row["erased"]),
    )


async def _decide(tx: Tx, workspace: str, row: dict[str, Any]) -> dict[str, Any]:
    cycle = row["cycle"]
    refused = None if row["held"] else "role_not_held" if row["known_principal"] else "unknown_principal"
    if refused is not None:
        nothing: dict[str, Any] = {
            "pool": {},
            "reasons": {},
            "selection": {},
            "admitted": [],
            "uncovered": [],
        }
        return {**nothing, "decision": "refused", "reason": refused, "coverage": 0.0, "critical": 0.0}
    valid_at, now = row["microseconds"]
    decided = await evaluate(
        tx,
        workspace,
        gates.Return(cycle["role"], cycle["task"], cycle.get("purpose"), Policy(**json.loads(cycle["policy"]))),
        gates.Clocks(valid_at=valid_at, epoch=cycle["epoch"], now=now, latest=cycle["authorized_epoch"]),
        None if row["departed"] is None else (row["departed"][0], row["departed"][1]),
        cycle.get("query"),
    )
    covering = decided.cover
    return {
        "decision": decided.decision,
        "reason": None,
        "pool": dict.fromkeys(decided.pool, True),
        "reasons": {id: sorted(one.reasons) for id, one in decided.pool.items() if one.reasons},
        "selection": {id: sorted(reasons) for id, reasons in covering.reasons.items()},
        "admitted": list(covering.selected.items()) if decided.decision == "admitted" else [],
        "coverage": float(covering.coverage),
        "critical": float(covering.critical),
        "uncovered": covering.uncovered,
    }


def _differences(recorded: dict[str, Any], replayed: dict[str, Any]) -> Iterator[Difference]:
    for name, before in recorded.items():
        after = replayed[name]
        if before == after:
            continue
        if isinstance(before, dict):
            for id in sorted(before.keys() | after.keys()):
                if before.get(id) != after.get(id):
                    yield _difference(name, id, before.get(id), after.get(id))
        else:
            yield _difference(name, None, before, after)


def _difference(name: Any, item: str | None, before: Any, after: Any) -> Difference:
    return Difference(field=name, item=item, recorded=_told(before), replayed=_told(after))


def _told(value: Any) -> str:
    match value:
        case None | []:
            return "none"
        case True:
            return "in the pool"
        case list():
            return ", ".join(f"{one[0]} ({one[1]})" if isinstance(one, tuple) else str(one) for one in value)
        case _:
            return str(value)
