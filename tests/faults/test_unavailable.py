"""A server that is away, paused, slow, wrong, full or too old: `unavailable` with a hint, soon, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import tracegraph
from tests.faults.proxy import Proxy
from tests.faults.servers import Own
from tests.faults.stubs import Talk, bolt, says, serving
from tracegraph import Graph, Item, Receipt, TracegraphError, Workspace, embedded
from tracegraph.embedded import process
from tracegraph.errors import Unavailable
from tracegraph.graph import need_version
from tracegraph.model import new_id
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

pytestmark = pytest.mark.anyio

PATIENCE = 3.0
SOON = 30.0
"""Seconds, generously: what waits for ever takes longer."""
WHO = {"principal": "P", "role": "r", "task": "t"}
STATUS = "tracegraph doctor"


@contextmanager
def unavailable(hint: str, message: str = "") -> Iterator[None]:
    """Soon, with this in the hint and this in the message."""
    began = time.monotonic()
    with pytest.raises(TracegraphError) as error:
        yield
    assert time.monotonic() - began < SOON
    assert error.value.code == "unavailable"
    assert hint in error.value.hint
    assert message in error.value.message


def item(id: str) -> Item:
    return Item(id=id, scope="s", content=f"It is {id}.", receipts=[Receipt(uri="m", text="m")])


async def team(graph: Graph, tmp_path: Path) -> Workspace:
    """P holds a role that reads `s`, where `a` was recorded."""
    ws = await open_workspace(graph, new_id("away"), owner="lead", keys=Keys(tmp_path))
    await ws.grant(role="r", principal="P", read=["s"])
    await ws.record(item("a"))
    ticket = await ws.depart(**WHO)
    assert (await ws.admit(ticket, principal="P")).decision == "admitted"  # every query has its plan now
    return ws


# --- before there is a connection ------------------------------------------------------------------------------------

HANDSHAKE = bytes((0, 0, 4, 5))
"""Bolt 5.4 is spoken."""
STRANGE: dict[str, tuple[Talk, str]] = {
    "says nothing": (says(b""), STATUS),
    "hangs up": (says(), STATUS),
    "speaks HTTP": (says(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), ""),
    "speaks SSH": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), ""),
    "knows no version": (says(bytes(4)), ""),
    "answers by half": (says(bytes(2)), ""),
    "hangs up after the handshake": (says(HANDSHAKE), STATUS),
    "says nothing after the handshake": (says(HANDSHAKE, b""), STATUS),
    "talks nonsense after the handshake": (says(HANDSHAKE, b"\x00\x04\xde\xad\xbe\xef\x00\x00", b""), ""),
    "answers with no structure": (says(HANDSHAKE, b"\x00\x01\x01\x00\x00", b""), ""),
    "answers with a broken text": (says(HANDSHAKE, b"\x00\x07\xb1\x70\xa1\x83\xff\xff\xff\x00\x00", b""), ""),
    "hangs up within an answer": (says(HANDSHAKE, b"\x00\x40\xb1\x70"), STATUS),
    "is another product": (bolt("Other/1.0", (5, 4)), "NEO4J_URI"),
    "is Neo4j 4.4": (bolt("Neo4j/4.4.38", (4, 4)), "5.26 or newer"),
    "is Neo4j 5.11": (bolt("Neo4j/5.11.0", (5, 3)), "5.26 or newer"),
    "is compatible to Neo4j 5.2": (bolt("Neo4j/v5.2.0 compatible graph database server", (5, 2)), "5.26 or newer"),
}


@pytest.mark.parametrize("kind", STRANGE)
async def test_a_server_that_is_none_to_work_with_is_unavailable_soon(kind: str) -> None:
    talk, hint = STRANGE[kind]
    async with serving(talk) as uri:
        with unavailable(hint):
            async with tracegraph.connect(uri, password="p", patience=PATIENCE):  # noqa: S106
                pass


async def test_a_port_where_nobody_listens_is_unavailable_soon() -> None:
    async with serving(says()) as uri:
        pass
    with unavailable(STATUS):
        async with tracegraph.connect(uri, password="p", patience=PATIENCE):  # noqa: S106
            pass


@pytest.mark.parametrize("scheme", ["bolt+s", "bolt+ssc", "neo4j", "neo4j+s"])
async def test_a_scheme_that_the_server_does_not_speak_is_unavailable_soon(scheme: str) -> None:
    async with serving(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as uri:
        with unavailable(""):
            async with tracegraph.connect(uri.replace("bolt", scheme), password="p", patience=PATIENCE):  # noqa: S106
                pass


@pytest.mark.parametrize(
    ("agent", "fit"),
    [
        ("Neo4j/3.5.35", False),
        ("Neo4j/5.25.1", False),
        ("Neo4j/5.26.0", True),
        ("Neo4j/5.27-aura", True),
        ("Neo4j/2025.01.0", True),
        ("Neo4j/2026.09.0", True),
        ("Neo4j/dev", True),
    ],
)
def test_a_server_is_old_before_5_26(agent: str, fit: bool) -> None:
    if fit:
        need_version(agent)
    else:
        with unavailable("5.26 or newer", agent.rpartition(".")[0].replace("/", " ")):
            need_version(agent)


# --- a connection that fails --------------------------------------------------------------------------------------


@pytest.fixture
async def far(proxy: Proxy, neo4j: dict[str, str]) -> AsyncIterator[Graph]:
    """The run's server through the proxy."""
    user, password = neo4j["NEO4J_USERNAME"], neo4j["NEO4J_PASSWORD"]
    async with tracegraph.connect(proxy.uri, username=user, password=password, patience=PATIENCE) as graph:
        yield graph


@pytest.fixture
async def ws(far: Graph, graph: Graph, tmp_path: Path) -> AsyncIterator[Workspace]:
    near = await team(graph, tmp_path)
    yield await open_workspace(far, near.id, owner=None, keys=Keys(tmp_path))
    await forget(graph, near.id)


async def whole(ws: Workspace, epochs: int) -> None:
    """Everything goes on, and nothing was written twice."""
    done = await ws.record(item("last"), batch_id="last")
    assert done.epoch == epochs + 1
    assert (await ws.verify()).intact


@pytest.mark.parametrize("bytes_", [0, 1, 3, 4, 5, 7, 20, 60, 100, 200, 300])
async def test_a_connection_that_is_cut_anywhere_while_it_is_made_is_unavailable(
    proxy: Proxy, neo4j: dict[str, str], bytes_: int
) -> None:
    proxy.cut = bytes_
    user, password = neo4j["NEO4J_USERNAME"], neo4j["NEO4J_PASSWORD"]
    with unavailable(STATUS):
        async with tracegraph.connect(proxy.uri, username=user, password=password, patience=PATIENCE):
            pass


async def test_a_server_that_is_away_is_unavailable_soon_and_loses_nothing(ws: Workspace, proxy: Proxy) -> None:
    ticket = await ws.depart(**WHO)
    await proxy.away()
    with unavailable(STATUS):
        await ws.record(item("b"), batch_id="b")
    with unavailable(STATUS):
        await ws.admit(ticket, principal="P")
    with unavailable(STATUS):
        await ws.read(**WHO)
    await proxy.listen()
    assert not (await ws.record(item("b"), batch_id="b")).repeated
    assert (await ws.admit(ticket, principal="P")).decision == "admitted"
    await whole(ws, 5)


async def test_a_server_that_comes_back_soon_is_waited_for(ws: Workspace, proxy: Proxy) -> None:
    await proxy.away()
    async with anyio.create_task_group() as group:
        group.start_soon(ws.record, item("b"))
        await anyio.sleep(0.5)
        await proxy.listen()
    await whole(ws, 4)


async def test_idle_connections_that_were_cut_are_replaced(ws: Workspace, proxy: Proxy) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(ws.verify)
    proxy.sever()
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(ws.record, item(f"i{number}"))
    await whole(ws, 11)


async def test_a_frozen_connection_is_given_up_soon_and_loses_nothing(ws: Workspace, proxy: Proxy) -> None:
    ticket = await ws.depart(**WHO)
    proxy.freeze()
    with unavailable(STATUS):
        await ws.record(item("b"), batch_id="b")
    with unavailable(STATUS):
        await ws.admit(ticket, principal="P")
    proxy.thaw()
    await ws.record(item("b"), batch_id="b")
    assert (await ws.admit(ticket, principal="P")).decision == "admitted"
    await whole(ws, 5)


@pytest.mark.parametrize("fault", ["away", "frozen"])
async def test_those_who_wait_in_line_for_a_dead_server_are_told_together(
    ws: Workspace, proxy: Proxy, fault: str
) -> None:
    """Departures share no transaction: each waiting out the server after the one before it would take a minute."""
    if fault == "away":
        await proxy.away()
    else:
        proxy.freeze()
    with unavailable(STATUS):
        await asyncio.gather(*(refused(ws.depart(principal="P", role="r", task=f"t{n}")) for n in range(20)))
        raise TracegraphError("", code="unavailable")
    await proxy.listen() if fault == "away" else proxy.thaw()
    await whole(ws, 3)


async def refused(call: Awaitable[Any]) -> None:
    with pytest.raises(TracegraphError) as error:
        await call
    assert error.value.code == "unavailable"


async def test_a_slow_server_is_waited_for_and_one_that_is_too_slow_is_not(ws: Workspace, proxy: Proxy) -> None:
    proxy.delay = 0.3
    ticket = await ws.depart(**WHO)
    await ws.record(item("b"), batch_id="b")
    assert (await ws.admit(ticket, principal="P")).decision == "admitted"
    proxy.delay = PATIENCE
    with unavailable(STATUS):
        await ws.record(item("c"), batch_id="c")
    proxy.delay = 0.0
    proxy.sever()
    await ws.record(item("c"), batch_id="c")
    await whole(ws, 6)


async def test_a_connection_is_closed_soon_though_nobody_answers(proxy: Proxy, neo4j: dict[str, str]) -> None:
    user, password = neo4j["NEO4J_USERNAME"], neo4j["NEO4J_PASSWORD"]
    began = time.monotonic()
    async with tracegraph.connect(proxy.uri, username=user, password=password, patience=PATIENCE):
        proxy.freeze()
    assert time.monotonic() - began < SOON


# --- a server that is ill -------------------------------------------------------------------------------------------


async def test_a_paused_server_is_given_up_soon_and_goes_on_where_it_was(own: Own, tmp_path: Path) -> None:
    async with own.connect() as warm, own.connect(patience=PATIENCE) as graph:
        near = await team(warm, tmp_path)
        ws = await open_workspace(graph, near.id, owner=None, keys=Keys(tmp_path))
        ticket = await ws.depart(**WHO)
        os.kill(own.pid, signal.SIGSTOP)
        try:
            with unavailable(STATUS):
                await ws.record(item("b"), batch_id="b")
            with unavailable(STATUS):
                await ws.admit(ticket, principal="P")
            with unavailable(STATUS):
                async with own.connect(patience=PATIENCE):
                    pass
        finally:
            os.kill(own.pid, signal.SIGCONT)
        assert (await near.record(item("b"), batch_id="b")).epoch == 5
        assert (await near.admit(ticket, principal="P")).decision == "admitted"
        await whole(near, 5)


async def test_a_wrong_password_a_wrong_database_and_too_many_tries_say_what_to_check(own: Own) -> None:
    async def connect(password: str, database: str | None = None) -> None:
        async with tracegraph.connect(own.uri, password=password, database=database, patience=PATIENCE):
            pass

    with unavailable("NEO4J_DATABASE", "no such database"):
        await connect(own.password, "nowhere")
    with unavailable("NEO4J_DATABASE"):
        await connect(own.password, "system")
    with unavailable("NEO4J_PASSWORD", "refused the user name or password."):
        await connect("wrong")
    for _ in range(4):
        with unavailable("NEO4J_PASSWORD"):
            await connect("wrong")
    with unavailable("Wait a few seconds", "too often"):
        await connect("wrong")
    with anyio.fail_after(SOON):
        while True:
            try:
                return await connect(own.password)
            except TracegraphError:
                await anyio.sleep(0.5)


async def test_a_database_that_may_only_be_read_is_read_and_says_so(
    own: Own, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with own.connect() as graph:
        ws = await team(graph, tmp_path)
        await own.stop()
        try:
            with monkeypatch.context() as patch:
                patch.setitem(process.SETTINGS, "server.databases.read_only", "neo4j")
                await own.start()
            with unavailable("server.databases.read_only", "may only be read"):
                await ws.record(item("b"), batch_id="b")
            with unavailable("server.databases.read_only", "may only be read"):
                await ws.join(**WHO)
            async with own.connect() as again:
                with unavailable("server.databases.read_only", "may only be read"):
                    await again.workspace("new", owner="lead")
            assert [one.id for one in await ws.history("a")] == ["a"]
        finally:
            await own.stop()
            await own.start()
        assert (await ws.record(item("b"), batch_id="b")).epoch == 4
        assert (await ws.verify()).intact


async def test_a_connection_goes_on_with_a_store_that_was_put_in_the_place_of_its_own(own: Own, tmp_path: Path) -> None:
    if "TRACEGRAPH_SLOW" not in os.environ:
        pytest.skip("two starts of a server for one rare event: set TRACEGRAPH_SLOW=1")
    async with own.connect() as graph:
        ws = await team(graph, tmp_path)
        await own.stop()
        shutil.rmtree(own.home / "data")
        await own.start()
        async with own.connect():
            pass  # makes the schema
        for _ in range(2):  # the first may be told that the database was replaced
            try:
                made = await graph.workspace("new", owner="lead")
                break
            except TracegraphError as error:
                if error.code != "unavailable" or "replaced" not in error.hint:
                    raise
        assert (await made.record(item("a"))).epoch == 1
        with pytest.raises(TracegraphError) as gone:
            await ws.record(item("b"))
        assert gone.value.code == "unknown_item"


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 300 MB in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small disk needs root, and mount")
    made = subprocess.run(  # noqa: S603
        ["mount", "-t", "tmpfs", "-o", "size=300m", "tracegraph-test", str(folder)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"mounting a small disk is not permitted: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607


def fill(filler: Path) -> None:
    """Until nothing more goes in."""
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(100_000))


async def test_a_full_disk_is_unavailable_and_loses_nothing(
    little_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "MIN_FREE", 50_000_000)
    monkeypatch.setattr(process, "JVM", (*process.JVM, *process.BRIEF))
    own = Own(little_disk / "home")
    try:
        await own.start()
        async with own.connect() as graph:
            ws = await team(graph, tmp_path)
            filler = little_disk / "filler"
            fill(filler)
            kept = 3
            with unavailable("If its disk is full, free some space"):
                for _ in range(300):
                    words = os.urandom(30_000).hex()
                    done = await ws.record(Item(id=f"b{kept}", scope="s", content=words), batch_id=f"b{kept}")
                    kept = done.epoch
            filler.unlink()
            await own.stop()
            try:
                await own.start()
            except Unavailable as refusal:  # the write that failed was torn so that Neo4j doesn't read over it
                if process.TRUNCATE not in refusal.hint:
                    raise
                monkeypatch.setenv(process.TRUNCATE, "1")
                await own.start()
            again = await ws.record(Item(id=f"b{kept}", scope="s", content=words), batch_id=f"b{kept}")
            assert again.epoch == kept + 1
            assert (await ws.verify()).intact
            await whole(ws, kept + 1)
    finally:
        await own.stop()
