"""Owns the mapping onto control_msgs/action/ParallelGripperCommand."""

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
from awp_ros_bridge.ros.adapters.params import number, outside_limits, params
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]


class ParallelGripperAdapter(Adapter):
    """
    Move a parallel gripper to an opening; a blocked finger is a grasp, not a failure.

    A finger that something blocks has succeeded, unless an option says otherwise.
    """

    name: ClassVar[str] = 'parallel_gripper'
    kind: ClassVar[str] = 'action'
    extended: ClassVar[bool] = True
    checkable_limits: ClassVar[frozenset[str]] = frozenset({'spatial', 'max_velocity_mps'})
    options: ClassVar[Mapping[str, str]] = GRIPPER_OPTIONS
    ros_type: ClassVar[str] = 'control_msgs/action/ParallelGripperCommand'

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        self._joint = joint_option(context.options)
        self._motion = GripperMotion(context, self._joint)

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        joint_option(options)
        fields = {
            'position_m': position_schema(options),
            **effort_fields(options),
            'max_velocity_mps': number(
                'highest speed of the fingers, m/s', exclusiveMinimum=0, maximum=10
            ),
        }
        return params(fields, ('position_m',), 'opening of the gripper')

    def check(self, params: Json) -> GoalRefusal | None:
        limit = self.context.limits.max_velocity_mps
        asked = params.get('max_velocity_mps')
        if limit is not None and asked is not None and asked > limit:
            return outside_limits(
                f'params.max_velocity_mps: {asked:g} m/s is above the limit of {limit:g} m/s'
            )
        return self._motion.check(params)

    def goal(self, params: Json) -> Any:
        goal = load_interface(self.ros_type).Goal()
        command = goal.command
        command.name = [self._joint] if self._joint else []
        command.position = [float(params['position_m'])]
        velocity = params.get('max_velocity_mps', self.context.limits.max_velocity_mps)
        if velocity is not None:
            command.velocity = [float(velocity)]
        effort = goal_effort(params, self.context.options)
        if effort is not None:
            command.effort = [effort]
        return goal

    def begin(self, params: Json) -> Json:
        return self._motion.begin()

    def progress(self, params: Json, feedback: Any) -> float | None:
        state = feedback.state
        names = list(state.name)
        index = names.index(self._joint) if self._joint in names else 0
        if index >= len(state.position):
            return None
        return self._motion.fraction(params, state.position[index])

    def measured_progress(self, params: Json, start: Json) -> float | None:
        return self._motion.measured(params, start)

    def outcome(self, result: Any) -> Outcome:
        return self._motion.outcome(result.stalled, result.reached_goal)
