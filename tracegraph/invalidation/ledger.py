"""What the pipeline knows from the graph and leaves there: evidence, what was read, scanned and answered, and claims.

Verdicts are written as a batch like any other, by the workspace's owner, so that they have an epoch, a digest and a
place in the log. What was read and scanned, and the claims, stand beside the log: they decide nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio

from tracegraph.errors import TracegraphError
from tracegraph.graph import Graph, Tx
from tracegraph.invalidation.evidence import TRANSIENT, UNSCANNED, Answer, Ask, Evidence, Pair, Usage, Verifier
from tracegraph.model import Spent, Verdict, Withdraw, digest, new_id
from tracegraph.write import commit

CHUNK = 500
T = TypeVar("T")


class Ledger:
    """One workspace's record of invalidation, for one process. `lease` is how long a dead process's claims last."""

    def __init__(self, graph: Graph, workspace: str, *, now: Callable[[], int], lease: float = 60.0) -> None:
        self.graph = graph
        self.workspace = workspace
        self.now = now
        self.lease = lease
        self._holder = new_id("holder")

    async def _one(self, name: str, **parameters: Any) -> Any:
        """The single value of a query that gives one row."""

        async def work(tx: Tx) -> Any:
            row = await tx.row(f"invalidation/{name}", workspace=self.workspace, **parameters)
            return None if row is None else next(iter(row.values()))

        return await self.graph.read(work)

    async def _chunked(self, name: str, ids: Iterable[str], **parameters: Any) -> list[Any]:
        """The list a query gives for many ids, asked for a part at a time."""
        out: list[Any] = []
        for part in chunks(sorted(ids)):
            out += await self._one(name, ids=part, **parameters) or []
        return out

    async def _write(self, name: str, **parameters: Any) -> None:
        async def work(tx: Tx) -> None:
            await tx.run(f"invalidation/{name}", workspace=self.workspace, **parameters)

        await self.graph.write(work)

    # --- evidence ---

    async def evidence(self, ids: Iterable[str]) -> dict[str, Evidence]:
        """Items as a model may read them; erased ones are left out."""
        rows = await self._chunked("evidence", set(ids), now=self.now())
        return {row["id"]: Evidence(**{**row, "receipts": tuple(row["receipts"])}) for row in rows}

    async def settled(
        self, earlier: Collection[str], *, task: str | None, ask: Ask, verifier: Verifier
    ) -> dict[str, set[str]]:
        """For each earlier item, the later ones that need no judgment; a restoration is judged for itself."""
        asks: tuple[Ask, ...] = ("judge", "restore") if ask == "judge" else ("restore",)
        rows = await self._chunked(
            "settled",
            earlier,
            task=task,
            prompt=verifier.prompt(ask),
            prompts=[verifier.prompt(one) for one in asks],
            model=verifier.model,
            transient=sorted(TRANSIENT),
        )
        return {id: set(laters) for id, laters in rows}

    async def pending(
        self, earlier: Collection[str], *, task: str | None
    ) -> tuple[set[tuple[str, str]], dict[tuple[str, str], list[str]]]:
        """The pairs that wait for an answer; and, by pair, the edges that only say a target was not scanned."""
        waiting: set[tuple[str, str]] = set()
        placeholders: dict[tuple[str, str], list[str]] = {}
        for later, old, id, cause in await self._chunked("pending", earlier, task=task):
            if cause == UNSCANNED:
                placeholders.setdefault((later, old), []).append(id)
            else:
                waiting.add((later, old))
        return waiting, placeholders

    async def recoverable(
        self, earlier: Collection[str], *, task: str | None, epoch: int, valid_at: int
    ) -> list[tuple[str, str, bool, list[str]]]:
        """(earlier, the item behind a verdict in force, whether it was retracted, what names it superseded)."""
        rows = await self._chunked("recoverable", earlier, task=task, epoch=epoch, valid_at=valid_at)
        return [(old, behind, gone, named) for old, behind, gone, named, _ in rows]

    async def states(self, earlier: Collection[str], *, task: str | None) -> dict[tuple[str, str], str]:
        """How the pairs (later, earlier) of these items stand: the type of the last edge."""
        rows = await self._chunked("states", earlier, task=task)
        return {(later, old): kind for later, old, kind in rows}

    # --- verdicts ---

    async def propose(self, pairs: Iterable[tuple[str, str, str | None]], cause: str | None = None) -> None:
        """Write pairs (later, earlier, task) as PROPOSED."""
        await self._commit(
            [
                Verdict(later=later, earlier=earlier, task=task, says="proposed", cause=cause)
                for later, earlier, task in pairs
            ]
        )

    async def withdraw(self, ids: Sequence[str]) -> None:
        """Take edges back that no longer say anything."""
        await self._commit([Withdraw(target=id) for id in ids])

    async def answer(self, answers: Sequence[tuple[Pair, Answer]], *, model: str, prompts: Mapping[Ask, str]) -> None:
        """Write verdicts. One that is refused (an item erased meanwhile) does not cost the others."""
        await self._commit(
            [
                Verdict(
                    later=pair.later.id,
                    earlier=pair.earlier.id,
                    says=answer.says,
                    task=pair.task,
                    confidence=answer.confidence,
                    quote=answer.quote,
                    rationale=answer.rationale,
                    cause=answer.cause,
                    model=model,
                    prompt=prompts[pair.ask],
                    tokens=answer.usage.tokens,
                    usage=Spent(**answer.usage.row()),
                )
                for pair, answer in answers
            ]
        )

    async def _commit(self, acts: Sequence[Verdict | Withdraw]) -> None:
        for part in chunks(acts, 1_000):
            try:
                await commit(self.graph, self.workspace, part, author=None, now=self.now())
            except TracegraphError as refused:
                if refused.code == "unavailable" or len(part) == 0:
                    raise
                if len(part) > 1:
                    half = len(part) // 2
                    await self._commit(part[:half])
                    await self._commit(part[half:])

    # --- what was read and scanned ---

    async def read(self, ids: Collection[str], *, prompt: str, model: str) -> set[str]:
        """Which of the items were read before."""
        return set(await self._chunked("read", ids, prompt=prompt, model=model))

    async def remember_readings(self, readings: list[dict[str, Any]], *, prompt: str, model: str) -> None:
        await self._write("remember_readings", readings=readings, prompt=prompt, model=model)

    async def matches(self, ids: Collection[str], *, prompt: str, model: str) -> set[tuple[str, str]]:
        """Pairs (later, earlier) of which one is among `ids` and whose readings meet."""
        found: set[tuple[str, str]] = set()

        async def work(tx: Tx, part: list[str]) -> None:
            for row in await tx.rows(
                "invalidation/matches", workspace=self.workspace, ids=part, prompt=prompt, model=model
            ):
                found.update((later, earlier) for later, earlier in row["pairs"])

        for part in chunks(sorted(ids)):
            await self.graph.read(partial(work, part=part))
        return found

    async def scanned(self, targets: Collection[str], *, prompt: str, model: str) -> dict[str, set[str]]:
        """For each target, the later items it was scanned against."""
        rows = await self._chunked("scanned", targets, prompt=prompt, model=model)
        return {id: set(laters) for id, laters in rows}

    async def remember_scans(self, scans: list[dict[str, Any]], *, prompt: str, model: str) -> None:
        await self._write("remember_scans", scans=scans, prompt=prompt, model=model)

    # --- sweeps and endpoints ---

    async def tasks(self) -> list[str]:
        return sorted(await self._one("tasks") or [])

    async def upcoming(self, *, task: str | None, epoch: int, valid_at: int) -> list[str]:
        return list(await self._one("upcoming", task=task, epoch=epoch, valid_at=valid_at) or [])

    async def departed(self, checkpoint: str) -> set[str]:
        return set(await self._one("departed", checkpoint=checkpoint) or [])

    async def last_sweep(self, *, task: str | None, method: str) -> tuple[int, int] | None:
        async def work(tx: Tx) -> dict[str, Any] | None:
            return await tx.row("invalidation/last_sweep", workspace=self.workspace, task=task or "", method=method)

        row = await self.graph.read(work)
        return None if row is None else (row["epoch"], row["valid_at"])

    async def remember_sweep(
        self, *, task: str | None, method: str, epoch: int, valid_at: int, pairs: dict[str, int], usage: Usage
    ) -> None:
        await self._write(
            "remember_sweep",
            task=task or "",
            method=method,
            epoch=epoch,
            valid_at=valid_at,
            pairs=pairs,
            usage=usage.row(),
        )

    async def dialects(self, endpoint: str) -> list[dict[str, Any]]:
        return await self.graph.read(
            lambda tx: tx.rows("invalidation/dialects", workspace=self.workspace, endpoint=endpoint)
        )

    async def remember_dialect(self, endpoint: str, model: str, dialect: Mapping[str, Any]) -> None:
        await self._write("remember_dialect", endpoint=endpoint, model=model, **dialect)

    # --- batches ---

    async def jobs(self) -> list[dict[str, Any]]:
        """The batches that are not collected, oldest first."""
        return [
            row["job"]
            for row in await self.graph.read(lambda tx: tx.rows("invalidation/jobs", workspace=self.workspace))
        ]

    async def keep_job(self, job: Mapping[str, Any]) -> None:
        await self._write("keep_job", job=dict(job))

    # --- claims ---

    async def claim(
        self, keys: Collection[str], *, seconds: float | None = None, holder: str | None = None
    ) -> tuple[set[str], set[str]]:
        """Claim work; gives what was got, and what another process holds for longer than a claim lasts."""
        lease = round((self.lease if seconds is None else seconds) * 1000)

        async def work(tx: Tx) -> tuple[list[str], list[str]]:
            row = await tx.row(
                "invalidation/claim",
                workspace=self.workspace,
                keys=sorted(keys),
                holder=holder or self._holder,
                lease=lease,
                ordinary=round(self.lease * 1000),
            )
            return (row["got"], row["late"]) if row else ([], [])

        if not keys:
            return set(), set()
        got, late = await self.graph.write(work)
        return set(got), set(late)

    async def release(self, keys: Collection[str], *, holder: str | None = None) -> None:
        if keys:
            await self._write("release", keys=sorted(keys), holder=holder or self._holder)

    @asynccontextmanager
    async def held(self, keys: Collection[str]) -> AsyncIterator[tuple[set[str], set[str]]]:
        """Claims for as long as the block runs: renewed while it does, let go however it ends."""
        got, late = await self.claim(keys)

        async def renew() -> None:
            while True:
                await anyio.sleep(self.lease / 3)
                with suppress(TracegraphError):
                    await self.claim(got)

        fault: Exception | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(renew)
                try:
                    yield got, late
                except Exception as error:  # kept out of the group, which would wrap it
                    fault = error
                group.cancel_scope.cancel()
            if fault is not None:
                raise fault
        finally:
            with anyio.CancelScope(shield=True), suppress(TracegraphError):
                await self.release(got)


async def once(
    ledger: Ledger,
    work: Mapping[str, T],
    *,
    open_: Callable[[Collection[T]], Awaitable[set[int]]],
    run: Callable[[Sequence[T]], Awaitable[bool]],
    chunk: int,
    patience: float,
) -> None:
    """Do each piece of work once among all processes.

    `open_` gives the positions still to be done, asked after a claim is held, so that what another process finished
    is not done again; `run` does and saves a chunk, and says whether to go on. What others hold is waited for, for
    at most `patience` seconds after the last progress; what is out in a batch is left.
    """
    waiting = list(work)
    deadline = anyio.current_time() + patience
    pause = 0.05
    while waiting and anyio.current_time() < deadline:
        part = waiting[:chunk]
        async with ledger.held(part) as (got, late):
            mine = [key for key in part if key in got]
            todo = await open_([work[key] for key in mine]) if mine else set()
            if todo and not await run([work[key] for at, key in enumerate(mine) if at in todo]):
                return
        waiting = waiting[chunk:] + [key for key in part if key not in got and key not in late]
        if mine:
            deadline, pause = anyio.current_time() + patience, 0.05
        else:
            await anyio.sleep(pause)
            pause = min(1.0, pause * 1.5)


def chunks(values: Sequence[Any], size: int = CHUNK) -> list[list[Any]]:
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


def claim_key(what: str, *parts: str | None) -> str:
    """The name of a piece of work."""
    return digest({"what": what, "parts": list(parts)})
