"""Owns the one heap of things that become due; nothing here reads a clock."""

from __future__ import annotations

from collections.abc import Callable, Hashable
import heapq
from itertools import count

Call = Callable[[], None]

SLACK = 256


class Deadlines:
    """
    Named deadlines in steady nanoseconds; setting a name again moves it.

    A superseded heap entry stays until it surfaces or most entries are superseded, so setting and
    clearing cost O(log n) and the heap is never much larger than what is due.
    """

    def __init__(self) -> None:
        self._live: dict[Hashable, tuple[int, int, Call]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._order = count()

    def set(self, key: Hashable, at_ns: int, call: Call) -> None:
        """Call ``call`` once, from :meth:`pop_due`, when time reaches ``at_ns``."""
        entry = (at_ns, next(self._order), call)
        self._live[key] = entry
        heapq.heappush(self._heap, (entry[0], entry[1], key))
        if len(self._heap) > 2 * len(self._live) + SLACK:
            self._heap = [(at, order, k) for k, (at, order, _) in self._live.items()]
            heapq.heapify(self._heap)

    def clear(self, key: Hashable) -> None:
        """Forget a deadline; unknown names are fine."""
        self._live.pop(key, None)

    def next_ns(self) -> int | None:
        """Return the earliest deadline, None when there is none."""
        while self._heap:
            at_ns, order, key = self._heap[0]
            live = self._live.get(key)
            if live is not None and live[1] == order:
                return at_ns
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now_ns: int) -> Call | None:
        """Return the earliest call that is due at ``now_ns`` and forget it, or None."""
        at_ns = self.next_ns()
        if at_ns is None or at_ns > now_ns:
            return None
        _, _, key = heapq.heappop(self._heap)
        return self._live.pop(key)[2]

    def __len__(self) -> int:
        return len(self._live)
