"""Leaving: the checkpoint of what stood and was readable, and the signed ticket (paper §3.1; DESIGN §6)."""

from __future__ import annotations

from typing import Any

from tracegraph.acts import Moment
from tracegraph.admission import gates
from tracegraph.admission.pin import pin
from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import Depart, Model, digest, micros, sha256
from tracegraph.signing import Keys
from tracegraph.write import written

SECOND = 1_000_000


class Ticket(Model):
    """What a departure ticket says. `exp` in seconds since 1970 UTC."""

    principal: str
    workspace: str
    role: str
    task: str
    epoch: int
    checkpoint: str
    exp: int


async def depart(graph: Graph, keys: Keys, workspace: str, *, principal: str, role: str, task: str, now: int) -> str:
    """Record a departure as a batch of its own, and sign its ticket."""
    act = Depart(principal=principal, role=role, task=task)
    committed, rows = await written(graph, workspace, [act], author=principal, now=now)
    (row,) = rows.checkpoints
    return keys.sign(
        "ticket",
        {
            "sub": principal,
            "workspace": workspace,
            "role": role,
            "task": task,
            "epoch": committed.epoch,
            "jti": act.id,
            "iat": micros(committed.recorded_at) // SECOND,
            "exp": row["expires_at"] // SECOND,
        },
    )


def read_ticket(keys: Keys, token: str, *, workspace: str, principal: str) -> Ticket:
    """A ticket whose signature and identity hold, else `invalid_ticket`. Expiry and use are the decision's to check."""
    claims = keys.verify("ticket", token)
    if claims.get("workspace") != workspace or claims.get("sub") != principal:
        raise TracegraphError("The ticket is for another workspace or another principal.", code="invalid_ticket")
    return Ticket(
        principal=claims["sub"],
        workspace=claims["workspace"],
        role=claims["role"],
        task=claims["task"],
        epoch=claims["epoch"],
        checkpoint=claims["jti"],
        exp=claims["exp"],
    )


async def checkpoint(tx: Tx, moment: Moment, act: Depart) -> dict[str, Any]:
    """The departure's row: the items that stand, are readable, and are of this task or of none, at this epoch."""
    here = await pin(tx, moment.workspace, principal=act.principal, role=act.role, task=act.task, now=moment.now)
    if not here.known_principal:
        raise TracegraphError(
            f"The principal {act.principal!r} is not known in this workspace.", code="unknown_principal"
        )
    if not here.held:
        raise TracegraphError(f"{act.principal!r} does not hold the role {act.role!r}.", code="role_not_held")
    before = moment.epoch - 1
    candidates = await tx.row(
        "admission/pool",
        workspace=moment.workspace,
        task=act.task,
        checkpoint=None,
        departed=before,
        epoch=before,
        valid_at=moment.now,
    )
    assert candidates is not None
    found = await gates.judge(
        tx,
        moment.workspace,
        candidates["current"],
        gates.Return(role=act.role, task=act.task, policy=moment.policy),
        gates.Clocks(valid_at=moment.now, epoch=before, now=moment.now, latest=before),
    )
    ids = sorted(id for id in candidates["current"] if found[id].stands() and found[id].readable())
    return {
        "id": act.id,
        "principal": act.principal,
        "role": act.role,
        "task": act.task,
        "valid_at": moment.now,
        "item_ids": ids,
        "items_digest": sha256(digest({"items": ids})),
    }
