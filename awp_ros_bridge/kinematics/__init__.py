"""Owns the kinematic chain of a robot description, by which limits of motion are checked."""

from awp_ros_bridge.kinematics.chain import Chain, ChainError, Pose
from awp_ros_bridge.kinematics.inverse import InverseResult, solve_inverse
from awp_ros_bridge.kinematics.singularity import smallest_singular_value
from awp_ros_bridge.kinematics.tip_path import sample_tip_line, sample_tip_path, TipPath
from awp_ros_bridge.kinematics.trajectory import (
    joint_line,
    JointSample,
    Trajectory,
    TrajectoryError,
    Waypoint,
)

__all__ = [
    'Chain',
    'ChainError',
    'InverseResult',
    'JointSample',
    'Pose',
    'TipPath',
    'Trajectory',
    'TrajectoryError',
    'Waypoint',
    'joint_line',
    'sample_tip_line',
    'sample_tip_path',
    'smallest_singular_value',
    'solve_inverse',
]
