"""
Owns the safety inputs: topics that forbid motion by their value, or by silence; safety thread.

An input answers one question, whether it permits motion now. It has not until a fresh message
allowed it, it does not when its topic goes quiet, and there is no way around that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import logging
import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from awp_ros_bridge.config import BridgeConfig, ByCompanion, SafetyInput
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.field_path import FieldPath
from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import Deadline, NO_EVENTS, RosThread
from awp_ros_bridge.ros.stop import LocalStop

_LOG = logging.getLogger(__name__)

TYPE_LOOK_NS = 1_000 * MS  # until the type of a companion topic is known

# Neither reader hears all publishers: latched samples reach the first, best effort the second.
_READERS = (
    QoSProfile(
        depth=10,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    ),
    QoSProfile(
        depth=10,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    ),
)


class InputJudge:
    """
    What one input says, without ROS.

    :param config: the field, its unsafe values, the limit of silence.
    """

    def __init__(self, config: SafetyInput) -> None:
        self._config = config
        self._field = FieldPath(config.field)
        self._by_companion = isinstance(config.freshness, ByCompanion)
        self._stale_ns = config.stale_after_ms * MS
        self._unsafe: list[str | None] = [None] * len(_READERS)
        self._heard_ns: int | None = None
        self._companion_ns: int | None = None

    def take(self, reader: int, message: Any | None, at_ns: int) -> None:
        """Note the newest message of a reader; None for one that cannot be read."""
        self._heard_ns = at_ns
        self._unsafe[reader] = self._judge(message)

    def take_companion(self, at_ns: int) -> None:
        """Note that the periodic topic of the same driver is alive."""
        self._companion_ns = at_ns

    def tripped(self) -> str | None:
        """Return what was heard that forbids motion; it holds until that reader hears better."""
        return next((said for said in self._unsafe if said is not None), None)

    def renewed_ns(self) -> int | None:
        """Return when the input was last vouched for, None when it never was."""
        if self._heard_ns is None:
            return None
        return self._companion_ns if self._by_companion else self._heard_ns

    def stale(self, now_ns: int) -> str | None:
        """Return why the input counts as unknown, or None."""
        topic = self._config.topic
        if self._heard_ns is None:
            return f'{topic} was not heard yet'
        renewed_ns = self.renewed_ns()
        if isinstance(self._config.freshness, ByCompanion):
            topic = f'{self._config.freshness.topic}, companion of {topic},'
        if renewed_ns is None:
            return f'{topic} was not heard yet'
        silent_ns = now_ns - renewed_ns
        if silent_ns < self._stale_ns:
            return None
        return f'{topic} silent for {silent_ns // MS} ms (limit {self._stale_ns // MS} ms)'

    def permits_motion(self, now_ns: int) -> bool:
        """Tell whether a message allowed motion, is young enough, and there was one at all."""
        return self.tripped() is None and self.stale(now_ns) is None

    def due_ns(self) -> int | None:
        """Return when a permission ages into unknown."""
        renewed_ns = self.renewed_ns()
        return None if renewed_ns is None else renewed_ns + self._stale_ns

    def _judge(self, message: Any | None) -> str | None:
        config = self._config
        if message is None:
            return f'{config.topic}: a message cannot be read'
        try:
            value = self._field.read(message)
            forbids = config.unsafe_when.holds(value)
        except Exception as error:  # noqa: BLE001 what cannot be judged forbids motion
            return f'{config.topic}.{config.field} cannot be read: {error}'
        return f'{config.topic}.{config.field} is {value!r}' if forbids else None


class WatchedInput:
    """One input of one embodiment: its readers, its limit of silence, the news of its verdict."""

    def __init__(
        self, embodiment: str, config: SafetyInput, thread: RosThread, stop: LocalStop
    ) -> None:
        self.embodiment = embodiment
        self.config = config
        self.judge = InputJudge(config)
        self._thread = thread
        self._stop = stop
        self._type: Any = None
        self._is_tripped = False
        self._is_stale = False
        self._deadline: Deadline | None = None

    @property
    def reasons(self) -> dict[str, str]:
        """What forbids motion now, by input name."""
        tripped, stale = self.judge.tripped(), self.judge.stale(time.monotonic_ns())
        said = {self.config.label: tripped, f'{self.config.label}:stale': stale}
        return {name: detail for name, detail in said.items() if detail is not None}

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe; the input is unknown, hence unsafe, until it is heard."""
        topic = resolve(self.config.topic)
        try:
            self._type = load_interface(self.config.type)
        except ValueError as error:
            _LOG.error('safety input %s cannot be heard: %s', self.config.label, error)
            self._update()
            return
        for reader, qos in enumerate(_READERS):
            callback = self._thread.guard(partial(self._on_message, reader))
            node.create_subscription(
                self._type, topic, callback, qos, event_callbacks=NO_EVENTS, raw=True
            )
        if isinstance(self.config.freshness, ByCompanion):
            self._follow(node, resolve(self.config.freshness.topic))
        self._update()

    def _on_message(self, reader: int, data: bytes) -> None:
        try:
            message = deserialize_message(data, self._type)
        except Exception:  # noqa: BLE001 a message that cannot be read is unsafe
            message = None
        self.judge.take(reader, message, time.monotonic_ns())
        self._update()

    def _follow(self, node: Node, topic: str) -> None:
        types = dict(node.get_topic_names_and_types()).get(topic)
        try:
            companion_type = load_interface(types[0]) if types else None
        except ValueError:
            companion_type = None
        if companion_type is None:
            self._thread.call_later(TYPE_LOOK_NS, partial(self._follow, node, topic))
            return
        callback = self._thread.guard(self._on_companion)
        node.create_subscription(
            companion_type, topic, callback, _READERS[1], event_callbacks=NO_EVENTS, raw=True
        )

    def _on_companion(self, data: bytes) -> None:
        self.judge.take_companion(time.monotonic_ns())
        if self._is_stale:
            self._update()

    def _update(self) -> None:
        """Tell what changed; the stop itself is part of the telling."""
        now_ns = time.monotonic_ns()
        tripped, stale = self.judge.tripped(), self.judge.stale(now_ns)
        # what is tripped stays tripped by value, whether or not its publisher lives
        self._is_tripped = self._change(
            self._is_tripped, tripped, self.config.label, self.config.means, now_ns
        )
        doubt = stale if tripped is None else None
        meaning = Meaning.NOT_READY
        if self.config.means is Meaning.DEGRADED:
            meaning = Meaning.DEGRADED
        self._is_stale = self._change(
            self._is_stale, doubt, f'{self.config.label}:stale', meaning, now_ns
        )
        self._arm(now_ns)

    def _change(
        self, before: bool, unsafe: str | None, name: str, meaning: Meaning, now_ns: int
    ) -> bool:
        if unsafe is not None and not before:
            self._stop.engage(self.embodiment, name, meaning, unsafe)
        elif unsafe is None and before:
            self._stop.release(self.embodiment, name, meaning, f'{self.config.topic} permits it')
        return unsafe is not None

    def _arm(self, now_ns: int) -> None:
        if self._is_stale or self._is_tripped:
            return  # only a message can change that
        if self._deadline is None or self._deadline.is_cancelled:
            due_ns = self.judge.due_ns()
            if due_ns is not None:
                self._deadline = self._thread.call_at(max(due_ns, now_ns), self._on_due)

    def _on_due(self) -> None:
        self._deadline = None
        self._update()


class SafetyInputs:
    """Every safety input of every embodiment."""

    def __init__(self, thread: RosThread, stop: LocalStop, config: BridgeConfig) -> None:
        self.inputs = [
            WatchedInput(name, entry, thread, stop)
            for name, embodiment in config.embodiments.items()
            for entry in embodiment.safety_inputs
        ]

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe to everything; before the thread starts."""
        for each in self.inputs:
            each.start(node, resolve)

    def permits_motion(self, embodiment: str, now_ns: int) -> bool:
        """Tell whether every input of an embodiment permits motion; any thread."""
        return all(
            each.judge.permits_motion(now_ns)
            for each in self.inputs
            if each.embodiment == embodiment
        )

    def reasons(self, embodiment: str) -> dict[str, str]:
        """Return what forbids motion of an embodiment, by input; any thread."""
        found: dict[str, str] = {}
        for each in self.inputs:
            if each.embodiment == embodiment:
                found.update(each.reasons)
        return found
