"""Owns the one arm that several action servers move: who has it, and what keeps it from moving."""

from awp_ros_bridge.sim_robot.motion import JointMotion
from awp_ros_bridge.sim_robot.stops import Stops


class Device:
    """
    A group of joints that one goal at a time may move.

    :ivar motion: the joints
    :ivar owner: name of the action whose goal moves them, empty where none does
    """

    def __init__(self, motion: JointMotion, stops: Stops) -> None:
        """Begin without an owner."""
        self.motion = motion
        self.owner = ''
        self._stops = stops

    def refusal(self, action_name: str) -> str:
        """Say why an action may not move the joints now, empty where it may."""
        if self._stops.engaged:
            return f'engaged: {self._stops.engaged}'
        if self.owner not in ('', action_name):
            return f'a goal of {self.owner} moves these joints'
        return ''

    def release(self, action_name: str) -> None:
        """Give the joints back."""
        if self.owner == action_name:
            self.owner = ''
