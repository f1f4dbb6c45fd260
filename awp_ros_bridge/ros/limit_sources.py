"""
Owns what executed motion and force are measured with: joint states, odometry, tf, a force sensor.

A source is looked at, at a pace that its user gives: a topic of 1000 Hz costs no more than one of
100 Hz. It answers with what it measured since, with a text where that tells nothing (which is
unsafe), or with None where there was nothing new.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message

from awp_ros_bridge.config import (
    Envelope,
    ForceSensor,
    MeasuredByJoints,
    MeasuredByOdometry,
    MeasuredByTf,
)
from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.kinematics import Chain, Pose
from awp_ros_bridge.kinematics.chain import placement_of, pose_of
from awp_ros_bridge.ros.adapters.base import AdapterContext, Limits
from awp_ros_bridge.ros.adapters.tip_limits import TipLimits
from awp_ros_bridge.ros.cdr import JointStateReader, NotPlainCdr, read_wrench_force
from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.limit_judge import (
    FORCE,
    outside_m,
    Reading,
    SPATIAL,
    SpeedOfPlace,
    VELOCITY,
)
from awp_ros_bridge.ros.newest import NewestReader
from awp_ros_bridge.ros.plan import MS

WINDOW_NS = 50 * MS  # over which places are differenced: a millimetre of noise is 0.02 m/s
JOINTS_KEPT = 4  # several drivers may share joint_states
WRENCHES_KEPT = 100  # every sample between two looks counts, up to 1000 Hz

Look = Reading | str | None


@dataclass(frozen=True, slots=True)
class Places:
    """
    What tf tells; every function is callable on any thread.

    :param ros_frame: tf frame of an AWP frame, None for an unknown one.
    :param frames: the AWP frames.
    :param pose_in: pose of an AWP frame in another one, None while unknown.
    :param placed_in: likewise, with the newest stamp on the way and the oldest arrival; both None
        where nothing on the way moves.
    """

    ros_frame: Callable[[str], str | None]
    frames: Callable[[], Sequence[str]]
    pose_in: Callable[[str, str], Pose | None]
    placed_in: Callable[[str, str], tuple[Pose, int | None, int | None] | None]

    def awp_frame(self, tf_frame: str) -> str | None:
        """Return the AWP name of a tf frame, None where it has none."""
        tf_frame = tf_frame.removeprefix('/')
        return next((n for n in self.frames() if self.ros_frame(n) == tf_frame), None)


class Source(ABC):
    """
    One way to measure; everything happens on the safety thread.

    :param label: names it towards people.
    """

    label: str

    @abstractmethod
    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe, if there is something to subscribe to."""

    @abstractmethod
    def look(self, now_ns: int) -> Look:
        """Return what was measured since the last look."""


class Inbox:
    """A subscription that wakes nobody: its newest messages are fetched by who looks."""

    def __init__(self, node: Node, message_type: Any, topic: str, depth: int) -> None:
        self._kept: deque[bytes] = deque(maxlen=depth)
        # best effort hears every publisher; a lost sample is followed by the next
        qos = QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._reader = NewestReader(node, message_type, topic, qos, self._keep)
        self._reader.dispatch(False)

    def _keep(self, data: bytes) -> None:
        self._kept.append(data)

    def take(self) -> list[bytes]:
        """Return what arrived since, oldest first."""
        if not self._reader.is_dispatched:
            return self._reader.take_all()
        out = list(self._kept)
        self._kept.clear()
        return out


class _Motion:
    """Turns a place and a speed into a reading of the limits that are declared."""

    def __init__(self, envelope: Envelope) -> None:
        self.box = envelope.spatial
        self.has_speed = envelope.max_velocity_mps is not None

    def reading(self, position_m: Sequence[float] | None, speed_mps: float | None) -> Look:
        values, where = {}, ''
        if self.box is not None and position_m is not None:
            if not all(map(math.isfinite, position_m)):
                return 'the position is not finite'
            values[SPATIAL] = outside_m(position_m, self.box.aabb_m)
            x, y, z = position_m
            where = f'tip at ({x:.3f}, {y:.3f}, {z:.3f}) m in frame {self.box.frame!r}'
        if self.has_speed:
            if speed_mps is None:
                return 'the speed is not known yet'
            if not math.isfinite(speed_mps):
                return 'the speed is not finite'
            values[VELOCITY] = speed_mps
        return Reading(values, where)


class JointTip(Source):
    """
    The tip of a chain, from joint states.

    :ivar chain: a chain of this thread's own, None until the robot description is known.
    """

    def __init__(
        self, embodiment: str, config: MeasuredByJoints, envelope: Envelope, places: Places
    ) -> None:
        self.label = config.topic
        self.chain: Chain | None = None
        self._config = config
        self._motion = _Motion(envelope)
        self._frames = _tip_limits(embodiment, envelope, places)
        self._stale_ns = config.stale_after_ms * MS
        self._inbox: Inbox | None = None
        self._cdr = JointStateReader()
        self._type = load_interface('sensor_msgs/msg/JointState')
        self._columns: tuple[tuple[str, ...], list[tuple[int, int]]] = ((), [])
        self._forget_joints()

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        self._inbox = Inbox(node, self._type, resolve(self._config.topic), JOINTS_KEPT)

    def take_chain(self, chain: Chain) -> None:
        """Measure with this chain from now on; nobody else may use it."""
        self.chain = chain
        self._forget_joints()

    def _forget_joints(self) -> None:
        count = 0 if self.chain is None else self.chain.dof
        self._q, self._dq = np.full((1, count), np.nan), np.full((1, count), np.nan)
        self._heard_ns = [0] * count
        self._stamp_ns = 0
        self._has_speeds = True
        self._columns = ((), [])
        self._speed = SpeedOfPlace(WINDOW_NS)

    def look(self, now_ns: int) -> Look:
        messages = [] if self._inbox is None else self._inbox.take()
        chain = self.chain
        if chain is None:
            return 'the robot description is not known yet'
        missing = set(range(chain.dof))
        for raw in reversed(messages):  # of each joint the newest counts
            fault = self._read(raw, missing, now_ns)
            if fault is not None:
                return fault
            if not missing:
                break
        if len(missing) == chain.dof:
            return None
        return self._fault(chain, now_ns) or self._tip(chain)

    def _read(self, raw: bytes, missing: set[int], now_ns: int) -> str | None:
        try:
            stamp_ns, q, dq, _ = self._decode(raw)
        except Exception as error:  # noqa: BLE001 what cannot be read is unsafe
            return f'a message cannot be read: {error}'
        names = self._cdr.names
        places = [(row, at) for row, at in self._places(names) if row in missing]
        if not places:
            return None  # of another body
        if len(q) != len(names) or len(dq) not in {0, len(names)}:
            return f'{len(names)} names, {len(q)} positions, {len(dq)} velocities'
        self._has_speeds = bool(dq)
        self._stamp_ns = max(self._stamp_ns, stamp_ns) if self._has_speeds else stamp_ns
        for row, at in places:
            self._q[0, row] = q[at]
            self._dq[0, row] = dq[at] if dq else 0.0
            self._heard_ns[row] = now_ns
            missing.discard(row)
        return None

    def _decode(self, raw: bytes) -> tuple[int, Sequence[float], Sequence[float], Any]:
        try:
            return self._cdr.read(raw)
        except NotPlainCdr:
            return self._cdr.read(serialize_message(deserialize_message(raw, self._type)))

    def _places(self, names: tuple[str, ...]) -> list[tuple[int, int]]:
        """Return where each joint of the chain stands in a message."""
        if names is not self._columns[0] and names != self._columns[0]:
            chain = self.chain
            known = () if chain is None else chain.joint_names
            found = [(row, names.index(n)) for row, n in enumerate(known) if n in names]
            self._columns = (names, found)
        return self._columns[1]

    def _fault(self, chain: Chain, now_ns: int) -> str | None:
        for row, name in enumerate(chain.joint_names):
            heard_ns = self._heard_ns[row]
            if heard_ns == 0:
                return f'joint {name} was not heard yet'
            if now_ns - heard_ns >= self._stale_ns:
                return f'joint {name} is silent (limit {self._stale_ns // MS} ms)'
            if not (math.isfinite(self._q[0, row]) and math.isfinite(self._dq[0, row])):
                return f'joint {name}: not finite'
        return None

    def _tip(self, chain: Chain) -> Look:
        position, speed = chain.tip_state(self._q, self._dq)
        if not self._has_speeds:
            if self._stamp_ns == 0:
                return 'without velocities and stamps no speed can be measured'
            found = self._speed.take(self._stamp_ns, position.tolist())
            if found is None:
                return 'the speed is not known yet'
            speed = found
        if self._motion.box is None:
            return self._motion.reading(None, speed)
        placement = self._frames.base_in_box_frame(chain)
        if isinstance(placement, GoalRefusal):
            return placement.detail
        place = placement.rotation @ position + placement.translation
        return self._motion.reading(place.tolist(), speed)


class OdometryTip(Source):
    """The origin of a mobile base, from its odometry."""

    def __init__(self, config: MeasuredByOdometry, envelope: Envelope, places: Places) -> None:
        self.label = config.topic
        self._config = config
        self._motion = _Motion(envelope)
        self._places = places
        self._type: Any = None
        self._inbox: Inbox | None = None

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        self._type = load_interface('nav_msgs/msg/Odometry')
        self._inbox = Inbox(node, self._type, resolve(self._config.topic), 1)

    def look(self, now_ns: int) -> Look:
        messages = [] if self._inbox is None else self._inbox.take()
        if not messages:
            return None
        try:
            message = deserialize_message(messages[-1], self._type)
        except Exception as error:  # noqa: BLE001 what cannot be read is unsafe
            return f'a message cannot be read: {error}'
        twist = message.twist.twist.linear
        speed = math.hypot(twist.x, twist.y, twist.z)
        if self._motion.box is None:
            return self._motion.reading(None, speed)
        place = self._place(message, self._motion.box.frame)
        return place if isinstance(place, str) else self._motion.reading(place, speed)

    def _place(self, message: Any, box_frame: str) -> tuple[float, ...] | str:
        pose, frame = message.pose.pose, message.header.frame_id
        position = (pose.position.x, pose.position.y, pose.position.z)
        name = self._places.awp_frame(frame)
        if name == box_frame:
            return position
        if name is None:
            return f'it is told in frame {frame!r}, which frames.include does not name'
        odom = self._places.pose_in(name, box_frame)
        if odom is None:
            return f'tf does not relate {name!r} to {box_frame!r}, the frame of the limits'
        if not all(map(math.isfinite, position)):
            return 'the position is not finite'
        moved = placement_of(odom) * placement_of(Pose(position, (0.0, 0.0, 0.0, 1.0)))
        return pose_of(moved).position_m


class TfTip(Source):
    """A frame of tf."""

    def __init__(
        self, config: MeasuredByTf, envelope: Envelope, root: str, places: Places
    ) -> None:
        self.label = f'tf of {config.tip}'
        self._tip = config.tip
        self._motion = _Motion(envelope)
        self._reference = root if envelope.spatial is None else envelope.spatial.frame
        self._places = places
        self._speed = SpeedOfPlace(WINDOW_NS)
        self._arrival_ns = 0
        self._is_known = False

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Frames are read elsewhere."""

    def look(self, now_ns: int) -> Look:
        placed = self._places.placed_in(self._tip, self._reference)
        if placed is None:
            return f'tf does not relate {self._tip!r} to {self._reference!r}'
        pose, stamp_ns, arrival_ns = placed
        if stamp_ns is None or arrival_ns is None:
            return f'nothing moves between {self._tip!r} and {self._reference!r} in tf'
        if arrival_ns == self._arrival_ns and self._is_known:
            return None
        self._arrival_ns = arrival_ns
        speed = self._speed.take(stamp_ns, pose.position_m)
        self._is_known = speed is not None
        return self._motion.reading(pose.position_m, speed)


class Force(Source):
    """The force at a sensor: the greatest of the samples since the last look."""

    def __init__(self, config: ForceSensor) -> None:
        self.label = config.topic
        self._type: Any = None
        self._inbox: Inbox | None = None

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        self._type = load_interface('geometry_msgs/msg/WrenchStamped')
        self._inbox = Inbox(node, self._type, resolve(self.label), WRENCHES_KEPT)

    def look(self, now_ns: int) -> Look:
        messages = [] if self._inbox is None else self._inbox.take()
        if not messages:
            return None
        greatest_n = 0.0
        for raw in messages:
            try:
                force_n = math.hypot(*self._decode(raw))
            except Exception as error:  # noqa: BLE001 what cannot be read is unsafe
                return f'a message cannot be read: {error}'
            if not math.isfinite(force_n):
                return 'the force is not finite'
            greatest_n = max(greatest_n, force_n)
        return Reading({FORCE: greatest_n})

    def _decode(self, raw: bytes) -> Sequence[float]:
        try:
            return read_wrench_force(raw)
        except NotPlainCdr:
            force = deserialize_message(raw, self._type).wrench.force
            return force.x, force.y, force.z


def motion_source(
    embodiment: str, envelope: Envelope, root: str, places: Places
) -> JointTip | OdometryTip | TfTip | None:
    """Return what measures the motion of an embodiment, None where nothing is to be measured."""
    config = envelope.measured
    if config is None or not envelope.is_measured:
        return None
    if isinstance(config, MeasuredByJoints):
        return JointTip(embodiment, config, envelope, places)
    if isinstance(config, MeasuredByOdometry):
        return OdometryTip(config, envelope, places)
    return TfTip(config, envelope, root, places)


def _tip_limits(embodiment: str, envelope: Envelope, places: Places) -> TipLimits:
    box = envelope.spatial
    context = AdapterContext(
        embodiment=embodiment,
        action_type='',
        limits=Limits(frame=box.frame if box else None, aabb_m=box.aabb_m if box else None),
        joints=lambda: None,
        chain=lambda: None,
        ros_frame=places.ros_frame,
        frames=places.frames,
        now_stamp=lambda: None,
        pose_in=places.pose_in,
    )
    return TipLimits(context)
