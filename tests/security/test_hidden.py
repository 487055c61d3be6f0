"""What a reader can learn of items it may not read: two workspaces that differ only in those, seen by the same reader.

Everything A1 is told is compared word by word, random ids apart. Epochs are no secret (SECURITY.md), so where the one
workspace records something hidden, the other records something that concerns nobody.
"""

from __future__ import annotations

import base64
import inspect
import json
import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.security.conftest import START, Clock, Team, team_of
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, TracegraphError, Workspace
from tracegraph.graph import Tx
from tracegraph.invalidation.evidence import Answer, Ask, Forecast, Pair, Scanned
from tracegraph.invalidation.pipeline import Invalidation
from tracegraph.scenarios import forget
from tracegraph.signing import Keys

pytestmark = pytest.mark.anyio

A1 = {"principal": "A1", "role": "itinerary", "task": "plan"}
RANDOM = re.compile(r"[a-z]+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
QUERY = "quiet hotel near the station"


def item(id: str, scope: str, content: str, **more: Any) -> Item:
    receipts = [Receipt(id=f"r_{id}", uri=f"mail:{id}", text=content)]
    return Item(**{"id": id, "scope": scope, "content": content, "receipts": receipts, **more})


@dataclass
class Seen:
    """What A1 was told, and by which queries each refusal came about."""

    told: list[Any] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)


async def hide(ws: Workspace, hidden: bool, number: int, clock: Clock) -> None:
    """One batch that A1 may not see; or one that is about nobody."""
    clock.now += timedelta(minutes=1)
    if not hidden:
        await ws.grant(role="nobody", read=["nowhere"])
        return
    match number:
        case 0:
            crowd = [
                item(f"x{n}", "vault", "A quiet hotel near the station.", supports=["hotel", "quiet"])
                for n in range(60)
            ]
            same = item("x_key", "vault", "Another hotel.", key="hotel", task="plan", supports=["quiet"])
            long = item("x_long", "vault", "long " * 3000)
            bare = Item(id="x_bare", scope="vault", content="Without a receipt.", kind="constraint")
            derived = item("x_derived", "trip", "A quiet hotel near the station, they say.", derived_from=["x0"])
            rests = item("x_rests", "vault", "Near the hotel.", depends_on=["h0"])
            await ws.record(*crowd, same, long, bare, derived, rests)
        case 1:
            owed = Obligation(id="x_owed", scope="vault", role="payer", content="Pay.", requires=["hotel!", "secret!"],
                              frontier=Frontier(id="x_front", content="Not paid."))  # fmt: skip
            await ws.open_obligation(owed)
        case 2:
            await ws.verdict(later="h0", earlier="x1", says="invalidates", quote="Sunrise")
        case 3:
            await ws.record(
                item("x_new", "vault", "A newer hotel.", key="hotel"), item("x_much", "vault", "Much.", task="plan")
            )
        case 4:
            await ws.revoke("r_x2", reason="forged")
        case 5:
            await ws.retract("x3")
        case 6:
            await ws.verdict(later="x_new", earlier="x4", says="proposed")
        case 7:
            await ws.erase("x5", reason="asked for")


async def tell(seen: Seen, asked: list[str], call: Any, *, refusal: bool = False) -> Any:
    asked.clear()
    try:
        found = await call
    except TracegraphError as error:
        seen.told.append([error.code, error.message, error.reasons])
        seen.asked.append(list(asked))
        return None
    assert not refusal
    seen.told.append(found)
    return found


async def told(team: Team, hidden: bool, asked: list[str]) -> Seen:
    ws, clock, seen = team.ws, team.clock, Seen()
    await ws.set_policy(fill="relevance", max_items=5, verification="required")
    await ws.record(item("h0", "trip", "Sunrise is booked.", key="hotel", supports=["hotel"]), author="A1")
    await ws.record(
        item("n0", "trip", "A hotel near the station."), item("n1", "trip", "The train is late."), author="A1"
    )
    owed = Obligation(id="o0", scope="trip", role="itinerary", task="plan", content="Arrange it.",
                      requires=["hotel!", "quiet"], frontier=Frontier(id="f0", content="Nothing yet."))  # fmt: skip
    await ws.open_obligation(owed, author="A1")
    await ws.remember("Ask for a quiet room.", principal="A1", grounded_in=["h0"])
    for number in range(3):
        await hide(ws, hidden, number, clock)
    ticket = await ws.depart(**A1)
    for number in range(3, 8):
        await hide(ws, hidden, number, clock)

    async def look(**clocks: Any) -> None:
        await tell(seen, asked, ws.read(**A1, **clocks))
        await tell(seen, asked, ws.join(**A1, query=QUERY, **clocks))

    await look(valid_at=clock.now)
    await tell(seen, asked, ws.admit(ticket, principal="A1", query=QUERY))  # blocked: nothing it may read is quiet
    await tell(seen, asked, ws.admit(ticket, principal="A1", query=QUERY, policy={"max_items": 1}))
    await ws.record(item("q0", "trip", "The rooms to the yard are quiet.", supports=["quiet"]), author="A1")
    result = await tell(seen, asked, ws.admit(ticket, principal="A1", query=QUERY))
    assert result.decision == "admitted"
    await tell(seen, asked, ws.open_view(result.view, principal="A1"))
    await tell(seen, asked, ws.recall(result.view, principal="A1", query=QUERY))
    for when in (START, clock.now, clock.now + timedelta(days=400)):
        await look(as_of=min(when, clock.now)) if when <= clock.now else await look(valid_at=when)
    for known_at in (1, 8, 12):
        await look(known_at=known_at)
    await tell(seen, asked, ws.admit(ticket, principal="A1"), refusal=True)
    await tell(seen, asked, ws.admit(ticket, principal="B1"), refusal=True)
    await tell(seen, asked, ws.open_view(result.view, principal="B1"), refusal=True)
    await tell(seen, asked, ws.read(**{**A1, "role": "payer"}), refusal=True)
    await tell(seen, asked, ws.read(**{**A1, "principal": "stranger"}), refusal=True)
    await tell(seen, asked, ws.depart(**{**A1, "role": "payer"}), refusal=True)
    for act in (ws.retract("h9", author="A1"), ws.revoke("o0x", author="A1"), ws.resolve("h0", author="A1")):
        await tell(seen, asked, act, refusal=True)
    await ws.record(item("h1", "trip", "Riverside is booked.", key="hotel"), author="A1")
    await tell(seen, asked, ws.open_view(result.view, principal="A1"), refusal=True)
    clock.now += timedelta(days=1)
    await tell(seen, asked, ws.open_view(result.view, principal="A1"), refusal=True)
    return seen


def words(told: Any, workspace: str) -> str:
    """What was told as text, the signed claims of views included, random ids and signatures apart."""

    def plain(value: Any) -> Any:
        if hasattr(value, "model_dump"):
            value = value.model_dump(mode="json")
        if isinstance(value, dict):
            return {name: plain(claims(one) if name == "view" and one else one) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        return value

    return RANDOM.sub("ID", json.dumps(plain(told), indent=1, sort_keys=True, default=str).replace(workspace, "W"))


def claims(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@pytest.fixture
async def two(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Seen, Seen, str]:
    asked: list[str] = []
    rows = Tx.rows

    async def noted(self: Tx, name: str, **parameters: Any) -> list[dict[str, Any]]:
        asked.append(name)
        return await rows(self, name, **parameters)

    monkeypatch.setattr(Tx, "rows", noted)
    keys, out, text = Keys(tmp_path / "keys"), [], []
    for hidden in (True, False):
        team = await team_of(graph, keys)
        seen = await told(team, hidden, asked)
        out.append(seen)
        text.append(words(seen.told, team.ws.id))
        await forget(graph, team.ws.id)
    seen, unseen = text
    out[0].told, out[1].told = seen.splitlines(), unseen.splitlines()
    return out[0], out[1], seen


async def test_a_reader_is_told_the_same_whether_hidden_items_exist_or_not(two: tuple[Seen, Seen, str]) -> None:
    with_hidden, without, text = two
    assert with_hidden.told == without.told
    assert not re.search(r"\bx\d|x_|vault|secret", text)
    # a refusal takes the same steps, so that its time does not tell what the database holds
    assert with_hidden.asked == without.asked
    assert text.count('"admitted"') >= 2  # and the reader was told something


class NothingFound:
    """A scan that proposes nothing."""

    model = prompt = "none"

    async def scan(self, scope: Any, ledger: Any, meter: Any, progress: Any = None) -> Scanned:
        return Scanned()

    async def forecast(self, scope: Any, ledger: Any) -> Forecast:
        return Forecast(0, 0, ())


class Listening:
    """A verifier that keeps what it is shown, and finds everything compatible."""

    model = "none"

    def __init__(self) -> None:
        self.shown: list[str] = []

    def prompt(self, ask: Ask) -> str:
        return ask

    async def verify(self, pair: Pair) -> Answer:
        self.shown.append(repr(pair))
        return Answer("compatible", confidence=1.0)


async def test_verification_counts_and_shows_no_item_that_the_role_may_not_read(team: Team) -> None:
    """A judgement by a hidden item is not counted; what it invalidated is not judged anew with its words in view."""
    ws, listening = team.ws, Listening()
    ws.invalidation = Invalidation(NothingFound(), listening)
    await ws.record(item("n0", "trip", "A hotel near the station."), item("n1", "trip", "The train is late."))
    await ws.record(item("x0", "vault", "Hidden."), item("x1", "vault", "The station moved."))
    await ws.verdict(later="x0", earlier="n0", says="compatible")
    await ws.verdict(later="x1", earlier="n1", says="invalidates")
    await ws.record(item("n2", "trip", "The station is where it was."))
    await ws.verdict(later="n2", earlier="n0", says="compatible")
    await ws.record(item("n3", "trip", "The station stays.", supersedes=["x1"]))
    result = await ws.join(**A1)
    assert result.pairs is not None
    assert result.pairs.reused == 1
    assert claims(result.view or "")["pairs"]["reused"] == 1
    assert "moved" not in "".join(listening.shown)
    await ws.sweep()  # which judges by nobody's rights
    assert "moved" in "".join(listening.shown)


async def test_sixty_forbidden_near_duplicates_crowd_no_allowed_item_out(team: Team) -> None:
    ws = team.ws
    await ws.set_policy(fill="relevance", max_items=1)
    near = [item(f"x{n}", "vault", QUERY + "!" * n) for n in range(60)]
    await ws.record(*near, item("far", "trip", "Luggage comes late."), item("near", "trip", "A hotel of some kind."))
    for result in (await ws.join(**A1, query=QUERY), await ws.join(**A1, query=QUERY, policy={"max_items": 1})):
        assert [one.id for one in result.items] == ["near"]
        assert (result.rejected, result.selection) == ({}, {"far": ("not_selected",)})


async def test_an_obligation_its_own_role_may_not_read_shows_in_the_coverage_and_nowhere_else(team: Team) -> None:
    """The documented exception: a return is not said to be complete when it is not."""
    owed = Obligation(id="x_owed", scope="vault", role="itinerary", content="Pay.", requires=["secret!", "hotel"],
                      frontier=Frontier(id="x_front", content="Not paid."))  # fmt: skip
    await team.ws.record(item("h0", "trip", "Sunrise is booked.", supports=["hotel"]))
    await team.ws.open_obligation(owed)
    result = await team.ws.join(**A1)
    assert (result.decision, result.coverage.coverage, result.coverage.critical) == ("blocked", 0, 0)
    assert (result.coverage.uncovered, result.rejected, result.selection, result.items) == ((), {}, {}, ())


async def test_an_expired_and_a_foreign_token_are_told_apart_from_nothing_hidden(team: Team) -> None:
    """Who holds no right at all learns the same of a workspace that is full and of one that is empty."""
    await team.ws.record(*(item(f"x{n}", "trip", "Words.") for n in range(5)))
    full = await team.ws.join(principal="stranger", role="itinerary", task="plan")
    empty = await team.ws.join(principal="stranger", role="nobody", task="none")
    assert full.model_dump(exclude={"cycle_id"}) == empty.model_dump(exclude={"cycle_id"})
    assert full.decision == "refused"


def test_what_takes_no_principal_is_said_to_be_the_auditors() -> None:
    """`why` and its like judge by nobody's rights; SECURITY.md names each of them."""
    asks_no_one = {
        name
        for name, method in inspect.getmembers(Workspace, inspect.iscoroutinefunction)
        if not name.startswith("_") and not {"principal", "author"} & set(inspect.signature(method).parameters)
    }
    text = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
    assert "why" in asks_no_one
    assert [name for name in sorted(asks_no_one) if f"`{name}`" not in text] == []
