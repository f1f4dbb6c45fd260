"""Owns the limits on the tip: is a pose or a path inside the box, is a speed below its limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.kinematics import Chain, ChainError, Pose, TipPath
from awp_ros_bridge.kinematics.chain import placement_of, pose_of
from awp_ros_bridge.ros.adapters.base import AdapterContext
from awp_ros_bridge.ros.adapters.params import outside_limits, unready

# Rounding of a boundary value, far below what any robot can place.
_SLACK_M = 1e-6
# How much farther out a path may swing that begins outside the box and leads back in.
_RETURN_SLACK_M = 1e-3

_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_locks_guard = threading.Lock()


@contextmanager
def in_use(chain: Chain) -> Iterator[Chain]:
    """Keep a chain, which owns scratch memory, to one thread at a time."""
    with _locks_guard:
        lock = _locks.setdefault(chain, threading.RLock())
    with lock:
        yield chain


class TipLimits:
    """The limits of one embodiment, asked about poses, paths and speeds of its tip."""

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        self.limits = context.limits

    @property
    def has_box(self) -> bool:
        """Tell whether the tip must stay in a box."""
        return self.limits.aabb_m is not None

    @property
    def has_any(self) -> bool:
        """Tell whether there is anything to keep."""
        return self.has_box or self.limits.max_velocity_mps is not None

    def speed(self, value_mps: float, what: str) -> GoalRefusal | None:
        """Compare a speed of the tip with its limit."""
        limit = self.limits.max_velocity_mps
        if limit is None or value_mps <= limit:
            return None
        return outside_limits(
            f'{what}: {value_mps:.4g} m/s is above the limit max_velocity_mps of {limit:g} m/s; '
            f'ask for a slower motion'
        )

    def point(self, position_m: Sequence[float], what: str) -> GoalRefusal | None:
        """Compare a position in the frame of the box with the box."""
        return self._points(np.array([position_m], dtype=np.float64), what, None)

    def path(self, chain: Chain, path: TipPath, what: str) -> GoalRefusal | None:
        """
        Compare a sampled path of the tip with every limit; the chain must be in use by the caller.

        A path that begins outside the box may lead back into it, but not farther out.
        """
        found = self._path_speed(path, what)
        if found is not None or not self.has_box:
            return found
        placement = self.base_in_box_frame(chain)
        if isinstance(placement, GoalRefusal):
            return placement
        points = path.positions_m @ placement.rotation.T + placement.translation
        return self._points(points, what, path.times_s)

    def base_in_box_frame(self, chain: Chain) -> Any:
        """Return the base of the chain in the frame of the box (SE3), or why it is not known."""
        frame = self.limits.frame
        link = self._context.ros_frame(frame) if frame else chain.base_frame
        if link == chain.base_frame:
            return placement_of(Pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
        try:
            box = chain.to_base(_ORIGIN, str(link), configuration(chain, {}))
        except ChainError:
            base = self._awp_name(chain.base_frame)
            pose = self._context.pose_in(base, str(frame)) if base and frame else None
            if pose is None:
                return unready(
                    f'the limits stand in frame {frame!r}, whose place relative to '
                    f'{chain.base_frame!r} is not known yet; wait for tf'
                )
            return placement_of(pose)
        return placement_of(box).inverse()

    def pose_in_box_frame(self, pose: Pose, frame: str) -> Pose | GoalRefusal:
        """Express a pose that is given in an AWP frame in the frame of the box, by tf or chain."""
        target = self.limits.frame
        if target is None or target == frame:
            return pose
        found = self._context.pose_in(frame, target)
        if found is not None:
            return pose_of(placement_of(found) * placement_of(pose))
        moved = self._by_chain(pose, frame)
        if moved is None:
            return unready(
                f'frame {frame!r} cannot be related to {target!r}, the frame of the limits, yet; '
                f'wait for tf or give the pose in {target!r}'
            )
        return moved

    def pose_in_base(self, chain: Chain, pose: Pose, frame: str) -> Pose | GoalRefusal:
        """Express a pose that is given in an AWP frame in the base of a chain in use."""
        link = self._context.ros_frame(frame) or frame
        if link == chain.base_frame:
            return pose
        base = self._awp_name(chain.base_frame)
        found = self._context.pose_in(frame, base) if base else None
        if found is not None:
            return pose_of(placement_of(found) * placement_of(pose))
        q = configuration(chain, self._context.joints() or {})
        try:
            return chain.to_base(pose, link, q)
        except ChainError:
            return unready(
                f'frame {frame!r} cannot be related to {chain.base_frame!r} yet; wait for tf'
            )

    def _by_chain(self, pose: Pose, frame: str) -> Pose | None:
        chain = self._context.chain()
        if chain is None:
            return None
        with in_use(chain):
            in_base = self.pose_in_base(chain, pose, frame)
            placement = self.base_in_box_frame(chain)
        if isinstance(in_base, GoalRefusal) or isinstance(placement, GoalRefusal):
            return None
        return pose_of(placement * placement_of(in_base))

    def _awp_name(self, link: str) -> str | None:
        frames = self._context.frames()
        return next((name for name in frames if self._context.ros_frame(name) == link), None)

    def _path_speed(self, path: TipPath, what: str) -> GoalRefusal | None:
        index = int(np.argmax(path.speeds_mps))
        at = f'{what}, at {path.times_s[index]:.3f} s'
        return self.speed(float(path.speeds_mps[index]), at)

    def _points(self, points_m: Any, what: str, times_s: Any) -> GoalRefusal | None:
        if self.limits.aabb_m is None:
            return None
        low, high = (np.asarray(corner) for corner in self.limits.aabb_m)
        excess = np.maximum(low - points_m, points_m - high).max(axis=1)
        start = float(excess[0]) if times_s is not None else 0.0
        allowed = start + _RETURN_SLACK_M if start > _SLACK_M else _SLACK_M
        # Written as the permission, so that NaN does not pass.
        bad = ~(excess <= allowed)
        if times_s is not None:
            bad[-1] = not excess[-1] <= _SLACK_M
        if not bool(bad.any()):
            return None
        index = int(np.argmax(bad))
        x, y, z = (float(v) for v in points_m[index])
        when = '' if times_s is None else f', at {times_s[index]:.3f} s'
        return outside_limits(
            f'{what}{when}: the tip at ({x:.3f}, {y:.3f}, {z:.3f}) m in frame '
            f'{self.limits.frame!r} is outside the box from {_corner(low)} to {_corner(high)} m'
        )


def configuration(chain: Chain, joints: Mapping[str, float]) -> list[float]:
    """Arrange joint positions for a chain; joints that are not told stand in their middle."""
    middle = np.nan_to_num((chain.lower_rad + chain.upper_rad) / 2.0, posinf=0.0, neginf=0.0)
    rows = zip(chain.joint_names, middle, strict=True)
    return [float(joints.get(name, place)) for name, place in rows]


def missing_joints(chain: Chain, joints: Mapping[str, float] | None) -> list[str]:
    """List the joints of a chain whose position is not known or not finite."""
    known = joints or {}
    return [name for name in chain.joint_names if not np.isfinite(known.get(name, np.nan))]


def _corner(corner: Any) -> str:
    return '(' + ', '.join(f'{float(v):g}' for v in corner) + ')'


_ORIGIN = Pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
