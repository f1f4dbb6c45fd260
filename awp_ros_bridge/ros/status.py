"""Owns what ROS sees of each embodiment: the three values, repeated so that silence shows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from std_msgs.msg import Bool

from awp_ros_bridge.engine.effects import ReportEmbodiment
from awp_ros_bridge.ros.diagnosis import Diagnosis, Level
from awp_ros_bridge.ros.names import topic_token
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread

PERIOD_NS = 95 * MS  # a little faster than the 10 Hz that are promised
DEADLINE_NS = 200 * MS

_VALUES = ('motion_permitted', 'in_safe_state', 'at_rest')
_BYTES = {value: serialize_message(Bool(data=value)) for value in (False, True)}
_WORDS = {True: 'true', False: 'false', None: 'unknown'}


class Account(Protocol):
    """What is known of an embodiment's motion; callable on any thread."""

    def motion_permitted(self, embodiment: str) -> bool: ...

    def at_rest(self, embodiment: str) -> bool | None: ...

    def reasons(self, embodiment: str) -> dict[str, str]: ...


class EmbodimentStatus:
    """
    Publishes ``~/<embodiment>/motion_permitted``, ``in_safe_state``, ``at_rest`` and ``safety``.

    Nothing is published, and nothing wakes, while nobody listens. Unknown rest is published as
    False; ``safety`` (a DiagnosticStatus) tells it apart, and gives a key to each reason.

    :param account: what the robot's side says.
    """

    def __init__(
        self, thread: RosThread, embodiments: Iterable[str], account: Account
    ) -> None:
        self._thread = thread
        self._account = account
        # nothing has been reported yet: the cautious value
        self._reports = {name: ReportEmbodiment(name, True, None, None) for name in embodiments}
        self._publishers: dict[str, tuple[Publisher[Bool], ...]] = {}
        self._safety: dict[str, Publisher[DiagnosticStatus]] = {}
        self._listeners: dict[str, int] = {}
        self._is_repeating = False
        self._is_due = False

    def start(self, node: Node) -> None:
        """Create the publishers on the main node, so that the names carry its name."""
        for name in self._reports:
            token = topic_token(name)
            topics = [f'~/{token}/{value}' for value in _VALUES]
            self._publishers[name] = tuple(
                self._publisher(node, Bool, topic) for topic in topics
            )
            self._safety[name] = self._publisher(node, DiagnosticStatus, f'~/{token}/safety')

    def _publisher(self, node: Node, message_type: Any, topic: str) -> Any:
        qos = QoSProfile(depth=1, deadline=Duration(nanoseconds=DEADLINE_NS))
        events = PublisherEventCallbacks(
            matched=self._thread.guard(partial(self._on_match, topic)),
            use_default_callbacks=False,
        )
        return node.create_publisher(message_type, topic, qos, event_callbacks=events)

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
        before = self._reports.get(effect.embodiment)
        self._reports[effect.embodiment] = effect
        if before is None or (before.in_safe_state, before.reasons) != (
            effect.in_safe_state, effect.reasons,
        ):  # fmt: skip
            self._publish_now()

    def changed(self, embodiment: str) -> None:
        """Publish soon: something about the stops is different; callable on any thread."""
        if self._is_repeating and not self._is_due:
            self._is_due = True
            self._thread.post(self._publish_now)

    def _publish_now(self) -> None:
        self._is_due = False
        if self._is_repeating:
            self.publish()

    def publish(self) -> None:
        """Publish what is true of every embodiment now."""
        for name, publishers in self._publishers.items():
            report = self._reports[name]
            values = (
                self._account.motion_permitted(name),
                report.in_safe_state,
                self._account.at_rest(name) is True,
            )
            for publisher, value in zip(publishers, values, strict=True):
                publisher.publish(_BYTES[value])
            if self._safety[name].get_subscription_count():
                said = self.diagnosis(name).to_message(f'{name}: safety', name)
                self._safety[name].publish(said)

    def holder(self, embodiment: str) -> str | None:
        """Return the session that holds an embodiment, as last reported; the thread's own."""
        return self._reports[embodiment].session_id

    def diagnosis(self, name: str) -> Diagnosis:
        """Say whether an embodiment may move, and give a value to each reason against it."""
        report = self._reports[name]
        permitted = self._account.motion_permitted(name)
        reasons = {**self._account.reasons(name), **dict(report.reasons)}
        against = [text for key, text in reasons.items() if key != 'goals']
        level, message = Level.OK, 'motion permitted'
        if not permitted:
            level, message = Level.ERROR, f'motion forbidden: {"; ".join(against)}'
        elif against:
            level, message = Level.WARN, f'motion permitted, but: {"; ".join(against)}'
        known = {
            'motion_permitted': _WORDS[permitted],
            'in_safe_state': _WORDS[report.in_safe_state],
            'at_rest': _WORDS[self._account.at_rest(name)],
            'session': report.session_id or '',
            'action': report.active_action or '',
            **reasons,
        }
        return Diagnosis(level, message, known)
