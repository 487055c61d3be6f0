"""How long a transaction waits for the server."""

from __future__ import annotations

import asyncio
import time

import anyio
import pytest

from tracegraph.graph import Patience

pytestmark = pytest.mark.anyio


async def test_an_answer_in_the_moment_of_the_deadline_is_no_success_without_a_result() -> None:
    """As after a process stood still: the answer is there, the deadline is over, and the loop sees both at once."""
    loop = asyncio.get_running_loop()
    answer = loop.create_future()
    patience = Patience(0.05)
    reached: list[str] = []

    async def work() -> None:
        time.sleep(0.1)  # noqa: ASYNC251  the whole process stands still
        loop.call_soon(answer.set_result, None)
        await answer
        patience.answered()
        reached.append("the answer")
        await anyio.sleep(1)
        reached.append("the end")

    with pytest.raises(TimeoutError), patience.waiting():
        await work()
    assert reached == ["the answer"]


async def test_each_answer_renews_it() -> None:
    patience = Patience(0.2)
    with patience.waiting():
        for _ in range(4):
            await anyio.sleep(0.1)
            patience.answered()
    with pytest.raises(TimeoutError), patience.waiting():
        await anyio.sleep(5)
