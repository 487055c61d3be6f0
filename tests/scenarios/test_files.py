"""What a scenario file may say, and that every malformation names its line. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tracegraph.model import Policy
from tracegraph.scenario_file import EXPECT, POLICY, MalformedScenario, Scenario, load

HEADER = """\
scenario: s
clock: 2026-05-01T09:00:00Z
steps:
"""  # a step begins on line 4


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(text: str | bytes) -> Scenario:
        path = tmp_path / "a.trace.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(path)

    return read


def test_a_scalar_is_its_own_text_wherever_a_text_is_wanted(read: Any) -> None:
    scenario = read(
        HEADER
        + "  - record: {id: 12, key: no, scope: off, content: 12:30, task: 2026-05-01,"
        + " purposes: [yes, 0x1F, 1e3],"
        + " supports: [007, {dependency: 1.0, receipt: true}], receipt: {uri: 5, text: ~x}}\n"
    )
    assert scenario.steps[0].given == [
        {
            "id": "12",
            "key": "no",
            "scope": "off",
            "content": "12:30",
            "task": "2026-05-01",
            "purposes": ("yes", "0x1F", "1e3"),
            "supports": ("007", {"dependency": "1.0", "receipt": "true"}),
            "receipt": {"uri": "5", "text": "~x"},
        }
    ]


def test_null_is_as_good_as_left_out_where_a_field_may_be(read: Any) -> None:
    scenario = read(HEADER + "  - record: {id: a, scope: s, content: 'null', task: null, receipt: ~, valid_to: }\n")
    assert scenario.steps[0].given == [{"id": "a", "scope": "s", "content": "null"}]


def test_instants_keep_their_offset_and_a_naive_one_waits_for_the_acts_own_refusal(read: Any) -> None:
    scenario = read(
        HEADER
        + "  - at: 2026-05-01T12:00:00+02:00\n"
        + "    record: {id: a, scope: s, content: c, valid_from: 2026-05-01T09:00:00}\n"
    )
    step = scenario.steps[0]
    assert scenario.clock == datetime(2026, 5, 1, 9, tzinfo=UTC)
    assert step.at is not None
    assert step.at.utcoffset() == timedelta(hours=2)
    assert step.given[0]["valid_from"] == datetime(2026, 5, 1, 9)


def test_an_anchor_may_be_used_again(read: Any) -> None:
    scenario = read(HEADER + "  - read: &who {principal: P, role: r, task: t}\n" + "  - read: *who\n")
    assert scenario.steps[0].given == scenario.steps[1].given == {"principal": "P", "role": "r", "task": "t"}


def test_the_tables_know_every_field_of_the_policy() -> None:
    assert set(POLICY) == set(Policy.model_fields)
    assert {field for fields in EXPECT.values() for field in fields} == {
        *("decision", "coverage", "critical", "admitted", "rejected", "selection", "pool", "uncovered"),
        *("items", "recalled"),
    }


STEPS = [
    ("- recrd: {}", 4, "no field 'recrd'; did you mean record?"),
    (
        "- record: {id: a, scope: s, content: c,\n     contents: c}",
        5,
        "record has no field 'contents'; did you mean content?",
    ),
    ("- record: {id: a, scope: s}", 4, "record lacks its content"),
    ("- record: {id: a, scope: s, content: [c]}", 4, "record.content must be a string, not a list"),
    ("- record: {id: null, scope: s, content: c}", 4, "record.id must be a string, not null"),
    (
        "- record: {id: a, scope: s, content: c, purposes: plan}",
        4,
        "record.purposes must be a list of strings",
    ),
    (
        "- record: {id: a, scope: s, content: c, receipt: {uri: u}, receipts: []}",
        4,
        "both receipt and receipts",
    ),
    ("- record: {id: a, scope: s, content: c, receipt: {id: r, sha256: x, uri: u}}", 4, "no field 'uri'"),
    ("- record: {id: a, scope: s, content: c, valid_from: soon}", 4, "'soon' is no instant"),
    (
        "- record: {id: a, scope: s, content: c, valid_to: '9999-12-31T23:59:59-10:00'}",
        4,
        "outside the years",
    ),
    ("- record: {id: a, scope: s, content: c,\n     id: b}", 5, "the key 'id' is given twice"),
    ("- retract: {target: a}\n    revoke: {target: a}", 4, "exactly one act, not retract, revoke"),
    ("- name: n", 4, "exactly one act, not none"),
    ("- just a string", 4, "step 1 must be a mapping"),
    ("- at: 2026-05-01T08:59:59Z\n    retract: {target: a}", 4, "goes back in time"),
    ("- retract: {target: a}\n    at: 2026-05-01T10:00:00", 5, "at has no offset"),
    (
        "- {name: n, retract: {target: a}}\n  - {name: n, retract: {target: b}}",
        5,
        "taken by the step on line 4",
    ),
    ("- policy: {max_item: 3}", 4, "no field 'max_item'; did you mean max_items?"),
    ("- policy: {coverage: high}", 4, "policy.coverage must be a number"),
    ("- policy: {coverage: .inf}", 4, "policy.coverage must be a number"),
    (
        "- verdict: {later: a, earlier: b, says: uncertain, confidence: '0.9'}",
        4,
        "confidence must be a number",
    ),
    ("- retract: {target: a}\n    expect:\n      error: unknwon_item", 6, "did you mean unknown_item?"),
    (
        "- retract: {target: a}\n    expect: {decision: admitted}",
        5,
        "expect of retract has no field 'decision'",
    ),
    ("- admit: {principal: P}\n    expect: {decision: maybe}", 5, "'maybe' is unknown"),
    (
        "- admit: {principal: P}\n    expect:\n      rejected:\n        a: [superseeded]",
        7,
        "did you mean superseded?",
    ),
    (
        "- admit: {principal: P}\n    expect: {rejected: {a: superseded}}",
        5,
        "rejected a must be a list of reasons",
    ),
    ("- admit: {principal: P}\n    expect: {selection: {a: [superseded]}}", 5, "'superseded' is unknown"),
    ("- admit: {principal: P}\n    expect: {coverage: null}", 5, "coverage must be a number, not null"),
    (
        "- admit: {principal: P}\n    expect: {error: conflict, decision: admitted}",
        5,
        "expects an error and something",
    ),
    ("- retract: {target: !!int 3}", 4, "the tag tag:yaml.org,2002:int has no meaning here"),
    ("- retract: {target: *a}", 4, "the alias *a names nothing"),
    ("- retract: {target: a", 5, "is not YAML"),
    ("- retract: {target: a}\n...\n---\nscenario: t", 6, "second document"),
]


@pytest.mark.parametrize(("steps", "line", "message"), STEPS, ids=[message for _, _, message in STEPS])
def test_a_malformed_step_is_refused_with_its_line(read: Any, steps: str, line: int, message: str) -> None:
    with pytest.raises(MalformedScenario) as refused:
        read(HEADER + "  " + steps + "\n")
    assert message in refused.value.message
    assert refused.value.line == line
    assert str(refused.value) == f"{refused.value.path}:{line}: {refused.value.message}"


HEADERS = [
    ("", 1, "is empty"),
    ("- a\n- b\n", 1, "the scenario must be a mapping, not a list"),
    ("scenario: s\nclock: 2026-05-01T09:00:00Z\n", 1, "lacks its steps"),
    ("scenario: s\nclock: 2026-05-01\nsteps: []\n", 2, "clock has no offset"),
    ("scenario: s\nclock: yesterday\nsteps: []\n", 2, "is no instant"),
    ("scenario: s\nowner: me\nclock: 2026-05-01T09:00:00Z\nsteps: []\n", 2, "no field 'owner'"),
    (
        "scenario: s\nclock: 2026-05-01T09:00:00Z\nroles: {r: {reads: [a]}}\nsteps: []\n",
        3,
        "no field 'reads'",
    ),
    (
        "scenario: s\nclock: 2026-05-01T09:00:00Z\nprincipals: {P: r}\nsteps: []\n",
        3,
        "must be a list of strings",
    ),
    ("scenario: s\nclock: 2026-05-01T09:00:00Z\npolicy:\n  fill: most\nsteps: []\n", 4, "policy"),
    ("%YAML 1.1\n---\nscenario: s\n", 2, "another YAML than 1.2"),
    (b"scenario: s\nclock: \xff\n", 2, "is not UTF-8"),
    ("scenario: s\nclock: \x07\n", 2, "a character that YAML forbids"),
    ("a: " + "[" * 5000, 1, "nested deeper than"),
]


@pytest.mark.parametrize(("text", "line", "message"), HEADERS, ids=[message for _, _, message in HEADERS])
def test_a_malformed_header_is_refused_with_its_line(read: Any, text: str, line: int, message: str) -> None:
    with pytest.raises(MalformedScenario) as refused:
        read(text)
    assert (message in refused.value.message, refused.value.line) == (True, line)


def test_aliases_that_stand_for_too_much_are_refused(read: Any) -> None:
    bomb = dedent("""\
        a: &a [x, x, x, x, x, x, x, x, x, x]
        b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
        c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
        d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
        e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
        f: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]
        """)
    with pytest.raises(MalformedScenario, match="values once its aliases are followed"):
        read(bomb)


def test_a_file_that_is_not_there_is_malformed(tmp_path: Path) -> None:
    with pytest.raises(MalformedScenario, match="cannot be read"):
        load(tmp_path / "none.trace.yaml")


def test_no_message_shows_an_items_words(read: Any) -> None:
    with pytest.raises(MalformedScenario) as refused:
        read(HEADER + "  - record: {id: a, scope: s, content: [the secret plan]}\n")
    assert "secret" not in str(refused.value)
