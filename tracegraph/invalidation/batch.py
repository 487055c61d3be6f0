"""A sweep over the OpenAI Batch API: the same questions as a file, answered on somebody else's machines in a day.

Three steps, each of which can be killed and run again: `submit` writes a job to the graph before anything is uploaded,
and finds its batch again by the job's name; `poll` only looks; `collect` takes answers that are not kept yet. What is
out in a batch is claimed, so that no other process asks it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tracegraph.errors import Unavailable
from tracegraph.invalidation.endpoint import Dialect, Endpoint, Reply, read
from tracegraph.invalidation.evidence import Answer, Evidence, Meter, Pair, Request, Scope, Usage
from tracegraph.invalidation.ledger import Ledger, chunks
from tracegraph.invalidation.pipeline import Invalidation, Todo, pair_of, pinned
from tracegraph.invalidation.prompts import judging, pair_data
from tracegraph.invalidation.scan import PairScanner, PremiseScanner
from tracegraph.invalidation.verify import ModelVerifier
from tracegraph.model import Pairs, new_id

REQUESTS = 5_000
"""Questions in one batch; the API takes 50,000 in 200 MB."""
WINDOW = 26 * 3600.0
"""Seconds that a batch's claims last: its completion window, and a little."""
ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass
class Batched:
    """Where a batch sweep is: questions sent now, the jobs that are out by status, and what was collected now."""

    done: bool = False
    sent: int = 0
    jobs: dict[str, str] = field(default_factory=dict)
    collected: Pairs = field(default_factory=Pairs)


class BatchSweep:
    """A sweep in batches. Run `step` again and again, from any process, until it says `done`."""

    def __init__(self, method: Invalidation, ledger: Ledger) -> None:
        if (
            not isinstance(method.scanner, (PremiseScanner, PairScanner))
            or not isinstance(method.verifier, ModelVerifier)
            or method.endpoint is None
        ):
            raise TypeError("a batch sweep needs the scanner and the verifier of an endpoint")
        self.method = method
        self.ledger = ledger
        self.scanner: PremiseScanner | PairScanner = method.scanner
        self.verifier: ModelVerifier = method.verifier
        self.endpoint: Endpoint = method.endpoint

    async def step(self) -> Batched:
        """Look after what is out, collect what has ended, and send what can be asked next."""
        report = Batched(jobs=await self.poll())
        report.collected = await self.collect()
        report.sent = await self.submit()
        report.jobs = {job["id"]: job["status"] for job in await self.ledger.jobs()}
        report.done = not report.jobs
        return report

    # --- submit ---

    async def submit(self) -> int:
        """Send what is open and not out already; gives how many questions were sent."""
        for job in await self.ledger.jobs():
            if job["status"] == "preparing":
                await self._send(job)
        requests: dict[str, Request] = {}
        finished: list[tuple[Scope, str | None]] = []
        for task in (None, *await self.ledger.tasks()):
            scope, judged = await self.method.of_sweep(self.ledger, task, await pinned(self.ledger))
            recovered = await self.method.recoveries(self.ledger, scope, judged, None)
            found = await self.scanner.requests(scope, self.ledger)
            if not found:
                scanned = await self.scanner.scan(scope, self.ledger, Meter(0))
                todos, _ = await self.method.todos(self.ledger, scope, scanned, None)
                found = await self._judging([*recovered, *todos])
                if not found:
                    finished.append((scope, task))
            requests |= {one.key: one for one in found}
        sent = 0
        for part in chunks(sorted(requests), REQUESTS):
            sent += await self._prepare([requests[key] for key in part])
        for scope, task in finished:
            await self.ledger.remember_sweep(
                task=task,
                method=self.method.method,
                epoch=scope.epoch,
                valid_at=scope.valid_at,
                pairs={},
                usage=Usage(),
            )
        return sent

    async def _judging(self, todos: Sequence[Todo]) -> list[Request]:
        evidence = await self._evidence(todos)
        found: list[Request] = []
        unfit: list[tuple[Pair, Answer]] = []
        open_ = await self.method.unjudged(self.ledger, todos)
        for at, todo in enumerate(todos):
            if at not in open_ or todo.later not in evidence or todo.earlier not in evidence:
                continue
            pair = pair_of(todo, evidence)
            key = pair.key(self.verifier.prompt(todo.ask), self.verifier.model)
            data = pair_data(pair, self.verifier.name(pair))
            if data is None:
                unfit.append((pair, Answer("uncertain", cause="too_long")))
                continue
            ids = (todo.later, todo.earlier, *todo.behind)
            found.append(Request(key, todo.ask, ids, todo.task, self.verifier.model, judging(todo.ask), data))
        await self._answer(unfit)
        return found

    async def _prepare(self, requests: list[Request]) -> int:
        """Write a job, claim its work, and send it."""
        job: dict[str, Any] = {
            "id": new_id("job"),
            "status": "preparing",
            "method": self.method.method,
            "keys": [one.key for one in requests],
            "requests": json.dumps([[one.what, list(one.ids), one.task] for one in requests]),
            "created_at": self.ledger.now(),
        }
        await self.ledger.keep_job(job)
        return await self._send(job, {one.key: one for one in requests})

    async def _send(self, job: dict[str, Any], requests: Mapping[str, Request] | None = None) -> int:
        """Upload a prepared job, unless an earlier run did; gives how many questions it holds."""
        client = self.endpoint.client
        if requests is None:
            async for batch in client.batches.list():
                if (batch.metadata or {}).get("tracegraph") == job["id"]:
                    await self.ledger.keep_job({"id": job["id"], "batch": batch.id, "status": "submitted"})
                    return 0
            requests = await self._again(job)
        got, _ = await self.ledger.claim(list(requests), seconds=WINDOW, holder=job["id"])
        mine = [requests[key] for key in sorted(got)]
        if not mine:
            await self.ledger.keep_job({"id": job["id"], "status": "collected"})
            return 0
        lines = [
            {
                "custom_id": one.key,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": self.endpoint.dialects.get(one.model, Dialect()).request(
                    one.model, one.prompt, one.prompt.messages(one.data)
                ),
            }
            for one in mine
        ]
        content = "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
        uploaded = await client.files.create(file=(f"{job['id']}.jsonl", content.encode()), purpose="batch")
        batch = await client.batches.create(
            input_file_id=uploaded.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"tracegraph": job["id"]},
        )
        await self.ledger.keep_job({"id": job["id"], "batch": batch.id, "status": "submitted"})
        return len(mine)

    async def _again(self, job: Mapping[str, Any]) -> dict[str, Request]:
        """The questions of a job that was prepared and never sent, as far as they are still open."""
        wanted = set(job["keys"])
        found: dict[str, Request] = {}
        for task in (None, *await self.ledger.tasks()):
            scope, _ = await self.method.of_sweep(self.ledger, task, await pinned(self.ledger))
            found |= {one.key: one for one in await self.scanner.requests(scope, self.ledger)}
        todos = [_todo(*row) for row in json.loads(job["requests"]) if row[0] in ("judge", "restore")]
        found |= {one.key: one for one in await self._judging(todos)}
        return {key: one for key, one in found.items() if key in wanted}

    # --- poll and collect ---

    async def poll(self) -> dict[str, str]:
        """Look at the jobs that are out; gives each one's status."""
        found: dict[str, str] = {}
        for job in await self.ledger.jobs():
            found[job["id"]] = job["status"]
            if job["status"] == "submitted":
                batch = await self.endpoint.client.batches.retrieve(job["batch"])
                if batch.status in ENDED:
                    ended = {"outcome": batch.status, "output": batch.output_file_id, "errors": batch.error_file_id}
                    await self.ledger.keep_job({"id": job["id"], "status": "ended", **ended})
                    found[job["id"]] = "ended"
        return found

    async def collect(self) -> Pairs:
        """Keep the answers of the jobs that have ended; what has none stays proposed and is sent again.

        Raises `unavailable` when the endpoint refused a whole batch.
        """
        counts: Counter[str] = Counter()
        refused: list[str] = []
        for job in await self.ledger.jobs():
            if job["status"] == "ended":
                if job["method"] == self.method.method:
                    counts += await self._collect(job)
                await self.ledger.release(job["keys"], holder=job["id"])
                await self.ledger.keep_job({"id": job["id"], "status": "collected"})
                if not job.get("output"):
                    refused.append(str(job.get("outcome")))
        if refused:
            raise Unavailable(
                f"{len(refused)} batches ended without an answer ({', '.join(sorted(set(refused)))}).",
                hint="Look at the batch at the endpoint; the next submit sends what is open again.",
            )
        return Pairs(**counts)

    async def _collect(self, job: Mapping[str, Any]) -> Counter[str]:
        replies: dict[str, Reply] = {}
        for name in ("output", "errors"):
            if job.get(name):
                content = await self.endpoint.client.files.content(job[name])
                for key, reply in _replies(content.text):
                    replies.setdefault(key, reply)
        counts: Counter[str] = Counter()
        rows = dict(zip(job["keys"], json.loads(job["requests"]), strict=True))
        known = [(key, rows[key], reply) for key, reply in sorted(replies.items()) if key in rows]
        for part in chunks(known, 500):
            spent = sum((reply.usage for _, _, reply in part), Usage())
            counts.update(calls=spent.calls, tokens_in=spent.tokens_in, tokens_out=spent.tokens_out)
            good = [(key, row, reply) for key, row, reply in part if reply.cause != "endpoint"]
            await self._keep_scans([(row, reply) for _, row, reply in good if row[0] in ("read", "scan")])
            judged = [(_todo(*row), reply) for _, row, reply in good if row[0] in ("judge", "restore")]
            open_ = await self.method.unjudged(self.ledger, [todo for todo, _ in judged])
            judged = [one for at, one in enumerate(judged) if at in open_]
            evidence = await self._evidence([todo for todo, _ in judged])
            await self._answer(
                [
                    (pair, self.verifier.answer(pair, reply))
                    for todo, reply in judged
                    if todo.later in evidence and todo.earlier in evidence
                    for pair in [pair_of(todo, evidence)]
                ]
            )
            counts.update(judged=len(judged), proposed=len(judged))
        return counts

    async def _keep_scans(self, rows: Sequence[tuple[list[Any], Reply]]) -> None:
        evidence = await self.ledger.evidence({id for row, _ in rows for id in row[1]})
        kept: list[dict[str, Any]] = []
        pairs: list[tuple[str, str, str | None]] = []
        for (_, ids, _task), reply in rows:
            items: list[Evidence] = [evidence[id] for id in ids if id in evidence]
            if len(items) < len(ids):
                continue
            if isinstance(self.scanner, PremiseScanner):
                kept.append(self.scanner.reading(items[0], reply))
            else:
                found, row = self.scanner.scan_of(items[0], items[1:], reply)
                pairs += [(id, items[0].id, evidence[id].task or items[0].task) for id in found]
                kept.append(row)
        if not kept:
            return
        if isinstance(self.scanner, PremiseScanner):
            await self.ledger.remember_readings(kept, prompt=self.scanner.prompt, model=self.scanner.model)
        else:
            await self.ledger.propose(pairs)
            await self.ledger.remember_scans(kept, prompt=self.scanner.prompt, model=self.scanner.model)

    async def _answer(self, answers: Sequence[tuple[Pair, Answer]]) -> None:
        prompts = {ask: self.verifier.prompt(ask) for ask in ("judge", "restore")}
        await self.ledger.answer(answers, model=self.verifier.model, prompts=prompts)  # type: ignore[arg-type]

    async def _evidence(self, todos: Sequence[Todo]) -> dict[str, Evidence]:
        ids = {id for todo in todos for id in (todo.later, todo.earlier, *todo.behind)}
        return await self.ledger.evidence(ids)


def _todo(what: Any, ids: Sequence[str], task: str | None) -> Todo:
    later, earlier, *behind = ids
    return Todo(later, earlier, task, what, tuple(behind))


def _replies(text: str) -> list[tuple[str, Reply]]:
    """The replies of a batch's output or error file; a line that is none is skipped, and its question sent again."""
    found: list[tuple[str, Reply]] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            key, response = row["custom_id"], row.get("response") or {}
            ok = response.get("status_code") == 200
            reply = read(response["body"]) if ok else Reply(None, "endpoint", Usage())
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if isinstance(key, str):
            found.append((key, replace(reply, usage=reply.usage + Usage(calls=1))))
    return found
