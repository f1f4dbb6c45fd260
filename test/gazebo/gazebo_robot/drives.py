"""Owns the drives' model of the robot: how stiff each one is, and the load that it bears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from awp_ros_bridge.sim_robot.description import GRIPPER_JOINT, GRIPPER_MIRROR_JOINT
from gazebo_robot.hardware import Gains

_FINGERS = (GRIPPER_JOINT, GRIPPER_MIRROR_JOINT)

# How fast a drive corrects an error, without overshoot; far below the step rate of 1000 Hz.
# Fingers are held as a worm gear holds them: the arm's motion does not shake them.
_BANDWIDTH_RADPS = 50.0
_FINGER_BANDWIDTH_RADPS = 150.0


class DriveModel:
    """The dynamics of the robot, in the order in which its joints are named."""

    def __init__(self, urdf: str, home: Mapping[str, float]) -> None:
        """
        Build the model.

        :param home: home position by joint
        """
        self._model: Any = pin.buildModelFromXML(urdf)
        self._data: Any = self._model.createData()
        joints = [self._model.joints[self._model.getJointId(name)] for name in home]
        self._rows = [joint.idx_v for joint in joints]
        self._bandwidths_radps = [
            _FINGER_BANDWIDTH_RADPS if name in _FINGERS else _BANDWIDTH_RADPS for name in home
        ]
        self._home = tuple(home.values())

    def gains(self) -> tuple[Gains, ...]:
        """Compute critically damped gains for the inertia that each joint has at home."""
        inertia = pin.crba(self._model, self._data, self._spread(self._home))
        limits = self._model.upperEffortLimit
        return tuple(
            Gains(
                position=float(inertia[row, row]) * bandwidth_radps**2,
                velocity=float(inertia[row, row]) * bandwidth_radps * 2.0,
                most=float(limits[row]),
            )
            for row, bandwidth_radps in zip(self._rows, self._bandwidths_radps, strict=True)
        )

    def loads(self, positions: Sequence[float], velocities: Sequence[float]) -> tuple[float, ...]:
        """Compute the efforts that gravity and motion at constant speed ask for."""
        efforts = pin.nonLinearEffects(
            self._model, self._data, self._spread(positions), self._spread(velocities)
        )
        return tuple(float(efforts[row]) for row in self._rows)

    def _spread(self, values: Sequence[float]) -> Any:
        row = np.zeros(self._model.nv)
        row[self._rows] = values
        return row
