"""
Owns the beats of the bridge: the proof that loop, goals thread and safety thread turn.

The loop publishes a beat with the age of the older of the two threads' last turns, from which the
guardian counts its lease: one of the three that hangs ends it. While goals are under way a thread
without work is woken for that; while there are none, its own turns are enough. To hand each beat
from thread to thread would cost about twice as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import logging
import threading
import time
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from awp_ros_bridge.ros.guardian_words import (
    Beat,
    BEAT_QOS,
    GuardedGoal,
    Kind,
    MS,
    NOTICE_QOS,
)
from awp_ros_bridge.ros.live_goals import LiveGoal, Stage
from awp_ros_bridge.ros.runtime import LONGEST_WAIT_NS, RosThread

_LOG = logging.getLogger(__name__)

TURN_NS = 60 * MS  # a thread that has not turned for longer than a beat is woken
IDLE_TURN_NS = 2 * LONGEST_WAIT_NS  # one that has nothing to do turns this often by itself
GOODBYE_NS = 300 * MS  # what the answer to the last word may take
UNANSWERED_S = 0.05

Goals = Callable[[], Iterable[LiveGoal]]


class GuardianBeats:
    """
    Says which goals are under way, and that this process lives.

    :param instance: name of this run of the bridge.
    :param goals: every goal that the robot may be pursuing; called on any thread.
    :param on_lapse: told on the safety thread, before beats go on, that the last one is too long
        ago: silence in ns, number of the next beat.
    """

    def __init__(
        self,
        safety_thread: RosThread,
        goals_thread: RosThread,
        instance: str,
        goals: Goals,
        lease_ns: int,
        on_lapse: Callable[[int, int], None],
    ) -> None:
        self._safety_thread = safety_thread
        self._threads = (safety_thread, goals_thread)
        self._instance = instance
        self._goals = goals
        self._lease_ns = lease_ns
        self._on_lapse = on_lapse
        self._publisher: Any = None
        self._notices: Any = None
        self._can_speak: Callable[[], bool] = lambda: False
        self._names: Mapping[str, str] = {}
        self._digest = ''
        self._lock = threading.Lock()
        self._seq = 0
        self._sent_ns: int | None = None
        self._has_lapsed = False
        self._is_over = False

    def start(
        self, node: Node, topics: tuple[str, str], names: Mapping[str, str], digest: str
    ) -> None:
        """
        Create the publishers; before the threads start.

        :param topics: of beats, and of what is said once.
        :param names: full name of each server of the configuration.
        """
        self._names = names
        self._digest = digest
        beats, notices = topics
        self._notices = node.create_publisher(String, notices, NOTICE_QOS)
        self._publisher = node.create_publisher(String, beats, BEAT_QOS)
        self._can_speak = node.context.ok

    def beat(self, now_ns: int) -> None:
        """Say that all three threads turn, where somebody listens; the loop's thread."""
        if self._publisher is None or self._is_over:
            return
        before_ns = self._sent_ns
        if before_ns is not None and now_ns - before_ns > self._lease_ns:
            if not self._has_lapsed:
                self._has_lapsed = True
                self._safety_thread.post(self._lapse, now_ns - before_ns)
            return
        if self._lock.acquire(blocking=False):
            try:
                self._beat(now_ns)
            finally:
                self._lock.release()

    def _beat(self, now_ns: int) -> None:
        if self._is_over:
            return
        if not self._publisher.get_subscription_count():
            self._sent_ns = now_ns
            return
        goals = list(self._goals())
        age_ns = max(self._age_ns(thread, now_ns, bool(goals)) for thread in self._threads)
        if age_ns < self._lease_ns:
            self._publish(Kind.BEAT, goals, age_ns)
            self._sent_ns = now_ns

    def late(self) -> str | None:
        """Return why the guardian may have stopped the robot already, None while beats leave."""
        sent_ns = self._sent_ns
        if sent_ns is None or self._is_over:
            return None
        silent_ns = time.monotonic_ns() - sent_ns
        if silent_ns <= self._lease_ns:
            return None
        return _lapsed(silent_ns, self._lease_ns)

    def announce(self) -> None:
        """Say which goals are under way, before a new one is handed to ROS; any thread."""
        for thread in self._threads:
            if not thread.is_current:
                thread.post(_turn)
        with self._lock:
            self._publish(Kind.GOALS, self._goals())

    def goodbye(self, is_taken: Callable[[float], bool] | None = None) -> None:
        """
        Say that there is nothing left to guard, and wait shortly until that arrived.

        The guardian's answer tells: acknowledgements come with a heartbeat of the middleware,
        seconds later, and rclpy's wait for them lets no thread of Python run.

        :param is_taken: waits for the answer so many seconds at most; None where none will come.
        """
        with self._lock:
            self._publish(Kind.GOODBYE)
            self._is_over = True
        if self._notices is None or not self._can_speak():
            return
        if is_taken is None:
            if self._notices.get_subscription_count():
                time.sleep(UNANSWERED_S)  # what shares memory with us reads it before it is gone
        elif not is_taken(GOODBYE_NS * 1e-9):
            _LOG.warning('the guardian did not answer the goodbye within %d ms', GOODBYE_NS // MS)

    def close(self) -> None:
        """Say nothing any more."""
        with self._lock:
            self._is_over = True

    def _lapse(self, silent_ns: int) -> None:
        self._on_lapse(silent_ns, self._seq + 1)
        self._sent_ns = time.monotonic_ns()
        self._has_lapsed = False

    @staticmethod
    def _age_ns(thread: RosThread, now_ns: int, is_busy: bool) -> int:
        """Return how long ago a thread turned, and wake one that has nothing to do."""
        age_ns = now_ns - thread.last_turn_ns
        if not is_busy and age_ns < IDLE_TURN_NS:
            return 0
        if age_ns > TURN_NS:
            thread.post(_turn)
        return age_ns

    def _publish(self, kind: Kind, goals: Iterable[LiveGoal] = (), age_ns: int = 0) -> None:
        if self._publisher is None or self._is_over or not self._can_speak():
            return  # a context that was shut down elsewhere takes nothing: silence says it
        guarded = tuple(
            GuardedGoal(
                goal.goal_id,
                self._names.get(goal.server, goal.server),
                goal.stage is Stage.ACCEPTED,
            )
            for goal in goals
        )
        self._seq += 1
        beat = Beat(self._instance, self._seq, kind, self._digest, age_ns // MS, guarded)
        publisher = self._publisher if kind is Kind.BEAT else self._notices
        publisher.publish(beat.to_bytes())


def _turn() -> None:
    """Do nothing: that a thread comes to it is what counts."""


def _lapsed(silent_ns: int, lease_ns: int) -> str:
    return (
        f'the bridge was silent for {silent_ns // MS} ms (limit {lease_ns // MS} ms), '
        f'so the guardian may have stopped the robot'
    )
