"""config/nav2_base.yaml with a base behind it: drives, limits, stops, seen from the agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
import math
from typing import Any

from agent import Agent
from agent_words import Refused
from base_robot import BaseRobot
from bridge_cell import as_soon_as_possible, newest, open_when_free, patient_config
from diagnostic_msgs.msg import DiagnosticStatus
from patience import run, until
from processes import BridgeProcess, REPOSITORY, start_bridge
import pytest

Json = dict[str, Any]


@pytest.fixture(scope='module')
def bridge(
    ros_domain_id: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BridgeProcess]:
    folder = tmp_path_factory.mktemp('base')
    config = patient_config(folder, source=REPOSITORY / 'config' / 'nav2_base.yaml')
    process = start_bridge(folder, config=config)
    yield process
    process.stop()


@pytest.fixture(scope='module')
def running(ros_domain_id: int, bridge: BridgeProcess) -> Iterator[BaseRobot]:
    with BaseRobot(ros_domain_id) as base:
        yield base


@pytest.fixture
def base(running: BaseRobot) -> BaseRobot:
    running.told.clear()
    running.frames.clear()
    running.zeros = 0
    running.speed_mps = running.x_m = 0.0
    running.health = DiagnosticStatus.OK
    return running


@asynccontextmanager
async def driving(bridge: BridgeProcess) -> AsyncIterator[Agent]:
    """Hold the base while it may move."""
    async with await Agent.connect(bridge.url, bridge.token) as agent:
        await open_when_free(agent, 'base_01', subscribe=[{'channel': 'base_state'}])
        agent.beat(0.2)

        def may_move() -> bool:
            state = newest(agent, 'base_state')
            return state is not None and bool(state['motion_permitted'])

        try:
            await until(may_move, 30.0, 'permission to move')
            yield agent
        finally:
            await agent.close()


def to(x_m: float, y_m: float = 0.0, frame: str = 'map', q: Any = (0, 0, 0, 1)) -> Json:
    return {'pose': {'frame': frame, 'p_m': [x_m, y_m, 0.0], 'q': list(q)}}


async def drive(agent: Agent, action_id: str, params: Json, **more: Any) -> None:
    submit = partial(agent.submit, action_id, 'navigate_to_pose', params, **more)
    await as_soon_as_possible(submit)
    await agent.status(action_id, 'executing')


async def aside(work: Any, *arguments: Any) -> None:
    await asyncio.to_thread(work, *arguments)


def test_a_drive_reports_its_way_and_ends(bridge: BridgeProcess, base: BaseRobot) -> None:
    async def play() -> None:
        async with driving(bridge) as agent:
            await drive(agent, 'go', to(2.0, 1.0, 'odom', (0, 0, math.sin(0.5), math.cos(0.5))))
            await until(lambda: base.told == ['goal 2 1'], what='the goal')
            assert base.frames == ['odom']
            for left_m in (0.0, 4.0):
                await aside(base.feedback, left_m)
                await asyncio.sleep(0.15)  # progress is told ten times a second at most
            await aside(base.feedback, 1.0)
            said = await agent.progress('go', 0.5)
            assert said['progress'] == 0.75
            await aside(base.end, 'succeed')
            said = await agent.status('go')
            assert (said['state'], said['progress']) == ('completed', 1.0), said

    run(play())


def test_a_target_that_must_not_be_never_reaches_nav2(
    bridge: BridgeProcess, base: BaseRobot
) -> None:
    async def refusal(agent: Agent, params: Json) -> Refused:
        return await agent.refusal(
            'action.submit', action_id='no', type='navigate_to_pose', params=params
        )

    async def play() -> None:
        async with driving(bridge) as agent:
            outside = await refusal(agent, to(5.5))
            assert outside.code == 4002, outside
            assert "(5.500, 0.000, 0.000) m in frame 'map' is outside the box" in outside.detail
            for params, text in (
                (to(1.0, frame='base'), 'frame'),
                (to(1.0, q=(0, 0, 0, 2)), 'params.pose.q: a quaternion of length 2'),
                (to(1.0, q=(1, 0, 0, 0)), 'params.pose.q: it leans by 3.142 rad'),
                ({'pose': {'frame': 'map', 'p_m': [1, 2]}}, 'q'),
                ({}, 'pose'),
                ({**to(1.0), 'speed': 3}, 'speed'),
            ):
                refused = await refusal(agent, params)
                assert refused.code == 3001, refused
                assert text in refused.detail, refused
            assert base.told == []

    run(play())


def test_a_cancel_stops_the_base_and_waits_for_its_rest(
    bridge: BridgeProcess, base: BaseRobot
) -> None:
    async def play() -> None:
        async with driving(bridge) as agent:
            await drive(agent, 'go', to(3.0))
            await agent.call('action.cancel', action_id='go')
            said = await agent.status('go')
            assert said['state'] == 'cancelled', said
            assert base.told == ['goal 3 0', 'cancel 3']

    run(play())


def test_a_new_target_is_sent_when_the_base_rests(bridge: BridgeProcess, base: BaseRobot) -> None:
    async def play() -> None:
        async with driving(bridge) as agent:
            await drive(agent, 'first', to(3.0))
            await drive(agent, 'second', to(-2.0), preempt='replace')
            assert (await agent.status('first'))['state'] == 'preempted'
            assert base.told == ['goal 3 0', 'cancel 3', 'goal -2 0']
            await aside(base.end, 'succeed')
            assert (await agent.status('second'))['state'] == 'completed'

    run(play())


def test_what_nav2_says_of_its_failure_is_passed_on(
    bridge: BridgeProcess, base: BaseRobot
) -> None:
    async def play() -> None:
        async with driving(bridge) as agent:
            await drive(agent, 'go', to(3.0))
            await aside(base.end, 'abort', 9999, 'no valid path')
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'world_error'), said
            assert 'error (9999): no valid path' in said['detail'], said

    run(play())


def test_an_unhealthy_nav2_stops_the_base_with_zeros(
    bridge: BridgeProcess, base: BaseRobot
) -> None:
    async def play() -> None:
        async with driving(bridge) as agent:
            await drive(agent, 'go', to(3.0))
            base.health = DiagnosticStatus.ERROR
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'x-ros2.safety_input'), said
            await until(lambda: base.zeros > 5, what='zeros on cmd_vel')
            await until(lambda: base.told == ['goal 3 0', 'cancel 3'], what='the cancel')

    run(play())


@pytest.mark.parametrize(('knob', 'value'), [('speed_mps', 0.9), ('x_m', 5.3)])
def test_a_base_beyond_a_measured_limit_stops(
    bridge: BridgeProcess, base: BaseRobot, knob: str, value: float
) -> None:  # AWP-ENV-003
    async def play() -> None:
        async with driving(bridge) as agent:
            await drive(agent, 'go', to(3.0))
            setattr(base, knob, value)
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'envelope'), said
            await until(lambda: 'cancel 3' in base.told, what='the cancel')
            base.x_m = 0.0

    run(play())
