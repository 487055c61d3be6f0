"""The paper's travel case (C.6), played on a fresh workspace and told for a person.

Four agents plan a trip. One leaves; the hotel and the train change; it returns, is blocked, and is admitted once the
pickup is confirmed. Uses the public API alone, on a clock that follows the story.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

import tracegraph
from tracegraph.cli import plain, program
from tracegraph.errors import Unavailable
from tracegraph.model import Frontier, Item, Obligation, Receipt, Result, new_id
from tracegraph.workspace import Workspace

SCOPE, TASK = "trip", "itinerary"
PLAN = {
    "c": "The family wants a quiet hotel near the station, under $300 after taxes.",
    "h0": "Sunrise Hotel is booked, $268, refundable.",
    "t0": "The train departs at 9:00.",
    "p0": "Pickup at 8:00 from Sunrise leaves enough time.",
}
PURPOSE = "prepare the final itinerary"
AWAY = "2026-05-02T00:00:00Z"
"""A moment of the absence, to ask what A1 could see then."""


class Story:
    """The clock of the story, and where it is told."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.now = datetime(2026, 5, 1, 9, tzinfo=UTC)

    def at(self, day: int, hour: int, minute: int = 0) -> None:
        self.now = datetime(2026, 5, day, hour, minute, tzinfo=UTC)

    def chapter(self, title: str) -> None:
        self.console.print()
        self.console.rule(Text(f"{self.now:%-d May, %H:%M}  {title}", style="bold"), align="left")

    def say(self, *lines: str) -> None:
        for line in lines:
            self.console.print(Text(line), soft_wrap=True)


def _mail(round_: str, text: str) -> list[Receipt]:
    return [Receipt(uri=f"chat:round-{round_}", text=text)]


async def play(as_json: bool = False, llm: bool = False) -> None:
    """Play the case. With `as_json` print only what was decided, as one JSON document.

    With `llm` the configured verifier judges what no edge declares, instead of three canned verdicts; raises
    `unavailable` when none is configured.
    """
    console = Console(quiet=as_json, highlight=False)
    story = Story(console)
    async with tracegraph.connect() as graph:
        name = new_id("demo")[:13]
        ws = await graph.workspace(
            name,
            owner="host",
            clock=lambda: story.now,
            policy={"max_items": 8, "max_chars": 2000, "fill": "none"},
            invalidation="environment" if llm else None,
        )
        if llm and ws.invalidation is None:
            raise Unavailable(
                "No verifier is configured.", hint="Set TRACEGRAPH_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY."
            )
        await _team(ws)
        ticket = await _leave(ws, story)
        await _change(ws, story, llm)
        blocked = await _return(ws, story, ticket, 11)
        admitted = await _confirm_and_return(ws, story, ticket)
        memories = await ws.recall(admitted.view, principal="A1")
        story.chapter("A1's private memories")
        story.say(
            *(f"  comes back:  {one.id}: {one.content}" for one in memories),
            "  stays away:  m_h0 and m_p0, whose sources were rejected.",
        )
        whys = await _explain(ws, story, admitted)
    _where_to_look(story, name, admitted.cycle_id)
    if as_json:
        print(
            json.dumps(
                {
                    "workspace": name,
                    "blocked": plain(blocked),
                    "admitted": plain(admitted),
                    "recalled": plain(memories),
                    "why": whys,
                },
                indent=2,
                ensure_ascii=False,
            )
        )


async def _team(ws: Workspace) -> None:
    for principal, role in (("A1", "itinerary"), ("A2", "booking"), ("A3", "budget"), ("A4", "transport")):
        await ws.grant(role=role, read=[SCOPE], write=[SCOPE], principal=principal)


async def _leave(ws: Workspace, story: Story) -> str:
    story.chapter("The team has a plan; A1 remembers it and leaves")
    for id, author, kind, key, supports, round_, source in (
        ("c", "A1", "constraint", "c", "d_c", "1", "Please find a quiet hotel close to the station, at most $300."),
        ("h0", "A2", "fact", "hotel", "d_h", "4", "Sunrise Hotel is refundable and totals $268. I have reserved it."),
        ("t0", "A4", "fact", "train", "d_t", "1b", "We are taking the 9:00 train next Saturday."),
        ("p0", "A4", "fact", "pickup advice", "d_p", "5", "An 8:00 pickup from Sunrise should leave enough time."),
    ):
        item = Item(
            id=id,
            key=key,
            kind="constraint" if kind == "constraint" else "fact",
            scope=SCOPE,
            content=PLAN[id],
            supports=[supports],
            receipts=_mail(round_, source),
        )
        await ws.record(item, author=author)
        story.say(f"  {id:<3} {item.content}  (by {author})")
    for id, content, source in (
        ("m_c", "Quiet matters most: the children nap before the train.", "c"),
        ("m_h0", "Sunrise's lobby is easy to find from the platform.", "h0"),
        ("m_p0", "Tell the driver to wait at Sunrise's side door.", "p0"),
    ):
        await ws.remember(content, principal="A1", grounded_in=[source], id=id)
    ticket = await ws.depart(principal="A1", role="itinerary", task=TASK)
    story.say("A1 departs as itinerary with a signed ticket, and with c, h0, t0 and p0 in mind.")
    return ticket


async def _change(ws: Workspace, story: Story, llm: bool) -> None:
    story.at(3, 10)
    story.chapter("While A1 is away, the others go on")
    changes = (
        ("h1", "A2", "hotel", "d_h", "Riverside is booked, $282, free cancellation.", "10",
         "Sunrise canceled our reservation. I have booked Riverside with free cancellation for $282."),
        ("t1", "A4", "train", "d_t", "The train departs at 9:30.", "11", "The railway moved departure to 9:30."),
    )  # fmt: skip
    for id, author, key, supports, content, round_, source in changes:
        await ws.record(
            Item(id=id, key=key, scope=SCOPE, content=content, supports=[supports], receipts=_mail(round_, source)),
            author=author,
        )
        story.say(f"  {id:<3} {content}  (by {author}; same key, so the older version is superseded)")
    owed = (
        ("o_h", "A2", "Tell the family where they stay.", ["d_h!", "d_c!"], "f_h",
         "Hotel replaced; family not told."),
        ("o_t", "A4", "Tell the family how they get to the train.", ["d_t!", "d_p!", "d_c!"], "f_t",
         "Pickup location and time for Riverside still open."),
    )  # fmt: skip
    for id, author, content, requires, frontier, unresolved in owed:
        await ws.open_obligation(
            Obligation(
                id=id,
                role="itinerary",
                task=TASK,
                scope=SCOPE,
                content=content,
                requires=requires,
                frontier=Frontier(id=frontier, content=unresolved),
            ),
            author=author,
        )
        story.say(f"  {id:<3} {content}  (A1 will owe this; it needs {', '.join(requires)})")
    await ws.record(
        Item(id="p_rumour", key="pickup proposal", scope=SCOPE, content="Maybe a pickup at 8:45?", supports=["d_p"]),
        author="A4",
    )
    story.say("  p_rumour  Maybe a pickup at 8:45?  (by A4, with no source)")
    if llm:
        story.say("  Nobody says that p0 fell with its hotel: the verifier is asked at the return.")
        return
    for earlier, later, says, confidence, quote in (
        ("p0", "h1", "invalidates", 0.93, "booked Riverside"),
        ("p0", "t1", "compatible", 0.8, "9:30"),
        ("c", "h1", "compatible", 0.9, "Riverside"),
    ):
        await ws.verdict(
            later=later,
            earlier=earlier,
            says="invalidates" if says == "invalidates" else "compatible",
            task=TASK,
            confidence=confidence,
            quote=quote,
            rationale="The advice names a hotel that is no longer booked." if says == "invalidates" else None,
        )
        story.say(f"  verdict: {later} {says} {earlier}, quoting “{quote}”")


async def _return(ws: Workspace, story: Story, ticket: str, hour: int, minute: int = 0) -> Result:
    story.at(3, hour, minute)
    story.chapter("A1 returns")
    result = await ws.admit(ticket, principal="A1", purpose=PURPOSE)
    table = Table("item", "outcome", "reason", box=None, pad_edge=False, padding=(0, 2))
    for item in result.items:
        table.add_row(item.id, Text("admitted", style="green"), f"{item.why}: {item.content}")
    for id in (await ws.cycle(result.cycle_id)).pool:
        if id not in result.rejected and id not in {item.id for item in result.items}:
            table.add_row(id, Text("passes", style="yellow"), "every gate, but the return is not complete")
    for id, reasons in sorted(result.rejected.items()):
        table.add_row(id, Text("rejected", style="red"), ", ".join(reasons))
    story.console.print(table)
    report = result.coverage
    if result.pairs is not None:
        spent = result.pairs
        story.say(
            f"The verifier judged {spent.judged} pairs in {spent.calls} calls ({spent.tokens_in} tokens in,"
            f" {spent.tokens_out} out); {spent.reused} were known before."
        )
    missing = f"; nothing valid supports {', '.join(report.uncovered)}" if report.uncovered else ""
    story.say(
        f"Obligations covered {_share(report.coverage)}, critical dependencies {_share(report.critical)}{missing}."
    )
    released = f" with {len(result.items)} items, in a signed view"
    story.console.print(
        Text.assemble(
            (f"→ {result.decision}", "bold green" if result.view else "bold red"),
            released if result.view else ": nothing is released, the ticket stays good",
        )
    )
    return result


def _share(value: float) -> str:
    from fractions import Fraction

    share = Fraction(value).limit_denominator(1000)
    return "all" if share == 1 else f"{share.numerator}/{share.denominator}"


async def _confirm_and_return(ws: Workspace, story: Story, ticket: str) -> Result:
    story.at(3, 12)
    story.chapter("The pickup is confirmed")
    await ws.record(
        Item(
            id="p1",
            key="pickup",
            scope=SCOPE,
            content="Pickup confirmed at 8:30 from Riverside.",
            supports=["d_p"],
            receipts=_mail("15", "Confirmed: 8:30 pickup from Riverside for the 9:30 train."),
        ),
        author="A4",
    )
    story.say("  p1  Pickup confirmed at 8:30 from Riverside.  (by A4)")
    return await _return(ws, story, ticket, 12, 5)


async def _explain(ws: Workspace, story: Story, result: Result) -> dict[str, Any]:
    from tracegraph.explanation import render_why

    story.chapter("Why were the old hotel and the old pickup rejected?")
    whys = {}
    for id in ("h0", "p0"):
        why = await ws.why(id, result.cycle_id)
        whys[id] = plain(why)
        _indented(story, render_why(why))
    return whys


def _indented(story: Story, lines: Iterable[str]) -> None:
    story.say(*(f"  {line}" for line in lines))


def _where_to_look(story: Story, workspace: str, cycle: str) -> None:
    import os

    from tracegraph import embedded

    server = None if os.environ.get("NEO4J_URI") else embedded.status()
    story.console.print()
    story.console.rule(Text("Look for yourself", style="bold"), align="left")
    if server is not None:
        story.say(
            f"Neo4j Browser: {server.http_uri}/browser   user {server.username}",
            f"Password:      cat {server.password_file}",
        )
    story.say(
        "Paste there (click an arrow for the quote, a node for its words):",
        f"  MATCH path = (:WorkItem {{workspace: '{workspace}', id: 'p0'}})<-[:INVALIDATES]-()-[:SUPERSEDES]->()",
        "  RETURN path",
        "Or bring names, colours and eight questions along:",
        f"  {program()} browser -w {workspace} --item p0 --cycle {cycle} -p A1 --at {AWAY} --write audits",
        "Ask here:",
        f"  {program()} why p0 -w {workspace} --cycle {cycle}",
    )
    if server is not None:
        story.say(f"The server goes on running; stop it with: {program()} down")
