"""What each meaning of a safety input does, by real topics, real goals and a real session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    Cell,
    HOME_M,
    may_move,
    newest,
    patient_config,
    PATIENT_MS,
    RobotTap,
    running_cell,
    set_moving,
    tapped,
)
from fakes import LATCHED
from patience import run, until
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE, reset, set_fault
from speakers import Speaker
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

Json = dict[str, Any]
MEANINGS = ('e_stop', 'protective_stop', 'fault', 'not_ready', 'manual_mode', 'degraded')
PERIODIC_MS = 1000
BY_COMPANION = {'by': 'companion', 'topic': 'joint_states'}
STOPPED = ('failed', 'e_stop', 'cancelled', 'e_stop', 'e_stop_engaged', 3005)
BLOCKED = ('failed', 'x-ros2.safety_input', 'cancelled', 'safe_state', 'safe_state_entered', 2001)


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    """Run a cell with an input of the world for each meaning, and one that must be periodic."""
    inputs = [
        {
            'kind': 'bool',
            'topic': f'test/{each}',
            'means': each,
            'freshness': BY_COMPANION,
            'stale_after_ms': PATIENT_MS,
        }
        for each in MEANINGS
    ]
    inputs.append({'kind': 'bool', 'topic': 'test/periodic', 'stale_after_ms': PERIODIC_MS})
    folder: Path = tmp_path_factory.mktemp('meanings')
    config = patient_config(folder, {'safety': {'inputs': inputs, 'watchdog_ms': 2000}})
    with running_cell(folder, config, log_level='debug') as started:
        yield started  # not warmed up: its inputs are silent yet


class Inputs:
    """The publishers of the inputs."""

    def __init__(self, peer: RosPeer, periodic: Speaker) -> None:
        self.periodic = periodic
        self._publishers = {
            each: peer.node.create_publisher(Bool, f'test/{each}', LATCHED) for each in MEANINGS
        }
        self.release()

    def engage(self, meaning: str) -> None:
        if meaning == 'stale':
            self.periodic.repeat(0)
        else:
            self._publishers[meaning].publish(Bool(data=True))

    def release(self) -> None:
        self.periodic.repeat(50)
        for each in self._publishers.values():
            each.publish(Bool(data=False))


@pytest.fixture(scope='module')
def inputs(cell: Cell, peer: RosPeer, ros_domain_id: int) -> Iterator[Inputs]:
    with Speaker(ros_domain_id, 'test/periodic', Bool, latched=False) as periodic:
        periodic.say(Bool(data=False))
        yield Inputs(peer, periodic)


@pytest.fixture
def tap(cell: Cell, peer: RosPeer, inputs: Inputs) -> Iterator[RobotTap]:
    inputs.release()
    with tapped(peer) as opened:
        yield opened
        inputs.release()


async def start(agent: Agent, tap: RobotTap) -> str:
    """Have one action executing and one queued; return the id of the first."""
    go = await set_moving(agent, tap, max_velocity_mps=0.05)  # for 7.5 s
    await agent.submit('next', 'move_to_pose', to_pose(*HOME_M), preempt='queue')
    return go


async def ends(agent: Agent, action_id: str) -> tuple[str, str]:
    said = await agent.status(action_id)
    return said['state'], said['reason']


async def refused(agent: Agent) -> tuple[int, bool, str]:
    found = await agent.refusal(
        'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
    )
    return found.code, found.is_retryable, found.detail


@pytest.mark.parametrize(
    ('meaning', 'row'),
    [
        ('e_stop', STOPPED),
        ('protective_stop', STOPPED),
        ('fault', BLOCKED),
        ('not_ready', BLOCKED),
        ('manual_mode', BLOCKED),
        ('stale', BLOCKED),
    ],
)
def test_f85_each_meaning_ends_what_runs_and_refuses_what_comes(
    cell: Cell, tap: RobotTap, inputs: Inputs, meaning: str, row: tuple[Any, ...]
) -> None:
    async def play() -> None:
        async with cell.holding() as agent, cell.holding('gripper_01') as gripper:
            go = await start(agent, tap)
            inputs.engage(meaning)
            assert await ends(agent, go) == row[:2]
            assert await ends(agent, 'next') == row[2:4]
            name = 'test/periodic:stale' if meaning == 'stale' else f'test/{meaning}'
            means = 'not_ready' if meaning == 'stale' else meaning
            for each, body in ((agent, 'arm_01'), (gripper, 'gripper_01')):
                detail = (await each.event(row[4])).params['detail']
                assert detail['embodiment'] == body
                assert detail['motion_permitted'] is False
                assert {'input': name, 'meaning': means} in [
                    {k: i[k] for k in ('input', 'meaning')} for i in detail['inputs']
                ]
            code, is_retryable, text = await refused(agent)
            assert (code, is_retryable) == (row[5], True)
            assert name in text
            await until(lambda: tap.is_at_rest, what='the arm at rest')
            taken = tap.taken()
            inputs.release()
            await may_move(agent)
            await agent.settle()
            await tap.caught_up()
            assert tap.taken() == taken, 'nothing is resumed by itself'
            if row is STOPPED:
                await agent.event('e_stop_released')

    run(play())


def test_degraded_is_told_and_nothing_ends(cell: Cell, tap: RobotTap, inputs: Inputs) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            go = await start(agent, tap)
            inputs.engage('degraded')

            def is_told() -> bool:
                state = newest(agent, 'arm_state') or {}
                return any(s['input'] == 'test/degraded' for s in state.get('stops', []))

            await until(is_told, what='the degraded input in the state channel')
            state = newest(agent, 'arm_state')
            assert state is not None
            assert state['motion_permitted'] is True
            assert 'failed' not in agent.states(go)
            await agent.submit('more', 'move_to_pose', to_pose(*HOME_M), preempt='queue')
            assert agent.events() == []

    run(play())


def test_f85_an_e_stop_is_released_when_it_is_clear_and_no_goal_runs(
    cell: Cell, tap: RobotTap, inputs: Inputs, peer: RosPeer
) -> None:
    set_fault(peer, 'refuse_cancel')

    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            inputs.engage('e_stop')
            assert await ends(agent, go) == ('failed', 'e_stop')
            event = await agent.event('e_stop_engaged')
            assert event.params['detail']['active_goals'] == [
                {'action_type': 'move_to_pose', 'server': PRIMITIVE}
            ]
            inputs.release()
            await until(
                lambda: (newest(agent, 'arm_state') or {}).get('motion_permitted'),
                what='the input clear',
            )
            assert tap.running(PRIMITIVE), 'the robot ignores the cancel'
            code, _, text = await refused(agent)
            assert code == 3005
            assert 'still active' in text
            assert 'e_stop_released' not in agent.events()
            await asyncio.to_thread(set_fault, peer, '')
            await asyncio.to_thread(reset, peer)  # ends its goals
            await agent.event('e_stop_released')

    run(play())


def test_the_operator_stop_is_an_e_stop_until_clear(
    cell: Cell, tap: RobotTap, inputs: Inputs, peer: RosPeer
) -> None:
    async def ask(word: str) -> Any:
        return await asyncio.to_thread(peer.call, Trigger, f'/awp_ros_bridge/arm_01/{word}')

    async def play() -> None:
        async with cell.holding() as agent, cell.holding('gripper_01') as gripper:
            go = await start(agent, tap)
            assert (await ask('stop')).success
            assert await ends(agent, go) == STOPPED[:2]
            assert await ends(agent, 'next') == STOPPED[2:4]
            detail = (await agent.event('e_stop_engaged')).params['detail']
            assert (detail['cause'], detail['input']) == ('operator_stop', 'operator')
            assert (await refused(agent))[0] == 3005
            assert gripper.events() == [], 'the stop of one body leaves the other alone'
            answer = await ask('clear')
            assert answer.success, answer.message
            await agent.event('e_stop_released')
            assert not (await ask('clear')).success

    run(play())


def test_a_resumed_session_is_told_values_inputs_and_the_watchdog(
    cell: Cell, tap: RobotTap, inputs: Inputs
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await set_moving(agent, tap)
            await agent.hush()
            await agent.event('safe_state_entered')  # the watchdog
            inputs.engage('fault')
            state = 'arm_state'
            await until(
                lambda: not (newest(agent, state) or {}).get('motion_permitted', True),
                what='the fault',
            )
            await until(lambda: tap.is_at_rest, what='the arm at rest')
            async with await cell.agent() as late:
                ready = await late.resume(agent)
                told = ready['x-ros2.safety']['arm_01']
                assert ready['safe_state'] is True
                assert told['motion_permitted'] is False
                assert told['in_safe_state'] is True
                assert told['watchdog_tripped'] is True
                assert told['at_rest'] in (True, False)
                assert told['active_goals'] == []
                text = 'test/fault.data is True'
                fault = {'input': 'test/fault', 'meaning': 'fault', 'detail': text}
                assert told['inputs'] == [fault]
                inputs.release()
                await late.close()

    run(play())
