"""Inverse kinematics: found, not found, within limits, the same every time."""

from importlib import resources
import math

import numpy as np
import pytest

pytest.importorskip('pinocchio')

from awp_ros_bridge.kinematics import Chain, Pose, solve_inverse

JOINTS = tuple(f'joint_{i}' for i in range(1, 7))
URDF = (resources.files('awp_ros_bridge.sim_robot') / 'arm.urdf').read_text(encoding='utf-8')
HOME = (0.0, -0.01657571, 0.42794284, 0.0, 1.15942919, 0.0)
DOWN = (0.0, 0.0, 0.0, 1.0)


@pytest.fixture(scope='module')
def arm() -> Chain:
    return Chain.from_urdf(URDF, 'base', 'tool0', JOINTS)


def test_solution_brings_the_tip_there(arm: Chain) -> None:
    target = Pose((0.3, 0.2, 0.5), DOWN)
    result = solve_inverse(arm, target, HOME)
    assert result.q_rad is not None
    assert result.reason == ''
    reached = arm.forward(result.q_rad)
    assert reached.distance_m(target) < 2e-5
    assert reached.angle_rad(target) < 2e-5
    assert arm.limit_violations(result.q_rad) == ''


def test_reachable_poses_are_found(arm: Chain) -> None:
    scatter = np.random.default_rng(7)
    found = 0
    for _ in range(100):
        q = arm.lower_rad + scatter.random(6) * (arm.upper_rad - arm.lower_rad)
        target = arm.forward(q)
        result = solve_inverse(arm, target, HOME)
        if result.q_rad is None:
            continue
        found += 1
        assert arm.limit_violations(result.q_rad) == ''
        assert arm.forward(result.q_rad).distance_m(target) < 2e-5
    assert found >= 95


def test_same_question_same_answer(arm: Chain) -> None:
    target = Pose((-0.5, 0.5, 0.0), (0.5, 0.5, -0.5, 0.5))
    first, second = (solve_inverse(arm, target, HOME) for _ in range(2))
    assert (first.q_rad is None) == (second.q_rad is None)
    if first.q_rad is not None and second.q_rad is not None:
        assert np.array_equal(first.q_rad, second.q_rad)


def test_a_seed_at_the_target_stays(arm: Chain) -> None:
    result = solve_inverse(arm, arm.forward(HOME), HOME)
    assert result.q_rad == pytest.approx(HOME, abs=1e-4)


def test_out_of_reach_says_what_remains(arm: Chain) -> None:
    result = solve_inverse(arm, Pose((5.0, 0.0, 0.0), DOWN), HOME)
    assert result.q_rad is None
    assert '(5.0000, 0.0000, 0.0000)' in result.reason
    assert result.position_error_m > 1.0


@pytest.mark.parametrize(
    ('pose', 'words'),
    [
        (Pose((0.0, 0.0, 0.4), (0.0, 0.0, 0.0, 0.0)), 'length zero'),
        (Pose((math.nan, 0.0, 0.4), DOWN), 'finite'),
        (Pose((math.inf, 0.0, 0.4), DOWN), 'finite'),
    ],
)
def test_no_pose(arm: Chain, pose: Pose, words: str) -> None:
    result = solve_inverse(arm, pose, HOME)
    assert result.q_rad is None
    assert words in result.reason


def test_a_quaternion_of_any_length_is_normalised(arm: Chain) -> None:
    result = solve_inverse(arm, Pose((0.1, 0.1, 0.4), (0.0, 0.0, 0.0, 7.0)), HOME)
    assert result.q_rad is not None
