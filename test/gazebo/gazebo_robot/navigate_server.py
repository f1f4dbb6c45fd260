"""
Owns ``navigate_to_pose``: simulated hardware in place of Nav2, of whose action it is.

It plans nothing: by ``cmd_vel``, like any controller, it turns towards the goal, drives there and
turns as the goal says. A new goal replaces the running one.
"""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

from geometry_msgs.msg import Twist
from nav2_msgs.action import NavigateToPose
from rclpy.node import Node

from awp_ros_bridge.sim_robot.delays import Delays
from awp_ros_bridge.sim_robot.faults import Faults
from awp_ros_bridge.sim_robot.goal_server import GoalRun, GoalServer
from awp_ros_bridge.sim_robot.rate import Rate
from gazebo_robot.base_drive import BaseDrive, Place, wrapped
from gazebo_robot.world import BASE_BEGINS_M

ACTION_NAME = 'navigate_to_pose'
_FRAMES = {'map': (0.0, 0.0), 'odom': (0.0, 0.0), 'world': BASE_BEGINS_M}  # axes alike
_STEER_HZ, _FEEDBACK_HZ = 20.0, 10.0
_SPEED_MPS, _TURN_RADPS = 0.3, 1.0
_SLOWEST_MPS, _APPROACH_PER_S = 0.03, 1.0
_THERE_M, _THERE_RAD = 0.02, 0.03
_AHEAD_RAD = 0.3
_GAIN_PER_S = 2.0
_STILL_MPS, _STILL_RADPS = 0.005, 0.01


class NavigateServer:
    """The action server, which ends its goals in the turns of the robot's loop."""

    def __init__(
        self,
        node: Node,
        drive: BaseDrive,
        engaged: Callable[[], str],
        faults: Faults,
        delays: Delays,
    ) -> None:
        """
        Open the server.

        :param engaged: names the stops that are engaged, empty where none is
        """
        self._node = node
        self._drive = drive
        self._engaged = engaged
        self._run: GoalRun | None = None
        self._target = Place()
        self._is_there = False
        self._begun_ns = 0
        self._steering, self._feedback = Rate(_STEER_HZ), Rate(_FEEDBACK_HZ)
        self._commands = node.create_publisher(Twist, 'cmd_vel', 10)
        self.server = GoalServer(node, NavigateToPose, ACTION_NAME, self, faults, delays)

    def refusal(self, goal: NavigateToPose.Goal) -> str:
        """Say why a goal is rejected, empty where it is not."""
        if self._engaged():
            return f'engaged: {self._engaged()}'
        if goal.pose.header.frame_id not in _FRAMES:
            return f'frame {goal.pose.header.frame_id!r}; there are {", ".join(_FRAMES)}'
        p, q = goal.pose.pose.position, goal.pose.pose.orientation
        if not all(map(math.isfinite, (p.x, p.y, p.z, q.x, q.y, q.z, q.w))):
            return 'numbers are not all finite'
        if not math.hypot(q.x, q.y, q.z, q.w) > 1e-6:
            return 'the orientation is a quaternion of length zero'
        return ''

    def begin(self, run: GoalRun) -> None:
        """Drive to another goal in place of the running one."""
        self.abort('preempted by a new goal')
        if self._engaged():
            self.server.abort(run, NavigateToPose.Result(), f'engaged: {self._engaged()}')
            return
        pose = run.request.pose
        x_m, y_m = _FRAMES[pose.header.frame_id]
        q = pose.pose.orientation
        yaw_rad = math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y**2 + q.z**2))
        self._target = Place(pose.pose.position.x - x_m, pose.pose.position.y - y_m, yaw_rad)
        self._is_there = False
        self._begun_ns = self._node.get_clock().now().nanoseconds
        self._run = run

    def cancel(self, run: GoalRun) -> None:
        """Stop; the goal ends in the next turn of the loop."""
        if run is self._run:
            self._commands.publish(Twist())

    def abort(self, why: str) -> None:
        """End the running goal, if there is one, and stop."""
        run = self._run
        if run is not None:
            self._run = None
            self._commands.publish(Twist())
            self.server.abort(run, NavigateToPose.Result(), why)

    def destroy(self) -> None:
        """Close the server."""
        self.server.destroy()

    def turn(self, now_ns: int) -> None:
        """Serve the running goal once."""
        run = self._run
        if run is None:
            return
        if run.is_cancel_wanted:
            if run.handle.is_cancel_requested:
                self._run = None
                self.server.finish_cancel(run, NavigateToPose.Result())
            return
        if self.server.is_held_open(run):
            return
        if self._feedback.is_due(now_ns):
            self._send_feedback(run)
        if self._steering.is_due(now_ns) and not self._steer():
            self._run = None
            self.server.succeed(run, NavigateToPose.Result())

    def _steer(self) -> bool:
        """Command the base once; tell whether it still has to move."""
        at, to = self._drive.place, self._target
        command = Twist()
        if self._left_m() < _THERE_M:
            self._is_there = True
        if self._is_there:
            off_rad = wrapped(to.yaw_rad - at.yaw_rad)
            if abs(off_rad) < _THERE_RAD:
                self._commands.publish(command)
                return not self._is_still()
        else:
            off_rad = wrapped(math.atan2(to.y_m - at.y_m, to.x_m - at.x_m) - at.yaw_rad)
            if abs(off_rad) < _AHEAD_RAD:
                slow_mps = _SLOWEST_MPS + _APPROACH_PER_S * self._left_m()
                command.linear.x = min(_SPEED_MPS, slow_mps)
        command.angular.z = max(-_TURN_RADPS, min(_TURN_RADPS, _GAIN_PER_S * off_rad))
        self._commands.publish(command)
        return True

    def _is_still(self) -> bool:
        drive = self._drive
        return abs(drive.linear_mps) < _STILL_MPS and abs(drive.angular_radps) < _STILL_RADPS

    def _left_m(self) -> float:
        at, to = self._drive.place, self._target
        return math.hypot(to.x_m - at.x_m, to.y_m - at.y_m)

    def _send_feedback(self, run: GoalRun) -> None:
        now = self._node.get_clock().now()
        feedback: Any = NavigateToPose.Feedback()
        feedback.current_pose.header.frame_id = 'map'
        feedback.current_pose.header.stamp = now.to_msg()
        place = self._drive.place
        pose = feedback.current_pose.pose
        pose.position.x, pose.position.y = place.x_m, place.y_m
        pose.orientation.z = math.sin(place.yaw_rad / 2.0)
        pose.orientation.w = math.cos(place.yaw_rad / 2.0)
        feedback.distance_remaining = self._left_m()
        spent_ns = max(0, now.nanoseconds - self._begun_ns)
        feedback.navigation_time.sec, feedback.navigation_time.nanosec = divmod(
            spent_ns, 1_000_000_000
        )
        self.server.publish_feedback(run, feedback)
