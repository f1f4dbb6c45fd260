"""Owns the speed of a whole body: the twist of its odometry, or the difference of its poses."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

from awp_ros_bridge.config import BodyRest, FramePair
from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.frame_graph import FrameGraph
from awp_ros_bridge.ros.joint_track import JointTrack, Tracks

_DIFFERENCE_NS = 20_000_000  # shortest span over which poses are differenced


class BodySpeed(Tracks):
    """Linear speed in m/s and angular speed in rad/s of one body, both without direction."""

    def __init__(self, rest: BodyRest) -> None:
        self.linear = JointTrack(rest.max_linear_mps)
        self.angular = JointTrack(rest.max_angular_radps)
        super().__init__({'linear speed': self.linear, 'angular speed': self.angular})

    def note(self, at_ns: int, linear_mps: float, angular_radps: float) -> None:
        """Note a sample."""
        self.linear.take(at_ns, 0.0, linear_mps)
        self.angular.take(at_ns, 0.0, angular_radps)


class OdometrySpeed(BodySpeed):
    """The twist of a nav_msgs/Odometry."""

    def take(self, at_ns: int, message: Any) -> None:
        """Note one message."""
        twist = message.twist.twist
        self.note(at_ns, _norm(twist.linear), _norm(twist.angular))


class TfSpeed(BodySpeed):
    """
    The speed of one tf frame in another, from the poses that tf tells.

    A transform that is told again with its old stamp is no news.
    """

    def __init__(self, rest: BodyRest, pair: FramePair) -> None:
        super().__init__(rest)
        self.pair = pair
        self._stamps: dict[str, tuple[int, int]] = {}
        self._anchor: tuple[int, Pose] | None = None

    def take(self, at_ns: int, graph: FrameGraph) -> None:
        """Look at the frames after a message of tf."""
        edges = graph.moving(self.pair.frame, self.pair.reference)
        if edges is None:
            return  # not related to each other yet
        if not edges:
            self.spoil(at_ns, f'{self.pair.frame} is fixed in {self.pair.reference}')
            return
        if not self._is_news(at_ns, edges):
            return
        pose = graph.pose_in(self.pair.frame, self.pair.reference)
        if pose is None:
            self._anchor = None
            self.spoil(at_ns, 'the transform is not one')
            return
        heard_ns = min(heard for _, heard in self._stamps.values())
        self._difference(at_ns, pose)
        self.linear.heard_ns = self.angular.heard_ns = heard_ns

    def _is_news(self, at_ns: int, edges: Sequence[tuple[str, int]]) -> bool:
        """Tell whether a transform moved on; keep when each last did."""
        found: dict[str, tuple[int, int]] = {}
        is_news = False
        for child, stamp_ns in edges:
            before = self._stamps.get(child)
            if before is None or before[0] != stamp_ns:
                is_news = True
                before = (stamp_ns, at_ns)
            found[child] = before
        self._stamps = found
        return is_news

    def _difference(self, at_ns: int, pose: Pose) -> None:
        if self._anchor is None:
            self._anchor = (at_ns, pose)
            return
        began_ns, before = self._anchor
        if at_ns - began_ns < _DIFFERENCE_NS:
            return
        self._anchor = (at_ns, pose)
        passed_s = (at_ns - began_ns) * 1e-9
        self.note(
            at_ns,
            math.dist(before.position_m, pose.position_m) / passed_s,
            _angle(before.quaternion_xyzw, pose.quaternion_xyzw) / passed_s,
        )


def _norm(vector: Any) -> float:
    return math.sqrt(vector.x * vector.x + vector.y * vector.y + vector.z * vector.z)


def _angle(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the angle between two unit quaternions, rad; small ones exactly."""
    sign = 1.0 if sum(a * b for a, b in zip(first, second, strict=True)) >= 0.0 else -1.0
    apart = math.dist(first, [sign * value for value in second])
    return 4.0 * math.asin(min(1.0, apart / 2.0))
