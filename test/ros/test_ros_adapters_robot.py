"""Adapters against the simulated robot's own servers: moves arrive, and the tip stays slow."""

from __future__ import annotations

from functools import partial
from pathlib import Path
import sys
from typing import Any

from control_msgs.action import (
    ExecuteMotionPrimitiveSequence,
    FollowJointTrajectory,
    ParallelGripperCommand,
)
import pytest
from ros_peer import Listener, RosPeer
from sensor_msgs.msg import JointState
from sim_robot_goals import GRIPPER, PRIMITIVE, TRAJECTORY

sys.path.insert(0, str(Path(__file__).parent.parent / 'unit'))

from adapter_context import CHAIN, home, point, pose_params, Robot, trajectory

from awp_ros_bridge.ros.adapters import registry
from awp_ros_bridge.sim_robot.description import ARM_JOINTS

pytestmark = pytest.mark.usefixtures('sim_robot')

TYPES: dict[str, tuple[Any, str]] = {
    'motion_primitive': (ExecuteMotionPrimitiveSequence, PRIMITIVE),
    'follow_joint_trajectory': (FollowJointTrajectory, TRAJECTORY),
    'parallel_gripper': (ParallelGripperCommand, GRIPPER),
}


@pytest.fixture
def states(peer: RosPeer) -> Any:
    with_all = peer.listen(JointState, 'joint_states', 100)
    with_all.wait_next()
    yield with_all
    with_all.close()


def follow(robot: Robot, states: Listener) -> None:
    newest = states.newest
    robot.joints = dict(zip(newest.name, newest.position, strict=True))


def run(
    peer: RosPeer, states: Listener, name: str, params: dict[str, Any], **options: Any
) -> tuple[list[float], float]:
    """Carry a goal out; return the progress on the way and the tip's highest speed."""
    robot = Robot()
    adapter = registry.build(name, robot.context(**options))
    states.wait_next()
    follow(robot, states)
    assert adapter.check(params) is None
    action_type, server = TYPES[name]
    goal = peer.send_goal(action_type, server, adapter.goal(params))
    assert goal.is_accepted
    start = adapter.begin(params)
    states.clear()
    progress: list[float] = []

    def is_over() -> bool:
        if states.messages:
            follow(robot, states)
        told = adapter.progress(params, goal.feedback[-1]) if goal.feedback else None
        found = told if told is not None else adapter.measured_progress(params, start)
        if found is not None:
            progress.append(found)
        return goal.is_over

    peer.wait_until(is_over, 30.0, 'the end of the goal')
    states.wait_next()  # the goal's end may overtake the last joint states
    is_over()
    outcome = adapter.outcome(goal.wait_result().result)
    assert outcome.ok, outcome.detail
    return progress, max((_tip_speed(m) for m in states.messages), default=0.0)


def _is_tip_at(states: Listener, p_m: tuple[float, float, float]) -> bool:
    rows = dict(zip(states.newest.name, states.newest.position, strict=True))
    tip = CHAIN.forward([rows[name] for name in ARM_JOINTS])
    return tip.position_m == pytest.approx(p_m, abs=0.002)


def _tip_speed(message: Any) -> float:
    rows = dict(
        zip(message.name, zip(message.position, message.velocity, strict=True), strict=True)
    )
    positions = [rows[name][0] for name in ARM_JOINTS]
    velocities = [rows[name][1] for name in ARM_JOINTS]
    return CHAIN.tip_speed_mps(positions, velocities)


@pytest.mark.parametrize('motion', ['ptp', 'lin'])
@pytest.mark.parametrize('speed_mps', [0.5, 0.15])
def test_a_move_arrives_and_keeps_below_its_speed(
    peer: RosPeer, states: Listener, motion: str, speed_mps: float
) -> None:
    for p_m in ((0.3, 0.2, 0.5), (0.0, 0.0, 0.35)):
        params = pose_params(p_m, motion=motion, max_velocity_mps=speed_mps)
        progress, fastest_mps = run(peer, states, 'motion_primitive', params)
        # the goal's end may overtake the last joint states
        arrived = partial(_is_tip_at, states, p_m)
        peer.wait_until(arrived, what='the tip at its target')
        assert fastest_mps <= speed_mps
        assert progress[0] < 0.4
        assert progress[-1] > 0.97


def test_a_trajectory_arrives(peer: RosPeer, states: Listener) -> None:
    params = trajectory(point(home(joint_1=0.2), 1500), point(home(), 3000))
    progress, _ = run(peer, states, 'follow_joint_trajectory', params)
    assert progress == sorted(progress)
    assert progress[-1] > 0.9


def test_the_gripper_arrives(peer: RosPeer, states: Listener) -> None:
    for position_m in (0.01, 0.04):
        params = {'position_m': position_m}
        progress, _ = run(peer, states, 'parallel_gripper', params, joint='gripper_joint')
        assert progress[-1] > 0.9
