"""Private memories, readmitted by their sources (paper §3.5; DESIGN §11)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tracegraph.admission import cover
from tracegraph.admission.view import open_view, pin_view
from tracegraph.graph import Graph, Tx
from tracegraph.model import Model, instant


class Experience(Model):
    """A private memory that the opened view lets its owner use."""

    id: str
    content: str
    grounded_in: tuple[str, ...]
    recorded_at: datetime


async def recall(
    graph: Graph, workspace: str, claims: Mapping[str, Any], *, query: str | None, now: int
) -> list[Experience]:
    """The owner's memories all of whose groundings the view admits, best match to `query` first.

    Nothing while the owner is absent in the view's role and task. Otherwise raises what `open_view` raises.
    """
    here = await pin_view(graph, workspace, claims, now=now)
    if here.absent:
        return []

    async def work(tx: Tx) -> list[dict[str, Any]]:
        view = await open_view(tx, workspace, claims, here)
        shown = {item.id for item in view.items}
        row = await tx.row("admission/remembered", workspace=workspace, principal=view.principal)
        return [one for one in (row["experiences"] if row else []) if shown.issuperset(one["grounded_in"])]

    usable = await graph.write(work, again=True)
    scores = cover.relevance(query, {row["id"]: row["content"] for row in usable}) if query else {}
    usable.sort(key=lambda row: (-scores.get(row["id"], 0.0), -row["recorded_at"], row["id"]))
    out = []
    for row in usable:
        recorded_at = instant(row["recorded_at"])
        assert recorded_at is not None
        out.append(
            Experience(
                id=row["id"],
                content=row["content"],
                grounded_in=tuple(sorted(row["grounded_in"])),
                recorded_at=recorded_at,
            )
        )
    return out
