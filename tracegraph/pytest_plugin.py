"""Collects `*.trace.yaml` as tests: one test a file, named after its scenario.

A failure lists what was not met. The whole run shares one connection, opened by the first scenario: NEO4J_URI
and its companions, else the embedded Neo4j. Until a scenario file is found, only this module is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tracegraph.scenarios import Report, Scenario

SUFFIX = ".trace.yaml"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    return ScenarioFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


def pytest_unconfigure(config: pytest.Config) -> None:
    player = config.stash.get(_PLAYER, None)
    if player is not None:
        player.close()


class UnmetError(Exception):
    """A scenario with expectations that were not met."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"{len(report.failures)} of {len(report.expectations)} expectations not met")
        self.report = report


class ScenarioFile(pytest.File):
    def collect(self) -> Iterator[ScenarioItem]:
        from tracegraph.scenarios import MalformedScenario, load

        try:
            scenario = load(self.path)
        except MalformedScenario as error:
            raise self.CollectError(f"{self.nodeid}:{error.line}: {error.message}") from None
        yield ScenarioItem.from_parent(self, name=scenario.name, scenario=scenario)


class ScenarioItem(pytest.Item):
    def __init__(self, *, scenario: Scenario, **rest: Any) -> None:
        super().__init__(**rest)
        self.scenario = scenario

    def runtest(self) -> None:
        player = self.config.stash.get(_PLAYER, None)
        if player is None:
            player = self.config.stash[_PLAYER] = _Player()
        report = player.check(self.scenario)
        if not report.passed:
            raise UnmetError(report)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        from tracegraph.errors import TracegraphError

        if isinstance(excinfo.value, UnmetError):
            file = self.nodeid.split("::", 1)[0]
            lines = [f"{file}:{failure.line}: {failure}" for failure in excinfo.value.report.failures]
            return "\n".join([f"{excinfo.value}:", *lines])
        if isinstance(excinfo.value, TracegraphError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"scenario: {self.name}"


class _Player:
    """One connection on an event loop of its own, for all scenarios of the run."""

    def __init__(self) -> None:
        from anyio.from_thread import start_blocking_portal

        from tracegraph.graph import connect

        with ExitStack() as opened:
            self._portal = opened.enter_context(start_blocking_portal())
            self._graph = opened.enter_context(self._portal.wrap_async_context_manager(connect()))
            self._opened = opened.pop_all()

    def check(self, scenario: Scenario) -> Report:
        from tracegraph.scenarios import check

        return self._portal.call(check, self._graph, scenario)

    def close(self) -> None:
        self._opened.close()


_PLAYER = pytest.StashKey[_Player]()
