"""Executed motion beyond its limits, seen from the agent and from the arm (AWP-ENV-003)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
import os
from typing import Any

from agent import Agent
from agent_words import Refused, to_pose
from bridge_cell import (
    as_soon_as_possible,
    Cell,
    completed,
    HOME_M,
    may_move,
    newest,
    RobotTap,
    set_moving,
    tapped,
)
from patience import run, until
from processes import SIM_ARM
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE, set_fault, TRAJECTORY

from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_JOINTS,
    load_arm_chain,
    load_urdf,
)

Json = dict[str, Any]
Record = Any
CONFIG = SIM_ARM if 'AWP_VIOLATIONS' in os.environ else None  # the evidence is of that one

CHAIN = load_arm_chain(load_urdf())
NEAR_M = (0.3, 0.0, 0.4)
SLOW_MPS = 0.1
BOX_Y_M = 0.5


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    set_fault(peer, '')
    with tapped(peer) as opened:
        yield opened
        set_fault(peer, '')


def tip_m(tap: RobotTap) -> tuple[float, float, float]:
    """Return where the tip is in base."""
    x, y, z = CHAIN.tip_position(tap.samples[-1].positions)
    return float(x), float(y), float(z)


async def fault(peer: RosPeer, text: str) -> None:
    await asyncio.to_thread(set_fault, peer, text)


def violation(agent: Agent) -> Json:
    """Return the detail of the newest violation."""
    found = [h for h in agent.notifications if h.params.get('event') == 'envelope_violation']
    detail: Json = found[-1].params['detail']
    return detail


def told(agent: Agent, action_id: str) -> list[str]:
    """Return the states of an action and the events, in order of their numbers."""
    out = []
    for heard in agent.notifications:
        if heard.method == 'action.status' and heard.params['action_id'] == action_id:
            out.append(heard.params['state'])
        if heard.method == 'world.event':
            out.append(heard.params['event'])
    return out


async def submit(agent: Agent, action_id: str, kind: str, params: Json) -> None:
    await as_soon_as_possible(partial(agent.submit, action_id, kind, params))


def turn(angle_rad: float, time_ms: int) -> Json:
    """Return a trajectory that turns joint_1 of the arm at home."""
    end = [angle_rad, *ARM_HOME_RAD[1:]]
    point = {'positions_rad': end, 'time_from_start_ms': time_ms}
    return {'joint_names': list(ARM_JOINTS), 'points': [point]}


def test_the_manifest_says_that_commands_are_checked_and_motion_is_measured(cell: Cell) -> None:
    async def play() -> None:
        async with await cell.agent() as agent:
            (envelope,) = agent.manifest['safety_policy']['envelopes']
            assert envelope['enforcement'] == 'both'
            assert envelope['x-ros2.measured_tolerances'] == {
                'spatial_m': 0.01,
                'velocity_mps': 0.05,
            }

    run(play())


def test_a_tip_that_leaves_the_box_stops_and_its_action_fails(
    cell: Cell, tap: RobotTap, peer: RosPeer, record_testsuite_property: Record
) -> None:
    async def play() -> float:
        async with cell.holding() as agent:
            await fault(peer, 'overshoot=4')
            slow = to_pose(*NEAR_M, max_velocity_mps=SLOW_MPS)
            await submit(agent, 'out', 'move_to_pose', slow)
            home = to_pose(*HOME_M)
            queue = partial(agent.submit, 'next', 'move_to_pose', home, preempt='queue')
            await as_soon_as_possible(queue)
            said = await agent.status('out')
            assert (said['state'], said['reason']) == ('failed', 'envelope')
            assert 'outside the box' in said['detail']
            next_ = await agent.status('next')
            assert (next_['state'], next_['reason']) == ('cancelled', 'safe_state')
            event = await agent.event('envelope_violation')
            number = agent.notifications.index(event)
            entered = await agent.event('safe_state_entered', since=number)
            assert [n for n in told(agent, 'out') if n != 'channel_degraded'][-3:] == [
                'failed',
                'envelope_violation',
                'safe_state_entered',
            ]
            detail = violation(agent)
            assert detail['embodiment'] == 'arm_01'
            assert detail['limit'] == 'spatial'
            assert detail['action_id'] == 'out'
            assert 0.01 < detail['measured'] < 0.05
            assert (detail['bound'], detail['tolerance'], detail['unit']) == (0.0, 0.01, 'm')
            rested_ns = await until(lambda: tap.rested_ns(entered.at_ns), what='rest')
            await until(lambda: not tap.running(PRIMITIVE), what='the cancelled goal')
            return float(rested_ns - entered.at_ns) * 1e-6

    rested_ms = run(play())
    record_testsuite_property('bridge_violation_to_rest_ms', round(rested_ms, 1))


@pytest.mark.parametrize('kind', ['move_to_pose', 'follow_joint_trajectory'])
def test_a_tip_that_is_too_fast_stops_and_its_action_fails(
    cell: Cell, tap: RobotTap, peer: RosPeer, kind: str
) -> None:
    params = to_pose(*NEAR_M) if kind == 'move_to_pose' else turn(0.3, 900)

    async def play() -> None:
        async with cell.holding() as agent:
            await fault(peer, 'overshoot=1.5')
            await submit(agent, 'fast', kind, params)
            said = await agent.status('fast')
            assert (said['state'], said['reason']) == ('failed', 'envelope'), said
            assert 'max_velocity_mps' in said['detail']
            detail = (await agent.event('envelope_violation')).params['detail']
            assert (detail['limit'], detail['bound'], detail['unit']) == (
                'max_velocity_mps',
                0.5,
                'm/s',
            )
            assert 0.55 < detail['measured'] < 0.75
            await until(lambda: tap.is_at_rest, what='the arm at rest')
            server = PRIMITIVE if kind == 'move_to_pose' else TRAJECTORY
            await until(lambda: not tap.running(server), what='the cancelled goal')
            await fault(peer, '')
            await may_move(agent)
            await completed(agent, 'home', 'move_to_pose', to_pose(*HOME_M))

    run(play())


def test_moves_at_the_limits_are_no_violations(cell: Cell, tap: RobotTap, peer: RosPeer) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            for number, place in enumerate([(0.3, 0.2, 0.5), (0.0, 0.49, 0.4), HOME_M]):
                await completed(agent, f'go-{number}', 'move_to_pose', to_pose(*place))
            await completed(agent, 'turn', 'follow_joint_trajectory', turn(0.5, 1750))
            assert 'envelope_violation' not in agent.events()

    run(play())


def test_an_arm_pushed_out_by_a_hand_is_told_and_comes_back_by_a_command(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await fault(peer, 'push=0.7')
            event = await agent.event('envelope_violation')
            assert 'action_id' not in event.params['detail']
            assert event.params['detail']['limit'] == 'spatial'
            await agent.event('safe_state_entered', since=agent.notifications.index(event))
            with pytest.raises(Refused, match='envelope:spatial'):
                await agent.submit('early', 'move_to_pose', to_pose(*HOME_M))
            await until(lambda: tap.is_at_rest and tip_m(tap)[1] > 0.55, what='the arm outside')
            await fault(peer, '')
            await may_move(agent)
            refused = await agent.refusal(
                'action.submit', action_id='far', type='move_to_pose', params=to_pose(0, 0.7, 0.4)
            )
            assert refused.code == 4002, 'a target outside is still refused'
            await completed(agent, 'back', 'move_to_pose', to_pose(*HOME_M))
            assert agent.events().count('envelope_violation') == 1
            assert 'safe_state_exited' in agent.events()
            assert abs(tip_m(tap)[1]) < 0.01

    run(play())


def test_who_is_pushed_farther_out_violates_again(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await fault(peer, 'push=0.7')
            first = await agent.event('envelope_violation')
            await until(lambda: tap.is_at_rest and tip_m(tap)[1] > 0.55, what='the arm outside')
            await fault(peer, '')
            await may_move(agent)
            seen = len(agent.notifications)
            await fault(peer, 'push=0.1')
            await until(
                lambda: [
                    h
                    for h in agent.notifications[seen:]
                    if h.params.get('event') == 'envelope_violation'
                ],
                what='a second violation',
            )
            assert violation(agent)['measured'] > first.params['detail']['measured'] + 0.01
            assert violation(agent)['tolerance'] > 0.05, 'it may stand where it stood'
            await fault(peer, '')
            await may_move(agent)
            await completed(agent, 'back', 'move_to_pose', to_pose(*HOME_M))

    run(play())


@pytest.mark.parametrize(('name', 'words'), [('silence', 'silent for'), ('nan', 'not finite')])
def test_joint_states_that_tell_nothing_forbid_motion(
    cell: Cell, tap: RobotTap, peer: RosPeer, name: str, words: str
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            await fault(peer, name)
            said = await agent.status(go)
            assert (said['state'], said['reason']) == ('failed', 'x-ros2.safety_input')

            def inputs() -> dict[str, str]:
                state = newest(agent, 'arm_state') or {'stops': []}
                return {s['input']: s['detail'] for s in state['stops']}

            await until(lambda: 'joint_states:limits' in inputs(), what='the doubt')
            assert words in inputs()['joint_states:limits']
            await fault(peer, '')
            await may_move(agent)

    run(play())
