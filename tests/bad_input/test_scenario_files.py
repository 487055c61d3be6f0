"""Scenario files nobody wrote in good faith: malformed with their line, or played and answered, never anything else.

What a well-meant file may get wrong is in tests/scenarios/test_files.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.bad_input.conftest import Run
from tracegraph import Graph
from tracegraph.model import Limits
from tracegraph.scenario_file import MAX_BYTES, MAX_DEPTH, MAX_NODES, MalformedScenario, Scenario, load
from tracegraph.scenarios import Report, check

HEADER = "scenario: s\nclock: 2026-05-01T09:00:00Z\n"
WORDS = "Zanzibar-4711"
Read = Callable[[str | bytes], Scenario]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str | bytes) -> Scenario:
        path = tmp_path / "a.trace.yaml"
        path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        return load(path)

    return read


def malformed(read: Read, text: str | bytes) -> str:
    with pytest.raises(MalformedScenario) as error:
        read(text)
    assert error.value.line >= 1
    assert len(str(error.value)) < 1000
    assert "\n" not in error.value.message
    return error.value.message


# --- what is no scenario ----------------------------------------------------------------------------------

NO_SCENARIO: dict[str, str | bytes] = {
    "empty": b"",
    "null byte": HEADER + "steps: [\0]",
    "lone surrogate in UTF-8": HEADER + "steps: []\nx: \ud800",
    "UTF-16": (HEADER + "steps: []\n").encode("utf-16"),
    "a picture": bytes(range(256)) * 10,
    "deep flow lists": "steps: " + "[" * 100_000,
    "deep flow maps": "steps: " + "{a: " * 100_000,
    "deep block lists": "- " * 50_000 + "x",
    "deep block maps": "\n".join(" " * depth + "a:" for depth in range(1_000)),
    "deep closed": "steps: " + "[" * 100_000 + "]" * 100_000,
    "deep keys": "? " * 20_000 + "x",
    "a character beyond Unicode": HEADER + 'steps: ["\\U00110000"]',
    "a character far beyond Unicode": HEADER + 'steps: ["\\UFFFFFFFF"]',
    "an unknown escape": HEADER + 'steps: ["\\q"]',
    "a huge version": "%YAML 1." + "9" * 5_000 + "\n---\na: b\n",
    "a version that is none": "%YAML x\n---\na: b\n",
    "an unknown directive": "%WHAT x\n---\n" + HEADER,
    "a foreign tag": HEADER + "steps: !!python/object/apply:os.system [id]\n",
    "a tag that is no URI": "%TAG ! tag:x,%zz\n---\na: !x b\n",
    "binary": HEADER + "steps: !!binary aGk=\n",
    "a set": HEADER + "steps: !!set {a, b}\n",
    "a merge": HEADER + "x: &x {roles: {}}\n<<: *x\nsteps: []\n",
    "an alias to itself": "steps: &a [*a]\n",
    "an alias before its anchor": "scenario: *a\nclock: &a x\nsteps: []\n",
    "a list as a key": HEADER + "? [a]\n: b\nsteps: []\n",
    "null as a key": HEADER + "? ~\n: b\nsteps: []\n",
    "the same key twice": HEADER + "clock: 2026-05-01T09:00:00Z\nsteps: []\n",
    "the same key twice, escaped": HEADER + '"\\x63lock": 2026-05-01T09:00:00Z\nsteps: []\n',
    "two documents": HEADER + "steps: []\n---\n" + HEADER + "steps: []\n",
    "a leap second": "scenario: s\nclock: 2016-12-31T23:59:60Z\nsteps: []\n",
    "a second too many": HEADER + "steps:\n  - {at: '2026-05-01T09:00:60Z', retract: {target: a}}\n",
    "the year 0": "scenario: s\nclock: 0000-01-01T00:00:00Z\nsteps: []\n",
    "the year 10000": "scenario: s\nclock: 10000-01-01T00:00:00Z\nsteps: []\n",
    "an instant with 5,000 digits": "scenario: s\nclock: " + "9" * 5_000 + "\nsteps: []\n",
    "before the first instant in UTC": "scenario: s\nclock: 0001-01-01T00:00:00+00:01\nsteps: []\n",
    "after the last instant in UTC": "scenario: s\nclock: 9999-12-31T23:59:59-00:01\nsteps: []\n",
    "not a number": HEADER + "policy: {coverage: .nan}\nsteps: []\n",
    "an infinite number": HEADER + "policy: {coverage: 1e999}\nsteps: []\n",
    "a number with 5,000 digits": HEADER + "policy: {max_items: " + "9" * 5_000 + "}\nsteps: []\n",
    "a number in other digits": HEADER + "policy: {max_items: １２}\nsteps: []\n",
    "a negative budget": HEADER + "policy: {max_items: -1}\nsteps: []\n",
    "a role without a name": HEADER + "roles: {'': {read: [a]}}\nsteps: []\n",
    "a role that is no text": HEADER + 'roles: {"\\ud800": {read: [a]}}\nsteps: []\n',
    "a scope that is too long": HEADER + "roles: {r: {read: [" + "x" * (Limits.id + 1) + "]}}\nsteps: []\n",
    "a principal that is too long": HEADER + "principals: {" + "x" * (Limits.id + 1) + ": [r]}\nsteps: []\n",
    "more scopes than a role has": HEADER
    + "roles: {r: {read: [" + ", ".join(f"s{n}" for n in range(Limits.links + 1)) + "]}}\nsteps: []\n",
}  # fmt: skip


@pytest.mark.parametrize("text", NO_SCENARIO.values(), ids=list(NO_SCENARIO))
def test_what_is_no_scenario_is_malformed(read: Read, text: str | bytes) -> None:
    malformed(read, text)


def test_a_file_is_taken_up_to_its_size_and_not_above(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracegraph.scenario_file.MAX_BYTES", MAX_BYTES // 100)  # the parser reads 1 MB a second
    start, most = HEADER + "steps: []\n#", MAX_BYTES // 100
    assert read(start + "x" * (most - len(start))).steps == ()
    assert "bytes" in malformed(read, start + "x" * (most - len(start) + 1))


def test_a_header_is_taken_up_to_what_a_batch_holds_and_not_above(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "batch", 20)
    names = [f"p{n}: [r]" for n in range(21)]
    assert len(read(HEADER + "principals: {" + ", ".join(names[:20]) + "}\nsteps: []\n").grants) == 20
    assert "20 grants" in malformed(read, HEADER + "principals: {" + ", ".join(names) + "}\nsteps: []\n")


def test_a_file_is_taken_up_to_its_depth_and_not_above(read: Read) -> None:
    for depth in (MAX_DEPTH - 2, MAX_DEPTH - 1):
        assert "nested" not in malformed(read, HEADER + "steps: " + "[" * depth + "]" * depth)
    assert "nested deeper" in malformed(read, HEADER + "steps: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_aliases_count_as_all_they_stand_for_up_to_the_limit_and_not_above(read: Read) -> None:
    """A billion laughs cost no memory; they are counted before anything is made of them."""
    lines = ["a0: &a0 [" + ", ".join("x" * 10) + "]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 30)]
    began = time.monotonic()
    assert f"{MAX_NODES} values" in malformed(read, "\n".join(lines))
    assert time.monotonic() - began < 10
    assert f"{MAX_NODES} values" not in malformed(read, "\n".join(lines[:5]))


def test_what_a_fault_says_of_a_file_shows_no_words_of_an_item(read: Read) -> None:
    for step in (
        f"record: {{id: a, scope: s, content: [{WORDS}]}}",
        f"record: {{id: a, scope: s, content: {{x: {WORDS}}}}}",
        f"record: {{id: a, scope: s, content: !!int {WORDS}}}",
        f"record: {{id: a, scope: s, content: *{WORDS}",
        f'record: {{id: a, scope: s, content: "{WORDS}\\q"}}',
        f"record: {{id: a, scope: s, content: {WORDS}, receipt: [{WORDS}]}}",
        f"advance: {{obligation: a, id: b, content: [{WORDS}]}}",
        f"remember: {{principal: P, id: b, grounded_in: {WORDS}, content: {WORDS}}}",
    ):
        text = malformed(read, HEADER + f"steps:\n  - {step}\n")
        assert WORDS not in text or f"alias *{WORDS}" in text


# --- what is one ------------------------------------------------------------------------------------------------------


async def play(graph: Graph, read: Read, steps: list[dict[str, Any]], **header: Any) -> Report:
    """JSON is YAML, lone surrogates as escapes included."""
    whole = {
        "scenario": "s",
        "clock": "2026-05-01T09:00:00Z",
        "roles": {"r": {"read": ["s"], "write": ["s"]}},
        "principals": {"P": ["r"]},
        "steps": steps,
        **header,
    }
    return await check(graph, read(json.dumps(whole)))


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("invalid_record", {"record": {"id": "a", "scope": "s", "content": "\ud800"}}),
    ("invalid_record", {"record": {"id": "\udfff", "scope": "s", "content": "c"}}),
    ("limit_exceeded", {"record": {"id": "", "scope": "s", "content": "c"}}),
    ("limit_exceeded", {"record": {"id": "x" * (Limits.id + 1), "scope": "s", "content": "c"}}),
    ("limit_exceeded", {"record": {"id": "a", "scope": "s", "content": ""}}),
    ("limit_exceeded", {"record": {"id": "a", "scope": "s", "content": "x" * (Limits.content + 1)}}),
    (
        "limit_exceeded",
        {"record": {"id": "a", "scope": "s", "content": "c", "supports": [str(n) for n in range(1001)]}},
    ),
    ("limit_exceeded", {"record": {"id": "a", "scope": "s", "content": "c", "receipt": {"uri": "x" * 4097}}}),
    ("invalid_record", {"record": {"id": "a", "scope": "s", "content": "c", "receipt": {"id": "r", "sha256": "x"}}}),
    ("invalid_record", {"record": {"id": "a", "scope": "s", "content": "c", "kind": "frontier"}}),
    ("invalid_record", {"record": []}),
    ("conflict", {"record": [{"id": "a", "scope": "s", "content": "c"}] * 2}),
    ("naive_datetime", {"record": {"id": "a", "scope": "s", "content": "c", "valid_from": "2026-05-01T09:00:00"}}),
    ("invalid_record", {"policy": {"max_items": 1.5}}),
    ("invalid_record", {"policy": {"coverage": 2}}),
    ("unknown_item", {"verdict": {"later": "a", "earlier": "a", "says": "invalidates"}}),
    ("invalid_record", {"verdict": {"later": "a", "earlier": "b", "says": "maybe"}}),
    ("limit_exceeded", {"revoke": {"target": "a", "reason": "x" * 4097}}),
    ("invalid_record", {"grant": {"role": "r"}}),
    ("limit_exceeded", {"grant": {"role": ""}}),
    ("limit_exceeded", {"join": {"principal": "", "role": "r", "task": "t"}}),
    ("invalid_record", {"join": {"principal": "P", "role": "r", "task": "t", "query": "\ud800"}}),
    ("limit_exceeded", {"join": {"principal": "P", "role": "r", "task": "t", "query": "x" * 4097}}),
    ("invalid_record", {"join": {"principal": "P", "role": "\ud800", "task": "t"}}),
    ("unknown_item", {"join": {"principal": "P", "role": "r", "task": "t", "known_at": "9" * 5_000}}),
    ("unknown_item", {"join": {"principal": "P", "role": "r", "task": "t", "known_at": "2016-12-31T23:59:60Z"}}),
    ("naive_datetime", {"read": {"principal": "P", "role": "r", "task": "t", "valid_at": "2026-05-01T09:00:00"}}),
    ("not_absent", {"admit": {"principal": "\ud800"}}),
    ("invalid_record", {"depart": {"principal": "P", "role": "\ud800", "task": "t"}}),
    ("unknown_item", {"withdraw": {"target": "\ud800"}}),
    ("invalid_record", {"erase": {"target": "\ud800"}}),
    ("invalid_record", {"remember": {"id": "m", "principal": "P", "content": "c", "grounded_in": []}}),
]


@pytest.mark.anyio
async def test_what_the_product_does_not_take_is_answered_with_its_code(graph: Graph, read: Read) -> None:
    report = await play(graph, read, [{**step, "expect": {"error": code}} for code, step in REFUSED])
    assert [str(failure) for failure in report.failures] == []
    assert len(report.expectations) == len(REFUSED)


@pytest.mark.anyio
async def test_hostile_words_are_words(graph: Graph, read: Read) -> None:
    words = [
        "'}) DETACH DELETE n //",
        "a\0b",
        "\u202eevil",
        "e\u0301",
        "é",
        "👩‍👩‍👧‍👦" * 100,
        "no",
        "~",
        " ",
        "$x",
        "x" * 256,
    ]
    ids = [word[:200] for word in words]
    steps: list[dict[str, Any]] = [
        {"record": [{"id": id, "scope": "s", "content": word} for id, word in zip(ids, words, strict=True)]},
        {"read": {"principal": "P", "role": "r", "task": "t"}, "expect": {"items": ids}},
    ]
    report = await play(graph, read, steps)
    assert [str(failure) for failure in report.failures] == []


@pytest.mark.anyio
@pytest.mark.parametrize("clock", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T12:00:00+12:00"])
async def test_a_scenario_plays_at_both_ends_of_time(graph: Graph, read: Read, clock: str) -> None:
    who = {"principal": "P", "role": "r", "task": "t"}
    last = clock.startswith("9")  # when nothing can be promised for later
    ends = {"valid_from": "0001-01-01T00:00:00Z", "valid_to": "9999-12-31T23:59:59.999999Z"}
    steps: list[dict[str, Any]] = [
        {"record": {"id": "a", "scope": "s", "content": "c", "receipt": {"uri": "m"}}},
        {"record": {"id": "b", "scope": "s", "content": "c", "receipt": {"uri": "m"}, **ends}},
        {"depart": who},
        {"admit": {"principal": "P"}, "expect": {"error": "ticket_expired"} if last else {"decision": "admitted"}},
        {"join": who, "expect": {"decision": "admitted"}},
        {"recall": {"principal": "P"}, "expect": {"error": "view_expired"} if last else {"recalled": []}},
        {"read": {**who, "valid_at": "9999-12-31T23:59:59.999999Z"}, "expect": {"items": ["a"]}},
    ]
    report = await play(graph, read, steps, clock=clock)
    assert [str(failure) for failure in report.failures] == []


def test_the_command_leaves_with_2_for_a_malformed_file_and_plays_the_others(tracegraph_: Run) -> None:
    Path("good.trace.yaml").write_text(HEADER + "steps:\n  - {retract: {target: a}, expect: {error: unknown_item}}\n")
    for text in ("[" * 100_000, HEADER + "steps: [\udcff]", HEADER + 'scenario: "\\ud800"\nsteps: []'):
        Path("bad.trace.yaml").write_text(text, encoding="utf-8", errors="surrogateescape")
        ran = tracegraph_("check", "bad.trace.yaml", "good.trace.yaml")
        assert ran.code == 2
        assert "files: 1 passed, 0 failed, 1 malformed" in ran.err
        assert any(line.startswith("bad.trace.yaml:") for line in ran.err.splitlines())


PIECES = st.sampled_from(
    [
        *"[]{}:,-?&*!|>'\"%@`#~\n\t \\", "---", "...", "<<", "\n- ", "\n  ", ": ", "scenario: s", "steps:", "expect:",
        "clock: 2026-05-01T09:00:00Z", "\n  - record:", "{id: a, scope: s, content: c}", "!!str", "!!int", "&a", "*a",
        "|+9", "%YAML 1.2\n",
        "\\ud800", "\0", "\x85", "\ufeff", "é", "0x", "1e9", "null", "=", "y", "\\x", '"\\U00110000"',
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(st.lists(PIECES, max_size=25).map("".join), st.text(max_size=80), st.binary(max_size=80)))
@example(text=HEADER + "steps: []\n")
def test_any_file_is_a_scenario_or_malformed(read: Read, text: str | bytes) -> None:
    try:
        found = read(text)
    except MalformedScenario:
        return
    assert isinstance(found, Scenario)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.sampled_from(["s", "a", "P", "r", "2026-05-01T09:00:00Z", "fact", "uncertain", "d!"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ACTS = [
    "record",
    "open_obligation",
    "advance",
    "revoke",
    "grant",
    "policy",
    "verdict",
    "depart",
    "admit",
    "join",
    "remember",
]
FIELDS = [
    "id", "by", "key", "scope", "content", "target", "principal", "role", "task", "purposes", "supports", "receipt",
    "requires", "frontier", "obligation", "later", "earlier", "says", "confidence", "read", "valid_from", "max_items",
    "grounded_in", "known_at", "query", "policy",
]  # fmt: skip


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.dictionaries(
            st.sampled_from(ACTS), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5), max_size=2
        ),
        max_size=3,
    )
)
def test_any_step_is_read_or_malformed(read: Read, steps: Any) -> None:
    try:
        found = read(json.dumps({"scenario": "s", "clock": "2026-05-01T09:00:00Z", "steps": steps}))
    except MalformedScenario:
        return
    assert [step.act for step in found.steps] == [act for step in steps for act in step]
