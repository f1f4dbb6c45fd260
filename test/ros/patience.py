"""Owns how tests wait in asyncio: for conditions, never longer than a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
import time
from typing import Any, TypeVar

T = TypeVar('T')

# They only tell a hang: a machine that is busy with others may take long.
WAIT_S = 20.0
RUN_S = 80.0


def run(work: Coroutine[Any, Any, T], timeout_s: float = RUN_S) -> T:
    """Run the asyncio part of a test, bounded."""

    async def bounded() -> T:
        async with asyncio.timeout(timeout_s):
            return await work

    return asyncio.run(bounded())


async def until(
    condition: Callable[[], T], timeout_s: float = WAIT_S, what: str = 'a condition'
) -> T:
    """
    Wait until something outside of the agent is true, and return it.

    :raises AssertionError: it did not become true in time
    """
    ends_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < ends_s, f'{what} did not come true within {timeout_s} s'
        await asyncio.sleep(0.005)
    return found
