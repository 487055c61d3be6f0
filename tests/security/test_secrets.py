"""Where a secret could get out: the network, the process list, files, representations, exceptions and logs."""

from __future__ import annotations

import logging
import os
import re
import socket
import stat
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import tracegraph
from tests.security.conftest import Team
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, TracegraphError, embedded, sync
from tracegraph.invalidation.endpoint import Endpoint

WORDS = "Zanzibar-4711"
"""Stands in every content that these tests write."""


# --- the embedded server ----------------------------------------------------------------------------------------


@pytest.fixture
def server(neo4j: dict[str, str], pytestconfig: pytest.Config) -> embedded.Server:
    found = embedded.status(version=pytestconfig.getoption("--neo4j-version"))
    if found is None or found.bolt_uri != neo4j["NEO4J_URI"]:
        pytest.skip("the run uses a server that is not embedded")
    return found


def addresses() -> Iterator[tuple[socket.AddressFamily, str]]:
    """This machine's own addresses beyond loopback."""
    for cards in psutil.net_if_addrs().values():
        for card in cards:
            address = card.address.partition("%")[0]
            if card.family in (socket.AF_INET, socket.AF_INET6) and not address.startswith(("127.", "::1", "fe80")):
                yield card.family, card.address  # type: ignore[misc]


def test_the_embedded_server_listens_on_loopback_alone(server: embedded.Server) -> None:
    connections = psutil.Process(server.pid).net_connections("inet")
    listening = {one.laddr.ip.removeprefix("::ffff:") for one in connections if one.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_the_embedded_server_cannot_be_reached_at_another_address(server: embedded.Server) -> None:
    ports = [int(uri.rpartition(":")[2]) for uri in (server.bolt_uri, server.http_uri)]
    for port in ports:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    found = list(addresses())
    if not found:
        pytest.skip("this machine has no other address")
    for family, address in found:
        for port in ports:
            with socket.socket(family) as probe:
                probe.settimeout(2)
                assert probe.connect_ex((address, port)) != 0, (address, port)


def test_the_configuration_names_no_other_address(server: embedded.Server) -> None:
    settings = (server.data / "conf" / "neo4j.conf").read_text(encoding="utf-8")
    found = dict(line.split("=", 1) for line in settings.splitlines() if "address" in line)
    assert {value.partition(":")[0] for value in found.values()} == {"127.0.0.1"}
    assert {"server.default_listen_address", "server.bolt.listen_address", "server.http.listen_address"} <= set(found)


def test_the_embedded_server_takes_no_one_without_the_password(server: embedded.Server) -> None:
    from neo4j import GraphDatabase, exceptions

    for auth in (None, ("neo4j", "neo4j"), ("neo4j", ""), ("neo4j", "wrong"), ("", server.password)):
        with GraphDatabase.driver(server.bolt_uri, auth=auth) as driver, pytest.raises(exceptions.Neo4jError):
            driver.verify_connectivity()


def test_the_password_is_in_one_file_of_the_users_and_in_no_process_list(server: embedded.Server) -> None:
    assert stat.S_IMODE(server.password_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    password = server.password.encode()
    assert len(password) >= 24
    for process in psutil.process_iter():
        with suppress(OSError):
            assert password not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert password not in Path(f"/proc/{server.pid}/environ").read_bytes()
    small = [path for path in server.data.rglob("*") if path.is_file() and path.stat().st_size < 20_000_000]
    assert [path.name for path in small if password in _bytes(path)] == [server.password_file.name]
    assert server.password not in repr(server) + str(server)


def test_what_is_recorded_stands_in_no_log_of_the_server(server: embedded.Server) -> None:
    with sync.connect(server.bolt_uri, username=server.username, password=server.password) as graph:
        ws = graph.workspace(tracegraph.model.new_id("security"), owner="lead")
        ws.record(Item(scope="s", content=WORDS, receipts=[Receipt(uri="m", text=WORDS)]))
        _forget(ws)
    logs = [path for path in (server.data / "logs").rglob("*") if path.is_file()]
    assert logs
    assert [path.name for path in logs if WORDS.encode() in _bytes(path)] == []


def _bytes(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""


def _forget(ws: sync.Workspace) -> None:
    from tracegraph.scenarios import forget

    ws._portal.call(forget, ws._inner.graph, ws.id)


# --- the password of a server of one's own -----------------------------------------------------------------------

URIS = [
    "bolt://neo4j:{0}@127.0.0.1:1",
    "neo4j://neo4j:{0}@127.0.0.1:1",
    "bolt://neo4j:a/{0}@127.0.0.1:1",
    "bolt://127.0.0.1:1?password={0}",
    "{0}",
    "bolt://127.0.0.1:{0}",
    "{0}://127.0.0.1:1",
    "bolt://[{0}",
]


@pytest.mark.anyio
@pytest.mark.parametrize("uri", URIS)
async def test_a_password_in_the_address_is_not_repeated(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracegraph.graph.RETRY_SECONDS", 0.1)
    with pytest.raises(TracegraphError) as error:
        async with tracegraph.connect(uri.format(WORDS), username="neo4j", password="hidden-" + WORDS):
            pass
    assert error.value.code == "unavailable"
    assert WORDS not in _whole(error.value)


@pytest.mark.anyio
async def test_a_refused_password_is_not_repeated(neo4j: dict[str, str]) -> None:
    with pytest.raises(TracegraphError) as error:
        async with tracegraph.connect(neo4j["NEO4J_URI"], username="neo4j", password=WORDS):
            pass
    assert error.value.code == "unavailable"
    assert WORDS not in _whole(error.value)


def _whole(error: BaseException) -> str:
    """All that a caller's log could show of an exception: its trace and its causes."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


def test_an_api_key_is_in_no_representation() -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:1", api_key=WORDS)
    assert WORDS not in repr(endpoint) + str(endpoint) + endpoint.name


def test_the_command_line_shows_no_password(neo4j: dict[str, str], tmp_path: Path) -> None:
    environment = {**os.environ, **neo4j, "NEO4J_PASSWORD": WORDS, "TRACEGRAPH_DEBUG": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from tracegraph.cli import main; main()", "policy", "-w", "none"],
        env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "unavailable" in done.stderr
    assert WORDS not in done.stdout + done.stderr


# --- content ------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_no_act_and_no_refusal_logs_or_repeats_content(team: Team, graph: Graph, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("neo4j", "asyncio"):  # a driver set to DEBUG shows parameters: SECURITY.md
        caplog.set_level(logging.INFO, logger=name)
    ws, mail = team.ws, [Receipt(id="r0", uri="mail:1", text=WORDS)]
    item = Item(id="i0", key="k", scope="trip", content=WORDS, receipts=mail)
    await ws.record(item, author="A1")
    await ws.open_obligation(Obligation(id="o0", scope="trip", content=WORDS, frontier=Frontier(content=WORDS)))
    view = (await ws.join(principal="A1", role="itinerary", task="plan", query=WORDS)).view
    assert view is not None
    await ws.remember(WORDS, principal="A1", grounded_in=["i0"])
    await ws.recall(view, principal="A1", query=WORDS)
    refusals: list[Any] = [
        lambda: ws.record(item),
        lambda: ws.record(item.model_copy(update={"id": "i1", "receipts": ()}), author="B1"),
        lambda: ws.record(Item(id="i2", scope="trip", content=WORDS, depends_on=["none"])),
        lambda: ws.record(Item(id="i2", scope="trip", content=WORDS + "x" * 65_536)),
        lambda: ws.record(Item(id="i2", scope="trip", content=WORDS + "\ud800")),
        lambda: ws.record(Item(id="i2", scope="trip", content=[WORDS])),  # type: ignore[arg-type]
        lambda: ws.record(Item(id="i2", scope="trip", content=WORDS, kind="none")),  # type: ignore[arg-type]
        lambda: ws.record(Receipt(uri="m", text=WORDS)),  # type: ignore[arg-type]
        lambda: ws.record(WORDS),  # type: ignore[arg-type]
        lambda: ws.advance("none", WORDS),
        lambda: ws.advance("o0", WORDS * 6000),
        lambda: ws.remember(WORDS, principal="A1", grounded_in=["none"]),
        lambda: ws.remember(WORDS, principal="A1", grounded_in=[]),
        lambda: ws.revoke("none", reason=WORDS),
        lambda: ws.revoke("i0", reason=WORDS * 400),
        lambda: ws.verdict(later="i0", earlier="none", says="invalidates", quote=WORDS, rationale=WORDS),
        lambda: ws.verdict(later="i0", earlier="i0", says="invalidates", quote=WORDS),
        lambda: ws.join(principal="A1", role="itinerary", task="plan", query=WORDS + "\ud800"),
        lambda: ws.join(principal="A1", role="itinerary", task="plan", query=WORDS * 400),
        lambda: ws.open_view(WORDS, principal="A1"),
        lambda: ws.admit(WORDS, principal="A1"),
    ]
    for number, refusal in enumerate(refusals):
        with pytest.raises(TracegraphError) as error:
            await refusal()
        assert WORDS not in str(error.value) + repr(error.value) + repr(vars(error.value)), number
    await ws.revoke("i0", reason=WORDS)
    with pytest.raises(TracegraphError) as error:
        await ws.open_view(view, principal="A1")
    assert error.value.code == "view_stale"
    assert WORDS not in str(error.value)
    assert WORDS not in caplog.text


def test_the_product_writes_to_a_log_in_one_place() -> None:
    """So there is no other in which content could stand by mistake; tests/graph/test_telemetry.py reads that one."""
    package = Path(tracegraph.__file__).parent
    for path in set(package.rglob("*.py")) - {package / "telemetry.py"}:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"\b(log|logger|logging)\.(debug|info|warning|error|exception|critical)\(", line), path
