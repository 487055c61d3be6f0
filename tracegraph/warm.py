"""Lets Neo4j plan every query of the return path before anyone waits for it: a cold first admission takes seconds.

`tracegraph up` starts this in the background after a cold start. It plays one small return on a workspace of its own,
a few times, and removes it. Whatever goes wrong here is nobody's loss: the queries are then planned when first used.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tracegraph.errors import TracegraphError

if TYPE_CHECKING:
    from tracegraph.embedded import Server

ROUNDS = 3


def in_background(server: Server) -> None:
    """Warm a server without waiting for it. The password stays in its file."""
    subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "tracegraph.warm", server.bolt_uri, server.username, str(server.password_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


async def warm(uri: str, username: str, password: str) -> None:
    """Play the return path on a scratch workspace."""
    import tempfile
    from pathlib import Path

    import tracegraph
    from tracegraph import Frontier, Item, Obligation, Receipt
    from tracegraph.model import new_id
    from tracegraph.scenarios import forget
    from tracegraph.signing import Keys
    from tracegraph.workspace import open_workspace

    async with tracegraph.connect(uri, username=username, password=password) as graph:
        with tempfile.TemporaryDirectory(prefix="tracegraph-warm-") as folder:
            name = new_id("warm")
            ws = await open_workspace(graph, name, owner="warm", keys=Keys(Path(folder)))
            try:
                await ws.grant(role="r", read=["s"], write=["s"], principal="p")
                for number in range(ROUNDS):
                    owed = Obligation(scope="s", content="-", requires=["d!"], frontier=Frontier(content="-"))
                    source = Item(key="k", scope="s", content="-", receipts=[Receipt(uri="-", text="-")])
                    await ws.record(source)
                    ticket = await ws.depart(principal="p", role="r", task="t")
                    await ws.record(Item(scope="s", content="-", supports=["d"], depends_on=[source.id]))
                    await ws.admit(ticket, principal="p")
                    result = await ws.join(principal="p", role="r", task="t")
                    if result.view is not None:
                        await ws.recall(result.view, principal="p")
                    await ws.why(source.id, result.cycle_id)
                    if number == 0:
                        await ws.open_obligation(owed)
            finally:
                await forget(graph, name)


def main() -> None:
    from pathlib import Path

    import anyio

    uri, username, password_file = sys.argv[1:]
    try:
        anyio.run(warm, uri, username, Path(password_file).read_text(encoding="utf-8").strip())
    except (TracegraphError, OSError):
        sys.exit(1)


if __name__ == "__main__":
    main()
