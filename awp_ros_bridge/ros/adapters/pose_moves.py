"""Owns the check of a move to a pose: frame, orientation, box, reach, and the speed to ask for."""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Any

import numpy as np

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.kinematics import Chain, Pose, sample_tip_line, solve_inverse, TipPath
from awp_ros_bridge.manifest.shapes import UNIT_QUATERNION_TOLERANCE
from awp_ros_bridge.ros.adapters.base import AdapterContext
from awp_ros_bridge.ros.adapters.params import bad_params, not_finite, unready
from awp_ros_bridge.ros.adapters.tip_limits import configuration, in_use, missing_joints, TipLimits

Json = dict[str, Any]

# The part of the allowed speed that is asked for; the rest is for the controller's overshoot.
_SPEED_SHARE = 0.95
# Few starts: the check runs while the engine waits, and a near branch is what a robot takes.
_EXTRA_SEEDS = 4
# What a goal waits for at most, and a few that were refused.
_KEPT_ENDS = 8
# Far more than the noise of resting joints, far less than the way to another branch.
_SAME_BRANCH_RAD = 0.01
# How many metres of way a radian of turning counts, for the progress of moves that only turn.
_TURN_M_PER_RAD = 0.1


@dataclass(frozen=True, slots=True)
class Move:
    """
    A move that keeps every limit.

    :param joints_rad: the configuration at the end, None where no chain tells it.
    :param velocity: what to ask the server for: m/s of the tip for a straight line, rad/s of the
        joint that moves farthest for a joint-space move; None where it is not known.
    """

    is_straight: bool
    joints_rad: tuple[float, ...] | None
    velocity: float | None
    tip_velocity_mps: float


@dataclass(frozen=True, slots=True)
class _End:
    urdf: str
    target: Pose
    here: list[float]
    joints_rad: tuple[float, ...]


class Ends:
    """
    The configurations that were found for the newest targets; any thread.

    A goal is planned twice, when it is admitted and when it is sent, by then perhaps from
    elsewhere. What it ends in does not depend on where it begins, unless the robot has moved to
    where another branch is nearer; everything else is computed again.
    """

    def __init__(self) -> None:
        self._newest: tuple[_End, ...] = ()

    def find(self, chain: Chain, target: Pose, here: list[float]) -> tuple[float, ...] | None:
        """Return what was found from near here, None where it is to be searched."""
        for end in self._newest:
            if end.target == target and end.urdf == chain.urdf:
                moved = zip(here, end.here, strict=True)
                if all(abs(a - b) <= _SAME_BRANCH_RAD for a, b in moved):
                    return end.joints_rad
        return None

    def keep(
        self, chain: Chain, target: Pose, here: list[float], joints_rad: tuple[float, ...]
    ) -> None:
        """Remember what was found; of two threads at once one may be forgotten."""
        end = _End(chain.urdf, target, here, joints_rad)
        self._newest = (end, *self._newest[: _KEPT_ENDS - 1])


def plan_move(
    context: AdapterContext,
    params: Json,
    velocity_mps: float,
    is_straight: bool,
    is_speed_bounded: bool,
    ends: Ends | None = None,
) -> Move | GoalRefusal:
    """
    Check a move from where the robot is now.

    :param velocity_mps: highest speed of the tip
    :param is_speed_bounded: the server itself keeps the tip below the speed it is told
    :param ends: what earlier plans ended in
    """
    limits = TipLimits(context)
    found = pose_refusal(context, params['pose']) or limits.speed(
        velocity_mps, 'params.max_velocity_mps'
    )
    if found is not None:
        return found
    target = pose_of_params(params['pose'])
    found = target_refusal(limits, target, params['pose']['frame'])
    if found is not None:
        return found
    chain: Chain | None = context.chain()
    asked = velocity_mps * _SPEED_SHARE
    if chain is None:
        return _without_chain(limits, asked, is_straight, is_speed_bounded)
    missing = missing_joints(chain, context.joints())
    if missing:
        return unready(f'no position is known of {", ".join(missing)}; wait for joint states')
    with in_use(chain):
        in_base = limits.pose_in_base(chain, target, params['pose']['frame'])
        if isinstance(in_base, GoalRefusal):
            return in_base
        here = configuration(chain, context.joints() or {})
        end = _end(chain, in_base, here, ends or Ends())
        if isinstance(end, GoalRefusal):
            return end
        return _with_chain(chain, limits, here, in_base, end, asked, is_straight)


def pose_of_params(value: Json) -> Pose:
    """Return a pose of the params with an orientation of length one."""
    x, y, z = (float(v) for v in value['p_m'])
    length = math.hypot(*value['q'])
    qx, qy, qz, qw = (float(v) / length for v in value['q'])
    return Pose((x, y, z), (qx, qy, qz, qw))


def remaining_m(context: AdapterContext, params: Json) -> float | None:
    """Measure the way from the tip to the target, turning included; None where unknown."""
    chain: Chain | None = context.chain()
    joints = context.joints()
    if chain is None or missing_joints(chain, joints):
        return None
    with in_use(chain):
        target = TipLimits(context).pose_in_base(
            chain, pose_of_params(params['pose']), params['pose']['frame']
        )
        if isinstance(target, GoalRefusal):
            return None
        tip = chain.forward(configuration(chain, joints or {}))
    return tip.distance_m(target) + _TURN_M_PER_RAD * tip.angle_rad(target)


def pose_refusal(context: AdapterContext, value: Json) -> GoalRefusal | None:
    """Return why a pose of the params is none: not finite, an unknown frame, no orientation."""
    at = not_finite(value, 'params.pose')
    if at is not None:
        return bad_params(f'{at}: not a finite number')
    frame = value['frame']
    if not context.ros_frame(frame):
        known = ', '.join(context.frames()) or 'none yet'
        return bad_params(f'params.pose.frame: unknown frame {frame!r}; known frames: {known}')
    length = math.hypot(*value['q'])
    if not abs(length - 1.0) <= UNIT_QUATERNION_TOLERANCE:
        return bad_params(
            f'params.pose.q: a quaternion of length {length:.4g} is no orientation; it must have '
            f'length 1 within {UNIT_QUATERNION_TOLERANCE:g}'
        )
    return None


def target_refusal(limits: TipLimits, target: Pose, frame: str) -> GoalRefusal | None:
    """Return why a target is outside the box, None where it is inside or there is no box."""
    if not limits.has_box:
        return None
    end = limits.pose_in_box_frame(target, frame)
    if isinstance(end, GoalRefusal):
        return end
    return limits.point(end.position_m, 'params.pose.p_m')


def _without_chain(
    limits: TipLimits, asked_mps: float, is_straight: bool, is_speed_bounded: bool
) -> Move | GoalRefusal:
    if limits.has_box:
        # Where a move begins is as unknown as the way of a joint-space move.
        return unready('the path cannot be checked: the robot description is not known yet')
    if is_straight:
        return Move(True, None, asked_mps, asked_mps)
    if limits.limits.max_velocity_mps is not None and not is_speed_bounded:
        return unready(
            'the speed of a joint-space move cannot be bounded: the robot description is not '
            'known yet'
        )
    return Move(False, None, None, asked_mps)


def _end(
    chain: Chain, target: Pose, here: list[float], ends: Ends
) -> tuple[float, ...] | GoalRefusal:
    known = ends.find(chain, target, here)
    if known is not None:
        return known
    result = solve_inverse(chain, target, here, extra_seeds=_EXTRA_SEEDS)
    if result.q_rad is None:
        return bad_params(f'params.pose: out of reach: {result.reason}')
    end = tuple(float(v) for v in result.q_rad)
    ends.keep(chain, target, here, end)
    return end


def _with_chain(
    chain: Chain,
    limits: TipLimits,
    here: list[float],
    target: Pose,
    end: tuple[float, ...],
    asked_mps: float,
    is_straight: bool,
) -> Move | GoalRefusal:
    if is_straight:
        # The box is convex: a straight line is inside it when both its ends are.
        ends = np.array([chain.tip_position(here), np.array(target.position_m)])
        line = TipPath(np.array([0.0, 1.0]), ends, np.zeros(2))
        found = limits.path(chain, line, 'params.pose: on the straight line')
        return found if found is not None else Move(True, end, asked_mps, asked_mps)
    path = sample_tip_line(chain, here, end)
    speeds = path.speeds_mps
    farthest_rad = max(abs(b - a) for a, b in zip(here, end, strict=True))
    # Speeds of the sample belong to a move of one second; stretch it to the speed asked for.
    fastest = float(np.max(speeds))
    stretch = fastest / asked_mps if fastest > 1e-9 else 1.0
    stretched = TipPath(path.times_s * stretch, path.positions_m, speeds / max(stretch, 1e-9))
    found = limits.path(chain, stretched, 'params.pose: on the way in joint space')
    if found is not None:
        return found
    velocity = farthest_rad / stretch if farthest_rad > 1e-6 else None
    return Move(False, end, velocity, asked_mps)
