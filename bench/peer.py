"""
Owns the robot of the bench: joint states at any rate, action servers that end goals at once.

Efforts carry what is measured: number of the message, steady time of publication, number of the
run. A goal whose point lies at time zero succeeds at once; another one gives feedback first.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
import sys
import threading
import time
from typing import Any

import rclpy
from rclpy.action import ActionServer, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Bool

from bench.ros import (
    ACTION,
    FEEDBACK_TOTAL_MS,
    goal_number,
    JOINTS,
    make_executor,
    SERVERS,
    STATE,
    STATE_QOS,
    TOPICS,
)
from bench.worker import serve

IDLE_HZ = 100.0  # between measurements, on the robot's topic
FEEDBACK_S = 0.125  # the bridge tells progress at 10 Hz: all of these are told
# The list of retained goals goes out with every status: short, or it would be measured too.
RETAIN_S = 0.25
_LATE_PERIODS = 2
_LEAVE_S = 5.0


@dataclass
class Window:
    """
    One stretch of publishing.

    :param run: number that its messages carry; 0 between measurements.
    :ivar count: messages so far.
    """

    topic: str
    rate_hz: float
    run: int
    count: int = 0
    first_ns: int = 0
    last_ns: int = 0


class States(threading.Thread):
    """
    Publishes joint states evenly: what is late by some periods is skipped, not caught up.

    :ivar wanted: the stretch to begin with the next message.
    :ivar current: the stretch that the thread counts its messages in; others are final.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(daemon=True)
        self._publishers = {
            name: node.create_publisher(STATE, topic, STATE_QOS) for name, topic in TOPICS.items()
        }
        zeros = array('d', [0.0] * len(JOINTS))
        self._message = STATE(name=JOINTS, position=zeros, velocity=zeros, effort=zeros)
        self.wanted = self.current = Window('robot', IDLE_HZ, 0)

    def run(self) -> None:
        due_ns = time.monotonic_ns()
        while True:
            window = self.current = self.wanted
            period_ns = int(1e9 / window.rate_hz)
            wait_ns = due_ns - time.monotonic_ns()
            if wait_ns > 0:
                time.sleep(min(wait_ns, period_ns) * 1e-9)
            self._publish(window)
            due_ns += period_ns
            now_ns = time.monotonic_ns()
            if not -_LATE_PERIODS * period_ns < due_ns - now_ns <= period_ns:
                due_ns = now_ns + period_ns

    def _publish(self, window: Window) -> None:
        message = self._message
        now_ns = time.monotonic_ns()
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        row = (float(window.count), float(now_ns), float(window.run), 0.0, 0.0, 0.0, 0.0)
        message.effort = array('d', row)
        self._publishers[window.topic].publish(message)
        window.first_ns = window.first_ns or now_ns
        window.last_ns = now_ns
        window.count += 1


@dataclass
class Goals:
    """One action server and what it noted."""

    node: Node
    name: str
    received_ns: dict[int, int] = field(default_factory=dict)
    feedback_ns: dict[int, int] = field(default_factory=dict)

    def start(self) -> None:
        """Open the server."""
        options: dict[str, Any] = {
            'execute_callback': self._execute,
            'goal_callback': self._on_goal,
            'result_timeout': RETAIN_S,
        }
        self._server: Any = ActionServer(self.node, ACTION, self.name, **options)

    def notes(self) -> dict[str, Any]:
        """Return and forget what was noted: receipts by goal, feedback by its progress in ms."""
        found = {
            'received_ns': list(self.received_ns.items()),
            'feedback_ns': list(self.feedback_ns.items()),
        }
        self.received_ns, self.feedback_ns = {}, {}
        return found

    def _on_goal(self, goal: Any) -> GoalResponse:
        now_ns = time.monotonic_ns()
        self.received_ns[goal_number(goal)] = now_ns
        return GoalResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        point = handle.request.trajectory.points[-1]
        if point.time_from_start.sec:
            # The number of such a goal is the number of feedback messages.
            await self._feed(handle, goal_number(handle.request))
        handle.succeed()
        return ACTION.Result()

    async def _feed(self, handle: Any, count: int) -> None:
        done: Future[None] = Future()
        message = ACTION.Feedback()
        step_ms = 0

        def turn() -> None:
            nonlocal step_ms
            step_ms += 1
            if step_ms > min(count, FEEDBACK_TOTAL_MS):
                timer.cancel()
                done.set_result(None)
                return
            message.desired.time_from_start.nanosec = step_ms * 1_000_000
            self.feedback_ns[step_ms] = time.monotonic_ns()
            handle.publish_feedback(message)

        timer = self.node.create_timer(FEEDBACK_S, turn)
        await done
        self.node.destroy_timer(timer)


class Peer:
    """The node, its thread, and the commands of the bench."""

    def __init__(self) -> None:
        rclpy.init()
        self._node = Node('bench_peer')
        self._stop = self._node.create_publisher(Bool, 'safety/e_stop', 10)
        self._node.create_timer(0.1, lambda: self._stop.publish(Bool(data=False)))
        self._goals = {name: Goals(self._node, server) for name, server in SERVERS.items()}
        for goals in self._goals.values():
            goals.start()
        self._executor = make_executor(self._node)
        self._states = States(self._node)

    def start(self) -> None:
        """Begin to publish and to answer."""
        self._states.start()
        threading.Thread(target=self._spin, daemon=True).start()

    def _spin(self) -> None:
        while True:
            self._executor.spin_once(timeout_sec=1.0)

    def publish(self, topic: str, rate_hz: float, seconds: float, run: int) -> dict[str, float]:
        """Publish at a rate for a while, and return how many messages that were."""
        window = Window(topic, rate_hz, run)
        self._states.wanted = window
        time.sleep(seconds)
        self._states.wanted = Window('robot', IDLE_HZ, 0)
        end = time.monotonic() + _LEAVE_S
        while self._states.current is window:  # one more may be under way
            if time.monotonic() > end:
                raise TimeoutError(f'the publisher did not stop within {_LEAVE_S:g} s')
            time.sleep(0.002)
        span_s = max(1, window.last_ns - window.first_ns) * 1e-9
        return {'count': window.count, 'rate_hz': (window.count - 1) / span_s}

    def notes(self, server: str) -> dict[str, Any]:
        """Return what a server noted since the last time."""
        return self._goals[server].notes()


def main() -> None:
    """Run until the bench closes the pipe."""
    sys.setswitchinterval(0.0002)
    peer = Peer()
    peer.start()
    serve({'publish': peer.publish, 'notes': peer.notes})


if __name__ == '__main__':
    main()
