"""Owns the mapping onto control_msgs/action/FollowJointTrajectory."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any, ClassVar

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Outcome
from awp_ros_bridge.ros.adapters.params import closed, integer, numbers, params
from awp_ros_bridge.ros.adapters.trajectory_check import TrajectoryCheck
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]

_MAX_JOINTS = 64
_MAX_POINTS = 1000
_LONGEST_MS = 24 * 3600 * 1000
_CODES = {
    0: 'SUCCESSFUL',
    -1: 'INVALID_GOAL',
    -2: 'INVALID_JOINTS',
    -3: 'OLD_HEADER_TIMESTAMP',
    -4: 'PATH_TOLERANCE_VIOLATED',
    -5: 'GOAL_TOLERANCE_VIOLATED',
}


class FollowJointTrajectoryAdapter(Adapter):
    """
    Follow a joint trajectory; the server takes over smoothly from a running goal.

    The params' positions are checked from where the joints are to the last point.
    """

    name: ClassVar[str] = 'follow_joint_trajectory'
    kind: ClassVar[str] = 'action'
    extended: ClassVar[bool] = True
    native_replace: ClassVar[bool] = True
    checkable_limits: ClassVar[frozenset[str]] = frozenset({'spatial', 'max_velocity_mps'})
    options: ClassVar[Mapping[str, str]] = {
        'joints': 'names of the controller\'s joints, where no kinematic chain tells them',
        'allow_partial': 'true: goals may name some of the joints only; false by default',
        'max_first_point_jump_rad': 'farthest that the first point may lie from where the joints '
        'are; no bound by default, 0.1 for a first point at time zero',
    }
    ros_type: ClassVar[str] = 'control_msgs/action/FollowJointTrajectory'

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        self._check = TrajectoryCheck(context)

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        name: Json = {'type': 'string', 'minLength': 1, 'maxLength': 256}
        if options.get('joints'):
            name = {'enum': list(options['joints'])}
        point = closed(
            {
                'positions_rad': numbers('one per joint, rad (m if it slides)', 1, _MAX_JOINTS),
                'velocities_radps': numbers('one per joint, rad/s (m/s)', 1, _MAX_JOINTS),
                'accelerations_radps2': numbers('one per joint, rad/s2 (m/s2)', 1, _MAX_JOINTS),
                'time_from_start_ms': integer(
                    'when the point is to be passed, strictly increasing',
                    minimum=0,
                    maximum=_LONGEST_MS,
                ),
            },
            ('positions_rad', 'time_from_start_ms'),
        )
        fields = {
            'joint_names': {
                'type': 'array',
                'items': name,
                'minItems': 1,
                'maxItems': _MAX_JOINTS,
                'uniqueItems': True,
                'description': 'joints, in the order that the points use',
            },
            'points': {'type': 'array', 'items': point, 'minItems': 1, 'maxItems': _MAX_POINTS},
            'goal_time_tolerance_ms': integer(
                'extra time to arrive at the last point', minimum=0, maximum=_LONGEST_MS
            ),
        }
        return params(fields, ('joint_names', 'points'), 'joint trajectory')

    def check(self, params: Json) -> GoalRefusal | None:
        return self._check.check(params)

    def goal(self, params: Json) -> Any:
        refusal = self._check.check_beginning(params)
        if refusal is not None:
            raise ValueError(refusal.detail)
        goal = load_interface(self.ros_type).Goal()
        point_type = load_interface('trajectory_msgs/msg/JointTrajectoryPoint')
        # A stamp of zero means: begin now.
        goal.trajectory.joint_names = list(params['joint_names'])
        goal.trajectory.points = [_point(point_type, point) for point in params['points']]
        _set_duration(goal.goal_time_tolerance, params.get('goal_time_tolerance_ms', 0))
        return goal

    def begin(self, params: Json) -> Json:
        joints = self.context.joints()
        known = {} if joints is None else {n: joints.get(n) for n in params['joint_names']}
        return {'joints': known}

    def progress(self, params: Json, feedback: Any) -> float | None:
        total_ms = params['points'][-1]['time_from_start_ms']
        time = feedback.desired.time_from_start
        passed_ms = time.sec * 1e3 + time.nanosec * 1e-6
        # Some servers leave the time out; then measurement tells.
        if passed_ms <= 0.0 or total_ms <= 0:
            return None
        return min(1.0, passed_ms / total_ms)

    def measured_progress(self, params: Json, start: Json) -> float | None:
        joints, first = self.context.joints(), start.get('joints') or {}
        if joints is None:
            return None
        farthest, left = 0.0, 0.0
        rows = zip(params['joint_names'], params['points'][-1]['positions_rad'], strict=True)
        for name, target in rows:
            begun, now = first.get(name), joints.get(name)
            if begun is None or now is None or not math.isfinite(now - begun):
                return None
            farthest = max(farthest, abs(target - begun))
            left = max(left, abs(target - now))
        if farthest < 1e-4:
            return 1.0
        return min(1.0, max(0.0, 1.0 - left / farthest))

    def outcome(self, result: Any) -> Outcome:
        code = int(result.error_code)
        if code == 0:
            return Outcome(ok=True, detail=result.error_string)
        text = f': {result.error_string}' if result.error_string else ''
        return Outcome(ok=False, detail=f'{_CODES.get(code, "error")} ({code}){text}')


def _point(point_type: Any, point: Json) -> Any:
    message = point_type()
    message.positions = [float(v) for v in point['positions_rad']]
    message.velocities = [float(v) for v in point.get('velocities_radps', ())]
    message.accelerations = [float(v) for v in point.get('accelerations_radps2', ())]
    _set_duration(message.time_from_start, point['time_from_start_ms'])
    return message


def _set_duration(message: Any, value_ms: float) -> None:
    seconds, rest_ms = divmod(int(value_ms), 1000)
    message.sec, message.nanosec = seconds, rest_ms * 1_000_000
