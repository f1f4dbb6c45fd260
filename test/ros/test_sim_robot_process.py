"""The process of the simulated robot: start, rates, frames, names, processor time, end."""

from collections.abc import Callable, Iterator
from pathlib import Path
import signal
import time
from typing import Any

from action_msgs.msg import GoalStatus
from lateness import Lateness
from processes import start_sim_robot, StartedProcess
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_peer import RosPeer
from sensor_msgs.msg import JointState
from sim_robot_goals import LIN, move, send_moves, wait_moving
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.sim_robot.description import load_arm_chain, load_urdf

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TF_STATIC = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture
def started(
    ros_domain_id: int, tmp_path: Path
) -> Iterator[Callable[[dict[str, object]], StartedProcess]]:
    processes: list[StartedProcess] = []

    def start(parameters: dict[str, object], namespace: str = '') -> StartedProcess:
        processes.append(start_sim_robot(tmp_path, parameters, f'r{len(processes)}', namespace))
        return processes[-1]

    yield start
    for process in processes:
        process.stop()  # one that is killed haunts the graph of the tests that follow


def test_ready_file_and_line(started: Callable[..., StartedProcess]) -> None:
    process = started({})
    assert process.wait_ready() == {'pid': process.pid}
    assert process.output.splitlines().count('sim_robot ready') == 1


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly_in_the_middle_of_a_goal(
    peer: RosPeer, started: Callable[..., StartedProcess], number: signal.Signals
) -> None:
    process = started({})
    states = peer.listen(JointState, 'joint_states')
    goal = send_moves(peer, move(LIN, (0.4, 0.4, 0.6)))
    wait_moving(peer, states)
    process.send_signal(number)
    ended = goal.wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    peer.wait_until(lambda: process.exit_status is not None, what='the end of the process')
    assert process.exit_status == 0, process.output
    assert 'Traceback' not in process.output
    states.close()


@pytest.mark.parametrize('rate_hz', [20.0, 100.0, 500.0])
def test_joint_state_rate(
    peer: RosPeer,
    started: Callable[..., StartedProcess],
    rate_hz: float,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    process = started({'joint_state_rate_hz': rate_hz})
    states = peer.listen(JointState, 'joint_states', 1000)
    states.wait_next(10.0)

    def fastest_hz() -> float:
        """Measure a few times: a machine may be too busy for the rate, but not always."""
        told_hz = []
        for _ in range(4):
            states.clear()
            peer.turn_for(0.5)
            stamps_s = states.stamps_s()
            told_hz.append((len(stamps_s) - 1) / (stamps_s[-1] - stamps_s[0]))
        return max(told_hz)

    measured_hz = fastest_hz()
    record_testsuite_property('joint_states_hz', measured_hz)
    assert 0.4 * rate_hz < measured_hz < 1.3 * rate_hz
    assert len(states.newest.name) == len(states.newest.effort) == 7
    states.close()
    assert process.stop() == 0


def test_frames_agree_with_the_joint_states(
    peer: RosPeer, started: Callable[..., StartedProcess], lateness: Lateness
) -> None:
    started({})
    static = peer.listen(TFMessage, '/tf_static', TF_STATIC)
    moving = peer.listen(TFMessage, '/tf', 100)
    states = peer.listen(JointState, 'joint_states')
    description = peer.listen(String, 'robot_description', LATCHED)
    for listener in (static, moving, states, description):
        peer.wait_until(lambda x=listener: x.messages, what='a first message')
    assert description.newest.data == load_urdf()
    links = {
        t.child_frame_id: t
        for message in (static.newest, moving.newest)
        for t in message.transforms
    }
    chain = []
    frame = 'tool0'
    while frame != 'world':
        chain.append(links[frame])
        frame = links[frame].header.frame_id
    arm = load_arm_chain(load_urdf())
    pose = Pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    for link in chain:
        pose = composed(link, pose)
    expected = arm.forward(states.newest.position[:6], 'world')
    assert pose.distance_m(expected) < 1e-6
    assert pose.angle_rad(expected) < 1e-6
    assert {'finger_left', 'finger_right', 'base', 'pedestal'} <= links.keys()
    moving.clear()
    began_ns = time.monotonic_ns()
    peer.wait_until(lambda: len(moving.messages) > 40, what='forty transforms')
    took_s = moving.arrivals_s[40] - moving.arrivals_s[0]
    assert took_s < 2.0 + lateness.since(began_ns) * 1e-9
    for listener in (static, moving, states, description):
        listener.close()


def composed(link: Any, pose: Pose) -> Pose:
    """Express a pose that is given in a link in the link's parent."""
    import pinocchio as pin

    from awp_ros_bridge.kinematics.chain import placement_of, pose_of

    t, r = link.transform.translation, link.transform.rotation
    step = placement_of(Pose((t.x, t.y, t.z), (r.x, r.y, r.z, r.w)))
    assert isinstance(step, pin.SE3)
    return pose_of(step * placement_of(pose))


def test_a_namespace_moves_every_name_but_tf(
    peer: RosPeer, started: Callable[..., StartedProcess]
) -> None:
    started({}, '/cell_1')
    wanted = {
        '/cell_1/joint_states',
        '/cell_1/safety/e_stop',
        '/cell_1/safety/protective_stop',
        '/cell_1/speed_scaling',
        '/cell_1/robot_description',
        '/cell_1/arm_controller/follow_joint_trajectory/_action/status',
        '/cell_1/motion_primitive_controller/motion_sequence/_action/status',
        '/cell_1/gripper_controller/gripper_cmd/_action/status',
        '/tf',
        '/tf_static',
    }

    def missing() -> set[str]:
        names = peer.node.get_topic_names_and_types(no_demangle=False)
        hidden = {
            n
            for n, _ in peer.node.get_publisher_names_and_types_by_node('sim_robot', '/cell_1')
        }
        return wanted - hidden - {n for n, _ in names}

    peer.wait_until(
        lambda: ('sim_robot', '/cell_1') in peer.node.get_node_names_and_namespaces(),
        10.0,
        'the node',
    )
    peer.wait_until(lambda: not missing(), what='all names')


def test_processor_time(
    peer: RosPeer,
    started: Callable[..., StartedProcess],
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    process = started({})
    states = peer.listen(JointState, 'joint_states')
    states.wait_next(10.0)
    for what in ('idle', 'moving'):
        goal = send_moves(peer, move(LIN, (0.4, 0.4, 0.6))) if what == 'moving' else None
        before_s, start_s = process.cpu_s(), time.monotonic()
        peer.turn_for(2.0)
        share = (process.cpu_s() - before_s) / (time.monotonic() - start_s)
        record_testsuite_property(f'cpu_share_{what}_at_100_hz', share)
        assert share < 0.5  # a coarse bound: the machine may be shared
        if goal is not None:
            goal.wait_result()
    states.close()


@pytest.mark.parametrize(
    'parameters',
    [{'joint_state_rate_hz': 0.0}, {'fault': 'unheard_of'}, {'max_tip_speed_mps': 0.0}],
)
def test_wrong_parameters_end_the_start(
    ros_domain_id: int, tmp_path: Path, parameters: dict[str, object]
) -> None:
    with pytest.raises(RuntimeError, match='ended with'):
        start_sim_robot(tmp_path, parameters)
