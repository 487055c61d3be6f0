"""What happened and why, read back from the graph with an auditor's eyes (DESIGN §12). Never writes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal

from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import Model, instant


class CycleReport(Model):
    """One recorded return with every reason, those of items its caller may not read included."""

    cycle_id: str
    principal: str
    role: str
    task: str
    purpose: str | None
    decision: Literal["admitted", "blocked", "reset", "refused"]
    reason: str | None
    """Why it was refused."""
    preview: bool
    epoch: int
    valid_at: datetime
    coverage: float
    critical: float
    uncovered: tuple[str, ...]
    """Every required dependency that nothing selected supports."""
    pool: tuple[str, ...]
    admitted: tuple[str, ...]
    """By rank."""
    rejected: dict[str, tuple[str, ...]]
    """Pool item to its gate reasons; an item that passes every gate is not here."""
    selection: dict[str, tuple[str, ...]]


async def cycle(graph: Graph, workspace: str, cycle_id: str) -> CycleReport:
    """The return `cycle_id` as it was decided; `unknown_item` when there is none."""

    async def work(tx: Tx) -> dict[str, Any] | None:
        return await tx.row("audit/cycle", workspace=workspace, cycle=cycle_id)

    row = await graph.read(work)
    if row is None:
        raise TracegraphError(f"There is no return cycle {cycle_id!r}.", code="unknown_item")
    return CycleReport(
        **{
            **row,
            "valid_at": instant(row["valid_at"]),
            "uncovered": tuple(row["uncovered"]),
            "pool": tuple(row["pool"]),
            "admitted": tuple(row["admitted"]),
            "rejected": {id: tuple(reasons) for id, reasons in sorted(row["rejected"])},
            "selection": {id: tuple(reasons) for id, reasons in json.loads(row["selection"]).items()},
        }
    )
