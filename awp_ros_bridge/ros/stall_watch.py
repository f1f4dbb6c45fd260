"""
Owns the detection of stalls: goals that run while nothing moves and no progress is told.

It is asked on the goals thread, in the turns of the watch over running goals; a topic of speed
scaling is read in these turns only, and costs nothing while no goal runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import logging
import time
from typing import Any

from rclpy.node import Node
from rclpy.serialization import deserialize_message

from awp_ros_bridge.config import SpeedScaling
from awp_ros_bridge.ros.field_path import FieldPath
from awp_ros_bridge.ros.goal_run import GoalRun
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface
from awp_ros_bridge.ros.live_goals import Cancel
from awp_ros_bridge.ros.plan import ActionPlan, MS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stall_clock import NOTHING_HEARD, ScaledTime, StallClock
from awp_ros_bridge.ros.topic_reader import TopicReader

_LOG = logging.getLogger(__name__)


class StallWatch:
    """
    Says of a running goal that it stalls, once.

    Deadlines and longest times are the engine's: nothing here stretches them.

    :param at_rest: measured rest of an embodiment, None while it is not known.
    """

    def __init__(
        self,
        node: Node,
        thread: RosThread,
        plans: Iterable[ActionPlan],
        at_rest: Callable[[str], bool | None],
    ) -> None:
        self._at_rest = at_rest
        self._scalings: dict[str, _Scaling] = {}
        for plan in plans:
            scaling, name = plan.speed_scaling, plan.embodiment
            if plan.stall_ns is not None and scaling and name not in self._scalings:
                self._scalings[name] = _Scaling(node, thread, name, scaling)

    def look(self, run: GoalRun, now_ns: int) -> str | None:
        """Return why a goal counts as stalled; None while it does not, and once it was told."""
        plan = run.plan
        if plan.stall_ns is None or run.live.cancel is not Cancel.NONE:
            return None
        if run.stall is None:
            run.stall = StallClock(plan.stall_ns)
        scaling = self._scalings.get(plan.embodiment)
        counted_ns = now_ns if scaling is None else scaling.counted_ns(now_ns)
        rests = self._at_rest(plan.embodiment) is True
        stood = run.stall.look(now_ns, counted_ns, rests, run.progress)
        if stood is None:
            return None
        passed_ns, stood_ns = stood
        limit = f'stall_after_ms {plan.stall_ns // MS}'
        text = f'{plan.embodiment} rests and no progress was told for {passed_ns // MS} ms'
        if scaling is None:
            return f'{text} ({limit}, no speed scaling)'
        return f'{text}, of which {stood_ns // MS} ms count ({limit}, {scaling.text})'


class _Scaling:
    """The speed scaling of one embodiment, as its topic tells it."""

    def __init__(self, node: Node, thread: RosThread, name: str, config: SpeedScaling) -> None:
        stale_ns = None if config.latched else config.stale_after_ms * MS
        self._name = name
        self._config = config
        self._field = FieldPath(config.field)
        self._time = ScaledTime(config.full, stale_ns, time.monotonic_ns())
        self._said: set[str] = set()  # each trouble is told once
        self._type: Any = None
        self._reader: TopicReader | None = None
        try:
            self._type = load_interface(config.type)
        except InterfaceMissing as error:
            self._time.lose(str(error), time.monotonic_ns())
        else:
            self._reader = TopicReader(
                node, thread, config.topic, self._type, lambda data: None, 1, config.latched
            )
            self._reader.dispatch(False)
            thread.post(self._reader.start)

    @property
    def text(self) -> str:
        """What it is now, in words."""
        if self._time.trouble is not None:
            return f'speed scaling unknown: {self._time.trouble}'
        return f'speed scaling {self._time.share:.2f}'

    def counted_ns(self, now_ns: int) -> int:
        """Return the time that counts, with what the topic told since the last question."""
        if self._reader is not None:
            self._read(self._reader, now_ns)
        counted_ns = self._time.counted_ns(now_ns)
        self._say()
        return counted_ns

    def _read(self, reader: TopicReader, now_ns: int) -> None:
        newest = None
        for data, _ in reader.take():
            newest = data
        if newest is not None:
            try:
                value = self._field.read(deserialize_message(newest, self._type))
            except Exception as error:  # noqa: BLE001 whatever cannot be read is no number
                self._time.lose(f'it cannot be read: {type(error).__name__}', now_ns)
            else:
                self._time.hear(value, now_ns)
        elif self._config.latched and not reader.has_publisher:
            self._time.lose(f'nobody publishes {reader.topic}', now_ns)  # its last word went too
        elif self._time.trouble == NOTHING_HEARD and reader.note:
            self._time.lose(reader.note, now_ns)

    def _say(self) -> None:
        trouble = self._time.trouble
        if trouble is not None and trouble not in self._said:
            self._said.add(trouble)
            _LOG.warning(
                'embodiment=%s speed scaling on %s: %s; meanwhile all time counts for '
                'stall_after_ms', self._name, self._config.topic, trouble,
            )  # fmt: skip
