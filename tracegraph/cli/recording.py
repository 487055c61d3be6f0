"""The acts that write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracegraph.cli import (
    ACTS,
    Batch,
    By,
    Id,
    Json,
    Name,
    Role,
    Set,
    app,
    moment,
    on,
    plain,
    run,
    settings,
    show,
    text_of,
    usage,
    words_of,
    wrote,
)
from tracegraph.errors import TracegraphError

if TYPE_CHECKING:
    from tracegraph.model import Committed
    from tracegraph.workspace import Workspace


@app.command(rich_help_panel=ACTS)
def create(
    workspace: Annotated[str, typer.Argument(help="The new workspace's id.")],
    owner: Annotated[str, typer.Option(help="Who may write everything, grant, deny, set the policy and erase.")],
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Create a workspace with its owner and the first revision of its policy.

    Example: tracegraph create trip --owner lead --set max_items=8
    """
    import tracegraph

    async def work() -> None:
        async with tracegraph.connect() as graph:
            await graph.workspace(workspace, owner=owner, policy=settings(set_))

    run(work)
    show({"workspace": workspace, "owner": owner}, as_json, [f"workspace {workspace}, owner {owner}"])


@app.command(rich_help_panel=ACTS)
def record(
    content: Annotated[str | None, typer.Argument(help="The statement; - reads it from standard input.")] = None,
    scope: Annotated[str | None, typer.Option(help="The unit of permission it belongs to.")] = None,
    workspace: Name = "",
    id: Id = None,
    key: Annotated[str | None, typer.Option(help="What it is about; by default its id.")] = None,
    kind: Annotated[str, typer.Option(help="fact or constraint.")] = "fact",
    task: Annotated[str | None, typer.Option(help="The one task it is for.")] = None,
    for_purpose: Annotated[list[str] | None, typer.Option(help="A purpose it is for.")] = None,
    for_role: Annotated[str | None, typer.Option(help="The one role it is for.")] = None,
    valid_from: Annotated[str | None, typer.Option(help="By default the moment of recording.")] = None,
    valid_to: Annotated[str | None, typer.Option(help="By default an open end.")] = None,
    supports: Annotated[list[str] | None, typer.Option(help="A dependency it satisfies.")] = None,
    depends_on: Annotated[list[str] | None, typer.Option(help="An item it rests on.")] = None,
    derived_from: Annotated[list[str] | None, typer.Option(help="An item it was made from.")] = None,
    supersedes: Annotated[list[str] | None, typer.Option(help="An item of another key that it replaces.")] = None,
    receipt_uri: Annotated[str | None, typer.Option(help="Where it came from.")] = None,
    receipt_text: Annotated[str | None, typer.Option(help="The source's words; @file reads them.")] = None,
    receipt: Annotated[list[str] | None, typer.Option(help="An earlier receipt's id.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="A JSONL file of items, one a line, as one batch; - is standard input.")
    ] = None,
    by: By = None,
    batch_id: Batch = None,
    as_json: Json = False,
) -> None:
    """Record a statement, or a file of them, as one batch.

    Example: tracegraph record "Riverside is booked." -w trip --by A2 --key hotel --scope trip
    --supports hotel --receipt-uri mail:3 --receipt-text "Riverside confirmed"
    """
    from tracegraph.model import Item, Receipt, ReceiptRef

    if file is not None:
        own = (content, scope, id, key, task, for_purpose, for_role, valid_from, valid_to, supports, depends_on)
        if any(one is not None for one in (*own, derived_from, supersedes, receipt_uri, receipt_text, receipt)):
            usage("Give a statement with its options, or --file: its lines say all of their items.")
        items = _items(file)
    elif content is None or scope is None:
        usage("Give a statement and its --scope, or --file.")
    else:
        if receipt_text is not None and receipt_uri is None:
            usage("Say where the words of --receipt-text are from: --receipt-uri.")
        receipts: list[Receipt | ReceiptRef] = [ReceiptRef(id=one) for one in receipt or ()]
        if receipt_uri is not None:
            receipts.append(Receipt(uri=receipt_uri, text=text_of(receipt_text or "")))
        items = [
            Item(
                content=words_of(content),
                scope=scope,
                key=key,
                kind=kind,  # type: ignore[arg-type]
                task=task,
                purposes=for_purpose or [],
                role=for_role,
                valid_from=moment(valid_from),
                valid_to=moment(valid_to),
                supports=supports or [],
                depends_on=depends_on or [],
                derived_from=derived_from or [],
                supersedes=supersedes or [],
                receipts=receipts,
                **({} if id is None else {"id": id}),
            )
        ]
    wrote(on(workspace, lambda ws: ws.record(*items, author=by, batch_id=batch_id)), as_json)


def _items(file: Path) -> list[Any]:
    from pydantic import ValidationError

    from tracegraph.model import Item, refusal

    text = text_of("-" if str(file) == "-" else f"@{file}")
    items = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            items.append(Item.model_validate_json(line))
        except ValidationError as error:
            refusal(error, f"line {number}: Item")
        except TracegraphError as error:
            raise TracegraphError(f"line {number}: {error.message}", code=error.code, hint=error.hint) from None
    return items


@app.command(rich_help_panel=ACTS)
def open_obligation(
    content: Annotated[str, typer.Argument(help="What is owed.")],
    scope: Annotated[str, typer.Option(help="The unit of permission it belongs to.")],
    workspace: Name = "",
    id: Id = None,
    role: Annotated[str | None, typer.Option(help="Which role owes it; by default every role.")] = None,
    task: Annotated[str | None, typer.Option(help="For which task; by default every task.")] = None,
    for_purpose: Annotated[list[str] | None, typer.Option(help="A purpose it is for.")] = None,
    requires: Annotated[
        list[str] | None, typer.Option(help="A dependency it needs; a trailing ! makes it critical.")
    ] = None,
    frontier: Annotated[str | None, typer.Option(help="What remains unresolved.")] = None,
    by: By = None,
    batch_id: Batch = None,
    as_json: Json = False,
) -> None:
    """Record what a role owes, and the evidence it needs.

    Example: tracegraph open-obligation "Arrange the stay." -w trip --scope trip --role itinerary --task plan
    --requires hotel! --requires quiet --frontier "Nothing confirmed yet."
    """
    from tracegraph.model import Frontier, Obligation

    owed = Obligation(
        content=words_of(content),
        scope=scope,
        role=role,
        task=task,
        purposes=tuple(for_purpose or ()),
        requires=tuple(requires or ()),
        frontier=None if frontier is None else Frontier(content=frontier),
        **({} if id is None else {"id": id}),
    )
    wrote(on(workspace, lambda ws: ws.open_obligation(owed, author=by, batch_id=batch_id)), as_json)


@app.command(rich_help_panel=ACTS)
def advance(
    obligation: Annotated[str, typer.Argument(help="The obligation's id.")],
    content: Annotated[str, typer.Argument(help="What remains unresolved now.")],
    workspace: Name = "",
    id: Id = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Record the next frontier of an obligation.

    Example: tracegraph advance o1 "Only the pickup is open." -w trip --by A2
    """
    words = words_of(content)
    wrote(on(workspace, lambda ws: ws.advance(obligation, words, author=by, id=id)), as_json)


@app.command(rich_help_panel=ACTS)
def resolve(
    target: Annotated[str, typer.Argument(help="The obligation's id.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Close an obligation.

    Example: tracegraph resolve o1 -w trip --by A2
    """
    wrote(on(workspace, lambda ws: ws.resolve(target, author=by)), as_json)


@app.command(rich_help_panel=ACTS)
def revoke(
    target: Annotated[str, typer.Argument(help="An item's or a receipt's id.")],
    workspace: Name = "",
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    effective_from: Annotated[str | None, typer.Option(help="From when; by default now.")] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """End an item or a receipt; nothing older comes back.

    Example: tracegraph revoke h1 -w trip --by A2 --reason "booking cancelled"
    """
    start = moment(effective_from)
    wrote(on(workspace, lambda ws: ws.revoke(target, author=by, reason=reason, effective_from=start)), as_json)


@app.command(rich_help_panel=ACTS)
def retract(
    target: Annotated[str, typer.Argument(help="An item's or a receipt's id.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say that an item or a receipt was recorded by mistake; its predecessor stands again.

    Example: tracegraph retract h1 -w trip --by A2
    """
    wrote(on(workspace, lambda ws: ws.retract(target, author=by)), as_json)


@app.command(rich_help_panel=ACTS)
def withdraw(
    target: Annotated[str, typer.Argument(help="A grant's, denial's, revocation's or verdict's id.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Take back a grant, a denial, a revocation or a verdict.

    Example: tracegraph withdraw grant-1 -w trip
    """
    wrote(on(workspace, lambda ws: ws.withdraw(target, author=by)), as_json)


@app.command(rich_help_panel=ACTS)
def verdict(
    later: Annotated[str, typer.Argument(help="The later item's id.")],
    earlier: Annotated[str, typer.Argument(help="The earlier item's id.")],
    says: Annotated[str, typer.Argument(help="invalidates, compatible, uncertain, restores or proposed.")],
    workspace: Name = "",
    task: Annotated[str | None, typer.Option(help="For which task; by default every task.")] = None,
    confidence: Annotated[float | None, typer.Option(help="0 to 1; too little makes it uncertain.")] = None,
    quote: Annotated[str | None, typer.Option(help="Words of the later item or its receipts.")] = None,
    rationale: Annotated[str | None, typer.Option(help="One line of why.")] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say whether an earlier item may still be acted on, given a later one.

    Example: tracegraph verdict h1 p0 invalidates -w trip --task plan --confidence 0.9 --quote Riverside
    """
    from tracegraph.model import Verdict

    judged = Verdict(
        later=later,
        earlier=earlier,
        says=says,  # type: ignore[arg-type]
        task=task,
        confidence=confidence,
        quote=quote,
        rationale=rationale,
    )
    fields = judged.model_dump(include={"later", "earlier", "says", "task", "confidence", "quote", "rationale"})
    wrote(on(workspace, lambda ws: ws.verdict(author=by, **fields)), as_json)


def _grant_options(deny: bool) -> Callable[..., None]:
    def command(
        role: Role,
        workspace: Name = "",
        principal: Annotated[str | None, typer.Option("--principal", "-p", help="Who is to hold the role.")] = None,
        read: Annotated[list[str] | None, typer.Option(help="A scope to read.")] = None,
        write: Annotated[list[str] | None, typer.Option(help="A scope to write.")] = None,
        valid_from: Annotated[str | None, typer.Option(help="By default now.")] = None,
        valid_to: Annotated[str | None, typer.Option(help="By default an open end.")] = None,
        by: By = None,
        as_json: Json = False,
    ) -> None:
        start, end = moment(valid_from), moment(valid_to)
        if deny and principal is not None:
            usage("A denial concerns a role's scopes, not a principal.")

        async def work(ws: Workspace) -> Committed:
            scopes: dict[str, Any] = {"read": read or (), "write": write or ()}
            if deny:
                return await ws.deny(role=role, valid_from=start, valid_to=end, author=by, **scopes)
            return await ws.grant(role=role, principal=principal, valid_from=start, valid_to=end, author=by, **scopes)

        wrote(on(workspace, work), as_json)

    return command


app.command(
    "grant",
    rich_help_panel=ACTS,
    help="Let a principal hold a role, or a role read and write scopes.\n\n"
    "Example: tracegraph grant -w trip --role booking --read trip --write trip --principal A2",
)(_grant_options(deny=False))
app.command(
    "deny",
    rich_help_panel=ACTS,
    help="Forbid a role to read or write scopes; beats any grant.\n\n"
    "Example: tracegraph deny -w trip --role booking --read payroll",
)(_grant_options(deny=True))


@app.command(rich_help_panel=ACTS)
def policy(workspace: Name = "", set_: Set = None, by: By = None, as_json: Json = False) -> None:
    """Show the policy in force, or set its next revision with --set.

    Example: tracegraph policy -w trip --set max_items=8 --set fill=none
    """
    from tracegraph.model import Policy

    changes = settings(set_)
    if changes:
        Policy().changed(changes)
        wrote(on(workspace, lambda ws: ws.set_policy(author=by, **changes)), as_json)
        return
    found = on(workspace, lambda ws: ws.policy())
    show(found, as_json, [f"{name}: {value}" for name, value in plain(found).items()])


@app.command(rich_help_panel=ACTS)
def erase(
    target: Annotated[str, typer.Argument(help="The item's id.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept with the tombstone.")],
    workspace: Name = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Remove an item's words, and all that is derived from it, for good.

    Example: tracegraph erase c1 -w trip --reason "subject's request"
    """
    wrote(on(workspace, lambda ws: ws.erase(target, reason=reason, author=by)), as_json)
