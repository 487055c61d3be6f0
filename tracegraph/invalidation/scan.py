"""The two scans: which pairs are worth a judgment (paper C.2 and ours). Broad, and never a verdict.

`PairScanner` shows a model one target with up to four later items a call, so that its cost grows with the product of
the two. `PremiseScanner` has each item read once, alone, for what it silently relies on and what it changes, and
matches these in the graph, so that its cost grows with their sum. What was scanned or read is kept, and never paid for
again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import anyio

from tracegraph.invalidation.endpoint import Endpoint, Reply
from tracegraph.invalidation.evidence import (
    TRANSIENT,
    Evidence,
    Forecast,
    Meter,
    Progress,
    Request,
    Scanned,
    Scope,
    Usage,
    tokens_of,
)
from tracegraph.invalidation.ledger import Ledger, chunks, claim_key, once
from tracegraph.invalidation.prompts import (
    LATER_PER_CALL,
    PAIRS,
    PREMISES,
    PROMPT_CHARS,
    Affected,
    MalformedError,
    Reading,
    Topic,
    block,
    item_data,
    parse,
)
from tracegraph.model import digest, folded

CHUNK = 64
"""Calls between two saves."""
_ANSWER_TOKENS = 150
"""An ordinary answer's length, for budgets and forecasts."""
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    (  # noqa: SIM905
        "about after again also always and any are because been before being but can could did does each every for from"
        " had has have her here him his how into its just like made make more most much near need new not now off one"
        " only other our out over own please really she should some still such than that the their them then there"
        " these they this those through today too under until use very want was way well were what when where which"
        " while who why will with would you your"
    ).split()
)


class PremiseScanner:
    """Reads each item once, alone, and matches what later ones change with what earlier ones rely on."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.prompt = PREMISES.digest

    async def scan(self, scope: Scope, ledger: Ledger, meter: Meter, progress: Progress | None = None) -> Scanned:
        ids = scope.later | scope.earlier
        unread = ids - await ledger.read(ids, prompt=self.prompt, model=self.model)
        if unread:
            unread -= await self._read(unread, ledger, meter, progress)
        fresh = ids if scope.fresh is None else ids & scope.fresh
        found = await ledger.matches(fresh, prompt=self.prompt, model=self.model)
        scanned = Scanned(pairs=[pair for pair in sorted(found) if scope.has(*pair)])
        if unread:
            for earlier in sorted(scope.earlier):
                laters = scope.laters(earlier)
                left = laters if earlier in unread else [id for id in laters if id in unread]
                if left:
                    scanned.unscanned.append((left[-1], earlier))
        return scanned

    async def _read(self, unread: Collection[str], ledger: Ledger, meter: Meter, progress: Progress | None) -> set[str]:
        """Which of the items have been read now, here or by another process."""
        items = await ledger.evidence(unread)
        done: set[str] = set(unread) - set(items)
        work = {self._key(item): item for item in items.values()}

        async def open_(some: Collection[Evidence]) -> set[int]:
            before = await ledger.read([item.id for item in some], prompt=self.prompt, model=self.model)
            done.update(before)
            return {at for at, item in enumerate(some) if item.id not in before}

        async def run(some: Sequence[Evidence]) -> bool:
            rows: list[dict[str, Any]] = []

            async def one(item: Evidence) -> None:
                data = item_data(item, self.name(item))
                if data is None:
                    rows.append(self.reading(item, Reply(None, "too_long", Usage())))
                    return
                reserved = tokens_of(PREMISES.system + block(data)) + _ANSWER_TOKENS
                if not meter.reserve(reserved):
                    return
                usage, failed = Usage(), True
                try:
                    reply = await self.endpoint.ask(self.model, PREMISES, data)
                    usage, failed = reply.usage, reply.cause in TRANSIENT
                    if not failed:
                        rows.append(self.reading(item, reply))
                finally:
                    meter.settle(reserved, usage, failed=failed)

            try:
                async with anyio.create_task_group() as group:
                    for item in some:
                        group.start_soon(one, item)
            finally:
                if rows:
                    with anyio.CancelScope(shield=True):
                        await ledger.remember_readings(rows, prompt=self.prompt, model=self.model)
            done.update(row["item"] for row in rows)
            if progress is not None:
                progress("read", len(done), len(unread), meter.usage)
            return not meter.stopped

        await once(ledger, work, open_=open_, run=run, chunk=CHUNK, patience=self.endpoint.deadline + ledger.lease)
        return done

    def name(self, item: Evidence) -> str:
        """What an answer calls the item: nothing its text could know."""
        return digest({"item": item.digest, "prompt": self.prompt})[:12]

    def reading(self, item: Evidence, reply: Reply) -> dict[str, Any]:
        """A reply as it is kept. An item no model reads well is matched by its own words, and spoils no other."""
        cause = reply.cause
        topics: list[dict[str, Any]] = []
        if reply.text is not None:
            try:
                found = parse(Reading, reply.text)
                if found.item != self.name(item):
                    raise MalformedError("wrong_item")
                topics = [
                    _topic(kind, topic)
                    for kind, list_ in (("RELIES_ON", found.relies_on), ("CHANGES", found.changes))
                    for topic in list_
                ]
            except MalformedError as fault:
                cause = fault.cause
        if cause is not None:
            words = sorted(content_words(" ".join((item.key, item.content))))[:64]
            topics = [
                {"type": kind, "aspect": "other", "says": "", "words": words} for kind in ("RELIES_ON", "CHANGES")
            ]
        topics = [topic for topic in topics if topic["words"]]
        return {"item": item.id, "cause": cause, "topics": topics, **reply.usage.row()}

    async def requests(self, scope: Scope, ledger: Ledger) -> list[Request]:
        """What a scan would ask, for a batch."""
        ids = scope.later | scope.earlier
        unread = ids - await ledger.read(ids, prompt=self.prompt, model=self.model)
        found: list[Request] = []
        for item in (await ledger.evidence(unread)).values():
            data = item_data(item, self.name(item))
            if data is not None:
                found.append(Request(self._key(item), "read", (item.id,), scope.task, self.model, PREMISES, data))
        return found

    def _key(self, item: Evidence) -> str:
        return claim_key("read", item.digest, self.prompt, self.model)

    async def forecast(self, scope: Scope, ledger: Ledger) -> Forecast:
        ids = scope.later | scope.earlier
        unread = ids - await ledger.read(ids, prompt=self.prompt, model=self.model)
        tokens = 0
        for part in chunks(sorted(unread)):
            for item in (await ledger.evidence(part)).values():
                data = item_data(item, self.name(item))
                tokens += 0 if data is None else tokens_of(PREMISES.system + block(data)) + _ANSWER_TOKENS
        fresh = ids if scope.fresh is None else ids & scope.fresh
        found = await ledger.matches(fresh, prompt=self.prompt, model=self.model)
        return Forecast(len(unread), tokens, tuple(pair for pair in sorted(found) if scope.has(*pair)))


def _topic(kind: str, topic: Topic) -> dict[str, Any]:
    words = sorted({stem for word in topic.words for stem in _stems(word)})
    return {"type": kind, "aspect": topic.aspect, "says": folded(topic.says), "words": words}


def _stems(text: str) -> Iterable[str]:
    """The words of a text in the form in which they are matched."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    for word in _WORD.findall(plain):
        yield word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word[:64]


def content_words(text: str) -> set[str]:
    """The words of a text that say what it is about."""
    return {word for word in _stems(text) if len(word) > 2 and word not in _STOP and not word.isdigit()}


class PairScanner:
    """Shows a model each target with up to four later items a call (paper C.2).

    The later items of one call share it: a hostile one may have the others of that call overlooked. `PremiseScanner`
    has no such call.
    """

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.prompt = PAIRS.digest

    async def scan(self, scope: Scope, ledger: Ledger, meter: Meter, progress: Progress | None = None) -> Scanned:
        scanned = Scanned()
        total = len(scope.earlier)
        for at, targets in enumerate(chunks(sorted(scope.earlier), CHUNK)):
            calls, _ = await self._calls(scope, ledger, targets)
            if calls:
                await self._ask(scope, ledger, meter, calls, scanned)
            if progress is not None:
                progress("scan", min(total, (at + 1) * CHUNK), total, meter.usage)
        return scanned

    async def _calls(
        self, scope: Scope, ledger: Ledger, targets: Sequence[str]
    ) -> tuple[dict[str, tuple[Evidence, list[Evidence]]], int]:
        """The calls that targets still need, by claim, and their tokens."""
        seen = await ledger.scanned(targets, prompt=self.prompt, model=self.model)
        open_ = {id: [one for one in scope.laters(id) if one not in seen.get(id, ())] for id in targets}
        items = await ledger.evidence({*targets, *(id for ids in open_.values() for id in ids)})
        calls: dict[str, tuple[Evidence, list[Evidence]]] = {}
        tokens = 0
        for id, laters in open_.items():
            if id not in items:
                continue
            group: list[Evidence] = []
            for later in [items[one] for one in laters if one in items] + [None]:
                if group and (
                    later is None
                    or len(group) == LATER_PER_CALL
                    or len(block(self._data(items[id], [*group, later]))) + len(PAIRS.system) > PROMPT_CHARS
                ):
                    key = claim_key("scan", items[id].digest, *(one.digest for one in group), self.prompt, self.model)
                    calls[key] = (items[id], group)
                    tokens += tokens_of(PAIRS.system + block(self._data(items[id], group))) + _ANSWER_TOKENS // 3
                    group = []
                if later is not None:
                    group.append(later)
        return calls, tokens

    def _data(self, target: Evidence, laters: Sequence[Evidence]) -> dict[str, Any]:
        room = PROMPT_CHARS // (len(laters) + 3)
        return {
            "target": {"name": self._name(target), **target.shown(max(room, len(target.content)))},
            "later": [{"name": self._name(one), **one.shown(max(room, len(one.content)))} for one in laters],
        }

    def _name(self, item: Evidence) -> str:
        return digest({"item": item.digest, "prompt": self.prompt})[:8]

    async def _ask(
        self,
        scope: Scope,
        ledger: Ledger,
        meter: Meter,
        calls: dict[str, tuple[Evidence, list[Evidence]]],
        scanned: Scanned,
    ) -> None:
        left = dict(calls)

        async def open_(some: Collection[tuple[Evidence, list[Evidence]]]) -> set[int]:
            seen = await ledger.scanned([target.id for target, _ in some], prompt=self.prompt, model=self.model)
            todo = {
                at
                for at, (target, laters) in enumerate(some)
                if not {one.id for one in laters} <= seen.get(target.id, set())
            }
            for at, call in enumerate(some):
                if at not in todo:
                    left.pop(self._key(call), None)
            return todo

        async def run(some: Sequence[tuple[Evidence, list[Evidence]]]) -> bool:
            rows: list[dict[str, Any]] = []
            pairs: list[tuple[str, str, str | None]] = []

            def keep(target: Evidence, laters: list[Evidence], reply: Reply) -> None:
                ids, row = self.scan_of(target, laters, reply)
                pairs.extend((id, target.id, scope.task_of(id, target.id)) for id in ids)
                rows.append(row)
                left.pop(self._key((target, laters)), None)

            async def one(target: Evidence, laters: list[Evidence]) -> None:
                data = self._data(target, laters)
                shown = PAIRS.system + block(data)
                if len(shown) > PROMPT_CHARS:
                    keep(target, laters, Reply(None, "too_long", Usage()))
                    return
                reserved = tokens_of(shown) + _ANSWER_TOKENS // 3
                if not meter.reserve(reserved):
                    return
                usage, failed = Usage(), True
                try:
                    reply = await self.endpoint.ask(self.model, PAIRS, data)
                    usage, failed = reply.usage, reply.cause in TRANSIENT
                    if not failed:
                        keep(target, laters, reply)
                finally:
                    meter.settle(reserved, usage, failed=failed)

            try:
                async with anyio.create_task_group() as group:
                    for target, laters in some:
                        group.start_soon(one, target, laters)
            finally:
                if rows:
                    with anyio.CancelScope(shield=True):
                        # proposed before the scan counts as made: a crash between the two loses no pair
                        await ledger.propose(pairs)
                        await ledger.remember_scans(rows, prompt=self.prompt, model=self.model)
            scanned.pairs += [(later, earlier) for later, earlier, _ in pairs]
            return not meter.stopped

        await once(ledger, calls, open_=open_, run=run, chunk=CHUNK, patience=self.endpoint.deadline + ledger.lease)
        scanned.unscanned += list({target.id: (laters[-1].id, target.id) for target, laters in left.values()}.values())

    def _key(self, call: tuple[Evidence, list[Evidence]]) -> str:
        target, laters = call
        return claim_key("scan", target.digest, *(one.digest for one in laters), self.prompt, self.model)

    def affected(self, target: Evidence, laters: Sequence[Evidence], reply: Reply) -> tuple[list[str], str | None]:
        """The later items to judge: those named, or all of them when the answer is not a clean one."""
        names = {self._name(one): one.id for one in laters}
        everything = list(names.values())
        if reply.text is None:
            return everything, reply.cause
        try:
            found = parse(Affected, reply.text)
        except MalformedError as fault:
            return everything, fault.cause
        if found.target != self._name(target) or not set(found.affected) <= set(names):
            return everything, "wrong_pair"
        return [names[name] for name in dict.fromkeys(found.affected)], None

    def scan_of(self, target: Evidence, laters: Sequence[Evidence], reply: Reply) -> tuple[list[str], dict[str, Any]]:
        """The later items that a reply proposes, and the scan as it is kept."""
        ids, cause = self.affected(target, laters, reply)
        seen = [one.id for one in laters]
        return ids, {"target": target.id, "laters": seen, "cause": cause, **reply.usage.row()}

    async def requests(self, scope: Scope, ledger: Ledger) -> list[Request]:
        """What a scan would ask, for a batch."""
        found: list[Request] = []
        for targets in chunks(sorted(scope.earlier), CHUNK):
            for key, (target, laters) in (await self._calls(scope, ledger, targets))[0].items():
                data = self._data(target, laters)
                if len(PAIRS.system + block(data)) <= PROMPT_CHARS:
                    ids = (target.id, *(one.id for one in laters))
                    found.append(Request(key, "scan", ids, scope.task, self.model, PAIRS, data))
        return found

    async def forecast(self, scope: Scope, ledger: Ledger) -> Forecast:
        calls = tokens = 0
        for targets in chunks(sorted(scope.earlier), CHUNK):
            found, cost = await self._calls(scope, ledger, targets)
            calls, tokens = calls + len(found), tokens + cost
        return Forecast(calls, tokens, ())
