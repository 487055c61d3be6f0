"""How quick tracegraph is, in round trips: each figure beside a bare `RETURN 1` of the same run.

    make bench                    # stores of 10,000 and 100,000 items
    make bench BENCH="--large"    # and 1,000,000

One process, one embedded server of its own folder, interleaved rounds, medians. Writes benchmarks/speed.json, and shows
the three queries of an admission that touch most of the store. Speed is a ratio within one run and is asserted nowhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import tracegraph
from tracegraph import Frontier, Item, Obligation, Receipt
from tracegraph.admission import gates
from tracegraph.admission.cover import cover
from tracegraph.graph import Graph, Tx, cypher
from tracegraph.model import Policy, new_id
from tracegraph.workspace import Workspace

HERE = Path(__file__).parent
Work = Callable[[], Awaitable[Any]]


class Rounds:
    """Interleaved timings: every case once a round, so that the machine's noise falls on all alike."""

    def __init__(self) -> None:
        self.cases: dict[str, tuple[Work, Work | None]] = {}
        self.times: dict[str, list[float]] = {}

    def add(self, name: str, work: Work, before: Work | None = None) -> None:
        """A case; `before` runs first in each round and is not timed."""
        self.cases[name] = (work, before)
        self.times[name] = []

    async def run(self, rounds: int, warm: int = 3) -> None:
        for number in range(rounds + warm):
            for name, (work, before) in self.cases.items():
                if before is not None:
                    await before()
                begun = time.perf_counter()
                await work()
                if number >= warm:
                    self.times[name].append(time.perf_counter() - begun)

    def median(self, name: str) -> float:
        return statistics.median(self.times[name])


def fact(number: int, *, task: str | None, key: str | None = None) -> Item:
    return Item(
        id=new_id("i"),
        key=key or f"key-{number}",
        scope="bench",
        task=task,
        content=f"Statement {number}: " + "words that fill a line " * 8,
        supports=[f"d{number % 500}"],
        receipts=[Receipt(uri=f"log:{number}", text=f"source {number}")],
    )


async def fill(ws: Workspace, items: int, task: str, *, versions: int = 1, keys: str = "h") -> float:
    """Record `items` items of a task, `versions` of each key; items a second."""
    begun = time.perf_counter()
    for start in range(0, items, 1_000):
        rows = [
            fact(number, task=task, key=f"{keys}-{number // versions}")
            for number in range(start, min(start + 1_000, items))
        ]
        await ws.record(*rows)
    return items / (time.perf_counter() - begun)


async def prepared(graph: Graph, name: str) -> Workspace:
    ws = await graph.workspace(f"{name}-{new_id('b')[:10]}", owner="o", policy={"max_items": 64})
    await ws.grant(role="r", read=["bench"], write=["bench"], principal="p")
    return ws


async def returning(ws: Workspace, pool: int, task: str) -> tuple[Work, Work]:
    """An admission of a pool of this size, decided, signed and recorded; and the departure before it."""
    await fill(ws, pool - 2, task, keys=task)
    await ws.open_obligation(
        Obligation(
            scope="bench", role="r", task=task, content="Owed.", requires=["d1!", "d2"], frontier=Frontier(content="f")
        )
    )
    tickets: list[str] = []

    async def leave() -> None:
        tickets.append(await ws.depart(principal="p", role="r", task=task))

    async def come_back() -> None:
        result = await ws.admit(tickets[-1], principal="p")
        assert result.decision == "admitted"

    return come_back, leave


async def measure(sizes: list[int], rounds: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    async with tracegraph.connect() as graph:

        async def bare() -> None:
            await graph._driver.execute_query("RETURN 1")

        # --- admissions ---
        out["first admission after a cold start, s"] = await _first(graph)
        runs = Rounds()
        runs.add("RETURN 1", bare)
        for pool in (50, 500, 5_000):
            ws = await prepared(graph, f"pool{pool}")
            runs.add(f"admit, pool {pool}", *await returning(ws, pool, "t"))
        for size in sizes:
            ws = await prepared(graph, f"store{size}")
            before = _stored()
            out[f"items/s, batches of 1,000, store of {size}"] = await fill(ws, size, "other")
            out[f"bytes of store an item, store of {size}"] = (_stored() - before) / size
            runs.add(f"admit, pool 500, store of {size}", *await returning(ws, 500, "t"))
            runs.add(f"join, pool 500, store of {size}", _join(ws, "t"))
        for depth in (10, 100):
            ws = await prepared(graph, f"depth{depth}")
            await fill(ws, 500 * depth, "t", versions=depth, keys="deep")
            runs.add(f"join, 500 keys, history {depth} deep", _join(ws, "t"))
        ws = await prepared(graph, "small")
        number = iter(range(10**9))
        runs.add("record one item", lambda: ws.record(fact(next(number), task="t")))
        runs.add("record 1,000 items", lambda: ws.record(*(fact(next(number), task="u") for _ in range(1_000))))
        small = await prepared(graph, "acts")
        await fill(small, 50, "t")
        joined = await small.join(principal="p", role="r", task="t")
        assert joined.view is not None
        view = joined.view
        await small.remember("A memory.", principal="p", grounded_in=[joined.items[0].id])
        runs.add("open_view, 50 items", lambda: small.open_view(view, principal="p"))
        runs.add("recall", lambda: small.recall(view, principal="p"))
        runs.add("why", lambda: small.why(joined.items[0].id, joined.cycle_id))
        away = await prepared(graph, "away")
        await fill(away, 50, "t")
        runs.add("depart, 50 items", lambda: away.depart(principal="p", role="r", task="t"))
        await runs.run(rounds)
        base = runs.median("RETURN 1")
        for name in runs.cases:
            out[name] = {"ms": runs.median(name) * 1e3, "R": runs.median(name) / base}

        out["dearest queries of an admission, pool 500"] = await _dearest(graph)

        # --- concurrent recorders ---
        for writers in (1, 4, 16, 64):
            crowd = await prepared(graph, f"writers{writers}")
            count = max(192 // writers, 8)

            async def one(ws: Workspace = crowd, count: int = count) -> None:
                for _ in range(count):
                    await ws.record(fact(next(number), task="t"))

            begun = time.perf_counter()
            await asyncio.gather(*(one() for _ in range(writers)))
            taken = time.perf_counter() - begun
            out[f"{writers} concurrent recorders, items/s"] = count * writers / taken
            out[f"{writers} concurrent recorders, items a RETURN 1"] = count * writers / taken * base
    out["cover, 5,000 items x 500 dependencies, ms"] = _cover()
    out["import tracegraph, s"] = _command("import tracegraph")
    out["tracegraph --help, s"] = _command(
        "import sys; sys.argv = ['tracegraph', '--help']; from tracegraph.cli import main; main()"
    )
    return out


async def _first(graph: Graph) -> float:
    ws = await prepared(graph, "first")
    ticket = await ws.depart(principal="p", role="r", task="t")
    begun = time.perf_counter()
    await ws.admit(ticket, principal="p")
    return time.perf_counter() - begun


def _stored() -> int:
    """Bytes of the store, without its transaction logs."""
    home = Path(os.environ["TRACEGRAPH_HOME"])
    return sum(path.stat().st_size for path in home.glob("*/data/databases/**/*") if path.is_file())


async def _dearest(graph: Graph) -> list[dict[str, Any]]:
    """The named queries of one return, profiled: hits in the store, rows and operators of the three dearest."""
    ws = await prepared(graph, "profiled")
    come_back, leave = await returning(ws, 500, "t")
    await leave()
    seen: list[dict[str, Any]] = []
    rows, run = Tx.rows, Tx.run

    async def profiled(self: Tx, name: str, **parameters: Any) -> list[dict[str, Any]]:
        option, _, text = cypher(name).partition("\n")
        result = await self._inner.run(f"{option} PROFILE\n{text}", parameters)
        found = await result.data()
        plan = (await result.consume()).profile
        assert plan is not None
        steps = list(_steps(plan))
        top = sorted(steps, key=lambda step: -step[1])[:3]
        seen.append({"query": name, "hits": sum(hits for _, hits in steps), "most": dict(top)})
        return found

    async def ran(self: Tx, name: str, **parameters: Any) -> None:
        await profiled(self, name, **parameters)

    Tx.rows, Tx.run = profiled, ran  # type: ignore[method-assign]
    try:
        await come_back()
    finally:
        Tx.rows, Tx.run = rows, run  # type: ignore[method-assign]
    return sorted(seen, key=lambda one: -one["hits"])[:3]


def _steps(plan: dict[str, Any]) -> Iterator[tuple[str, int]]:
    details = str(plan["args"].get("Details", "")).split("\n")[0][:80]
    yield f"{plan['operatorType'].partition('@')[0]} {details}", int(plan["args"].get("DbHits", 0))
    for child in plan.get("children", ()):
        yield from _steps(child)


def _join(ws: Workspace, task: str) -> Work:
    return lambda: ws.join(principal="p", role="r", task=task, policy={"max_items": 4})


def _cover() -> float:
    def item(number: int, kind: str, supports: list[str], requires: list[tuple[str, bool]]) -> gates.Judged:
        return gates.Judged(
            id=f"i{number}", reasons=set(), current=None, content_digest="", premises=[], sources=[], kind=kind,
            length=40 + number * 37 % 160, valid_from=number, epoch=1, place=0, task=None, receipts=1,
            supports=supports, requires=requires, obligation=None,
        )  # fmt: skip

    pool = {f"i{n}": item(n, "fact", [f"d{n * 7 % 500}", f"d{n * 13 % 500}", f"d{n % 500}"], []) for n in range(5_000)}
    pool["i9999"] = item(9_999, "obligation", [], [(f"d{n}", n % 3 == 0) for n in range(500)])
    policy = Policy(max_items=1_000, max_chars=10**6)
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        cover(pool, policy)
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e3


def _command(code: str) -> float:
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)  # noqa: S603
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="a store of 1,000,000 items too (several minutes)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="*", help="other store sizes")
    arguments = parser.parse_args()
    sizes = arguments.sizes or ([10_000, 100_000] + ([1_000_000] if arguments.large else []))
    from tracegraph import embedded

    os.environ["TRACEGRAPH_CACHE"] = str(embedded.jar_dir().parent)
    with tempfile.TemporaryDirectory(prefix="tracegraph-bench-") as folder:
        os.environ["TRACEGRAPH_HOME"] = folder
        begun = time.perf_counter()
        server = embedded.start()
        started = time.perf_counter() - begun
        try:
            out = asyncio.run(measure(sizes, arguments.rounds))
        finally:
            embedded.stop()
    out = {"Neo4j": server.version, "embedded start, s": started, **out}
    (HERE / "speed.json").write_text(json.dumps(out, indent=2) + "\n", encoding="utf-8")
    table = Table("what", "figure", "x RETURN 1")
    for name, value in out.items():
        if isinstance(value, dict):
            table.add_row(name, f"{value['ms']:.1f} ms", f"{value['R']:.1f}")
        elif isinstance(value, list):
            for one in value:
                most = "; ".join(f"{hits:,} {step}" for step, hits in one["most"].items())
                table.add_row(name, f"{one['query']}: {one['hits']:,} hits ({most})", "")
        else:
            table.add_row(name, f"{value:,.2f}" if isinstance(value, float) else str(value), "")
    Console().print(table)


if __name__ == "__main__":
    main()
