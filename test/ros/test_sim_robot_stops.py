"""E-stop, protective stop, reset and speed scaling of the simulated robot."""

from collections.abc import Callable, Iterator
import signal
import time
from typing import Any

from action_msgs.msg import GoalStatus
from lateness import Lateness
from processes import StartedProcess
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_peer import Listener, RosPeer
from sensor_msgs.msg import JointState
from sim_robot_goals import (
    arm_speed_radps,
    away,
    HOME,
    move,
    PTP,
    reset,
    send_gripper,
    send_moves,
    send_trajectory,
    set_parameter,
    trajectory,
    wait_at_rest,
    wait_moving,
)
from simulation_interfaces.srv import ResetSimulation
from std_msgs.msg import Bool, Float64
from std_srvs.srv import Trigger

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STOPS = ['e_stop', 'protective_stop']


@pytest.fixture(scope='module')
def joint_states(sim_robot: StartedProcess, peer: RosPeer) -> Iterator[Listener]:
    listener = peer.listen(JointState, 'joint_states', 100)
    yield listener
    listener.close()


@pytest.fixture(scope='module')
def stops(sim_robot: StartedProcess, peer: RosPeer) -> dict[str, Listener]:
    return {name: peer.listen(Bool, f'safety/{name}', LATCHED) for name in STOPS}


@pytest.fixture(autouse=True)
def at_home(peer: RosPeer, joint_states: Listener, stops: dict[str, Listener]) -> None:
    reset(peer)
    joint_states.wait_next()
    joint_states.clear()
    for listener in stops.values():
        peer.wait_until(lambda x=listener: x.messages and not x.newest.data, what='released')
        listener.clear()


def slow(peer: RosPeer) -> Any:
    return send_moves(peer, move(PTP, (0.4, 0.4, 0.6)))


def test_the_signal_trips_and_clears_within_fifty_milliseconds(
    peer: RosPeer,
    sim_robot: StartedProcess,
    stops: dict[str, Listener],
    lateness: Lateness,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    e_stop = stops['e_stop']
    taken_ms, late_ms = [], []
    for number, wanted in [(signal.SIGUSR1, True), (signal.SIGUSR2, False)] * 20:
        count = len(e_stop.messages)
        start_ns = time.monotonic_ns()
        sim_robot.send_signal(number)
        peer.wait_until(
            lambda c=count, w=wanted: any(m.data is w for m in e_stop.messages[c:]),
            5.0,
            'the e-stop on its topic',
        )
        taken_ms.append((time.monotonic_ns() - start_ns) * 1e-6)
        late_ms.append(taken_ms[-1] - lateness.since(start_ns) * 1e-6)
    taken_ms.sort()
    late_ms.sort()
    record_testsuite_property('e_stop_signal_to_topic_ms_median', taken_ms[len(taken_ms) // 2])
    record_testsuite_property('e_stop_signal_to_topic_ms_max', taken_ms[-1])
    # A machine that is out of processor time may hold up some of forty for a scheduling period.
    assert late_ms[-4] < 50.0, taken_ms


@pytest.mark.parametrize('name', STOPS)
def test_a_stop_brakes_aborts_and_refuses_until_it_is_cleared(
    peer: RosPeer, joint_states: Listener, stops: dict[str, Listener], name: str
) -> None:
    goal = slow(peer)
    wait_moving(peer, joint_states, 0.2)
    assert peer.call(Trigger, f'sim/trip_{name}').success
    peer.wait_until(lambda: stops[name].messages and stops[name].newest.data, what=name)
    ended = goal.wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert name in ended.result.error_string
    wait_at_rest(peer, joint_states)
    assert not slow(peer).is_accepted
    assert not send_trajectory(peer, trajectory([(1.0, HOME)])).is_accepted
    assert not send_gripper(peer, 0.01).is_accepted
    assert peer.call(Trigger, f'sim/clear_{name}').success
    peer.wait_until(lambda: not stops[name].newest.data, what=f'{name} released')
    again = send_moves(peer, move(PTP, (0.0, 0.0, 0.4)))
    assert again.wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_a_stop_aborts_a_trajectory_and_the_gripper(
    peer: RosPeer, joint_states: Listener, sim_robot: StartedProcess
) -> None:
    arm = send_trajectory(peer, trajectory([(3.0, away(1.5))]))
    gripper = send_gripper(peer, 0.0, velocity=[0.01])
    wait_moving(peer, joint_states, 0.3)
    sim_robot.send_signal(signal.SIGUSR1)
    ended = arm.wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert 'e_stop engaged' in ended.result.error_string
    assert gripper.wait_result().status == GoalStatus.STATUS_ABORTED
    wait_at_rest(peer, joint_states)


def test_both_stops_are_needed_to_be_released(peer: RosPeer) -> None:
    for name in STOPS:
        peer.call(Trigger, f'sim/trip_{name}')
    peer.call(Trigger, 'sim/clear_e_stop')
    assert not slow(peer).is_accepted
    peer.call(Trigger, 'sim/clear_protective_stop')
    goal = slow(peer)
    assert goal.is_accepted
    goal.cancel()
    goal.wait_result()


def test_safety_topics_beat_and_are_latched(
    peer: RosPeer, stops: dict[str, Listener], lateness: Lateness
) -> None:
    peer.call(Trigger, 'sim/trip_e_stop')
    late = peer.listen(Bool, 'safety/e_stop', LATCHED)
    assert late.wait_next().data is True
    late.close()
    for listener in stops.values():
        listener.clear()
    began_ns = time.monotonic_ns()
    for listener in stops.values():
        peer.wait_until(lambda x=listener: len(x.messages) > 8, what='its beat')
    took_s = (time.monotonic_ns() - began_ns) * 1e-9
    assert 0.5 < took_s < 1.6 + lateness.since(began_ns) * 1e-9, 'about ten a second'


def test_reset_is_at_once_and_aborts(peer: RosPeer, joint_states: Listener) -> None:
    goal = slow(peer)
    wait_moving(peer, joint_states, 0.2)
    response = peer.call(ResetSimulation, 'sim/reset')
    assert response.result.result == type(response.result).RESULT_OK
    assert goal.wait_result().status == GoalStatus.STATUS_ABORTED
    state = joint_states.wait_next()
    peer.wait_until(lambda: list(joint_states.newest.position[:6]) == HOME, what='home')
    assert arm_speed_radps(joint_states.newest) == 0.0
    assert state.name[6] == 'gripper_joint'


def test_reset_does_not_release_a_stop(peer: RosPeer, stops: dict[str, Listener]) -> None:
    peer.call(Trigger, 'sim/trip_e_stop')
    peer.call(ResetSimulation, 'sim/reset')
    assert not slow(peer).is_accepted


def test_speed_scaling_slows_a_running_move(peer: RosPeer, joint_states: Listener) -> None:
    scaling = peer.listen(Float64, 'speed_scaling', LATCHED)
    assert scaling.wait_next().data == 1.0
    goal = slow(peer)
    wait_moving(peer, joint_states, 0.2)
    assert set_parameter(peer, 'speed_scaling', 0.25).successful
    peer.wait_until(lambda: scaling.newest.data == 0.25, what='the scaling on its topic')
    peer.turn_for(0.4)
    slowed = arm_speed_radps(joint_states.newest)
    assert set_parameter(peer, 'speed_scaling', 0.0).successful
    wait_at_rest(peer, joint_states)
    assert not goal.is_over
    publisher = peer.node.create_publisher(Float64, 'sim/set_speed_scaling', 1)
    peer.wait_until(lambda: publisher.get_subscription_count() == 1, what='a subscriber')
    publisher.publish(Float64(data=1.0))
    peer.wait_until(lambda: scaling.newest.data == 1.0, what='full speed')
    wait_moving(peer, joint_states, slowed * 2)
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    scaling.close()


@pytest.mark.parametrize('value', [-0.1, 1.1])
def test_speed_scaling_has_a_range(peer: RosPeer, value: float) -> None:
    assert not set_parameter(peer, 'speed_scaling', value).successful
