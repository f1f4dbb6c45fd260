"""Goals that nobody of this run sent: left by an earlier bridge, by another one, by others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
import signal
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    Cell,
    config_with,
    HOME_M,
    may_move,
    open_when_free,
    RobotTap,
    tapped,
)
from fakes import eventually, FakeRobot
from gateway_rig import config as rig_config
from gateway_rig import running as rigged
from geometry_msgs.msg import Twist
from patience import run, until
from processes import (
    BridgeProcess,
    GuardianProcess,
    guarding,
    SIM_ARM,
    start_bridge,
    start_sim_robot,
    StartedProcess,
)
import pytest
from rclpy.action import ActionClient
from ros_peer import RosPeer
from sim_robot_goals import HOME, PRIMITIVE, send_trajectory, TRAJECTORY, trajectory
from std_msgs.msg import String
from test_msgs.action import Fibonacci
from unique_identifier_msgs.msg import UUID

from awp_ros_bridge.engine.inputs import AvailabilityChanged, SafetyChanged
from awp_ros_bridge.ros import other_goals
from awp_ros_bridge.ros.goal_marks import BRIDGE
from awp_ros_bridge.ros.guardian_words import (
    Alive,
    ALIVE_QOS,
    ALIVE_TOPIC,
    Beat,
    BEAT_QOS,
    BEAT_TOPIC,
    Guarded,
    GuardedGoal,
    Kind,
)
from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Record = Any
KIND = 'follow_joint_trajectory'
SLOW = {
    'joint_names': list(ARM_JOINTS),
    'points': [{'positions_rad': [0.5, *HOME[1:]], 'time_from_start_ms': 12_000}],
}
STILL = {  # a goal that runs while the arm rests: only then does a session open beside it
    'joint_names': list(ARM_JOINTS),
    'points': [{'positions_rad': list(HOME), 'time_from_start_ms': 20_000}],
}
LEASE_MS = 300
MORE_MS = 100


@pytest.fixture(scope='module')
def folder(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('other_goals')


@pytest.fixture(scope='module')
def robot(folder: Path) -> Iterator[StartedProcess]:
    process = start_sim_robot(folder)
    yield process
    process.stop()


@pytest.fixture
def tap(peer: RosPeer, robot: StartedProcess) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


@pytest.fixture
def alone(folder: Path, request: pytest.FixtureRequest) -> Iterator[BridgeProcess]:
    """Start a bridge that needs no guardian."""
    config = config_with(folder, {})
    bridge = start_bridge(folder, request.node.name[:50], config)
    yield bridge
    if bridge.exit_status is None:
        bridge.kill()


async def following(cell: Cell, tap: RobotTap, params: Any = SLOW) -> Agent:
    """Return an agent whose trajectory runs."""
    agent = await cell.agent()
    await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
    agent.beat()
    await may_move(agent)
    await as_soon_as_possible(partial(agent.submit, 'slow', KIND, params))
    await until(lambda: tap.running(TRAJECTORY), what='a goal')
    return agent


async def refused_for(agent: Agent, name: str) -> None:
    """Wait until an input is what a submission is refused for."""
    detail, ends_s = '', time.monotonic() + 10.0
    while name not in detail and time.monotonic() < ends_s:
        refused = await agent.refusal(
            'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
        )
        assert (refused.code, refused.is_retryable) == (2001, True)
        detail = refused.detail
        await asyncio.sleep(0.1)
    assert name in detail


def test_a_restarted_bridge_cancels_what_an_earlier_one_left_and_nothing_else(
    folder: Path, robot: StartedProcess, tap: RobotTap, alone: BridgeProcess, peer: RosPeer
) -> None:
    async def leave() -> None:
        agent = await following(Cell(robot, alone, folder), tap)
        alone.kill()
        await agent.drop()
        await asyncio.sleep(0.6)
        assert tap.running(TRAJECTORY) == 1  # no guardian: it runs on

    async def back(again: BridgeProcess) -> None:
        await until(lambda: tap.cancels, 10.0, 'the cancel')
        await until(lambda: not tap.running(TRAJECTORY), what='the end of the goal')
        async with await Cell(robot, again, folder).agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat()
            await may_move(agent)

    run(leave())
    again = BridgeProcess(folder, 'restarted', config_with(folder, {}))
    try:
        again.wait_ready()
        run(back(again))
        assert 'was left by an earlier bridge: cancelling it' in again.output
        assert 'earlier_goal' in again.output
        assert all(goal.hex().startswith(BRIDGE) for goal in tap.cancels)
    finally:
        again.kill()


def test_a_second_bridge_leaves_the_goals_of_a_living_one_alone(
    folder: Path, robot: StartedProcess, tap: RobotTap, alone: BridgeProcess
) -> None:
    async def play(second: BridgeProcess) -> None:
        async with await following(Cell(robot, alone, folder), tap, STILL) as agent:
            await asyncio.to_thread(second.wait_ready)  # the agent beats meanwhile
            await until(
                lambda: 'belongs to another bridge that lives' in second.output, 10.0, 'the claim'
            )
            await asyncio.sleep(2.5)  # longer than a claim is waited for
            assert not tap.cancels
            async with await Cell(robot, second, folder).agent() as other:
                await open_when_free(other, 'arm_01', subscribe=[{'channel': 'arm_state'}])
                other.beat()
                await refused_for(other, 'foreign_goal')
                await agent.call('action.cancel', action_id='slow')
                await may_move(other)

    second = BridgeProcess(folder, 'second', config_with(folder, {}))
    try:
        run(play(second))
    finally:
        second.kill()


def test_a_bridge_that_the_graph_shows_may_take_longer_to_be_heard_and_keeps_its_goal(
    ros_domain_id: int, peer: RosPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_goals, 'CLAIM_NS', 500_000_000)
    other = FakeBridge(peer, 'another_bridge')
    uuid = bytes.fromhex(f'{BRIDGE}f00dcafe') + b'\x03' * 8
    with FakeRobot(ros_domain_id) as fake, rigged(rig_config()) as rig:
        rig.ready()
        beats = f'/another_bridge/{BEAT_TOPIC}'
        peer.wait_until(lambda: rig.gateway.node.count_publishers(beats), 10.0, 'it in the graph')
        client = ActionClient(peer.node, Fibonacci, 'arm/move')
        peer.wait_until(client.server_is_ready, 10.0, 'the server')
        sent = client.send_goal_async(Fibonacci.Goal(order=3), goal_uuid=UUID(uuid=list(uuid)))
        assert peer.wait_for(sent).accepted
        rig.wait(SafetyChanged, input_name='earlier_goal', engaged=True)
        peer.turn_for(1.5)
        assert not fake.seen.cancels

        def claimed() -> bool:
            other.beat(GuardedGoal(uuid.hex(), '/arm/move', True))
            peer.turn_for(0.05)
            return bool(rig.all(SafetyChanged, input_name='earlier_goal', engaged=False))

        peer.wait_until(claimed, 5.0, 'the claim')
        rig.clear()
        fake.end(uuid.hex(), 'succeed')
        other.close(peer)
        late = client.send_goal_async(
            Fibonacci.Goal(order=3), goal_uuid=UUID(uuid=[*uuid[:-1], 4])
        )
        assert peer.wait_for(late).accepted
        eventually(lambda: fake.seen.cancels, 'the cancel of what nobody can claim')
        client.destroy()


@pytest.mark.parametrize('rule', ['block', 'allow'])
def test_a_goal_of_others_is_reported_and_blocks_until_it_ends_where_configured(
    folder: Path, robot: StartedProcess, tap: RobotTap, peer: RosPeer, rule: str
) -> None:
    config = config_with(folder, {'safety': {'foreign_goals': rule}}, rule)
    goal = send_trajectory(peer, trajectory([(20.0, HOME)]))
    assert goal.is_accepted
    bridge = BridgeProcess(folder, rule, config)

    async def play() -> None:
        async with await Cell(robot, bridge, folder).agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat()
            await until(lambda: 'is not of this bridge' in bridge.output, 10.0, 'the report')
            assert tap.running(TRAJECTORY)
            if rule == 'allow':
                await may_move(agent)
                assert tap.running(TRAJECTORY)
                return
            await refused_for(agent, 'foreign_goal')
            assert tap.running(TRAJECTORY)
            assert not tap.cancels
            await asyncio.to_thread(goal.cancel)
            await may_move(agent)

    try:
        bridge.wait_ready()
        run(play())
    finally:
        bridge.kill()


def test_namespace_and_remappings_hold_for_the_guardian_too(
    folder: Path, ros: None, record_testsuite_property: Record
) -> None:
    """The configuration names another server and topics; remappings lead to the robot's."""
    config = config_with(
        folder,
        {'actions.move_to_pose': {'ros_action': 'the_arm/motion'}},
        'remapped',
        'required',
    )
    where = ['-r', '__ns:=/cell9', '-r', f'the_arm/motion:={PRIMITIVE}']
    robot = start_sim_robot(folder, None, 'robot_9', '/cell9')
    guardian = GuardianProcess(folder, config, 'guardian_9', ros_arguments=where)
    bridge = BridgeProcess(folder, 'bridge_9', config, ros_arguments=where)
    cell = Cell(robot, bridge, folder)

    async def play(tap: RobotTap) -> float:
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat()
            await may_move(agent)
            go = partial(agent.submit, 'go', 'move_to_pose', to_pose(0.3, 0.2, 0.5))
            await as_soon_as_possible(go)
            await until(lambda: tap.speed_radps > 0.2, what='the arm at speed')
            bridge.kill()
            killed_ns = time.monotonic_ns()
            await until(lambda: tap.cancels, 3.0, 'the cancel')
            await until(lambda: tap.rested_ns(killed_ns), 3.0, 'the arm at rest')
            return (min(tap.cancels.values()) - killed_ns) * 1e-6

    try:
        bridge.wait_ready()
        with RobotTap('/cell9') as tap:
            took_ms = run(play(tap))
        assert f'/cell9/{PRIMITIVE}' in guardian.output
        record_testsuite_property('guardian_remapped_killed_to_cancel_ms', round(took_ms, 1))
        assert took_ms <= LEASE_MS + MORE_MS
    finally:
        for process in (bridge, guardian, robot):
            process.kill()


# ---------------------------------------------------------------- servers that do not answer


class FakeBridge:
    """Beats like a bridge, until it does not."""

    def __init__(self, peer: RosPeer, name: str = 'awp_ros_bridge') -> None:
        self._publisher = peer.node.create_publisher(String, f'{name}/{BEAT_TOPIC}', BEAT_QOS)
        self._answers = peer.node.create_subscription(
            String, f'{name}/{ALIVE_TOPIC}', self._on_alive, ALIVE_QOS, raw=True
        )
        self._guarding = False
        self.seq = 0

    def close(self, peer: RosPeer) -> None:
        """Leave the graph."""
        peer.node.destroy_publisher(self._publisher)
        peer.node.destroy_subscription(self._answers)

    def beat(self, *goals: GuardedGoal) -> None:
        self.seq += 1
        beat = Beat('f00dcafe', self.seq, Kind.BEAT, 'x', 0, goals)
        self._publisher.publish(beat.to_bytes())

    def be_guarded(self, peer: RosPeer, *goals: GuardedGoal) -> None:
        """Beat until a guardian says that it hears the bridge and reaches the server."""

        def guarded() -> bool:
            self.beat(*goals)
            peer.turn_for(0.05)
            return self._guarding

        peer.wait_until(guarded, 10.0, 'the guardian to guard the bridge')

    def _on_alive(self, data: bytes) -> None:
        alive = Alive.from_bytes(data)
        self._guarding = 'f00dcafe' in alive.bridges and '/arm/move' not in alive.unreached


@pytest.mark.parametrize('cancel_s', [0.0, 1.5])
def test_all_goals_of_a_server_are_cancelled_only_if_it_does_not_answer(
    folder: Path, ros_domain_id: int, peer: RosPeer, cancel_s: float
) -> None:
    config = config_with(
        folder, {'actions.move_to_pose': {'ros_action': 'arm/move'}}, 'fake', 'required'
    )
    bridge = FakeBridge(peer)
    mine, other = bytes.fromhex(f'{BRIDGE}f00dcafe') + bytes(8), b'\x07' * 16
    with (
        FakeRobot(ros_domain_id) as fake,
        guarding(folder, config, name=f'guardian_{cancel_s}') as guardian,
    ):
        guardian.wait_ready()
        fake.knobs.cancel_s = cancel_s
        client = ActionClient(peer.node, Fibonacci, 'arm/move')
        peer.wait_until(client.server_is_ready, 10.0, 'the server')
        for uuid in (mine, other):
            sent = client.send_goal_async(Fibonacci.Goal(order=3), goal_uuid=UUID(uuid=list(uuid)))
            assert peer.wait_for(sent).accepted
        goal = GuardedGoal(mine.hex(), '/arm/move', True)
        bridge.be_guarded(peer, goal)
        bridge.beat(goal)
        last_ns = time.monotonic_ns()
        eventually(lambda: fake.seen.cancels, 'a cancel')
        first, at_ns = fake.seen.cancels[0]
        assert first == mine
        assert (at_ns - last_ns) * 1e-6 <= LEASE_MS + MORE_MS
        if cancel_s:
            eventually(lambda: other in dict(fake.seen.cancels), 'the cancel of all goals')
            assert 'cancelling all its goals' in guardian.output
        else:
            eventually(lambda: 'is being cancelled' in guardian.output, 'its word')
            peer.turn_for(0.7)
            assert other not in dict(fake.seen.cancels)
        guardian.send_signal(signal.SIGTERM)
        eventually(lambda: guardian.exit_status is not None, 'its end')
        client.destroy()


@pytest.mark.filterwarnings(  # the fake server is closed while it begins the goal
    'ignore:coroutine:RuntimeWarning', 'ignore::pytest.PytestUnraisableExceptionWarning'
)
def test_a_goal_that_the_server_has_not_answered_yet_is_cancelled_when_it_has(
    folder: Path, ros_domain_id: int, peer: RosPeer
) -> None:
    config = config_with(
        folder, {'actions.move_to_pose': {'ros_action': 'arm/move'}}, 'slow', 'required'
    )
    bridge = FakeBridge(peer)
    mine = bytes.fromhex(f'{BRIDGE}f00dcafe') + b'\x02' * 8
    with (
        FakeRobot(ros_domain_id) as fake,
        guarding(folder, config, name='guardian_slow') as guardian,
    ):
        guardian.wait_ready()
        client = ActionClient(peer.node, Fibonacci, 'arm/move')
        peer.wait_until(client.server_is_ready, 10.0, 'the server')
        goal = GuardedGoal(mine.hex(), '/arm/move', False)
        bridge.be_guarded(peer, goal)
        eventually(lambda: 'does not know the goal' in guardian.output, 'the first answer')
        client.send_goal_async(Fibonacci.Goal(order=3), goal_uuid=UUID(uuid=list(mine)))
        peer.turn_for(0.3)
        assert eventually(lambda: fake.seen.cancels, 'the cancel')[0][0] == mine
        peer.turn_for(0.5)  # the server goes on with the goal that it has just accepted
        client.destroy()


def test_nothing_is_sent_to_a_server_that_the_guardian_does_not_reach(
    ros_domain_id: int, peer: RosPeer
) -> None:
    planned = {'downstream': ['below']}
    config = rig_config(move=planned, more={'guardian': 'required'})
    with FakeRobot(ros_domain_id), FakeRobot(ros_domain_id, 'below'), rigged(config) as rig:
        topic = f'{rig.gateway.node.get_fully_qualified_name()}/{ALIVE_TOPIC}'
        publisher = peer.node.create_publisher(String, topic, ALIVE_QOS)
        guarded = {rig.gateway.guard.marks.instance: Guarded(1, 0)}

        def said(*unreached: str, available: bool, detail: str) -> bool:
            word = Alive('g', guarded, unreached=frozenset(unreached))
            publisher.publish(word.to_bytes())
            peer.turn_for(0.05)
            return any(
                detail in each.detail
                for each in rig.all(AvailabilityChanged, action_type='move', available=available)
            )

        def refused() -> bool:
            far = 'the guardian has not reached action server arm/move yet'
            is_refused = said('/arm/move', '/else', available=False, detail=far)
            return is_refused and rig.gateway.gate.is_open('arm')

        peer.wait_until(refused, 10.0, 'the refusal, with the gate open')
        far = 'the guardian has not reached action server below yet; arm/move drives'
        peer.wait_until(
            lambda: said('/below', available=False, detail=far), 10.0, 'the next refusal'
        )
        peer.wait_until(lambda: said('/else', available=True, detail=''), 10.0, 'the server')
        peer.node.destroy_publisher(publisher)


def test_the_stop_steps_of_the_configuration_begin_with_the_cancels(
    folder: Path, ros_domain_id: int, peer: RosPeer
) -> None:
    zeros = {
        'step': 'publish_zeros',
        'topic': 'arm/velocity',
        'type': 'geometry_msgs/msg/Twist',
        'for_ms': 200,
    }
    call = {'step': 'call_service', 'service': 'arm/trigger'}
    sections = {
        'actions.move_to_pose': {'ros_action': 'arm/move'},
        'embodiments.arm_01': {'stop_steps': ['cancel_goals', zeros, call, 'wait_at_rest']},
    }
    config = config_with(folder, sections, 'steps', 'required')
    bridge = FakeBridge(peer)
    heard = peer.listen(Twist, 'arm/velocity')
    with (
        FakeRobot(ros_domain_id) as fake,
        guarding(folder, config, name='guardian_steps') as guardian,
    ):
        guardian.wait_ready()
        goal = GuardedGoal(f'{BRIDGE}f00dcafe{16 * "0"}', '/arm/move', True)
        bridge.be_guarded(peer, goal)
        bridge.beat(goal)
        last_s = time.monotonic()
        peer.wait_until(lambda: len(heard.messages) > 5, 3.0, 'zeros')
        assert (heard.arrivals_s[0] - last_s) * 1e3 <= LEASE_MS + MORE_MS
        assert all(m.linear.x == m.angular.z == 0.0 for m in heard.messages)
        eventually(lambda: fake.service_calls == 1, 'the call of the service')
        peer.wait_until(lambda: 'publish_zeros arm/velocity' in guardian.output, 3.0, 'its report')
        assert 'call_service arm/trigger: done' in guardian.output
    heard.close()


def test_the_shipped_configuration_wants_a_guardian() -> None:
    assert 'guardian: required' in SIM_ARM.read_text(encoding='utf-8')
