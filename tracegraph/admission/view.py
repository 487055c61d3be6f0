"""The signed Return View: issued with a decision, and checked again before exposure (paper §3.4; DESIGN §10)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tracegraph.admission import cover, gates
from tracegraph.admission.pin import Pin, pin
from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import LAST, AdmittedItem, Coverage, Model, Policy, instant, iso, sha256
from tracegraph.signing import Keys

SECOND = 1_000_000


class View(Model):
    """An opened Return View: the state a return may act on until `expires_at`; no tools, no plan."""

    principal: str
    workspace: str
    role: str
    task: str
    purpose: str | None
    workload: str | None
    cycle_id: str
    epoch: int
    valid_at: datetime
    expires_at: datetime
    coverage: Coverage
    verification: str
    """`verified`, `best_effort` or `not_checked`."""
    pairs: dict[str, int]
    """How many pairs verification looked at, by outcome; empty when it was not run."""
    reset: bool
    items: tuple[AdmittedItem, ...]


@dataclass(frozen=True)
class Issued:
    """What a new view is signed over."""

    workspace: str
    principal: str
    role: str
    task: str
    purpose: str | None
    workload: str | None
    cycle: str
    jti: str
    epoch: int
    valid_at: int
    now: int
    policy: Policy
    revision: int
    reset: bool
    coverage: Coverage
    verification: str
    pairs: Mapping[str, int]
    items: Mapping[str, str]
    """Item id to digest, by rank."""


def issue(keys: Keys, issued: Issued) -> tuple[str, int]:
    """The signed token and its expiry in microseconds."""
    expires = min(issued.now // SECOND + issued.policy.view_minutes * 60, LAST // SECOND) * SECOND
    token = keys.sign(
        "view",
        {
            "sub": issued.principal,
            "workspace": issued.workspace,
            "role": issued.role,
            "task": issued.task,
            "purpose": issued.purpose,
            "workload": issued.workload,
            "cycle": issued.cycle,
            "jti": issued.jti,
            "epoch": issued.epoch,
            "valid_at": iso(issued.valid_at),
            "iat": issued.now // SECOND,
            "exp": expires // SECOND,
            "policy": issued.revision,
            "reset": issued.reset,
            "items": [[id, digest] for id, digest in issued.items.items()],
            "coverage": issued.coverage.model_dump(mode="json"),
            "verification": issued.verification,
            "pairs": dict(issued.pairs),
        },
    )
    return token, expires


def read_view(
    keys: Keys, token: str, *, workspace: str, principal: str, role: str | None, task: str | None
) -> dict[str, Any]:
    """The claims of a view whose signature and identity hold, else `view_invalid`."""
    claims = keys.verify("view", token)
    stated = {"role": role, "task": task}
    wanted = {"workspace": workspace, "sub": principal} | {k: v for k, v in stated.items() if v is not None}
    for name, value in wanted.items():
        if claims.get(name) != value:
            what = "principal" if name == "sub" else name
            raise TracegraphError(f"The view was issued for another {what}.", code="view_invalid")
    return claims


async def pin_view(graph: Graph, workspace: str, claims: Mapping[str, Any], *, now: int) -> Pin:
    """Where the view's owner stands at this moment."""
    return await graph.under_lock(
        lambda tx: pin(tx, workspace, principal=claims["sub"], role=claims["role"], task=claims["task"], now=now)
    )


async def open_view(tx: Tx, workspace: str, claims: Mapping[str, Any], here: Pin) -> View:
    """Check a view before exposure, as of the moment and the epoch of `here`, and note that it was opened.

    Raises `view_expired`, `view_invalid` when its digests or budgets do not hold, and `view_stale` with the reasons
    when its role, an item's gates or the coverage of the obligations then open no longer hold.
    """
    if here.now >= claims["exp"] * SECOND:
        raise TracegraphError(f"The view expired at {iso(claims['exp'] * SECOND)}.", code="view_expired")
    cycle = await tx.row("admission/cycle", workspace=workspace, cycle=claims["cycle"])
    if cycle is None or cycle["jti"] != claims["jti"]:
        raise TracegraphError("The view's return cycle is not in this database.", code="view_invalid")
    policy = Policy(**json.loads(cycle["policy"]))
    items = _as_signed(cycle["items"], claims, policy)
    clocks = gates.Clocks(valid_at=here.now, epoch=here.epoch, now=here.now, latest=here.epoch)
    await _check_current(tx, workspace, claims, policy, clocks, here.held)
    expires, valid_at = instant(claims["exp"] * SECOND), instant(cycle["valid_at"])
    assert expires is not None
    assert valid_at is not None
    await tx.run("admission/opened", workspace=workspace, jti=claims["jti"], principal=claims["sub"], at=here.now)
    return View(
        principal=claims["sub"],
        workspace=workspace,
        role=claims["role"],
        task=claims["task"],
        purpose=claims["purpose"],
        workload=claims["workload"],
        cycle_id=claims["cycle"],
        epoch=claims["epoch"],
        valid_at=valid_at,
        expires_at=expires,
        coverage=Coverage(**{**claims["coverage"], "uncovered": tuple(claims["coverage"]["uncovered"])}),
        verification=claims["verification"],
        pairs=claims["pairs"],
        reset=claims["reset"],
        items=tuple(admitted(item, item["why"]) for item in items),
    )


def admitted(row: Mapping[str, Any], why: Any) -> AdmittedItem:
    """One item as a view exposes it."""
    start = instant(row["valid_from"])
    assert start is not None
    return AdmittedItem(
        id=row["id"],
        key=row["key"],
        kind=row["kind"],
        scope=row["scope"],
        content=row["content"],
        digest=row["digest"],
        why=why,
        valid_from=start,
        valid_to=instant(row["valid_to"]),
    )


def _as_signed(stored: Collection[dict[str, Any]], claims: Mapping[str, Any], policy: Policy) -> list[dict[str, Any]]:
    """The items that the view admits, by rank; their digests, words and sizes must be what was signed."""
    there = {item["id"]: item for item in stored}
    items = []
    for id, digest in claims["items"]:
        item = there.get(id)
        if item is None or item["digest"] != digest:
            raise TracegraphError(f"The item {id!r} is not what was signed.", code="view_invalid")
        if item["content"] is not None and sha256(item["content"]) != item["content_digest"]:
            raise TracegraphError(f"The words of the item {id!r} are not what was signed.", code="view_invalid")
        items.append(item)
    if len(items) > policy.max_items or sum(item["length"] for item in items) > policy.max_chars:
        raise TracegraphError("The view exceeds its own budgets.", code="view_invalid")
    return items


async def _check_current(
    tx: Tx, workspace: str, claims: Mapping[str, Any], policy: Policy, clocks: gates.Clocks, held: bool
) -> None:
    if not held:
        raise TracegraphError(
            f"{claims['sub']!r} no longer holds the role {claims['role']!r}.",
            code="view_stale",
            reasons={claims["role"]: ["role_not_held"]},
        )
    back = gates.Return(claims["role"], claims["task"], claims["purpose"], policy)
    candidates = await tx.row(
        "admission/pool",
        workspace=workspace,
        task=back.task,
        checkpoint=None,
        departed=clocks.latest,
        epoch=clocks.latest,
        valid_at=clocks.valid_at,
    )
    assert candidates is not None
    own = {id for id, _ in claims["items"]}
    found = await gates.judge(tx, workspace, own | set(candidates["current"]), back, clocks)
    broken = {id: _told(found[id]) for id in sorted(own) if not found[id].eligible()}
    if broken:
        raise TracegraphError(
            f"{len(broken)} of {len(own)} items no longer pass: "
            + "; ".join(f"{id!r} ({', '.join(reasons)})" for id, reasons in broken.items())
            + ".",
            code="view_stale",
            reasons=broken,
        )
    if not claims["reset"]:
        _check_coverage(found, candidates["current"], own, policy)


def _told(one: gates.Judged) -> list[str]:
    """An item's reasons, as far as one may learn them who may not read it now."""
    return sorted(one.reasons if one.readable() else one.reasons & gates.AUTHORIZATION)


def _check_coverage(
    found: Mapping[str, gates.Judged], current: Collection[str], own: Collection[str], policy: Policy
) -> None:
    open_ = cover.obligations(found[id] for id in {*own, *current})
    supported = {name for id in own for name in found[id].supports}
    coverage, critical = cover.covered(open_, supported)
    if not cover.meets(coverage, critical, policy):
        raise TracegraphError(
            f"The obligations now open are covered {float(coverage):.3g} (critical {float(critical):.3g}); the view"
            f" needs {policy.coverage:.3g} (critical {policy.critical:.3g}).",
            code="view_stale",
            reasons={
                one.id: ["not_covered"]
                for one in open_
                if one.readable() and not all(name in supported for name, _ in one.requires)
            },
        )
