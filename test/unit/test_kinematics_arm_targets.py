"""The simulated arm makes every move that agents ask of it, in PTP and LIN, without ROS."""

from itertools import permutations, product

import numpy as np
import pytest

pytest.importorskip('pinocchio')

from awp_ros_bridge.kinematics import (
    Chain,
    Pose,
    sample_tip_path,
    smallest_singular_value,
    solve_inverse,
    Trajectory,
)
from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_MAX_ACCELERATION_RADPS2,
    load_arm_chain,
    load_urdf,
)
from awp_ros_bridge.sim_robot.planner import (
    MoveLimits,
    plan_lin,
    plan_ptp,
    PlanError,
    solve_pose,
)

LOW_M, HIGH_M = (-0.5, -0.5, 0.0), (0.5, 0.5, 0.8)
IDENTITY = (0.0, 0.0, 0.0, 1.0)
TARGETS = {
    'home': (0.0, 0.0, 0.4),
    'demo_1': (0.3, 0.2, 0.5),
    'demo_2': (-0.2, 0.1, 0.3),
    'demo_3': (0.0, -0.3, 0.45),
    'suite_1': (0.4, 0.4, 0.6),
    'suite_2': (-0.4, 0.3, 0.2),
    'suite_3': (0.0, -0.45, 0.5),
}
CORNERS = {
    f'corner_{i}': tuple(corner)
    for i, corner in enumerate(product((-0.5, 0.5), (-0.5, 0.5), (0.0, 0.8)))
}
PAIRS = list(permutations(TARGETS, 2))
TIP_MPS = 0.3


@pytest.fixture(scope='module')
def arm() -> Chain:
    return load_arm_chain(load_urdf())


@pytest.fixture(scope='module')
def limits(arm: Chain) -> MoveLimits:
    return MoveLimits(
        max_velocity_radps=tuple(arm.max_velocity_radps),
        max_acceleration_radps2=ARM_MAX_ACCELERATION_RADPS2,
        max_tip_speed_mps=TIP_MPS,
        max_tip_acceleration_mps2=0.6,
    )


def check_move(arm: Chain, trajectory: Trajectory, target: Pose) -> None:
    """Check that a move ends at its target, inside the box, away from singularities, in limits."""
    end = arm.forward(trajectory.waypoints[-1].positions_rad)
    assert end.distance_m(target) < 1e-4
    assert end.angle_rad(target) < 1e-4
    path = sample_tip_path(arm, trajectory, max_step_rad=0.05)
    assert path.max_speed_mps <= TIP_MPS * 1.01
    assert path.outside(np.array(LOW_M) - 1e-4, np.array(HIGH_M) + 1e-4) is None
    top = np.array(ARM_MAX_ACCELERATION_RADPS2)
    for time_s in np.linspace(0.0, trajectory.duration_s, 60):
        state = trajectory.sample(float(time_s))
        assert smallest_singular_value(arm, state.positions_rad) > 0.2
        assert (np.abs(state.velocities_radps) <= arm.max_velocity_radps).all()
        assert (np.abs(state.accelerations_radps2) <= top).all()


def test_home_is_what_it_says(arm: Chain) -> None:
    home = Pose(TARGETS['home'], IDENTITY)
    assert arm.forward(ARM_HOME_RAD).distance_m(home) < 1e-6
    assert arm.forward(ARM_HOME_RAD).angle_rad(home) < 1e-6


def test_the_whole_box_is_reachable_in_one_branch(arm: Chain) -> None:
    axis = np.linspace(-0.5, 0.5, 6)
    for x, y, z in product(axis, axis, np.linspace(0.0, 0.8, 5)):
        target = Pose((float(x), float(y), float(z)), IDENTITY)
        result = solve_inverse(arm, target, ARM_HOME_RAD, extra_seeds=0)
        assert result.q_rad is not None, target
        assert smallest_singular_value(arm, result.q_rad) > 0.2, target


@pytest.mark.parametrize(('start', 'end'), PAIRS, ids=[f'{a}-{b}' for a, b in PAIRS])
def test_every_pair_in_ptp_and_lin(
    arm: Chain, limits: MoveLimits, start: str, end: str
) -> None:
    from_rad = solve_pose(arm, Pose(TARGETS[start], IDENTITY), ARM_HOME_RAD)
    target = Pose(TARGETS[end], IDENTITY)
    ptp = plan_ptp(arm, from_rad, solve_pose(arm, target, from_rad), limits)
    check_move(arm, ptp, target)
    lin = plan_lin(arm, from_rad, target, limits)
    check_move(arm, lin, target)
    check_straight(arm, lin, np.array(TARGETS[start]), np.array(TARGETS[end]))
    distance_m = float(np.linalg.norm(np.subtract(TARGETS[start], TARGETS[end])))
    assert 1.0 < lin.duration_s < 5.0
    assert lin.duration_s >= distance_m / TIP_MPS


def check_straight(
    arm: Chain, trajectory: Trajectory, start_m: np.ndarray, end_m: np.ndarray
) -> None:
    """Check that the tip keeps to the line within a tenth of a millimetre."""
    direction = (end_m - start_m) / np.linalg.norm(end_m - start_m)
    for time_s in np.linspace(0.0, trajectory.duration_s, 80):
        offset = arm.tip_position(trajectory.sample(float(time_s)).positions_rad) - start_m
        assert np.linalg.norm(offset - direction * (offset @ direction)) < 1e-4


@pytest.mark.parametrize('corner', CORNERS)
def test_lin_from_home_to_every_corner_and_back(
    arm: Chain, limits: MoveLimits, corner: str
) -> None:
    target = Pose(CORNERS[corner], IDENTITY)
    there = plan_lin(arm, ARM_HOME_RAD, target, limits)
    check_move(arm, there, target)
    home = arm.forward(ARM_HOME_RAD)
    check_move(arm, plan_lin(arm, there.waypoints[-1].positions_rad, home, limits), home)


def test_a_turn_of_the_tool_on_the_way(arm: Chain, limits: MoveLimits) -> None:
    half = np.sqrt(0.5)
    target = Pose((0.1, 0.1, 0.4), (0.0, 0.0, float(half), float(half)))
    check_move(arm, plan_lin(arm, ARM_HOME_RAD, target, limits), target)


def test_no_move_is_over_at_once(arm: Chain, limits: MoveLimits) -> None:
    assert plan_ptp(arm, ARM_HOME_RAD, ARM_HOME_RAD, limits).duration_s == 0.0
    assert plan_lin(arm, ARM_HOME_RAD, arm.forward(ARM_HOME_RAD), limits).duration_s == 0.0


def test_move_time_is_kept_unless_the_limits_need_longer(
    arm: Chain, limits: MoveLimits
) -> None:
    end = solve_pose(arm, Pose((0.3, 0.2, 0.5), IDENTITY), ARM_HOME_RAD)
    slow = MoveLimits(
        limits.max_velocity_radps, limits.max_acceleration_radps2, 0.5, 9.0, move_time_s=6.0
    )
    fast = MoveLimits(
        limits.max_velocity_radps, limits.max_acceleration_radps2, 0.5, 9.0, move_time_s=0.01
    )
    assert plan_ptp(arm, ARM_HOME_RAD, end, slow).duration_s == pytest.approx(6.0)
    quick = plan_ptp(arm, ARM_HOME_RAD, end, fast)
    assert quick.duration_s > 0.5
    assert sample_tip_path(arm, quick).max_speed_mps <= 0.505


@pytest.mark.parametrize(
    ('target', 'words'),
    [
        (Pose((3.0, 0.0, 0.4), IDENTITY), 'along the line'),
        (Pose((-1.3, 0.0, 0.4), IDENTITY), 'along the line'),
    ],
)
def test_lin_says_where_it_fails(
    arm: Chain, limits: MoveLimits, target: Pose, words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        plan_lin(arm, ARM_HOME_RAD, target, limits)


def test_ptp_outside_the_joint_limits(arm: Chain, limits: MoveLimits) -> None:
    with pytest.raises(PlanError, match='joint_1 at'):
        plan_ptp(arm, ARM_HOME_RAD, (3.5, 0.0, 0.0, 0.0, 0.0, 0.0), limits)


def test_pose_out_of_reach(arm: Chain) -> None:
    with pytest.raises(PlanError, match='no configuration'):
        solve_pose(arm, Pose((3.0, 0.0, 0.4), IDENTITY), ARM_HOME_RAD)
