"""
Owns the safety inputs: topics that forbid motion by their value, or by silence; safety thread.

An input answers one question, whether it permits motion now. It has not until a fresh message
allowed it, it does not when its topic goes quiet, and there is no way around that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
import logging
import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from awp_ros_bridge.config import BridgeConfig, InputSpec
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.input_judge import hardest, InputJudge, Verdict
from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import Deadline, NO_EVENTS, RosThread
from awp_ros_bridge.ros.stop import LocalStop

_LOG = logging.getLogger(__name__)

TYPE_LOOK_NS = 1_000 * MS  # until the type of a companion topic is known
LATCHED = 'latched until an operator clears it'

# Neither reader hears all publishers: latched samples reach the first, best effort the second.
# Deep, so that no message is lost that trips and is taken back while the thread is busy.
_DEPTH = 100
_READERS = (
    QoSProfile(
        depth=_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    ),
    QoSProfile(
        depth=_DEPTH,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    ),
)


class _Told:
    """What one embodiment was told of an input."""

    __slots__ = ('is_clearable', 'is_stale', 'latched', 'verdict')

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        self.latched: Verdict | None = None
        self.is_stale = False
        self.is_clearable = False


class WatchedInput:
    """
    One input: its readers, its limit of silence, the news of its verdict.

    :param embodiments: those whose motion it forbids; each has a latch of its own.
    :param place: the embodiment at which it is configured, empty for the world.
    """

    def __init__(
        self,
        embodiments: Iterable[str],
        spec: InputSpec,
        thread: RosThread,
        stop: LocalStop,
        place: str = '',
    ) -> None:
        self.spec = spec
        self.place = place
        self.judge = InputJudge(spec)
        self._told = {name: _Told() for name in embodiments}
        self._thread = thread
        self._stop = stop
        self._type: Any = None
        self._deadline: Deadline | None = None

    def forbids(self, embodiment: str) -> dict[str, str]:
        """Return what forbids motion of an embodiment now, by input name; any thread."""
        told = self._told.get(embodiment)
        if told is None:
            return {}
        label = self.spec.label
        verdict, stale = self.judge.tripped(), self.judge.stale(time.monotonic_ns())
        said = {label: None if verdict is None else verdict.text, f'{label}:stale': stale}
        if verdict is None and told.latched is not None:
            said[label] = f'{told.latched.text} ({LATCHED})'
        return {name: text for name, text in said.items() if text is not None}

    def permits_motion(self, embodiment: str, now_ns: int) -> bool:
        """Tell whether the input permits motion of an embodiment; any thread."""
        told = self._told.get(embodiment)
        if told is None:
            return True
        verdict = self.judge.tripped() or told.latched
        if verdict is not None:
            return verdict.means is Meaning.DEGRADED
        return self.spec.means is Meaning.DEGRADED or self.judge.stale(now_ns) is None

    def latched(self) -> dict[str, Verdict]:
        """Return what is latched, by the embodiment for which it is; any thread."""
        found = {name: told.latched for name, told in self._told.items()}
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    def is_only_latched(self, embodiment: str) -> bool:
        """Tell whether an operator may clear the input: the hardware has, and is not silent."""
        told = self._told.get(embodiment)
        if told is None or told.latched is None:
            return False
        return self.judge.permits_motion(time.monotonic_ns())

    def clear(self, embodiment: str) -> None:
        """Let go of what only the latch holds, for an operator."""
        if self.is_only_latched(embodiment):
            self._told[embodiment].latched = None
            self._update()

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe; the input is unknown, hence unsafe, until it is heard."""
        topic = resolve(self.spec.topic)
        try:
            self._type = load_interface(self.spec.type)
        except ValueError as error:
            _LOG.error('safety input %s cannot be heard: %s', self.spec.label, error)
            self.judge.fail(f'{self.spec.topic} cannot be heard: {error}')
            self._update()
            return
        for reader, qos in enumerate(_READERS):
            callback = self._thread.guard(partial(self._on_message, reader))
            node.create_subscription(
                self._type, topic, callback, qos, event_callbacks=NO_EVENTS, raw=True
            )
        if self.spec.companion is not None:
            self._follow(node, resolve(self.spec.companion))
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
        if any(told.is_stale for told in self._told.values()):
            self._update()

    def _update(self) -> None:
        """Tell what changed; the stop itself is part of the telling."""
        now_ns = time.monotonic_ns()
        verdict, stale = self.judge.tripped(), self.judge.stale(now_ns)
        for embodiment, told in self._told.items():
            self._tell(embodiment, told, verdict, stale)
        if verdict is None and stale is None:
            self._arm(now_ns)  # otherwise only a message can change it

    def _tell(
        self, embodiment: str, told: _Told, verdict: Verdict | None, stale: str | None
    ) -> None:
        label = self.spec.label
        if verdict is not None and self.spec.latch == 'until_operator':
            told.latched = hardest(verdict, told.latched)
        held = verdict
        if told.latched is not None and hardest(told.latched, verdict) is not verdict:
            held = Verdict(told.latched.means, f'{told.latched.text} ({LATCHED})')
        self._change(embodiment, told, held)
        # what is tripped stays tripped by value, whether or not its publisher lives
        doubt = stale if held is None else None
        means = Meaning.NOT_READY
        if self.spec.means is Meaning.DEGRADED:
            means = Meaning.DEGRADED
        if doubt is not None and not told.is_stale:
            self._stop.engage(embodiment, f'{label}:stale', means, doubt)
        elif doubt is None and told.is_stale:
            self._stop.release(embodiment, f'{label}:stale', means, self._better)
        told.is_stale = doubt is not None
        before, told.is_clearable = told.is_clearable, (
            told.latched is not None and verdict is None and stale is None
        )
        if told.is_clearable and not before:
            self._stop.changed(embodiment)

    @property
    def _better(self) -> str:
        return f'{self.spec.topic} permits it'

    def _change(self, embodiment: str, told: _Told, held: Verdict | None) -> None:
        """Tell a verdict where it is another one; what it says while it lasts is of no matter."""
        before, told.verdict = told.verdict, held
        label = self.spec.label
        if held is None:
            if before is not None:
                self._stop.release(embodiment, label, before.means, self._better)
            return
        is_news = before is None or before.means is not held.means
        if before is not None and is_news and held.means is Meaning.DEGRADED:
            self._stop.release(embodiment, label, before.means, held.text)
        if is_news:
            self._stop.engage(embodiment, label, held.means, held.text)
        elif LATCHED in held.text and before is not None and held.text != before.text:
            self._stop.tell_again(embodiment, label, held.means, held.text)

    def _arm(self, now_ns: int) -> None:
        if self._deadline is None or self._deadline.is_cancelled:
            due_ns = self.judge.due_ns()
            if due_ns is not None:
                self._deadline = self._thread.call_at(max(due_ns, now_ns), self._on_due)

    def _on_due(self) -> None:
        self._deadline = None
        self._update()


class SafetyInputs:
    """Every safety input, of the world and of every embodiment."""

    def __init__(self, thread: RosThread, stop: LocalStop, config: BridgeConfig) -> None:
        self.inputs = [
            WatchedInput(config.embodiments, entry.spec, thread, stop)
            for entry in config.safety.inputs
        ]
        for name, embodiment in config.embodiments.items():
            self.inputs += [
                WatchedInput([name], entry.spec, thread, stop, name)
                for entry in embodiment.safety_inputs
            ]

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe to everything; before the thread starts."""
        for each in self.inputs:
            each.start(node, resolve)

    def permits_motion(self, embodiment: str, now_ns: int) -> bool:
        """Tell whether every input of an embodiment permits motion; any thread."""
        return all(each.permits_motion(embodiment, now_ns) for each in self.inputs)

    def reasons(self, embodiment: str) -> dict[str, str]:
        """Return what forbids motion of an embodiment, by input; any thread."""
        found: dict[str, str] = {}
        for each in self.inputs:
            found.update(each.forbids(embodiment))
        return found

    def only_latched(self, embodiment: str) -> list[str]:
        """Name the inputs of an embodiment that nothing but their latch engages; any thread."""
        return [each.spec.label for each in self._clearable(embodiment)]

    def clear(self, embodiment: str) -> list[str]:
        """Let go of those inputs, for an operator; return their names. Safety thread."""
        cleared = []
        for each in list(self._clearable(embodiment)):
            each.clear(embodiment)
            cleared.append(each.spec.label)
        return cleared

    def _clearable(self, embodiment: str) -> Iterator[WatchedInput]:
        return (each for each in self.inputs if each.is_only_latched(embodiment))
