"""StateBench timelines are played as work state; no answer reaches a policy; the figures come out again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

import tracegraph
from tracegraph.evals.statebench import (
    Labels,
    MalformedTimelineError,
    Timeline,
    contains,
    evaluate,
    load,
    trace,
    work_state,
    written,
)
from tracegraph.signing import Keys

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("TRACEGRAPH_SHARED", REPOSITORY.parent / "shared"))
DEV = SHARED / "data" / "statebench" / "data" / "releases" / "v1.0" / "dev.jsonl"
PER_TRACK = 3

needs_data = pytest.mark.skipif(
    not DEV.exists(),
    reason="no StateBench data: set TRACEGRAPH_SHARED to the folder that holds data/statebench",
)

Contexts = list[list[str]]
Play = Callable[[Timeline], Contexts]


@pytest.fixture(scope="module")
def sample() -> list[str]:
    """The first lines of each track, as they stand in the file."""
    seen: Counter[str] = Counter()
    lines = []
    for line in DEV.read_text(encoding="utf-8").splitlines():
        track = json.loads(line)["track"]
        seen[track] += 1
        if seen[track] <= PER_TRACK:
            lines.append(line)
    return lines


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def graph(portal: BlockingPortal) -> Iterator[tracegraph.Graph]:
    with portal.wrap_async_context_manager(tracegraph.connect()) as graph:
        yield graph


@pytest.fixture
def play(portal: BlockingPortal, graph: tracegraph.Graph, tmp_path: Path) -> Play:
    """Play one timeline through the product."""
    return lambda timeline: portal.call(trace, graph, work_state(timeline), Keys(tmp_path))


def of(*writes: dict[str, Any], **state: Any) -> Timeline:
    """A timeline of these writes, a minute apart, and a query at the end, asked by a Manager."""
    line = {
        "actors": {"user": {"id": "u1", "role": "Manager"}},
        "initial_state": {
            "persistent_facts": state.get("facts", []),
            "working_set": state.get("working_set", []),
            "environment": {"now": "2026-01-01T09:00:00", **state.get("environment", {})},
        },
        "events": [
            *(
                {"type": "state_write", "ts": f"2026-01-01T10:{minute:02}:00", "writes": [write]}
                for minute, write in enumerate(writes)
            ),
            {"type": "query", "ts": "2026-01-01T12:00:00", "prompt": "?"},
        ],
    }
    return Timeline.model_validate_json(json.dumps(line))


def write(key: str, value: str, **rest: Any) -> dict[str, Any]:
    return {
        "id": "W-AUTO",
        "key": key,
        "value": value,
        "source": {"type": "user", "authority": "peer"},
        **rest,
    }


# --- no answer reaches a policy ---------------------------------------------------------------------------


def relabelled(line: str) -> str:
    """The same timeline with every answer, name and hint of the future changed."""
    data = json.loads(line)
    changed = dict.fromkeys(("id", "track", "domain", "difficulty", "detection_mode", "version"), "changed")
    data.update(changed, metadata={"template_id": "changed"})
    for fact in data["initial_state"]["persistent_facts"]:
        fact.update(is_valid=False, superseded_by="changed")
    for event in data["events"]:
        if event["type"] == "query":
            truth = dict.fromkeys(event["ground_truth"], "changed")
            event["ground_truth"] = {**truth, "must_mention": ["changed"], "must_not_mention": ["changed"]}
        if event["type"] == "conversation_turn":
            event["implicit_supersession"] = {"detection_cue": "changed", "supersedes_fact_id": "changed"}
    return json.dumps(data)


@needs_data
def test_changing_every_label_changes_no_admitted_context(sample: list[str], play: Play) -> None:
    for line in sample[::5]:
        timeline, other = (Timeline.model_validate_json(one) for one in (line, relabelled(line)))
        assert Labels.model_validate_json(line) != Labels.model_validate_json(relabelled(line))
        assert timeline == other
        assert play(timeline) == play(other)


@needs_data
def test_what_a_policy_gets_holds_no_label(sample: list[str]) -> None:
    def names(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {name for one in value.values() for name in names(one)}
        return {name for one in value for name in names(one)} if isinstance(value, (list, tuple)) else set()

    labels = {"id", "track", "ground_truth", "implicit_supersession", "is_valid", "superseded_by", "metadata"}
    for line in sample:
        given = Timeline.model_validate_json(line).model_dump()
        assert set(given) == {"actors", "initial_state", "events"}
        assert not (labels - {"id"}) & names(given)


# --- the mapping, through the product ---------------------------------------------------------------------


def test_a_supersession_names_an_id_or_a_key_of_another_statement(play: Play) -> None:
    by_key = of(write("vendor", "Acme"), write("vendor_v2", "Globex", supersedes="vendor"))
    by_id = of(write("vendor", "Acme", id="F-1"), write("vendor_v2", "Globex", supersedes="F-1"))
    assert play(by_key) == play(by_id) == [["Globex"]]
    assert written(work_state(by_key), "latest") == [["Acme", "Globex"]]


def test_a_key_written_again_holds_its_newest_value(play: Play) -> None:
    fresh = write("calendar", "Demo at 11:30", layer="environment")
    assert play(of(fresh, environment={"calendar": "Demo at 15:00"})) == [["Demo at 11:30"]]


def test_a_restricted_value_is_read_by_the_named_role_alone(play: Play) -> None:
    secret, own = (
        "[RESTRICTED: Pay data restricted to HR] 100",
        "[RESTRICTED: Plans restricted to Manager] 200",
    )
    assert play(of(write("a", secret), write("b", own), write("c", "300"))) == [["300", own]]


def test_a_scoped_working_set_entry_stays_in_its_task(play: Play) -> None:
    entry = {"content": "[SCOPE: brainstorming] idea: blockchain", "ts": "2026-01-01T09:00:00"}
    assert play(of(write("budget", "$5"), working_set=[entry])) == [["$5"]]


def test_an_invalidation_ends_a_statement_and_puts_nothing_in_its_place(play: Play) -> None:
    note = write("total_corrected", "[INVALIDATED - wrong price] Original: $50", supersedes="total")
    assert play(of(write("total", "$50"), write("price", "$3"), note)) == [["$3"]]


def test_a_statement_falls_with_what_it_depends_on(play: Play) -> None:
    timeline = of(
        write("price", "$1"),
        write("total", "$50", depends_on=["price"]),
        write("price_corrected", "$3", supersedes="price"),
    )
    assert play(timeline) == [["$3"]]


def test_each_query_gets_what_stood_when_it_was_asked(play: Play) -> None:
    timeline = of(write("status", "open"), write("status", "closed"))
    query = timeline.events[-1]
    early = query.model_copy(update={"ts": timeline.events[0].ts})
    asked_twice = timeline.model_copy(update={"events": (timeline.events[0], early, *timeline.events[1:])})
    assert play(asked_twice) == [["open"], ["closed"]]
    assert written(work_state(asked_twice), "static") == [["open"], ["open", "closed"]]
    assert written(work_state(asked_twice), "reset") == [[], []]


# --- scoring ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("Order CANCELLED due to a freeze", "cancelled", True),
        ("We don't ship", "do not ship", True),
        ("We cannot ship", "can't ship", True),
        ("Ship on Monday", "tuesday|monday", True),
        ("Ship on Monday", "tuesday|friday", False),
        ("Ticket #42", r"regex:#\d+", True),
        ("Ship on Monday", "Monday 9am", False),
    ],
)
def test_phrases_match_by_statebenchs_own_rules(text: str, phrase: str, held: bool) -> None:
    assert contains(text, phrase) is held


@needs_data
def test_the_figures_of_a_sample_come_out_again(
    sample: list[str], portal: BlockingPortal, graph: tracegraph.Graph
) -> None:
    timelines = [(Timeline.model_validate_json(line), Labels.model_validate_json(line)) for line in sample]
    scores = portal.call(evaluate, graph, timelines)
    every = scores["all"]
    assert len(scores) == 14
    assert (every.queries, every.stated, every.decidable) == (47, 19, 19)
    assert {policy: dict(counts) for policy, counts in every.policies.items()} == {
        "trace": {"must": 17, "must_not": 10, "right": 13},
        "static": {"must": 19, "must_not": 24, "right": 8},
        "latest": {"must": 18, "must_not": 22, "right": 10},
        "reset": {"must": 0, "must_not": 0, "right": 0},
    }


# --- the command ------------------------------------------------------------------------------------------


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", "from tracegraph.cli import main; main()", "eval", "statebench", *arguments]
    return subprocess.run(call, capture_output=True, text=True, timeout=120)  # noqa: S603


@needs_data
def test_the_command_prints_one_json_document_and_nothing_else() -> None:
    done = command(str(DEV), "--policy", "latest", "--limit", "30", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)["all"]["policies"]) == {"latest"}


def test_a_malformed_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text('{"track": "x"}\n')
    with pytest.raises(MalformedTimelineError, match=r"lines\.jsonl:1: actors"):
        load([file])
    done = command(str(file), "--policy", "reset")
    assert done.returncode == 2
    assert "lines.jsonl:1" in done.stderr
    assert "Traceback" not in done.stderr
