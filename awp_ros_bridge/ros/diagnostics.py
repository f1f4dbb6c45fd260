"""
Owns ``/diagnostics`` and ``~/sessions``: once a second, while somebody listens; goals thread.

A turn asks the other threads for a sign of life and the bridge's loop for its report, and tells a
little later what came. What did not come is ERROR: a status is good only while it is proven.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import logging
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile

from awp_ros_bridge.ros.diagnosis import Diagnosis, Level, ProcessReport
from awp_ros_bridge.ros.health import Health
from awp_ros_bridge.ros.latency import Latencies
from awp_ros_bridge.ros.part_diagnosis import is_well, session_line, session_values
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread

_LOG = logging.getLogger(__name__)

PERIOD_NS = 1_000 * MS
ANSWER_NS = 100 * MS  # a thread that takes longer is told as slow
REPORT_AGE_NS = 2_500 * MS  # an older report proves nothing
NAMESAKE_NS = 30_000 * MS  # a bridge that was killed stays in the graph for about 20 s

Ask = Callable[[Callable[[ProcessReport], None]], None]


def asks_nobody(take: Callable[[ProcessReport], None]) -> None:
    """Stand in for the bridge's loop where there is none."""


class Diagnostics:
    """
    Publishes what ROS sees of the whole bridge.

    :param ask: has the bridge's loop make its report and hand it over, on its own thread.
    :param others: the threads whose latency is told, beside the loop.
    :param hardware_id: name of the world.
    """

    def __init__(
        self, thread: RosThread, ask: Ask, others: tuple[RosThread, ...], hardware_id: str
    ) -> None:
        self._thread = thread
        self._ask = ask
        self._hardware_id = hardware_id
        self._latencies = Latencies(
            {**{each.name: each.post for each in others}, 'loop': self._ask_loop},
            {each.name: partial(getattr, each, 'failure') for each in others},
        )
        self._report: ProcessReport | None = None
        self._report_ns = 0
        self._node: Node | None = None
        self._health: Health | None = None
        self._all: Any = None
        self._sessions: Any = None
        self._prefix = ''
        self._alone_ns = time.monotonic_ns()
        self._has_namesake = False

    def start(self, node: Node, health: Health) -> None:
        """Create the publishers on the main node; before its thread starts."""
        self._node, self._health = node, health
        self._prefix = node.get_fully_qualified_name().lstrip('/')
        events = PublisherEventCallbacks(use_default_callbacks=False)
        self._all = node.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=1), event_callbacks=events
        )
        self._sessions = node.create_publisher(
            DiagnosticArray, '~/sessions', QoSProfile(depth=1), event_callbacks=events
        )
        self._thread.every(PERIOD_NS, self._turn)

    @property
    def _is_heard(self) -> bool:
        return bool(
            self._all.get_subscription_count() or self._sessions.get_subscription_count()
        )

    def _turn(self) -> None:
        self._look_for_namesake()
        if self._is_heard:
            self._latencies.ask()
            self._thread.call_later(ANSWER_NS, self._tell_or_say_why_not)

    def _ask_loop(self, ran: Callable[[], None]) -> None:
        def take(report: ProcessReport) -> None:
            ran()
            self._thread.post(self._take, report)

        self._ask(take)

    def _take(self, report: ProcessReport) -> None:
        self._report, self._report_ns = report, time.monotonic_ns()

    def _look_for_namesake(self) -> None:
        """Two nodes of one name share their services: whoever calls reaches either of them."""
        assert self._node is not None
        now_ns = time.monotonic_ns()
        if self._node.count_publishers(self._sessions.topic_name) <= 1:
            self._alone_ns = now_ns
        found = now_ns - self._alone_ns > NAMESAKE_NS
        if found and not self._has_namesake:
            _LOG.error('%s', self._namesake)
        self._has_namesake = found

    @property
    def _namesake(self) -> str:
        return (
            f'another node is called /{self._prefix} too, calls of its services may reach either; '
            f'start one with -r __node:=<name> or -r __ns:=<namespace>'
        )

    def _tell_or_say_why_not(self) -> None:
        """Tell; a diagnosis that cannot be made must not stop the robot, as faults here do."""
        try:
            self._tell()
        except Exception:  # noqa: BLE001 it is logged, and seen by the silence of the topic
            _LOG.exception('diagnostics cannot be told')

    def _tell(self) -> None:
        assert self._node is not None
        assert self._health is not None
        is_old = time.monotonic_ns() - self._report_ns > REPORT_AGE_NS
        report = None if is_old else self._report
        stamp = self._node.get_clock().now().to_msg()
        if self._all.get_subscription_count():
            message = DiagnosticArray()
            message.header.stamp = stamp
            message.status = [
                diagnosis.to_message(f'{self._prefix}: {name}', self._hardware_id)
                for name, diagnosis in self._named(report)
            ]
            self._all.publish(message)
        if report is not None and self._sessions.get_subscription_count():
            message = DiagnosticArray()
            message.header.stamp = stamp
            for each in report.sessions:
                level = Level.OK if is_well(each) else Level.WARN
                diagnosis = Diagnosis(level, session_line(each), session_values(each))
                held = ', '.join(each.embodiments)
                message.status.append(diagnosis.to_message(each.session_id, held))
            self._sessions.publish(message)

    def _named(self, report: ProcessReport | None) -> Any:
        assert self._health is not None
        if self._has_namesake:
            yield 'name', Diagnosis(Level.ERROR, self._namesake)
        else:
            yield 'name', Diagnosis(Level.OK, f'/{self._prefix} is the only one of its name')
        yield from self._health.all(report)
        yield 'executors', self._latencies.diagnosis()
