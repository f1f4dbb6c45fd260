"""Owns the dead-man timer: without beats of the bridge loop, the safety thread stops the robot."""

from __future__ import annotations

from collections.abc import Iterable
import logging
import time

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop import LocalStop

_LOG = logging.getLogger(__name__)

LEASE_NS = 250 * MS  # the stop command must leave within 350 ms of the last beat
NAME = 'bridge:loop'


class DeadMan:
    """Counts from the first beat on; one that comes late lets motion be asked for again."""

    def __init__(
        self,
        thread: RosThread,
        stop: LocalStop,
        embodiments: Iterable[str],
        lease_ns: int = LEASE_NS,
    ) -> None:
        self._thread = thread
        self._stop = stop
        self._embodiments = tuple(embodiments)
        self._lease_ns = lease_ns
        self._beat_ns: int | None = None
        self._is_tripped = False

    def beat(self, now_ns: int) -> None:
        """Note a beat; any thread, nothing but a store."""
        self._beat_ns = now_ns

    def start(self) -> None:
        """Begin to look; before the safety thread starts."""
        self._thread.call_later(self._lease_ns, self._look)

    def _look(self) -> None:
        now_ns = time.monotonic_ns()
        beat_ns = self._beat_ns
        due_ns = now_ns if beat_ns is None else beat_ns
        is_silent = now_ns - due_ns >= self._lease_ns
        if is_silent and not self._is_tripped:
            self._trip(now_ns - due_ns)
        elif self._is_tripped and not is_silent:
            self._is_tripped = False
            for embodiment in self._embodiments:
                self._stop.release(embodiment, NAME, Meaning.NOT_READY, 'the bridge loop turns')
        # once tripped, a returning beat is looked for more often
        wait_ns = self._lease_ns // 5 if is_silent else due_ns + self._lease_ns - now_ns
        self._thread.call_later(wait_ns, self._look)

    def _trip(self, silent_ns: int) -> None:
        self._is_tripped = True
        detail = (
            f'the bridge loop was silent for {silent_ns // MS} ms '
            f'(limit {self._lease_ns // MS} ms)'
        )
        _LOG.error('%s: stopping the robot', detail)
        for embodiment in self._embodiments:
            self._stop.engage(embodiment, NAME, Meaning.NOT_READY, detail)
