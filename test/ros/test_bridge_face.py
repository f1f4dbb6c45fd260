"""What ROS sees of a whole bridge, what an operator may do, and the command line for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
import contextlib
import itertools
import json
from pathlib import Path
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    Cell,
    HOME_M,
    may_move,
    open_when_free,
    patient_config,
    RobotTap,
    set_moving,
)
from diagnostic_msgs.msg import DiagnosticArray
from gateway_rig import config, running
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from patience import run, until
from processes import BridgeProcess, GuardianProcess, SIM_ARM, start_bridge, start_sim_robot
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_peer import Listener, RosPeer, stamp_ns, WaitError
import secrets_written
from sensor_msgs.msg import JointState
from sim_robot_goals import PRIMITIVE
from std_msgs.msg import String
from std_srvs.srv import Trigger
from websockets.exceptions import ConnectionClosed

from awp_ros_bridge.cli.main import main
from awp_ros_bridge.ros import diagnostics

SPACE = '/cell7'
BRIDGE = f'{SPACE}/door'
HEALTH = f'{SPACE}/health'
PLACE = ('-r', f'__ns:={SPACE}', '-r', '__node:=door', '-r', f'/diagnostics:={HEALTH}')
AWP_PLACE = ('--ros-args', '-r', f'/diagnostics:={HEALTH}')
SERVERS = (
    'motion_primitive_controller/motion_sequence',
    'arm_controller/follow_joint_trajectory',
    'gripper_controller/gripper_cmd',
)
INPUTS = tuple(f'{e}/{n}' for e in ('arm_01', 'gripper_01') for n in ('e_stop', 'protective_stop'))
NAMES = (
    'name', 'server', 'sessions', 'audit', 'embodiment arm_01', 'embodiment gripper_01',
    *(f'safety input {name}' for name in INPUTS),
    'guardian',
    *(f'action server {name}' for name in SERVERS),
    'channel proprio', 'channel arm_state', 'channel gripper_state', 'channel awp.tf',
    'clock', 'executors',
)  # fmt: skip

Statuses = dict[str, tuple[int, str, dict[str, str]]]
Awp = Callable[..., tuple[int, Any, str]]


def read(message: Any) -> Statuses:
    """Return level, message and values of each status by its name, in the order of the array."""
    return {
        s.name: (s.level[0], s.message, {v.key: v.value for v in s.values})
        for s in message.status
    }


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('face')
    there = ('-r', f'__ns:={SPACE}')
    config = patient_config(folder, guardian='required')
    guardian = GuardianProcess(
        folder, config, arguments=('--bridge', 'door'), ros_arguments=there
    )
    bridge = BridgeProcess(folder, 'bridge', config, ros_arguments=PLACE, log_level='debug')
    robot = start_sim_robot(folder, namespace=SPACE)
    started = Cell(robot, bridge, folder, guardian)
    try:
        bridge.wait_ready()
        run(started.warm_up())
        yield started
    finally:
        if started.bridge.exit_status is None:
            started.bridge.stop()
        robot.stop()
        guardian.end()


@pytest.fixture(scope='module')
def health(cell: Cell, peer: RosPeer) -> Iterator[Listener]:
    heard = peer.listen(DiagnosticArray, HEALTH)
    yield heard
    heard.close()


@pytest.fixture(scope='module')
def sessions(cell: Cell, peer: RosPeer) -> Iterator[Listener]:
    heard = peer.listen(DiagnosticArray, f'{BRIDGE}/sessions')
    yield heard
    heard.close()


@pytest.fixture
def _cleared(cell: Cell, peer: RosPeer) -> Iterator[None]:
    """Take away what a test that failed has left stopped."""
    yield
    call(peer, 'clear')


@pytest.fixture
def awp(capsys: pytest.CaptureFixture[str]) -> Awp:
    """Return a way to run the command line in this process; it answers in JSON."""

    def ask(*words: str, ros: tuple[str, ...] = AWP_PLACE) -> tuple[int, Any, str]:
        bound = () if '--timeout-s' in words else ('--timeout-s', '20')
        code = main([*words, '--json', *bound, *ros])
        out, err = capsys.readouterr()
        return code, json.loads(out), err

    return ask


def wait_for(
    peer: RosPeer, heard: Listener, name: str, condition: Callable[..., object], what: str
) -> Statuses:
    """Wait until a status of the bridge is so, and return them all."""

    def is_so() -> bool:
        found = read(heard.newest) if heard.messages else {}
        return f'{BRIDGE[1:]}: {name}' in found and bool(
            condition(*found[f'{BRIDGE[1:]}: {name}'])
        )

    peer.wait_until(is_so, 20.0, f'{name}: {what}')
    return read(heard.newest)


def all_are_well(peer: RosPeer, heard: Listener) -> None:
    """Wait until every part is told to be well at once, from now on."""
    since_ns = time.time_ns()

    def is_told() -> bool:
        return bool(heard.messages) and stamp_ns(heard.newest.header.stamp) >= since_ns

    def unwell() -> Statuses:
        found = read(heard.newest) if heard.messages else {}
        return {name: said for name, said in found.items() if said[0] != 0}

    try:
        peer.wait_until(lambda: is_told() and not unwell(), 20.0, 'every part well')
    except WaitError as error:
        raise AssertionError(unwell()) from error


def call(peer: RosPeer, name: str) -> Any:
    return peer.call(Trigger, f'{BRIDGE}/{name}')


# ---------------------------------------------------------------- diagnostics


def test_every_part_has_a_status_and_all_are_well_under_the_remapped_name(
    cell: Cell, peer: RosPeer, health: Listener
) -> None:
    joints = peer.listen(JointState, f'{SPACE}/joint_states', 100)
    begun_s = time.monotonic()
    all_are_well(peer, health)
    found = read(health.newest)
    assert tuple(found) == tuple(f'{BRIDGE[1:]}: {name}' for name in NAMES)
    assert {s.hardware_id for s in health.newest.status} == {'demo-cell'}
    server = found[f'{BRIDGE[1:]}: server']
    assert server[1] == f'serves {cell.bridge.url}'
    proprio = found[f'{BRIDGE[1:]}: channel proprio'][2]
    assert proprio['topic'] == f'{SPACE}/joint_states'
    peer.wait_until(lambda: len(joints.messages) > 100, 20.0, 'joint states')
    real_hz = len(joints.messages) / (time.monotonic() - begun_s)
    assert 0.3 * real_hz < float(proprio['rate_hz']) < 3.0 * real_hz
    joints.close()
    executors = found[f'{BRIDGE[1:]}: executors'][2]
    assert set(executors) == {'safety_ms', 'goals_ms', 'observations_ms', 'loop_ms'}
    assert not peer.node.get_publishers_info_by_topic('/diagnostics')
    told_ns = [stamp_ns(each.header.stamp) for each in health.messages]
    assert all(b - a < 5e9 for a, b in itertools.pairwise(told_ns)), 'one a second'


def test_each_status_is_an_error_until_it_is_proven_and_bridges_do_not_disturb_each_other(
    cell: Cell, peer: RosPeer, awp: Awp
) -> None:
    second = BridgeProcess(
        cell.folder, 'second', SIM_ARM, ros_arguments=('-r', '__ns:=/nowhere')
    )
    heard = peer.listen(DiagnosticArray, '/diagnostics')
    try:
        second.wait_ready()
        prefix = 'nowhere/awp_ros_bridge: '
        proven = ('name', 'server', 'sessions', 'audit', 'channel arm_state',
                  'channel gripper_state', 'clock', 'executors')  # fmt: skip
        peer.wait_until(
            lambda: heard.messages
            and all(read(heard.newest)[f'{prefix}{name}'][0] == 0 for name in proven),
            20.0,
            'what proves itself',
        )
        for message in heard.messages:
            found = read(message)
            assert set(found) == {f'{prefix}{name}' for name in NAMES}
            for name in set(NAMES) - {'channel awp.tf'} - set(proven):  # there is one /tf for all
                assert found[prefix + name][0] == 2, (name, found[prefix + name])
        assert 'no guardian is heard' in found[f'{prefix}guardian'][1]
        assert second.url != cell.bridge.url
        for _ in range(5):  # who is found late is found the next time
            code, said, _ = awp('sessions', '--timeout-s', '3')
            if code == 3:
                break
        assert code == 3
        assert said['error'] == (
            f'there are 2 bridges, name one: --bridge {BRIDGE}, --bridge /nowhere/awp_ros_bridge'
        )
        code, said, _ = awp('stop', '--bridge', '/nowhere/awp_ros_bridge')
        assert (code, len(said['answers'])) == (0, 1)
        assert call(peer, 'clear').success is False, 'the other one was not stopped'
    finally:
        heard.close()
        second.stop()


def test_two_bridges_of_one_name_are_told(
    ros_domain_id: int, peer: RosPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, 'NAMESAKE_NS', 0)
    monkeypatch.setattr(diagnostics, 'PERIOD_NS', 200_000_000)
    other = peer.node.create_publisher(DiagnosticArray, '/awp_ros_bridge/sessions', 1)
    heard = peer.listen(DiagnosticArray, '/diagnostics')
    with running(config()):
        peer.wait_until(
            lambda: heard.messages and read(heard.newest)['awp_ros_bridge: name'][0] == 2,
            what='the namesake',
        )
        found = read(heard.newest)
        assert 'another node is called /awp_ros_bridge too' in found['awp_ros_bridge: name'][1]
        assert found['awp_ros_bridge: server'][:2] == (
            2, 'not proven yet: the loop of the bridge does not answer',
        )  # fmt: skip
        peer.node.destroy_publisher(other)
        peer.wait_until(
            lambda: read(heard.newest)['awp_ros_bridge: name'][0] == 0, what='the only one'
        )
    heard.close()


# ---------------------------------------------------------------- sessions


def test_sessions_are_told_while_they_last_and_an_operator_can_close_one(
    cell: Cell, peer: RosPeer, health: Listener, sessions: Listener, awp: Awp
) -> None:
    asked: dict[str, Any] = {}

    async def play() -> tuple[str, str]:
        with RobotTap(SPACE) as tap:
            async with cell.holding() as agent, cell.watching('proprio', rate_hz=20) as watcher:
                go = await set_moving(agent, tap, max_velocity_mps=0.05)  # for 7.5 s
                await asyncio.to_thread(looks, agent, watcher, go)
                await agent.submit('on', 'move_to_pose', to_pose(*HOME_M), preempt='queue')
                await asyncio.to_thread(closes)
                said = await agent.session_state('closed')
                assert said.params['reason'] == 'session_closed'
                assert agent.states('on')[-1] == 'cancelled'
                await tap.caught_up()
                assert tap.is_at_rest
                assert agent.closed is None
                assert await agent.where(agent.ready['session_id']) == 'unknown'
                return agent.ready['session_id'], watcher.ready['session_id']

    def looks(agent: Agent, watcher: Agent, go: str) -> None:
        own, other = agent.ready['session_id'], watcher.ready['session_id']
        peer.wait_until(
            lambda: sessions.messages
            and {own, other} <= set(read(sessions.newest))
            and 'executing' in read(sessions.newest)[own][2]['actions'],
            what='both sessions',
        )
        level, line, values = read(sessions.newest)[own]
        assert (level, line) == (0, 'active, tester holds arm_01, 1 action')
        assert values['actions'] == f'{go} move_to_pose executing'
        assert values['credential'] == 'environment'
        assert values['peer'].startswith('127.0.0.1:')
        assert read(sessions.newest)[other][2]['channels'] == 'proprio'
        held = {s.name: s.hardware_id for s in sessions.newest.status}
        assert held == {own: 'arm_01', other: ''}
        found = wait_for(
            peer, health, 'channel proprio', lambda _, __, v: v['readers'] == '1', 'read'
        )
        assert found[f'{BRIDGE[1:]}: channel proprio'][2]['granted_hz'] == '20'
        code, told, _ = awp('sessions')
        assert (code, told['bridge']) == (0, BRIDGE)
        rows = {row['session']: row for row in told['sessions']}
        assert rows[own]['embodiments'] == 'arm_01'

    def closes() -> None:
        asked['answer'] = call(peer, 'arm_01/close_session')

    own, _ = run(play())
    answer = asked['answer']
    assert answer.success, answer.message
    assert answer.message == f'{own} closed, arm_01 is free'
    answer = call(peer, 'arm_01/close_session')
    assert (answer.success, answer.message) == (False, 'no session holds arm_01')


def test_a_suspended_session_is_a_warning_and_can_be_closed(
    cell: Cell, peer: RosPeer, health: Listener, sessions: Listener
) -> None:
    async def leave() -> str:
        async with await cell.agent() as agent:
            await open_when_free(agent, 'gripper_01')
            return str(agent.ready['session_id'])

    left = run(leave())
    peer.wait_until(
        lambda: sessions.messages
        and left in read(sessions.newest) and read(sessions.newest)[left][0] == 1,
        what='a warning',
    )
    assert read(sessions.newest)[left][2]['peer'] == ''
    wait_for(peer, health, 'sessions', lambda level, text, _: level == 1 and left in text, 'WARN')
    assert call(peer, 'gripper_01/close_session').success
    wait_for(peer, health, 'sessions', lambda _, __, values: left not in values, 'closed')


# ---------------------------------------------------------------- the command line


@pytest.mark.usefixtures('_cleared')
def test_the_command_line_stops_shows_and_clears(
    cell: Cell, peer: RosPeer, health: Listener, awp: Awp, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, _ = awp('stop', 'arm_01', '--bridge', BRIDGE)
    assert (code, said['ok']) == (0, True)
    assert said['answers'] == [
        {
            'bridge': BRIDGE,
            'ok': True,
            'message': 'arm_01: motion is forbidden and goals are being cancelled, until clear',
        }
    ]
    code, said, _ = awp('status', '--bridge', BRIDGE)
    assert (code, said['ok'], said['bridge']) == (1, False, BRIDGE)
    rows = {row['name']: row for row in said['statuses']}
    assert tuple(rows) == NAMES
    assert rows['embodiment arm_01']['level'] == 'error'
    assert rows['embodiment arm_01']['message'] == 'motion forbidden: an operator stopped it'
    assert rows['embodiment gripper_01']['level'] == 'ok'
    assert rows['audit']['values']['required'] == 'refuse'  # as the configuration says it
    code, said, _ = awp('clear', '--bridge', BRIDGE)
    assert (code, said['answers'][0]['message']) == (
        0, 'arm_01: operator stop cleared; nothing resumes by itself',
    )  # fmt: skip
    code, said, _ = awp('clear', 'arm_01', '--bridge', BRIDGE)
    assert (code, said['answers'][0]['message']) == (
        1, 'nothing was cleared: nothing is engaged on arm_01',
    )  # fmt: skip
    code, said, _ = awp('stop', 'arm_99', '--bridge', BRIDGE)
    assert code == 2
    assert said['error'] == (
        f"no embodiment 'arm_99'; there are: arm_01 of {BRIDGE}, gripper_01 of {BRIDGE}"
    )
    code, said, _ = awp('clear', '--bridge', 'nobody', '--timeout-s', '2')
    assert code == 3
    assert said['error'] == (
        f'no bridge /nobody was found within 2 s; there are: --bridge {BRIDGE}'
    )
    all_are_well(peer, health)
    assert main(['status', '--bridge', BRIDGE, *AWP_PLACE]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[0] == BRIDGE
    assert len(out.splitlines()) == 1 + len(NAMES)


def test_check_compares_with_what_runs(
    cell: Cell, peer: RosPeer, awp: Awp, tmp_path: Path
) -> None:
    there = ('--ros-args', '-r', f'__ns:={SPACE}')
    code, said, _ = awp('check', '--ros', str(SIM_ARM), ros=there)
    assert (code, said['problems'], said['graph_checked']) == (0, [], True)
    text = SIM_ARM.read_text(encoding='utf-8')
    text = text.replace('proprio:\n    topic: joint_states', 'proprio:\n    topic: clock_of_mine')
    text = text.replace('gripper_controller/gripper_cmd', 'no_such/gripper_cmd')
    text = text.replace('tool0: tool0}', 'tool0: flange}').replace('joint_6]', 'elbow]')
    changed = tmp_path / 'changed.yaml'
    changed.write_text(text, encoding='utf-8')
    volatile = QoSProfile(depth=1, durability=DurabilityPolicy.VOLATILE)
    wrong = peer.node.create_publisher(String, f'{SPACE}/clock_of_mine', volatile)
    lines = [
        next(n for n, line in enumerate(text.splitlines(), 1) if word in line)
        for word in ('clock_of_mine', 'no_such/gripper_cmd', 'flange', 'elbow')
    ]
    wanted = [
        f'{lines[0]}: channel proprio: {SPACE}/clock_of_mine is of type std_msgs/msg/String, '
        f'not sensor_msgs/msg/JointState',
        f'{lines[1]}: action type gripper_move: there is no action server '
        f'{SPACE}/no_such/gripper_cmd',
        f"{lines[2]}: frame tool0 of agents: /tf tells of no frame 'flange'",
        f"{lines[3]}: the rest of arm_01: {SPACE}/joint_states tells of no joint 'elbow'",
    ]
    for bound_s in (3, 6, 12):  # what is found late is a problem until then
        words = ('check', '--ros', '--timeout-s', f'{bound_s}', str(changed))
        code, said, _ = awp(*words, ros=there)
        told = [f'{p["line"]}: {p["what"]}' for p in said['problems']]
        if told == wanted:
            break
    peer.node.destroy_publisher(wrong)
    assert code == 1
    assert told == wanted


# ---------------------------------------------------------------- parameters and the log


def test_parameters_are_described_and_only_what_may_change_changes(
    cell: Cell, peer: RosPeer
) -> None:
    listed = peer.call(ListParameters, f'{BRIDGE}/list_parameters').result.names
    assert {'autostart', 'config', 'config_sha256', 'guardian', 'log_level'} <= set(listed)
    names = ['autostart', 'config', 'guardian', 'log_level', 'use_sim_time']
    request = GetParameters.Request(names=names)
    values = peer.call(GetParameters, f'{BRIDGE}/get_parameters', request).values
    assert values[0].bool_value
    config_file = str(cell.folder / 'patient.yaml')
    assert [v.string_value for v in values[1:4]] == [config_file, 'required', 'debug']
    request = GetParameters.Request(names=listed)
    everything = peer.call(GetParameters, f'{BRIDGE}/get_parameters', request)
    assert not secrets_written.in_text(str(everything))
    asked = DescribeParameters.Request(names=names)
    answer = peer.call(DescribeParameters, f'{BRIDGE}/describe_parameters', asked)
    described = answer.descriptors
    assert [d.read_only for d in described[:4]] == [True, True, True, False]
    assert all(d.description for d in described[:4])

    def put(name: str, value: ParameterValue) -> Any:
        wanted = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
        return peer.call(SetParameters, f'{BRIDGE}/set_parameters', wanted).results[0]

    def word(text: str) -> ParameterValue:
        return ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=text)

    sim_time = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
    for name, value in (('config', word('other')), ('guardian', word('off'))):
        assert not put(name, value).successful
    refused = put('use_sim_time', sim_time)
    assert (refused.successful, refused.reason) == (
        False,
        'use_sim_time cannot change while the bridge runs; start it with -p use_sim_time:=true',
    )
    refused = put('log_level', word('loud'))
    assert (refused.successful, refused.reason) == (
        False, "'loud' is no log level; write one of debug, info, warning, error",
    )  # fmt: skip
    assert put('log_level', word('warning')).successful
    try:
        visit(cell)  # and what was on its way to the log is there
        quiet_from = len(cell.bridge.output)
        session_id = visit(cell)
        quiet = cell.bridge.output[quiet_from:].splitlines()
        assert not [line for line in quiet if ' INFO ' in line or ' DEBUG ' in line]
        assert put('log_level', word('info')).successful
        info_from = len(cell.bridge.output)
        visit(cell)
        peer.wait_until(
            lambda: ' opened by tester' in cell.bridge.output[info_from:], what='INFO lines'
        )
        assert ' DEBUG ' not in cell.bridge.output[info_from:]
        assert session_id not in cell.bridge.output
    finally:
        assert put('log_level', word('debug')).successful


def visit(cell: Cell) -> str:
    """Open and close a session; return its id."""

    async def play() -> str:
        async with await cell.agent() as agent:
            ready = await agent.open(None)
            await agent.close()
            return str(ready['session_id'])

    return run(play())


# ---------------------------------------------------------------- lifecycle


class Lifecycle:
    """Asks the node for transitions."""

    def __init__(self, peer: RosPeer) -> None:
        self._peer = peer

    def change(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self._peer.call(ChangeState, f'{BRIDGE}/change_state', request).success)

    @property
    def state(self) -> int:
        return int(self._peer.call(GetState, f'{BRIDGE}/get_state').current_state.id)

    def cycle(self) -> None:
        """Leave the active state, take every way, and come back."""
        assert self.change(Transition.TRANSITION_DEACTIVATE)
        assert self.state == State.PRIMARY_STATE_INACTIVE
        assert not self.change(Transition.TRANSITION_CONFIGURE), 'it is configured'
        assert self.change(Transition.TRANSITION_CLEANUP)
        assert self.state == State.PRIMARY_STATE_UNCONFIGURED
        assert not self.change(Transition.TRANSITION_ACTIVATE), 'it is not configured'
        assert self.change(Transition.TRANSITION_CONFIGURE)
        assert self.state == State.PRIMARY_STATE_INACTIVE
        assert self.change(Transition.TRANSITION_ACTIVATE)
        assert self.state == State.PRIMARY_STATE_ACTIVE

    def shut_down(self) -> None:
        """End for good; there is no way back."""
        assert self.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
        assert self.state == State.PRIMARY_STATE_FINALIZED
        assert not self.change(Transition.TRANSITION_ACTIVATE)


async def storm(agent: Agent) -> None:
    """Ask without end, until the connection ends."""
    with contextlib.suppress(ConnectionClosed, AssertionError):
        while True:
            await agent.where('sess_none')


async def stopped_by(
    cell: Cell, tap: RobotTap, name: str, transitions: Callable[[], None]
) -> Agent:
    """Let the arm move, watched and asked about, and make transitions: it rests and all end."""
    watchers = [await cell.agent() for _ in range(3)]
    for watcher in watchers:
        await watcher.open(None, subscribe=[{'channel': 'proprio'}])
        watcher.beat(0.2)
    askers = [asyncio.create_task(storm(await cell.agent())) for _ in range(2)]
    agent = await cell.agent()
    await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
    agent.beat(0.2)
    await may_move(agent)
    name = await set_moving(agent, tap, name)
    asked_ns = time.monotonic_ns()
    await asyncio.to_thread(transitions)
    for each in (agent, *watchers):
        assert (await each.ended())[0] == 1001
    await asyncio.gather(*askers)
    said = await agent.status(name)
    assert (said['state'], said['reason']) == ('failed', 'x-ros2.safety_input')
    await until(lambda: tap.rested_ns(asked_ns), what='the arm at rest')
    await until(lambda: not tap.running(PRIMITIVE), what='the end of the goal')
    return agent


def test_every_transition_under_load_stops_the_arm_and_leaves_a_bridge_that_works(
    cell: Cell, peer: RosPeer
) -> None:
    lifecycle = Lifecycle(peer)

    async def play() -> None:
        with RobotTap(SPACE) as tap:
            await until(lambda: tap.samples, what='joint states')
            await cell.warm_up()
            agent = await stopped_by(cell, tap, 'one', lifecycle.cycle)
            async with await cell.agent() as late:
                await late.resume(agent)
                await late.close()
            await cell.warm_up()
            await stopped_by(cell, tap, 'two', lifecycle.shut_down)

    if cell.bridge.exit_status is not None:
        config = cell.folder / 'patient.yaml'
        cell.bridge = start_bridge(
            cell.folder, 'again', config, ros_arguments=PLACE, log_level='debug'
        )
        run(cell.warm_up())
    try:
        run(play())
    finally:
        code = cell.bridge.stop()
    assert code == 0
    assert 'Traceback' not in cell.bridge.output


# ---------------------------------------------------------------- secrets


def test_no_secret_is_in_anything_that_was_written_or_told(
    cell: Cell, peer: RosPeer, health: Listener, sessions: Listener, tmp_path: Path
) -> None:
    assert cell.bridge.token in secrets_written.known()
    assert len(secrets_written.known()) > 5, 'session tokens too'
    assert not list(secrets_written.in_places())
    if cell.bridge.exit_status is None:  # alone, without the tests before
        peer.wait_until(lambda: len(health.messages) + len(sessions.messages) > 10, 20.0)
    told = [str(message) for message in (*health.messages, *sessions.messages)]
    assert len(told) > 10
    assert not secrets_written.in_text('\n'.join(told))
    # the search finds one where there is one, alone or inside of a word
    for text in (cell.bridge.token, f'x{cell.bridge.token}y'):
        planted = tmp_path / 'planted.log'
        planted.write_text(f'a line with {text}.\n', encoding='utf-8')
        assert secrets_written._in_bytes(planted.read_bytes()) == {cell.bridge.token}
        assert secrets_written.in_text(planted.read_text(encoding='utf-8'))
    assert cell.bridge.audit.is_dir()
    assert list(cell.bridge.audit.glob('*.jsonl'))
