"""Owns what the simulated robot is: its URDF, its joints, its limits and its home."""

from importlib import resources

from awp_ros_bridge.kinematics import Chain

WORLD_FRAME = 'world'
BASE_FRAME = 'base'
TIP_FRAME = 'tool0'
ARM_JOINTS = ('joint_1', 'joint_2', 'joint_3', 'joint_4', 'joint_5', 'joint_6')
GRIPPER_JOINT = 'gripper_joint'
GRIPPER_MIRROR_JOINT = 'gripper_mirror_joint'

# The tip 0.4 m above the middle of the work surface, gripper straight down.
ARM_HOME_RAD = (0.0, -0.01657571, 0.42794284, 0.0, 1.15942919, 0.0)
GRIPPER_HOME_M = 0.04

# A URDF has no place for these. Full speed to rest takes two thirds of a second on every axis.
ARM_MAX_ACCELERATION_RADPS2 = (1.8, 1.8, 1.8, 3.0, 3.0, 3.0)
GRIPPER_MAX_ACCELERATION_MPS2 = 0.4


def load_urdf() -> str:
    """Read the robot description that belongs to the package."""
    return (resources.files(__package__) / 'arm.urdf').read_text(encoding='utf-8')


def load_arm_chain(urdf: str) -> Chain:
    """Build the chain of the arm from ``base`` to ``tool0``."""
    return Chain.from_urdf(urdf, BASE_FRAME, TIP_FRAME, ARM_JOINTS)


def load_gripper_chain(urdf: str) -> Chain:
    """Build the chain of the finger that the gripper's joint moves."""
    return Chain.from_urdf(urdf, 'link_6', 'finger_left', (GRIPPER_JOINT,))
