"""Forward kinematics, limits and errors of the chain, and the singularity measure."""

from importlib import resources
import math

import numpy as np
import pytest

pytest.importorskip('pinocchio')

from awp_ros_bridge.kinematics import Chain, ChainError, Pose, smallest_singular_value

JOINTS = tuple(f'joint_{i}' for i in range(1, 7))
URDF = (resources.files('awp_ros_bridge.sim_robot') / 'arm.urdf').read_text(encoding='utf-8')

TURNTABLE = """
<robot name="turntable">
  <link name="floor"/><link name="table"/><link name="slide"/>
  <joint name="turn" type="continuous">
    <parent link="floor"/><child link="table"/><axis xyz="0 0 1"/>
    <limit velocity="1.5" effort="1"/>
  </joint>
  <joint name="push" type="prismatic">
    <parent link="table"/><child link="slide"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="2" velocity="0" effort="1"/>
  </joint>
</robot>
"""


@pytest.fixture(scope='module')
def arm() -> Chain:
    return Chain.from_urdf(URDF, 'base', 'tool0', JOINTS)


@pytest.fixture(scope='module')
def turntable() -> Chain:
    return Chain.from_urdf(TURNTABLE, 'floor', 'slide', ('turn', 'push'))


def test_forward_at_zero_is_what_the_dimensions_say(arm: Chain) -> None:
    pose = arm.forward([0.0] * 6)
    assert pose.position_m == pytest.approx((-0.9 + 1.0 + 0.2, 0.0, 1.0))
    half = math.sqrt(0.5)
    assert pose.angle_rad(Pose((0, 0, 0), (0, -half, 0, half))) < 1e-6


def test_forward_in_another_frame_differs_by_the_fixed_offset(arm: Chain) -> None:
    q = [0.3, -0.2, 0.4, 0.1, 0.9, -0.5]
    in_base, in_world = arm.forward(q), arm.forward(q, 'world')
    x, y, z = in_base.position_m
    assert in_world.position_m == pytest.approx((x, y, z + 0.6))


def test_to_base_is_the_way_back(arm: Chain) -> None:
    q = [0.3, -0.2, 0.4, 0.1, 0.9, -0.5]
    here = Pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    there = arm.to_base(here, 'tool0', q)
    assert there.position_m == pytest.approx(arm.forward(q).position_m)
    assert there.angle_rad(arm.forward(q)) < 1e-6


def test_joint_order_is_the_callers(arm: Chain) -> None:
    turned = Chain.from_urdf(URDF, 'base', 'tool0', JOINTS[::-1])
    q = [0.3, -0.2, 0.4, 0.1, 0.9, -0.5]
    assert turned.forward(q[::-1]).position_m == pytest.approx(arm.forward(q).position_m)
    assert turned.max_velocity_radps == pytest.approx(arm.max_velocity_radps[::-1])


def test_limits_come_from_the_description(arm: Chain, turntable: Chain) -> None:
    assert (arm.lower_rad[0], arm.upper_rad[0]) == (-2.9, 2.9)
    assert arm.max_velocity_radps == pytest.approx([1.2, 1.2, 1.2, 2.0, 2.0, 2.0])
    assert list(turntable.lower_rad) == [-math.inf, 0.0]
    assert list(turntable.max_velocity_radps) == [1.5, math.inf]
    assert list(turntable.revolute) == [True, False]


def test_limit_violations_name_joint_value_and_limits(arm: Chain) -> None:
    assert arm.limit_violations([0.0] * 6) == ''
    expected = 'joint_1 at 3.0000 is outside [-2.9000, 2.9000]'
    assert arm.limit_violations([3.0, 0, 0, 0, 0, 0]) == expected
    assert 'joint_2' in arm.limit_violations([0, math.nan, 0, 0, 0, 0])


@pytest.mark.parametrize('turn_rad', [-4.0, 0.0, 0.7, 3.0, 7.0])
def test_continuous_and_sliding_joints(turntable: Chain, turn_rad: float) -> None:
    pose = turntable.forward([turn_rad, 1.5])
    expected = (1.5 * math.cos(turn_rad), 1.5 * math.sin(turn_rad), 0.0)
    assert pose.position_m == pytest.approx(expected)
    assert turntable.tip_speed_mps([turn_rad, 1.5], [0.5, 0.0]) == pytest.approx(0.75)
    assert turntable.tip_speed_mps([turn_rad, 1.5], [0.0, 0.2]) == pytest.approx(0.2)


def test_jacobian_agrees_with_differences(arm: Chain) -> None:
    q = np.array([0.3, -0.2, 0.4, 0.1, 0.9, -0.5])
    jacobian = arm.tip_jacobian(q)
    step = 1e-6
    for joint in range(6):
        moved = q.copy()
        moved[joint] += step
        difference = (arm.tip_position(moved) - arm.tip_position(q)) / step
        assert jacobian[:3, joint] == pytest.approx(difference, abs=1e-5)


def test_singularity_is_zero_where_two_axes_coincide(arm: Chain) -> None:
    assert smallest_singular_value(arm, [0.0, 0.1, 0.3, 0.0, 0.0, 0.0]) < 1e-9
    assert smallest_singular_value(arm, [0.0, 0.0, 0.4, 0.0, 1.2, 0.0]) > 0.3


@pytest.mark.parametrize(
    ('base', 'tip', 'joints', 'words'),
    [
        ('nowhere', 'tool0', JOINTS, "no link 'nowhere'"),
        ('base', 'nothing', JOINTS, "no link 'nothing'"),
        ('base', 'tool0', (*JOINTS, 'joint_9'), "no movable joint 'joint_9'"),
        ('base', 'tool0', (*JOINTS, 'joint_1'), 'named twice'),
        ('base', 'tool0', (), 'at least one joint'),
    ],
)
def test_what_cannot_be_a_chain(
    base: str, tip: str, joints: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ChainError, match=words):
        Chain.from_urdf(URDF, base, tip, joints)


def test_unreadable_description() -> None:
    with pytest.raises(ChainError, match='not a readable URDF'):
        Chain.from_urdf('<robot', 'base', 'tool0', JOINTS)


def test_wrong_number_of_joints(arm: Chain) -> None:
    with pytest.raises(ChainError, match='has 6 joints'):
        arm.forward([0.0] * 5)
