"""Servers on loopback that are not a Neo4j to work with: silent, rude, of another protocol, too old."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[str]:
    """The address of a server that talks so to every connection."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, EOFError, asyncio.CancelledError):
            await talk(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    try:
        yield f"bolt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def says(*answers: bytes) -> Talk:
    """Gives one answer to each piece of data, and then ends the connection; b"" waits for ever."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.read(65536)
            if not answer:
                await asyncio.sleep(3600)
            writer.write(answer)
            await writer.drain()

    return talk


def bolt(agent: str, version: tuple[int, int] = (5, 0)) -> Talk:
    """A server that greets by this name, and then agrees to everything."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(20)
        writer.write(bytes((0, 0, version[1], version[0])))
        while True:
            while size := int.from_bytes(await reader.readexactly(2), "big"):
                await reader.readexactly(size)
            writer.write(_success({"server": agent, "connection_id": "bolt-1"}))
            await writer.drain()

    return talk


def _success(metadata: dict[str, str]) -> bytes:
    """Bolt's SUCCESS, as one chunk."""
    words = b"".join(_text(word) for pair in metadata.items() for word in pair)
    message = bytes((0xB1, 0x70, 0xA0 + len(metadata))) + words
    return len(message).to_bytes(2, "big") + message + b"\0\0"


def _text(word: str) -> bytes:
    data = word.encode()
    return bytes((0xD0, len(data))) + data
