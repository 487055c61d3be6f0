"""The pytest plugin: scenario files are tests."""

from __future__ import annotations

import pytest

SCENARIO = """\
scenario: what is recorded can be read
clock: 2026-05-01T09:00:00Z
roles: {{dev: {{read: [open], write: [open]}}}}
principals: {{P: [dev]}}
steps:
  - record: {{id: a, scope: open, content: alpha}}
  - read: {{principal: P, role: dev, task: t}}
    expect: {{items: [{items}]}}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, neo4j: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project of its own, which reaches this run's server by its environment."""
    for name, value in neo4j.items():
        monkeypatch.setenv(name, value)
    return pytester


def write(project: pytest.Pytester, name: str, text: str) -> None:
    (project.path / name).write_text(text)


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest("-p", "no:hypothesispytest", *arguments)  # which alone takes seconds to load


def test_a_scenario_file_is_one_test_named_after_its_scenario(project: pytest.Pytester) -> None:
    write(project, "good.trace.yaml", SCENARIO.format(items="a"))
    write(project, "other.yaml", "not: a scenario")
    result = run(project, "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["good.trace.yaml::what is recorded can be read PASSED*"])


def test_a_failure_shows_the_unmet_expectations_with_their_lines(project: pytest.Pytester) -> None:
    write(project, "bad.trace.yaml", SCENARIO.format(items="a, b"))
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*scenario: what is recorded can be read*",
            "1 of 1 expectations not met:",
            "bad.trace.yaml:8: step 2 read: items: expected [[]a, b], got [[]a[]]",
        ]
    )
    result.stdout.no_fnmatch_line("*alpha*")


def test_a_malformed_file_is_an_error_of_collection_with_its_line(project: pytest.Pytester) -> None:
    write(project, "worse.trace.yaml", SCENARIO.format(items="a") + "  - reed: {}\n")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["worse.trace.yaml:9: step 3 has no field 'reed'; did you mean read?"])


def test_a_server_that_is_not_there_fails_the_test_in_one_line(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    write(project, "good.trace.yaml", SCENARIO.format(items="a"))
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["unavailable: *"])
    result.stdout.no_fnmatch_line("*Traceback*")
