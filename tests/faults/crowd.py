"""One of the processes that work on a workspace at once; says in lines of JSON what it was told.

crowd WORKSPACE NAME SECONDS     8 writers and 2 agents that leave, return and replay the decision at once
return WORKSPACE PRINCIPAL       returns with each ticket that it reads from a line
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import anyio.to_thread

import tracegraph
from tracegraph import Item, Receipt, TracegraphError, Workspace

WRITERS, AGENTS = 8, 2
KEYS = 30


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def write(ws: Workspace, name: str, until: float) -> None:
    number = 0
    while anyio.current_time() < until:
        id = f"{name}-{number}"
        if number % 5 == 4:
            done = await ws.revoke(f"{name}-{number - 4}", batch_id=id)
        else:
            receipt = Receipt(uri=f"mail:{id}", text=f"Words of {id}.")
            about = Item(id=id, key=f"k{hash(id) % KEYS}", scope="s", content=f"Words of {id}.", receipts=[receipt])
            done = await ws.record(about, batch_id=id)
        say(batch=id, epoch=done.epoch, digest=done.digest, repeated=done.repeated)
        number += 1


async def leave_and_return(ws: Workspace, principal: str, until: float) -> None:
    while anyio.current_time() < until:
        ticket = await ws.depart(principal=principal, role="r", task="t")
        await anyio.sleep(0.02)
        result = await ws.admit(ticket, principal=principal)
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
