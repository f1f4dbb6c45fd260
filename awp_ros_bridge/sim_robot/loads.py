"""Owns the efforts that the joints report: what gravity asks of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from awp_ros_bridge.sim_robot.description import ARM_JOINTS


class GravityLoads:
    """The static torques of the arm, from the masses in its description."""

    def __init__(self, urdf: str) -> None:
        """Build the arm's model, the gripper closed."""
        full = pin.buildModelFromXML(urdf)
        locked = [full.getJointId(n) for n in list(full.names)[1:] if n not in ARM_JOINTS]
        self._model: Any = pin.buildReducedModel(full, locked, pin.neutral(full))
        self._data: Any = self._model.createData()

    def torques_nm(self, q_rad: Sequence[float]) -> tuple[float, ...]:
        """Compute the torque that holds each joint against gravity."""
        torques = pin.computeGeneralizedGravity(self._model, self._data, np.array(q_rad))
        return tuple(torques.tolist())
