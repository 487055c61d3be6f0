"""The writer of random histories: its choices, its clock, and the fields of a step (see `histories`).

It plays each step as it writes it, so that what comes next can aim: at a ticket still open, at an item that
stands, at the moment a view expires.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

from .model import OPEN, Item, Moment, Ticket
from .play import EPOCH_START, Outcome, Player

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


def iso(microseconds: int) -> str:
    moment = EPOCH_START + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z")
