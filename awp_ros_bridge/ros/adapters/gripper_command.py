"""Owns the mapping onto control_msgs/action/GripperCommand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Outcome
from awp_ros_bridge.ros.adapters.gripper_motion import (
    effort_fields,
    goal_effort,
    GRIPPER_OPTIONS,
    GripperMotion,
    joint_option,
    position_schema,
)
from awp_ros_bridge.ros.adapters.params import params
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]


class GripperCommandAdapter(Adapter):
    """
    Move a gripper to an opening with a bounded force; a blocked finger is a grasp.

    Many drivers take an effort of zero for "no force" and then do not move: it is required unless
    it is configured.
    """

    name: ClassVar[str] = 'gripper_command'
    kind: ClassVar[str] = 'action'
    extended: ClassVar[bool] = True
    checkable_limits: ClassVar[frozenset[str]] = frozenset({'spatial'})
    options: ClassVar[Mapping[str, str]] = GRIPPER_OPTIONS
    ros_type: ClassVar[str] = 'control_msgs/action/GripperCommand'

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        self._motion = GripperMotion(context, joint_option(context.options))

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        joint_option(options)
        fields = {'position_m': position_schema(options), **effort_fields(options)}
        needed = ('position_m',) if 'max_effort_n' in options else ('position_m', 'max_effort_n')
        return params(fields, needed, 'opening and force of the gripper')

    def check(self, params: Json) -> GoalRefusal | None:
        return self._motion.check(params)

    def goal(self, params: Json) -> Any:
        goal = load_interface(self.ros_type).Goal()
        effort = goal_effort(params, self.context.options)
        if effort is None:
            raise ValueError('params.max_effort_n: missing, and no option max_effort_n stands in')
        goal.command.position = float(params['position_m'])
        goal.command.max_effort = effort
        return goal

    def begin(self, params: Json) -> Json:
        return self._motion.begin()

    def progress(self, params: Json, feedback: Any) -> float | None:
        return self._motion.fraction(params, feedback.position)

    def measured_progress(self, params: Json, start: Json) -> float | None:
        return self._motion.measured(params, start)

    def outcome(self, result: Any) -> Outcome:
        return self._motion.outcome(result.stalled, result.reached_goal)
