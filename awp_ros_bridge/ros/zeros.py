"""Owns the zeros on setpoint topics: publishers made in advance, sent for a time at a rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import logging
import time
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy

from awp_ros_bridge.config import PublishZeros
from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread

_LOG = logging.getLogger(__name__)

_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)  # heard by every reader
_NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)

Ended = Callable[[bool, str], None]


@dataclass(slots=True, eq=False)
class _Stream:
    ends_ns: int
    sent: int
    on_end: Ended


class ZeroTopic:
    """
    One setpoint topic; used on the thread of its node only.

    :raises ValueError: the message type is not installed
    """

    def __init__(self, node: Node, thread: RosThread, step: PublishZeros) -> None:
        self.step = step
        self._node = node
        self._thread = thread
        self._type = load_interface(step.type)
        self._message = self._zeros()
        self._publisher: Publisher[Any] = node.create_publisher(
            self._type, step.topic, _QOS, event_callbacks=_NO_EVENTS
        )
        self._period_ns = round(1e9 / step.rate_hz)
        self._streams: list[_Stream] = []

    @property
    def is_sending(self) -> bool:
        """Tell whether zeros are under way."""
        return bool(self._streams)

    def begin(self, on_end: Ended) -> None:
        """
        Send the first zero now and go on for the configured time.

        What runs already goes on until both have had their time.

        :param on_end: called once with whether somebody listened, and what to report.
        """
        was_sending = self.is_sending
        ends_ns = time.monotonic_ns() + self.step.for_ms * MS
        self._streams.append(_Stream(ends_ns, 0, on_end))
        self._send()
        if not was_sending:
            self._thread.call_later(self._period_ns, self._turn)

    def missing(self) -> str | None:
        """Return why zeros would not arrive, None when somebody listens to them; any thread."""
        if self._publisher.get_subscription_count():
            return None
        others = {
            info.topic_type
            for info in self._node.get_subscriptions_info_by_topic(self._publisher.topic_name)
        }
        others.discard(self.step.type)
        if others:
            found = ', '.join(sorted(others))
            return f'{self.step.topic} is {found} there, the configuration says {self.step.type}'
        return f'nobody listens on {self.step.topic}'

    def _turn(self) -> None:
        now_ns = time.monotonic_ns()
        over = [stream for stream in self._streams if stream.ends_ns <= now_ns]
        self._streams = [stream for stream in self._streams if stream.ends_ns > now_ns]
        if self._streams:
            self._thread.call_later(self._period_ns, self._turn)
            self._send()
        for stream in over:
            self._end(stream)

    def _end(self, stream: _Stream) -> None:
        missing = self.missing()
        said = f'{stream.sent} in {self.step.for_ms} ms'
        stream.on_end(missing is None, said if missing is None else f'{said}, but {missing}')

    def _send(self) -> None:
        if hasattr(self._message, 'header'):
            self._message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(self._message)
        for stream in self._streams:
            stream.sent += 1

    def _zeros(self) -> Any:
        message = self._type()
        step = self.step
        if step.size is not None:
            message.data = [0.0] * step.size
        if step.joints:
            message.joint_names = list(step.joints)
            message.velocities = [0.0] * len(step.joints)
        if step.frame_id is not None:
            message.header.frame_id = step.frame_id
        return message
