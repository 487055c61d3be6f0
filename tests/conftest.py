"""One Neo4j for the whole run, one connection to it, and a workspace a test.

--neo4j=embedded    (default) an embedded server of the tests' own, started afresh and stopped at the end, or one
                    found running there; --neo4j-version says which (2026.09.0, or 5.26)
--neo4j=docker      the official image, by docker/compose.yaml and pytest-docker
--neo4j=URI         any server; NEO4J_USERNAME and NEO4J_PASSWORD as usual
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import tracegraph
from tracegraph.model import new_id
from tracegraph.scenarios import forget

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".test-home"
"""The tests' own data directory: neither data nor keys of the person who runs them are touched."""
_CONTAINERS = pytest.StashKey[ExitStack]()
_FOUND = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--neo4j", default="embedded", metavar="embedded|docker|URI", help="where the graph tests run")
    parser.addoption("--neo4j-version", default=None, help="which embedded server: 2026.09.0 or 5.26")


def pytest_configure(config: pytest.Config) -> None:
    from tracegraph import embedded

    os.environ["TRACEGRAPH_CACHE"] = str(embedded.jar_dir())
    os.environ["TRACEGRAPH_HOME"] = str(HOME)
    if config.getoption("--neo4j") == "embedded":
        for name in [name for name in os.environ if name.startswith("NEO4J_")]:
            del os.environ[name]
        config.stash[_FOUND] = embedded.status(version=config.getoption("--neo4j-version")) is not None
        if not config.stash[_FOUND]:
            shutil.rmtree(embedded.data_dir(version=config.getoption("--neo4j-version")), ignore_errors=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    where = session.config.getoption("--neo4j")
    if where == "docker" and not session.config.option.collectonly:
        session.config.stash[_CONTAINERS] = _containers()
    elif where not in ("embedded", "docker"):
        os.environ["NEO4J_URI"] = where


def pytest_unconfigure(config: pytest.Config) -> None:
    if _CONTAINERS in config.stash:
        config.stash[_CONTAINERS].close()
    if not config.stash.get(_FOUND, True):
        from tracegraph import embedded

        embedded.stop(version=config.getoption("--neo4j-version"))


def _containers() -> ExitStack:
    """The compose file's server, up and answering; from here on the environment names it."""
    from pytest_docker.plugin import get_docker_services

    password = os.environ.setdefault("NEO4J_PASSWORD", "tracegraph-test")
    os.environ["NEO4J_USERNAME"] = "neo4j"
    with ExitStack() as opened:
        services = opened.enter_context(
            get_docker_services(
                "docker compose",
                [str(ROOT / "docker" / "compose.yaml")],
                f"tracegraph-test-{os.getpid()}",
                ["up --detach"],
                ["down --volumes"],
            )
        )
        os.environ["NEO4J_URI"] = uri = f"bolt://127.0.0.1:{services.port_for('neo4j', 7687)}"
        services.wait_until_responsive(lambda: _answers(uri, password), timeout=120, pause=1)
        return opened.pop_all()


def _answers(uri: str, password: str) -> bool:
    from neo4j import GraphDatabase, exceptions

    try:
        with GraphDatabase.driver(uri, auth=("neo4j", password)) as driver:
            driver.verify_connectivity()
    except (exceptions.Neo4jError, exceptions.DriverError):
        return False
    return True


@pytest.fixture(scope="session")
def neo4j(pytestconfig: pytest.Config) -> dict[str, str]:
    """The environment by which any process reaches this run's server."""
    if "NEO4J_URI" not in os.environ:
        from tracegraph import embedded

        server = embedded.start(pytestconfig.getoption("--neo4j-version"))
        return {
            "NEO4J_URI": server.bolt_uri,
            "NEO4J_USERNAME": server.username,
            "NEO4J_PASSWORD": server.password,
        }
    return {name: os.environ[name] for name in os.environ if name.startswith("NEO4J_")}


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def graph(anyio_backend: str, neo4j: dict[str, str]) -> AsyncIterator[tracegraph.Graph]:
    """The run's one connection, on the run's one event loop."""
    async with tracegraph.connect(
        neo4j["NEO4J_URI"], username=neo4j["NEO4J_USERNAME"], password=neo4j["NEO4J_PASSWORD"]
    ) as graph:
        yield graph


@pytest.fixture
async def workspace(graph: tracegraph.Graph) -> AsyncIterator[tracegraph.Workspace]:
    """A fresh workspace of the owner `owner`, gone after the test."""
    id = new_id("test")
    yield await graph.workspace(id, owner="owner")
    await forget(graph, id)
