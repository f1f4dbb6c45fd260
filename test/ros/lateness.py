"""Owns what a busy machine takes from a test: how long its threads were kept from running."""

from __future__ import annotations

import threading
import time
from typing import Self

_PERIOD_NS = 5_000_000
_STOOD_NS = 50_000_000
_USUAL_NS = 1_000_000  # what a sleep takes longer on a machine that is free


class Lateness:
    """
    A thread of this process that sleeps a little again and again, and notes when it woke late.

    Limits on time are those that were promised plus what it lost meanwhile, which is nothing on a
    machine that is free.
    """

    def __init__(self) -> None:
        """Begin with nothing lost."""
        self._lost: list[tuple[int, int]] = []
        self._slept_ns = time.monotonic_ns()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name='lateness', daemon=True)

    def __enter__(self) -> Self:
        """Begin to sleep."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread."""
        self._is_over.set()
        self._thread.join()

    def since(self, began_ns: int) -> int:
        """Return how many nanoseconds were lost since some steady time."""
        now_ns = time.monotonic_ns()
        lost_ns = sum(lost for at_ns, lost in list(self._lost) if at_ns >= began_ns)
        return lost_ns + max(0, now_ns - self._slept_ns - _PERIOD_NS - _USUAL_NS)

    def stood_since(self, began_ns: int) -> bool:
        """Tell whether a thread stood so long at once that a dead-man timer may have struck."""
        lost = [lost_ns for at_ns, lost_ns in list(self._lost) if at_ns >= began_ns]
        return max(lost, default=0) >= _STOOD_NS

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._slept_ns = time.monotonic_ns()
            time.sleep(_PERIOD_NS * 1e-9)
            now_ns = time.monotonic_ns()
            lost_ns = now_ns - self._slept_ns - _PERIOD_NS
            if lost_ns > _USUAL_NS:
                self._lost.append((now_ns, lost_ns))
