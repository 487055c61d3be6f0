"""Random histories: scenarios in the format of DESIGN.md §13, as plain dicts, for the differential tests.

`history(seed)` writes one, `histories()` is the same as a hypothesis strategy, `expected(scenario)` adds what
the reference says of each step. A history is a run of gestures (a refreshed premise, a correction of the
past, a departure and a return, an act with one thing wrong in it …), each with its choices from a
`random.Random`. The writer plays along, so that it can aim: at a ticket still open, at the moment a
view expires.

It stays where the page has one meaning. It never writes two faults into one act whose order §5 doesn't give,
names no erased item in a later write, and asks no full-text query.

    python -m tests.reference.histories FOLDER SEED...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import IO, Any

from .model import OPEN, Item, Moment, Ticket
from .play import EPOCH_START, Outcome, Player, play

CLOCK = "2026-03-01T08:00:00Z"
SCOPES = ("open", "team", "vault")
ROLES = ("lead", "dev", "ops")
PRINCIPALS = ("P0", "P1", "P2")
TASKS = ("build", "ship")
PURPOSES = ("plan", "audit")
KEYS = ("alpha", "beta", "gamma", "delta")
DEPENDENCIES = ("d0", "d1", "d2", "d3")
WORDS = ("badge", "cable", "desk", "gate", "hotel", "café", "lamp", "río", "train", "𝛼", "key")
MINUTE, HOUR, DAY = 60 * 10**6, 3600 * 10**6, 86_400 * 10**6
STEPS_APART = (0, MINUTE, MINUTE, 5 * MINUTE, HOUR, 6 * HOUR, DAY)
LONG = 30  # the least `max_item_chars` ever asked: nothing shorter is over the item budget

Step = dict[str, Any]


def history(seed: int | Random, gestures: int = 40) -> dict[str, Any]:
    """A scenario without expectations; the same seed gives the same scenario."""
    rng = seed if isinstance(seed, Random) else Random(seed)  # noqa: S311
    writer = Writer(rng)
    for _ in range(gestures):
        writer.gesture(rng)
    return writer.scenario


def histories(max_gestures: int = 30) -> Any:
    """The hypothesis strategy of scenarios. Each gesture has its own choices, so failures shrink well."""
    from hypothesis import strategies as st

    choices = st.randoms(use_true_random=False)

    def build(header: Random, gestures: Sequence[Random]) -> dict[str, Any]:
        writer = Writer(header)
        for rng in gestures:
            writer.gesture(rng)
        return writer.scenario

    return st.builds(build, choices, st.lists(choices, min_size=1, max_size=max_gestures))


# ---------------------------------------------------------------- the writer


class Writer:
    """Writes a scenario step by step and plays each as it is written."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.count = 0
        self.at: str | None = None  # the clock has moved: the next step says so
        self.names: list[str] = []
        self.missed: list[str] = ["no such step"]  # names of steps that were not carried out
        roles = {}
        for role in ROLES[: rng.randint(1, 3)]:
            read = sorted({"open", *self.some(SCOPES, 1, 3)}) if self.maybe(0.9) else ["team"]
            roles[role] = {"read": read, "write": self.some(SCOPES, 1, 3)}
        held = {name: self.some(tuple(roles), 0 if name == "P2" else 1, 2) for name in PRINCIPALS}
        self.scenario: dict[str, Any] = {
            "scenario": "a random history",
            "clock": CLOCK,
            "roles": roles,
            "principals": held,
            "policy": self.policy_fields(0.6),
            "steps": [],
        }
        self.player = Player(self.scenario)

    def gesture(self, rng: Random) -> None:
        """One thing that happens, of one step or a few."""
        self.rng = rng
        if self.maybe(0.5):
            self.clock_moves()
        chosen = rng.choices(list(GESTURES), weights=list(GESTURES.values()))[0]
        chosen(self)

    def add(self, act: str, fields: Any, name: bool = False) -> Outcome:
        """Writes one step and plays it."""
        step: Step = {act: fields}
        if self.at is not None:
            step["at"], self.at = self.at, None
        if name or self.maybe(0.2):
            step["name"] = self.new("n")
        self.scenario["steps"].append(step)
        outcome = self.player.step(len(self.scenario["steps"]) - 1, step)
        if "name" in step:
            (self.missed if outcome.error else self.names).append(step["name"])
        return outcome

    # Choices

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    def one(self, of: Sequence[Any]) -> Any:
        return of[self.rng.randrange(len(of))]

    def some(self, of: Sequence[str], least: int, most: int) -> list[str]:
        different = sorted(set(of))
        return sorted(self.rng.sample(different, min(len(different), self.rng.randint(least, most))))

    def new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def words(self, most: int = 8) -> str:
        return " ".join(self.one(WORDS) for _ in range(self.rng.randint(1, most)))

    # Instants: what already means something, and what lies between

    @property
    def now(self) -> int:
        return self.player.ws.now

    def around(self) -> str:
        """A moment before, at or after now; often exactly one that already means something."""
        if self.maybe(0.4) and self.items():
            item = self.one(self.items())
            known = [moment for moment in (item.valid_from, item.valid_to) if -OPEN < moment < OPEN]
            return iso(self.one(known))
        return iso(self.now + self.one((-1, 1)) * self.one(STEPS_APART))

    def before(self) -> str:
        return iso(self.now - self.one(STEPS_APART[1:]))

    def after(self) -> str:
        return iso(self.now + self.one(STEPS_APART[1:]))

    def clock_moves(self) -> None:
        ends = [view.expires_at for view in self.player.ws.views.values()]
        ends += [ticket.expires_at for ticket in self.player.ws.tickets.values()]
        ends += [edge.valid_to for edge in self.player.ws.edges]
        ends += [revocation.effective_from for revocation in self.player.ws.revocations]
        ends = [end for end in ends if self.now < end < self.now + 5 * DAY]
        target = self.one(ends) if ends and self.maybe(0.3) else self.now + self.one(STEPS_APART)
        if self.maybe(0.01):
            target = self.now + 31 * DAY
        self.at = iso(target)
        self.player.ws.now = target

    # What is there

    def items(self, *kinds: str) -> list[Item]:
        """Not erased: no later write names an erased item."""
        every = self.player.ws.items.values()
        return [item for item in every if not item.erased and (not kinds or item.kind in kinds)]

    def ids(self, *kinds: str) -> list[str]:
        return [item.id for item in self.items(*kinds)]

    def standing(self) -> list[str]:
        """What stands now for one of the tasks."""
        ws = self.player.ws
        at = Moment(ws, ws.now, ws.epoch, TASKS[0])
        return [item.id for item in self.items() if at.stands(item)]

    def open_tickets(self) -> list[Ticket]:
        """The tickets `admit` would take, of principals whose last it is."""
        return [t for t in self.player.ws.tickets.values() if not t.spent and self.now < t.expires_at]

    def who(self) -> str:
        """Mostly a principal with a role. A later grant may make P9 known."""
        able = [name for name in PRINCIPALS if any(self.player.ws.holds_role(name, role) for role in ROLES)]
        return str(self.one(able)) if able and self.maybe(0.93) else str(self.one((*PRINCIPALS, "P9")))

    def role(self) -> str:
        """Mostly one the header names."""
        return str(self.one(list(self.scenario["roles"])) if self.maybe(0.9) else self.one(ROLES))

    def role_of(self, principal: str) -> str:
        """Mostly one the principal holds."""
        held = [role for role in ROLES if self.player.ws.holds_role(principal, role)]
        return str(self.one(held)) if held and self.maybe(0.95) else self.role()

    def author(self) -> dict[str, str]:
        """Mostly the owner, else a known principal who may lack the permission."""
        return {"by": self.one(PRINCIPALS)} if self.maybe(0.2) else {}

    # Fields

    def policy_fields(self, chance: float) -> Step:
        fields = {
            "coverage": self.one((0, 0.2, 0.5, 1)),
            "critical": self.one((0, 0.5, 1)),
            "on_incomplete": self.one(("block", "block", "reset")),
            "max_items": self.one((3, 6, 12, 64)),
            "max_chars": self.one((60, 120, 200, 24_000)),
            "max_item_chars": self.one((LONG, 50, 8_000)),
            "kinds": self.one((["fact", "constraint"],) * 6 + (["fact"], ["constraint"])),
            "fill": self.one(("recency", "relevance", "none")),
            "verification": self.one(("none", "best_effort", "required", "required")),
            "confidence": self.one((0.5, 0.65, 0.9)),
            "view_minutes": self.one((5, 15, 90, 1_440)),
            "ticket_days": self.one((1, 10, 30)),
        }
        return {name: value for name, value in fields.items() if self.maybe(chance)}

    def tighter(self) -> Step:
        """What a call may ask; sometimes what it may not."""
        policy = self.player.ws.policy_at(self.player.ws.epoch)
        fields: Step = {
            "coverage": max(self.one((0.5, 1)), float(policy.coverage)),
            "critical": 1,
            "on_incomplete": self.one(("block", "reset")),
            "max_items": min(self.one((2, 4)), policy.max_items),
            "max_chars": min(self.one((40, 100)), policy.max_chars),
            "max_item_chars": min(LONG, policy.max_item_chars),
            "kinds": sorted(policy.kinds)[:1],
            "fill": self.one(("recency", "none")),
            "verification": "required",
            "view_minutes": 1,
        }
        wanted = self.some(tuple(fields), 1, 3)
        return self.policy_fields(0.2) if self.maybe(0.2) else {name: fields[name] for name in wanted}

    def receipt(self) -> Step:
        """A new one, or an earlier one with its digest, or with a wrong one."""
        earlier = list(self.player.ws.receipts.values())
        if earlier and self.maybe(0.3):
            shared = self.one(earlier)
            return {"id": shared.id, "sha256": "0" * 64 if self.maybe(0.2) else shared.sha256}
        text = self.words()
        return {"id": self.new("r"), "uri": "log:" + self.one(WORDS[:4]), "text": text}

    def statement(self, **given: Any) -> Step:
        """A record with receipts, supports and premises at random; what is given stays."""
        fields: Step = {
            "id": self.new("i"),
            "scope": self.one(("open",) * 5 + SCOPES),
            "content": self.words(),
        }
        fields |= self.author()
        if self.maybe(0.6):
            fields["key"] = self.one(KEYS)
        if self.maybe(0.4):
            fields["kind"] = self.one(("fact", "constraint"))
        if self.maybe(0.25):
            fields["task"] = self.one(TASKS)
        if self.maybe(0.1):
            fields["purposes"] = self.some(PURPOSES, 1, 2)
        if self.maybe(0.1):
            fields["role"] = self.role()
        if self.maybe(0.15):
            fields["receipt"] = None
        else:
            uses = [self.receipt() for _ in range(self.rng.randint(1, 2))]
            fields["receipts"] = list({use["id"]: use for use in uses}.values())
        if self.maybe(0.6):
            bound = [use["id"] for use in fields.get("receipts", ())]
            fields["supports"] = [self.support(name, bound) for name in self.some(DEPENDENCIES, 1, 3)]
        fields |= given
        own = (fields["scope"], fields.get("kind", "fact"), fields.get("key", fields["id"]))
        others = [item.id for item in self.items() if item.identity != own]
        sound = sorted(set(others) & set(self.standing()))
        for name, chance in (("depends_on", 0.25), ("derived_from", 0.15), ("supersedes", 0.08)):
            if others and name not in given and self.maybe(chance):
                fields[name] = self.some(sound if sound and self.maybe(0.8) else others, 1, 2)
        return fields

    def support(self, dependency: str, bound: Sequence[str]) -> str | Step:
        if bound and self.maybe(0.3):
            return {"dependency": dependency, "receipt": self.one(bound)}
        if self.player.ws.receipts and self.maybe(0.05):
            return {"dependency": dependency, "receipt": self.one(list(self.player.ws.receipts))}
        return dependency

    # ------------------------------------------------------------ gestures: statements

    def records(self) -> None:
        self.add("record", self.statement())

    def a_batch(self) -> None:
        self.add("record", [self.statement() for _ in range(self.rng.randint(2, 3))])

    def at_another_time(self) -> None:
        """A backfill, a future version, one with an end, a correction of the past, a tie of valid_from."""
        fields = self.statement()
        start, end = sorted((self.around(), self.around()))
        shape = self.one(("from", "until", "both", "both", "both"))
        if shape != "until":
            fields["valid_from"] = start
        if shape == "until":
            fields["valid_to"] = self.after()
        if shape == "both":
            fields["valid_to"] = end if start < end else self.after()
        self.add("record", fields)

    def a_past_put_right(self) -> None:
        """Regular versions of one key and corrections of the past, in any order; then looks into that past."""
        first, key, scope = self.now - 8 * HOUR, self.one(KEYS), "open"
        for _ in range(self.rng.randint(2, 6)):
            fields = self.statement(key=key, scope=scope, kind="fact", supersedes=[], purposes=[])
            fields.pop("by", None)
            if self.maybe(0.7):
                start, end = sorted(self.rng.sample(range(8), 2))
                fields["valid_from"], fields["valid_to"] = iso(first + start * HOUR), iso(first + end * HOUR)
                if self.maybe(0.3):
                    del fields["valid_to"]
            if self.maybe(0.3):
                self.at = iso(self.now + MINUTE)
                self.player.ws.now += MINUTE
            self.add("record", fields, name=True)
            if self.maybe(0.15):
                self.add("retract", {"target": fields["id"]})
        who = self.who()
        look: Step = {"principal": who, "role": self.role_of(who), "task": self.one(TASKS)}
        for _ in range(self.rng.randint(1, 3)):
            when = {"valid_at": iso(first + self.rng.randint(0, 16) * HOUR // 2)}
            if self.names and self.maybe(0.3):
                when["known_at"] = self.one(self.names[-4:])
            self.add(self.one(("read", "join")), look | when)

    def a_refresh(self) -> None:
        """A new version of what is there, with the same words or others."""
        if not (old := self.items("fact", "constraint")):
            return
        fresh = set(self.standing()) if self.maybe(0.7) else set()
        item = self.one([item for item in old if item.id in fresh] or old)
        same = item.content if self.maybe(0.6) else self.words()
        fields = self.statement(scope=item.scope, kind=item.kind, key=item.key, content=same)
        if self.maybe(0.3):
            fields["valid_from"] = iso(item.valid_from) if item.valid_from > -OPEN else self.before()
        self.add("record", fields)

    def a_summary(self) -> None:
        """Derived, with no receipt of its own."""
        if not (old := (self.standing() if self.maybe(0.7) else []) or self.ids()):
            return
        sources = self.some(old, 1, 2)
        fields = self.statement(derived_from=sources, receipt=None, key=self.new("k"))
        fields.pop("receipts", None)
        claimed = {name for source in sources for name in self.player.ws.items[source].dependencies}
        if claimed and self.maybe(0.7):
            fields["supports"] = sorted(claimed)[:2]
        self.add("record", fields)

    def a_circle(self) -> None:
        """Items of one batch that rest on each other."""
        size = self.rng.randint(2, 3)
        batch = [self.statement(key=self.new("k"), supersedes=[]) for _ in range(size)]
        kind = self.one(("depends_on", "derived_from"))
        for fields, following in zip(batch, [*batch[1:], batch[0]], strict=True):
            fields[kind] = [following["id"]]
            if kind == "derived_from" and self.maybe(0.7):
                fields.pop("receipts", None)
                fields["receipt"] = None
        self.add("record", batch)

    def a_tower(self) -> None:
        """A chain of premises about as deep as the limit."""
        batch: list[Step] = []
        for floor in range(self.rng.randint(32, 35)):
            fields: Step = {"id": self.new("i"), "scope": "open", "content": f"floor {floor}"}
            fields["receipt"] = {"id": self.new("r"), "uri": "log:tower", "text": "as built"}
            if batch:
                fields[self.one(("depends_on", "derived_from"))] = [batch[-1]["id"]]
            batch.append(fields)
        self.add("record", batch)

    # ------------------------------------------------------------ gestures: obligations

    def opens(self) -> None:
        fields: Step = {
            "id": self.new("o"),
            "scope": self.one(("open",) * 5 + SCOPES),
            "content": self.words(6),
        }
        fields |= self.author()
        fields["requires"] = [name + self.one(("", "!")) for name in self.some(DEPENDENCIES, 0, 3)]
        fields["frontier"] = {"id": self.new("f"), "content": self.words(6)}
        if self.maybe(0.9):
            fields["role"] = self.role()
        if self.maybe(0.4):
            fields["task"] = self.one(TASKS)
        if self.maybe(0.15):
            fields["purposes"] = self.some(PURPOSES, 1, 2)
        if self.maybe(0.2):
            fields["key"] = self.one(KEYS)
        self.add("open_obligation", fields)

    def advances(self) -> None:
        if not (obligations := self.items("obligation")):
            return
        owed = self.one(obligations)
        others = [name for name in self.ids() if name != owed.id]
        if others and self.maybe(0.2):
            said: Step = {"later": self.one(others), "earlier": owed.id, "says": "invalidates"}
            self.add("verdict", said | {"task": self.one((*TASKS, owed.task))}, name=True)
        frontier = {"id": self.new("f"), "obligation": owed.id, "content": self.words(5)}
        self.add("advance", frontier | self.author())

    def resolves(self) -> None:
        """Also one resolved before."""
        if obligations := self.ids("obligation"):
            target = {"target": self.one(obligations)}
            self.add("resolve", target | self.author(), name=self.maybe(0.6))
            if self.maybe(0.3):
                self.add("resolve", target, name=True)

    def another_term(self) -> None:
        """An obligation anew, under the key of one that stands: the older frontier is left without one."""
        standing = set(self.standing())
        if owed := [item for item in self.items("obligation") if item.id in standing]:
            old = self.one(owed)
            fields: Step = {"id": self.new("o"), "key": old.key, "scope": old.scope, "content": self.words(4)}
            fields |= {"requires": [name for name, _ in old.requires], "role": old.role, "task": old.task}
            self.add(
                "open_obligation", fields | {"frontier": {"id": self.new("f"), "content": self.words(4)}}
            )

    # ------------------------------------------------------------ gestures: ending and undoing

    def revokes(self) -> None:
        targets = self.ids() if self.maybe(0.6) else list(self.player.ws.receipts)
        if targets:
            fields: Step = {"target": self.one(targets)} | self.author()
            if self.maybe(0.4):
                fields["effective_from"] = self.around()
            if self.maybe(0.2):
                fields["reason"] = "as it turned out"
            self.add("revoke", fields, name=self.maybe(0.6))

    def retracts(self) -> None:
        standing = self.standing() if self.maybe(0.6) else []
        targets = (standing or self.ids()) if self.maybe(0.8) else list(self.player.ws.receipts)
        if targets:
            self.add("retract", {"target": self.one(targets)} | self.author())

    def a_receipt_runs_out(self) -> None:
        """A receipt of what stands, revoked from later on; then a look at now and at then."""
        standing = set(self.standing())
        bound = {b.receipt for item in self.items() if item.id in standing for b in item.bindings}
        if bound:
            then = self.after()
            revoked = {"target": self.one(sorted(bound)), "effective_from": then}
            self.add("revoke", revoked, name=self.maybe(0.5))
            self.looks(valid_at=then)

    def a_succession_foreseen(self) -> None:
        """A future item, and one that supersedes it before or after it begins."""
        first = self.statement(valid_from=self.after(), scope="open")
        self.add("record", first)
        if first["id"] in self.ids():
            self.add("record", self.statement(supersedes=[first["id"]], valid_from=self.around()))
            self.looks(valid_at=self.one((first["valid_from"], self.after())))

    def oversteps(self) -> None:
        """A principal writes to several scopes, perhaps with less than it takes."""
        if not (old := self.ids()):
            return
        author = self.one(PRINCIPALS)
        if self.maybe(0.5):
            self.add("record", self.statement(by=author, supersedes=self.some(old, 1, 2)))
        else:
            target = self.one([*old, *self.player.ws.receipts])
            self.add(self.one(("revoke", "retract")), {"target": target, "by": author})

    def withdraws(self) -> None:
        names = [name for name, things in self.player.written.items() if things]
        if names:
            self.add("withdraw", {"target": self.one(names)})

    def erases(self) -> None:
        """Only what is short, heirs and all: whether a tombstone is still too long isn't said."""
        items = self.player.ws.items
        doomed = [name for name in self.ids() if all(items[heir].length <= LONG for heir in self.heirs(name))]
        if doomed:
            self.add("erase", {"target": self.one(doomed), "reason": "a request"})

    def heirs(self, name: str) -> set[str]:
        """The item and all that is derived from it."""
        every = self.player.ws.items.values()
        return {item.id for item in every if item.id == name or name in ancestors(self.player, item)}

    # ------------------------------------------------------------ gestures: permission and policy

    def grants(self) -> None:
        self.permits("grant")

    def denies(self) -> None:
        self.permits("deny")

    def permits(self, act: str) -> None:
        fields: Step = {"role": self.role()}
        if act == "grant" and self.maybe(0.4):
            fields["principal"] = self.one((*PRINCIPALS, "P9"))
        else:
            fields["read"] = self.some(SCOPES, 1, 2)
            if self.maybe(0.5):
                fields["write"] = self.some(SCOPES, 1, 2)
        if self.maybe(0.3):
            fields["valid_from"] = self.around()
        if self.maybe(0.4):
            fields["valid_to"] = self.after()
        if fields.get("valid_from", "") >= fields.get("valid_to", "9"):
            del fields["valid_from"]
        self.add(act, fields, name=self.maybe(0.8))

    def revises_policy(self) -> None:
        if fields := self.policy_fields(0.3):
            self.add("policy", fields)

    # ------------------------------------------------------------ gestures: verdicts

    def judges(self) -> None:
        if len(self.ids()) < 2:
            return
        later, earlier = self.rng.sample(self.ids(), 2)
        if (standing := [name for name in self.standing() if name != later]) and self.maybe(0.6):
            earlier = self.one(standing)
        asked = [v for v in self.player.ws.verdicts if {v.later, v.earlier} <= set(self.ids())]
        if asked and self.maybe(0.5):  # another word on the same pair, or on the same earlier item
            again = self.one(asked)
            later, earlier = (
                (again.later if self.maybe(0.6) or later == again.earlier else later),
                again.earlier,
            )
        says = self.one(("invalidates", "invalidates", "compatible", "uncertain", "restores", "proposed"))
        fields: Step = {"later": later, "earlier": earlier, "says": says}
        if self.maybe(0.5):
            fields["task"] = self.one(TASKS)
        if self.maybe(0.4):
            fields["confidence"] = self.one((0.4, 0.5, 0.65, 0.8, 0.9, 1))
        if self.maybe(0.5):
            fields["quote"] = self.quote(self.player.ws.items[later])
        if self.maybe(0.3):
            fields["effective_from"] = self.around()
        self.add("verdict", fields, name=self.maybe(0.6))

    def a_dispute(self) -> None:
        """Two items and what is said of them, word after word, and a return that asks for verification."""
        earlier, later = self.statement(scope="open"), self.statement(scope="open")
        if self.maybe(0.3):
            later["valid_from"] = self.after()
        for fields in (earlier, later):
            fields.pop("by", None)
            fields.pop("supersedes", None)
            self.add("record", fields)
        if not {earlier["id"], later["id"]} <= set(self.ids()):
            return
        said = ("proposed", "uncertain", "invalidates", "compatible", "restores")
        enough = float(self.player.ws.policy_at(self.player.ws.epoch).confidence)
        for _ in range(self.rng.randint(1, 4)):
            fields = {"later": later["id"], "earlier": earlier["id"], "says": self.one(said)}
            if self.maybe(0.4):
                fields["task"] = self.one(TASKS)
            if self.maybe(0.4):
                fields["confidence"] = self.one((enough, enough, 0.4))
            if self.maybe(0.3):
                fields["effective_from"] = self.around()
            self.add("verdict", fields, name=self.maybe(0.5))
            if self.maybe(0.2):
                self.withdraws()
        if self.maybe(0.2):
            self.add("retract", {"target": later["id"]})
        self.looks(policy={"verification": "required"}, valid_at=later.get("valid_from", self.after()))

    def looks(self, policy: Step | None = None, **clocks: Any) -> None:
        """Returns without a ticket, as things are and then with what is asked."""
        who = self.who()
        fields: Step = {"principal": who, "role": self.role_of(who), "task": self.one(TASKS)}
        self.add("join", fields)
        if policy is not None:
            fields["policy"] = policy
            self.add("join", fields)
        self.add("join", fields | clocks)

    def quote(self, item: Item) -> str:
        """Words that are there, as they are or spelled and spaced otherwise, or words that are not."""
        receipts = [self.player.ws.receipts[binding.receipt].text for binding in item.bindings]
        found = [words for text in (item.content, *receipts) if (words := text.split())]
        if not found or self.maybe(0.15):
            return "no such words"
        words = self.one(found)[:2]
        if self.maybe(0.2):
            return str(self.one((words[0].upper(), "  \n".join(words), words[0].replace("é", "e\u0301"))))
        return " ".join(words)

    # ------------------------------------------------------------ gestures: leaving and returning

    def departs(self) -> None:
        who = self.who()
        self.add("depart", {"principal": who, "role": self.role_of(who), "task": self.one(TASKS)})

    def comes_back(self) -> None:
        """By ticket or without, for real or as a preview; then perhaps a look at what it gave."""
        fields: Step = {}
        open_tickets = self.open_tickets()
        if self.maybe(0.75) and (open_tickets or self.maybe(0.1)):
            act, who = "admit", self.one(open_tickets).principal if open_tickets else self.who()
        else:
            act, who = "join", self.who()
        fields["principal"] = who
        if act == "join":
            fields |= {"role": self.role_of(who), "task": self.one(TASKS)}
        if self.maybe(0.6):
            fields["purpose"] = self.one((*PURPOSES, *PURPOSES, "something else"))
        if self.maybe(0.1):
            fields["workload"] = "a run"
        if self.maybe(0.25):
            fields |= self.clocks()
        if self.maybe(0.2):
            fields["policy"] = self.tighter()
        self.add(act, fields)
        if self.maybe(0.5):
            self.add("recall", {"principal": who})

    def clocks(self) -> Step:
        fields: Step = {}
        if self.maybe(0.6):
            fields["valid_at"] = self.around()
        if self.maybe(0.6):
            fields["known_at"] = self.one(self.names) if self.names and self.maybe(0.7) else self.before()
        return fields

    def reads(self) -> None:
        who = self.who()
        fields: Step = {"principal": who, "role": self.role_of(who), "task": self.one(TASKS)}
        self.add("read", fields | self.clocks())

    def remembers(self) -> None:
        """Mostly of what was admitted: only that is ever recalled."""
        admitted = [(who, sorted(view.items)) for who, view in self.player.ws.views.items() if view.items]
        if admitted and self.maybe(0.7):
            who, known = self.one(admitted)
        else:
            who, known = self.one(PRINCIPALS), self.ids()
        known = [name for name in known if name in self.ids()]
        if known:
            fields = {"id": self.new("m"), "principal": who, "content": self.words()}
            self.add("remember", fields | {"grounded_in": self.some(known, 1, 2)})
            if self.maybe(0.5):
                self.add("recall", {"principal": who})

    def a_task_of_work(self) -> None:
        """A departure, obligations that can be met, evidence of equal and unequal worth, and a return."""
        who = self.who()
        role, task = self.role_of(who), self.one(TASKS)
        self.add("depart", {"principal": who, "role": role, "task": task})
        owed: list[str] = []
        for _ in range(self.rng.randint(1, 2)):
            requires = [name + self.one(("", "!")) for name in self.some(DEPENDENCIES, 1, 2)]
            owed += [name.rstrip("!") for name in requires]
            fields: Step = {
                "id": self.new("o"),
                "scope": "open",
                "content": self.words(2),
                "requires": requires,
            }
            fields |= {"role": role, "frontier": {"id": self.new("f"), "content": self.words(2)}}
            self.add("open_obligation", fields | ({"task": task} if self.maybe(0.5) else {}))
        for _ in range(self.rng.randint(2, 6)):
            evidence: Step = {"id": self.one("abcxyz") + self.new("i"), "scope": "open"}
            evidence["content"] = self.one(("desk", "gate", "lamp", "gate lamp", "cable hotel badge"))
            evidence["receipt"] = {"id": self.new("r"), "uri": "log:work", "text": self.words()}
            evidence["supports"] = self.some(owed, 1, 2) if self.maybe(0.8) else self.some(DEPENDENCIES, 1, 2)
            if self.maybe(0.4):
                evidence["valid_from"] = self.before()
            self.add("record", evidence)
        if self.maybe(0.3):
            self.one((Writer.retracts, Writer.judges, Writer.revokes, Writer.revises_policy))(self)
        self.at = iso(self.now + MINUTE)
        self.player.ws.now += MINUTE
        admit: Step = {"principal": who} | ({"policy": self.tighter()} if self.maybe(0.3) else {})
        self.add("admit", admit)
        self.add("recall", {"principal": who})

    def a_long_absence(self) -> None:
        """A departure, much that changes what was seen there, and a return: first foreseen, then for real."""
        who = self.who()
        task = self.one(TASKS)
        self.add("depart", {"principal": who, "role": self.role_of(who), "task": task}, name=True)
        seen = self.standing()
        changes = (
            Writer.at_another_time,
            Writer.a_refresh,
            Writer.advances,
            Writer.resolves,
            Writer.oversteps,
        )
        for _ in range(self.rng.randint(2, 5)):
            if self.maybe(0.5):
                self.one(changes)(self)
            elif still := sorted(set(seen) & set(self.ids())):
                act = self.one(("revoke", "retract", "record", "verdict"))
                target = self.one(still)
                if act == "record":
                    self.add("record", self.statement(supersedes=[target]))
                elif act == "verdict" and (others := [name for name in self.ids() if name != target]):
                    said: Step = {"later": self.one(others), "earlier": target, "says": "invalidates"}
                    self.add("verdict", said | ({"task": task} if self.maybe(0.5) else {}), name=True)
                elif act != "verdict":
                    self.add(act, {"target": target}, name=act == "revoke")
        self.clock_moves()
        admit: Step = {"principal": who} | ({"purpose": self.one(PURPOSES)} if self.maybe(0.5) else {})
        if self.maybe(0.5):
            self.add("admit", admit | self.clocks())
        self.add("admit", admit)

    def stays_a_while(self) -> None:
        """Comes back, notes something about what was admitted, and looks at it again after this and that."""
        who = self.who()
        back = self.add("join", {"principal": who, "role": self.role_of(who), "task": self.one(TASKS)})
        known = sorted(name for name in back.admitted or () if name in self.ids())
        if not known:
            return
        fields = {"id": self.new("m"), "principal": who, "content": self.words()}
        self.add("remember", fields | {"grounded_in": self.some(known, 1, 2)})
        for _ in range(self.rng.randint(0, 2)):
            self.at = iso(self.now + MINUTE)
            self.player.ws.now += MINUTE
            if self.maybe(0.3):
                owed: Step = {
                    "id": self.new("o"),
                    "scope": self.one(SCOPES),
                    "content": self.one(("work", "new work " * 8)),
                }
                owed["requires"] = self.some(DEPENDENCIES, 0, 1)
                self.add("open_obligation", owed | {"frontier": {"id": self.new("f"), "content": "to do"}})
            elif self.maybe(0.3):
                self.add("policy", self.policy_fields(0.4) or {"max_items": 6})
            elif self.maybe(0.5):
                self.one((Writer.records, Writer.denies, Writer.judges))(self)
            elif fresh := [name for name in known if name in self.ids()]:
                self.add(self.one(("revoke", "retract")), {"target": self.one(fresh)})
            self.add("recall", {"principal": who})

    def recalls(self) -> None:
        self.add("recall", {"principal": self.who()})

    # ------------------------------------------------------------ gestures: one thing wrong

    def goes_wrong(self) -> None:
        """A well-formed act with exactly one fault."""
        known = self.ids()
        plain: Step = {"id": self.new("i"), "scope": "open", "content": self.words(), "receipt": None}
        wrongs: list[tuple[str, Any]] = [
            ("record", plain | {"depends_on": ["no such item"]}),
            ("record", plain | {"supersedes": [plain["id"]]}),
            ("record", plain | {"derived_from": [plain["id"]]}),
            ("record", plain | {"by": "Nobody"}),
            ("record", plain | {"valid_from": self.after(), "valid_to": self.before()}),
            ("record", plain | {"valid_to": iso(self.now)}),
            ("record", plain | {"valid_from": self.before().removesuffix("Z")}),
            ("record", plain | {"key": "k" * 257}),
            ("record", plain | {"receipt": {"id": "no such receipt", "sha256": "0" * 64}}),
            ("record", plain | {"supports": [{"dependency": "d0", "receipt": "no such receipt"}]}),
            ("record", [plain, dict(plain)]),
            ("revoke", {"target": "no such item"}),
            ("retract", {"target": "no such item"}),
            ("resolve", {"target": "no such item"}),
            ("erase", {"target": "no such item", "reason": "a request"}),
            ("advance", {"id": self.new("f"), "obligation": "no such item", "content": "onward"}),
            ("withdraw", {"target": self.one(self.missed)}),
            ("remember", {"id": self.new("m"), "principal": "P0", "content": "a thought", "grounded_in": []}),
            ("grant", {"role": "dev", "read": ["open"], "valid_to": iso(self.now)}),
            ("depart", {"principal": "Nobody", "role": "dev", "task": "build"}),
            ("read", {"principal": "Nobody", "role": "dev", "task": "build"}),
            ("join", {"principal": "Nobody", "role": "dev", "task": "build"}),
            *[
                ("read", {"principal": name, "role": role, "task": "ship", "known_at": self.one(self.missed)})
                for name, role in (("P0", "lead"), ("P1", "lead"))
                if self.player.ws.holds_role(name, role)
            ],
            ("join", {"principal": "P0", "role": "no such role", "task": "build"}),
            ("depart", {"principal": "P0", "role": "no such role", "task": "build"}),
            ("admit", {"principal": "Nobody"}),
            ("recall", {"principal": "Nobody"}),
        ]
        for ticket in self.open_tickets():
            if self.player.ws.holds_role(ticket.principal, ticket.role):
                admit = {"principal": ticket.principal}
                wrongs += [
                    ("admit", admit | {"known_at": self.one(self.missed)}),
                    ("admit", admit | {"known_at": iso(self.now - 400 * DAY)}),
                    ("admit", admit | {"policy": {"max_items": 1_000}}),
                    ("admit", admit | {"valid_at": self.before().removesuffix("Z")}),
                ]
        if known:
            item = self.player.ws.items[self.one(known)]
            wrongs += [
                ("record", plain | {"id": item.id}),
                ("verdict", {"later": item.id, "earlier": item.id, "says": "invalidates"}),
                ("verdict", {"later": item.id, "earlier": "no such item", "says": "compatible"}),
                (
                    "remember",
                    {"id": self.new("m"), "principal": "Nobody", "content": "x", "grounded_in": [item.id]},
                ),
            ]
            if item.kind in ("fact", "constraint"):
                own = plain | {"scope": item.scope, "kind": item.kind, "key": item.key}
                wrongs += [
                    ("record", own | {"depends_on": [item.id]}),
                    ("resolve", {"target": item.id}),
                    ("advance", {"id": self.new("f"), "obligation": item.id, "content": "onward"}),
                ]
            if item.retired_epoch != OPEN:
                wrongs.append(("retract", {"target": item.id}))
        act, fields = self.one(wrongs)
        self.add(act, fields, name=self.maybe(0.3))


GESTURES: Mapping[Callable[[Writer], None], float] = {
    Writer.records: 14,
    Writer.a_batch: 4,
    Writer.at_another_time: 10,
    Writer.a_past_put_right: 2.5,
    Writer.a_refresh: 7,
    Writer.a_summary: 6,
    Writer.a_circle: 2,
    Writer.a_tower: 0.15,
    Writer.opens: 8,
    Writer.advances: 4,
    Writer.resolves: 2,
    Writer.another_term: 1.5,
    Writer.revokes: 5,
    Writer.retracts: 5,
    Writer.withdraws: 4,
    Writer.a_receipt_runs_out: 1.5,
    Writer.a_succession_foreseen: 1.5,
    Writer.oversteps: 4,
    Writer.erases: 1,
    Writer.grants: 4,
    Writer.denies: 2,
    Writer.revises_policy: 2,
    Writer.judges: 7,
    Writer.a_dispute: 3,
    Writer.departs: 6,
    Writer.comes_back: 16,
    Writer.reads: 4,
    Writer.remembers: 4,
    Writer.stays_a_while: 5,
    Writer.a_task_of_work: 3,
    Writer.a_long_absence: 5,
    Writer.recalls: 3,
    Writer.goes_wrong: 8,
}


def ancestors(player: Player, item: Item) -> set[str]:
    """All it is derived from."""
    found: set[str] = set()
    level = set(item.derived_from)
    while level - found:
        found |= level
        level = {name for source in level for name in player.ws.items[source].derived_from}
    return found


def iso(microseconds: int) -> str:
    moment = EPOCH_START + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z")


# ---------------------------------------------------------------- what the reference says of it


def expected(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with an `expect` on every step that gives an answer or is refused."""
    steps = []
    for step, outcome in zip(scenario["steps"], play(scenario), strict=True):
        bare = {field: value for field, value in step.items() if field != "expect"}
        expect = expectation(outcome)
        steps.append(bare | {"expect": expect} if expect else bare)
    return {**scenario, "steps": steps}


def expectation(outcome: Outcome) -> Step:
    if outcome.error is not None:
        return {"error": outcome.error}
    found: Step = {}
    for field, value in vars(outcome).items():
        if field in ("step", "act") or value is None:
            continue
        if isinstance(value, Mapping):
            found[field] = {name: sorted(reasons) for name, reasons in value.items()}
        elif isinstance(value, frozenset):
            found[field] = sorted(value)
        else:
            found[field] = value if isinstance(value, str) else float(value)
    if outcome.decision == "refused":  # nothing is listed
        return {"decision": "refused"}
    return found


def dump(scenario: Mapping[str, Any], stream: IO[str]) -> None:
    """As a scenario file."""
    from ruamel.yaml import YAML

    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.allow_unicode = True
    yaml.dump(dict(scenario), stream)


def main(folder: str, seeds: Sequence[str]) -> None:
    for seed in seeds:
        with (Path(folder) / f"history-{seed}.trace.yaml").open("w", encoding="utf-8") as stream:
            dump(expected(history(int(seed))), stream)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
