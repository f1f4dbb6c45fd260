"""Owns the mapping of a move to a pose onto control_msgs/action/ExecuteMotionPrimitiveSequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Outcome
from awp_ros_bridge.ros.adapters.params import number, option_number, params, pose
from awp_ros_bridge.ros.adapters.pose_moves import (
    Ends,
    Move,
    plan_move,
    pose_of_params,
    remaining_m,
)
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]

_MOTIONS = ('ptp', 'lin')
_PTP, _LIN = 0, 50  # LINEAR_JOINT, LINEAR_CARTESIAN
_CODES = {0: 'SUCCESSFUL', -1: 'INVALID_GOAL', -3: 'OLD_HEADER_TIMESTAMP'}


class MotionPrimitiveAdapter(Adapter):
    """
    Move the tip to a pose: in joint space (ptp) or along a straight line (lin).

    Both are planned and checked here before they are sent.
    """

    name: ClassVar[str] = 'motion_primitive'
    kind: ClassVar[str] = 'action'
    extended: ClassVar[bool] = True
    checkable_limits: ClassVar[frozenset[str]] = frozenset({'spatial', 'max_velocity_mps'})
    options: ClassVar[Mapping[str, str]] = {
        'motion': 'ptp or lin, where the params do not say; ptp by default',
        'ptp_target': 'joints: send the configuration that was checked, where the robot '
        'description is known (default); pose: leave the inverse kinematics to the server',
        'default_velocity_mps': 'speed of the tip where neither params nor limits say; 0.25',
        'tip_velocity_argument': 'name of an argument by which the server itself limits the '
        'speed of the tip in any motion',
    }
    ros_type: ClassVar[str] = 'control_msgs/action/ExecuteMotionPrimitiveSequence'

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        options = context.options
        self._motion = _choice(options, 'motion', _MOTIONS)
        self._sends_joints = _choice(options, 'ptp_target', ('joints', 'pose')) == 'joints'
        self._default_mps = option_number(options, 'default_velocity_mps', 0.25)
        self._tip_argument = options.get('tip_velocity_argument')
        self._ends = Ends()

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        motion = _choice(options, 'motion', _MOTIONS)
        _choice(options, 'ptp_target', ('joints', 'pose'))
        option_number(options, 'default_velocity_mps', 0.25)
        fields = {
            'pose': pose('where the tip is to be'),
            'max_velocity_mps': number(
                'highest speed of the tip, m/s', minimum=0.0001, maximum=20
            ),
            'motion': {
                'enum': list(_MOTIONS),
                'default': motion,
                'description': 'ptp: in joint space; lin: along a straight line',
            },
        }
        return params(fields, ('pose',), 'move of the tip to a pose')

    def check(self, params: Json) -> GoalRefusal | None:
        move = self._plan(params)
        return move if isinstance(move, GoalRefusal) else None

    def goal(self, params: Json) -> Any:
        # Planned again: the robot may have moved while the goal waited, and the velocity that
        # keeps the tip below its limit depends on where the move begins. Only the configuration
        # at its end is the one that was checked.
        move = self._plan(params)
        if isinstance(move, GoalRefusal):
            raise ValueError(move.detail)
        motion = load_interface('control_msgs/msg/MotionPrimitive')()
        motion.type = _LIN if move.is_straight else _PTP
        if move.joints_rad is not None and self._sends_joints and not move.is_straight:
            motion.joint_positions = list(move.joints_rad)
        else:
            motion.poses = [self._stamped(params['pose'])]
        motion.additional_arguments = self._arguments(move)
        goal = load_interface(self.ros_type).Goal()
        goal.trajectory.motions = [motion]
        return goal

    def begin(self, params: Json) -> Json:
        left = remaining_m(self.context, params)
        return {} if left is None else {'distance_m': left}

    def measured_progress(self, params: Json, start: Json) -> float | None:
        left, whole = remaining_m(self.context, params), start.get('distance_m')
        if left is None or whole is None:
            return None
        return 1.0 if whole < 1e-4 else min(1.0, max(0.0, 1.0 - left / whole))

    def outcome(self, result: Any) -> Outcome:
        code = int(result.error_code)
        if code == 0:
            return Outcome(ok=True, detail=result.error_string)
        text = f': {result.error_string}' if result.error_string else ''
        return Outcome(ok=False, detail=f'{_CODES.get(code, "error")} ({code}){text}')

    def _plan(self, params: Json) -> Move | GoalRefusal:
        limit = self.context.limits.max_velocity_mps
        velocity = params.get('max_velocity_mps', self._default_mps if limit is None else limit)
        is_straight = params.get('motion', self._motion) == 'lin'
        is_bounded = self._tip_argument is not None
        return plan_move(
            self.context, params, float(velocity), is_straight, is_bounded, self._ends
        )

    def _arguments(self, move: Move) -> list[Any]:
        argument = load_interface('control_msgs/msg/MotionArgument')
        given = {}
        if move.velocity is not None:
            given['velocity'] = move.velocity
        if self._tip_argument is not None:
            given[self._tip_argument] = move.tip_velocity_mps
        return [argument(name=name, value=value) for name, value in given.items()]

    def _stamped(self, value: Json) -> Any:
        stamped = load_interface('geometry_msgs/msg/PoseStamped')()
        stamped.header.frame_id = self.context.ros_frame(value['frame']) or ''
        target: Pose = pose_of_params(value)
        position, orientation = stamped.pose.position, stamped.pose.orientation
        position.x, position.y, position.z = target.position_m
        orientation.x, orientation.y, orientation.z, orientation.w = target.quaternion_xyzw
        return stamped


def _choice(options: Json, key: str, words: tuple[str, ...]) -> str:
    value = options.get(key, words[0])
    if value not in words:
        raise ValueError(f'option {key}: {value!r} is none of {", ".join(words)}')
    return str(value)
