"""What the embedded server asks of the machine: ports, disk space, locks between processes, whole files."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracegraph.errors import Unavailable

HOST = "127.0.0.1"
LOCK_SECONDS = 900.0


def port(asked: int | None, preferred: int, what: str) -> int:
    if asked is not None:
        if not free(asked):
            raise Unavailable(
                f"{what} port {asked} is in use.",
                hint="Free it, choose another, or let a free one be chosen.",
            )
        return asked
    return preferred if free(preferred) else any_port()


def any_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def need_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Unavailable(
            f"Only {free / 1e6:.0f} MB are free at {folder}; {needed / 1e6:.0f} MB are needed.",
            hint="Free some space, or set TRACEGRAPH_HOME (data) or TRACEGRAPH_CACHE (jars) to another disk.",
        )


@contextmanager
def held(path: Path, holder: str) -> Iterator[None]:
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
def faults_of_the_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise Unavailable(
            f"Cannot use {where}: {error.strerror or error}.",
            hint="Check permissions and free space, or set TRACEGRAPH_HOME and TRACEGRAPH_CACHE elsewhere.",
        ) from error


def write(path: Path, text: str) -> None:
    """Whole or not at all, readable by the user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)
