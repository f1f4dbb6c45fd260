"""Owns inverse kinematics: a configuration that brings the tip to a pose, or why there is none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import math
from typing import Any

import numpy as np
import pinocchio as pin

from awp_ros_bridge.kinematics.chain import Chain, ChainError, placement_of, Pose, Vector

_MAX_STEP_RAD = 0.4
_DAMPING = 1e-3
_PATIENCE = 8  # steps without progress before a seed is given up
_SEED_OF_SEEDS = 20240517
_UNIT = np.eye(6)


@dataclass(frozen=True, slots=True)
class InverseResult:
    """
    What the search found.

    :ivar q_rad: the configuration, None where none was found
    :ivar reason: why there is none, empty where there is one
    :ivar position_error_m: what remains between tip and target for the best configuration seen
    :ivar angle_error_rad: the same for the orientation
    """

    q_rad: Vector | None
    reason: str
    position_error_m: float
    angle_error_rad: float


def solve_inverse(
    chain: Chain,
    target: Pose,
    seed_rad: Sequence[float] | Vector,
    *,
    extra_seeds: int = 8,
    max_iterations: int = 60,
    position_tolerance_m: float = 1e-5,
    angle_tolerance_rad: float = 1e-5,
) -> InverseResult:
    """
    Search a configuration within the joint limits whose tip has the target pose in the base frame.

    Damped least squares from the given seed first, so that a chain stays in its branch, then from
    the middle of the joint ranges and from scattered configurations that are the same in every
    call. Same arguments, same answer.

    :param extra_seeds: how many further starts to try when the seed leads nowhere
    """
    try:
        placement = placement_of(target)
    except ChainError as error:
        return InverseResult(None, str(error), math.inf, math.inf)
    best = (math.inf, math.inf)
    for seed in _seeds(chain, seed_rad, extra_seeds):
        q, position_error, angle_error = _descend(
            chain, placement, seed, max_iterations, position_tolerance_m, angle_tolerance_rad
        )
        if position_error <= position_tolerance_m and angle_error <= angle_tolerance_rad:
            q = _nearest_turn(chain, q, np.asarray(seed_rad, dtype=np.float64))
            return InverseResult(q, '', position_error, angle_error)
        best = min(best, (position_error, angle_error))
    x, y, z = target.position_m
    reason = (
        f'no configuration within the joint limits reaches ({x:.4f}, {y:.4f}, {z:.4f}) m in '
        f'{chain.base_frame!r} with this orientation; {best[0]:.4f} m and {best[1]:.4f} rad remain'
    )
    return InverseResult(None, reason, *best)


def _seeds(chain: Chain, first_rad: Sequence[float] | Vector, extra: int) -> Iterator[Vector]:
    low = np.maximum(chain.lower_rad, -math.pi)
    high = np.minimum(chain.upper_rad, math.pi)
    yield np.clip(np.asarray(first_rad, dtype=np.float64), chain.lower_rad, chain.upper_rad)
    if extra > 0:
        yield (low + high) / 2.0
    scatter = np.random.default_rng(_SEED_OF_SEEDS)
    for _ in range(extra - 1):
        yield low + scatter.random(chain.dof) * (high - low)


def _descend(
    chain: Chain,
    placement: object,
    seed: Vector,
    max_iterations: int,
    position_tolerance_m: float,
    angle_tolerance_rad: float,
) -> tuple[Vector, float, float]:
    """Walk from one seed; return the last configuration and its two errors."""
    q = seed
    best, patience = math.inf, _PATIENCE
    for _ in range(max_iterations):
        tip_to_target = chain.tip_placement(q).actInv(placement)
        error, position_error, angle_error = _error(tip_to_target)
        if position_error <= position_tolerance_m and angle_error <= angle_tolerance_rad:
            return q, position_error, angle_error
        total = position_error + angle_error
        patience = _PATIENCE if total < 0.95 * best else patience - 1
        best = min(best, total)
        if patience == 0:
            return q, position_error, angle_error
        jacobian = pin.Jlog6(tip_to_target.inverse()) @ chain.tip_jacobian(q, local=True)
        # Less damping near the goal: the last steps are Newton's.
        damping = _DAMPING * min(1.0, float(error @ error)) + 1e-12
        step = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + damping * _UNIT, error)
        largest = float(np.abs(step).max())
        if largest > _MAX_STEP_RAD:
            step *= _MAX_STEP_RAD / largest
        q = np.minimum(np.maximum(q + step, chain.lower_rad), chain.upper_rad)
    return q, *_error(chain.tip_placement(q).actInv(placement))[1:]


def _error(tip_to_target: Any) -> tuple[Vector, float, float]:
    """Return the twist to the target, how far it shifts (m) and how far it turns (rad)."""
    error: Vector = pin.log6(tip_to_target).vector
    x, y, z, rx, ry, rz = error.tolist()
    return error, math.hypot(x, y, z), math.hypot(rx, ry, rz)


def _nearest_turn(chain: Chain, q: Vector, reference: Vector) -> Vector:
    """Shift revolute joints by whole turns towards a reference, where the limits allow it."""
    turns = np.round((reference - q) / (2.0 * math.pi)) * 2.0 * math.pi
    turns[~chain.revolute] = 0.0
    shifted = q + turns
    allowed = (shifted >= chain.lower_rad) & (shifted <= chain.upper_rad)
    return np.where(allowed, shifted, q)
