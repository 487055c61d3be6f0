"""The embedded Neo4j: the real Community server as a child process, one per data directory.

The server outlives the process that started it; whoever asks next finds it. Every fault is `Unavailable`,
with a hint. Importing this is cheap; `machine`, `jars` and `process` hold the parts.

    data directory          TRACEGRAPH_HOME, else the user's data directory; one per release line below it
      conf/ data/ logs/     Neo4j's own (it is the server's NEO4J_HOME)
      password              0600, made once
      server.json           the running server: version, pid, its create time, ports
      start.lock            held while a server is being started or stopped
      rebuilt/ data.old/    of a restore or a compaction, gone when it is over
    jars                    TRACEGRAPH_CACHE, else TRACEGRAPH_HOME/cache, else the user's cache directory
    TRACEGRAPH_MAVEN        a Maven repository to fetch from, else the user's Maven mirror, else Maven Central
    TRACEGRAPH_HEAP         the server's heap, 1g
    TRACEGRAPH_TRUNCATE_LOG 1: start though the end of the transaction log cannot be read, and drop that end
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tracegraph.embedded.jars import DEFAULT_VERSION, Lock, fetch, home_dir, jar_dir, read_lock
from tracegraph.embedded.machine import faults_of_the_disk, held, need_space, port
from tracegraph.embedded.process import (
    JVM,
    PortTaken,
    Running,
    Server,
    answers,
    argfile,
    as_server,
    await_ready,
    configure,
    end_strays,
    environment,
    find,
    initial_password,
    java,
    same_line,
    settle,
    spawn,
    terminate,
    write_state,
)
from tracegraph.errors import Unavailable

__all__ = ["DEFAULT_VERSION", "Server", "admin_command", "data_dir", "jar_dir", "start", "status", "stop"]

BOLT_PORT, HTTP_PORT = 7687, 7474
MIN_FREE = 1_000_000_000
START_SECONDS = 180.0


def start(
    version: str | None = None,
    data: Path | None = None,
    *,
    bolt_port: int | None = None,
    http_port: int | None = None,
    progress: bool | None = None,
    timeout: float = START_SECONDS,
) -> Server:
    """The server of `data`, started if it is not running. Returns when Bolt answers and the password works.

    `version`: 2026.09.0 (default) or 5.26. Ports: 7687 and 7474, others if those are taken; a port asked for
    by the caller is that port or an error. `progress`: a bar for the first download; default on a terminal.
    `timeout`: seconds for the server to become ready, not counting the download.
    """
    lock = read_lock(version)
    home = data_dir(data, lock.version)
    with faults_of_the_disk(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(home / "start.lock", "another process that is starting or stopping this server"):
            running = find(home)
            if running is not None:
                server = as_server(home, running) if answers(running) else _revive(home, running, timeout)
                if server is not None:
                    return _as_asked(server, lock, bolt_port, http_port)
            end_strays(home)
            settle(home)
            return launch(lock, home, bolt_port, http_port, progress, timeout)


def status(data: Path | None = None, *, version: str | None = None) -> Server | None:
    """The running server of `data`, verified by its process and a Bolt handshake; None when there is none."""
    home = data_dir(data, version)
    running = find(home)
    return as_server(home, running) if running is not None and answers(running) else None


def stop(data: Path | None = None, *, version: str | None = None) -> bool:
    """Stop the server of `data`: SIGTERM, and SIGKILL after 30 s. False when none was running."""
    home = data_dir(data, version)
    if not home.is_dir():
        return False
    with (
        faults_of_the_disk(home),
        held(home / "start.lock", "another process that is starting this server"),
    ):
        running = find(home)
        if running is not None:
            terminate(running.process)
        found = end_strays(home) or running is not None
        (home / "server.json").unlink(missing_ok=True)
        return found


def admin_command(
    *args: str,
    data: Path | None = None,
    version: str | None = None,
    input: bytes | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run neo4j-admin: `admin_command("database", "dump", "neo4j", "--to-path=DIR")`; most need `stop`."""
    lock = read_lock(version)
    home = data_dir(data, lock.version)
    with faults_of_the_disk(home):
        classpath = fetch(lock)
        if not (home / "conf" / "neo4j.conf").exists():
            configure(lock, home, BOLT_PORT, HTTP_PORT)
        arguments = argfile(home / "run" / "admin.args", ["-Xmx512m", *JVM, "-cp", classpath])
        env = {
            **environment(),
            "NEO4J_HOME": str(home),
            "NEO4J_CONF": str(home / "conf"),
            "JAVA_HOME": str(java().parent.parent),
        }
        command = [str(java()), f"@{arguments}", "org.neo4j.server.startup.Neo4jAdminCommand", *args]
        return subprocess.run(  # noqa: S603
            command, env=env, input=input, capture_output=True, timeout=timeout, check=False
        )


def data_dir(data: Path | None = None, version: str | None = None) -> Path:
    """The data directory: `data`, or the default one of this version's release line."""
    if data is not None:
        return Path(data).expanduser().resolve()
    return home_dir() / f"neo4j-{read_lock(version).line}"


def launch(
    lock: Lock,
    home: Path,
    bolt: int | None = None,
    http: int | None = None,
    progress: bool | None = None,
    timeout: float = START_SECONDS,
    *,
    brief: bool = False,
) -> Server:
    """Start a server in `home`, where none runs; the caller holds its start.lock. `brief`: for a minute's work."""
    if sys.platform == "win32":
        raise Unavailable(
            "The embedded Neo4j needs Linux or macOS.", hint="Use WSL, or set NEO4J_URI to a server of yours."
        )
    same_line(lock, home)
    need_space(home, MIN_FREE)
    classpath = fetch(lock, progress)
    for attempt in (1, 2, 3):
        bolt_port, http_port = port(bolt, BOLT_PORT, "Bolt"), port(http, HTTP_PORT, "HTTP")
        configure(lock, home, bolt_port, http_port)
        initial_password(home)
        process = spawn(lock, home, classpath, brief=brief)
        running = Running(process, lock.version, bolt_port, http_port)
        try:
            write_state(home, running)
            await_ready(home, running, timeout)
        except BaseException as error:
            terminate(process)
            (home / "server.json").unlink(missing_ok=True)
            # A port that was free a moment ago may be taken when the server binds it.
            if not isinstance(error, PortTaken) or attempt == 3 or (bolt and http):
                raise
        else:
            return as_server(home, running)
    raise AssertionError("unreachable")


def _revive(home: Path, running: Running, timeout: float) -> Server | None:
    """A server whose starter died halfway may still become ready; one that does not is ended."""
    try:
        await_ready(home, running, timeout)
    except Unavailable:
        terminate(running.process)
        return None
    return as_server(home, running)


def _as_asked(server: Server, lock: Lock, bolt: int | None, http: int | None) -> Server:
    for what, uri, asked in (("Bolt", server.bolt_uri, bolt), ("HTTP", server.http_uri, http)):
        if asked is not None and not uri.endswith(f":{asked}"):
            raise Unavailable(f"Neo4j already runs with {what} at {uri}.", hint="Use it as it is, or stop it first.")
    if server.version != lock.version:
        raise Unavailable(
            f"Neo4j {server.version} already runs in {server.data}.",
            hint="Stop it before another version is started.",
        )
    return server
