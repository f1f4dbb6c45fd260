"""Trajectories between waypoints, and the path of the tip along them."""

from importlib import resources
import math

import numpy as np
import pytest

pytest.importorskip('pinocchio')

from awp_ros_bridge.kinematics import (
    Chain,
    joint_line,
    sample_tip_line,
    sample_tip_path,
    Trajectory,
    TrajectoryError,
    Waypoint,
)

JOINTS = tuple(f'joint_{i}' for i in range(1, 7))
URDF = (resources.files('awp_ros_bridge.sim_robot') / 'arm.urdf').read_text(encoding='utf-8')
HOME = np.array([0.0, -0.01657571, 0.42794284, 0.0, 1.15942919, 0.0])


@pytest.fixture(scope='module')
def arm() -> Chain:
    return Chain.from_urdf(URDF, 'base', 'tool0', JOINTS)


def test_positions_alone_are_joined_by_lines() -> None:
    trajectory = Trajectory([Waypoint(0.0, (0.0,)), Waypoint(2.0, (1.0,))])
    state = trajectory.sample(0.5)
    assert state.positions_rad == (0.25,)
    assert state.velocities_radps == (0.5,)


@pytest.mark.parametrize('accelerations', [None, (0.0,)])
def test_splines_meet_their_ends(accelerations: tuple[float, ...] | None) -> None:
    a = Waypoint(1.0, (0.2,), (0.3,), accelerations)
    b = Waypoint(3.0, (1.1,), (-0.4,), accelerations)
    trajectory = Trajectory([a, b])
    for point, time_s in ((a, 1.0), (b, 3.0 - 1e-9)):
        state = trajectory.sample(time_s)
        assert state.positions_rad == pytest.approx(point.positions_rad, abs=1e-6)
        assert state.velocities_radps == pytest.approx(point.velocities_radps, abs=1e-6)
        if accelerations is not None:
            assert state.accelerations_radps2 == pytest.approx(accelerations, abs=1e-6)


@pytest.mark.parametrize('accelerations', [None, (0.1, 0.2)])
def test_velocity_is_the_derivative_of_position(
    accelerations: tuple[float, ...] | None,
) -> None:
    trajectory = Trajectory(
        [
            Waypoint(0.0, (0.0, 1.0), (0.1, 0.0), accelerations),
            Waypoint(0.7, (0.5, 0.2), (0.0, -0.3), accelerations),
        ]
    )
    step = 1e-6
    for time_s in np.linspace(0.05, 0.65, 9):
        low, high = trajectory.sample(time_s - step), trajectory.sample(time_s + step)
        pairs = zip(low.positions_rad, high.positions_rad, strict=True)
        slope = [(y - x) / (2 * step) for x, y in pairs]
        assert trajectory.sample(time_s).velocities_radps == pytest.approx(slope, abs=1e-5)


def test_before_and_after_it_rests() -> None:
    trajectory = Trajectory([Waypoint(1.0, (0.5,), (1.0,)), Waypoint(2.0, (0.7,), (1.0,))])
    assert trajectory.sample(-5.0).positions_rad == (0.5,)
    assert trajectory.sample(0.0).velocities_radps == (0.0,)
    assert trajectory.sample(9.0).positions_rad == (0.7,)
    assert trajectory.sample(2.0).velocities_radps == (0.0,)
    assert trajectory.segment_at(0.0) == 0
    assert trajectory.segment_at(1.5) == 1
    assert trajectory.segment_at(9.0) == 1


@pytest.mark.parametrize(
    ('waypoints', 'words'),
    [
        ([], 'at least one'),
        ([Waypoint(0.0, (0.0,)), Waypoint(0.0, (1.0,))], 'waypoint 1: time'),
        ([Waypoint(math.nan, (0.0,))], 'waypoint 0: time'),
        ([Waypoint(0.0, (0.0,)), Waypoint(1.0, (1.0, 2.0))], 'needs 1 finite'),
        ([Waypoint(0.0, (math.inf,))], 'finite'),
        ([Waypoint(0.0, (0.0,), (math.nan,))], 'finite'),
        ([Waypoint(0.0, (0.0,), (0.0, 0.0))], 'needs 1 finite'),
    ],
)
def test_no_trajectory(waypoints: list[Waypoint], words: str) -> None:
    with pytest.raises(TrajectoryError, match=words):
        Trajectory(waypoints)


def test_joint_line_keeps_its_step() -> None:
    line = joint_line([0.0, 0.0], [1.0, -0.1], 0.03)
    assert line[0] == pytest.approx([0.0, 0.0])
    assert line[-1] == pytest.approx([1.0, -0.1])
    assert float(np.abs(np.diff(line, axis=0)).max()) <= 0.03
    assert len(joint_line([0.0], [0.0], 0.1)) == 2


@pytest.mark.parametrize(
    ('start', 'end', 'step'),
    [([0.0], [0.0, 1.0], 0.1), ([math.nan], [0.0], 0.1), ([0.0], [1.0], 0.0), ([], [], 0.1)],
)
def test_no_joint_line(start: list[float], end: list[float], step: float) -> None:
    with pytest.raises(TrajectoryError):
        joint_line(start, end, step)


def test_tip_path_speed_is_exact_for_a_turn_about_the_pedestal(arm: Chain) -> None:
    turned = HOME.copy()
    turned[0] = 0.5
    trajectory = Trajectory([Waypoint(0.0, tuple(HOME)), Waypoint(2.0, tuple(turned))])
    path = sample_tip_path(arm, trajectory)
    assert path.max_speed_mps == pytest.approx(0.25 * 0.9, rel=1e-4)
    assert path.length_m == pytest.approx(0.5 * 0.9, rel=1e-3)
    assert path.outside((-0.5, -0.5, 0.0), (0.5, 0.5, 0.8)) is None
    assert path.outside((-0.5, -0.5, 0.0), (0.5, 0.2, 0.8)) is not None


def test_tip_path_sees_an_overshoot_between_two_waypoints(arm: Chain) -> None:
    fast = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    back = (-1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    trajectory = Trajectory([Waypoint(0.0, tuple(HOME), fast), Waypoint(1.0, tuple(HOME), back)])
    path = sample_tip_path(arm, trajectory)
    assert path.max_speed_mps == pytest.approx(0.9, rel=1e-3)
    assert float(path.positions_m[:, 1].max()) == pytest.approx(0.9 * math.sin(0.25), rel=1e-2)


def test_tip_path_of_one_waypoint(arm: Chain) -> None:
    path = sample_tip_path(arm, Trajectory([Waypoint(0.0, tuple(HOME))]))
    assert path.max_speed_mps == 0.0
    assert path.positions_m[0] == pytest.approx([0.0, 0.0, 0.4], abs=1e-6)


def test_tip_path_bounds_its_work(arm: Chain) -> None:
    trajectory = Trajectory([Waypoint(0.0, tuple(HOME)), Waypoint(1e6, tuple(HOME))])
    with pytest.raises(TrajectoryError, match='the limit is 20000'):
        sample_tip_path(arm, trajectory)


def test_tip_line_agrees_with_tip_path(arm: Chain) -> None:
    end = HOME + np.array([0.3, 0.2, -0.2, 0.0, 0.1, 0.0])
    line = sample_tip_line(arm, HOME, end, duration_s=2.0)
    trajectory = Trajectory([Waypoint(0.0, tuple(HOME)), Waypoint(2.0, tuple(end))])
    path = sample_tip_path(arm, trajectory)
    assert line.max_speed_mps == pytest.approx(path.max_speed_mps, rel=1e-2)
    assert line.length_m == pytest.approx(path.length_m, rel=1e-3)
