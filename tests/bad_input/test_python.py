"""Every method of a workspace, each argument replaced by what it is not: refused with a code, and nothing written."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.bad_input.conftest import Filled
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, ReceiptRef, Support, TracegraphError, Workspace
from tracegraph.errors import HINTS
from tracegraph.model import Limits, Policy, new_id
from tracegraph.scenarios import forget

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 5, 1, tzinfo=UTC)
NAN = math.nan


class Odd:
    """Compares equal to everything and says nothing of itself."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


NAMES: tuple[Any, ...] = (5, 1.5, NAN, True, b"x", ["x"], ("x",), {"x": 1}, {"x"}, Odd(), int, "", "\ud800", "x" * 257)
CONTENTS: tuple[Any, ...] = (None, 5, NAN, b"x", ["x"], Odd(), "", "\udfff", "x" * (Limits.content + 1))
NOTES: tuple[Any, ...] = (5, NAN, b"x", ["x"], Odd(), "\ud800", "x" * (Limits.note + 1))
LISTS: tuple[Any, ...] = (
    None, 5, "x", b"x", NAN, {"x": 1}, Odd(), [5], [None], [["x"]], [b"x"], [""], ["\ud800"], ["x" * 257],
    [str(n) for n in range(Limits.links + 1)],
)  # fmt: skip
INSTANTS: tuple[Any, ...] = (5, 1.5, NAN, True, "2026-05-01T09:00:00Z", date(2026, 5, 1), datetime(2026, 5, 1), Odd())
KNOWN: tuple[Any, ...] = (1.5, NAN, True, "1", -1, 2**70, datetime(2026, 5, 1), date(2026, 5, 1), ["x"], Odd())
POLICIES: tuple[Any, ...] = (
    5, "x", ["max_items"], [("max_items", 1)], Odd(), {"none": 1}, {5: 1}, {"": 1}, {"max_items": "1"},
    {"max_items": 1.0}, {"max_items": True}, {"max_items": -1}, {"max_items": 2**70}, {"max_items": NAN},
    {"coverage": NAN}, {"coverage": math.inf}, {"coverage": 1.01}, {"coverage": -0.01}, {"coverage": "1"},
    {"coverage": True}, {"coverage": None}, {"kinds": "fact"}, {"kinds": ["none"]}, {"kinds": 5}, {"fill": 5},
    {"on_incomplete": "none"}, {"verification": "some"}, {"max_items": [1]},
)  # fmt: skip
CONFIDENCES: tuple[Any, ...] = (NAN, math.inf, -math.inf, -0.01, 1.01, "0.9", "nan", True, b"1", [1], Odd())
SAYS: tuple[Any, ...] = (None, 5, "", "Invalidates", "INVALIDATES", b"compatible", ["compatible"], Odd())
TOKENS: tuple[Any, ...] = (None, 5, NAN, b"a.b.c", ["x"], Odd(), "", "a.b.c", "\ud800", "x" * 100_000)

Good = Mapping[str, Any]


def names(required: bool = True) -> tuple[Any, ...]:
    return (None, *NAMES) if required else NAMES


WHO: dict[str, tuple[Any, ...]] = {"principal": names(), "role": names(), "task": names()}
WRITE: dict[str, tuple[Any, ...]] = {"author": names(False), "batch_id": names(False)}
CLOCKS: dict[str, tuple[Any, ...]] = {"valid_at": INSTANTS, "known_at": KNOWN, "as_of": INSTANTS}
RETURN: dict[str, tuple[Any, ...]] = {
    "purpose": names(False), "workload": names(False), "query": NOTES, "policy": POLICIES, **CLOCKS,
}  # fmt: skip
INTERVAL: dict[str, tuple[Any, ...]] = {"valid_from": INSTANTS, "valid_to": INSTANTS}
SCOPES: dict[str, tuple[Any, ...]] = {"read": LISTS, "write": LISTS}

METHODS: dict[str, tuple[Good, dict[str, tuple[Any, ...]]]] = {
    "open_obligation": (
        {"obligation": Obligation(scope="s", content="Owed.")},
        {"obligation": (None, 5, "x", {}, Odd(), Item(scope="s", content="x"), Receipt(uri="m", text="x")), **WRITE},
    ),
    "advance": (
        {"obligation": "o", "content": "Open."},
        {"obligation": names(), "content": CONTENTS, "id": names(False), **WRITE},
    ),
    "resolve": ({"target": "o"}, {"target": names(), **WRITE}),
    "revoke": ({"target": "i"}, {"target": names(), "reason": (None, *NOTES), "effective_from": INSTANTS, **WRITE}),
    "retract": ({"target": "i"}, {"target": names(), **WRITE}),
    "withdraw": ({"target": "none"}, {"target": names(), **WRITE}),
    "verdict": (
        {"later": "f", "earlier": "i", "says": "compatible"},
        {"later": names(), "earlier": names(), "says": SAYS, "task": names(False), "confidence": CONFIDENCES,
         "quote": NOTES[:-1], "rationale": NOTES, "effective_from": INSTANTS, **WRITE},
    ),
    "grant": (
        {"role": "role", "read": ["s"]},
        {"role": names(), "principal": names(False), **SCOPES, **INTERVAL, **WRITE},
    ),
    "deny": ({"role": "other", "read": ["s"]}, {"role": names(), **SCOPES, **INTERVAL, **WRITE}),
    "set_policy": (
        {"max_items": 64},
        {name: tuple(one[name] for one in POLICIES if isinstance(one, dict) and name in one)
         for name in Policy.model_fields} | WRITE | {"none": (1,)},
    ),
    "policy": ({}, {}),
    "erase": ({"target": "i"}, {"target": names(), "reason": (None, *NOTES), **WRITE}),
    "depart": ({"principal": "P", "role": "role", "task": "t"}, WHO),
    "admit": ({"ticket": "TICKET", "principal": "P"}, {"ticket": TOKENS, "principal": names(), **RETURN}),
    "join": ({"principal": "P", "role": "role", "task": "t"}, {**WHO, **RETURN}),
    "sweep": ({}, {}),
    "sweep_plan": ({}, {}),
    "sweep_batch": ({}, {}),
    "open_view": (
        {"view": "VIEW", "principal": "P"},
        {"view": TOKENS, "principal": names(), "role": NAMES, "task": NAMES},
    ),
    "read": ({"principal": "P", "role": "role", "task": "t"}, {**WHO, **CLOCKS}),
    "remember": (
        {"content": "Words.", "principal": "P", "grounded_in": ["i"]},
        {"content": CONTENTS, "principal": names(), "grounded_in": ([], *LISTS), "id": names(False),
         "batch_id": names(False)},
    ),
    "recall": ({"view": "VIEW", "principal": "P"}, {"view": TOKENS[1:], "principal": names(), "query": NOTES}),
    "returns": ({}, {"item": names(False), "limit": (0, -1, 10_001)}),
    "cycle": ({"cycle_id": "CYCLE"}, {"cycle_id": names()}),
    "why": ({"item": "i", "cycle_id": "CYCLE"}, {"item": names(), "cycle_id": names()}),
    "history": ({"key": "i"}, {"key": names(), "scope": names(False), "kind": names(False)}),
    "exposure": ({"item": "i"}, {"item": names()}),
    "replay": ({"cycle_id": "CYCLE"}, {"cycle_id": names()}),
    "verify": ({}, {}),
}  # fmt: skip
APART = {"record", "export"}
"""`record` takes items (below); `export` has its tests where importing has."""


def test_no_method_is_left_out() -> None:
    public = {
        name for name, _ in inspect.getmembers(Workspace, inspect.iscoroutinefunction) if not name.startswith("_")
    }
    assert public - APART == set(METHODS)
    for name, (good, wrong) in METHODS.items():
        parameters = inspect.signature(getattr(Workspace, name)).parameters
        missing = set(parameters) - {"self", "invalidation", "budget", "progress", "changes"} - set(wrong)
        assert not missing, (name, missing)
        assert set(good) <= set(wrong) or name in ("set_policy",)


async def refusal(call: Callable[[], Any]) -> str | None:
    """The code of the refusal, None when there was none; any other exception goes through."""
    try:
        await call()
    except TracegraphError as error:
        return error.code if error.code in HINTS else f"unknown code {error.code}"
    return None


@pytest.mark.parametrize("name", [name for name, (_, wrong) in METHODS.items() if wrong])
async def test_an_argument_of_a_wrong_kind_is_refused_with_a_code(filled: Filled, name: str) -> None:
    good, wrong = METHODS[name]
    stand_in = {"TICKET": filled.ticket, "VIEW": filled.view, "CYCLE": filled.cycle}
    good = {name: stand_in.get(value, value) if isinstance(value, str) else value for name, value in good.items()}
    before = (await filled.ws.verify()).digest
    for argument, values in wrong.items():
        for value in values:
            given = {**good, argument: value}
            code = await refusal(lambda given=given: getattr(filled.ws, name)(**given))
            assert code in set(HINTS) - {"unavailable"}, (argument, value, code)
    assert (await filled.ws.verify()).digest == before


@pytest.mark.parametrize(
    "value", [None, 5, "words", b"x", {}, {"scope": "s", "content": "c"}, Odd(), Receipt(uri="m", text="x"), [], int]
)
async def test_record_takes_items_and_nothing_else(filled: Filled, value: Any) -> None:
    good = Item(scope="s", content="c")
    before = (await filled.ws.verify()).digest
    for items in ([value], [good, value], [value, good]):
        assert await refusal(lambda items=items: filled.ws.record(*items)) == "invalid_record"
    assert await refusal(lambda: filled.ws.record()) == "invalid_record"
    assert (await filled.ws.verify()).digest == before


async def test_a_workspace_is_opened_by_a_name_only(graph: Graph) -> None:
    for id in names():
        assert await refusal(lambda id=id: graph.workspace(id, owner="lead"))
    for owner in names(False):
        assert await refusal(lambda owner=owner: graph.workspace("w", owner=owner))
    for policy in POLICIES:
        assert await refusal(lambda policy=policy: graph.workspace("w", owner="lead", policy=policy)), policy
    assert await refusal(lambda: graph.workspace("no such workspace")) == "unknown_item"
    for clock in (lambda: 5, lambda: None, lambda: datetime(2026, 5, 1), lambda: "now"):
        assert await refusal(lambda clock=clock: graph.workspace("w", owner="lead", clock=clock))
    assert await refusal(lambda: graph.workspace("w")) == "unknown_item"  # none of these made one


# --- the models -----------------------------------------------------------------------------------------------------

FACT = {"scope": "s", "content": "c"}
MODELS: list[tuple[type, Good, dict[str, tuple[Any, ...]]]] = [
    (
        Item,
        FACT,
        {"content": CONTENTS, "scope": names(), "id": names(), "key": names(False), "kind": (None, *SAYS, "obligation"),
         "task": names(False), "role": names(False), "purposes": LISTS, **INTERVAL, "depends_on": LISTS,
         "derived_from": LISTS, "supersedes": LISTS,
         "supports": (*LISTS, [{"dependency": 5}], [{"receipt": "r"}], [{"dependency": "d", "x": 1}]),
         "receipts": (None, 5, "x", [5], ["r"], [{}], [{"uri": "m"}], [Odd()]), "none": (1,)},
    ),
    (
        Receipt,
        {"uri": "m", "text": "x"},
        {"uri": (None, *NOTES), "id": names(), "text": (5, b"x", ["x"], "\ud800", "x" * (Limits.text + 1)),
         "sha256": (5, b"x", "", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 63 + "\n", "a" * 64 + "\n"),
         "issuer": NOTES, "origin": NOTES, "observed_at": INSTANTS},
    ),
    (ReceiptRef, {"id": "r"}, {"id": names(), "sha256": (5, "", "A" * 64, "a" * 64 + "\n")}),
    (Support, {"dependency": "d"}, {"dependency": names(), "receipt": names(False)}),
    (Frontier, {"content": "c"}, {"content": CONTENTS, "id": names()}),
    (
        Obligation,
        FACT,
        {"content": CONTENTS, "scope": names(), "id": names(), "key": names(False), "role": names(False),
         "task": names(False), "purposes": LISTS, "requires": LISTS, "frontier": (5, "x", {}, Odd())},
    ),
]  # fmt: skip


def faults() -> Iterator[Any]:
    for model, good, wrong in MODELS:
        for field, values in wrong.items():
            yield pytest.param(model, good, field, values, id=f"{model.__name__}.{field}")


@pytest.mark.parametrize(("model", "good", "field", "values"), list(faults()))
def test_a_field_of_a_wrong_kind_is_refused_with_a_code(model: Any, good: Any, field: str, values: Any) -> None:
    for value in values:
        with pytest.raises(TracegraphError) as error:
            model(**{**good, field: value})
        assert error.value.code in ("invalid_record", "limit_exceeded", "naive_datetime"), value


def test_a_model_cannot_be_changed_behind_its_checks() -> None:
    item = Item(**FACT)
    with pytest.raises(Exception, match="frozen"):
        item.content = ""


async def test_a_workspace_is_not_opened_with_a_policy_that_it_was_not_created_with(graph: Graph) -> None:
    id = new_id("test")
    try:
        await graph.workspace(id, owner="lead", policy={"max_items": 3})
        again = await graph.workspace(id, owner="lead", policy={"max_items": 3})
        await again.set_policy(max_items=5)
        await graph.workspace(id, owner="lead", policy={"max_items": 3})
        with pytest.raises(TracegraphError) as error:
            await graph.workspace(id, owner="lead", policy={"max_items": 5})
        assert error.value.code == "conflict"
        assert "max_items" in error.value.message
        assert (await (await graph.workspace(id)).policy()).max_items == 5
    finally:
        await forget(graph, id)
