"""The pinned jars of Neo4j: one lock file per release, fetched once, checked before every start.

Must never put a jar on the class path whose sha256 is not the lock's.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from tracegraph.embedded.machine import faults_of_the_disk, held, need_space
from tracegraph.errors import Unavailable

DEFAULT_VERSION = "2026.09.0"
TRIES = 5
PAUSE = 0.25  # seconds, doubled before each further try
SPARE = 250_000_000  # bytes to leave free beyond the download


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


def jar_dir() -> Path:
    """Where the jars are kept, for all data directories together."""
    if cache := os.environ.get("TRACEGRAPH_CACHE"):
        return Path(cache).expanduser().resolve() / "jars"
    if os.environ.get("TRACEGRAPH_HOME"):
        return home_dir() / "cache" / "jars"
    import platformdirs

    return platformdirs.user_cache_path("tracegraph") / "jars"


def home_dir() -> Path:
    """Below which each release line has its data directory."""
    if home := os.environ.get("TRACEGRAPH_HOME"):
        return Path(home).expanduser().resolve()
    import platformdirs

    return platformdirs.user_data_path("tracegraph")


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
                    url = mirror.findtext("{*}url")
                    if url:
                        return url.strip().rstrip("/")
    from jgo.constants import MAVEN_CENTRAL_URL

    return str(MAVEN_CENTRAL_URL)


def fetch(lock: Lock, progress: bool | None = None) -> str:
    """The class path, after checking every jar against the lock; what is missing is downloaded first.

    A jar that is there with a wrong hash is an error, never replaced in silence.
    """
    folder = jar_dir()
    with faults_of_the_disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        missing = missing_jars(lock, folder)
        if missing:
            with held(folder / "fetch.lock", "another process that is downloading Neo4j"):
                missing = [jar for jar in missing if not (folder / jar.path).exists()]
                if missing:
                    need_space(folder, sum(jar.size for jar in missing) + SPARE)
                    _download(lock.version, missing, folder, progress)
            if missing_jars(lock, folder):
                raise Unavailable(f"Jars vanished from {folder} while they were fetched.", hint="Start again.")
    return os.pathsep.join(str(folder / jar.path) for jar in lock.jars)


def missing_jars(lock: Lock, folder: Path) -> list[Jar]:
    """Those of the lock's jars that are not there; `unavailable` when one that is there has another hash."""

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
    import ssl
    import urllib.error

    target = folder / jar.path
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    url, fault = f"{base}/{jar.path}", "nothing arrived"
    for attempt in range(TRIES):
        if attempt:
            stopping.wait(PAUSE * 2**attempt)
        if stopping.is_set():
            return
        try:
            _receive(url, part, jar.size, advance, stopping)
            if (have := part.stat().st_size) < jar.size:
                fault = f"it broke off at {have} of {jar.size} bytes"
                continue
            with part.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256:
                    part.replace(target)
                    return
            part.unlink()
            fault = "its sha256 is not the pinned one"
        except urllib.error.HTTPError as error:
            fault = f"HTTP {error.code}"
            if error.code == 416:
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                break
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            ssl.SSLError,
            TimeoutError,
            ConnectionError,
        ) as error:
            fault = str(getattr(error, "reason", error)) or type(error).__name__
    raise Unavailable(
        f"Could not download {url}: {fault}.",
        hint="Neo4j's jars are fetched once, at the first start. Check the network, HTTPS_PROXY and "
        "SSL_CERT_FILE, or set TRACEGRAPH_MAVEN to a Maven repository within reach; what arrived is kept.",
    )


def _receive(url: str, part: Path, size: int, advance: Callable[[int], None], stopping: Event) -> None:
    """One request, for what `part` lacks; a server that ignores Range sends all of it again."""
    import urllib.request

    have = part.stat().st_size if part.exists() else 0
    if have >= size:
        return
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        resumed = answer.status == 206
        with part.open("ab" if resumed else "wb") as file:
            while not stopping.is_set() and file.tell() <= size and (chunk := answer.read(1 << 16)):
                file.write(chunk)
                advance(len(chunk))


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
