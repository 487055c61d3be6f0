"""Scenario files through the reference (DESIGN.md §13).

`load` reads a file, `play` gives one `Outcome` a step, `disagreements` compares them with the `expect`s:

    python -m tests.reference.play FILE...

A scenario is plain dicts and lists; scalars may be strings or numbers. It must be well formed: what the
reference can't make sense of is an exception, never an outcome.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from . import returning, writing
from .model import BEGINNING, OPEN, Edge, Lasting, Policy, Refusal, Support, Workspace
from .writing import Draft, ReceiptUse

Fields = Mapping[str, Any]
EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Outcome:
    """What a step came to, in the terms of `expect`. A field the step doesn't speak of is None."""

    step: int
    act: str
    error: str | None = None
    decision: str | None = None
    coverage: Fraction | None = None
    critical: Fraction | None = None
    admitted: frozenset[str] | None = None
    rejected: Mapping[str, frozenset[str]] | None = None  # every pool item → exactly its gate reasons
    selection: Mapping[str, frozenset[str]] | None = None
    pool: frozenset[str] | None = None
    uncovered: frozenset[str] | None = None
    items: frozenset[str] | None = None
    recalled: frozenset[str] | None = None


def play(scenario: Mapping[str, Any]) -> list[Outcome]:
    """Plays a scenario on a fresh workspace: one outcome a step, in order."""
    player = Player(scenario)
    return [player.step(number, step) for number, step in enumerate(scenario.get("steps") or [])]


# ---------------------------------------------------------------- reading values


def instant(value: Any) -> int:
    """Microseconds since 1970 UTC of an ISO instant. A naive one is refused."""
    moment = datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        raise Refusal("naive_datetime")
    return (moment - EPOCH_START) // timedelta(microseconds=1)


def instant_or_none(value: Any) -> int | None:
    return None if value is None else instant(value)


def text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def texts(value: Any) -> tuple[str, ...]:
    return tuple(str(entry) for entry in value or ())


def fraction(value: Any) -> Fraction:
    """Exact: 0.2 is one fifth, as written."""
    return value if isinstance(value, Fraction) else Fraction(str(value))


def policy_changes(given: Fields | None) -> dict[str, object]:
    read = {
        "coverage": fraction,
        "critical": fraction,
        "confidence": fraction,
        "on_incomplete": str,
        "fill": str,
        "verification": str,
        "kinds": lambda value: frozenset(texts(value)),
        "max_items": int,
        "max_chars": int,
        "max_item_chars": int,
        "view_minutes": int,
        "ticket_days": int,
    }
    return {name: read[name](value) for name, value in (given or {}).items()}  # type: ignore[operator]


def receipts(name: str, given: Fields) -> tuple[ReceiptUse, ...]:
    entries = given.get("receipts")
    if entries is None:
        entries = [given["receipt"]] if given.get("receipt") is not None else []
    uses = []
    for number, entry in enumerate(entries):
        if "sha256" in entry:
            uses.append(ReceiptUse(str(entry["id"]), new=False, sha256=str(entry["sha256"])))
        else:
            text = str(entry.get("text") or "")
            uses.append(ReceiptUse(str(entry.get("id", f"{name}/receipt {number}")), new=True, text=text))
    return tuple(uses)


def support(entry: Any) -> Support:
    if isinstance(entry, Mapping):
        return Support(str(entry["dependency"]), text_or_none(entry.get("receipt")))
    return Support(str(entry))


def draft(given: Fields) -> Draft:
    """One record, or the obligation of `open_obligation`."""
    name = str(given["id"])
    return Draft(
        id=name,
        content=str(given["content"]),
        by=text_or_none(given.get("by")),
        key=str(given.get("key", name)),
        kind=str(given.get("kind", "fact")),
        scope=str(given["scope"]),
        task=text_or_none(given.get("task")),
        purposes=texts(given.get("purposes")),
        role=text_or_none(given.get("role")),
        valid_from=instant_or_none(given.get("valid_from")),
        valid_to=instant_or_none(given.get("valid_to")),
        supports=tuple(support(entry) for entry in given.get("supports") or ()),
        depends_on=texts(given.get("depends_on")),
        derived_from=texts(given.get("derived_from")),
        supersedes=texts(given.get("supersedes")),
        receipts=receipts(name, given),
        requires=tuple((dep.rstrip("!"), dep.endswith("!")) for dep in texts(given.get("requires"))),
    )


# ---------------------------------------------------------------- playing


class Player:
    """One workspace, the clock of its steps, and the names given to steps that were carried out."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        self.ws = Workspace(now=instant(scenario["clock"]))
        self.epochs: dict[str, int] = {}  # name of a step → the latest epoch after it
        self.written: dict[str, Sequence[Lasting]] = {}  # name of a step → what `withdraw` takes back
        self.ws.policies = [(0, Policy(**policy_changes(scenario.get("policy"))))]  # type: ignore[arg-type]
        edges: list[tuple[str, str, str]] = []
        for role, scopes in (scenario.get("roles") or {}).items():
            edges += self.permissions("MAY", str(role), scopes or {})
        for principal, roles in (scenario.get("principals") or {}).items():
            self.ws.principals.add(str(principal))
            edges += [("HOLDS", str(principal), role) for role in texts(roles)]
        # they hold at every valid time, and are known from the start
        self.ws.edges = [
            Edge(0, kind=kind, source=source, target=target, valid_from=BEGINNING, valid_to=OPEN)
            for kind, source, target in edges
        ]

    def step(self, number: int, step: Fields) -> Outcome:
        if "at" in step:
            moved = instant(step["at"])
            if moved < self.ws.now:
                raise ValueError(f"step {number}: `at` goes backwards")
            self.ws.now = moved
        acts = [field for field in step if field not in ("at", "name", "expect")]
        if len(acts) != 1 or not hasattr(self, f"do_{acts[0]}"):
            raise ValueError(f"step {number}: one act expected, got {acts}")
        act = acts[0]
        things: Sequence[Lasting] = ()
        try:
            result = getattr(self, f"do_{act}")(step[act])
        except Refusal as refusal:
            return Outcome(number, act, error=refusal.code)
        if isinstance(result, list):
            things, result = result, {}
        if "name" in step:
            self.epochs[str(step["name"])] = self.ws.epoch
            self.written[str(step["name"])] = things
        return Outcome(number, act, **(result or {}))

    # Writing

    def do_record(self, given: Fields | Sequence[Fields]) -> None:
        batch = [given] if isinstance(given, Mapping) else given
        writing.record(self.ws, [draft(record) for record in batch])

    def do_open_obligation(self, given: Fields) -> None:
        owed = draft({**given, "kind": "obligation"})
        frontier = given["frontier"]
        open_end = Draft(str(frontier["id"]), str(frontier["content"]), owed.by, kind="frontier", obligation=owed.id)
        writing.record(self.ws, [owed, open_end])

    def do_advance(self, given: Fields) -> None:
        frontier = Draft(
            str(given["id"]),
            str(given["content"]),
            text_or_none(given.get("by")),
            kind="frontier",
            obligation=str(given["obligation"]),
        )
        writing.record(self.ws, [frontier])

    def do_resolve(self, given: Fields) -> list[Lasting]:
        return [writing.resolve(self.ws, str(given["target"]), text_or_none(given.get("by")))]

    def do_revoke(self, given: Fields) -> list[Lasting]:
        since = instant_or_none(given.get("effective_from"))
        return [writing.revoke(self.ws, str(given["target"]), text_or_none(given.get("by")), since)]

    def do_retract(self, given: Fields) -> None:
        writing.retract(self.ws, str(given["target"]), text_or_none(given.get("by")))

    def do_withdraw(self, given: Fields) -> None:
        things = self.written.get(str(given["target"]))
        if not things:  # no such step, not carried out, or one that wrote nothing of the kind
            raise Refusal("unknown_item")
        writing.withdraw(self.ws, things)

    def do_erase(self, given: Fields) -> None:
        writing.erase(self.ws, str(given["target"]))

    def do_grant(self, given: Fields) -> list[Lasting]:
        return self.permit("MAY", given)

    def do_deny(self, given: Fields) -> list[Lasting]:
        return self.permit("DENIED", given)

    def permit(self, word: str, given: Fields) -> list[Lasting]:
        role = str(given["role"])
        edges = self.permissions(word, role, given)
        if "principal" in given:
            edges.append(("HOLDS", str(given["principal"]), role))
        span = (instant_or_none(given.get("valid_from")), instant_or_none(given.get("valid_to")))
        return list(writing.permit(self.ws, edges, *span))

    @staticmethod
    def permissions(word: str, role: str, given: Fields) -> list[tuple[str, str, str]]:
        reads = [(f"{word}_READ", role, scope) for scope in texts(given.get("read"))]
        return reads + [(f"{word}_WRITE", role, scope) for scope in texts(given.get("write"))]

    def do_policy(self, given: Fields) -> None:
        self.ws.revise_policy(policy_changes(given))

    def do_verdict(self, given: Fields) -> list[Lasting]:
        confidence = given.get("confidence")
        answer = writing.verdict(
            self.ws,
            later=str(given["later"]),
            earlier=str(given["earlier"]),
            says=str(given["says"]),
            task=text_or_none(given.get("task")),
            confidence=None if confidence is None else fraction(confidence),
            quote=text_or_none(given.get("quote")),
            effective_from=instant_or_none(given.get("effective_from")),
        )
        return [answer]

    def do_remember(self, given: Fields) -> None:
        grounds = texts(given.get("grounded_in"))
        writing.remember(self.ws, str(given["id"]), str(given["principal"]), str(given["content"]), grounds)

    # Leaving and returning

    def do_depart(self, given: Fields) -> None:
        returning.depart(self.ws, str(given["principal"]), str(given["role"]), text_or_none(given.get("task")))

    def do_admit(self, given: Fields) -> dict[str, Any]:
        return vars(returning.admit(self.ws, str(given["principal"]), self.asked(given)))

    def do_join(self, given: Fields) -> dict[str, Any]:
        role, task = str(given["role"]), text_or_none(given.get("task"))
        return vars(returning.join(self.ws, str(given["principal"]), role, task, self.asked(given)))

    def do_read(self, given: Fields) -> dict[str, Any]:
        asked = self.asked(given)
        role, task = str(given["role"]), text_or_none(given.get("task"))
        found = returning.read(self.ws, str(given["principal"]), role, task, asked.valid_at, asked.epoch)
        return {"items": found}

    def do_recall(self, given: Fields) -> dict[str, Any]:
        return {"recalled": returning.recall(self.ws, str(given["principal"]))}

    def asked(self, given: Fields) -> returning.Asked:
        known_at = given.get("known_at")
        return returning.Asked(
            purpose=text_or_none(given.get("purpose")),
            valid_at=instant_or_none(given.get("valid_at")),
            epoch=None if known_at is None else self.known_at(str(known_at)),
            policy=returning.with_changes(policy_changes(given.get("policy"))),
        )

    def known_at(self, given: str) -> int:
        """An instant, or the name of an earlier step that was carried out: the latest epoch after it."""
        if given in self.epochs:
            return self.epochs[given]
        try:
            return self.ws.epoch_known_at(instant(given))
        except ValueError:
            raise Refusal("unknown_item") from None


# ---------------------------------------------------------------- expectations


def disagreements(scenario: Mapping[str, Any]) -> list[str]:
    """One line for each thing that isn't as `expect` says, or was refused unexpectedly."""
    lines = []
    for outcome, step in zip(play(scenario), scenario.get("steps") or [], strict=True):
        for field, expected, found in differences(outcome, step.get("expect") or {}):
            lines.append(f"step {outcome.step} {outcome.act}: {field}: expected {expected}, found {found}")
    return lines


def differences(outcome: Outcome, expect: Fields) -> Iterable[tuple[str, Any, Any]]:
    if outcome.error != expect.get("error"):
        yield "error", expect.get("error"), outcome.error
        return
    for field, expected in expect.items():
        found = getattr(outcome, field)
        if field in ("coverage", "critical"):
            if found is None or abs(found - fraction(expected)) > Fraction(1, 10**6):
                yield field, expected, found
        elif field == "rejected":
            for item, reasons in expected.items():
                got = (found or {}).get(str(item))
                if got != frozenset(texts(reasons)):
                    yield f"rejected {item}", sorted(texts(reasons)), None if got is None else sorted(got)
        elif field == "selection":
            wanted = {str(item): frozenset(texts(reasons)) for item, reasons in expected.items()}
            if found != wanted:
                yield field, wanted, found
        elif field in ("admitted", "pool", "uncovered", "items", "recalled"):
            if found != frozenset(texts(expected)):
                yield field, sorted(texts(expected)), None if found is None else sorted(found)
        elif found != expected:
            yield field, expected, found


# ---------------------------------------------------------------- files


def load(path: Path) -> dict[str, Any]:
    """A YAML 1.2 file, every scalar a string save a plain `null`. Numbers are read where one is meant."""
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

    def plain(node: Any) -> Any:
        if isinstance(node, MappingNode):
            return {plain(key): plain(value) for key, value in node.value}
        if isinstance(node, SequenceNode):
            return [plain(entry) for entry in node.value]
        assert isinstance(node, ScalarNode)
        unquoted = node.style is None
        return None if unquoted and node.value in ("", "~", "null", "Null", "NULL") else node.value

    return plain(YAML(pure=True).compose(path.read_text(encoding="utf-8")))  # type: ignore[no-any-return]


def main(paths: Sequence[str]) -> int:
    failed = 0
    for path in paths:
        lines = disagreements(load(Path(path)))
        failed += bool(lines)
        print(f"{path}: {'agrees' if not lines else f'{len(lines)} disagreements'}")
        for line in lines:
            print(f"  {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
