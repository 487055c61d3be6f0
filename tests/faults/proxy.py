"""A TCP proxy on loopback that delays, freezes, cuts, or loses the answer to a commit."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

COMMIT = bytes.fromhex("0002 b012 0000")
"""Bolt's COMMIT message, whole: its length, a structure of no fields with the tag 0x12, and the end mark."""


READS = bytes.fromhex("84") + b"mode" + bytes.fromhex("81") + b"r"
"""What a BEGIN says of a transaction that only reads."""
BEGIN = bytes.fromhex("b111")


class Proxy:
    """Stands before a server. Connections see a change of these at once:

    delay       seconds that each piece of data waits, either way
    frozen      nothing goes through, and nothing is refused: an unplugged cable
    lost        of so many commits to come the server gets to know, and the client doesn't hear what came of them
    swallowed   so many commits to come are cut off before the server gets to know
    reads       whether the two count the ends of transactions that read, and not of those that write
    cut         bytes that a connection gets from the server before it is cut
    """

    def __init__(self, uri: str) -> None:
        self._host, _, port = uri.rpartition("//")[2].rpartition(":")
        self._port = int(port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.uri = ""
        self.delay = 0.0
        self.lost = 0
        self.swallowed = 0
        self.reads = False
        self.commits = 0
        self.cut: int | None = None

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        await self.away()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def listen(self) -> None:
        """Take connections, at the same port each time."""
        port = int(self.uri.rpartition(":")[2]) if self.uri else 0
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.uri = f"bolt://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def away(self) -> None:
        """Refuse connections, and end those there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.sever()

    def sever(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def freeze(self) -> None:
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        beyond: asyncio.StreamWriter | None = None
        try:
            answers, beyond = await asyncio.open_connection(self._host, self._port)
            self._writers.add(beyond)
            lose = asyncio.Event()
            await asyncio.gather(self._ask(reader, beyond, lose), self._answer(answers, writer, lose))
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            for one in (writer, beyond):
                if one is not None:
                    self._writers.discard(one)
                    with suppress(OSError):
                        one.transport.abort()
            self._tasks.discard(task)

    async def _ask(self, reader: asyncio.StreamReader, beyond: asyncio.StreamWriter, lose: asyncio.Event) -> None:
        reads = False
        while data := await reader.read(65536):
            await asyncio.sleep(self.delay)
            await self._open.wait()
            if BEGIN in data:
                reads = READS in data
            if data.endswith(COMMIT) and reads == self.reads:
                self.commits += 1
                if self.swallowed:
                    self.swallowed -= 1
                    raise EOFError
                if self.lost:
                    self.lost -= 1
                    lose.set()
            beyond.write(data)
            await beyond.drain()
        raise EOFError

    async def _answer(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter, lose: asyncio.Event) -> None:
        left = self.cut
        while data := await answers.read(65536):
            await asyncio.sleep(self.delay)
            await self._open.wait()
            if lose.is_set():
                raise EOFError
            if left is not None:
                data, left = data[:left], left - len(data)
            writer.write(data)
            await writer.drain()
            if left is not None and left <= 0:
                raise EOFError
        raise EOFError
