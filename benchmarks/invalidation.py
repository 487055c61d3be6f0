"""What verification costs on the STALE histories: calls, tokens, pairs, for both scans and for 1, 2 and 4 agents.

    python benchmarks/invalidation.py [--histories N] [--strategy premises|pairs] [--json FILE]

Reads data/stale/T1_T2_subset_full.json and pairs_400.jsonl under TRACEGRAPH_SHARED (by default ../shared beside the
project); runs against the graph that `tracegraph.connect()` finds. Every sentence of a user's turn is an item. Four
agents leave before the session in which the change is said, and return after it one by one.

The model is a local stub on the real wire format. It knows the gold pair of each history and says `invalidates` about
it, `compatible` about every other. In the `pairs` scan it names the gold pair alone. In the `premises` scan it reads
every sentence by a small lexicon (aspects by keyword, the sentence's own content words), and gives the gold pair's two
sentences one more topic in common. So the calls, the prompts, their tokens and who pays them are what a model would be
sent. The judgments are not: whether a model sees that bark scorpions mean a move from Portland, how many pairs its
readings would propose, and how often it errs, a stub cannot show.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tracegraph  # noqa: E402
from tests.invalidation.stub import Asked, Stub, verdict  # noqa: E402
from tracegraph import Item, Receipt  # noqa: E402
from tracegraph.invalidation.endpoint import Endpoint  # noqa: E402
from tracegraph.invalidation.pipeline import Invalidation  # noqa: E402
from tracegraph.invalidation.scan import content_words  # noqa: E402
from tracegraph.model import new_id  # noqa: E402

DATA = Path(os.environ.get("TRACEGRAPH_SHARED") or ROOT.parent / "shared") / "data" / "stale"
AGENTS = ("a1", "a2", "a3", "a4")
ASPECTS = {
    "place": "live living city town home house apartment move moved moving neighborhood local street country",
    "time": "morning evening night week weekend month schedule time hour date calendar tomorrow deadline early late",
    "work": "job work working office company team manager client project boss shift career",
    "person": "friend wife husband son daughter kid child baby mom dad brother sister partner",
    "health": "doctor pain sleep diet allergy allergic vegetarian vegan exercise injury medication health gym run",
    "money": "budget price cost pay salary rent loan save saving money cheap expensive dollar",
    "possession": "car bike laptop phone machine computer camera book equipment gear tool device",
    "preference": "like love prefer favorite enjoy hate want interested",
}
LEXICON = {word: aspect for aspect, words in ASPECTS.items() for word in words.split()}


def counter() -> tuple[Callable[[str], int], str]:
    """A token counter, and its name."""
    try:
        import bpe_openai
    except ImportError:
        return lambda text: (len(text.encode()) + 3) // 4, "a quarter of the UTF-8 bytes"
    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text)), "o200k_base"


def sentences(turns: list[dict[str, str]]) -> list[str]:
    told = [one["content"] for one in turns if one["role"] == "user"]
    return [part for one in told for part in (piece.strip() for piece in re.split(r"(?<=[.!?])\s+", one)) if part]


def nearest(told: list[str], wanted: str) -> int:
    """The sentence that says `wanted`, or most of its words."""
    words = content_words(wanted)
    return max(range(len(told)), key=lambda at: (told[at] in wanted, len(words & content_words(told[at]))))


class History:
    """One STALE history as items: what was said before the change's session, and in it."""

    def __init__(self, row: dict[str, Any]) -> None:
        old, new = (int(at) for at in row["relevant_session_index"])
        self.type = row["type"]
        self.before: list[tuple[datetime, list[str]]] = []
        for session, at in zip(row["haystack_session"][:new], row["timestamps"][:new], strict=True):
            self.before.append((datetime.strptime(at, "%Y-%m-%d %H:%M").replace(tzinfo=UTC), sentences(session)))
        self.change = sentences(row["haystack_session"][new])
        self.at = datetime.strptime(row["timestamps"][new], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        self.old = self.before[old][1][nearest(self.before[old][1], row["M_old"])]
        self.new = self.change[nearest(self.change, row["M_new"])]
        self.gold = (f"n{self.change.index(self.new)}", f"s{old}.{self.before[old][1].index(self.old)}")

    def script(self, asked: Asked) -> Any:
        data = asked.data
        if asked.kind == "verify":
            is_gold = (data["later"]["about"], data["earlier"]["about"]) == self.gold
            return verdict(asked, "invalidates" if is_gold else "compatible")
        if asked.kind == "scan":
            hit = [one["name"] for one in data["later"] if (one["about"], data["target"]["about"]) == self.gold]
            return {"target": data["target"]["name"], "affected": hit}
        item = data["item"]
        words = sorted(content_words(item["statement"]))
        by_aspect: dict[str, list[str]] = {}
        for word in words:
            by_aspect.setdefault(LEXICON.get(word, "other"), []).append(word)
        topics = [
            {"aspect": aspect, "words": some[:10], "says": f"It is about {' '.join(some[:3])}."}
            for aspect, some in sorted(by_aspect.items(), key=lambda one: (one[0] == "other", -len(one[1])))
        ][:4]
        gold = {"aspect": "condition", "words": ["goldpremise"], "says": "What the change is about."}
        old, new = item["about"] == self.gold[1], item["about"] == self.gold[0]
        return {
            "item": item["name"],
            "relies_on": topics + [gold] * old,
            "changes": topics + [gold] * new,
        }


async def run(graph: tracegraph.Graph, history: History, strategy: Any, count: Callable[[str], int]) -> dict[str, Any]:
    """One history: what each agent's return asked, and what it found."""
    now = history.before[0][0]
    with Stub(history.script, count=count) as stub:
        method = Invalidation.on(Endpoint(stub.url, "k", concurrency=8), "stub", strategy=strategy, budget=None)
        ws = await graph.workspace(
            new_id("stale"), owner="o", clock=lambda: now, policy={"ticket_days": 36_500}, invalidation=method
        )
        await ws.grant(role="r", read=["s"], write=["s"])
        for agent in AGENTS:
            await ws.grant(role="r", principal=agent)
        for session, (at, told) in enumerate(history.before):
            now = max(now, at)
            if told:
                await ws.record(*(_item(f"s{session}.{n}", text) for n, text in enumerate(told)))
        tickets = {agent: await ws.depart(principal=agent, role="r", task=agent) for agent in AGENTS}
        now = max(now, history.at) + timedelta(minutes=1)
        for n, text in enumerate(history.change):
            now += timedelta(seconds=1)
            await ws.record(_item(f"n{n}", text))
        returns = []
        for agent in AGENTS:
            stub.clear()
            started = time.perf_counter()
            result = await ws.admit(tickets[agent], principal=agent)
            assert result.pairs is not None
            kinds = Counter(one.kind for one in stub.asked)
            tokens = Counter[str]()
            for one in stub.asked:
                tokens[one.kind] += sum(count(message["content"]) for message in one.body["messages"])
            returns.append(
                {
                    "calls": len(stub.asked), "by_kind": dict(kinds), "prompt_tokens": sum(tokens.values()),
                    "tokens_by_kind": dict(tokens), "proposed": result.pairs.proposed, "reused": result.pairs.reused,
                    "unjudged": result.pairs.unjudged, "seconds": round(time.perf_counter() - started, 2),
                    "gold_invalidated": "invalidated" in result.rejected.get(history.gold[1], ()),
                }
            )  # fmt: skip
        await method.close()
    items = sum(len(told) for _, told in history.before)
    return {
        "type": history.type, "strategy": strategy, "earlier": items, "later": len(history.change),
        "product": items * len(history.change), "returns": returns,
    }  # fmt: skip


def _item(id: str, text: str) -> Item:
    return Item(id=id, scope="s", content=text, receipts=[Receipt(uri="chat", text=text)])


def by_words_alone() -> dict[str, float]:
    """In how many of the 400 cases the old and the new observation share a word at all: what a reader must add."""
    hits: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for line in (DATA / "pairs_400.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        seen[row["type"]] += 1
        hits[row["type"]] += bool(content_words(row["M_old"]) & content_words(row["M_new"]))
    return {kind: hits[kind] / seen[kind] for kind in sorted(seen)}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over histories."""

    def mean(values: list[float]) -> float:
        return round(statistics.fmean(values), 1)

    out: dict[str, Any] = {
        "histories": len(rows),
        "earlier": mean([row["earlier"] for row in rows]),
        "later": mean([row["later"] for row in rows]),
        "gold_found": sum(row["returns"][0]["gold_invalidated"] for row in rows),
    }
    for at, name in ((0, "1st"), (1, "2nd"), (3, "4th")):
        some = [row["returns"][at] for row in rows]
        kinds = sorted({kind for one in some for kind in one["by_kind"]})
        out[name] = {
            "calls": mean([one["calls"] for one in some]),
            "prompt_tokens": mean([one["prompt_tokens"] for one in some]),
            "proposed": mean([one["proposed"] for one in some]),
            "seconds": mean([one["seconds"] for one in some]),
            **{f"{kind} calls": mean([one["by_kind"].get(kind, 0) for one in some]) for kind in kinds},
            **{f"{kind} tokens": mean([one["tokens_by_kind"].get(kind, 0) for one in some]) for kind in kinds},
        }
    return out


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--histories", type=int, default=30, help="how many, the 25 of Type II first")
    parser.add_argument("--strategy", choices=("premises", "pairs"), help="by default both")
    parser.add_argument("--skip", type=int, default=0, help="how many to leave out at the beginning")
    parser.add_argument("--json", type=Path, help="write every return's figures here")
    args = parser.parse_args()
    rows = json.loads((DATA / "T1_T2_subset_full.json").read_text(encoding="utf-8"))
    rows.sort(key=lambda row: row["type"], reverse=True)
    count, name = counter()
    print(f"tokens: {name}")
    print(f"old and new observation share a content word (pairs_400): {by_words_alone()}")
    found: list[dict[str, Any]] = []
    async with tracegraph.connect() as graph:
        for strategy in (args.strategy,) if args.strategy else ("premises", "pairs"):
            for row in rows[args.skip : args.skip + args.histories]:
                found.append(await run(graph, History(row), strategy, count))
                if args.json:
                    args.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
            some = [row for row in found if row["strategy"] == strategy]
            print(strategy, json.dumps(summary(some), indent=1))


if __name__ == "__main__":
    asyncio.run(main())
