"""Owns the two action types that grippers have: how each says a command, a state and an end."""

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Any, Protocol

from control_msgs.action import GripperCommand, ParallelGripperCommand

from awp_ros_bridge.sim_robot.description import GRIPPER_JOINT


@dataclass(frozen=True, slots=True)
class GripperState:
    """Where a finger is, and what the goal made of it."""

    position_m: float
    velocity_mps: float
    effort_n: float
    is_stalled: bool = False
    is_reached: bool = False


class GripperForm(Protocol):
    """One of the action types."""

    action_type: Any
    action_name: str

    def refusal(self, goal: Any) -> str:
        """Say why a goal is rejected for its form, empty where it is not."""

    def command(self, goal: Any) -> tuple[float, float | None, float | None]:
        """Read position, and velocity and effort where they are given."""

    def feedback(self, state: GripperState) -> Any:
        """Say a state as feedback."""

    def result(self, state: GripperState) -> Any:
        """Say a state as the result."""


class ParallelForm:
    """ParallelGripperCommand: a joint state."""

    action_type: Any = ParallelGripperCommand
    action_name = 'gripper_controller/gripper_cmd'

    def refusal(self, goal: Any) -> str:
        """Say why a goal is rejected for its form, empty where it is not."""
        command = goal.command
        if len(command.position) != 1:
            return f'{len(command.position)} positions, the gripper has one joint'
        if list(command.name) not in ([], [GRIPPER_JOINT]):
            return f'joint {list(command.name)} is not {GRIPPER_JOINT}'
        for kind in ('velocity', 'effort'):
            values = getattr(command, kind)
            if len(values) > 1:
                return f'{len(values)} numbers of {kind}, the gripper has one joint'
            if values and not 0.0 < values[0] < math.inf:
                return f'{kind} is {values[0]}; it must be above 0'
        return ''

    def command(self, goal: Any) -> tuple[float, float | None, float | None]:
        """Read position, and velocity and effort where they are given."""
        command = goal.command
        return command.position[0], _first(command.velocity), _first(command.effort)

    def feedback(self, state: GripperState) -> Any:
        """Say a state as feedback."""
        feedback = ParallelGripperCommand.Feedback()
        self._fill(feedback.state, state)
        return feedback

    def result(self, state: GripperState) -> Any:
        """Say a state as the result."""
        result = ParallelGripperCommand.Result()
        self._fill(result.state, state)
        result.stalled, result.reached_goal = state.is_stalled, state.is_reached
        return result

    def _fill(self, message: Any, state: GripperState) -> None:
        message.name = [GRIPPER_JOINT]
        message.position = [state.position_m]
        message.velocity = [state.velocity_mps]
        message.effort = [state.effort_n]


class LegacyForm:
    """GripperCommand: the older type; its position is the joint's as well."""

    action_type: Any = GripperCommand
    action_name = 'gripper_controller/gripper_command_legacy'

    def refusal(self, goal: Any) -> str:
        """Say why a goal is rejected for its form, empty where it is not."""
        effort = goal.command.max_effort
        return '' if 0.0 <= effort < math.inf else f'max_effort is {effort}; it may be 0 or more'

    def command(self, goal: Any) -> tuple[float, float | None, float | None]:
        """Read position and effort; zero effort means the gripper's own."""
        return goal.command.position, None, goal.command.max_effort or None

    def feedback(self, state: GripperState) -> Any:
        """Say a state as feedback."""
        return self._filled(GripperCommand.Feedback(), state)

    def result(self, state: GripperState) -> Any:
        """Say a state as the result."""
        return self._filled(GripperCommand.Result(), state)

    def _filled(self, message: Any, state: GripperState) -> Any:
        message.position, message.effort = state.position_m, state.effort_n
        message.stalled, message.reached_goal = state.is_stalled, state.is_reached
        return message


def _first(values: Sequence[float]) -> float | None:
    return float(values[0]) if len(values) else None
