"""Reading without returning: what stands for a task and a role may read (DESIGN §3, §13 `read`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tracegraph.admission import gates
from tracegraph.admission.decision import Asked, settle
from tracegraph.admission.view import admitted
from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import AdmittedItem


async def read(
    graph: Graph,
    workspace: str,
    *,
    principal: str,
    role: str,
    task: str,
    valid_at: datetime | None,
    known_at: int | datetime | None,
    now: int,
) -> tuple[AdmittedItem, ...]:
    """The items, by key and id. Raises `unknown_principal` and `role_not_held`."""
    asked = Asked(principal=principal, role=role, task=task, valid_at=valid_at, known_at=known_at)
    pinned = await graph.under_lock(lambda tx: settle(tx, workspace, asked, now))
    if pinned.refused is not None:
        raise TracegraphError(f"{principal!r} may not read as {role!r}.", code=pinned.refused)
    back = gates.Return(role, task, None, pinned.policy)

    async def work(tx: Tx) -> list[dict[str, Any]]:
        row = await tx.row(
            "admission/current", workspace=workspace, epoch=pinned.clocks.epoch, valid_at=pinned.clocks.valid_at
        )
        while True:
            found = await gates.judge(tx, workspace, row["current"] if row else [], back, pinned.clocks)
            ids = [id for id in (row["current"] if row else []) if found[id].stands() and found[id].readable()]
            items = await gates.words(tx, workspace, ids)
            if items is not None:
                return list(items.values())

    items = await graph.read(work)
    return tuple(admitted(item, None) for item in sorted(items, key=lambda item: (item["key"], item["id"])))
