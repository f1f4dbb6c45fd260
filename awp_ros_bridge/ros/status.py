"""Owns what ROS sees of each embodiment: the three values, repeated so that silence shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from std_msgs.msg import Bool

from awp_ros_bridge.engine.effects import ReportEmbodiment
from awp_ros_bridge.ros.names import topic_token
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread

PERIOD_NS = 95 * MS  # a little faster than the 10 Hz that are promised
DEADLINE_NS = 200 * MS

_VALUES = ('motion_permitted', 'in_safe_state', 'at_rest')
_BYTES = {value: serialize_message(Bool(data=value)) for value in (False, True)}


class EmbodimentStatus:
    """
    Publishes ``~/<embodiment>/motion_permitted``, ``in_safe_state`` and ``at_rest``.

    Nothing is published, and nothing wakes, while nobody listens.

    :param motion_permitted: what the safety inputs say.
    :param at_rest: what is measured; unknown is published as False.
    """

    def __init__(
        self,
        thread: RosThread,
        embodiments: Iterable[str],
        motion_permitted: Callable[[str], bool],
        at_rest: Callable[[str], bool | None],
    ) -> None:
        self._thread = thread
        self._motion_permitted = motion_permitted
        self._at_rest = at_rest
        # nothing has been reported yet: the cautious value
        self._in_safe_state = dict.fromkeys(embodiments, True)
        self._publishers: dict[str, tuple[Publisher[Bool], ...]] = {}
        self._listeners: dict[str, int] = {}
        self._is_repeating = False

    def start(self, node: Node) -> None:
        """Create the publishers on the main node, so that the names carry its name."""
        for name in self._in_safe_state:
            token = topic_token(name)
            topics = [f'~/{token}/{value}' for value in _VALUES]
            self._publishers[name] = tuple(self._publisher(node, topic) for topic in topics)

    def _publisher(self, node: Node, topic: str) -> Publisher[Bool]:
        qos = QoSProfile(depth=1, deadline=Duration(nanoseconds=DEADLINE_NS))
        events = PublisherEventCallbacks(
            matched=self._thread.guard(partial(self._on_match, topic)),
            use_default_callbacks=False,
        )
        return node.create_publisher(Bool, topic, qos, event_callbacks=events)

    def _on_match(self, topic: str, event: Any) -> None:
        self._listeners[topic] = event.current_count
        if event.current_count and not self._is_repeating:
            self._is_repeating = True
            self._repeat()

    def _repeat(self) -> None:
        self._is_repeating = any(self._listeners.values())
        if self._is_repeating:
            self._thread.call_later(PERIOD_NS, self._repeat)
            self.publish()

    def update(self, effect: ReportEmbodiment) -> None:
        """Take what the engine reports, and publish a change at once."""
        if self._in_safe_state.get(effect.embodiment) is not effect.in_safe_state:
            self._in_safe_state[effect.embodiment] = effect.in_safe_state
            if self._is_repeating:
                self.publish()

    def publish(self) -> None:
        """Publish the three values of every embodiment."""
        for name, publishers in self._publishers.items():
            values = (
                self._motion_permitted(name),
                self._in_safe_state[name],
                self._at_rest(name) is True,
            )
            for publisher, value in zip(publishers, values, strict=True):
                publisher.publish(_BYTES[value])
