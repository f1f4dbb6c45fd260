"""Owns tf as the bridge hears it: the frame tree, the channel ``awp.tf`` and poses for checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message

from awp_ros_bridge.config import FramesConfig, TF_CHANNEL
from awp_ros_bridge.engine.inputs import FrameTreeChanged
from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.capture_time import Clocks
from awp_ros_bridge.ros.cdr import NotPlainCdr, walk_transforms
from awp_ros_bridge.ros.feed import ChannelFeed
from awp_ros_bridge.ros.frame_graph import Edge, FrameGraph
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface
from awp_ros_bridge.ros.topic_reader import Thread, TopicReader

_TYPE = 'tf2_msgs/msg/TFMessage'
_DEPTH = 500
# tf has many publishers, so every message counts, but none of them is urgent: where they are many
# they are fetched in batches.
_BATCH_NS = 50_000_000
_BATCH_ABOVE_HZ = 60.0
_FOLLOW_BELOW_HZ = 30.0
# Robots tell their frames one by one when they start.
_SETTLE_NS = 100_000_000
_STALE_NS = 1_000_000_000


class Frames:
    """
    The configured frames, from ``/tf`` and ``/tf_static``.

    Everything runs on the node's thread but :meth:`pose_in`, :meth:`known` and :meth:`note`.

    :ivar rate_hz: messages on ``/tf``, over the last second.
    """

    def __init__(
        self,
        node: Node,
        thread: Thread,
        config: FramesConfig,
        post: Callable[[Any], None],
        clocks: Clocks,
    ) -> None:
        self._node = node
        self._thread = thread
        self._post = post
        self._clocks = clocks
        self._graph = FrameGraph(config.tf_frames, config.root)
        self._feed = ChannelFeed(TF_CHANNEL, self._encode, post, clocks, self._hold, self._fail)
        self._readers: list[TopicReader] = []
        self._moving: TopicReader | None = None
        self._longest_ns = self._batch_ns = _BATCH_NS
        self._arrived = 0
        self._reviewed_ns = clocks.steady_ns()
        self._posted: tuple[dict[str, Any], ...] | None = None
        self._is_settling = False
        self._is_closed = False
        self._error = ''
        self._stamp_ns = 0
        self.rate_hz = 0.0

    def start(self) -> None:
        """Subscribe, and tell the tree as far as it is known: unknown frames are dynamic."""
        self._tell_tree()
        if len(self._graph.frames) < 2:
            return
        try:
            message_type = load_interface(_TYPE)
        except InterfaceMissing as error:
            self._error = str(error)
            return
        moving = TopicReader(
            self._node, self._thread, '/tf', message_type, self._on_moving, _DEPTH
        )
        static = TopicReader(
            self._node,
            self._thread,
            '/tf_static',
            message_type,
            self._on_static,
            _DEPTH,
            is_latched=True,
        )
        self._moving, self._readers = moving, [moving, static]
        moving.start()
        static.start()

    def close(self) -> None:
        """Unsubscribe."""
        self._is_closed = True
        for reader in self._readers:
            reader.close()

    def demand(self, rate_hz: float, fresh: bool) -> None:
        """Set the wanted rate of ``awp.tf``."""
        if fresh and self._feed.last_arrival_ns is None:
            self._feed.offer(None)  # with no frame that moves there is an empty sample to see
        self._feed.demand(rate_hz, fresh)
        most_ns = self._longest_ns
        self._batch_ns = min(most_ns, int(1e9 / rate_hz)) if rate_hz > 0 else most_ns

    def hasten(self, period_ns: int) -> None:
        """Fetch at least this often, for who measures motion by tf; before the start."""
        self._longest_ns = self._batch_ns = min(self._longest_ns, period_ns)

    def review(self) -> None:
        """Once a second: choose between a callback per message and batches."""
        reader, now_ns = self._moving, self._clocks.steady_ns()
        if reader is None:
            return
        self.rate_hz = rate_hz = self._arrived * 1e9 / max(1, now_ns - self._reviewed_ns)
        self._arrived, self._reviewed_ns = 0, now_ns
        if not rate_hz:
            reader.review()
        if reader.is_dispatched and rate_hz > _BATCH_ABOVE_HZ:
            reader.dispatch(False)
            self._take(reader)
        elif not reader.is_dispatched and rate_hz < _FOLLOW_BELOW_HZ:
            reader.dispatch(True)

    def known(self) -> tuple[str, ...]:
        """List the AWP names of all configured frames, the root first."""
        return tuple(self._graph.frames)

    def ros_frame(self, name: str) -> str | None:
        """Return the tf frame of an AWP frame, None for an unknown one."""
        return self._graph.frames.get(name)

    def pose_in(self, frame: str, reference: str) -> Pose | None:
        """
        Return the pose of an AWP frame in another one, None where tf does not tell it.

        A moving transform that was not heard for a second is not known. Safe on any thread.
        """
        return self._graph.pose_in(frame, reference, self._clocks.steady_ns() - _STALE_NS)

    def placed_in(
        self, frame: str, reference: str
    ) -> tuple[Pose, int | None, int | None] | None:
        """Return pose, newest stamp and oldest arrival, see :class:`FrameGraph`; any thread."""
        return self._graph.placed_in(frame, reference)

    def note(self) -> str:
        """Say which configured frames are not known, empty where all are."""
        if self._error:
            return self._error
        missing = self._graph.missing()
        if not missing:
            return ''
        names = ', '.join(f'{name} (tf {self._graph.frames[name]})' for name in missing)
        return f'tf does not relate these frames to {self._graph.root} yet: {names}'

    def _take(self, reader: TopicReader) -> None:
        if self._is_closed or reader.is_dispatched:
            return
        delay_ns = -1
        for raw, delay in reader.take():
            delay_ns = delay
            self._arrived += 1
            self._on_transforms(raw, is_static=False)
        if delay_ns >= 0:
            self._feed.offer(None, delay_ns)
        self._thread.call_later(self._batch_ns, lambda: self._take(reader))

    def _on_moving(self, raw: bytes) -> None:
        self._arrived += 1
        self._on_transforms(raw, is_static=False)
        self._feed.offer(None)

    def _on_static(self, raw: bytes) -> None:
        self._on_transforms(raw, is_static=True)

    def _on_transforms(self, raw: bytes, is_static: bool) -> None:
        try:
            has_changed = self._update(raw, is_static)
        except NotPlainCdr:
            try:
                message = deserialize_message(raw, load_interface(_TYPE))
                has_changed = self._update(serialize_message(message), is_static)
            except Exception as error:  # noqa: BLE001 a bad message harms tf only
                self._fail(error)
                return
        if has_changed and not self._is_settling:
            self._is_settling = True
            self._thread.call_later(_SETTLE_NS, self._tell_tree)

    def _update(self, raw: bytes, is_static: bool) -> bool:
        now_ns = self._clocks.steady_ns()
        has_changed = False
        for child, parent, stamp_ns, at in walk_transforms(raw):
            edge = Edge(_name(parent), is_static, raw, at, stamp_ns, now_ns)
            has_changed |= self._graph.update(_name(child), edge)
            if not is_static:
                self._stamp_ns = stamp_ns
        return has_changed

    def _tell_tree(self) -> None:
        self._is_settling = False
        entries = self._graph.entries()
        if entries != self._posted:
            self._posted = entries
            self._post(FrameTreeChanged(entries))

    def _encode(self, _: None) -> tuple[bytes, int | None]:
        body = {'transforms': list(self._graph.transforms())}
        return orjson.dumps(body), self._stamp_ns or None

    def _hold(self, wait_ns: int) -> None:
        self._thread.call_later(wait_ns, self._feed.flush)

    def _fail(self, error: Exception) -> None:
        self._error = f'tf cannot be read: {type(error).__name__}: {error}'


def _name(frame: bytes) -> str:
    # Some publishers still put a slash in front.
    return frame.decode(errors='replace').removeprefix('/')
