"""The gestures of a random history: each writes the few steps of one thing that happens (see `histories`).

`GESTURES` says how often each comes. A gesture looks at what the writer has played so far, and writes nothing
where there is nothing for it to act on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from .gates import sources
from .model import OPEN, Item
from .writer import (
    DAY,
    DEPENDENCIES,
    HOUR,
    KEYS,
    LONG,
    MINUTE,
    PRINCIPALS,
    PURPOSES,
    SCOPES,
    TASKS,
    Step,
    Writer,
    iso,
)


def gesture(w: Writer, rng: Random) -> None:
    """One thing that happens, of one step or a few, with its choices from `rng`."""
    w.rng = rng
    if w.maybe(0.5):
        w.clock_moves()
    chosen = rng.choices(list(GESTURES), weights=list(GESTURES.values()))[0]
    chosen(w)


# ---------------------------------------------------------------- statements


def records(w: Writer) -> None:
    w.add("record", w.statement())


def a_batch(w: Writer) -> None:
    w.add("record", [w.statement() for _ in range(w.rng.randint(2, 3))])


def at_another_time(w: Writer) -> None:
    """A backfill, a future version, one with an end, a correction of the past, a tie of valid_from."""
    fields = w.statement()
    start, end = sorted((w.around(), w.around()))
    shape = w.one(("from", "until", "both", "both", "both"))
    if shape != "until":
        fields["valid_from"] = start
    if shape == "until":
        fields["valid_to"] = w.after()
    if shape == "both":
        fields["valid_to"] = end if start < end else w.after()
    w.add("record", fields)


def a_past_put_right(w: Writer) -> None:
    """Regular versions of one key and corrections of the past, in any order; then looks at that past."""
    first, key, scope = w.now - 8 * HOUR, w.one(KEYS), "open"
    for _ in range(w.rng.randint(2, 6)):
        fields = w.statement(key=key, scope=scope, kind="fact", supersedes=[], purposes=[])
        fields.pop("by", None)
        if w.maybe(0.7):
            start, end = sorted(w.rng.sample(range(8), 2))
            fields["valid_from"], fields["valid_to"] = iso(first + start * HOUR), iso(first + end * HOUR)
            if w.maybe(0.3):
                del fields["valid_to"]
        if w.maybe(0.3):
            w.at = iso(w.now + MINUTE)
            w.player.ws.now += MINUTE
        w.add("record", fields, name=True)
        if w.maybe(0.15):
            w.add("retract", {"target": fields["id"]})
    who = w.who()
    look: Step = {"principal": who, "role": w.role_of(who), "task": w.one(TASKS)}
    for _ in range(w.rng.randint(1, 3)):
        when = {"valid_at": iso(first + w.rng.randint(0, 16) * HOUR // 2)}
        if w.names and w.maybe(0.3):
            when["known_at"] = w.one(w.names[-4:])
        w.add(w.one(("read", "join")), look | when)


def a_refresh(w: Writer) -> None:
    """A new version of what is there, with the same words or others."""
    if not (old := w.items("fact", "constraint")):
        return
    fresh = set(w.standing()) if w.maybe(0.7) else set()
    item = w.one([item for item in old if item.id in fresh] or old)
    same = item.content if w.maybe(0.6) else w.words()
    fields = w.statement(scope=item.scope, kind=item.kind, key=item.key, content=same)
    if w.maybe(0.3):
        fields["valid_from"] = iso(item.valid_from) if item.valid_from > -OPEN else w.before()
    w.add("record", fields)


def a_summary(w: Writer) -> None:
    """Derived, with no receipt of its own."""
    if not (old := (w.standing() if w.maybe(0.7) else []) or w.ids()):
        return
    sources = w.some(old, 1, 2)
    fields = w.statement(derived_from=sources, receipt=None, key=w.new("k"))
    fields.pop("receipts", None)
    claimed = {name for source in sources for name in w.player.ws.items[source].dependencies}
    if claimed and w.maybe(0.7):
        fields["supports"] = sorted(claimed)[:2]
    w.add("record", fields)


def a_circle(w: Writer) -> None:
    """Items of one batch that rest on each other."""
    size = w.rng.randint(2, 3)
    batch = [w.statement(key=w.new("k"), supersedes=[]) for _ in range(size)]
    kind = w.one(("depends_on", "derived_from"))
    for fields, following in zip(batch, [*batch[1:], batch[0]], strict=True):
        fields[kind] = [following["id"]]
        if kind == "derived_from" and w.maybe(0.7):
            fields.pop("receipts", None)
            fields["receipt"] = None
    w.add("record", batch)


def a_tower(w: Writer) -> None:
    """A chain of premises about as deep as the limit."""
    batch: list[Step] = []
    for floor in range(w.rng.randint(32, 35)):
        fields: Step = {"id": w.new("i"), "scope": "open", "content": f"floor {floor}"}
        fields["receipt"] = {"id": w.new("r"), "uri": "log:tower", "text": "as built"}
        if batch:
            fields[w.one(("depends_on", "derived_from"))] = [batch[-1]["id"]]
        batch.append(fields)
    w.add("record", batch)


# ---------------------------------------------------------------- obligations


def opens(w: Writer) -> None:
    fields: Step = {
        "id": w.new("o"),
        "scope": w.one(("open",) * 5 + SCOPES),
        "content": w.words(6),
    }
    fields |= w.author()
    fields["requires"] = [name + w.one(("", "!")) for name in w.some(DEPENDENCIES, 0, 3)]
    fields["frontier"] = {"id": w.new("f"), "content": w.words(6)}
    if w.maybe(0.9):
        fields["role"] = w.role()
    if w.maybe(0.4):
        fields["task"] = w.one(TASKS)
    if w.maybe(0.15):
        fields["purposes"] = w.some(PURPOSES, 1, 2)
    if w.maybe(0.2):
        fields["key"] = w.one(KEYS)
    w.add("open_obligation", fields)


def advances(w: Writer) -> None:
    if not (obligations := w.items("obligation")):
        return
    owed = w.one(obligations)
    others = [name for name in w.ids() if name != owed.id]
    if others and w.maybe(0.2):
        said: Step = {"later": w.one(others), "earlier": owed.id, "says": "invalidates"}
        w.add("verdict", said | {"task": w.one((*TASKS, owed.task))}, name=True)
    frontier = {"id": w.new("f"), "obligation": owed.id, "content": w.words(5)}
    w.add("advance", frontier | w.author())


def resolves(w: Writer) -> None:
    """Also one resolved before."""
    if obligations := w.ids("obligation"):
        target = {"target": w.one(obligations)}
        w.add("resolve", target | w.author(), name=w.maybe(0.6))
        if w.maybe(0.3):
            w.add("resolve", target, name=True)


def another_term(w: Writer) -> None:
    """An obligation anew, under the key of one that stands: the older frontier is left without one."""
    standing = set(w.standing())
    if owed := [item for item in w.items("obligation") if item.id in standing]:
        old = w.one(owed)
        fields: Step = {"id": w.new("o"), "key": old.key, "scope": old.scope, "content": w.words(4)}
        fields |= {"requires": [name for name, _ in old.requires], "role": old.role, "task": old.task}
        w.add("open_obligation", fields | {"frontier": {"id": w.new("f"), "content": w.words(4)}})


# ---------------------------------------------------------------- ending and undoing


def revokes(w: Writer) -> None:
    targets = w.ids() if w.maybe(0.6) else list(w.player.ws.receipts)
    if targets:
        fields: Step = {"target": w.one(targets)} | w.author()
        if w.maybe(0.4):
            fields["effective_from"] = w.around()
        if w.maybe(0.2):
            fields["reason"] = "as it turned out"
        w.add("revoke", fields, name=w.maybe(0.6))


def retracts(w: Writer) -> None:
    standing = w.standing() if w.maybe(0.6) else []
    targets = (standing or w.ids()) if w.maybe(0.8) else list(w.player.ws.receipts)
    if targets:
        w.add("retract", {"target": w.one(targets)} | w.author())


def a_receipt_runs_out(w: Writer) -> None:
    """A receipt of what stands, revoked from later on; then a look at now and at then."""
    standing = set(w.standing())
    bound = {b.receipt for item in w.items() if item.id in standing for b in item.bindings}
    if bound:
        then = w.after()
        revoked = {"target": w.one(sorted(bound)), "effective_from": then}
        w.add("revoke", revoked, name=w.maybe(0.5))
        looks(w, valid_at=then)


def a_succession_foreseen(w: Writer) -> None:
    """A future item, and one that supersedes it before or after it begins."""
    first = w.statement(valid_from=w.after(), scope="open")
    w.add("record", first)
    if first["id"] in w.ids():
        w.add("record", w.statement(supersedes=[first["id"]], valid_from=w.around()))
        looks(w, valid_at=w.one((first["valid_from"], w.after())))


def oversteps(w: Writer) -> None:
    """A principal writes to several scopes, perhaps with less than it takes."""
    if not (old := w.ids()):
        return
    author = w.one(PRINCIPALS)
    if w.maybe(0.5):
        w.add("record", w.statement(by=author, supersedes=w.some(old, 1, 2)))
    else:
        target = w.one([*old, *w.player.ws.receipts])
        w.add(w.one(("revoke", "retract")), {"target": target, "by": author})


def withdraws(w: Writer) -> None:
    names = [name for name, things in w.player.written.items() if things]
    if names:
        w.add("withdraw", {"target": w.one(names)})


def erases(w: Writer) -> None:
    """Only what is short, heirs and all: whether a tombstone is still too long isn't said."""
    items = w.player.ws.items
    doomed = [name for name in w.ids() if all(items[heir].length <= LONG for heir in heirs(w, name))]
    if doomed:
        w.add("erase", {"target": w.one(doomed), "reason": "a request"})


def heirs(w: Writer, name: str) -> set[str]:
    """The item and all that is derived from it."""
    every = w.player.ws.items.values()
    return {
        item.id for item in every if item.id == name or name in {source.id for source in sources(w.player.ws, item)}
    }


# ---------------------------------------------------------------- permission and policy


def grants(w: Writer) -> None:
    permits(w, "grant")


def denies(w: Writer) -> None:
    permits(w, "deny")


def permits(w: Writer, act: str) -> None:
    fields: Step = {"role": w.role()}
    if act == "grant" and w.maybe(0.4):
        fields["principal"] = w.one((*PRINCIPALS, "P9"))
    else:
        fields["read"] = w.some(SCOPES, 1, 2)
        if w.maybe(0.5):
            fields["write"] = w.some(SCOPES, 1, 2)
    if w.maybe(0.3):
        fields["valid_from"] = w.around()
    if w.maybe(0.4):
        fields["valid_to"] = w.after()
    if fields.get("valid_from", "") >= fields.get("valid_to", "9"):
        del fields["valid_from"]
    w.add(act, fields, name=w.maybe(0.8))


def revises_policy(w: Writer) -> None:
    if fields := w.policy_fields(0.3):
        w.add("policy", fields)


# ---------------------------------------------------------------- verdicts


def judges(w: Writer) -> None:
    if len(w.ids()) < 2:
        return
    later, earlier = w.rng.sample(w.ids(), 2)
    if (standing := [name for name in w.standing() if name != later]) and w.maybe(0.6):
        earlier = w.one(standing)
    asked = [v for v in w.player.ws.verdicts if {v.later, v.earlier} <= set(w.ids())]
    if asked and w.maybe(0.5):  # another word on the same pair, or on the same earlier item
        again = w.one(asked)
        later, earlier = (
            (again.later if w.maybe(0.6) or later == again.earlier else later),
            again.earlier,
        )
    says = w.one(("invalidates", "invalidates", "compatible", "uncertain", "restores", "proposed"))
    fields: Step = {"later": later, "earlier": earlier, "says": says}
    if w.maybe(0.5):
        fields["task"] = w.one(TASKS)
    if w.maybe(0.4):
        fields["confidence"] = w.one((0.4, 0.5, 0.65, 0.8, 0.9, 1))
    if w.maybe(0.5):
        fields["quote"] = quote(w, w.player.ws.items[later])
    if w.maybe(0.3):
        fields["effective_from"] = w.around()
    w.add("verdict", fields, name=w.maybe(0.6))


def a_dispute(w: Writer) -> None:
    """Two items and what is said of them, word after word, and a return that asks for verification."""
    earlier, later = w.statement(scope="open"), w.statement(scope="open")
    if w.maybe(0.3):
        later["valid_from"] = w.after()
    for fields in (earlier, later):
        fields.pop("by", None)
        fields.pop("supersedes", None)
        w.add("record", fields)
    if not {earlier["id"], later["id"]} <= set(w.ids()):
        return
    said = ("proposed", "uncertain", "invalidates", "compatible", "restores")
    enough = float(w.player.ws.policy_at(w.player.ws.epoch).confidence)
    for _ in range(w.rng.randint(1, 4)):
        fields = {"later": later["id"], "earlier": earlier["id"], "says": w.one(said)}
        if w.maybe(0.4):
            fields["task"] = w.one(TASKS)
        if w.maybe(0.4):
            fields["confidence"] = w.one((enough, enough, 0.4))
        if w.maybe(0.3):
            fields["effective_from"] = w.around()
        w.add("verdict", fields, name=w.maybe(0.5))
        if w.maybe(0.2):
            withdraws(w)
    if w.maybe(0.2):
        w.add("retract", {"target": later["id"]})
    looks(w, policy={"verification": "required"}, valid_at=later.get("valid_from", w.after()))


def looks(w: Writer, policy: Step | None = None, **clocks: Any) -> None:
    """Returns without a ticket, as things are and then with what is asked."""
    who = w.who()
    fields: Step = {"principal": who, "role": w.role_of(who), "task": w.one(TASKS)}
    w.add("join", fields)
    if policy is not None:
        fields["policy"] = policy
        w.add("join", fields)
    w.add("join", fields | clocks)


def quote(w: Writer, item: Item) -> str:
    """Words that are there, as they are or spelled and spaced otherwise, or words that are not."""
    receipts = [w.player.ws.receipts[binding.receipt].text for binding in item.bindings]
    found = [words for text in (item.content, *receipts) if (words := text.split())]
    if not found or w.maybe(0.15):
        return "no such words"
    words = w.one(found)[:2]
    if w.maybe(0.2):
        return str(w.one((words[0].upper(), "  \n".join(words), words[0].replace("é", "e\u0301"))))
    return " ".join(words)


# ---------------------------------------------------------------- leaving and returning


def departs(w: Writer) -> None:
    who = w.who()
    w.add("depart", {"principal": who, "role": w.role_of(who), "task": w.one(TASKS)})


def comes_back(w: Writer) -> None:
    """By ticket or without, for real or as a preview; then perhaps a look at what it gave."""
    fields: Step = {}
    open_tickets = w.open_tickets()
    if w.maybe(0.75) and (open_tickets or w.maybe(0.1)):
        act, who = "admit", w.one(open_tickets).principal if open_tickets else w.who()
    else:
        act, who = "join", w.who()
    fields["principal"] = who
    if act == "join":
        fields |= {"role": w.role_of(who), "task": w.one(TASKS)}
    if w.maybe(0.6):
        fields["purpose"] = w.one((*PURPOSES, *PURPOSES, "something else"))
    if w.maybe(0.1):
        fields["workload"] = "a run"
    if w.maybe(0.25):
        fields |= clocks(w)
    if w.maybe(0.2):
        fields["policy"] = w.tighter()
    w.add(act, fields)
    if w.maybe(0.5):
        w.add("recall", {"principal": who})


def clocks(w: Writer) -> Step:
    fields: Step = {}
    if w.maybe(0.6):
        fields["valid_at"] = w.around()
    if w.maybe(0.6):
        fields["known_at"] = w.one(w.names) if w.names and w.maybe(0.7) else w.before()
    return fields


def reads(w: Writer) -> None:
    who = w.who()
    fields: Step = {"principal": who, "role": w.role_of(who), "task": w.one(TASKS)}
    w.add("read", fields | clocks(w))


def remembers(w: Writer) -> None:
    """Mostly of what was admitted: only that is ever recalled."""
    admitted = [(who, sorted(view.items)) for who, view in w.player.ws.views.items() if view.items]
    if admitted and w.maybe(0.7):
        who, known = w.one(admitted)
    else:
        who, known = w.one(PRINCIPALS), w.ids()
    known = [name for name in known if name in w.ids()]
    if known:
        fields = {"id": w.new("m"), "principal": who, "content": w.words()}
        w.add("remember", fields | {"grounded_in": w.some(known, 1, 2)})
        if w.maybe(0.5):
            w.add("recall", {"principal": who})


def a_task_of_work(w: Writer) -> None:
    """A departure, obligations that can be met, evidence of equal and unequal worth, and a return."""
    who = w.who()
    role, task = w.role_of(who), w.one(TASKS)
    w.add("depart", {"principal": who, "role": role, "task": task})
    owed: list[str] = []
    for _ in range(w.rng.randint(1, 2)):
        requires = [name + w.one(("", "!")) for name in w.some(DEPENDENCIES, 1, 2)]
        owed += [name.rstrip("!") for name in requires]
        fields: Step = {
            "id": w.new("o"),
            "scope": "open",
            "content": w.words(2),
            "requires": requires,
        }
        fields |= {"role": role, "frontier": {"id": w.new("f"), "content": w.words(2)}}
        w.add("open_obligation", fields | ({"task": task} if w.maybe(0.5) else {}))
    for _ in range(w.rng.randint(2, 6)):
        evidence: Step = {"id": w.one("abcxyz") + w.new("i"), "scope": "open"}
        evidence["content"] = w.one(("desk", "gate", "lamp", "gate lamp", "cable hotel badge"))
        evidence["receipt"] = {"id": w.new("r"), "uri": "log:work", "text": w.words()}
        evidence["supports"] = w.some(owed, 1, 2) if w.maybe(0.8) else w.some(DEPENDENCIES, 1, 2)
        if w.maybe(0.4):
            evidence["valid_from"] = w.before()
        w.add("record", evidence)
    if w.maybe(0.3):
        w.one((retracts, judges, revokes, revises_policy))(w)
    w.at = iso(w.now + MINUTE)
    w.player.ws.now += MINUTE
    admit: Step = {"principal": who}
    if w.maybe(0.5):
        least = min(2 + w.rng.randint(0, 3), w.player.ws.policy_at(w.player.ws.epoch).max_items)
        admit["policy"] = w.one((w.tighter(), {"max_items": least, "coverage": 1}))
    w.add("admit", admit)
    w.add("recall", {"principal": who})


def a_long_absence(w: Writer) -> None:
    """A departure, much that changes what was seen there, and a return: first foreseen, then for real."""
    who = w.who()
    task = w.one(TASKS)
    w.add("depart", {"principal": who, "role": w.role_of(who), "task": task}, name=True)
    seen = w.standing()
    changes = (
        at_another_time,
        a_refresh,
        advances,
        resolves,
        oversteps,
    )
    for _ in range(w.rng.randint(2, 5)):
        if w.maybe(0.5):
            w.one(changes)(w)
        elif still := sorted(set(seen) & set(w.ids())):
            act = w.one(("revoke", "retract", "record", "verdict"))
            target = w.one(still)
            if act == "record":
                w.add("record", w.statement(supersedes=[target]))
            elif act == "verdict" and (others := [name for name in w.ids() if name != target]):
                said: Step = {"later": w.one(others), "earlier": target, "says": "invalidates"}
                w.add("verdict", said | ({"task": task} if w.maybe(0.5) else {}), name=True)
            elif act != "verdict":
                w.add(act, {"target": target}, name=act == "revoke")
    w.clock_moves()
    admit: Step = {"principal": who} | ({"purpose": w.one(PURPOSES)} if w.maybe(0.5) else {})
    if w.maybe(0.5):
        w.add("admit", admit | clocks(w))
    w.add("admit", admit)


def stays_a_while(w: Writer) -> None:
    """Comes back, notes something about what was admitted, and looks at it again after this and that."""
    who = w.who()
    back = w.add("join", {"principal": who, "role": w.role_of(who), "task": w.one(TASKS)})
    known = sorted(name for name in back.admitted or () if name in w.ids())
    if not known:
        return
    fields = {"id": w.new("m"), "principal": who, "content": w.words()}
    w.add("remember", fields | {"grounded_in": w.some(known, 1, 2)})
    for _ in range(w.rng.randint(0, 2)):
        w.at = iso(w.now + MINUTE)
        w.player.ws.now += MINUTE
        if w.maybe(0.3):
            owed: Step = {
                "id": w.new("o"),
                "scope": w.one(SCOPES),
                "content": w.one(("work", "new work " * 8)),
            }
            owed["requires"] = w.some(DEPENDENCIES, 0, 1)
            w.add("open_obligation", owed | {"frontier": {"id": w.new("f"), "content": "to do"}})
        elif w.maybe(0.3):
            w.add("policy", w.policy_fields(0.4) or {"max_items": 6})
        elif w.maybe(0.5):
            w.one((records, denies, judges))(w)
        elif fresh := [name for name in known if name in w.ids()]:
            w.add(w.one(("revoke", "retract")), {"target": w.one(fresh)})
        w.add("recall", {"principal": who})


def recalls(w: Writer) -> None:
    w.add("recall", {"principal": w.who()})


# ---------------------------------------------------------------- one thing wrong


def goes_wrong(w: Writer) -> None:
    """A well-formed act with exactly one fault."""
    known = w.ids()
    plain: Step = {"id": w.new("i"), "scope": "open", "content": w.words(), "receipt": None}
    wrongs: list[tuple[str, Any]] = [
        ("record", plain | {"depends_on": ["no such item"]}),
        ("record", plain | {"supersedes": [plain["id"]]}),
        ("record", plain | {"derived_from": [plain["id"]]}),
        ("record", plain | {"by": "Nobody"}),
        ("record", plain | {"valid_from": w.after(), "valid_to": w.before()}),
        ("record", plain | {"valid_to": iso(w.now)}),
        ("record", plain | {"valid_from": w.before().removesuffix("Z")}),
        ("record", plain | {"key": "k" * 257}),
        ("record", plain | {"receipt": {"id": "no such receipt", "sha256": "0" * 64}}),
        ("record", plain | {"supports": [{"dependency": "d0", "receipt": "no such receipt"}]}),
        ("record", [plain, dict(plain)]),
        ("revoke", {"target": "no such item"}),
        ("retract", {"target": "no such item"}),
        ("resolve", {"target": "no such item"}),
        ("erase", {"target": "no such item", "reason": "a request"}),
        ("advance", {"id": w.new("f"), "obligation": "no such item", "content": "onward"}),
        ("withdraw", {"target": w.one(w.missed)}),
        ("remember", {"id": w.new("m"), "principal": "P0", "content": "a thought", "grounded_in": []}),
        ("grant", {"role": "dev", "read": ["open"], "valid_to": iso(w.now)}),
        ("depart", {"principal": "Nobody", "role": "dev", "task": "build"}),
        ("read", {"principal": "Nobody", "role": "dev", "task": "build"}),
        ("join", {"principal": "Nobody", "role": "dev", "task": "build"}),
        *[
            ("read", {"principal": name, "role": role, "task": "ship", "known_at": w.one(w.missed)})
            for name, role in (("P0", "lead"), ("P1", "lead"))
            if w.player.ws.holds_role(name, role)
        ],
        ("join", {"principal": "P0", "role": "no such role", "task": "build"}),
        ("depart", {"principal": "P0", "role": "no such role", "task": "build"}),
        ("admit", {"principal": "Nobody"}),
        ("recall", {"principal": "Nobody"}),
    ]
    for ticket in w.open_tickets():
        if w.player.ws.holds_role(ticket.principal, ticket.role):
            admit = {"principal": ticket.principal}
            wrongs += [
                ("admit", admit | {"known_at": w.one(w.missed)}),
                ("admit", admit | {"known_at": iso(w.now - 400 * DAY)}),
                ("admit", admit | {"policy": {"max_items": 1_000}}),
                ("admit", admit | {"valid_at": w.before().removesuffix("Z")}),
            ]
    if known:
        item = w.player.ws.items[w.one(known)]
        wrongs += [
            ("record", plain | {"id": item.id}),
            ("verdict", {"later": item.id, "earlier": item.id, "says": "invalidates"}),
            ("verdict", {"later": item.id, "earlier": "no such item", "says": "compatible"}),
            (
                "remember",
                {"id": w.new("m"), "principal": "Nobody", "content": "x", "grounded_in": [item.id]},
            ),
        ]
        if item.kind in ("fact", "constraint"):
            own = plain | {"scope": item.scope, "kind": item.kind, "key": item.key}
            wrongs += [
                ("record", own | {"depends_on": [item.id]}),
                ("resolve", {"target": item.id}),
                ("advance", {"id": w.new("f"), "obligation": item.id, "content": "onward"}),
            ]
        if item.retired_epoch != OPEN:
            wrongs.append(("retract", {"target": item.id}))
    act, fields = w.one(wrongs)
    w.add(act, fields, name=w.maybe(0.3))


GESTURES: Mapping[Callable[[Writer], None], float] = {
    records: 14,
    a_batch: 4,
    at_another_time: 10,
    a_past_put_right: 2.5,
    a_refresh: 7,
    a_summary: 6,
    a_circle: 2,
    a_tower: 0.15,
    opens: 8,
    advances: 4,
    resolves: 2,
    another_term: 1.5,
    revokes: 5,
    retracts: 5,
    withdraws: 4,
    a_receipt_runs_out: 1.5,
    a_succession_foreseen: 1.5,
    oversteps: 4,
    erases: 1,
    grants: 4,
    denies: 2,
    revises_policy: 2,
    judges: 7,
    a_dispute: 3,
    departs: 6,
    comes_back: 16,
    reads: 4,
    remembers: 4,
    stays_a_while: 5,
    a_task_of_work: 3,
    a_long_absence: 5,
    recalls: 3,
    goes_wrong: 8,
}
