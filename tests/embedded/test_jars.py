"""Fetching the pinned jars, with a small lock and a Maven repository on loopback."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from jgo.constants import MAVEN_CENTRAL_URL

from tracegraph.embedded import jars, machine
from tracegraph.errors import Unavailable

CONTENT = {
    "org/a/1/a-1.jar": os.urandom(300_000),
    "org/b/1/b-1.jar": b"b" * 1000,
    "org/c/1/c-1.jar": os.urandom(70_000),
}


def lock_of(content: dict[str, bytes]) -> jars.Lock:
    pinned = [jars.Jar(path, len(jar), hashlib.sha256(jar).hexdigest()) for path, jar in content.items()]
    return jars.Lock("0.0.1", "Main", tuple(pinned))


class Repository(ThreadingHTTPServer):
    """Serves `content`; `cut` breaks the first answers for a path off after so many bytes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = dict(CONTENT)
        self.cut: dict[str, list[int]] = {}
        self.honours_range = True
        self.requests: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        path, wanted = self.path.lstrip("/"), self.headers.get("Range")
        self.server.requests.append((path, wanted))
        if path not in self.server.content:
            self.send_error(404)
            return
        jar, start = self.server.content[path], 0
        if wanted and self.server.honours_range:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(jar) - start))
        self.end_headers()
        cuts = self.server.cut.get(path, [])
        self.wfile.write(jar[start : start + cuts.pop(0)] if cuts else jar[start:])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    with Repository() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("TRACEGRAPH_MAVEN", server.url)
        monkeypatch.setenv("TRACEGRAPH_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(jars, "PAUSE", 0.001)
        yield server
        server.shutdown()


def test_the_class_path_holds_the_fetched_jars_in_the_locks_order(repository: Repository) -> None:
    paths = [Path(path) for path in jars.fetch(lock_of(CONTENT)).split(os.pathsep)]

    assert [path.read_bytes() for path in paths] == list(CONTENT.values())
    assert not list(jars.jar_dir().rglob("*.part"))


def test_what_is_there_is_not_fetched_again(repository: Repository) -> None:
    jars.fetch(lock_of(CONTENT))
    repository.requests.clear()
    (jars.jar_dir() / "org/b/1/b-1.jar").unlink()

    jars.fetch(lock_of(CONTENT))

    assert repository.requests == [("org/b/1/b-1.jar", None)]


def test_a_download_that_breaks_off_is_resumed_where_it_stopped(repository: Repository) -> None:
    repository.cut["org/a/1/a-1.jar"] = [100_000, 50_000]

    jars.fetch(lock_of(CONTENT))

    asked = [wanted for path, wanted in repository.requests if path == "org/a/1/a-1.jar"]
    assert asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_start_resumes_what_an_earlier_one_left(repository: Repository) -> None:
    part = jars.jar_dir() / "org/a/1/a-1.jar.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT["org/a/1/a-1.jar"][:1234])

    jars.fetch(lock_of(CONTENT))

    assert ("org/a/1/a-1.jar", "bytes=1234-") in repository.requests


def test_a_repository_that_ignores_ranges_still_gives_the_right_jar(repository: Repository) -> None:
    repository.cut["org/a/1/a-1.jar"] = [100_000]
    repository.honours_range = False

    jars.fetch(lock_of(CONTENT))

    assert (jars.jar_dir() / "org/a/1/a-1.jar").read_bytes() == CONTENT["org/a/1/a-1.jar"]


def test_a_wrong_start_of_a_jar_is_thrown_away_and_fetched_anew(repository: Repository) -> None:
    part = jars.jar_dir() / "org/a/1/a-1.jar.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * 1234)

    jars.fetch(lock_of(CONTENT))

    assert (jars.jar_dir() / "org/a/1/a-1.jar").read_bytes() == CONTENT["org/a/1/a-1.jar"]


def test_a_jar_that_differs_from_the_lock_never_takes_its_place(repository: Repository) -> None:
    lock = lock_of(CONTENT)
    repository.content["org/b/1/b-1.jar"] = b"x" * 1000

    with pytest.raises(Unavailable, match=r"b-1\.jar: its sha256 is not the pinned one"):
        jars.fetch(lock)

    assert not (jars.jar_dir() / "org/b/1/b-1.jar").exists()


def test_a_changed_jar_refuses_the_start_and_says_how_to_repair_it(repository: Repository) -> None:
    jars.fetch(lock_of(CONTENT))
    changed = jars.jar_dir() / "org/c/1/c-1.jar"
    changed.write_bytes(b"changed")

    with pytest.raises(Unavailable, match=r"org/c/1/c-1\.jar") as refused:
        jars.fetch(lock_of(CONTENT))

    assert f"Delete {changed}" in refused.value.hint
    assert changed.read_bytes() == b"changed"
    changed.unlink()
    jars.fetch(lock_of(CONTENT))


def test_without_a_network_the_error_names_the_settings_that_help(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_MAVEN", f"http://127.0.0.1:{machine.port(None, 0, 'HTTP')}")

    with pytest.raises(Unavailable, match="Could not download") as refused:
        jars.fetch(lock_of(CONTENT))

    assert refused.value.code == "unavailable"
    assert "TRACEGRAPH_MAVEN" in refused.value.hint


def test_a_jar_the_repository_lacks_is_asked_for_once(repository: Repository) -> None:
    del repository.content["org/b/1/b-1.jar"]

    with pytest.raises(Unavailable, match="HTTP 404"):
        jars.fetch(lock_of(CONTENT))

    assert repository.requests.count(("org/b/1/b-1.jar", None)) == 1


def test_a_full_disk_is_seen_before_the_download(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: SimpleNamespace(free=5_000_000))

    with pytest.raises(Unavailable, match="Only 5 MB are free"):
        jars.fetch(lock_of(CONTENT))

    assert repository.requests == []


def test_several_at_once_fetch_each_jar_once(repository: Repository) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: jars.fetch(lock_of(CONTENT)), range(4)))

    assert sorted(path for path, _ in repository.requests) == sorted(CONTENT)


def test_in_a_pipe_a_download_prints_one_line_and_nothing_on_stdout(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    jars.fetch(lock_of(CONTENT))
    jars.fetch(lock_of(CONTENT))

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1


def test_a_terminal_shows_a_bar(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes stderr for a terminal

    jars.fetch(lock_of(CONTENT), progress=True)

    assert "Neo4j 0.0.1" in capsys.readouterr().err


def test_the_users_maven_mirror_of_central_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEGRAPH_MAVEN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.repository() == MAVEN_CENTRAL_URL

    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>'
        "<mirror><mirrorOf>other</mirrorOf><url>https://other.example</url></mirror>"
        "<mirror><mirrorOf>external:*,!mine</mirrorOf><url> https://mirror.example/maven/ </url></mirror>"
        "</mirrors></settings>"
    )
    assert jars.repository() == "https://mirror.example/maven"

    monkeypatch.setenv("TRACEGRAPH_MAVEN", "https://chosen.example/")
    assert jars.repository() == "https://chosen.example"


@pytest.mark.parametrize("version", [None, "2026.09.0", "5.26"])
def test_every_jar_of_a_release_is_pinned(version: str | None) -> None:
    lock = jars.read_lock(version)

    assert len({jar.path for jar in lock.jars}) == len(lock.jars) > 200
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) and jar.size for jar in lock.jars)
    assert any(jar.path.startswith("org/neo4j/client/neo4j-browser/") for jar in lock.jars)


def test_an_unknown_version_names_the_known_ones() -> None:
    with pytest.raises(Unavailable, match=r"No embedded Neo4j 4\.4") as refused:
        jars.read_lock("4.4")

    assert "2026.09.0" in refused.value.hint
