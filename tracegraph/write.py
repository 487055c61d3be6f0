"""One batch: checked whole, then written whole, as one transaction and one epoch (DESIGN §5).

Takes acts, returns `Committed`. The order of faults is the page's: shape, limits, intervals and repeated ids over the
whole batch; then record by record unknown ids, wrong kind or own identity, permission, and what the state forbids.
Never decides what an agent may act on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NoReturn

from tracegraph.errors import Code, TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.model import (
    LAST,
    OPEN,
    Act,
    Advance,
    Committed,
    Depart,
    Erase,
    Grant,
    Item,
    Limits,
    Obligation,
    Policy,
    Receipt,
    ReceiptRef,
    Remember,
    Retract,
    Revoke,
    SetPolicy,
    Spent,
    Verdict,
    Withdraw,
    digest,
    folded,
    instant,
    iso,
    micros,
    new_id,
    sha256,
)

EDGE_OF = {
    "proposed": "PROPOSED",
    "invalidates": "INVALIDATES",
    "compatible": "CLEARED",
    "uncertain": "UNVERIFIED",
    "restores": "RESTORES",
}
Judge = Callable[..., Awaitable[Any]]


@dataclass
class Moment:
    """Where a batch is written: the workspace as its lock found it."""

    workspace: str
    owner: str
    epoch: int
    """The epoch being written."""
    now: int
    previous: str
    policy: Policy
    revision: int


@dataclass
class Rows:
    """What a checked batch writes, by query."""

    items: list[dict[str, Any]] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    bindings: list[dict[str, Any]] = field(default_factory=list)
    premises: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    supports: list[dict[str, Any]] = field(default_factory=list)
    replaced: list[dict[str, Any]] = field(default_factory=list)
    requires: list[dict[str, Any]] = field(default_factory=list)
    frontiers: list[dict[str, Any]] = field(default_factory=list)
    revocations: list[dict[str, Any]] = field(default_factory=list)
    retracted_items: list[str] = field(default_factory=list)
    retracted_receipts: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    held: list[dict[str, Any]] = field(default_factory=list)
    scoped: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    experiences: list[dict[str, Any]] = field(default_factory=list)
    policies: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    erasures: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[str, str]] = field(default_factory=list)
    """The digest of every record, which the epoch's digest covers, and its subject: the act and whom it concerns."""
    ids: list[str] = field(default_factory=list)


def fail(code: Code, message: str) -> NoReturn:
    raise TracegraphError(message, code=code)


async def commit(
    graph: Graph,
    workspace: str,
    acts: Sequence[Act],
    *,
    author: str | None,
    now: int,
    batch_id: str | None = None,
    authors: Sequence[str | None] | None = None,
) -> Committed:
    """Write one batch. `author` None is the owner. Raises what DESIGN §5 lists; then nothing is written.

    `authors`, one an item, is for a batch of items by several (None is `author`): each needs its own author's
    permission and names it; the epoch names `author`.
    """
    if not acts:
        fail("invalid_record", "The batch is empty.")
    if len(acts) > Limits.batch:
        fail("limit_exceeded", f"The batch holds {len(acts)} records; at most {Limits.batch} are taken.")
    if batch_id is not None and not 1 <= len(batch_id) <= Limits.id:
        fail("limit_exceeded", f"A batch_id has 1 to {Limits.id} characters.")
    own = batch_id or new_id("batch")
    asked: dict[str, Any] = {
        "acts": [[type(act).__name__, act.model_dump(mode="json", exclude_unset=True)] for act in acts]
    }
    if authors is not None:
        if len(authors) != len(acts) or not all(isinstance(act, Item) for act in acts):
            fail("invalid_record", "Authors of their own are for items, one each.")
        asked["authors"] = list(authors)
    request = digest(asked)

    async def work(tx: Tx) -> Committed:
        locked = await lock(tx, workspace, own)
        done = locked["done"]
        by = author if author is not None else str(locked["owner"])
        if done is not None:
            if done["request"] != request or done["author"] != by:
                fail("conflict", f"The batch_id {own!r} was used at epoch {done['number']} for another batch.")
            return _committed(workspace, done, repeated=True)
        moment = Moment(
            workspace=workspace,
            owner=locked["owner"],
            epoch=locked["epoch"] + 1,
            now=max(now, locked["recorded_at"] or locked["created_at"]),
            previous=locked["previous"],
            policy=stored_policy(locked["policy"]),
            revision=locked["policy"]["revision"],
        )
        each = [by if one is None else one for one in authors or [None] * len(acts)]
        rows = await Check(tx, moment, each, acts).rows()
        await write_rows(tx, moment, by, rows)
        records = sorted(rows.records)
        epoch = {
            "number": moment.epoch,
            "batch_id": own,
            "author": by,
            "recorded_at": moment.now,
            "previous": moment.previous,
            "records": [found for found, _ in records],
        }
        epoch |= {
            "digest": epoch_digest(workspace, epoch),
            "subjects": [subject for _, subject in records],
            "request": request,
            "ids": rows.ids,
        }
        await tx.run("write/epoch", workspace=workspace, epoch=epoch)
        return _committed(workspace, epoch)

    return await graph.write(work)


async def lock(tx: Tx, workspace: str, batch_id: str | None = None) -> dict[str, Any]:
    """Take the workspace's write lock; `unknown_item` when there is no such workspace."""
    locked = await tx.row("write/lock", workspace=workspace, batch_id=batch_id)
    if locked is None:
        fail("unknown_item", f"There is no workspace {workspace!r}.")
    return locked


def stored_policy(properties: dict[str, Any]) -> Policy:
    """The policy in a Policy node's properties."""
    return Policy(**{name: properties[name] for name in Policy.model_fields if name in properties})


def record_digest(act: str, row: Mapping[str, Any]) -> str:
    """The digest of one record: its act and all its fields that are set."""
    return digest({"act": act, **{name: value for name, value in row.items() if value is not None}})


def workspace_digest(workspace: str, owner: str, policy: Mapping[str, Any], recorded_at: int) -> str:
    """What the chain begins with: `previous` of the first epoch. `policy` is the first revision."""
    row = {"id": workspace, "owner": owner, "recorded_at": iso(recorded_at)}
    return record_digest("create_workspace", row | {"policy": {k: v for k, v in policy.items() if v is not None}})


def epoch_digest(workspace: str, epoch: dict[str, Any]) -> str:
    """The chain's digest of one epoch: its batch, and the digest before it."""
    return digest(
        {
            "workspace": workspace,
            "number": epoch["number"],
            "batch_id": epoch["batch_id"],
            "author": epoch["author"],
            "recorded_at": iso(epoch["recorded_at"]),
            "records": epoch["records"],
            "previous": epoch["previous"],
        }
    )


def _committed(workspace: str, epoch: dict[str, Any], *, repeated: bool = False) -> Committed:
    recorded_at = instant(epoch["recorded_at"])
    assert recorded_at is not None
    return Committed(
        workspace=workspace,
        epoch=epoch["number"],
        batch_id=epoch["batch_id"],
        author=epoch["author"],
        recorded_at=recorded_at,
        digest=epoch["digest"],
        ids=tuple(epoch["ids"]),
        repeated=repeated,
    )


# --- checking ---------------------------------------------------------------------------------------------


class Check:
    """Checks one batch against the state that its lock holds still, and lays out what it writes."""

    def __init__(self, tx: Tx, moment: Moment, authors: Sequence[str], acts: Sequence[Act]) -> None:
        self.tx = tx
        self.moment = moment
        self.authors = authors
        self.author = authors[0]
        """Whose act is being checked."""
        self.acts = acts
        self.out = Rows()
        self.items: dict[str, dict[str, Any]] = {}
        self.receipts: dict[str, dict[str, Any]] = {}
        self.writable: dict[str, set[str]] = {}
        """Each known author's scopes."""

    async def rows(self) -> Rows:
        new_items, new_receipts, new_experiences = _new_ids(self.acts)
        await self._resolve(new_items, new_receipts, new_experiences)
        for act, author in zip(self.acts, self.authors, strict=True):
            self.author = author
            match act:
                case Item():
                    self._item(act)
                case Obligation():
                    self._obligation(act)
                case Advance():
                    await self._advance(act)
                case Revoke():
                    self._revoke(act)
                case Retract():
                    self._retract(act)
                case Withdraw():
                    self._withdraw(act)
                case Grant():
                    self._grant(act)
                case Verdict():
                    await self._verdict(act)
                case Remember():
                    self._remember(act)
                case SetPolicy():
                    self._policy(act)
                case Erase():
                    await self._erase(act)
                case Depart():
                    await self._depart(act)
        return self.out

    async def _resolve(self, items: list[str], receipts: list[str], experiences: list[str]) -> None:
        for ids, what in ((items, "item"), (receipts, "receipt"), (experiences, "experience")):
            if len(set(ids)) < len(ids):
                twice = next(id for id in ids if ids.count(id) > 1)
                fail("conflict", f"The batch gives the {what} id {twice!r} twice.")
        named_items, named_receipts = _references(self.acts)
        found = await self.tx.row(
            "write/resolve",
            workspace=self.moment.workspace,
            now=self.moment.now,
            batch={
                "authors": sorted(set(self.authors)),
                "items": sorted({*items, *named_items}),
                "receipts": sorted({*receipts, *named_receipts}),
                "experiences": experiences,
                "withdrawals": [act.target for act in self.acts if isinstance(act, Withdraw)],
                "quoted": sorted(
                    {act.later for act in self.acts if isinstance(act, Verdict) and act.quote is not None}
                ),
            },
        )
        assert found is not None
        self.writable = {row["id"]: set(row["writable"]) for row in found["authors"]}
        self.roles = {row["id"]: row["roles"] for row in found["authors"]}
        self.items = {row["id"]: row for row in found["items"]}
        self.receipts = {row["id"]: row for row in found["receipts"]}
        self.words = {row["id"]: row["texts"] for row in found["quoted"]}
        self.withdrawals: dict[str, list[dict[str, Any]]] = {}
        for row in found["withdrawals"]:
            self.withdrawals.setdefault(row["id"], []).append(row)
        for ids, there, what in (
            (items, self.items, "item"),
            (receipts, self.receipts, "receipt"),
            (experiences, set(found["experiences"]), "experience"),
        ):
            for id in ids:
                if id in there:
                    fail("conflict", f"The {what} id {id!r} is taken.")
        for act in self.acts:
            for row in _identities(act):
                self.items[row["id"]] = row
            if isinstance(act, Item):
                for receipt in act.receipts:
                    if isinstance(receipt, Receipt):
                        self.receipts[receipt.id] = {
                            "id": receipt.id,
                            "sha256": receipt.sha256 or sha256(receipt.text or ""),
                            "retired_epoch": OPEN,
                            "scopes": [act.scope],
                        }

    def _target(self, id: str) -> dict[str, Any]:
        if id not in self.items:
            fail("unknown_item", f"There is no item {id!r}.")
        return self.items[id]

    def _may_write(self, scopes: Iterable[str]) -> None:
        if self.author == self.moment.owner:
            return
        if self.author not in self.writable:
            fail("unknown_principal", f"The author {self.author!r} is not known in this workspace.")
        for scope in scopes:
            if scope not in self.writable[self.author]:
                fail("write_not_granted", f"{self.author!r} holds no role that may write the scope {scope!r}.")

    def _owner_only(self, what: str) -> None:
        if self.author != self.moment.owner:
            fail("not_owner", f"Only the owner may {what}; {self.author!r} is not the owner.")

    def _log(self, act: str, row: dict[str, Any]) -> str:
        found = record_digest(act, row)
        subject = next(row[name] for name in ("id", "target", "revision") if name in row)
        self.out.records.append((found, f"{act} {subject}"))
        return found

    # record, open_obligation, advance

    def _item(self, act: Item) -> None:
        start = self.moment.now if act.valid_from is None else micros(act.valid_from)
        end = OPEN if act.valid_to is None else micros(act.valid_to)
        if end <= start:
            fail("empty_interval", f"The item {act.id!r} would end at {iso(end)}, before it begins at {iso(start)}.")
        replaced = [self._target(id) for id in act.supersedes]
        own = self.items[act.id]
        for id in (*act.depends_on, *act.derived_from):
            self._target(id)
        for receipt in act.receipts:
            if receipt.id not in self.receipts:
                fail("unknown_item", f"There is no receipt {receipt.id!r}.")
        for support in act.claims:
            if support.receipt is not None and support.receipt not in self.receipts:
                fail("unknown_item", f"There is no receipt {support.receipt!r}.")
        if act.id in act.supersedes:
            fail("invalid_record", f"The item {act.id!r} names itself in supersedes.")
        for id in (*act.depends_on, *act.derived_from):
            if _identity(self.items[id]) == _identity(own):
                fail(
                    "invalid_record",
                    f"The item {act.id!r} rests on {id!r}, a version of its own identity; name what it rests on.",
                )
        self._may_write([act.scope, *(row["scope"] for row in replaced)])
        bindings = [
            {
                "item": act.id,
                "receipt": receipt.id,
                "sha256": (isinstance(receipt, ReceiptRef) and receipt.sha256) or self.receipts[receipt.id]["sha256"],
            }
            for receipt in act.receipts
        ]
        for receipt in act.receipts:
            if isinstance(receipt, Receipt):
                self._receipt(receipt)
        self.out.bindings += bindings
        self.out.premises += [{"item": act.id, "target": id} for id in act.depends_on]
        self.out.sources += [{"item": act.id, "target": id} for id in act.derived_from]
        self.out.replaced += [{"item": act.id, "target": id} for id in act.supersedes]
        supports = sorted({(one.dependency, one.receipt or "") for one in act.claims})
        self.out.supports += [
            {"item": act.id, "dependency": dependency, "receipt": receipt or None} for dependency, receipt in supports
        ]
        self._version(
            act.id,
            key=act.key or act.id,
            kind=act.kind,
            scope=act.scope,
            content=act.content,
            task=act.task,
            purposes=act.purposes,
            role=act.role,
            start=start,
            end=end,
            links={
                "receipts": sorted([row["receipt"], row["sha256"]] for row in bindings),
                "depends_on": sorted(act.depends_on),
                "derived_from": sorted(act.derived_from),
                "supersedes": sorted(act.supersedes),
                "supports": [list(pair) for pair in supports],
            },
        )

    def _receipt(self, receipt: Receipt) -> None:
        observed = None if receipt.observed_at is None else micros(receipt.observed_at)
        row = {
            "id": receipt.id,
            "uri": receipt.uri,
            "sha256": receipt.sha256 or sha256(receipt.text or ""),
            "issuer": receipt.issuer,
            "origin": receipt.origin,
            "observed_at": observed,
            "text_digest": None if receipt.text is None else sha256(receipt.text),
        }
        row["digest"] = self._log("receipt", {**row, "observed_at": iso(observed)})
        self.out.receipts.append({**row, "text": receipt.text})
        self.out.ids.append(receipt.id)

    def _version(
        self,
        id: str,
        *,
        key: str,
        kind: str,
        scope: str,
        content: str,
        task: str | None,
        purposes: Sequence[str],
        role: str | None,
        start: int,
        end: int,
        links: dict[str, Any],
    ) -> None:
        row = {
            "id": id,
            "key": key,
            "kind": kind,
            "scope": scope,
            "length": len(content),
            "content_digest": sha256(content),
            "task": task,
            "purposes": sorted(purposes),
            "role": role,
            "author": self.author,
            "place": len(self.out.items),
        }
        found = self._log("item", {**row, "valid_from": iso(start), "valid_to": iso(end), **links})
        self.out.items.append({**row, "content": content, "valid_from": start, "valid_to": end, "digest": found})
        self.out.ids.append(id)

    def _obligation(self, act: Obligation) -> None:
        self._may_write([act.scope])
        needs: dict[str, bool] = {}
        for name in act.requires:
            critical = name.endswith("!") and len(name) > 1
            plain = name[:-1] if critical else name
            needs[plain] = needs.get(plain, False) or critical
        self.out.requires += [
            {"item": act.id, "dependency": name, "critical": critical} for name, critical in needs.items()
        ]
        shared: dict[str, Any] = {
            "key": act.key or act.id,
            "scope": act.scope,
            "task": act.task,
            "purposes": act.purposes,
            "role": act.role,
            "start": self.moment.now,
            "end": OPEN,
        }
        self._version(
            act.id,
            kind="obligation",
            content=act.content,
            links={"requires": sorted([name, critical] for name, critical in needs.items())},
            **shared,
        )
        if act.frontier is not None:
            self._frontier(act.frontier.id, act.frontier.content, act.id, shared)

    def _frontier(self, id: str, content: str, obligation: str, shared: dict[str, Any]) -> None:
        self._version(id, kind="frontier", content=content, links={"obligation": obligation}, **shared)
        self.out.frontiers.append({"item": id, "obligation": obligation})

    async def _advance(self, act: Advance) -> None:
        row = self._target(act.obligation)
        if row["kind"] != "obligation":
            fail("invalid_record", f"{act.obligation!r} is a {row['kind']}, not an obligation.")
        self._may_write([row["scope"]])
        from tracegraph.admission.gates import stands

        if not await stands(
            self.tx,
            self.moment.workspace,
            act.obligation,
            valid_at=self.moment.now,
            epoch=self.moment.epoch - 1,
            task=row["task"],
        ):
            fail("conflict", f"The obligation {act.obligation!r} doesn't stand now.")
        self._frontier(
            act.id,
            act.content,
            act.obligation,
            {
                "key": row["key"],
                "scope": row["scope"],
                "task": row["task"],
                "purposes": row["purposes"],
                "role": row["role"],
                "start": self.moment.now,
                "end": OPEN,
            },
        )

    # revoke, resolve, retract, withdraw

    def _revocable(self, id: str, what: str) -> tuple[dict[str, Any], list[str], bool]:
        if id in self.items:
            return self.items[id], [self.items[id]["scope"]], True
        if id in self.receipts:
            return self.receipts[id], self.receipts[id]["scopes"], False
        fail("unknown_item", f"There is no item or receipt {id!r} to {what}.")

    def _revoke(self, act: Revoke) -> None:
        row, scopes, is_item = self._revocable(act.target, "revoke")
        if act.code == "resolved" and not (is_item and row["kind"] == "obligation"):
            fail("invalid_record", f"{act.target!r} is not an obligation; only an obligation is resolved.")
        self._may_write(scopes)
        start = self.moment.now if act.effective_from is None else micros(act.effective_from)
        out = {"id": act.id, "target": act.target, "code": act.code, "reason": act.reason}
        found = self._log("revoke", {**out, "effective_from": iso(start), "author": self.author})
        self.out.revocations.append({**out, "effective_from": start, "digest": found})
        self.out.ids.append(act.id)

    def _retract(self, act: Retract) -> None:
        row, scopes, is_item = self._revocable(act.target, "retract")
        self._may_write(scopes)
        if row["retired_epoch"] != OPEN:
            fail("conflict", f"{act.target!r} was retracted at epoch {row['retired_epoch']}.")
        row["retired_epoch"] = self.moment.epoch
        self._log("retract", {"target": act.target, "author": self.author})
        (self.out.retracted_items if is_item else self.out.retracted_receipts).append(act.target)

    def _withdraw(self, act: Withdraw) -> None:
        found = self.withdrawals.get(act.target)
        if not found:
            fail("unknown_item", f"There is no grant, denial, revocation or verdict {act.target!r}.")
        if found[0]["what"] == "grant":
            self._owner_only("withdraw a grant or a denial")
        else:
            self._may_write([row["scope"] for row in found])
        if any(row["retired"] != OPEN for row in found):
            fail("conflict", f"{act.target!r} was withdrawn before.")
        for row in found:
            row["retired"] = self.moment.epoch
        self._log("withdraw", {"target": act.target, "author": self.author})
        self.out.withdrawn.append(act.target)

    # grant, deny, policy, erase: the owner's

    def _grant(self, act: Grant) -> None:
        self._owner_only("deny" if act.deny else "grant")
        if act.principal is None and not act.read and not act.write:
            fail("invalid_record", f"The {'denial' if act.deny else 'grant'} names nothing to hold, read or write.")
        start = self.moment.now if act.valid_from is None else micros(act.valid_from)
        end = OPEN if act.valid_to is None else micros(act.valid_to)
        if end <= start:
            fail("empty_interval", f"The grant would end at {iso(end)}, before it begins at {iso(start)}.")
        found = self._log(
            "deny" if act.deny else "grant",
            {
                "id": act.id,
                "role": act.role,
                "principal": act.principal,
                "read": sorted(act.read),
                "write": sorted(act.write),
                "valid_from": iso(start),
                "valid_to": iso(end),
            },
        )
        edge = {"id": act.id, "valid_from": start, "valid_to": end, "digest": found}
        if act.principal is not None:
            self.out.held.append({"principal": act.principal, "role": act.role, "edge": edge})
        verb = "DENIED" if act.deny else "MAY"
        for scopes, access in ((act.read, "READ"), (act.write, "WRITE")):
            self.out.scoped += [
                {"role": act.role, "scope": scope, "type": f"{verb}_{access}", "edge": edge} for scope in scopes
            ]
        self.out.ids.append(act.id)

    def _policy(self, act: SetPolicy) -> None:
        self._owner_only("set the policy")
        self.moment.policy = self.moment.policy.changed(act.changes)
        self.moment.revision += 1
        row = {**self.moment.policy.model_dump(mode="json"), "revision": self.moment.revision}
        self.out.policies.append({**row, "digest": self._log("policy", row)})

    async def _erase(self, act: Erase) -> None:
        row = self._target(act.target)
        self._owner_only("erase")
        if row.get("erased"):
            fail("erased", f"The item {act.target!r} was erased before.")
        gone = {act.target}
        level = [act.target]
        while level:
            stored = await self.tx.row("write/derived", workspace=self.moment.workspace, ids=level)
            found = set(stored["ids"] if stored else ())
            found |= {one["item"] for one in self.out.sources if one["target"] in level}
            level = sorted(found - gone)
            gone |= found
        for id in gone & self.items.keys():
            self.items[id]["erased"] = True
        erasure = {"target": act.target, "reason": act.reason, "erased": sorted(gone)}
        self.out.erasures.append({**erasure, "digest": self._log("erase", erasure)})

    # verdicts, experiences, departures

    async def _verdict(self, act: Verdict) -> None:
        later, earlier = self._target(act.later), self._target(act.earlier)
        self._may_write([earlier["scope"]])
        for row in (later, earlier):
            if row.get("erased"):
                fail("erased", f"The item {row['id']!r} was erased; nothing can be judged about it.")
        says = act.says
        cause = act.cause
        if says not in ("proposed", "uncertain"):
            if act.confidence is not None and act.confidence < self.moment.policy.confidence:
                says, cause = "uncertain", "confidence"
            if act.quote is not None and not await self._quoted(act.later, act.quote):
                says, cause = "uncertain", "quote"
        edge: dict[str, Any] = {
            "id": act.id,
            "task": act.task,
            "confidence": act.confidence,
            "quote": act.quote,
            "rationale": act.rationale,
            "model": act.model,
            "prompt": act.prompt,
            "tokens": act.tokens,
            "cause": cause,
            **(act.usage.model_dump() if act.usage else dict.fromkeys(Spent.model_fields)),
        }
        start = None if act.effective_from is None else micros(act.effective_from)
        words = {"quote": act.quote, "rationale": act.rationale}
        edge |= {f"{name}_digest": None if value is None else sha256(value) for name, value in words.items()}
        edge["digest"] = self._log(
            "verdict",
            {
                **{name: value for name, value in edge.items() if name not in words},
                "later": act.later,
                "earlier": act.earlier,
                "says": says,
                "effective_from": iso(start),
            },
        )
        edge["effective_given"] = start
        self.out.verdicts.append(
            {"later": act.later, "earlier": act.earlier, "type": EDGE_OF[says], "effective_from": start, "edge": edge}
        )
        self.out.ids.append(act.id)

    async def _quoted(self, later: str, quote: str) -> bool:
        """Whether the quote stands in the later item's words or its receipts' text (DESIGN §8).

        Words that the author may not read never count: a verdict would tell whether a guess at them is right.
        """
        wanted = folded(quote)
        texts = self.words.get(later, [])
        readable = await self._readable({id for one in texts for id in one["items"]})
        return bool(wanted) and any(
            wanted in folded(one["text"]) for one in texts if one["text"] and readable.issuperset(one["items"])
        )

    async def _readable(self, ids: set[str]) -> set[str]:
        """Which of these items the author may read through some role it holds; the owner reads everything."""
        from tracegraph.admission import gates

        if self.author == self.moment.owner:
            return ids
        now, latest = self.moment.now, self.moment.epoch - 1
        found: set[str] = set()
        for role in self.roles.get(self.author, ()):
            clocks = gates.Clocks(valid_at=now, epoch=latest, now=now, latest=latest)
            judged = await gates.judge(self.tx, self.moment.workspace, ids, gates.Return(role=role, task=None), clocks)
            found |= {id for id in ids if judged[id].readable()}
        return found

    def _remember(self, act: Remember) -> None:
        for id in act.grounded_in:
            self._target(id)
        if self.author not in self.writable and self.author != self.moment.owner:
            fail("unknown_principal", f"The principal {act.principal!r} is not known in this workspace.")
        row = {
            "id": act.id,
            "owner": act.principal,
            "content_digest": sha256(act.content),
            "grounded_in": sorted(act.grounded_in),
        }
        found = self._log("remember", row)
        self.out.experiences.append({**row, "content": act.content, "digest": found})
        self.out.ids.append(act.id)

    async def _depart(self, act: Depart) -> None:
        from tracegraph.departure import checkpoint

        row = await checkpoint(self.tx, self.moment, act)
        days = timedelta(days=self.moment.policy.ticket_days) // timedelta(microseconds=1)
        row["expires_at"] = min(self.moment.now + days, LAST)
        row["digest"] = self._log(
            "depart", {**row, "valid_at": iso(row["valid_at"]), "expires_at": iso(row["expires_at"])}
        )
        self.out.checkpoints.append(row)
        self.out.ids.append(act.id)


def _identity(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["scope"], row["kind"], row["key"]


def _identities(act: Act) -> list[dict[str, Any]]:
    """The items an act will record, as later records of the same batch may refer to them."""
    if isinstance(act, Item):
        return [_future(act.id, act.key or act.id, act.kind, act.scope)]
    if isinstance(act, Obligation):
        key = act.key or act.id
        rows = [_future(act.id, key, "obligation", act.scope)]
        return rows if act.frontier is None else [*rows, _future(act.frontier.id, key, "frontier", act.scope)]
    return []


def _future(id: str, key: str, kind: str, scope: str) -> dict[str, Any]:
    return {"id": id, "key": key, "kind": kind, "scope": scope, "retired_epoch": OPEN}


def _new_ids(acts: Sequence[Act]) -> tuple[list[str], list[str], list[str]]:
    items: list[str] = []
    receipts: list[str] = []
    experiences: list[str] = []
    for act in acts:
        match act:
            case Item():
                items.append(act.id)
                receipts += [receipt.id for receipt in act.receipts if isinstance(receipt, Receipt)]
            case Obligation():
                items.append(act.id)
                if act.frontier is not None:
                    items.append(act.frontier.id)
            case Advance():
                items.append(act.id)
            case Remember():
                experiences.append(act.id)
            case _:
                pass
    return items, receipts, experiences


def _references(acts: Sequence[Act]) -> tuple[set[str], set[str]]:
    items: set[str] = set()
    receipts: set[str] = set()
    for act in acts:
        match act:
            case Item():
                items.update(act.depends_on, act.derived_from, act.supersedes)
                receipts.update(receipt.id for receipt in act.receipts)
                receipts.update(one.receipt for one in act.claims if one.receipt is not None)
            case Advance():
                items.add(act.obligation)
            case Revoke() | Retract():
                items.add(act.target)
                receipts.add(act.target)
            case Erase():
                items.add(act.target)
            case Verdict():
                items.update((act.later, act.earlier))
            case Remember():
                items.update(act.grounded_in)
            case _:
                pass
    return items, receipts


# --- writing ----------------------------------------------------------------------------------------------


async def write_rows(tx: Tx, moment: Moment, author: str, rows: Rows) -> None:
    """Write what a checked batch laid out."""
    at: dict[str, Any] = {"workspace": moment.workspace, "epoch": moment.epoch}
    recorded: dict[str, Any] = {**at, "recorded_at": moment.now}
    signed: dict[str, Any] = {**at, "author": author}
    if rows.items:
        await tx.run(
            "write/record",
            **recorded,
            batch={
                "items": rows.items,
                "receipts": rows.receipts,
                "bindings": rows.bindings,
                "premises": rows.premises,
                "sources": rows.sources,
                "supports": rows.supports,
                "replaced": rows.replaced,
                "requires": rows.requires,
                "frontiers": rows.frontiers,
            },
        )
    if rows.revocations:
        await tx.run("write/revoke", **recorded, author=author, revocations=rows.revocations)
    if rows.retracted_items or rows.retracted_receipts:
        await tx.run("write/retract", **signed, items=rows.retracted_items, receipts=rows.retracted_receipts)
    if rows.withdrawn:
        await tx.run("write/withdraw", **signed, ids=rows.withdrawn)
    if rows.held or rows.scoped:
        await tx.run("write/grant", **signed, held=rows.held, scoped=rows.scoped)
    if rows.verdicts:
        await tx.run("write/verdict", **recorded, author=author, verdicts=rows.verdicts)
    if rows.experiences:
        await tx.run("write/remember", **recorded, experiences=rows.experiences)
    if rows.policies:
        await tx.run("write/policy", **signed, policies=rows.policies)
    if rows.checkpoints:
        await tx.run("write/checkpoint", **recorded, checkpoints=rows.checkpoints)
    for erasure in rows.erasures:
        await tx.run("write/erase", **signed, erasure=erasure)
