"""The path of the tip, sampled in arrays, is the one that is computed instant by instant."""

from __future__ import annotations

from importlib import resources
from itertools import pairwise
import math

import numpy as np
import pytest

pytest.importorskip('pinocchio')

from awp_ros_bridge.kinematics import (
    Chain,
    ChainError,
    sample_tip_line,
    sample_tip_path,
    Trajectory,
    TrajectoryError,
    Waypoint,
)

JOINTS = tuple(f'joint_{i}' for i in range(1, 7))
URDF = (resources.files('awp_ros_bridge.sim_robot') / 'arm.urdf').read_text(encoding='utf-8')
HOME = (0.0, -0.01657571, 0.42794284, 0.0, 1.15942919, 0.0)

# A tilted base behind a rail that stays where it is, a wheel without limits, a slide.
RAIL = """
<robot name="rail">
  <link name="floor"/><link name="cart"/><link name="plate"/><link name="wheel"/>
  <link name="slide"/><link name="tip"/>
  <joint name="ride" type="prismatic">
    <parent link="floor"/><child link="cart"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/>
  </joint>
  <joint name="mount" type="fixed">
    <parent link="cart"/><child link="plate"/><origin xyz="0.1 0.2 0.3" rpy="0.4 -0.3 0.9"/>
  </joint>
  <joint name="turn" type="continuous">
    <parent link="plate"/><child link="wheel"/><axis xyz="0 0.6 0.8"/>
    <limit velocity="9" effort="1"/>
  </joint>
  <joint name="push" type="prismatic">
    <parent link="wheel"/><child link="slide"/><axis xyz="1 0 0"/>
    <origin xyz="0 0.1 0" rpy="0 0.5 0"/><limit lower="-2" upper="2" velocity="9" effort="1"/>
  </joint>
  <joint name="hand" type="fixed">
    <parent link="slide"/><child link="tip"/><origin xyz="0.05 0.3 -0.2" rpy="1 0 0"/>
  </joint>
</robot>
"""


def arm(joints: tuple[str, ...] = JOINTS, base: str = 'base') -> Chain:
    return Chain.from_urdf(URDF, base, 'tool0', joints)


CHAINS = {
    'arm': arm(),
    'arm in another order': arm(JOINTS[3:] + JOINTS[:3]),
    'arm in the world': arm(base='world'),
    'some joints of the arm': arm(('joint_2', 'joint_5')),
    'rail': Chain.from_urdf(RAIL, 'plate', 'tip', ('turn', 'push')),
    'rail in another order': Chain.from_urdf(RAIL, 'plate', 'tip', ('push', 'turn')),
}


# ---------------------------------------------------------------- one instant at a time


def instant(a: Waypoint, b: Waypoint, t: float) -> tuple[list[float], list[float]]:
    """Interpolate as ros2_control's joint_trajectory_controller does, joint by joint."""
    h = b.time_s - a.time_s
    va, vb, aa, ab = (
        a.velocities_radps,
        b.velocities_radps,
        a.accelerations_radps2,
        b.accelerations_radps2,
    )
    positions, velocities = [], []
    for i, (x, y) in enumerate(zip(a.positions_rad, b.positions_rad, strict=True)):
        d = y - x
        if va is None or vb is None:
            c = [x, d / h]
        elif aa is None or ab is None:
            u, w = va[i], vb[i]
            c = [x, u, (3 * d / h - 2 * u - w) / h, (-2 * d / h + u + w) / h**2]
        else:
            u, w, g, k = va[i], vb[i], aa[i], ab[i]
            c = [
                x,
                u,
                g / 2,
                (20 * d - (8 * w + 12 * u) * h - (3 * g - k) * h**2) / (2 * h**3),
                (-30 * d + (14 * w + 16 * u) * h + (3 * g - 2 * k) * h**2) / (2 * h**4),
                (12 * d - 6 * (w + u) * h + (k - g) * h**2) / (2 * h**5),
            ]
        positions.append(sum(factor * t**n for n, factor in enumerate(c)))
        velocities.append(sum(n * factor * t ** (n - 1) for n, factor in enumerate(c) if n))
    return positions, velocities


def steps(a: Waypoint, b: Waypoint) -> int:
    """Count the steps of a segment at the default bounds."""
    h = b.time_s - a.time_s
    travel = [abs(y - x) for x, y in zip(a.positions_rad, b.positions_rad, strict=True)]
    if a.velocities_radps is not None and b.velocities_radps is not None:
        ends = zip(travel, a.velocities_radps, b.velocities_radps, strict=True)
        travel = [1.5 * d + h * (abs(u) + abs(w)) for d, u, w in ends]
    return math.ceil(max(max(travel) / 0.02, h / 0.1, 4))


def slow_path(chain: Chain, trajectory: Trajectory) -> tuple[list[float], np.ndarray, list[float]]:
    """Compute the samples of a path one after the other: times, positions, speeds."""
    times, places, speeds = [], [], []
    for a, b in pairwise(trajectory.waypoints):
        for time_s in np.linspace(a.time_s, b.time_s, steps(a, b) + 1):
            q, dq = instant(a, b, float(time_s) - a.time_s)
            times.append(float(time_s))
            places.append(chain.forward(q).position_m)
            speeds.append(float(np.linalg.norm(chain.tip_jacobian(q)[:3] @ np.array(dq))))
    return times, np.array(places), speeds


def random_trajectory(chain: Chain, scatter: np.random.Generator) -> Trajectory:
    """Make a trajectory of lines, cubics and quintics."""

    def row(size: float) -> tuple[float, ...]:
        return tuple(scatter.uniform(-size, size, chain.dof).tolist())

    points, time_s, place = [], float(scatter.uniform(0.0, 2.0)), np.array(row(1.0))
    for _ in range(int(scatter.integers(2, 7))):
        told = scatter.integers(0, 5)
        velocities = row(0.8) if told > 0 else None
        accelerations = row(2.0) if told in {0, 1, 2} else None
        points.append(Waypoint(time_s, tuple(place.tolist()), velocities, accelerations))
        time_s += float(scatter.uniform(0.005, 0.9))
        place = place + row(0.25)
    return Trajectory(points)


@pytest.mark.parametrize('name', CHAINS)
def test_arrays_agree_with_instants(name: str) -> None:
    chain, scatter = CHAINS[name], np.random.default_rng(5)
    for _ in range(8):
        trajectory = random_trajectory(chain, scatter)
        path = sample_tip_path(chain, trajectory)
        times, places, speeds = slow_path(chain, trajectory)
        assert path.times_s == pytest.approx(times, abs=1e-9)
        assert np.abs(path.positions_m - places).max() < 1e-9
        assert path.speeds_mps == pytest.approx(speeds, rel=0.0, abs=1e-9)


@pytest.mark.parametrize('name', CHAINS)
def test_a_state_is_on_the_path(name: str) -> None:
    chain, scatter = CHAINS[name], np.random.default_rng(6)
    for _ in range(5):
        trajectory = random_trajectory(chain, scatter)
        for a, b in pairwise(trajectory.waypoints):
            for share in (0.0, 0.3, 0.99):
                t = share * (b.time_s - a.time_s)
                state, expected = trajectory.sample(a.time_s + t), instant(a, b, t)
                assert state.positions_rad == pytest.approx(expected[0], abs=1e-9)
                assert state.velocities_radps == pytest.approx(expected[1], abs=1e-9)


@pytest.mark.parametrize('name', CHAINS)
def test_a_line_agrees_with_single_configurations(name: str) -> None:
    chain, scatter = CHAINS[name], np.random.default_rng(7)
    start, end = scatter.uniform(-0.5, 0.5, (2, chain.dof))
    line = sample_tip_line(chain, start, end, duration_s=2.0)
    assert line.positions_m[0] == pytest.approx(chain.tip_position(start), abs=1e-12)
    assert line.positions_m[-1] == pytest.approx(chain.tip_position(end), abs=1e-12)
    speed = chain.tip_speed_mps(end, (end - start) / 2.0)
    assert line.speeds_mps[-1] == pytest.approx(speed, abs=1e-12)
    jacobian = chain.tip_jacobian(end, local=True)[:3]
    assert speed == pytest.approx(float(np.linalg.norm(jacobian @ (end - start) / 2.0)))


# ---------------------------------------------------------------- what cannot be computed


@pytest.mark.parametrize(
    ('velocity', 'acceleration', 'words'),
    [
        (1e308, None, 'inf samples are needed'),
        (1e300, 0.0, 'samples are needed'),
        (0.0, 1e300, 'too large'),
        (0.0, 1.7e308, 'too large'),
    ],
)
def test_numbers_too_large_are_refused(
    velocity: float, acceleration: float | None, words: str
) -> None:
    def point(time_s: float, factor: float) -> Waypoint:
        velocities = (velocity * factor, *HOME[1:])
        accelerations = None if acceleration is None else (acceleration * factor,) * 6
        return Waypoint(time_s, HOME, velocities, accelerations)

    with pytest.raises(TrajectoryError, match=words):
        sample_tip_path(CHAINS['arm'], Trajectory([point(0.0, 1.0), point(9.0, -1.0)]))


def test_the_base_stands_still() -> None:
    with pytest.raises(ChainError, match="'link_2' cannot be the base: joint 'joint_2'"):
        arm(base='link_2')
    with pytest.raises(ChainError, match="'plate' cannot be the base: joint 'ride'"):
        Chain.from_urdf(RAIL, 'plate', 'tip', ('ride', 'turn'))
    assert arm(('joint_3', 'joint_4'), base='link_2').dof == 2


@pytest.mark.parametrize('shape', [(2, 5), (6,), (1, 6, 1)])
def test_states_have_a_row_each(shape: tuple[int, ...]) -> None:
    with pytest.raises(ChainError, match='has 6 joints'):
        CHAINS['arm'].tip_motion(np.zeros(shape), np.zeros((2, 6)))
    with pytest.raises(ChainError, match='has 6 joints'):
        CHAINS['arm'].tip_motion(np.zeros((2, 6)), np.zeros(shape))


def test_results_outlive_the_next_question() -> None:
    chain = CHAINS['arm']
    first, motion = chain.tip_position(HOME), chain.tip_motion(np.array([HOME]), np.ones((1, 6)))
    place, jacobian = chain.tip_placement(HOME), chain.tip_jacobian(HOME)
    before = first.copy(), motion[0].copy(), np.array(place.homogeneous), jacobian.copy()
    chain.tip_motion(np.full((1, 6), 0.7), np.zeros((1, 6)))
    chain.tip_jacobian(np.full(6, 0.7))
    for value, kept in zip((first, motion[0], place.homogeneous, jacobian), before, strict=True):
        assert np.array_equal(value, kept)
