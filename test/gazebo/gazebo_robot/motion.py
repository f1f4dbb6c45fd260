"""
Owns joints that physics move: what the drives are told, and beside it what was measured.

What sim_robot makes of its goals (holding, following, braking, with bounded velocity and
acceleration) is the reference that the drives follow; servers and topics read what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from awp_ros_bridge.kinematics import JointSample
from awp_ros_bridge.sim_robot.motion import JointMotion, MotionMode
from awp_ros_bridge.sim_robot.plant import JointLimits, JointPlant

_STILL_RADPS = 5e-3
_REFERENCE_STILL_RADPS = 1e-4
_SETTLED_RAD = 5e-6


class PhysicalPlant(JointPlant):
    """
    Joints in physics.

    :ivar reference: the same joints as the drives are told to move them
    :ivar positions_rad: measured
    :ivar velocities_radps: measured
    """

    def __init__(self, limits: JointLimits, home_rad: Sequence[float]) -> None:
        """Begin at rest at the home configuration."""
        self.reference = JointPlant(limits, home_rad)
        super().__init__(limits, home_rad)

    @property
    def limits(self) -> JointLimits:
        """The limits of what the drives are told."""
        return self.reference.limits

    @limits.setter
    def limits(self, limits: JointLimits) -> None:
        self.reference.limits = limits

    def measure(self, positions_rad: Sequence[float], velocities_radps: Sequence[float]) -> None:
        """Take what the physics say."""
        self.positions_rad = list(positions_rad)
        self.velocities_radps = list(velocities_radps)

    def place(self, positions_rad: Sequence[float]) -> None:
        """Tell the drives to be at rest at a configuration; the physics are placed elsewhere."""
        self.reference.place(positions_rad)

    def follow(
        self, dt_s: float, target_rad: Sequence[float], target_radps: Sequence[float]
    ) -> None:
        """Move the reference for one step."""
        self.reference.follow(dt_s, target_rad, target_radps)

    def brake(self, dt_s: float, share: float = 1.0) -> None:
        """Slow the reference down for one step."""
        self.reference.brake(dt_s, share)


class PhysicalMotion(JointMotion):
    """The joints of one device, whose time is that of the simulation."""

    plant: PhysicalPlant

    def __init__(self, limits: JointLimits, home_rad: Sequence[float]) -> None:
        """Begin at rest at the home configuration."""
        super().__init__(limits, home_rad)
        self.plant = PhysicalPlant(limits, home_rad)

    @property
    def reference(self) -> JointPlant:
        """What the drives are told."""
        return self.plant.reference

    @property
    def is_at_rest(self) -> bool:
        """Tell whether no joint moves nor is told to."""
        is_told_to = self.reference.max_speed_radps >= _REFERENCE_STILL_RADPS
        return not is_told_to and self.plant.max_speed_radps < _STILL_RADPS

    def _is_settled(self) -> bool:
        rows = zip(self.reference.positions_rad, self.commanded.positions_rad, strict=True)
        is_there = all(abs(a - b) < _SETTLED_RAD for a, b in rows)
        return is_there and self.reference.max_speed_radps < _REFERENCE_STILL_RADPS

    def _hold(self) -> None:
        zeros = (0.0,) * len(self.reference.positions_rad)
        self.reference.velocities_radps = list(zeros)
        self.trajectory = None
        self.commanded = JointSample(tuple(self.reference.positions_rad), zeros, zeros)
        self.mode = MotionMode.HOLDING
