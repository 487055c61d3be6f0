"""What each act needs and lays out: a batch is checked whole before anything of it is written (DESIGN §5).

Takes acts, returns `Rows` for `write.py`. The order of faults is the page's: shape, limits, intervals and repeated ids
over the whole batch; then record by record unknown ids, wrong kind or own identity, permission, and what the state
forbids. Never writes, never decides what an agent may act on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NoReturn

from tracegraph.errors import Code, TracegraphError
from tracegraph.graph import Tx
from tracegraph.model import (
    LAST,
    OPEN,
    Act,
    Advance,
    Depart,
    Erase,
    Grant,
    Item,
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
    iso,
    micros,
    sha256,
)

EDGE_OF = {
    "proposed": "PROPOSED",
    "invalidates": "INVALIDATES",
    "compatible": "CLEARED",
    "uncertain": "UNVERIFIED",
    "restores": "RESTORES",
}


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
    uncertain: dict[str, str] = field(default_factory=dict)
    """Verdicts that are taken as uncertain against what they say, and why."""


def fail(code: Code, message: str) -> NoReturn:
    raise TracegraphError(message, code=code)


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


@dataclass
class References:
    """The ids that a batch gives to what it records, and those it refers to."""

    items: list[str]
    receipts: list[str]
    experiences: list[str]
    named_items: set[str]
    named_receipts: set[str]

    def given(self) -> set[str]:
        return {*self.items, *self.receipts}

    def every(self) -> set[str]:
        return self.given() | self.named_items | self.named_receipts


async def resolve(
    tx: Tx, moment: Moment, authors: Collection[str], acts: Sequence[Act], ids: Sequence[References]
) -> dict[str, Any]:
    """What these acts refer to, as the lock holds it still: the rows of `write/resolve`."""
    found = await tx.row(
        "write/resolve",
        workspace=moment.workspace,
        now=moment.now,
        batch={
            "authors": sorted(set(authors)),
            "items": sorted({id for one in ids for id in (*one.items, *one.named_items, *one.receipts)}),
            "receipts": sorted({id for one in ids for id in (*one.receipts, *one.named_receipts, *one.items)}),
            "experiences": [id for one in ids for id in one.experiences],
            "withdrawals": [act.target for act in acts if isinstance(act, Withdraw)],
            "quoted": sorted({act.later for act in acts if isinstance(act, Verdict) and act.quote is not None}),
        },
    )
    assert found is not None
    return found


class Check:
    """Checks one batch against what `resolve` found of it, and lays out what it writes."""

    def __init__(
        self,
        tx: Tx,
        moment: Moment,
        authors: Sequence[str],
        acts: Sequence[Act],
        ids: References,
        found: Mapping[str, Any],
    ) -> None:
        self.tx = tx
        self.moment = moment
        self.authors = authors
        self.author = authors[0]
        """Whose act is being checked."""
        self.acts = acts
        self.ids = ids
        self.out = Rows()
        self.writable: dict[str, set[str]] = {row["id"]: set(row["writable"]) for row in found["authors"]}
        """Each known author's scopes."""
        self.roles: dict[str, list[str]] = {row["id"]: row["roles"] for row in found["authors"]}
        self.items: dict[str, dict[str, Any]] = {row["id"]: row for row in found["items"]}
        self.receipts: dict[str, dict[str, Any]] = {row["id"]: row for row in found["receipts"]}
        self.experiences = set(found["experiences"])
        self.words: dict[str, list[dict[str, Any]]] = {row["id"]: row["texts"] for row in found["quoted"]}
        self.withdrawals: dict[str, list[dict[str, Any]]] = {}
        for row in found["withdrawals"]:
            self.withdrawals.setdefault(row["id"], []).append(row)

    async def rows(self) -> Rows:
        self._shapes()
        self._ids()
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

    def _shapes(self) -> None:
        """Refuse what names nothing, or would end before it begins: the beginning may be this moment."""
        for act in self.acts:
            if isinstance(act, Grant) and act.principal is None and not act.read and not act.write:
                fail("invalid_record", f"The {'denial' if act.deny else 'grant'} names nothing to hold, read or write.")
            if isinstance(act, (Item, Grant)):
                start, end = self._interval(act)
                if end <= start:
                    what = f"The item {act.id!r}" if isinstance(act, Item) else "The grant"
                    fail("empty_interval", f"{what} would end at {iso(end)}, before it begins at {iso(start)}.")

    def _interval(self, act: Item | Grant) -> tuple[int, int]:
        """From when to when it is valid (microseconds)."""
        start = self.moment.now if act.valid_from is None else micros(act.valid_from)
        return start, OPEN if act.valid_to is None else micros(act.valid_to)

    def _ids(self) -> None:
        """Refuse ids that are given twice or taken; from here on the batch's own are known.

        Items and receipts share their ids: `revoke` and `retract` name either by its id alone.
        """
        given = [*self.ids.items, *self.ids.receipts]
        for ids in (given, self.ids.experiences):
            if len(set(ids)) < len(ids):
                twice = next(id for id in ids if ids.count(id) > 1)
                fail("conflict", f"The batch gives the id {twice!r} twice.")
        taken: tuple[tuple[Collection[str], Collection[str], str], ...] = (
            (given, self.items, "an item"),
            (given, self.receipts, "a receipt"),
            (self.ids.experiences, self.experiences, "an experience"),
        )
        for new, there, what in taken:
            for id in new:
                if id in there:
                    fail("conflict", f"The id {id!r} is that of {what} already.")
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
        start, end = self._interval(act)
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
        start, end = self._interval(act)
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
        if act.later == act.earlier:
            fail("invalid_record", f"The item {act.later!r} cannot judge itself.")
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
            if says == "uncertain" and cause is not None:
                self.out.uncertain[act.id] = cause
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


def references(acts: Sequence[Act]) -> References:
    """The ids that these acts give and name."""
    items: list[str] = []
    receipts: list[str] = []
    experiences: list[str] = []
    named_items: set[str] = set()
    named_receipts: set[str] = set()
    for act in acts:
        match act:
            case Item():
                items.append(act.id)
                receipts += [receipt.id for receipt in act.receipts if isinstance(receipt, Receipt)]
                named_items.update(act.depends_on, act.derived_from, act.supersedes)
                named_receipts.update(receipt.id for receipt in act.receipts)
                named_receipts.update(one.receipt for one in act.claims if one.receipt is not None)
            case Obligation():
                items.append(act.id)
                if act.frontier is not None:
                    items.append(act.frontier.id)
            case Advance():
                items.append(act.id)
                named_items.add(act.obligation)
            case Remember():
                experiences.append(act.id)
                named_items.update(act.grounded_in)
            case Revoke() | Retract():
                named_items.add(act.target)
                named_receipts.add(act.target)
            case Erase():
                named_items.add(act.target)
            case Verdict():
                named_items.update((act.later, act.earlier))
            case _:
                pass
    return References(items, receipts, experiences, named_items, named_receipts)
