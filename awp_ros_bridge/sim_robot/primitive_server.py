"""
Owns ``motion_primitive_controller/motion_sequence``: PTP and LIN moves, one goal at a time.

As with ros2_control's motion primitives controllers a goal is rejected while another one runs, and
a cancelled goal ends when the arm has come to rest. A blend radius is accepted and the arm stops
at every target.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from control_msgs.action import ExecuteMotionPrimitiveSequence
from rclpy.node import Node

from awp_ros_bridge.kinematics import Chain, ChainError, Trajectory
from awp_ros_bridge.sim_robot.arm import Device
from awp_ros_bridge.sim_robot.delays import Delays
from awp_ros_bridge.sim_robot.faults import Faults
from awp_ros_bridge.sim_robot.goal_server import GoalRun, GoalServer
from awp_ros_bridge.sim_robot.parameters import declare_number
from awp_ros_bridge.sim_robot.planner import plan_lin, plan_ptp, PlanError, solve_pose
from awp_ros_bridge.sim_robot.primitive_goals import (
    limits_of,
    Move,
    PTP,
    read_move,
    sequence_refusal,
    SpeedSettings,
)
from awp_ros_bridge.sim_robot.rate import Rate

ACTION_NAME = 'motion_primitive_controller/motion_sequence'
_Result = ExecuteMotionPrimitiveSequence.Result
_FEEDBACK_HZ = 20.0
_REACHED_RAD = 1e-3


class PrimitiveServer:
    """The action server for motion primitives on the arm."""

    def __init__(
        self,
        node: Node,
        arm: Device,
        chain: Chain,
        planning_chain: Chain,
        faults: Faults,
        delays: Delays,
    ) -> None:
        """
        Open the server and read the speeds from the node's parameters.

        :param chain: for checks on the loop's thread
        :param planning_chain: another one, for the planning thread alone
        """
        self._arm = arm
        self._chain = chain
        self._planning_chain = planning_chain
        self._speeds = SpeedSettings(
            default_tip_speed_mps=declare_number(
                node, 'default_tip_speed_mps', 0.3, 0.001, 5.0,
                'linear speed of the tip in a move that names no velocity',
            ),
            max_tip_speed_mps=declare_number(
                node, 'max_tip_speed_mps', 0.48, 0.001, 5.0,
                'linear speed of the tip that no move exceeds, whatever it names',
            ),
            tip_acceleration_mps2=declare_number(
                node, 'tip_acceleration_mps2', 0.6, 0.001, 50.0,
                'acceleration of the tip in a move that names none',
            ),
        )
        self._run: GoalRun | None = None
        self._plan: Future[list[Trajectory]] | None = None
        self._moves: list[Trajectory] = []
        self._index = -1
        self._feedback = Rate(_FEEDBACK_HZ)
        self._planner = ThreadPoolExecutor(max_workers=1, thread_name_prefix='planner')
        self.server = GoalServer(
            node, ExecuteMotionPrimitiveSequence, ACTION_NAME, self, faults, delays
        )

    def refusal(self, goal: ExecuteMotionPrimitiveSequence.Goal) -> str:
        """Say why a goal is rejected, empty where it is not."""
        if self._run is not None:
            return 'a goal is already running'
        return self._arm.refusal(ACTION_NAME) or sequence_refusal(
            goal.trajectory.motions, self._chain
        )

    def begin(self, run: GoalRun) -> None:
        """Wait for rest, plan and move."""
        reason = self._arm.refusal(ACTION_NAME)  # it may have changed since the goal was checked
        if reason or self._run is not None:
            why = reason or 'another goal was accepted first'
            self.server.abort(run, _result(_Result.INVALID_GOAL, why), why)
            return
        self._arm.owner = ACTION_NAME
        self._run = run
        self._plan, self._moves, self._index = None, [], -1

    def cancel(self, run: GoalRun) -> None:
        """Brake; the goal ends when the arm rests."""
        if run is self._run:
            self._arm.motion.stop()

    def abort(self, why: str) -> None:
        """End the running goal, if there is one, without a word to the joints."""
        run = self._run
        if run is not None:
            self._forget()
            self.server.abort(run, _result(_Result.INVALID_GOAL, why), why)

    def destroy(self) -> None:
        """Close the server and the planning thread."""
        self._planner.shutdown(wait=False, cancel_futures=True)
        self.server.destroy()

    def turn(self, now_ns: int) -> None:
        """Bring the running goal one step on, after the joints have been moved."""
        run = self._run
        if run is None:
            return
        motion = self._arm.motion
        if run.is_cancel_wanted:
            if run.handle.is_cancel_requested and motion.is_at_rest:
                self._forget()
                self.server.finish_cancel(run, _result(_Result.SUCCESSFUL, 'canceled'))
            return
        if self._index >= 0 and self._feedback.is_due(now_ns):
            feedback = ExecuteMotionPrimitiveSequence.Feedback()
            feedback.current_primitive_index = self._index
            self.server.publish_feedback(run, feedback)
        if self._index < 0:
            self._prepare(run)
        elif self._is_target_reached() and not self.server.is_held_open(run):
            self._next(run)

    def _prepare(self, run: GoalRun) -> None:
        """Plan once the arm rests, and start once the plan is there."""
        motion = self._arm.motion
        if self._plan is None:
            if motion.is_at_rest:
                base = self._chain.base_frame
                moves = [read_move(m, base) for m in run.request.trajectory.motions]
                start = motion.positions_rad
                self._plan = self._planner.submit(self._make_plan, moves, start)
        elif self._plan.done():
            try:
                self._moves = self._plan.result()
            except PlanError as error:
                self.abort(str(error))
                return
            self._next(run)

    def _next(self, run: GoalRun) -> None:
        self._index += 1
        if self._index < len(self._moves):
            self._arm.motion.follow(self._moves[self._index])
            return
        self._forget()
        done = _result(_Result.SUCCESSFUL, 'Motion primitives executed successfully')
        self.server.succeed(run, done)

    def _is_target_reached(self) -> bool:
        motion = self._arm.motion
        if not (motion.is_trajectory_over and motion.is_at_rest):
            return False
        pairs = zip(motion.positions_rad, motion.commanded.positions_rad, strict=True)
        return all(abs(a - b) < _REACHED_RAD for a, b in pairs)

    def _forget(self) -> None:
        self._run = self._plan = None
        self._arm.release(ACTION_NAME)

    def _make_plan(self, moves: Sequence[Move], start_rad: tuple[float, ...]) -> list[Trajectory]:
        """Plan every move from the end of the one before; runs on the planning thread."""
        plan = []
        for index, move in enumerate(moves):
            try:
                trajectory = self._plan_move(move, start_rad)
            except (PlanError, ChainError) as error:
                raise PlanError(f'primitive {index}: {error}') from error
            plan.append(trajectory)
            start_rad = trajectory.waypoints[-1].positions_rad
        return plan

    def _plan_move(self, move: Move, start_rad: tuple[float, ...]) -> Trajectory:
        chain = self._planning_chain
        limits = self._arm.motion.plant.limits
        speed = limits_of(
            move, self._speeds, limits.max_velocity_radps, limits.max_acceleration_radps2
        )
        pose = None if move.pose is None else chain.to_base(move.pose, move.frame, start_rad)
        if move.kind == PTP:
            end_rad = move.joints_rad if pose is None else solve_pose(chain, pose, start_rad)
            return plan_ptp(chain, start_rad, end_rad, speed)
        if pose is None:
            pose = chain.forward(move.joints_rad)
        return plan_lin(chain, start_rad, pose, speed)


def _result(code: int, text: str) -> ExecuteMotionPrimitiveSequence.Result:
    return _Result(error_code=code, error_string=text)
