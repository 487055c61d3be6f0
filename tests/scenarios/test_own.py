"""The scenarios in this folder leave no word of the design unused, and the reference answers them alike.

They are played against Neo4j by the pytest plugin, which makes each file a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reference import play as reference
from tracegraph.scenario_file import Scenario, Step, load

FILES = sorted(Path(__file__).parent.glob("*.trace.yaml"))

GATE_REASONS = {
    *("scope_not_granted", "denied", "source_not_readable"),
    *("not_yet_valid", "expired", "superseded", "revoked", "resolved", "retracted", "invalidated"),
    *("premise_invalid", "erased", "unverified"),
    *("wrong_purpose", "kind_not_allowed", "wrong_role"),  # wrong_task: outside the pool, see gate-wrong-task
    *("missing_receipt", "receipt_mismatch", "receipt_revoked", "unbound_support"),
    "over_item_budget",
}
SELECTION_REASONS = {"not_selected", "mandatory_over_budget", "missing_frontier", "obligation_not_admissible"}
DECISIONS = {"admitted", "blocked", "reset", "refused"}
CODES = {
    *("invalid_record", "naive_datetime", "empty_interval", "unknown_item", "unknown_principal", "role_not_held"),
    *("write_not_granted", "conflict", "limit_exceeded", "policy_loosened", "not_absent", "ticket_consumed"),
    *("ticket_expired", "view_expired", "view_stale", "erased"),
}
"""Without those that no scenario can reach: `not_owner`, `invalid_ticket` and `view_invalid` (the owner grants,
and tickets and views are the principal's own), and `unavailable`."""
POLICY = {
    *("coverage", "critical", "on_incomplete", "max_items", "max_chars", "max_item_chars"),
    *("kinds", "fill", "verification", "confidence", "view_minutes", "ticket_days"),
}
POLICY_CHOICES = {
    "on_incomplete": {"block", "reset"},
    "kinds": {"fact", "constraint"},
    "fill": {"recency", "relevance", "none"},
    "verification": {"none", "best_effort", "required"},
}
ACTS = {
    *("record", "open_obligation", "advance", "resolve", "revoke", "retract", "withdraw", "erase"),
    *("grant", "deny", "policy", "verdict", "depart", "admit", "join", "remember", "recall", "read"),
}
VERDICTS = {"invalidates", "compatible", "uncertain", "restores", "proposed"}

NOT_FOR_THE_REFERENCE = {"policy-fill-relevance", "refusals"}
"""It has no full-text score, and cannot read a value of the wrong type."""


@cache
def scenarios() -> dict[str, Scenario]:
    return {path.name.removesuffix(".trace.yaml"): load(path) for path in FILES}


def steps() -> Iterator[Step]:
    for scenario in scenarios().values():
        yield from scenario.steps


def expected(field: str) -> list[Any]:
    return [step.expect[field] for step in steps() if field in step.expect]


def reasons(field: str) -> set[str]:
    return {reason for by_item in expected(field) for found in by_item.values() for reason in found}


def policies() -> Iterator[Mapping[str, Any]]:
    for scenario in scenarios().values():
        yield scenario.policy
    for step in steps():
        if step.act == "policy":
            yield step.given
        elif isinstance(step.given, Mapping):
            yield step.given.get("policy", {})


def chosen(field: str) -> set[str]:
    given = [policy[field] for policy in policies() if field in policy]
    return {value for one in given for value in (one if isinstance(one, tuple) else [one])}


@pytest.mark.parametrize(
    ("words", "used"),
    [
        pytest.param(GATE_REASONS, lambda: reasons("rejected"), id="gate reason"),
        pytest.param(SELECTION_REASONS, lambda: reasons("selection"), id="selection reason"),
        pytest.param(DECISIONS, lambda: expected("decision"), id="decision"),
        pytest.param(CODES, lambda: expected("error"), id="error code"),
        pytest.param(ACTS, lambda: (step.act for step in steps()), id="act"),
        pytest.param(VERDICTS, lambda: (s.given["says"] for s in steps() if s.act == "verdict"), id="verdict"),
        pytest.param(POLICY, lambda: (field for policy in policies() for field in policy), id="policy field"),
        *(
            pytest.param(choices, lambda field=field: chosen(field), id=f"policy {field}")
            for field, choices in POLICY_CHOICES.items()
        ),
    ],
)
def test_every_word_of_the_design_is_shown_by_some_scenario(words: set[str], used: Callable[[], Iterable[str]]) -> None:
    assert words - set(used()) == set()


def test_every_scenario_says_on_top_which_rule_it_shows_and_expects_something() -> None:
    assert len(FILES) >= 40
    assert [path.name for path in FILES if not path.read_text(encoding="utf-8").startswith("# ")] == []
    assert [name for name, one in scenarios().items() if not any(step.expect for step in one.steps)] == []


def test_no_two_scenarios_have_the_same_title() -> None:
    titles = [scenario.name for scenario in scenarios().values()]
    assert sorted(titles) == sorted(set(titles))


def test_the_plugin_plays_them(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.has_plugin("tracegraph")


@pytest.mark.parametrize("name", sorted(scenarios().keys() - NOT_FOR_THE_REFERENCE))
def test_the_reference_meets_every_expectation(name: str) -> None:
    assert reference.disagreements(reference.load(Path(scenarios()[name].path))) == []
