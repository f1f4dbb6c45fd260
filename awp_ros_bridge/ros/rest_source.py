"""Owns where rest is measured from: topics of joint states and odometry, and tf; safety thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import logging
import time
from typing import Any, Protocol

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message

from awp_ros_bridge.ros.cdr import NotPlainCdr, walk_transforms
from awp_ros_bridge.ros.frame_graph import Edge, FrameGraph
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface
from awp_ros_bridge.ros.newest import NewestReader
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import NO_EVENTS, RosThread

_LOG = logging.getLogger(__name__)

PACE_NS = 40 * MS  # while nobody waits, rest is judged at 25 Hz; else with every sample
WINDOW_NS = 1_000 * MS
FAST = 2.5  # times the pace: the topic is then looked at, not followed
MISSES = 3  # looks without news after which it is followed again

_TF_TYPE = 'tf2_msgs/msg/TFMessage'
_TF_DEPTH = 500


class User(Protocol):
    """Who is measured by a source."""

    stale_ns: int

    @property
    def is_awaited(self) -> bool: ...

    def begin(self) -> None: ...

    def take(self, now_ns: int, message: Any | None) -> None: ...


class Source(Protocol):
    """What measures."""

    @property
    def users(self) -> list[User]: ...

    @property
    def thread(self) -> RosThread: ...

    @property
    def heard_ns(self) -> int: ...

    @property
    def started_ns(self) -> int: ...

    def start(self, node: Node, resolve: Callable[[str], str]) -> None: ...

    def follow(self) -> None: ...


class TopicSource:
    """
    One topic, for every embodiment that looks at it.

    A topic much faster than rest is judged is looked at when that is due, unless somebody waits
    for rest: then every sample counts.
    """

    def __init__(self, thread: RosThread, topic: str, message_type: Any) -> None:
        self.thread = thread
        self.heard_ns = 0
        self.started_ns = time.monotonic_ns()
        self.users: list[User] = []
        self._topic = topic
        self._type = message_type
        self._reader: NewestReader | None = None
        self._decoded_ns = 0
        self._pace_ns = PACE_NS
        self._window_ns = 0
        self._arrived = 0
        self._misses = 0

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe; silence is unsafe from now on."""
        # best effort hears every publisher; a lost sample is followed by the next
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        callback = self.thread.guard(self._on_sample)
        self._reader = NewestReader(node, self._type, resolve(self._topic), qos, callback)
        self.started_ns = time.monotonic_ns()
        self._pace_ns = min(PACE_NS, *(user.stale_ns // 4 for user in self.users))
        for user in self.users:
            user.begin()

    def follow(self) -> None:
        """Look at every sample from now on: somebody waits."""
        if self._reader is not None:
            self._reader.dispatch(True)

    def _on_sample(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        self.heard_ns = now_ns
        is_awaited = any(user.is_awaited for user in self.users)
        self._arrived += 1
        if now_ns - self._window_ns >= WINDOW_NS:
            self._choose(now_ns, is_awaited)
        # a little early rather than a whole period late
        if is_awaited or now_ns - self._decoded_ns >= self._pace_ns - MS:
            self._decode(data, now_ns)

    def _decode(self, data: bytes, now_ns: int) -> None:
        self._decoded_ns = now_ns
        try:
            message: Any = deserialize_message(data, self._type)
        except Exception:  # noqa: BLE001 whatever cannot be read is no proof of rest
            message = None
        for user in self.users:
            user.take(now_ns, message)

    def _choose(self, now_ns: int, is_awaited: bool) -> None:
        passed_ns = now_ns - self._window_ns
        is_fast = self._arrived * self._pace_ns > FAST * passed_ns
        self._window_ns, self._arrived = now_ns, 0
        if is_fast and not is_awaited and self._reader and self._reader.dispatch(False):
            self._misses = 0
            self.thread.call_later(self._pace_ns, self._look)

    def _look(self) -> None:
        reader = self._reader
        if reader is None or reader.is_dispatched:
            return
        data = reader.take()
        self._misses = 0 if data is not None else self._misses + 1
        if self._misses >= MISSES:
            reader.dispatch(True)
            return
        self.thread.call_later(self._pace_ns, self._look)
        if data is not None:
            now_ns = time.monotonic_ns()
            self.heard_ns = now_ns
            self._decode(data, now_ns)


class TfSource:
    """
    All of tf, for the embodiments whose rest is the difference of its poses.

    :ivar heard_ns: when tf said anything; who is silent on it, its users tell themselves.
    """

    def __init__(self, thread: RosThread, frames: set[str]) -> None:
        self.thread = thread
        self.heard_ns = 0
        self.started_ns = time.monotonic_ns()
        self.users: list[User] = []
        self._graph = FrameGraph({name: name for name in sorted(frames)}, min(frames))
        self._type: Any = None

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe; silence is unsafe from now on."""
        self.started_ns = time.monotonic_ns()
        try:
            self._type = load_interface(_TF_TYPE)
        except InterfaceMissing as error:
            _LOG.error('rest cannot be measured by tf: %s', error)
        else:
            moving = QoSProfile(depth=_TF_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
            static = QoSProfile(
                depth=_TF_DEPTH,
                reliability=ReliabilityPolicy.RELIABLE,
                durability=DurabilityPolicy.TRANSIENT_LOCAL,
            )
            for topic, qos in (('/tf', moving), ('/tf_static', static)):
                callback = self.thread.guard(partial(self._on_tf, qos is static))
                node.create_subscription(
                    self._type, resolve(topic), callback, qos, event_callbacks=NO_EVENTS, raw=True
                )
        for user in self.users:
            user.begin()

    def follow(self) -> None:
        """Look at every sample: it is looked at anyway."""

    def _on_tf(self, is_static: bool, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        try:
            self._update(data, is_static, now_ns)
        except NotPlainCdr:
            try:
                message = deserialize_message(data, self._type)
                self._update(serialize_message(message), is_static, now_ns)
            except Exception as error:  # noqa: BLE001 what cannot be read is no news
                _LOG.debug('a message of tf cannot be read: %s', error)
                return
        self.heard_ns = now_ns
        for user in self.users:
            user.take(now_ns, self._graph)

    def _update(self, data: bytes, is_static: bool, now_ns: int) -> None:
        for child, parent, stamp_ns, at in walk_transforms(data):
            edge = Edge(_name(parent), is_static, data, at, stamp_ns, now_ns)
            self._graph.update(_name(child), edge)


def _name(frame: bytes) -> str:
    # some publishers still put a slash in front
    return frame.decode(errors='replace').removeprefix('/')
