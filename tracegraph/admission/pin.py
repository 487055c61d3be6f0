"""Where a return stands, taken in one query under the workspace's lock (DESIGN §3, §6)."""

from __future__ import annotations

from dataclasses import dataclass

from tracegraph.errors import TracegraphError
from tracegraph.graph import Tx
from tracegraph.model import Policy
from tracegraph.write import stored_policy


@dataclass(frozen=True)
class Pin:
    """The moment (microseconds), the latest epoch, and what they say of one principal in one role and task."""

    now: int
    epoch: int
    policy: Policy
    revision: int
    known_principal: bool
    held: bool
    """Whether the principal holds the role now."""
    checkpoint: str | None
    """The departure asked for, if it is in the graph."""
    last: str | None
    """The last departure in this role and task."""
    absent: bool
    """Whether that departure has not been answered."""
    known: int
    """The epoch that the wall time asked for stands for."""


async def pin(
    tx: Tx,
    workspace: str,
    *,
    principal: str,
    role: str,
    task: str,
    now: int,
    checkpoint: str | None = None,
    known_at: int | None = None,
) -> Pin:
    """Take the lock and look; `unknown_item` when there is no such workspace. Never writes."""
    row = await tx.row(
        "admission/pin",
        workspace=workspace,
        principal=principal,
        role=role,
        task=task,
        now=now,
        checkpoint=checkpoint,
        known_at=known_at,
    )
    if row is None:
        raise TracegraphError(f"There is no workspace {workspace!r}.", code="unknown_item")
    policy = row["policy"]
    return Pin(**{**row, "policy": stored_policy(policy)}, revision=policy["revision"])
