"""
Owns the safety input ``guardian``: without a living guardian of this bridge nothing may move.

Lives on the safety thread. Like every input it is unsafe until heard, and silence is unsafe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import logging
import threading
import time

from rclpy.node import Node
from std_msgs.msg import String

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.guardian_words import (
    Alive,
    ALIVE_QOS,
    Guarded,
    LOST_NS,
    MS,
    WordsUnreadable,
)
from awp_ros_bridge.ros.runtime import Deadline, NO_EVENTS, RosThread
from awp_ros_bridge.ros.stop import LocalStop
from awp_ros_bridge.ros.told_stops import ToldStops

_LOG = logging.getLogger(__name__)

NAME = 'guardian'
HINT_NS = 3_000 * MS  # a guardian that is started at the same time is there by then
MOST_GUARDIANS = 8

Start = Callable[[], str]


class GuardianInput:
    """
    Forbids motion of every embodiment while no guardian guards this bridge.

    :param instance: name of this run of the bridge, as its beats carry it.
    :ivar told: what the guardian has told of its stops.
    """

    def __init__(
        self, thread: RosThread, stop: LocalStop, embodiments: Iterable[str], instance: str
    ) -> None:
        self._thread = thread
        self._stop = stop
        self._embodiments = tuple(embodiments)
        self._instance = instance
        self.told = ToldStops(instance)
        self._hint = ''
        self._is_over = False
        self._stops: dict[str, int] = {}
        self._said: str | None = None
        self._guardian = ''
        self._heard_ns: int | None = None
        self._needed_seq = 0
        self._unreached: dict[str, frozenset[str]] = {}
        self._deadline: Deadline | None = None
        self._released = threading.Event()

    def start(self, node: Node, topic: str, hint: str) -> None:
        """
        Listen; unsafe until heard. Before the thread starts.

        :param hint: what to do where there is no guardian.
        """
        self._hint = hint
        node.create_subscription(
            String,
            topic,
            self._thread.guard(self._on_message),
            ALIVE_QOS,
            event_callbacks=NO_EVENTS,
            raw=True,
        )
        self._engage(f'no guardian is heard; {hint}')
        self._thread.call_later(HINT_NS, self._say_hint)

    def lapsed(self, silent_ns: int, seq: int) -> None:
        """
        Forbid motion until the guardian has heard a beat that leaves after a silence.

        :param seq: of that beat.
        """
        self._needed_seq = seq
        self._engage(
            f'the bridge was silent for {silent_ns // MS} ms, so the guardian may have stopped '
            f'the robot; waiting for its answer'
        )

    def reaches(self, server: str) -> bool:
        """
        Tell whether the guardian's cancels would arrive at an action server; any thread.

        :param server: full name, remapped.
        """
        known = self._unreached.get(self._guardian)
        return known is not None and server not in known

    def close(self) -> None:
        """Hear nothing any more but the answer to the goodbye; any thread."""
        self._is_over = True

    def is_released(self, timeout_s: float) -> bool:
        """Wait until the guardian has answered the goodbye; any thread but the safety thread."""
        return self._heard_ns is None or self._released.wait(timeout_s)

    def _on_message(self, data: bytes) -> None:
        try:
            alive = Alive.from_bytes(data)
        except WordsUnreadable as error:
            _LOG.debug('the guardian cannot be understood: %s', error)
            return
        guarded = alive.bridges.get(self._instance)
        if self._is_over:
            if alive.guardian == self._guardian and (alive.is_ending or guarded is None):
                self._released.set()
            return
        if alive.is_ending:
            if alive.guardian == self._guardian:
                self._lose(f'the guardian has ended; {self._hint}')
        elif guarded is not None and not guarded.problem:
            self._note_unreached(alive)
            self._on_guarded(alive.guardian, guarded)
            self.told.hear(alive.guardian, alive.stopped)
        elif self._heard_ns is None:  # while another one guards the bridge, this one is no news
            why = guarded.problem if guarded else 'a guardian does not hear this bridge yet'
            self._engage(f'{why}; {self._hint}')

    def _note_unreached(self, alive: Alive) -> None:
        if alive.guardian not in self._unreached and len(self._unreached) >= MOST_GUARDIANS:
            self._unreached = {}
        self._unreached[alive.guardian] = alive.unreached

    def _on_guarded(self, guardian: str, guarded: Guarded) -> None:
        known = self._stops.get(guardian)
        if known is None and len(self._stops) >= MOST_GUARDIANS:
            self._stops.clear()
        self._stops[guardian] = guarded.stops
        if known is not None and guarded.stops > known:
            self._engage('the guardian missed the beats of this bridge and stopped the robot')
            return  # its next answer permits motion
        if guarded.seq < self._needed_seq:
            return
        self._guardian = guardian
        self._heard_ns = time.monotonic_ns()
        if self._said is not None:
            self._release()
        self._arm(self._heard_ns + LOST_NS)

    def _arm(self, due_ns: int) -> None:
        if self._deadline is None or self._deadline.is_cancelled:
            self._deadline = self._thread.call_at(due_ns, self._on_due)

    def _on_due(self) -> None:
        self._deadline = None
        heard_ns, now_ns = self._heard_ns, time.monotonic_ns()
        if heard_ns is None or self._is_over:
            return
        if now_ns < heard_ns + LOST_NS:
            self._arm(heard_ns + LOST_NS)
            return
        silent_ms = (now_ns - heard_ns) // MS
        self._lose(
            f'the guardian was silent for {silent_ms} ms (limit {LOST_NS // MS} ms); {self._hint}'
        )

    def _lose(self, detail: str) -> None:
        self._heard_ns = None
        self._engage(detail)

    def _engage(self, detail: str) -> None:
        if detail != self._said:
            self._said = detail
            for embodiment in self._embodiments:
                self._stop.engage(embodiment, NAME, Meaning.NOT_READY, detail)

    def _release(self) -> None:
        self._said = None
        for embodiment in self._embodiments:
            self._stop.release(embodiment, NAME, Meaning.NOT_READY, 'a guardian guards the bridge')

    def _say_hint(self) -> None:
        if self._heard_ns is None and self._said is not None:
            _LOG.warning('no guardian is heard, so nothing may move; %s', self._hint)
