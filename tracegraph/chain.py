"""The commit log, walked and compared with the graph (DESIGN §5 `verify`). Never writes.

Every epoch's digest is recomputed over the one before it, every record's from its nodes and edges; what the
log names must be there, and nothing else. Returns and views are no part of it. Reads pages of bounded size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tracegraph.acts import EDGE_OF, epoch_digest, record_digest, workspace_digest
from tracegraph.graph import Graph, Tx
from tracegraph.model import OPEN, Model, digest, iso, sha256
from tracegraph.write import lock

PAGE = 2_000
"""Records of one page of epochs; an epoch that holds more is a page of its own."""
SLICE = 500
"""Records read by one query; a tenth of it for receipts, whose texts are large."""


class Break(Model):
    """Where the log and the graph part, and how. `record` is an act and an id; None is the epoch itself."""

    epoch: int
    record: str | None
    what: str


class Verification(Model):
    """A finished walk. `digest` is the chain's head: kept elsewhere, it also shows a log cut short."""

    workspace: str
    epoch: int
    """The last epoch, as of the walk's beginning."""
    digest: str | None
    records: int
    """Records checked."""
    intact: bool
    broken: Break | None
    """The first break; epochs are walked in order, then what no epoch names is looked for."""


class BreakError(Exception):
    """Ends a walk at its first break."""

    def __init__(self, epoch: int, record: str | None, what: str) -> None:
        super().__init__(what)
        self.found = Break(epoch=epoch, record=record, what=what)


async def verify(graph: Graph, workspace: str, *, progress: Callable[[int, int], None] | None = None) -> Verification:
    """Walk the log up to the latest epoch. `progress` is told the epochs done and in all."""

    locked, begin = await graph.under_lock(lambda tx: pin(tx, workspace))
    latest = int(locked["epoch"])
    walk = Walk(graph, workspace, latest, PAGE)
    broken: Break | None = None
    try:
        walk.begin(begin)
        while walk.at < latest:
            await walk.page()
            if progress is not None:
                progress(walk.at, latest)
        await walk.end()
    except BreakError as found:
        broken = found.found
    return Verification(
        workspace=workspace,
        epoch=latest,
        digest=walk.previous,
        records=walk.records,
        intact=broken is None,
        broken=broken,
    )


async def pin(tx: Tx, workspace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The latest epoch, as the lock found it, and what a walk begins with."""
    locked = await lock(tx, workspace)
    row = await tx.row("audit/verify/begin", workspace=workspace)
    assert row is not None
    return locked, row


Visit = Callable[[int, str, str, Mapping[str, Any]], None]
"""Is told of each sound record: its epoch, its subject, its act, and its row of the graph."""


@dataclass
class Walk:
    """A walk of the log from its beginning, a page at a time. Raises `BreakError`."""

    graph: Graph
    workspace: str
    latest: int
    size: int
    visit: Visit | None = None
    at: int = 0
    recorded_at: int = 0
    previous: str | None = None
    records: int = 0
    named: Counter[str] = field(default_factory=Counter)
    """How many things of each kind the log names, by the keys of `counts.cypher`."""
    linked: Counter[str] = field(default_factory=Counter)
    """How many verdicts and revocations point at items and receipts."""

    async def row(self, name: str, **parameters: Any) -> dict[str, Any]:
        async def work(tx: Tx) -> dict[str, Any] | None:
            return await tx.row(f"audit/verify/{name}", workspace=self.workspace, **parameters)

        return await self.graph.read(work) or {}

    def begin(self, row: Mapping[str, Any]) -> None:
        """The workspace and its first policy, which the first epoch builds on."""
        if row["policy"] is None:
            raise BreakError(0, "policy 1", "the first revision of the policy is missing")
        policy = {name: value for name, value in row["policy"].items() if name not in KEPT_BESIDE}
        del policy["revision"]
        self.previous = workspace_digest(self.workspace, row["owner"], policy, row["recorded_at"])
        if row["digest"] != self.previous:
            what = "its owner, its creation or its first policy is not what its digest says"
            raise BreakError(0, "workspace", what)
        if row["ahead"] is not None:
            what = "it claims an epoch that was not given out yet"
            raise BreakError(self.latest, f"item {row['ahead']}", what)
        if (row["highest"] or 0) > self.latest:
            raise BreakError(row["highest"], None, f"the workspace's last epoch is {self.latest}")
        self.recorded_at = row["recorded_at"]

    async def page(self) -> list[dict[str, Any]]:
        """The next epochs, and every record they name; returns the epochs."""
        sizes = (await self.row("sizes", after=self.at, until=self.latest))["sizes"]
        until, held = self.at, 0
        for number, size in sizes:
            if number != until + 1 or (until > self.at and held + size > self.size):
                break
            until, held = number, held + size
        if until == self.at:
            raise BreakError(self.at + 1, None, "the epoch is missing")
        epochs = (await self.row("epochs", after=self.at, until=until))["epochs"]
        broken: list[Break] = []
        sound = []
        for epoch in epochs:
            with _foreign() as fault:
                fault.what = self._link(epoch)
            what = fault.what
            if what is not None:
                broken.append(Break(epoch=epoch["number"], record=None, what=what))
                break
            sound.append(epoch)
        broken += [found async for found in self._contents(sound)]
        if broken:
            first = min(broken, key=lambda one: (one.epoch, one.record or ""))
            raise BreakError(first.epoch, first.record, first.what)
        self.at = until
        return list(epochs)

    def _link(self, epoch: Mapping[str, Any]) -> str | None:
        """What is wrong with an epoch as a link of the chain."""
        if epoch["previous"] != self.previous:
            return "its previous digest is not that of the epoch before"
        if any(epoch[name] is None for name in ("batch_id", "author", "recorded_at", "records", "subjects")):
            return "one of its fields is missing"
        if epoch["recorded_at"] < self.recorded_at:
            return "it was recorded before the epoch before it"
        if epoch["digest"] != epoch_digest(self.workspace, dict(epoch)):
            return "its fields or its list of records are not what its digest says"
        if len(epoch["records"]) != len(epoch["subjects"]):
            return "its records and their subjects are not equally many"
        self.previous, self.recorded_at = epoch["digest"], epoch["recorded_at"]
        return None

    async def _contents(self, epochs: list[dict[str, Any]]) -> AsyncIterator[Break]:
        """Every record of these epochs that the graph does not hold as it was recorded."""
        wanted: dict[str, dict[str, tuple[dict[str, Any], str, str]]] = {}
        for epoch in epochs:
            for recorded, subject in zip(epoch["records"], epoch["subjects"], strict=True):
                act, _, id = subject.partition(" ")
                if act not in _READ or id in wanted.get(act, {}):
                    what = "the epoch names it wrongly or twice"
                    yield Break(epoch=epoch["number"], record=subject, what=what)
                    continue
                wanted.setdefault(act, {})[id] = (epoch, recorded, subject)
        for act, records in wanted.items():
            query, check, step = _READ[act]
            ids = list(records)
            for start in range(0, len(ids), step):
                part = ids[start : start + step]
                row = await self.row(query, ids=part, latest=self.latest)
                found = {one["id"]: one for one in row["found"]}
                for id in part:
                    epoch, recorded, subject = records[id]
                    self.records += 1
                    fault = _fault(act, check, epoch, recorded, found.get(id))
                    if fault is not None:  # a commit that is being applied is seen in parts: look when there is none
                        found |= {one["id"]: one for one in await self.settled(query, id)}
                        fault = _fault(act, check, epoch, recorded, found.get(id))
                    if fault is not None:
                        yield Break(epoch=epoch["number"], record=subject, what=fault)
                        continue
                    self._count(act, found[id])
                    if self.visit is not None:
                        self.visit(epoch["number"], subject, act, found[id])

    async def settled(self, query: str, id: str) -> list[dict[str, Any]]:
        """What a query finds of one record while nobody writes."""

        async def work(tx: Tx) -> list[dict[str, Any]]:
            await lock(tx, self.workspace)
            row = await tx.row(f"audit/verify/{query}", workspace=self.workspace, ids=[id], latest=self.latest)
            return list(row["found"]) if row else []

        return await self.graph.under_lock(work)

    def _count(self, act: str, row: Mapping[str, Any]) -> None:
        if act in ("grant", "deny"):
            held = sum(edge["type"] == "HOLDS" for edge in row["edges"])
            self.named.update(held=held, scoped=len(row["edges"]) - held)
        elif act not in ("retract", "withdraw"):
            self.named[act] += 1
        self.linked.update(verdict=row.get("verdicts", 0), revoke=row.get("revocations", 0))

    async def end(self) -> None:
        """Whether the graph holds anything that no epoch names."""
        counts = (await self.row("counts", latest=self.latest))["counts"]
        if all(counts[kind] == self.named[kind] for kind in counts) and all(
            self.linked[kind] == self.named[kind] for kind in ("verdict", "revoke")
        ):
            return
        stray = await self.row("strays", latest=self.latest)
        if stray:
            raise BreakError(stray["epoch"], stray["record"], "no epoch names it")
        raise BreakError(self.latest, None, "the graph holds more than the epochs name")


# --- what each record's digest covers: pure, as `write.Check` logs it -------------------------------------

OTHER = "its fields or links are not those that were recorded"


class Recomputed(str):
    """A digest that must be the recorded one."""


@dataclass
class _Fault:
    what: str | None = None


@contextmanager
def _foreign() -> Iterator[_Fault]:
    """Takes values of a kind that no record ever has for what they are: tampering."""
    fault = _Fault()
    try:
        yield fault
    except (KeyError, TypeError, ValueError, ArithmeticError):
        fault.what = OTHER


def _digest(act: str, row: Mapping[str, Any]) -> Recomputed:
    return Recomputed(record_digest(act, covered(act, row)))


def covered(act: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a record's digest covers, read back from its row of the graph."""
    stored: Mapping[str, Any] = row.get("stored", {})
    match act:
        case "item":
            links = {name: sorted(row["links"][name]) for name in _LINKS.get(stored["kind"], ())}
            if stored["kind"] == "frontier" and len(links["obligation"]) == 1:
                links["obligation"] = links["obligation"][0]
            times = {name: iso(stored[name]) for name in ("valid_from", "valid_to")}
            return {name: stored.get(name) for name in _ITEM} | times | links
        case "receipt":
            fields = {name: stored.get(name) for name in ("id", "uri", "sha256", "issuer", "origin", "text_digest")}
            return fields | {"observed_at": iso(stored.get("observed_at"))}
        case "revoke":
            fields = {name: stored.get(name) for name in ("id", "code", "reason", "author")}
            return fields | {"target": row["targets"][0], "effective_from": iso(stored["effective_from"])}
        case "grant" | "deny":
            edges = row["edges"]
            held = [edge for edge in edges if edge["type"] == "HOLDS"]
            verb = "DENIED" if act == "deny" else "MAY"
            return {
                "id": row["id"],
                "role": held[0]["to"] if held else edges[0]["from"],
                "principal": held[0]["from"] if held else None,
                "read": sorted(edge["to"] for edge in edges if edge["type"] == f"{verb}_READ"),
                "write": sorted(edge["to"] for edge in edges if edge["type"] == f"{verb}_WRITE"),
                "valid_from": iso(edges[0]["stored"]["valid_from"]),
                "valid_to": iso(edges[0]["stored"]["valid_to"]),
            }
        case "verdict":
            beside = {*KEPT_BESIDE, "quote", "rationale", "effective_from", "effective_given"}
            return {
                **{name: value for name, value in stored.items() if name not in beside},
                "later": row["later"],
                "earlier": row["earlier"],
                "says": _SAYS[row["type"]],
                "effective_from": iso(stored.get("effective_given")),
            }
        case "remember":
            fields = {name: stored.get(name) for name in ("id", "owner", "content_digest")}
            return fields | {"grounded_in": sorted(row["grounded_in"])}
        case "depart":
            fields = {name: value for name, value in stored.items() if name not in KEPT_BESIDE}
            return fields | {name: iso(stored.get(name)) for name in ("valid_at", "expires_at")}
        case "policy":
            return {name: value for name, value in stored.items() if name not in KEPT_BESIDE}
        case "erase":
            return {name: stored.get(name) for name in ("target", "reason", "erased")}
        case _:
            return {"target": row["id"], "author": row["retired"][0][1]}


def _fault(
    act: str, check: _Check, epoch: Mapping[str, Any], recorded: str, row: Mapping[str, Any] | None
) -> str | None:
    """What is wrong with one record, by its row of the graph."""
    if row is None:
        return "it is missing"
    with _foreign() as fault:
        for what in check(act, epoch, row):
            if not isinstance(what, Recomputed):
                return what
            if what != recorded:
                return OTHER
    return fault.what


_Check = Callable[[str, Mapping[str, Any], Mapping[str, Any]], Iterator[str]]
"""Yields what is wrong, and digests that must be the recorded one."""
KEPT_BESIDE = {"workspace", "epoch", "retired_epoch", "retired_by", "recorded_at", "author", "digest"}
"""Properties that stand beside a record and are no part of it."""
_LINKS = {
    "fact": ("receipts", "depends_on", "derived_from", "supersedes", "supports"),
    "constraint": ("receipts", "depends_on", "derived_from", "supersedes", "supports"),
    "obligation": ("requires",),
    "frontier": ("obligation",),
}
_ITEM = (
    *(
        "id",
        "key",
        "kind",
        "scope",
        "length",
        "content_digest",
        "task",
        "purposes",
        "role",
        "author",
        "place",
    ),
)
_SAYS = {edge: says for says, edge in EDGE_OF.items()}


def _common(epoch: Mapping[str, Any], stored: Mapping[str, Any], *, author: bool = True) -> Iterator[str]:
    if stored.get("epoch") != epoch["number"]:
        yield f"it claims the epoch {stored.get('epoch')}"
    if author and stored.get("author") != epoch["author"]:
        yield "its author is not its epoch's"
    if "recorded_at" in stored and stored["recorded_at"] != epoch["recorded_at"]:
        yield "it claims another moment of recording than its epoch's"
    yield Recomputed(stored.get("digest", "none"))


def _words(stored: Mapping[str, Any], text: str, digested: str) -> Iterator[str]:
    words = stored.get(text)
    if stored.get("erased_epoch") is not None:
        if words is not None:
            yield "its words are there, though it was erased"
    elif words is None and stored.get(digested) is not None:
        yield "its words are missing"
    elif words is not None and sha256(words) != stored.get(digested):
        yield f"its words are not what {digested} says"


def _undone(row: Mapping[str, Any]) -> Iterator[str]:
    if row.get("strange"):
        yield "it is joined to something outside the workspace"
    if not row.get("retired", True):
        yield "it counts as undone, and no epoch says so"
    if not row.get("erased", True):
        yield "it counts as erased, and no epoch says so"


def _item(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored, links = row["stored"], row["links"]
    own = _LINKS.get(stored["kind"], ())
    if any(found for name, found in links.items() if name not in own):
        yield "it has links that its kind never has"
    yield _digest("item", row)
    yield from _common(epoch, stored, author=False)
    yield from _words(stored, "content", "content_digest")
    if stored.get("content") is not None and len(stored["content"]) != stored["length"]:
        yield "its words are not as long as its length says"
    if row["correction"] != (stored["valid_to"] <= stored["recorded_at"]):
        yield "its label says wrongly whether it corrects the past"
    if not row["identity"]:
        yield "its identity is missing, so that no return would find it"
    if row["misdated"]:
        yield "one of its links claims another epoch"
    yield from _undone(row)


def _receipt(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored = row["stored"]
    yield _digest("receipt", row)
    yield from _common(epoch, stored, author=False)
    yield from _words(stored, "text", "text_digest")
    yield from _undone(row)


def _revocation(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored = row["stored"]
    if len(row["targets"]) != 1:
        yield f"it revokes {len(row['targets'])} things, not one"
        return
    yield _digest("revoke", row)
    yield from _common(epoch, stored)
    yield from _undone(row)


def _grant(act: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    edges = row["edges"]
    first = edges[0]["stored"]
    verb = "DENIED" if act == "deny" else "MAY"
    if any(edge["strange"] or edge["stored"] != first for edge in edges):
        yield "its edges do not agree with each other"
    held = [edge for edge in edges if edge["type"] == "HOLDS"]
    roles = {edge["to"] for edge in held} | {edge["from"] for edge in edges if edge["type"] != "HOLDS"}
    others = {edge["type"] for edge in edges} - {"HOLDS", f"{verb}_READ", f"{verb}_WRITE"}
    if len(roles) != 1 or len(held) > 1 or others:
        yield "its edges are not those of one grant or denial"
        return
    yield _digest(act, row)
    yield from _common(epoch, first)
    yield from _undone(row)


def _verdict(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored = row["stored"]
    given = stored.get("effective_given")
    yield _digest("verdict", row)
    yield from _common(epoch, stored)
    if stored.get("effective_from") != (row["begins"] if given is None else given):
        yield "it takes effect at another moment than was given"
    for name in ("quote", "rationale"):
        words, recorded = stored.get(name), stored.get(f"{name}_digest")
        if words is not None and (row["blanked"] or sha256(words) != recorded):
            yield f"its {name} is not what was recorded"
        if words is None and recorded is not None and not row["blanked"]:
            yield f"its {name} is missing"
    yield from _undone(row)


def _memory(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored = row["stored"]
    yield _digest("remember", row)
    yield from _common(epoch, stored, author=False)
    yield from _words(stored, "content", "content_digest")
    yield from _undone(row)


def _checkpoint(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored = row["stored"]
    yield _digest("depart", row)
    yield from _common(epoch, stored, author=False)
    if sha256(digest({"items": stored.get("item_ids")})) != stored.get("items_digest"):
        yield "its items are not what items_digest says"


def _policy(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored = row["stored"]
    yield _digest("policy", row)
    yield from _common(epoch, stored)


def _erasure(_: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    stored = row["stored"]
    yield _digest("erase", row)
    yield from _common(epoch, stored)
    if sorted(row["items"]) != stored.get("erased"):
        yield "it erased other items than it names"
    for what in ("kept", "texts", "memories"):
        if row[what]:
            yield f"words that it erased are there: {sorted(row[what])[0]}"


def _end(act: str, epoch: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """A retraction or a withdrawal: everything of that id was turned at this epoch."""
    for retired, by in row["retired"]:
        if by != row["retired"][0][1]:
            yield OTHER
            return
        if retired != epoch["number"]:
            undone = "it is in force" if retired in (None, OPEN) else f"it was undone at epoch {retired}"
            yield f"{undone}, though this epoch says otherwise"
            return
    if row["retired"]:
        yield _digest(act, row)


_READ: dict[str, tuple[str, _Check, int]] = {
    "item": ("items", _item, SLICE),
    "receipt": ("receipts", _receipt, SLICE // 10),
    "revoke": ("revocations", _revocation, SLICE),
    "grant": ("grants", _grant, SLICE),
    "deny": ("grants", _grant, SLICE),
    "verdict": ("verdicts", _verdict, SLICE),
    "remember": ("memories", _memory, SLICE),
    "depart": ("checkpoints", _checkpoint, SLICE // 10),
    "policy": ("policies", _policy, SLICE),
    "erase": ("erasures", _erasure, SLICE // 10),
    "retract": ("retractions", _end, SLICE),
    "withdraw": ("withdrawals", _end, SLICE),
}
"""Each act's query, its check, and how many records one query reads."""
