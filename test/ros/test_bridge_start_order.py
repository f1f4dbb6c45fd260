"""The bridge before its robot, without its robot, and with its robot back again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
import time
from typing import Any

from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    AWAY_M,
    Cell,
    config_with,
    HOME_M,
    may_move,
    newest,
    open_when_free,
    PATIENT_MS,
    SLOWLY,
    under_way,
)
from fakes import eventually
from lateness import Lateness
from patience import run, until
from processes import (
    BridgeProcess,
    guarding,
    start_bridge,
    start_sim_robot,
    StartedProcess,
)
import pytest
from sim_robot_goals import HOME, PRIMITIVE

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Record = Any
STALE_MS = 500  # of config/sim_arm.yaml
KIND = 'follow_joint_trajectory'


@pytest.fixture(scope='module')
def folder(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('start_order')


@pytest.fixture(scope='module')
def cell(folder: Path) -> Iterator[Cell]:
    """Start a bridge; the tests of this module run in order, and the first brings the robot."""
    # The guardian is not what is tested here, and must not stop the robot of a busy machine.
    config = config_with(folder, {'safety': {'lease_ms': PATIENT_MS}}, 'guarded', 'required')
    with guarding(folder, config):
        bridge = start_guarded(folder, 'bridge')
        lonely = Cell(bridge, bridge, folder)
        yield lonely
        for process in (lonely.bridge, lonely.robot):
            if process.exit_status is None:
                process.stop()


def start_guarded(folder: Path, name: str) -> BridgeProcess:
    """Start a bridge and wait until the guardian guards it."""
    bridge = start_bridge(folder, name, folder / 'guarded.yaml')
    eventually(lambda: 'a guardian guards the bridge' in bridge.output, 'the guardian')
    return bridge


async def give_robot(cell: Cell, name: str) -> None:
    """Start a robot where none runs."""
    if cell.robot is cell.bridge or cell.robot.exit_status is not None:

        def start() -> None:  # kept though nobody waits for it any more
            cell.robot = start_sim_robot(cell.folder, None, name)

        await asyncio.to_thread(start)


def test_a_bridge_before_its_robot_says_what_is_missing_and_becomes_ready_by_itself(
    cell: Cell,
) -> None:
    if cell.robot is not cell.bridge:  # of an earlier try: begin again
        cell.robot.kill()
        cell.bridge.stop()
        cell.robot = cell.bridge = start_guarded(cell.folder, 'bridge_again')

    async def play() -> None:
        async with await cell.agent() as agent:
            # Nothing tells that the arm rests: it is nobody's before that.
            await until(
                lambda: 'arm_01 was not measured at rest' in cell.bridge.output,
                what='the end of the wait for rest',
            )
            refused = await agent.refusal(
                'session.open', mode='streaming', embodiment='arm_01', subscribe=[]
            )
            assert (refused.code, refused.is_retryable) == (2001, True)
            assert 'has not been measured at rest' in refused.detail
            log = cell.bridge.output
            for name in ('joint_states:stale', 'joint_states:limits', 'e_stop:stale'):
                assert f'embodiment=arm_01 input={name} meaning=not_ready engaged=True' in log
            assert f'action server {PRIMITIVE} is not available' in log
            await give_robot(cell, 'robot_0')
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat()
            await until(lambda: newest(agent, 'arm_state'), what='a state of the arm')
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
        await give_robot(cell, f'robot_{time_number}')
        await cell.warm_up()
        async with cell.holding() as agent:
            go = await under_way(agent, 'go', 'move_to_pose', to_pose(*AWAY_M, **SLOWLY))
            before = len(agent.notifications)
            cell.robot.kill()
            killed_ns = time.monotonic_ns()
            said = await agent.status(go)
            took_s = (time.monotonic_ns() - killed_ns) * 1e-9
            assert said['state'] == 'failed'
            assert said['reason'] in ('world_error', 'x-ros2.safety_input')
            await agent.event('safe_state_entered', since=before)
            refused = await agent.refusal(
                'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert (refused.code, refused.is_retryable) == (2001, True)
            await give_robot(cell, f'robot_back_{time_number}')
            await may_move(agent)
        await cell.warm_up()
        return took_s

    took_s = run(play())  # its limit is that of the server that is killed alone, below
    record_testsuite_property(f'bridge_lost_robot_noticed_s_{time_number}', round(took_s, 3))


def test_f25_a_server_that_is_killed_alone_is_named_and_missing_until_it_is_back(
    cell: Cell, folder: Path, lateness: Lateness, record_testsuite_property: Record
) -> None:
    server = 'apart/arm_controller/follow_joint_trajectory'
    changes = {'actions.follow_joint_trajectory': {'ros_action': server}}
    config = config_with(folder, changes)
    parts: list[StartedProcess] = []

    def start_apart(name: str) -> None:
        parts.append(start_sim_robot(folder, None, name, '/apart'))

    async def play(split: Cell) -> tuple[float, float]:
        await give_robot(cell, 'robot_whole')
        turn = {'positions_rad': [0.5, *HOME[1:]], 'time_from_start_ms': 6000}
        params = {'joint_names': list(ARM_JOINTS), 'points': [turn]}
        async with split.holding() as agent:
            action_id = await under_way(agent, 'turn', KIND, params, 0.2)
            before = len(agent.notifications)
            killed_ns = time.monotonic_ns()
            parts[-1].kill()
            said = await agent.status(action_id)
            took_ms = (time.monotonic_ns() - killed_ns) * 1e-6
            lost_ms = lateness.since(killed_ns) * 1e-6
            assert (said['state'], said.get('reason')) == ('failed', 'world_error'), said
            assert server in said['detail']
            assert 'silent for' in said['detail']
            await agent.event('safe_state_entered', since=before)
            refused = await agent.refusal(
                'action.submit', action_id='no', type=KIND, params=params
            )
            assert (refused.code, refused.is_retryable) == (2001, True)
            assert server in refused.detail
            other = partial(agent.submit, 'other', 'move_to_pose', to_pose(*HOME_M))
            await as_soon_as_possible(other)  # when the safe state is reached
            assert (await agent.status('other'))['state'] == 'completed'
            await asyncio.to_thread(start_apart, 'apart_2')
            await under_way(agent, 'again', KIND, params)
        return took_ms, lost_ms

    with ExitStack() as stack:
        stack.callback(lambda: [part.stop() for part in parts])
        start_apart('apart')
        bridge = start_bridge(folder, 'split', config)
        stack.callback(bridge.stop)
        took_ms, lost_ms = run(play(Cell(cell.robot, bridge, folder)))
    record_testsuite_property('bridge_lost_server_noticed_s', round(took_ms * 1e-3, 3))
    assert took_ms <= STALE_MS + 100 + lost_ms
