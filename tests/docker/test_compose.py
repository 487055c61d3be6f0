"""What docker/compose.yml promises, as Compose reads it without an engine, and as the container keeps it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from neo4j import GraphDatabase
from neo4j.exceptions import AuthError
from pytest_docker.plugin import DockerComposeExecutor

from tracegraph.embedded.jars import DEFAULT_VERSION

UNIT_TEST = Path(__file__).parent.parent / "unit" / "test_cover.py"


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """None of those that the compose file reads is set yet."""
    for name in [name for name in os.environ if name.startswith(("NEO4J_", "TRACEGRAPH_NEO4J_"))]:
        monkeypatch.delenv(name)
    return monkeypatch


def read(compose: DockerComposeExecutor) -> dict[str, Any]:
    return dict(json.loads(compose.execute("config --format json", ignore_stderr=True))["services"]["neo4j"])


@pytest.mark.parametrize("password", [None, ""])
def test_no_password_is_refused_with_what_to_do(
    compose: DockerComposeExecutor, variables: pytest.MonkeyPatch, password: str | None
) -> None:
    if password is not None:
        variables.setenv("NEO4J_PASSWORD", password)
    with pytest.raises(Exception, match=r"NEO4J_PASSWORD is missing.*8 characters or more"):
        compose.execute("config")


def test_with_a_password_alone_it_is_the_pinned_image_on_loopback(
    compose: DockerComposeExecutor, variables: pytest.MonkeyPatch
) -> None:
    variables.setenv("NEO4J_PASSWORD", "correct horse")
    neo4j = read(compose)
    assert neo4j["image"] == f"neo4j:{DEFAULT_VERSION}-community"
    assert neo4j["environment"]["NEO4J_AUTH"] == "neo4j/correct horse"
    assert [(port["host_ip"], port["published"], port["target"]) for port in neo4j["ports"]] == [
        ("127.0.0.1", "7687", 7687),
        ("127.0.0.1", "7474", 7474),
    ]
    assert {(volume["type"], volume["target"]) for volume in neo4j["volumes"]} == {
        ("volume", "/data"),
        ("volume", "/logs"),
    }
    assert int(neo4j["mem_limit"]) == 3 * 2**30
    assert neo4j["healthcheck"]["test"][0] == "CMD"


def test_image_ports_and_address_come_from_the_environment(
    compose: DockerComposeExecutor, variables: pytest.MonkeyPatch
) -> None:
    variables.setenv("NEO4J_PASSWORD", "correct horse")
    variables.setenv("TRACEGRAPH_NEO4J_IMAGE", "another/neo4j:1")
    variables.setenv("TRACEGRAPH_NEO4J_BOLT_PORT", "17687")
    variables.setenv("TRACEGRAPH_NEO4J_HTTP_PORT", "17474")
    variables.setenv("TRACEGRAPH_NEO4J_ADDRESS", "192.0.2.1")
    neo4j = read(compose)
    assert neo4j["image"] == "another/neo4j:1"
    assert {(port["host_ip"], port["published"]) for port in neo4j["ports"]} == {
        ("192.0.2.1", "17687"),
        ("192.0.2.1", "17474"),
    }


@pytest.mark.parametrize("required", [False, True])
def test_without_an_engine_tests_are_skipped_or_the_run_fails(tmp_path: Path, required: bool) -> None:
    environment = os.environ | {"DOCKER_HOST": f"unix://{tmp_path}/no.sock", "TRACEGRAPH_REQUIRE_DOCKER": "1"}
    if not required:
        del environment["TRACEGRAPH_REQUIRE_DOCKER"]
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", "--neo4j=docker", "-p", "no:cacheprovider", str(UNIT_TEST)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "no Docker engine answers" in run.stdout + run.stderr
    assert "passed" not in run.stdout
    assert (run.returncode == 1) is required


def test_the_container_becomes_healthy(containers: DockerComposeExecutor) -> None:
    deadline = time.monotonic() + 60
    while state(containers)["Health"] != "healthy":
        assert time.monotonic() < deadline, state(containers)
        time.sleep(1)


def test_the_container_is_reached_on_loopback_only(containers: DockerComposeExecutor) -> None:
    assert {port["URL"] for port in state(containers)["Publishers"] if port["PublishedPort"]} == {"127.0.0.1"}


def test_the_container_refuses_another_password(containers: DockerComposeExecutor, neo4j: dict[str, str]) -> None:
    with (
        GraphDatabase.driver(neo4j["NEO4J_URI"], auth=("neo4j", "another password")) as driver,
        pytest.raises(AuthError),
    ):
        driver.verify_connectivity()


def test_the_container_sends_nothing_and_logs_no_query(
    containers: DockerComposeExecutor, neo4j: dict[str, str]
) -> None:
    with GraphDatabase.driver(neo4j["NEO4J_URI"], auth=("neo4j", neo4j["NEO4J_PASSWORD"])) as driver:
        settings = {record["name"]: record["value"] for record in driver.execute_query("SHOW SETTINGS").records}
    assert settings["dbms.usage_report.enabled"] == "false"
    assert settings["client.allow_telemetry"] == "false"
    assert settings.get("server.fleet_discovery.enabled", "false") == "false"
    assert settings["db.logs.query.enabled"] == "OFF"


def state(containers: DockerComposeExecutor) -> dict[str, Any]:
    said = json.loads(containers.execute("ps --format json neo4j", ignore_stderr=True))
    return dict(said[0] if isinstance(said, list) else said)  # a list before Compose 2.21
