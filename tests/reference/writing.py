"""Writing: every act that raises the epoch save `depart`, and the order of its faults (DESIGN.md §5, §12).

An act checks everything first and then writes everything, so that it is all or nothing. A refused act raises
`Refusal` and leaves the workspace as it was. `by` is the author, None for the workspace's owner.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from .model import (
    OPEN,
    Binding,
    Edge,
    Experience,
    Item,
    Lasting,
    Moment,
    Receipt,
    Refusal,
    Revocation,
    Support,
    Verdict,
    Workspace,
    sha256,
)

MAX_CONTENT = 65_536
MAX_NAME = 256  # ids and keys
MAX_BATCH = 10_000


@dataclass(frozen=True)
class ReceiptUse:
    """A receipt as a record gives it: a new one, or an earlier one with the digest claimed for it."""

    id: str
    new: bool
    text: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Draft:
    """One record of a batch, as given. A frontier's takes the rest from its obligation."""

    id: str
    content: str
    by: str | None = None
    key: str = ""
    kind: str = "fact"
    scope: str = ""
    task: str | None = None
    purposes: tuple[str, ...] = ()
    role: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    supports: tuple[Support, ...] = ()
    depends_on: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    receipts: tuple[ReceiptUse, ...] = ()
    requires: tuple[tuple[str, bool], ...] = ()
    obligation: str | None = None

    @property
    def premises(self) -> tuple[str, ...]:
        return (*self.depends_on, *self.derived_from)


# ---------------------------------------------------------------- record, open_obligation, advance


def record(ws: Workspace, batch: Sequence[Draft]) -> None:
    """One batch, one epoch. `open_obligation` is an obligation and its frontier, `advance` one frontier."""
    check_shape(batch)
    check_limits(batch)
    check_intervals(ws, batch)
    check_repeated_ids(ws, batch)
    drafts = {draft.id: draft for draft in batch}
    for draft in batch:
        check_known(ws, draft, drafts)
        check_kind_and_identity(ws, draft, drafts)
        check_permission(ws, draft, drafts)
        check_state(ws, draft, drafts)
    epoch = ws.next_epoch()
    for place, draft in enumerate(batch):
        write(ws, draft, epoch, place)


def check_shape(batch: Sequence[Draft]) -> None:
    if not batch:
        raise Refusal("invalid_record", "an empty batch")
    for draft in batch:
        if not draft.id or (draft.kind != "frontier" and not (draft.key and draft.scope)):
            raise Refusal("invalid_record", "an empty id, key or scope")
        if draft.kind not in ("fact", "constraint", "obligation", "frontier"):
            raise Refusal("invalid_record", f"no such kind: {draft.kind}")


def check_limits(batch: Sequence[Draft]) -> None:
    if len(batch) > MAX_BATCH:
        raise Refusal("limit_exceeded", "too many records in a batch")
    for draft in batch:
        check_content(draft.content)
        names = [draft.id, draft.key, *(use.id for use in draft.receipts)]
        if any(len(name) > MAX_NAME for name in names):
            raise Refusal("limit_exceeded", "an id or key is too long")


def check_content(content: str) -> None:
    if not 1 <= len(content) <= MAX_CONTENT:
        raise Refusal("limit_exceeded", "content is 1 to 65,536 characters")


def check_intervals(ws: Workspace, batch: Sequence[Draft]) -> None:
    for draft in batch:
        interval(ws, draft.valid_from, draft.valid_to)


def interval(ws: Workspace, valid_from: int | None, valid_to: int | None) -> tuple[int, int]:
    """valid_from defaults to the moment of recording, valid_to to an open end."""
    start = ws.now if valid_from is None else valid_from
    end = OPEN if valid_to is None else valid_to
    if start >= end:
        raise Refusal("empty_interval")
    return start, end


def check_repeated_ids(ws: Workspace, batch: Sequence[Draft]) -> None:
    taken = {*ws.items, *ws.receipts}  # `revoke` and `retract` name an item or a receipt by its id alone
    for draft in batch:
        for id in (draft.id, *(use.id for use in draft.receipts if use.new)):
            if id in taken:
                raise Refusal("conflict", f"{id} is already there")
            taken.add(id)


def check_known(ws: Workspace, draft: Draft, drafts: dict[str, Draft]) -> None:
    """References may point at any record of the same batch, or at what is already there."""
    items = set(ws.items) | set(drafts)
    receipts = set(ws.receipts) | {use.id for other in drafts.values() for use in other.receipts if use.new}
    named = [*draft.premises, *draft.supersedes]
    if draft.obligation is not None:
        named.append(draft.obligation)
    cited = [use.id for use in draft.receipts]
    cited += [support.receipt for support in draft.supports if support.receipt is not None]
    if not set(named) <= items or not set(cited) <= receipts:
        raise Refusal("unknown_item")


def check_kind_and_identity(ws: Workspace, draft: Draft, drafts: dict[str, Draft]) -> None:
    if draft.obligation is not None and look_up(ws, draft.obligation, drafts).kind != "obligation":
        raise Refusal("invalid_record", "a frontier is an obligation's")
    if draft.id in draft.premises or draft.id in draft.supersedes:
        raise Refusal("invalid_record", "an item names itself")
    own = (draft.scope, draft.kind, draft.key)
    for name in draft.premises:
        premise = look_up(ws, name, drafts)
        if (premise.scope, premise.kind, premise.key) == own:
            raise Refusal("invalid_record", "an item rests on its own earlier version")


def check_permission(ws: Workspace, draft: Draft, drafts: dict[str, Draft]) -> None:
    """On the item's scope, a superseded item's, an advanced obligation's."""
    scopes = {look_up(ws, name, drafts).scope for name in draft.supersedes}
    scopes.add(draft.scope if draft.obligation is None else look_up(ws, draft.obligation, drafts).scope)
    need_write(ws, draft.by, scopes)


def check_state(ws: Workspace, draft: Draft, drafts: dict[str, Draft]) -> None:
    """`advance` needs an obligation that stands now for its own task."""
    if draft.obligation is not None and draft.obligation not in drafts:
        need_standing(ws, ws.items[draft.obligation])


def need_write(ws: Workspace, by: str | None, scopes: Iterable[str]) -> None:
    if by is not None and by not in ws.principals:
        raise Refusal("unknown_principal")
    if not all(ws.may_write(by, scope) for scope in scopes):
        raise Refusal("write_not_granted")


def need_standing(ws: Workspace, obligation: Item) -> None:
    if not Moment(ws, ws.now, ws.epoch, obligation.task).stands(obligation):
        raise Refusal("conflict", "the obligation does not stand")


def look_up(ws: Workspace, name: str, drafts: dict[str, Draft]) -> Draft | Item:
    return drafts[name] if name in drafts else ws.items[name]


def write(ws: Workspace, draft: Draft, epoch: int, place: int) -> None:
    if draft.obligation is not None:  # already written, even in the same batch: it comes first there
        owed = ws.items[draft.obligation]
        draft = replace(draft, scope=owed.scope, task=owed.task, role=owed.role, purposes=owed.purposes, key=owed.key)
    for use in draft.receipts:
        if use.new:
            ws.receipts[use.id] = Receipt(epoch, id=use.id, sha256=sha256(use.text), text=use.text)
    valid_from, valid_to = interval(ws, draft.valid_from, draft.valid_to)
    ws.items[draft.id] = Item(
        epoch,
        id=draft.id,
        key=draft.key,
        kind=draft.kind,
        scope=draft.scope,
        content=draft.content,
        content_digest=sha256(draft.content),
        valid_from=valid_from,
        valid_to=valid_to,
        place=place,
        recorded_at=ws.now,
        task=draft.task,
        purposes=draft.purposes,
        role=draft.role,
        supports=draft.supports,
        depends_on=draft.depends_on,
        derived_from=draft.derived_from,
        supersedes=draft.supersedes,
        bindings=tuple(Binding(use.id, sha256(use.text) if use.new else use.sha256) for use in draft.receipts),
        requires=draft.requires,
        obligation=draft.obligation,
    )


# ---------------------------------------------------------------- revoke, resolve, retract, withdraw


def target_of(ws: Workspace, name: str) -> Item | Receipt:
    found = ws.items.get(name) or ws.receipts.get(name)
    if found is None:
        raise Refusal("unknown_item")
    return found


def touched(ws: Workspace, target: Item | Receipt) -> set[str]:
    """An item's scope; for a receipt, the scope of every item bound to it."""
    if isinstance(target, Item):
        return {target.scope}
    return {item.scope for item in ws.items.values() if any(binding.receipt == target.id for binding in item.bindings)}


def revoke(ws: Workspace, name: str, by: str | None, effective_from: int | None) -> Revocation:
    """Ends a statement (or a receipt) from an instant on, and brings nothing back."""
    need_write(ws, by, touched(ws, target_of(ws, name)))
    since = ws.now if effective_from is None else effective_from
    revocation = Revocation(ws.next_epoch(), target=name, code="revoked", effective_from=since)
    ws.revocations.append(revocation)
    return revocation


def resolve(ws: Workspace, name: str, by: str | None) -> Revocation:
    """Closes an obligation: a revocation with code `resolved`."""
    if name not in ws.items:
        raise Refusal("unknown_item")
    obligation = ws.items[name]
    if obligation.kind != "obligation":
        raise Refusal("invalid_record", "only an obligation is resolved")
    need_write(ws, by, {obligation.scope})
    revocation = Revocation(ws.next_epoch(), target=name, code="resolved", effective_from=ws.now)
    ws.revocations.append(revocation)
    return revocation


def retract(ws: Workspace, name: str, by: str | None) -> None:
    """Says it was recorded by mistake: from this epoch on it and its effects count for nothing."""
    target = target_of(ws, name)
    need_write(ws, by, touched(ws, target))
    if target.retired_epoch != OPEN:
        raise Refusal("conflict", "retracted before")
    target.retired_epoch = ws.next_epoch()


def withdraw(ws: Workspace, things: Sequence[Lasting]) -> None:
    """Takes back a grant, denial, revocation or verdict from this epoch on."""
    if any(thing.retired_epoch != OPEN for thing in things):
        raise Refusal("conflict", "withdrawn before")
    epoch = ws.next_epoch()
    for thing in things:
        thing.retired_epoch = epoch


# ---------------------------------------------------------------- grant, deny


def permit(
    ws: Workspace, edges: Sequence[tuple[str, str, str]], valid_from: int | None, valid_to: int | None
) -> list[Edge]:
    """`grant` and `deny`: edges (kind, source, target), of the owner."""
    start, end = interval(ws, valid_from, valid_to)
    if not edges:
        raise Refusal("invalid_record", "nothing granted or denied")
    epoch = ws.next_epoch()
    written = [
        Edge(epoch, kind=kind, source=source, target=target, valid_from=start, valid_to=end)
        for kind, source, target in edges
    ]
    ws.edges.extend(written)
    ws.principals.update(edge.source for edge in written if edge.kind == "HOLDS")
    return written


# ---------------------------------------------------------------- verdict (§8, as a scenario gives it: §13)


def verdict(
    ws: Workspace,
    later: str,
    earlier: str,
    says: str,
    task: str | None,
    confidence: Fraction | None,
    quote: str | None,
    effective_from: int | None,
) -> Verdict:
    """A canned answer. A quote that isn't there or too little confidence makes it `uncertain`."""
    if later not in ws.items or earlier not in ws.items:
        raise Refusal("unknown_item")
    if later == earlier:
        raise Refusal("invalid_record", "a verdict of an item on itself")
    doubtful = confidence is not None and confidence < ws.policy_at(ws.epoch).confidence
    if quote is not None and not quoted(ws, ws.items[later], quote):
        doubtful = True
    if doubtful and says != "proposed":
        says = "uncertain"
    since = ws.items[later].valid_from if effective_from is None else effective_from
    answer = Verdict(ws.next_epoch(), later=later, earlier=earlier, says=says, task=task, effective_from=since)
    ws.verdicts.append(answer)
    return answer


def quoted(ws: Workspace, item: Item, quote: str) -> bool:
    """Whether the quote occurs verbatim in the item's content or its receipts' text."""
    texts = [item.content, *(ws.receipts[binding.receipt].text for binding in item.bindings)]
    return any(fold(quote) in fold(text) for text in texts)


def fold(text: str) -> str:
    """Unicode NFC, and every run of whitespace a single space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


# ---------------------------------------------------------------- remember, erase


def remember(ws: Workspace, name: str, owner: str, content: str, grounded_in: Sequence[str]) -> None:
    """A private experience, grounded in at least one item (§11)."""
    if not grounded_in:
        raise Refusal("invalid_record", "an experience grounded in nothing")
    check_content(content)
    if len(name) > MAX_NAME:
        raise Refusal("limit_exceeded")
    if name in ws.experiences:
        raise Refusal("conflict")
    if not set(grounded_in) <= set(ws.items):
        raise Refusal("unknown_item")
    if owner not in ws.principals:
        raise Refusal("unknown_principal")
    ws.next_epoch()
    ws.experiences[name] = Experience(name, owner, tuple(grounded_in))


def erase(ws: Workspace, name: str) -> None:
    """Its content, all that is derived from it, and the text of receipts no other item is bound to (§12)."""
    if name not in ws.items:
        raise Refusal("unknown_item")
    if ws.items[name].erased:
        raise Refusal("conflict", "erased before")
    ws.next_epoch()
    going = {name}
    while True:
        derived = {item.id for item in ws.items.values() if going & set(item.derived_from)} - going
        if not derived:
            break
        going |= derived
    for item in ws.items.values():
        if item.id in going:
            item.erased = True
            item.content = ""
    for receipt in ws.receipts.values():
        bound = [i for i in ws.items.values() if any(b.receipt == receipt.id for b in i.bindings)]
        if bound and all(item.erased for item in bound):
            receipt.text = ""
