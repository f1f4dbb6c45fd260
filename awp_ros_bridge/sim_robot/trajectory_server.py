"""
Owns ``arm_controller/follow_joint_trajectory``: ros2_control's joint_trajectory_controller.

A new goal replaces the running one without a stop; a cancelled goal ends at once and the arm holds
where it comes to rest; tolerances end a goal with the controller's codes and texts.
"""

from control_msgs.action import FollowJointTrajectory
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectoryPoint

from awp_ros_bridge.kinematics import JointSample, Trajectory, Waypoint
from awp_ros_bridge.sim_robot.arm import Device
from awp_ros_bridge.sim_robot.delays import Delays
from awp_ros_bridge.sim_robot.description import ARM_JOINTS
from awp_ros_bridge.sim_robot.faults import Faults
from awp_ros_bridge.sim_robot.goal_server import GoalRun, GoalServer
from awp_ros_bridge.sim_robot.parameters import declare_number
from awp_ros_bridge.sim_robot.rate import Rate
from awp_ros_bridge.sim_robot.trajectory_checks import (
    merge_tolerances,
    seconds,
    Tolerance,
    tolerance_fault,
    Tolerances,
    trajectory_refusal,
    waypoints_of,
)

ACTION_NAME = 'arm_controller/follow_joint_trajectory'
_Result = FollowJointTrajectory.Result
_FEEDBACK_HZ = 25.0
_STOPPED_RADPS = 0.01


class TrajectoryServer:
    """The controller's action server on the arm."""

    def __init__(self, node: Node, arm: Device, faults: Faults, delays: Delays) -> None:
        """Open the server and read the default tolerances from the node's parameters."""
        self._node = node
        self._arm = arm
        path_rad = declare_number(
            node, 'path_tolerance_rad', 0.3, 0.0, 10.0,
            'how far a joint may stray on the way where the goal does not say; 0: unchecked',
        )
        goal_rad = declare_number(
            node, 'goal_tolerance_rad', 0.01, 0.0, 10.0,
            'how far a joint may stray at the goal where the goal does not say; 0: unchecked',
        )
        goal_time_s = declare_number(
            node, 'goal_time_tolerance_s', 1.0, 0.0, 3600.0,
            'time to settle at the goal where the goal does not say; 0: for ever',
        )
        count = len(ARM_JOINTS)
        self._defaults = Tolerances(
            path=(Tolerance(path_rad),) * count,
            goal=(Tolerance(goal_rad, _STOPPED_RADPS),) * count,
            goal_time_s=goal_time_s,
        )
        self._tolerances = self._defaults
        self._run: GoalRun | None = None
        self._over_s = 0.0
        self._feedback = Rate(_FEEDBACK_HZ)
        self.server = GoalServer(node, FollowJointTrajectory, ACTION_NAME, self, faults, delays)

    def refusal(self, goal: FollowJointTrajectory.Goal) -> str:
        """Say why a goal is rejected, empty where it is not."""
        now_s = self._node.get_clock().now().nanoseconds * 1e-9
        return self._arm.refusal(ACTION_NAME) or trajectory_refusal(
            goal.trajectory, ARM_JOINTS, now_s
        )

    def begin(self, run: GoalRun) -> None:
        """Follow a trajectory in place of the running one."""
        self.abort('Current goal preempted by new incoming action.')
        reason = self._arm.refusal(ACTION_NAME)  # it may have changed since the goal was checked
        if reason:
            self.server.abort(run, _result(_Result.INVALID_GOAL, reason), reason)
            return
        goal = run.request
        fault = tolerance_fault(goal, ARM_JOINTS)
        if fault:
            self._node.get_logger().error(f'default tolerances are used: {fault}')
        defaults = self._defaults
        self._tolerances = defaults if fault else merge_tolerances(defaults, goal, ARM_JOINTS)
        stamp_s = seconds(goal.trajectory.header.stamp)
        now_s = self._node.get_clock().now().nanoseconds * 1e-9
        at_time_s = now_s - stamp_s if stamp_s else 0.0
        points = waypoints_of(goal.trajectory, ARM_JOINTS)
        self._arm.owner = ACTION_NAME
        self._run = run
        self._over_s = 0.0
        self._arm.motion.follow(self._joined(points, at_time_s), at_time_s)

    def cancel(self, run: GoalRun) -> None:
        """Hold the position; the goal ends in the next turn of the loop."""
        if run is self._run:
            self._arm.motion.stop()

    def abort(self, why: str) -> None:
        """End the running goal, if there is one, without a word to the joints."""
        run = self._run
        if run is not None:
            self._forget()
            self.server.abort(run, _result(_Result.INVALID_GOAL, why), why)

    def destroy(self) -> None:
        """Close the server."""
        self.server.destroy()

    def turn(self, now_ns: int, elapsed_s: float) -> None:
        """Check the running goal once, after the joints have been moved."""
        run = self._run
        if run is None:
            return
        if run.is_cancel_wanted:
            if run.handle.is_cancel_requested:
                self._forget()
                self.server.finish_cancel(run, _Result())
            return
        motion = self._arm.motion
        if self._feedback.is_due(now_ns):
            self._send_feedback(run)
        if self.server.is_held_open(run):
            return
        if motion.is_trajectory_over:
            self._over_s += elapsed_s
            self._check_goal(run)
        else:
            self._check_path(run)

    def _check_path(self, run: GoalRun) -> None:
        text = self._violation(self._tolerances.path)
        if text:
            why = f'Aborted due to path tolerance violation: {text}'
            self._fail(run, _Result.PATH_TOLERANCE_VIOLATED, why)

    def _check_goal(self, run: GoalRun) -> None:
        text = self._violation(self._tolerances.goal)
        if not text:
            self._forget()
            self.server.succeed(run, _result(_Result.SUCCESSFUL, 'Goal successfully reached!'))
            return
        allowed_s = self._tolerances.goal_time_s
        if allowed_s > 0.0 and self._over_s > allowed_s:
            late = f'{self._over_s:f} seconds'
            why = f'Aborted due to goal_time_tolerance exceeding by {late}: {text}'
            self._fail(run, _Result.GOAL_TOLERANCE_VIOLATED, why)

    def _fail(self, run: GoalRun, code: int, why: str) -> None:
        self._forget()
        self._arm.motion.stop()
        self.server.abort(run, _result(code, why), why)

    def _forget(self) -> None:
        self._run = None
        self._arm.release(ACTION_NAME)

    def _violation(self, tolerances: tuple[Tolerance, ...]) -> str:
        motion = self._arm.motion
        wanted = motion.commanded
        for i, (name, tolerance) in enumerate(zip(ARM_JOINTS, tolerances, strict=True)):
            text = tolerance.text_if_violated(
                wanted.positions_rad[i] - motion.plant.positions_rad[i],
                wanted.velocities_radps[i] - motion.plant.velocities_radps[i],
            )
            if text:
                return f'{name} {text}'
        return ''

    def _joined(self, points: list[Waypoint], at_time_s: float) -> Trajectory:
        """Put the present state before the points that are still to come."""
        if points[0].time_s == at_time_s:
            return Trajectory(points)  # the controller commands a first point at time zero at once
        ahead = [p for p in points if p.time_s > at_time_s] or points[-1:]
        if ahead[0].time_s > at_time_s:
            motion = self._arm.motion
            here = Waypoint(at_time_s, motion.positions_rad, motion.velocities_radps)
            ahead = [here, *ahead]
        return Trajectory(ahead)

    def _send_feedback(self, run: GoalRun) -> None:
        motion = self._arm.motion
        wanted = motion.commanded
        positions, velocities = motion.positions_rad, motion.velocities_radps
        feedback = FollowJointTrajectory.Feedback()
        feedback.header.stamp = self._node.get_clock().now().to_msg()
        feedback.joint_names = list(ARM_JOINTS)
        feedback.desired = _point(wanted)
        zeros = (0.0,) * len(positions)
        feedback.actual = _point(JointSample(positions, velocities, zeros))
        errors = [
            tuple(a - b for a, b in zip(x, y, strict=True))
            for x, y in ((wanted.positions_rad, positions), (wanted.velocities_radps, velocities))
        ]
        feedback.error = _point(JointSample(errors[0], errors[1], zeros))
        time_s = max(0.0, motion.trajectory_time_s)
        for point in (feedback.desired, feedback.actual, feedback.error):
            point.time_from_start.sec = int(time_s)
            point.time_from_start.nanosec = int((time_s % 1.0) * 1e9)
        self.server.publish_feedback(run, feedback)


def _point(sample: JointSample) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(
        positions=sample.positions_rad, velocities=sample.velocities_radps
    )


def _result(code: int, text: str) -> FollowJointTrajectory.Result:
    return _Result(error_code=code, error_string=text)
