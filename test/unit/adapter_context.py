"""Owns the robot that adapters are tested on: the simulated arm's chain, standing at home."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.adapters.base import AdapterContext, Limits
from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_JOINTS,
    load_arm_chain,
    load_urdf,
)

BOX_M = ((-0.5, -0.5, 0.0), (0.5, 0.5, 0.8))
LIMITS = Limits(frame='base', aabb_m=BOX_M, max_velocity_mps=0.5)
CHAIN = load_arm_chain(load_urdf())
FRAMES = {'world': 'world', 'base': 'base', 'tool0': 'tool0', 'camera': 'rig/camera'}


@dataclass
class Robot:
    """What a context tells; tests change it."""

    joints: dict[str, float] | None = field(
        default_factory=lambda: dict(zip(ARM_JOINTS, ARM_HOME_RAD, strict=True))
    )
    velocities: dict[str, float] | None = None
    chain: Any = CHAIN
    poses: dict[tuple[str, str], Pose] = field(default_factory=dict)

    def context(self, limits: Limits = LIMITS, **options: Any) -> AdapterContext:
        """Make the context of an adapter."""
        return AdapterContext(
            embodiment='arm_01',
            action_type='act',
            limits=limits,
            joints=lambda: self.joints,
            chain=lambda: self.chain,
            ros_frame=FRAMES.get,
            frames=lambda: tuple(FRAMES),
            now_stamp=lambda: None,
            options=options,
            joint_velocities=lambda: self.velocities,
            pose_in=lambda frame, reference: self.poses.get((frame, reference)),
        )


def pose_params(
    p_m: tuple[float, float, float] = (0.3, 0.2, 0.5),
    q: tuple[float, float, float, float] = (0, 0, 0, 1),
    frame: str = 'base',
    **more: Any,
) -> dict[str, Any]:
    """Make the params of a move to a pose."""
    return {'pose': {'frame': frame, 'p_m': list(p_m), 'q': list(q)}, **more}


def point(positions_rad: Any, time_ms: int, **more: Any) -> dict[str, Any]:
    """Make a trajectory point."""
    return {'positions_rad': list(positions_rad), 'time_from_start_ms': time_ms, **more}


def trajectory(*points: Any, names: Any = ARM_JOINTS, **more: Any) -> dict[str, Any]:
    """Make the params of a trajectory."""
    return {'joint_names': list(names), 'points': list(points), **more}


def home(**changes: float) -> list[float]:
    """Return the home configuration with some joints elsewhere."""
    values = dict(zip(ARM_JOINTS, ARM_HOME_RAD, strict=True)) | changes
    return list(values.values())
