"""Owns the ROS floors: an action client and a subscription in plain rclpy, nothing around them."""

from __future__ import annotations

import sys
import time
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from bench.ros import (
    ACTION,
    make_executor,
    make_goal,
    read_efforts,
    SERVERS,
    spin_for,
    STATE,
    STATE_QOS,
    TOPICS,
)
from bench.worker import serve, tell

_WAIT_S = 10.0


class Floors:
    """
    A node that calls and a node that listens.

    Each spins in the executor that is better at it: the default one has the quicker round trip,
    the one of events the cheaper subscription.
    """

    def __init__(self) -> None:
        rclpy.init()
        caller = Node('bench_caller')
        self._caller = SingleThreadedExecutor()
        self._caller.add_node(caller)
        self._client: Any = ActionClient(caller, ACTION, SERVERS['floor'])
        self._node = Node('bench_listener')
        self._executor = make_executor(self._node)

    def _done(self, future: Any) -> Any:
        self._caller.spin_until_future_complete(future, _WAIT_S)
        if not future.done():
            raise TimeoutError(f'no answer of the action server within {_WAIT_S:g} s')
        return future.result()

    def action(self, count: int, pause_s: float) -> list[list[int]]:
        """Send goals one after the other: number, and steady ns of sent, accepted, result."""
        if not self._client.wait_for_server(_WAIT_S):
            raise TimeoutError(f'no action server within {_WAIT_S:g} s')
        rows = []
        for number in range(1, count + 1):
            goal = make_goal(number, feedback=False)
            sent_ns = time.monotonic_ns()
            handle = self._done(self._client.send_goal_async(goal))
            accepted_ns = time.monotonic_ns()
            if not handle.accepted:
                raise RuntimeError('the bench server refused a goal')
            self._done(handle.get_result_async())
            rows.append([number, sent_ns, accepted_ns, time.monotonic_ns()])
            # Not asleep: what a goal leaves behind would be handled at the cost of the next one.
            spin_for(self._caller, pause_s)
        return rows

    def feedback(self, count: int) -> list[list[int]]:
        """Send a goal that gives feedback: progress in ms, and steady ns of its arrival."""
        rows: list[list[int]] = []

        def heard(message: Any) -> None:
            now_ns = time.monotonic_ns()
            step = message.feedback.desired.time_from_start.nanosec // 1_000_000
            rows.append([step, now_ns])

        goal = make_goal(count, feedback=True)
        handle = self._done(self._client.send_goal_async(goal, feedback_callback=heard))
        self._done(handle.get_result_async())
        return rows

    def subscribe(self, seconds: float, run: int) -> dict[str, Any]:
        """Hear the floor topic for a while; latencies in us from publication to callback."""
        heard: list[tuple[int, bytes]] = []

        def hear(raw: bytes) -> None:
            heard.append((time.monotonic_ns(), raw))

        subscription = self._node.create_subscription(
            STATE,
            TOPICS['floor'],
            hear,
            STATE_QOS,
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
        )
        end = time.monotonic() + _WAIT_S
        while not subscription.get_publisher_count():
            spin_for(self._executor, 0.05)
            if time.monotonic() > end:
                raise TimeoutError(f'no publisher within {_WAIT_S:g} s')
        tell('ready')
        spin_for(self._executor, seconds)
        self._node.destroy_subscription(subscription)
        spin_for(self._executor, 0.05)
        return _summary(heard, run)


def _summary(heard: list[tuple[int, bytes]], run: int) -> dict[str, Any]:
    latencies: dict[int, int] = {}
    for at_ns, raw in heard:
        number, published_ns, of_run, *_ = read_efforts(raw)
        if int(of_run) == run:
            latencies[int(number)] = (at_ns - int(published_ns)) // 1000
    return {'count': len(latencies), 'latency_us': list(latencies.values())}


def main() -> None:
    """Run until the bench closes the pipe."""
    sys.setswitchinterval(0.0002)
    floors = Floors()
    serve({'action': floors.action, 'feedback': floors.feedback, 'subscribe': floors.subscribe})


if __name__ == '__main__':
    main()
