"""Owns what happens later: calls and sleeps that the motion loop makes due, on its own clock."""

from __future__ import annotations  # Jazzy's classes take no type arguments

from collections.abc import Callable
import heapq
from itertools import count

from rclpy.task import Future


class Delays:
    """A small agenda that one loop serves."""

    def __init__(self) -> None:
        """Begin empty at time zero."""
        self._now_ns = 0
        self._order = count()
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []

    def call_later(self, delay_ms: float, call: Callable[[], None]) -> None:
        """Make a call after a delay; at once where there is none."""
        if delay_ms <= 0.0:
            call()
            return
        due_ns = self._now_ns + round(delay_ms * 1e6)
        heapq.heappush(self._agenda, (due_ns, next(self._order), call))

    async def sleep(self, delay_ms: float) -> None:
        """Wait in a coroutine that an rclpy executor runs."""
        woken: Future[None] = Future()
        self.call_later(delay_ms, lambda: woken.set_result(None))
        await woken

    def run_due(self, now_ns: int) -> None:
        """Make the calls whose time has come."""
        self._now_ns = now_ns
        while self._agenda and self._agenda[0][0] <= now_ns:
            heapq.heappop(self._agenda)[2]()
