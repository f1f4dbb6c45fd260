"""Owns how long work that is posted to a thread waits there; measured while somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import time

from awp_ros_bridge.ros.diagnosis import Diagnosis, Level
from awp_ros_bridge.ros.plan import MS

SLOW_NS = 100 * MS
LOST_NS = 1_000 * MS

Run = Callable[[], None]


class Latencies:
    """
    Sends one small piece of work to each thread and notes when it ran.

    One piece at a time is under way for a thread, so that a thread that hangs gathers none.

    :param posts: by thread, what hands work to it.
    :param failures: by thread, what went wrong on it, None where nothing did.
    """

    def __init__(
        self,
        posts: Mapping[str, Callable[[Run], None]],
        failures: Mapping[str, Callable[[], str | None]],
    ) -> None:
        self._posts = posts
        self._failures = failures
        self._asked_ns: dict[str, int] = {}
        self._latency_ns: dict[str, int] = {}

    def ask(self) -> None:
        """Send work to every thread that has done what it got before."""
        for name, post in self._posts.items():
            if name not in self._asked_ns:
                self._asked_ns[name] = time.monotonic_ns()
                post(lambda name=name: self._ran(name))  # type: ignore[misc]

    def _ran(self, name: str) -> None:
        """Note that the work ran; called on the thread that is measured."""
        self._latency_ns[name] = time.monotonic_ns() - self._asked_ns.pop(name)

    def diagnosis(self) -> Diagnosis:
        """Say how long work waited on each thread."""
        now_ns = time.monotonic_ns()
        level, troubles = Level.OK, []
        values = {}
        for name in self._posts:
            failure = self._failures.get(name, lambda: None)()
            asked_ns = self._asked_ns.get(name)
            waiting_ns = 0 if asked_ns is None else now_ns - asked_ns
            latency_ns = self._latency_ns.get(name)
            values[f'{name}_ms'] = 'unknown' if latency_ns is None else f'{latency_ns / MS:.2f}'
            if failure is not None:
                level, trouble = Level.ERROR, failure
            elif latency_ns is None or waiting_ns > LOST_NS:
                level, trouble = Level.ERROR, f'{name} has not answered for {waiting_ns // MS} ms'
            elif max(latency_ns, waiting_ns) > SLOW_NS:
                level = max(level, Level.WARN)
                trouble = f'{name} answered after {max(latency_ns, waiting_ns) // MS} ms'
            else:
                continue
            troubles.append(trouble)
        message = '; '.join(troubles) or f'every thread answers within {SLOW_NS // MS} ms'
        return Diagnosis(level, message, values)
