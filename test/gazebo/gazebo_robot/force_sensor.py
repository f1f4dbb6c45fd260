"""Owns the force sensor at the wrist: what it measures, less the weight of what it carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from gazebo_robot.messages import message_class
from gazebo_robot.transport import Subscription
from gazebo_robot.world import SENSED_JOINT


class ForceSensor:
    """A sensor between the last two links that tells what the tip of the tool is pressed with."""

    def __init__(self, urdf: str, names: Sequence[str], tip_frame: str) -> None:
        """
        Build the model that tells the tool's weight.

        :param names: of the joints, whose order is that of all rows
        :param tip_frame: in whose axes and at whose origin the wrench is told
        """
        self._model: Any = pin.buildModelFromXML(urdf)
        self._data: Any = self._model.createData()
        self._rows = [self._model.joints[self._model.getJointId(name)].idx_q for name in names]
        self._joint = self._model.getJointId(SENSED_JOINT)
        self._tip = self._model.getFrameId(tip_frame)
        self._type = message_class('gazebo.msgs.WrenchStamped')

    def wrench(
        self, heard: Subscription, positions: Sequence[float]
    ) -> tuple[list[float], list[float]] | None:
        """
        Give the mean force and torque on the tip since the last time, None without news.

        :param heard: what Gazebo says of the sensor, a thousand times a second
        :param positions: of the joints
        """
        said = heard.take()
        if not said:
            return None
        total = np.zeros(6)
        for data in said:
            row = self._type.FromString(data).wrench
            force, torque = row.force, row.torque
            total += (force.x, force.y, force.z, torque.x, torque.y, torque.z)
        on_parent = pin.Force(total / len(said))
        q = np.zeros(self._model.nq)
        q[self._rows] = positions
        pin.centerOfMass(self._model, self._data, q, True)
        pin.updateFramePlacements(self._model, self._data)
        carrier = self._data.oMi[self._joint]
        to_tip = self._data.oMf[self._tip].actInv(carrier)
        on_tip = to_tip.act(on_parent - self._weight(carrier.rotation))
        return on_tip.linear.tolist(), on_tip.angular.tolist()

    def _weight(self, rotation: Any) -> Any:
        """Compute what gravity does to the tool, in the axes and at the origin of the joint."""
        pull_n = rotation.T @ self._model.gravity.linear * self._data.mass[self._joint]
        return pin.Force(pull_n, np.cross(self._data.com[self._joint], pull_n))
