"""One of the processes that work on a workspace at once; says in lines of JSON what it was told.

crowd WORKSPACE NAME SECONDS     8 writers and 2 agents that leave, return and replay the decision at once
return WORKSPACE PRINCIPAL       returns with each ticket that it reads from a line
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.to_thread

import tracegraph
from tracegraph import Item, Receipt, TracegraphError, Workspace
from tracegraph.model import Committed

WRITERS, AGENTS = 8, 2
KEYS = 30


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def told(call: Callable[[], Awaitable[Any]]) -> Any:
    """What came of it; None, said too, when a machine with other work was too slow to tell."""
    try:
        return await call()
    except TracegraphError as error:
        if error.code != "unavailable":
            raise
        say(unsure=True)
        return None


async def write(ws: Workspace, name: str, until: float) -> None:
    number = 0
    while anyio.current_time() < until:
        id = f"{name}-{number}"
        receipt = Receipt(uri=f"mail:{id}", text=f"Words of {id}.")
        about = Item(id=id, key=f"k{number % KEYS}", scope="s", content=f"Words of {id}.", receipts=[receipt])
        earlier = f"{name}-{number - 4}"

        async def act(id: str = id, number: int = number, about: Item = about, earlier: str = earlier) -> Committed:
            if number % 5 == 4:
                return await ws.revoke(earlier, batch_id=id)
            return await ws.record(about, batch_id=id)

        unsure = False
        while (done := await told(act)) is None:
            unsure = True
        say(batch=id, epoch=done.epoch, digest=done.digest, repeated=done.repeated and not unsure)
        number += 1


async def leave_and_return(ws: Workspace, principal: str, until: float) -> None:
    while anyio.current_time() < until:
        ticket = await told(lambda: ws.depart(principal=principal, role="r", task="t"))
        if ticket is None:
            continue
        await anyio.sleep(0.02)
        result = await told(lambda ticket=ticket: ws.admit(ticket, principal=principal))  # type: ignore[misc]
        if result is None:
            continue
        again = await ws.replay(result.cycle_id)
        say(cycle=result.cycle_id, decision=result.decision, items=len(result.items), equal=again.equal)


async def crowd(id: str, name: str, seconds: float) -> None:
    async with tracegraph.connect() as graph:
        ws = await graph.workspace(id)
        until = anyio.current_time() + seconds
        async with anyio.create_task_group() as group:
            for number in range(WRITERS):
                group.start_soon(write, ws, f"{name}{number}", until)
            for number in range(AGENTS):
                group.start_soon(leave_and_return, ws, f"agent-{name}{number}", until)


async def return_(id: str, principal: str) -> None:
    async with tracegraph.connect() as graph:
        ws = await graph.workspace(id)
        say(ready=True)
        while ticket := (await anyio.to_thread.run_sync(sys.stdin.readline)).strip():
            try:
                say(outcome=(await ws.admit(ticket, principal=principal)).decision)
            except TracegraphError as error:
                say(outcome=error.code)


if __name__ == "__main__":
    if sys.argv[1] == "crowd":
        anyio.run(crowd, sys.argv[2], sys.argv[3], float(sys.argv[4]))
    else:
        anyio.run(return_, sys.argv[2], sys.argv[3])
