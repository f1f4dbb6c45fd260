"""The simulated gripper: positions, speed, replacement, cancel, a grasped object, refusals."""

from collections.abc import Iterator
import math
from pathlib import Path

from action_msgs.msg import GoalStatus
from control_msgs.action import GripperCommand
from processes import start_sim_robot, StartedProcess
import pytest
from ros_peer import Listener, RosPeer
from sensor_msgs.msg import JointState
from sim_robot_goals import away, reset, send_gripper, send_trajectory, set_parameter, trajectory

LEGACY = 'gripper_controller/gripper_command_legacy'


@pytest.fixture(scope='module')
def sim_robot(
    ros_domain_id: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartedProcess]:
    folder: Path = tmp_path_factory.mktemp('gripper')
    process = start_sim_robot(folder, {'legacy_gripper': True})
    yield process
    process.stop()


@pytest.fixture(scope='module')
def joint_states(sim_robot: StartedProcess, peer: RosPeer) -> Iterator[Listener]:
    listener = peer.listen(JointState, 'joint_states', 100)
    yield listener
    listener.close()


@pytest.fixture(autouse=True)
def open_gripper(peer: RosPeer, joint_states: Listener) -> None:
    reset(peer)
    set_parameter(peer, 'gripper_object_m', 0.0)
    joint_states.wait_next()
    joint_states.clear()


def test_it_closes_at_its_speed_and_says_so(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_gripper(peer, 0.0)
    ended = goal.wait_result()
    assert ended.status == GoalStatus.STATUS_SUCCEEDED
    assert ended.result.reached_goal
    assert not ended.result.stalled
    assert list(ended.result.state.name) == ['gripper_joint']
    assert ended.result.state.position[0] == pytest.approx(0.0, abs=1e-3)
    assert joint_states.wait_next().position[6] == pytest.approx(0.0, abs=1e-3)
    fastest = max(abs(m.velocity[6]) for m in joint_states.messages)
    assert 0.04 < fastest <= 0.05 + 1e-9
    assert len(goal.feedback) >= 5
    assert goal.feedback[0].state.position[0] > goal.feedback[-1].state.position[0]


def test_velocity_and_name_are_honoured(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_gripper(peer, 0.02, velocity=[0.015], name=['gripper_joint'], effort=[10.0])
    assert goal.wait_result().result.reached_goal
    assert max(abs(m.velocity[6]) for m in joint_states.messages) <= 0.015 + 1e-9


def test_a_new_goal_replaces_the_running_one(peer: RosPeer) -> None:
    first = send_gripper(peer, 0.0, velocity=[0.01])
    second = send_gripper(peer, 0.04)
    assert first.wait_result().status == GoalStatus.STATUS_ABORTED
    assert second.wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_cancel_holds_the_position(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_gripper(peer, 0.0, velocity=[0.015])
    joint_states.wait_next()
    peer.wait_until(lambda: joint_states.newest.position[6] < 0.038, what='the finger moving')
    goal.cancel()
    assert goal.wait_result().status == GoalStatus.STATUS_CANCELED
    peer.wait_until(lambda: joint_states.newest.velocity[6] == 0.0, what='the finger at rest')
    assert joint_states.newest.position[6] > 0.01


def test_an_object_stalls_it(peer: RosPeer) -> None:
    set_parameter(peer, 'gripper_object_m', 0.015)
    ended = send_gripper(peer, 0.0, effort=[20.0]).wait_result()
    assert ended.status == GoalStatus.STATUS_SUCCEEDED
    assert ended.result.stalled
    assert not ended.result.reached_goal
    assert ended.result.state.position[0] == pytest.approx(0.015, abs=1e-3)
    assert ended.result.state.effort[0] == 20.0
    assert send_gripper(peer, 0.04).wait_result().result.reached_goal


def test_arm_and_gripper_move_together(peer: RosPeer) -> None:
    arm = send_trajectory(peer, trajectory([(1.5, away(0.2))]))
    gripper = send_gripper(peer, 0.0)
    assert gripper.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert arm.wait_result().status == GoalStatus.STATUS_SUCCEEDED


@pytest.mark.parametrize('position', [-0.001, 0.05, math.nan, math.inf])
def test_refused_positions(peer: RosPeer, position: float) -> None:
    assert not send_gripper(peer, position).is_accepted


@pytest.mark.parametrize(
    'fields',
    [{'name': ['other']}, {'velocity': [-1.0]}, {'velocity': [0.1, 0.1]}, {'effort': [math.nan]}],
)
def test_refused_fields(peer: RosPeer, fields: dict[str, list[float]]) -> None:
    assert not send_gripper(peer, 0.02, **fields).is_accepted


def test_the_older_action_type(peer: RosPeer) -> None:
    goal = GripperCommand.Goal()
    goal.command.position, goal.command.max_effort = 0.01, 5.0
    ended = peer.send_goal(GripperCommand, LEGACY, goal).wait_result()
    assert ended.status == GoalStatus.STATUS_SUCCEEDED
    assert ended.result.reached_goal
    assert ended.result.position == pytest.approx(0.01, abs=1e-3)


def test_the_two_action_types_do_not_mix(peer: RosPeer) -> None:
    running = send_gripper(peer, 0.0, velocity=[0.01])
    goal = GripperCommand.Goal()
    goal.command.position = 0.04
    assert not peer.send_goal(GripperCommand, LEGACY, goal).is_accepted
    running.cancel()
    running.wait_result()
