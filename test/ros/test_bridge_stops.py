"""Stops that the robot's own safety topics call for, seen from the agent and from the arm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
import os
import signal
import time
from typing import Any

from agent import Agent
from agent_words import Heard, to_pose
from bridge_cell import (
    as_soon_as_possible,
    Cell,
    HOME_M,
    may_move,
    newest,
    open_when_free,
    PATIENT_MS,
    RobotTap,
    set_moving,
    tapped,
)
from patience import run, until
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE, set_fault
from std_srvs.srv import Trigger

Record = Any


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


def trip(cell: Cell) -> int:
    """Trip the e-stop of the robot and return when."""
    os.kill(cell.robot.pid, signal.SIGUSR1)
    return time.monotonic_ns()


def clear(cell: Cell) -> None:
    os.kill(cell.robot.pid, signal.SIGUSR2)


async def refused_move(agent: Agent, action_id: str = 'no') -> tuple[int, bool, str]:
    refused = await agent.refusal(
        'action.submit', action_id=action_id, type='move_to_pose', params=to_pose(*HOME_M)
    )
    return refused.code, refused.is_retryable, refused.detail


def order_of(agent: Agent, action_id: str, event: str) -> list[str]:
    """Return what was told of an action and of an event, in order."""
    told = []
    for heard in agent.notifications:
        if heard.method == 'action.status' and heard.params['action_id'] == action_id:
            told.append(heard.params['state'])
        if heard.method == 'world.event' and heard.params['event'] == event:
            told.append(event)
    return told


def test_an_e_stop_mid_goal_ends_the_action_and_is_released(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    async def play() -> tuple[float, float]:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            await agent.submit('next', 'move_to_pose', to_pose(*HOME_M), preempt='queue')
            tripped_ns = trip(cell)
            event = await agent.event('e_stop_engaged')
            said = await agent.status(go)
            assert (said['state'], said['reason']) == ('failed', 'e_stop')
            said = await agent.status('next')
            assert (said['state'], said['reason']) == ('cancelled', 'e_stop')
            detail = event.params['detail']
            assert (detail['embodiment'], detail['cause']) == ('arm_01', 'e_stop')
            assert detail['input'] == 'e_stop'
            assert order_of(agent, go, 'e_stop_engaged')[-2:] == ['failed', 'e_stop_engaged']
            code, is_retryable, text = await refused_move(agent)
            assert (code, is_retryable) == (3005, True)
            assert 'e_stop' in text
            await until(lambda: tap.rested_ns(tripped_ns), what='the arm at rest')
            await tap.caught_up()
            assert not tap.running(PRIMITIVE)
            taken = tap.taken()
            clear(cell)
            await agent.event('e_stop_released')
            await may_move(agent)
            await agent.settle()
            await tap.caught_up()
            assert tap.taken() == taken  # nothing is resumed by itself
            await agent.submit('on', 'move_to_pose', to_pose(*HOME_M))
            assert (await agent.status('on'))['state'] == 'completed'
            rested_ns = tap.rested_ns(tripped_ns)
            assert rested_ns is not None
            return (event.at_ns - tripped_ns) * 1e-6, (rested_ns - tripped_ns) * 1e-6

    told_ms, rested_ms = run(play())
    record_testsuite_property('bridge_e_stop_signal_to_agent_ms', round(told_ms, 1))
    record_testsuite_property('bridge_e_stop_signal_to_rest_ms', round(rested_ms, 1))


def test_an_e_stop_while_a_cancel_is_under_way_outranks_it(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    set_fault(peer, 'ignore_cancel')  # it is under way for as long as a cancel may take

    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            said = await agent.call('action.cancel', action_id=go)
            assert said['state'] == 'cancelling'
            trip(cell)
            said = await agent.status(go)
            assert (said['state'], said['reason']) == ('failed', 'e_stop')
            await agent.event('e_stop_engaged')
            told = order_of(agent, go, 'e_stop_engaged')
            assert told[-2:] == ['failed', 'e_stop_engaged']
            assert agent.states(go) == ['executing', 'failed']  # cancelling: in the result
            clear(cell)
            await agent.event('e_stop_released')

    run(play())


def test_a_session_that_opens_on_a_stopped_arm_is_told_right_after_ready(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        trip(cell)
        async with cell.watching('arm_state') as watcher:
            await until(lambda: (newest(watcher, 'arm_state') or {}).get('stops'))
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            await agent.event('e_stop_engaged')
            told = [h for h in agent.notifications if h.method != 'session.telemetry']
            assert told[0].params['state'] == 'ready'
            assert told[1].params['event'] == 'e_stop_engaged'
            assert (await refused_move(agent))[0] == 3005
            clear(cell)
            await agent.event('e_stop_released')
            await may_move(agent)
            await agent.close()

    run(play())


def test_a_protective_stop_stops_like_an_e_stop_and_names_itself(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def call(name: str) -> None:
        response = await asyncio.to_thread(peer.call, Trigger, f'sim/{name}')
        assert response.success

    async def play() -> None:
        async with cell.holding() as agent, cell.holding('gripper_01') as gripper:
            go = await set_moving(agent, tap)
            await call('trip_protective_stop')
            said = await agent.status(go)
            assert (said['state'], said['reason']) == ('failed', 'e_stop')
            for each in (agent, gripper):
                event = await each.event('e_stop_engaged')
                assert event.params['detail']['cause'] == 'protective_stop'
                assert event.params['detail']['input'] == 'protective_stop'
            code, _, text = await refused_move(agent)
            assert code == 3005
            assert 'protective_stop' in text
            await call('clear_protective_stop')
            for each in (agent, gripper):
                await each.event('e_stop_released')
            await may_move(agent)

    run(play())


def test_silence_of_the_safety_topics_forbids_motion_until_they_speak(
    cell: Cell, tap: RobotTap, peer: RosPeer, record_testsuite_property: Record
) -> None:
    async def play() -> float:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            await asyncio.to_thread(set_fault, peer, 'safety_silence')
            silent_ns = time.monotonic_ns()
            said = await agent.status(go)
            assert (said['state'], said['reason']) == ('failed', 'x-ros2.safety_input')
            assert 'silent for' in said['detail']
            entered: Heard = await agent.event('safe_state_entered')
            took_ms = (entered.at_ns - silent_ns) * 1e-6
            code, is_retryable, text = await refused_move(agent)
            assert (code, is_retryable) == (2001, True)
            assert 'safety/' in text
            assert f'limit {PATIENT_MS} ms' in text
            await until(lambda: tap.rested_ns(silent_ns), what='the arm at rest')
            await asyncio.to_thread(set_fault, peer, '')
            await may_move(agent)
            again = partial(agent.submit, 'on', 'move_to_pose', to_pose(*HOME_M))
            await as_soon_as_possible(again)  # the inputs come back one by one
            await agent.status('on', 'executing')
            return took_ms

    took_ms = run(play())
    record_testsuite_property('bridge_safety_silence_to_agent_ms', round(took_ms, 1))


def test_an_e_stop_stays_when_its_publisher_dies(cell: Cell, tap: RobotTap, peer: RosPeer) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            trip(cell)
            await agent.event('e_stop_engaged')
            await asyncio.to_thread(set_fault, peer, 'safety_silence')
            silent_s = time.monotonic()
            while time.monotonic() < silent_s + PATIENT_MS * 1e-3 + 0.3:  # any stale_after_ms
                assert (await refused_move(agent))[0] == 3005
                await asyncio.sleep(0.1)
            await asyncio.to_thread(set_fault, peer, '')
            clear(cell)
            await agent.event('e_stop_released')

    run(play())
