"""
Owns the gripper's action servers: a finger moves to a position, or stalls against an object.

As with ros2_control's gripper controllers a new goal replaces the running one, a cancelled goal
holds the position, and a stall ends the goal.
"""

from dataclasses import replace

from rclpy.node import Node

from awp_ros_bridge.kinematics import Trajectory, Waypoint
from awp_ros_bridge.sim_robot.arm import Device
from awp_ros_bridge.sim_robot.delays import Delays
from awp_ros_bridge.sim_robot.faults import Faults
from awp_ros_bridge.sim_robot.goal_server import GoalRun, GoalServer
from awp_ros_bridge.sim_robot.gripper_forms import GripperForm, GripperState
from awp_ros_bridge.sim_robot.rate import Rate

_FEEDBACK_HZ = 20.0
_REACHED_M = 5e-4
_STALL_S = 0.25
MAX_EFFORT_N = 60.0


class GripperServer:
    """One action server on the gripper."""

    def __init__(
        self, node: Node, gripper: Device, form: GripperForm, faults: Faults, delays: Delays
    ) -> None:
        """Open the server in one of the two forms."""
        self._gripper = gripper
        self._form = form
        self._limits = gripper.motion.plant.limits
        self.object_m = 0.0
        self._run: GoalRun | None = None
        self._target_m = 0.0
        self._effort_n = MAX_EFFORT_N
        self._still_s = 0.0
        self._feedback = Rate(_FEEDBACK_HZ)
        self.server = GoalServer(node, form.action_type, form.action_name, self, faults, delays)

    def refusal(self, goal: object) -> str:
        """Say why a goal is rejected, empty where it is not."""
        reason = self._gripper.refusal(self._form.action_name) or self._form.refusal(goal)
        if reason:
            return reason
        position = self._form.command(goal)[0]
        low, high = self._limits.lower_rad[0], self._limits.upper_rad[0]
        if not low <= position <= high:
            return f'position {position} m is outside [{low}, {high}]'
        return ''

    def begin(self, run: GoalRun) -> None:
        """Move the finger in place of the running goal."""
        self.abort('replaced by a new goal')
        name = self._form.action_name
        reason = self._gripper.refusal(name)  # it may have changed since the goal was checked
        if reason:
            self.server.abort(run, self._form.result(self._state()), reason)
            return
        position, velocity, effort = self._form.command(run.request)
        motion = self._gripper.motion
        fastest = self._limits.max_velocity_radps[0]
        wall = self._limits.lower_rad[0]
        if position < self.object_m <= motion.positions_rad[0] + _REACHED_M:
            wall = min(self.object_m, motion.positions_rad[0])
        motion.plant.limits = replace(
            self._limits,
            max_velocity_radps=(min(velocity or fastest, fastest),),
            lower_rad=(wall,),
        )
        self._gripper.owner = name
        self._run, self._target_m, self._still_s = run, position, 0.0
        self._effort_n = min(effort or MAX_EFFORT_N, MAX_EFFORT_N)
        motion.follow(Trajectory([Waypoint(0.0, (position,))]))

    def cancel(self, run: GoalRun) -> None:
        """Hold the position; the goal ends in the next turn of the loop."""
        if run is self._run:
            self._gripper.motion.stop()

    def abort(self, why: str) -> None:
        """End the running goal, if there is one, without a word to the joint."""
        run = self._run
        if run is not None:
            self._forget()
            self.server.abort(run, self._form.result(self._state()), why)

    def destroy(self) -> None:
        """Close the server."""
        self.server.destroy()

    def turn(self, now_ns: int, elapsed_s: float) -> None:
        """Check the running goal once, after the finger has been moved."""
        run = self._run
        if run is None:
            return
        if run.is_cancel_wanted:
            if run.handle.is_cancel_requested:
                self._forget()
                self.server.finish_cancel(run, self._form.result(self._state()))
            return
        if self._feedback.is_due(now_ns):
            self.server.publish_feedback(run, self._form.feedback(self._state()))
        motion = self._gripper.motion
        self._still_s = self._still_s + elapsed_s if motion.is_at_rest else 0.0
        if self.server.is_held_open(run):
            return
        if abs(motion.positions_rad[0] - self._target_m) < _REACHED_M and motion.is_at_rest:
            self._forget()
            self.server.succeed(run, self._form.result(self._state(is_reached=True)))
        elif self._still_s > _STALL_S:
            self._forget()
            self.server.succeed(run, self._form.result(self._state(is_stalled=True)))

    def _state(self, *, is_stalled: bool = False, is_reached: bool = False) -> GripperState:
        motion = self._gripper.motion
        return GripperState(
            position_m=motion.positions_rad[0],
            velocity_mps=motion.velocities_radps[0],
            effort_n=self._effort_n if is_stalled else 0.0,
            is_stalled=is_stalled,
            is_reached=is_reached,
        )

    def _forget(self) -> None:
        self._run = None
        self._gripper.release(self._form.action_name)
