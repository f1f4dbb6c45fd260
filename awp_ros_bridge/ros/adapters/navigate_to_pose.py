"""Owns the mapping of a drive to a pose onto nav2_msgs/action/NavigateToPose."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any, ClassVar

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Outcome
from awp_ros_bridge.ros.adapters.feedback_progress import Remaining
from awp_ros_bridge.ros.adapters.params import bad_params, params, pose
from awp_ros_bridge.ros.adapters.pose_moves import pose_of_params, pose_refusal, target_refusal
from awp_ros_bridge.ros.adapters.tip_limits import TipLimits
from awp_ros_bridge.ros.interfaces import load_interface, message_type

Json = dict[str, Any]

# More than rounding and a floor that is not quite even; a base cannot lean on purpose.
_MOST_TILT_RAD = 0.05


class NavigateToPoseAdapter(Adapter):
    """
    Drive a mobile base to a pose; Nav2 plans the way.

    The target is compared with the box of the limits. The way there is the planner's, so no limit
    is proved before the goal is sent: they are measured.
    """

    name: ClassVar[str] = 'navigate_to_pose'
    kind: ClassVar[str] = 'action'
    extended: ClassVar[bool] = True
    options: ClassVar[Mapping[str, str]] = {
        'frames': 'AWP frames that params may name; by default every frame of the frame tree',
        'behavior_tree': 'file of the behaviour tree, on the machine of Nav2; its own by default',
    }
    ros_type: ClassVar[str] = 'nav2_msgs/action/NavigateToPose'

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        self._frames = _frames(context.options)
        for name in self._frames:
            if not context.ros_frame(name):
                raise ValueError(f'option frames: {name!r} is not a frame of frames.include')
        self._tree = _tree(context.options)
        self._remaining = Remaining()

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        _tree(options)
        target = pose('where the base is to stand; it turns about z only')
        if _frames(options):
            target['properties']['frame'] = {
                'enum': list(_frames(options)),
                'description': target['properties']['frame']['description'],
            }
        return params({'pose': target}, ('pose',), 'drive of the base to a pose')

    def check(self, params: Json) -> GoalRefusal | None:
        value = params['pose']
        found = pose_refusal(self.context, value) or self._frame_refusal(value['frame'])
        if found is not None:
            return found
        target = pose_of_params(value)
        tilt_rad = _tilt_rad(target)
        if not tilt_rad <= _MOST_TILT_RAD:
            return bad_params(
                f'params.pose.q: it leans by {tilt_rad:.3f} rad; a base turns about z only, and '
                f'may lean by {_MOST_TILT_RAD:g} rad at most'
            )
        return target_refusal(TipLimits(self.context), target, value['frame'])

    def goal(self, params: Json) -> Any:
        # Checked again: where the frame stands may have changed while the goal waited.
        refusal = self.check(params)
        if refusal is not None:
            raise ValueError(refusal.detail)
        goal = load_interface(self.ros_type).Goal()
        # Without a stamp Nav2 takes the newest transform.
        goal.pose.header.frame_id = self.context.ros_frame(params['pose']['frame'])
        target = pose_of_params(params['pose'])
        position, orientation = goal.pose.pose.position, goal.pose.pose.orientation
        position.x, position.y, position.z = target.position_m
        orientation.x, orientation.y, orientation.z, orientation.w = target.quaternion_xyzw
        goal.behavior_tree = self._tree
        return goal

    def begin(self, params: Json) -> Json:
        self._remaining.begin()
        return {}

    def progress(self, params: Json, feedback: Any) -> float | None:
        return self._remaining.fraction(feedback.distance_remaining)

    def outcome(self, result: Any) -> Outcome:
        words = getattr(result, 'error_msg', '')  # the text is newer than the code
        code = int(result.error_code)
        if code == 0:
            return Outcome(ok=True, detail=words)
        named = message_type(load_interface(self.ros_type).Result).constants
        known = {value: name for name, value in named.items()}
        text = f': {words}' if words else ''
        return Outcome(ok=False, detail=f'{known.get(code, "error")} ({code}){text}')

    def _frame_refusal(self, frame: str) -> GoalRefusal | None:
        if not self._frames or frame in self._frames:
            return None
        return bad_params(
            f'params.pose.frame: the base is not driven in {frame!r}; write one of '
            f'{", ".join(self._frames)}'
        )


def _tilt_rad(target: Pose) -> float:
    """Return the angle between the z axes of a pose and of its frame."""
    x, y, _, _ = target.quaternion_xyzw
    return 2.0 * math.asin(min(1.0, math.hypot(x, y)))


def _frames(options: Json) -> tuple[str, ...]:
    """
    Return the frames that params may name, empty for all.

    :raises ValueError: the option is no list of names
    """
    value = options.get('frames', ())
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
        raise ValueError(f'option frames: {value!r} is no list of frames')
    if 'frames' in options and not value:
        raise ValueError('option frames: the list is empty, so no pose could be named')
    return tuple(value)


def _tree(options: Json) -> str:
    """
    Return the file of the behaviour tree, empty for Nav2's own.

    :raises ValueError: the option is no text
    """
    value = options.get('behavior_tree', '')
    if not isinstance(value, str):
        raise ValueError(f'option behavior_tree: {value!r} is no file name')
    return value
