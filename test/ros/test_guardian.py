"""
The guardian beside a real bridge and a real robot: what stops when the bridge does not.

Each test here fails where the guardian is off; ``GUARDIAN=off`` in the environment shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
import os
from pathlib import Path
import signal
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    AWAY_M,
    Cell,
    config_with,
    HOME_M,
    may_move,
    open_when_free,
    RobotTap,
    tapped,
)
from bridge_host import Host, hosted, moving
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from patience import run, until
from processes import (
    BridgeProcess,
    GuardianProcess,
    guarding,
    nothing_left,
    SIM_ARM,
    start_bridge,
    start_sim_robot,
    StartedProcess,
)
import pytest
from ros_peer import RosPeer
from sim_robot_goals import HOME, move, PRIMITIVE, PTP, send_moves, TRAJECTORY
from std_msgs.msg import String

from awp_ros_bridge.ros.guardian_words import ALIVE_QOS
from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Record = Any
IS_OFF = os.environ.get('GUARDIAN') == 'off'
LEASE_MS = 300
MORE_MS = 100
LOST_MS = 1000
END_S = 8.0
LONG = {
    'joint_names': list(ARM_JOINTS),
    'points': [{'positions_rad': [*HOME[:-1], HOME[-1] + 0.9], 'time_from_start_ms': 6000}],
}


@pytest.fixture(scope='module')
def folder(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('guardian')


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
def cell(
    folder: Path, robot: StartedProcess, tap: RobotTap, request: pytest.FixtureRequest
) -> Iterator[Cell]:
    """Start a bridge and a guardian, in one process group as a launch does."""
    name = request.node.name[:50]
    arguments = ['--guardian', 'off'] if IS_OFF else []
    with nothing_left():
        bridge = BridgeProcess(
            folder, name, SIM_ARM, arguments=arguments, log_level='debug', group=0
        )
        guardian = None
        if not IS_OFF:
            guardian = GuardianProcess(folder, name=f'{name}_guardian', group=bridge.pid)
        started = Cell(robot, bridge, folder, guardian)
        bridge.wait_ready()
        run(started.warm_up())
        tap.cancels.clear()
        yield started


@asynccontextmanager
async def going(cell: Cell, tap: RobotTap) -> AsyncIterator[Agent]:
    """Give an agent whose action moves the arm at some speed, with a next one queued."""
    async with await cell.agent() as agent:
        await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
        agent.beat()
        await may_move(agent)
        await submit(agent, 'go', AWAY_M)
        await submit(agent, 'next', HOME_M, preempt='queue')
        await until(lambda: tap.speed_radps > 0.2, what='the arm at speed')
        yield agent


async def submit(agent: Agent, name: str, xyz_m: tuple[float, ...], **more: str) -> None:
    """Submit a move as soon as its rate is permitted."""
    await as_soon_as_possible(partial(agent.submit, name, 'move_to_pose', to_pose(*xyz_m), **more))


async def works_again(agent: Agent) -> None:
    """Move home as soon as that is permitted."""
    await may_move(agent)
    await submit(agent, 'again', HOME_M)
    assert (await agent.status('again'))['state'] == 'completed'


async def cancelled_ms(tap: RobotTap, since_ns: int) -> float:
    """Wait until the robot's server says that it cancels, and until the arm rests; return ms."""
    await until(lambda: tap.cancels, 3.0, 'a cancel at the server')
    await until(lambda: tap.rested_ns(since_ns), 3.0, 'the arm at rest')
    return (min(tap.cancels.values()) - since_ns) * 1e-6


async def stopped_ms(tap: RobotTap, since_ns: int) -> float:
    """Return when the robot's server began to cancel, in ms; that it did in time is asserted."""
    await asyncio.sleep((LEASE_MS + MORE_MS) * 1e-3)
    with suppress(AssertionError):  # a late one has its time judged
        await until(lambda: tap.cancels, 0.3)
    assert tap.cancels, 'nobody cancels: the goal goes on'
    return await cancelled_ms(tap, since_ns)


async def stays_at_rest(tap: RobotTap, span_s: float) -> None:
    """Watch that the arm does not move for a while."""
    taken, ends_s = tap.taken(), time.monotonic() + span_s
    while time.monotonic() < ends_s:
        assert not tap.is_moving
        assert tap.taken() == taken
        await asyncio.sleep(0.02)


def is_told_of_the_stop(cell: Cell, peer: RosPeer, goal_id: str) -> None:
    """Read of the stop where an operator looks: logs of both, the guardian's word, diagnostics."""
    assert cell.guardian is not None
    said = f'cancelled {goal_id} on /motion_primitive_controller/motion_sequence: all confirmed'
    peer.wait_until(lambda: said in cell.guardian.output, 3.0, 'the account of the guardian')
    words = peer.listen(String, '/awp_ros_bridge/guardian/alive', ALIVE_QOS)
    health = peer.listen(DiagnosticArray, '/diagnostics')
    heard: list[Any] = []

    def is_shown() -> bool:
        statuses = [each for message in health.messages for each in message.status]
        heard[:] = [s for s in statuses if s.name.endswith(': guardian') and said in s.message]
        return bool(heard)

    bridge = start_bridge(cell.folder, 'next_run')
    try:
        peer.wait_until(lambda: said in bridge.output, 10.0, 'the account of the next bridge')
        peer.wait_until(is_shown, 10.0, 'the diagnosis')
    finally:
        bridge.stop()
    assert 'an earlier run, had been silent for 3' in bridge.output
    assert heard[0].level == DiagnosticStatus.WARN
    assert any(goal_id in message.data for message in words.messages)


# ---------------------------------------------------------------- the bridge dies


def test_a_bridge_that_is_killed_mid_motion_leaves_an_arm_at_rest_and_the_next_one_says_so(
    cell: Cell, tap: RobotTap, peer: RosPeer, record_testsuite_property: Record
) -> None:
    async def play() -> float:
        async with going(cell, tap):
            cell.bridge.kill()
            killed_ns = time.monotonic_ns()
            took_ms = await stopped_ms(tap, killed_ns)
            await stays_at_rest(tap, 0.5)
            return took_ms

    took_ms = run(play())
    record_testsuite_property('guardian_bridge_killed_to_cancel_ms', round(took_ms, 1))
    assert took_ms <= LEASE_MS + MORE_MS
    [goal] = tap.cancels
    is_told_of_the_stop(cell, peer, goal.hex())


@pytest.mark.skipif(IS_OFF, reason='its own bridge has no guardian')
def test_without_a_guardian_the_goal_of_a_killed_bridge_goes_on(
    folder: Path, robot: StartedProcess, tap: RobotTap
) -> None:
    """What the test above would find: it can fail, by its own judgement."""
    name = 'unguarded'
    with nothing_left():
        bridge = BridgeProcess(folder, name, SIM_ARM, arguments=['--guardian', 'off'])
        bridge.wait_ready()
        cell = Cell(robot, bridge, folder)

        async def play() -> None:
            async with await cell.agent() as agent:
                await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
                agent.beat()
                await may_move(agent)
                go = partial(agent.submit, 'go', 'follow_joint_trajectory', LONG)
                await as_soon_as_possible(go)
                await until(lambda: tap.is_moving, what='the arm moving')
                bridge.kill()
                with pytest.raises(AssertionError, match='the goal goes on'):
                    await stopped_ms(tap, time.monotonic_ns())
                assert tap.running(TRAJECTORY) == 1
                assert tap.is_moving

        run(play())


def test_a_bridge_that_is_stopped_is_dead_and_does_not_move_the_arm_when_it_wakes(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    async def play() -> float:
        async with going(cell, tap) as agent:
            cell.bridge.send_signal(signal.SIGSTOP)
            stopped_ns = time.monotonic_ns()
            took_ms = await cancelled_ms(tap, stopped_ns)
            cell.bridge.send_signal(signal.SIGCONT)
            await stays_at_rest(tap, 1.0)
            assert (await agent.status('go'))['state'] == 'failed'
            assert (await agent.status('next'))['state'] == 'cancelled'
            await works_again(agent)
            return took_ms

    took_ms = run(play())
    record_testsuite_property('guardian_bridge_stopped_to_cancel_ms', round(took_ms, 1))
    assert took_ms <= LEASE_MS + MORE_MS


@pytest.fixture
def guarded_host(
    folder: Path,
    tmp_path: Path,
    tap: RobotTap,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Host]:
    """Give a bridge in this process whose threads a test can hold."""
    with hosted(tmp_path, monkeypatch, 'off' if IS_OFF else 'required') as host:
        if IS_OFF:
            yield host
        else:
            with guarding(folder, name=request.node.name[:50]):
                yield host


@pytest.mark.parametrize('stuck', ['loop', 'goals_thread', 'safety_thread'])
def test_a_thread_that_hangs_mid_motion_is_as_good_as_a_dead_bridge(
    guarded_host: Host, tap: RobotTap, stuck: str, record_testsuite_property: Record
) -> None:
    hang_s = 1.5
    took: list[float] = []

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await moving(url, tap)
            assert guarded_host.world is not None
            gateway = guarded_host.world.ros.gateway
            gateway.dead_man._lease_ns = 10**12  # the bridge's own cure, which is not meant here
            tap.cancels.clear()
            hung_ns = time.monotonic_ns()
            if stuck == 'loop':
                asyncio_loop = guarded_host.world._asyncio
                assert asyncio_loop is not None
                asyncio_loop.call_soon_threadsafe(time.sleep, hang_s)
            else:
                getattr(gateway, stuck).post(time.sleep, hang_s)
            took.append(await cancelled_ms(tap, hung_ns))
            said = await until(
                lambda: [h for h in agent.notifications if h.params.get('state') == 'failed'],
                what='the end of the action',
            )
            assert said
            await agent.close()
            await agent.__aexit__()

        run(play())

    guarded_host.run(visit)
    record_testsuite_property(f'guardian_{stuck}_stuck_to_cancel_ms', round(took[0], 1))
    assert took[0] <= LEASE_MS + MORE_MS


def test_the_death_of_an_idle_bridge_cancels_nothing(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    assert cell.guardian is not None
    goal = send_moves(peer, move(PTP, AWAY_M))
    cell.bridge.kill()
    peer.wait_until(lambda: 'it was idle' in cell.guardian.output, 3.0, 'the end of the lease')
    goal.wait_result()
    assert not tap.cancels
    assert 'cancelling' not in cell.guardian.output


# ---------------------------------------------------------------- the guardian dies


def test_a_killed_guardian_is_missed_and_nothing_moves_until_there_is_one(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    assert cell.guardian is not None
    first = cell.guardian

    async def play() -> float:
        async with going(cell, tap) as agent:
            first.kill()
            killed_ns = time.monotonic_ns()
            said = await agent.status('go')
            took_ms = (time.monotonic_ns() - killed_ns) * 1e-6
            assert (said['state'], said['reason']) == ('failed', 'x-ros2.safety_input')
            assert (await agent.status('next'))['reason'] == 'safe_state'
            event = await agent.event('safe_state_entered')
            inputs = event.params['detail']['inputs']
            assert [i['meaning'] for i in inputs if i['input'] == 'guardian'] == ['not_ready']
            await until(lambda: tap.rested_ns(killed_ns), what='the arm at rest')
            refused = await agent.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert (refused.code, refused.is_retryable) == (2001, True)
            assert 'guardian' in refused.detail
            assert 'ros2 run awp_ros_bridge guardian' in refused.detail
            cell.guardian = GuardianProcess(cell.folder, name='second_guardian')
            await works_again(agent)
            return took_ms

    took_ms = run(play())
    record_testsuite_property('guardian_killed_to_failed_ms', round(took_ms, 1))
    assert took_ms <= LOST_MS + 2 * MORE_MS


def test_a_guardian_that_hangs_holds_no_bridge_up_and_is_missed(cell: Cell, tap: RobotTap) -> None:
    assert cell.guardian is not None
    guardian = cell.guardian

    async def play() -> None:
        async with going(cell, tap) as agent:
            guardian.send_signal(signal.SIGSTOP)
            assert (await agent.status('go'))['reason'] == 'x-ros2.safety_input'
            await asyncio.sleep(1.0)  # what a full history would need to hold somebody up
            guardian.send_signal(signal.SIGCONT)
            await works_again(agent)
            assert 'is silent for' not in guardian.output  # it was the one that slept

    run(play())


def test_a_bridge_without_a_guardian_says_how_to_start_one(
    folder: Path, robot: StartedProcess
) -> None:
    bridge = BridgeProcess(folder, 'lonely', SIM_ARM)
    lonely = Cell(robot, bridge, folder)

    async def play() -> None:
        await until(lambda: 'no guardian is heard' in bridge.output, 15.0, 'the hint')
        assert 'WARNING' in bridge.output
        async with await lonely.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            refused = await agent.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert (refused.code, refused.is_retryable) == (2001, True)
            await until(lambda: 'start one with "ros2 run' in bridge.output)

    try:
        bridge.wait_ready()
        run(play())
    finally:
        bridge.kill()


def test_a_guardian_of_another_configuration_is_none(folder: Path, robot: StartedProcess) -> None:
    other = config_with(folder, {'safety': {'lease_ms': 500}}, 'other', 'required')
    bridge = BridgeProcess(folder, 'misguarded', SIM_ARM)
    cell = Cell(robot, bridge, folder)

    async def play() -> None:
        said = 'the guardian has other action servers or another safety.lease_ms'
        await until(lambda: said in bridge.output, 15.0, 'the complaint')
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            refused = await agent.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert refused.code == 2001

    with guarding(folder, other, name='other_guardian') as guardian:
        try:
            bridge.wait_ready()
            run(play())
            assert 'the guardian has other action servers' in guardian.output
        finally:
            bridge.kill()


# ---------------------------------------------------------------- both are asked to end


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_mid_motion_ends_both_in_order(
    cell: Cell, tap: RobotTap, number: signal.Signals, record_testsuite_property: Record
) -> None:
    assert cell.guardian is not None
    guardian = cell.guardian
    before = ('', '')

    async def play() -> float:
        nonlocal before
        async with going(cell, tap):
            before = (cell.bridge.output, guardian.output)
            os.killpg(cell.bridge.pid, number)
            sent_ns = time.monotonic_ns()
            await until(lambda: guardian.exit_status is not None, END_S, 'the end of the guardian')
            assert tap.rested_ns(sent_ns) is not None
            assert not tap.running(PRIMITIVE)
            await until(lambda: cell.bridge.exit_status is not None, END_S, 'its end')
            return (time.monotonic_ns() - sent_ns) * 1e-9

    took_s = run(play())
    record_testsuite_property(f'guardian_{number.name.lower()}_to_end_s', round(took_s, 2))
    assert took_s < END_S
    assert (cell.bridge.exit_status, guardian.exit_status) == (0, 0)
    assert 'is silent' not in guardian.output[len(before[1]) :]  # the bridge said goodbye
    for complaint in ('goodbye', 'was silent for'):
        assert complaint not in cell.bridge.output[len(before[0]) :]


@pytest.mark.slow
def test_a_guardian_that_is_asked_to_end_alone_waits_8_s_and_says_that_it_goes(
    cell: Cell, tap: RobotTap
) -> None:
    assert cell.guardian is not None
    guardian = cell.guardian

    async def play() -> float:
        async with cell.holding() as agent:
            guardian.send_signal(signal.SIGTERM)
            sent_s = time.monotonic()
            await submit(agent, 'go', AWAY_M)
            assert (await agent.status('go'))['state'] == 'completed'
            event = await agent.event('safe_state_entered')
            took_s = time.monotonic() - sent_s
            await until(lambda: guardian.exit_status is not None, what='its end')
            assert 'the guardian has ended' in event.params['detail']['cause']
            return took_s

    assert 7.0 < run(play()) < 9.5
    assert guardian.exit_status == 0
