"""The bridge before its robot, without its robot, and with its robot back again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
import time
from typing import Any

from agent import run, to_pose, until
from bridge_cell import AWAY_M, Cell, HOME_M, may_move, newest
from processes import start_bridge, start_sim_robot
import pytest
from sim_robot_goals import PRIMITIVE

Record = Any


@pytest.fixture(scope='module')
def folder(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('start_order')


@pytest.fixture(scope='module')
def cell(folder: Path) -> Iterator[Cell]:
    """Start a bridge; the tests of this module run in order, and the first brings the robot."""
    bridge = start_bridge(folder)
    lonely = Cell(bridge, bridge, folder)
    yield lonely
    for process in (lonely.bridge, lonely.robot):
        if process.exit_status is None:
            process.stop(8.0)


def test_a_bridge_before_its_robot_says_what_is_missing_and_becomes_ready_by_itself(
    cell: Cell,
) -> None:
    async def play() -> None:
        async with await cell.agent() as agent:
            await agent.open(subscribe=[{'channel': 'arm_state'}])
            agent.beat()
            entered = await agent.event('safe_state_entered')
            inputs = {row['input'] for row in entered.params['detail']['inputs']}
            assert inputs == {'joint_states:stale', 'e_stop:stale', 'protective_stop:stale'}
            refused = await agent.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert (refused.code, refused.is_retryable) == (2001, True)
            assert 'joint_states' in refused.detail
            assert 'not heard yet' in refused.detail
            await until(lambda: newest(agent, 'arm_state'), what='a state of the arm')
            state = newest(agent, 'arm_state') or {}
            assert (state['motion_permitted'], state['at_rest']) == (False, None)
            assert f'action server {PRIMITIVE} is not available' in cell.bridge.output
            cell.robot = await asyncio.to_thread(start_sim_robot, cell.folder, None, 'robot_0')
            await may_move(agent)
            await agent.close()
        await cell.warm_up()

    run(play())
    log = cell.bridge.output
    assert 'nobody publishes /joint_states' in log
    assert 'safety/e_stop was not heard yet' in log
    assert cell.bridge.exit_status is None


@pytest.mark.parametrize('time_number', [1, 2])
def test_a_killed_robot_is_noticed_and_so_is_its_return(
    cell: Cell, time_number: int, record_testsuite_property: Record
) -> None:
    async def play() -> float:
        async with cell.holding() as agent:
            await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M))
            await agent.progress('go', 0.05)
            cell.robot.kill()
            killed_ns = time.monotonic_ns()
            said = await agent.status('go')
            took_s = (time.monotonic_ns() - killed_ns) * 1e-9
            assert said['state'] == 'failed'
            assert said['reason'] in ('world_error', 'x-ros2.safety_input')
            await agent.event('safe_state_entered', since=len(agent.notifications) - 3)
            refused = await agent.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert (refused.code, refused.is_retryable) == (2001, True)
            cell.robot = await asyncio.to_thread(
                start_sim_robot, cell.folder, None, f'robot_back_{time_number}'
            )
            await may_move(agent)
            print(said, refused)
        await cell.warm_up()
        return took_s

    took_s = run(play())
    record_testsuite_property(f'bridge_lost_robot_noticed_s_{time_number}', round(took_s, 3))
    assert took_s < 2.0
