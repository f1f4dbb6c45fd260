"""Owns what stands in the world: the arm at home with its drives, and the base with its wheels."""

from __future__ import annotations

from pathlib import Path

from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_JOINTS,
    GRIPPER_HOME_M,
    GRIPPER_JOINT,
    GRIPPER_MIRROR_JOINT,
)
from gazebo_robot.drives import DriveModel
from gazebo_robot.hardware import DrivenJoint, Gains, GazeboJoints
from gazebo_robot.world import ARM_MODEL, BASE_MODEL, world_of

ARM_HOME = {
    **dict(zip(ARM_JOINTS, ARM_HOME_RAD, strict=True)),
    GRIPPER_JOINT: GRIPPER_HOME_M,
    GRIPPER_MIRROR_JOINT: GRIPPER_HOME_M,
}
WHEELS = ('left_wheel_joint', 'right_wheel_joint')
# A wheel follows a speed and holds no angle. The base weighs 0.05 kg m^2 on each of them.
_WHEEL = Gains(position=0.0, velocity=2.0, most=10.0)


def load_base_urdf() -> str:
    """Read the description of the base."""
    return (Path(__file__).parent / 'base.urdf').read_text(encoding='utf-8')


def start_world(urdf: str, drives: DriveModel, folder: Path) -> GazeboJoints:
    """
    Start the world, paused: first the joints of the arm, then the wheels.

    :param urdf: of the arm
    :param drives: of the arm
    :param folder: for the world and the log of Gazebo
    :raises HardwareError: it did not load in time
    """
    joints = [
        DrivenJoint(ARM_MODEL, name, home, gains)
        for (name, home), gains in zip(ARM_HOME.items(), drives.gains(), strict=True)
    ]
    joints += (DrivenJoint(BASE_MODEL, name, 0.0, _WHEEL) for name in WHEELS)
    return GazeboJoints(world_of(urdf, ARM_HOME, load_base_urdf()), joints, folder)
