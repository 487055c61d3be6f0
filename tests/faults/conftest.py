"""One server of these tests' own, which they may kill: the run's server is never touched."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.faults.proxy import Proxy
from tests.faults.servers import Own
from tracegraph.embedded import process


@pytest.fixture(scope="package")
async def own(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Own]:
    """Begins with an empty store; what a test leaves is there for the next."""
    made = Own(tmp_path_factory.mktemp("own") / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "JVM", (*process.JVM, *process.BRIEF))  # it never gets old
        try:
            await made.start()
            yield made
        finally:
            await made.stop()


@pytest.fixture
async def proxy(neo4j: dict[str, str]) -> AsyncIterator[Proxy]:
    """Stands between a test and the run's server."""
    async with Proxy(neo4j["NEO4J_URI"]) as made:
        yield made
