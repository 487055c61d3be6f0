"""Leaving and returning, reading, and private memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracegraph.cli import (
    RETURNS,
    AsOf,
    Id,
    Json,
    KnownAt,
    Name,
    Principal,
    Purpose,
    Query,
    Role,
    Set,
    Task,
    ValidAt,
    app,
    known,
    moment,
    on,
    settings,
    show,
    token_of,
    words_of,
    wrote,
)

if TYPE_CHECKING:
    from tracegraph.model import Result


@app.command(rich_help_panel=RETURNS)
def depart(principal: Principal, role: Role, task: Task, workspace: Name = "", as_json: Json = False) -> None:
    """Leave in a role and a task; prints the ticket that admit takes.

    Example: tracegraph depart -w trip -p A1 -r itinerary -t plan > ticket
    """
    ticket = on(workspace, lambda ws: ws.depart(principal=principal, role=role, task=task))
    show({"ticket": ticket}, as_json, [ticket])


@app.command(rich_help_panel=RETURNS)
def admit(
    ticket: Annotated[str, typer.Argument(help="The ticket, @file, or - for standard input.")],
    principal: Principal,
    workspace: Name = "",
    purpose: Purpose = None,
    workload: Annotated[str | None, typer.Option(help="What runs with the view; kept in it.")] = None,
    query: Query = None,
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    as_of: AsOf = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Decide a return: what the one who departed may act on now. A given clock makes it a preview.

    Example: tracegraph admit @ticket -w trip -p A1 --purpose prepare
    """
    token, clocks = token_of(ticket), _clocks(valid_at, known_at, as_of)
    result = on(
        workspace,
        lambda ws: ws.admit(
            token,
            principal=principal,
            purpose=purpose,
            workload=workload,
            query=query,
            policy=settings(set_),
            **clocks,
        ),
    )
    decided(result, as_json)


@app.command(rich_help_panel=RETURNS)
def join(
    principal: Principal,
    role: Role,
    task: Task,
    workspace: Name = "",
    purpose: Purpose = None,
    workload: Annotated[str | None, typer.Option(help="What runs with the view; kept in it.")] = None,
    query: Query = None,
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    as_of: AsOf = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Enter without a ticket: for one who was never here, or lost it.

    Example: tracegraph join -w trip -p A1 -r itinerary -t plan
    """
    clocks = _clocks(valid_at, known_at, as_of)
    result = on(
        workspace,
        lambda ws: ws.join(
            principal=principal,
            role=role,
            task=task,
            purpose=purpose,
            workload=workload,
            query=query,
            policy=settings(set_),
            **clocks,
        ),
    )
    decided(result, as_json)


def _clocks(valid_at: str | None, known_at: str | None, as_of: str | None) -> dict[str, Any]:
    return {"valid_at": moment(valid_at), "known_at": known(known_at), "as_of": moment(as_of)}


def decided(result: Result, as_json: bool) -> None:
    """Print a decision; exit code 1 unless it released a view."""
    report = result.coverage
    lines = [
        f"{result.decision}{f' ({result.reason})' if result.reason else ''}"
        f"{', a preview' if result.preview else ''}: cycle {result.cycle_id}, epoch {result.epoch}",
        f"coverage {report.coverage:.3g}, critical {report.critical:.3g}"
        + (f", uncovered: {', '.join(report.uncovered)}" if report.uncovered else ""),
        *(f"  + {item.id} [{item.why}] {item.content}" for item in result.items),
        *(f"  - {id}: {', '.join(reasons)}" for id, reasons in result.rejected.items()),
        *(f"  ! {id}: {', '.join(reasons)}" for id, reasons in result.selection.items()),
    ]
    if result.view:
        lines += ["view:", result.view]
    show(result, as_json, lines)
    if result.decision not in ("admitted", "reset"):
        raise typer.Exit(1)


@app.command(rich_help_panel=RETURNS)
def view(
    token: Annotated[str, typer.Argument(help="The Return View, @file, or - for standard input.")],
    principal: Principal,
    workspace: Name = "",
    role: Annotated[str | None, typer.Option("--role", "-r", help="The role it must be for.")] = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="The task it must be for.")] = None,
    as_json: Json = False,
) -> None:
    """Open a Return View: check it again, and print what it holds.

    Example: tracegraph view @view -w trip -p A1
    """
    signed = token_of(token)
    opened = on(workspace, lambda ws: ws.open_view(signed, principal=principal, role=role, task=task))
    show(
        opened,
        as_json,
        [
            f"valid until {opened.expires_at.isoformat()}, verification {opened.verification}",
            *(f"  {item.id} [{item.kind}] {item.content}" for item in opened.items),
        ],
    )


@app.command(rich_help_panel=RETURNS)
def read(
    principal: Principal,
    role: Role,
    task: Task,
    workspace: Name = "",
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List what stands for a task and a role may read, on both clocks.

    Example: tracegraph read -w trip -p A1 -r itinerary -t plan --as-of 2026-05-01T09:00:00Z
    """
    clocks = _clocks(valid_at, known_at, as_of)
    items = on(workspace, lambda ws: ws.read(principal=principal, role=role, task=task, **clocks))
    show(items, as_json, [f"{item.id} [{item.key}] {item.content}" for item in items])


@app.command(rich_help_panel=RETURNS)
def remember(
    content: Annotated[str, typer.Argument(help="The memory; - reads it from standard input.")],
    principal: Principal,
    grounded_in: Annotated[list[str], typer.Option(help="An item it rests on.")],
    workspace: Name = "",
    id: Id = None,
    as_json: Json = False,
) -> None:
    """Keep a private memory, grounded in work items.

    Example: tracegraph remember "Quiet matters most." -w trip -p A1 --grounded-in c1
    """
    words = words_of(content)
    wrote(on(workspace, lambda ws: ws.remember(words, principal=principal, grounded_in=grounded_in, id=id)), as_json)


@app.command(rich_help_panel=RETURNS)
def recall(
    token: Annotated[str, typer.Argument(help="The Return View, @file, or - for standard input.")],
    principal: Principal,
    workspace: Name = "",
    query: Annotated[str | None, typer.Option(help="Words that should match; the best come first.")] = None,
    as_json: Json = False,
) -> None:
    """List the private memories that a view lets its owner use.

    Example: tracegraph recall @view -w trip -p A1
    """
    signed = token_of(token)
    found = on(workspace, lambda ws: ws.recall(signed, principal=principal, query=query))
    show(found, as_json, [f"{one.id} {one.content}" for one in found])
