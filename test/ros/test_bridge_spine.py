"""The spine: agents drive the simulated robot through the bridge, as two processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import math
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    AWAY_M,
    Cell,
    channel_id,
    HOME_M,
    JointSample,
    newest,
    RobotTap,
    set_moving,
    SLOWLY,
    tapped,
)
from patience import run, until
import pytest
from ros_peer import RosPeer
from sim_robot_goals import GRIPPER, HOME, PRIMITIVE, TRAJECTORY

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Record = Any


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


def follow(*points: tuple[int, float], velocities: tuple[float, ...] = ()) -> dict[str, Any]:
    """Return the params of a trajectory of the first joint: times in ms, positions in rad."""
    rows: list[dict[str, Any]] = [
        {'positions_rad': [position, *HOME[1:]], 'time_from_start_ms': time_ms}
        for time_ms, position in points
    ]
    for row, velocity in zip(rows, velocities, strict=False):
        row['velocities_radps'] = [velocity, 0.0, 0.0, 0.0, 0.0, 0.0]
    return {'joint_names': list(ARM_JOINTS), 'points': rows}


def test_a_session_moves_cancels_and_closes_with_the_arm_at_rest(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            taken = tap.taken(PRIMITIVE)
            said = await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M))
            assert said['state'] == 'accepted'
            assert (await agent.status('go'))['state'] == 'completed'
            assert agent.states('go') == ['executing', 'completed']
            await tap.caught_up()
            assert tap.is_at_rest
            await agent.submit('back', 'move_to_pose', to_pose(*HOME_M, **SLOWLY))
            await agent.progress('back', 0.1)
            await until(lambda: tap.is_moving, what='the arm moving')
            said = await agent.call('action.cancel', action_id='back')
            assert (said['state'], said['reason']) == ('cancelling', 'cancelled_by_agent')
            said = await agent.status('back')
            assert (said['state'], said['reason']) == ('cancelled', 'cancelled_by_agent')
            await tap.caught_up()
            assert tap.is_at_rest
            assert 0.1 <= said['aborted_at_progress'] < 1.0
            assert await agent.call('session.close') == {}
            assert tap.taken(PRIMITIVE) == taken + 2
            closed = await agent.session_state('closed')
            assert closed.params['reason'] == 'session_closed'
            assert (await agent.refusal('session.close')).code == 2005
            await agent.open()  # the same connection may carry another session

    run(play())


def test_a_target_outside_of_the_envelope_never_reaches_the_robot(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            taken = tap.taken()
            refused = await agent.refusal(
                'action.submit', action_id='far', type='move_to_pose', params=to_pose(0.6, 0, 0.4)
            )
            assert refused.code == 4002
            assert not refused.is_retryable
            assert 'params.pose.p_m' in refused.detail
            assert '0.6' in refused.detail
            assert '0.5' in refused.detail
            assert (await agent.refusal('action.status', action_id='far')).code == 3008
            said = await agent.submit('near', 'move_to_pose', to_pose(*HOME_M))
            assert said['state'] == 'accepted'
            await agent.status('near')
            await tap.caught_up()
            assert tap.taken() == taken + 1

    run(play())


def test_closing_a_session_mid_motion_answers_when_the_arm_rests(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            await agent.call('session.close')
            await tap.caught_up()
            assert tap.is_at_rest
            assert not tap.running(PRIMITIVE)
            assert agent.states(go) == ['executing', 'cancelling', 'cancelled']
            said = await agent.status(go)
            assert said['reason'] == 'session_closed'
            order = [
                h.params['state']
                for h in agent.notifications
                if h.method in ('action.status', 'session.state')
            ]
            assert order[-2:] == ['cancelled', 'closed']

    run(play())


def test_the_gripper_moves_for_another_session_while_the_arm_moves(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with cell.holding() as arm, cell.holding('gripper_01') as gripper:
            go = await set_moving(arm, tap)
            await gripper.submit('grip', 'gripper_move', {'position_m': 0.01})
            assert (await gripper.status('grip'))['state'] == 'completed'
            assert tap.is_moving
            assert (await arm.status(go))['state'] == 'completed'
            assert not arm.states('grip')
            assert not gripper.states(go)
            assert tap.most_running[GRIPPER] == 1
            refused = await gripper.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert refused.code == 4001

    run(play())


def test_observers_see_everything_and_move_nothing(cell: Cell, tap: RobotTap) -> None:
    async def play() -> None:
        async with (
            cell.watching('proprio', 'arm_state', 'gripper_state') as watcher,
            cell.holding() as arm,
        ):
            taken = tap.taken()
            refused = await watcher.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert refused.code == 4001
            refused = await watcher.refusal('session.transfer')
            assert refused.code == 4001
            assert tap.taken() == taken
            await arm.submit('go', 'move_to_pose', to_pose(*AWAY_M))
            await until(lambda: (newest(watcher, 'arm_state') or {}).get('action_id') == 'go')
            number, start, told = channel_id(watcher, 'proprio'), len(watcher.frames), tap.samples
            first = len(told)
            await arm.status('go')
            await watcher.settle()
            seen = [f for f in watcher.frames[start:] if f.params['channel_id'] == number]
            assert len(seen) > 0.8 * (len(told) - first)  # a busy loop may pass one over
            sequence = [f.params['seq'] for f in seen]
            assert sequence == sorted(set(sequence))
            assert not [h for h in watcher.notifications if h.method == 'action.status']
            await tap.caught_up()
            before = len(watcher.frames)
            await until(lambda: len(watcher.frames) > before + 3, what='frames at rest')
            last = newest(watcher, 'proprio')
            assert last is not None
            assert last['q_rad'][0] == pytest.approx(tap.samples[-1].positions[0], abs=0.01)

    run(play())


def test_a_reset_brings_the_simulated_arm_home(cell: Cell, tap: RobotTap) -> None:
    async def play() -> None:
        async with cell.holding(admin=['reset']) as agent, cell.watching() as watcher:
            assert agent.ready['granted']['admin'] == ['reset']
            go = await set_moving(agent, tap)
            assert (await watcher.refusal('world.reset')).code == 4001
            assert await agent.call('world.reset', initial_state='home') == {}
            said = await agent.status(go)
            assert (said['state'], said['reason']) == ('cancelled', 'world_reset')
            assert agent.states(go) == ['executing', 'cancelling', 'cancelled']
            await watcher.event('world_resetting')
            await until(
                lambda: tap.samples[-1].positions == pytest.approx(HOME, abs=1e-6),
                what='the arm at home',
            )
            await agent.submit('on', 'move_to_pose', to_pose(*HOME_M))
            assert (await agent.status('on'))['state'] == 'completed'

    run(play())


def test_an_arm_changes_hands_at_rest(cell: Cell, tap: RobotTap) -> None:
    async def play() -> None:
        async with cell.holding() as giver, await cell.agent('taker') as taker:
            go = await set_moving(giver, tap)
            busy = await taker.refusal('session.open', mode='streaming', embodiment='arm_01')
            assert (busy.code, busy.is_retryable) == (2001, True)
            token = (await giver.call('session.transfer'))['transfer_token']
            await taker.open(takeover=True, transfer_token=token)
            taker.beat()
            await tap.caught_up()
            assert tap.is_at_rest
            assert not tap.running(PRIMITIVE)
            said = await giver.status(go)
            assert (said['state'], said['reason']) == ('preempted', 'transferred')
            await giver.event('embodiment_transferred')
            refused = await giver.refusal(
                'action.submit', action_id='mine', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert refused.code == 4001
            await taker.submit('yours', 'move_to_pose', to_pose(*HOME_M))
            assert (await taker.status('yours'))['state'] == 'completed'
            async with await cell.agent('thief') as thief:
                used = await thief.refusal(
                    'session.open',
                    mode='streaming',
                    embodiment='arm_01',
                    takeover=True,
                    transfer_token=token,
                )
                assert used.code == 2001
            await taker.call('session.close')

    run(play())


def test_a_trajectory_is_followed_in_the_order_of_its_own_joint_names(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            params = follow((1500, 0.2))
            params['joint_names'].reverse()
            params['points'][0]['positions_rad'].reverse()
            await agent.submit('go', 'follow_joint_trajectory', params)
            assert (await agent.status('go'))['state'] == 'completed'
            await tap.caught_up()
            assert tap.samples[-1].positions == pytest.approx([0.2, *HOME[1:]], abs=0.01)

    run(play())


async def send_chunks(agent: Agent, tap: RobotTap, count: int, velocity_radps: float) -> None:
    """Submit chunks at 10 Hz: the first joint goes on at one speed, each chunk ends at rest."""
    for number in range(count):
        here = tap.samples[-1].positions[0]  # a busy machine or a slow world may be late
        params = follow(
            (400, here + 0.4 * velocity_radps),
            (800, here + 0.8 * velocity_radps),
            (1300, here + 1.05 * velocity_radps),
            velocities=(velocity_radps, velocity_radps, 0.0),
        )
        await agent.submit(
            f'chunk-{number}', 'follow_joint_trajectory', params, preempt='replace'
        )
        await asyncio.sleep(0.1)  # since it was answered: two at once are too many


def slowest_radps(samples: list[JointSample], window_s: float = 0.3) -> float:
    """Give the first joint's least mean speed in any window: drives may swing within one."""
    slowest = math.inf
    at = 0
    for sample in samples:
        while (samples[at].stamp_ns - sample.stamp_ns) * 1e-9 < window_s:
            at += 1
            if at == len(samples):
                return slowest
        moved_rad = samples[at].positions[0] - sample.positions[0]
        slowest = min(slowest, moved_rad / ((samples[at].stamp_ns - sample.stamp_ns) * 1e-9))
    return slowest


def test_chunks_at_ten_hertz_replace_each_other_and_the_arm_does_not_stop(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    count, velocity_radps = 15, 0.2

    async def play() -> tuple[Agent, list[JointSample]]:
        async with cell.holding() as agent:
            await send_chunks(agent, tap, count, velocity_radps)
            ended_ns = time.monotonic_ns()
            said = await agent.status(f'chunk-{count - 1}')
            assert said['state'] == 'completed', said
            await tap.caught_up()
            moved = [s for s in tap.samples if s.speed_radps > 0.5 * velocity_radps]
            steady = [s for s in tap.samples if moved[0].at_ns <= s.at_ns <= ended_ns]
            return agent, steady

    agent, steady = run(play())
    slowest = slowest_radps(steady)
    record_testsuite_property('bridge_chunks_slowest_share', round(slowest / velocity_radps, 3))
    assert 0.05 * velocity_radps < slowest < math.inf
    for number in range(count - 1):
        assert agent.states(f'chunk-{number}')[-1] == 'preempted'
    running: set[str] = set()
    for heard in agent.notifications:
        if heard.method == 'action.status':
            action, state = heard.params['action_id'], heard.params['state']
            running = running | {action} if state == 'executing' else running - {action}
            assert len(running) <= 1, heard
    assert tap.taken(TRAJECTORY) >= count
