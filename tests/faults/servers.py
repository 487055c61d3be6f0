"""A server of a test's own, at ports that stay the same, which may be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio.to_thread
import psutil

import tracegraph
from tracegraph import Graph, embedded
from tracegraph.embedded.machine import any_port
from tracegraph.errors import Unavailable


class Own:
    """Blocking work is done in a thread: clients in this process go on meanwhile."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._bolt, self._http = any_port(), any_port()
        self.uri = f"bolt://127.0.0.1:{self._bolt}"
        self.pid = 0

    async def start(self) -> None:
        server = await anyio.to_thread.run_sync(
            lambda: embedded.start(data=self.home, bolt_port=self._bolt, http_port=self._http, progress=False)
        )
        self.pid = server.pid

    async def stop(self) -> None:
        await anyio.to_thread.run_sync(embedded.stop, self.home)

    async def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        await anyio.to_thread.run_sync(psutil.wait_procs, [psutil.Process(self.pid)], 30)

    async def kill_while_it_starts(self, after: float) -> bool:
        """Start it and kill it `after` so many seconds, unless it was ready before; says whether it was killed."""
        killed = False

        async def shoot() -> None:
            nonlocal killed
            old, deadline = self.pid, time.monotonic() + 60
            while time.monotonic() < deadline:
                with suppress(OSError, ValueError):
                    pid = int(json.loads((self.home / "server.json").read_text())["pid"])
                    if pid != old:
                        await anyio.sleep(after)
                        os.kill(pid, signal.SIGKILL)
                        killed = True
                        return
                await anyio.sleep(0.02)

        async with anyio.create_task_group() as group:
            group.start_soon(shoot)
            with suppress(Unavailable):  # what it says of a server that ended while it started
                await self.start()
            group.cancel_scope.cancel()
        return killed

    @property
    def password(self) -> str:
        return (self.home / "password").read_text().strip()

    @asynccontextmanager
    async def connect(self, *, patience: float = 60.0, uri: str | None = None) -> AsyncIterator[Graph]:
        async with tracegraph.connect(
            uri or self.uri, username="neo4j", password=self.password, patience=patience
        ) as graph:
            yield graph
