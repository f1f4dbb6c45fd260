"""
Owns the robot of the evidence: the embedded one, with notes of what reached it and when.

The robot itself is unchanged. Noted are the receipt of every cancel request, by wrapping the
callback that the action servers call for it, and the speed of the arm at every publication of
``joint_states``. A second action server on the same node serves the floor: it accepts every goal,
moves nothing, and ends a goal in the robot's turn after its cancel.
"""

from __future__ import annotations

from collections import deque
import os
import signal
import sys
import threading
import time
from typing import Any

from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse
from rclpy.parameter import Parameter
from rclpy.task import Future

from awp_ros_bridge.sim_robot import main as sim_main
from awp_ros_bridge.sim_robot.description import load_arm_chain, load_urdf
from awp_ros_bridge.sim_robot.goal_server import GoalServer
from awp_ros_bridge.sim_robot.node import SimRobot
from awp_ros_bridge.sim_robot.state_topics import StateTopics
from bench.worker import serve

FLOOR = 'floor/follow_joint_trajectory'
REST_RADPS = 0.01
REST_SAMPLES = 3
# Its own stops are moved out of the way: the safety topics are those of evidence.hardware, and
# what stops the arm is the bridge alone.
MOVED = ('safety/e_stop:=robot/e_stop', 'safety/protective_stop:=robot/protective_stop')
_KEPT = 20_000
_WAIT_S = 5.0


class Notes:
    """
    What reached the robot, with steady times; written by its loop, read by the commands.

    :ivar cancels: server kind (``robot`` or ``floor``), goal id, steady ns of receipt.
    :ivar speeds: steady ns and speed of the fastest joint of the arm.
    :ivar places: steady ns and positions of the joints of the arm.
    """

    def __init__(self) -> None:
        self.cancels: deque[tuple[str, str, int]] = deque(maxlen=_KEPT)
        self.speeds: deque[tuple[int, float]] = deque(maxlen=_KEPT)
        self.places: deque[tuple[int, tuple[float, ...]]] = deque(maxlen=_KEPT)
        self._news = threading.Condition()
        self._chain = load_arm_chain(load_urdf())

    def cancelled(self, kind: str, handle: Any) -> None:
        """Note the receipt of a cancel."""
        now_ns = time.monotonic_ns()
        with self._news:
            self.cancels.append((kind, bytes(handle.goal_id.uuid).hex(), now_ns))
            self._news.notify_all()

    def cancel(self, kind: str, since_ns: int, seconds: float) -> list[object] | None:
        """Wait for the first cancel after a time: goal id and steady ns; None for none."""

        def found() -> list[object] | None:
            rows = (r for r in list(self.cancels) if r[0] == kind and r[2] >= since_ns)
            return next(([goal, at_ns] for _, goal, at_ns in rows), None)

        with self._news:
            self._news.wait_for(found, seconds)
        return found()

    def motion(self, since_ns: int) -> list[float | None]:
        """
        Return the speed of the arm at a time, and the ns from then to rest.

        Rest begins with the first of three slow samples that are followed by no fast one; None
        while that has not been seen.
        """
        rows = list(self.speeds)
        before = [speed for at_ns, speed in rows if at_ns <= since_ns]
        rested_ns, slow = None, 0
        for at_ns, speed in rows:
            if at_ns < since_ns:
                continue
            if speed < REST_RADPS:
                rested_ns, slow = rested_ns or at_ns, slow + 1
            else:
                rested_ns, slow = None, 0
        took = None if rested_ns is None or slow < REST_SAMPLES else float(rested_ns - since_ns)
        return [before[-1] if before else 0.0, took]

    def outside(
        self, since_ns: int, lower_m: list[float], upper_m: list[float], margin_m: float
    ) -> int | None:
        """Return when the tip was first seen farther outside of a box than a margin."""
        for at_ns, positions in list(self.places):
            if at_ns >= since_ns:
                tip = self._chain.tip_position(positions)
                rows = zip(tip, lower_m, upper_m, strict=True)
                if any(not low - margin_m <= x <= high + margin_m for x, low, high in rows):
                    return at_ns
        return None


NOTES = Notes()


class Faults:
    """The faults of the robot, which its own loop puts in."""

    def __init__(self) -> None:
        self.robot: SimRobot | None = None
        self._wanted: tuple[str, threading.Event] | None = None

    def put(self, text: str) -> bool:
        """Replace the faults, and wait until that is done."""
        done = threading.Event()
        self._wanted = (text, done)
        return done.wait(_WAIT_S)

    def turn(self) -> None:
        """Do what is wanted; called in the robot's loop."""
        wanted, self._wanted = self._wanted, None
        if wanted is not None and self.robot is not None:
            (answer,) = self.robot.set_parameters([Parameter('fault', value=wanted[0])])
            assert answer.successful, answer.reason
            wanted[1].set()


FAULTS = Faults()


class EvidenceRobot(SimRobot):
    """The simulated robot with the floor's server beside its own."""

    def __init__(self) -> None:
        super().__init__()
        self._floor_goals: list[tuple[Any, Future[Any]]] = []
        FAULTS.robot = self
        callbacks: dict[str, Any] = {
            'execute_callback': self._execute_floor,
            'cancel_callback': self._on_floor_cancel,
            'result_timeout': 1.0,
        }
        self._floor: Any = ActionServer(self, FollowJointTrajectory, FLOOR, **callbacks)

    async def _execute_floor(self, handle: Any) -> Any:
        done: Future[Any] = Future()
        self._floor_goals.append((handle, done))
        await done
        return FollowJointTrajectory.Result()

    def _on_floor_cancel(self, handle: Any) -> CancelResponse:
        NOTES.cancelled('floor', handle)
        return CancelResponse.ACCEPT

    def _turn(self) -> None:
        FAULTS.turn()
        super()._turn()
        for row in list(self._floor_goals):
            handle, done = row
            if handle.is_cancel_requested:
                self._floor_goals.remove(row)
                handle.canceled()
                done.set_result(None)

    def close(self) -> None:
        """Close the floor's server too."""
        self._floor.destroy()
        super().close()


def _take_notes() -> None:
    """Wrap what is noted."""
    on_cancel, publish = GoalServer._on_cancel, StateTopics.publish_joint_states

    async def noted_cancel(server: GoalServer, handle: Any) -> Any:
        NOTES.cancelled('robot', handle)
        return await on_cancel(server, handle)

    def noted_publish(topics: StateTopics) -> None:
        publish(topics)
        speed = max(abs(v) for v in topics._arm.velocities_radps)
        now_ns = time.monotonic_ns()
        NOTES.speeds.append((now_ns, speed))
        NOTES.places.append((now_ns, tuple(topics._arm.positions_rad)))

    GoalServer._on_cancel = noted_cancel  # type: ignore[method-assign]
    StateTopics.publish_joint_states = noted_publish  # type: ignore[method-assign]


def _serve() -> None:
    commands = {'cancel': NOTES.cancel, 'motion': NOTES.motion, 'outside': NOTES.outside}
    serve({**commands, 'fault': FAULTS.put})
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run the robot until the pipe of the commands closes."""
    _take_notes()
    threading.Thread(target=_serve, daemon=True).start()
    rules = [word for rule in MOVED for word in ('-r', rule)]
    return sim_main.main([sys.argv[0], '--ros-args', *rules], EvidenceRobot)


if __name__ == '__main__':
    sys.exit(main())
