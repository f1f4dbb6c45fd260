"""A bridge whose safe state is a place to park: seen from agents, and from the robot alone."""

from __future__ import annotations

from collections.abc import Iterator
import math
import os
import signal
import time
from typing import Any

from bridge_cell import (
    Cell,
    may_move,
    open_when_free,
    patient_config,
    RobotTap,
    running_cell,
    set_moving,
    tapped,
)
from patience import run, until
import pytest
from ros_peer import RosPeer
from sim_robot_goals import HOME, set_parameter, TRAJECTORY

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Record = Any
PARKED = [0.4, *HOME[1:]]
PARK_MS = 3000
ABORT_MS = 1500
NEAR_RAD = 0.02
PARK = {
    'step': 'park',
    'action': 'follow_joint_trajectory',
    'params': {
        'joint_names': list(ARM_JOINTS),
        'points': [{'positions_rad': PARKED, 'time_from_start_ms': 1500}],
    },
    'timeout_ms': PARK_MS,
}


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('park')
    sections: dict[str, dict[str, Any]] = {
        'safety': {'behavior': 'park', 'watchdog_ms': 2000},
        'embodiments.arm_01': {'stop_steps': ['cancel_goals', PARK, 'wait_at_rest']},
        'embodiments.gripper_01': {'stop_steps': ['cancel_goals', 'stay_in_place']},
    }
    with running_cell(folder, patient_config(folder, sections)) as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


def is_parked(tap: RobotTap) -> bool:
    there = tap.samples[-1].positions
    return all(math.isclose(a, b, abs_tol=NEAR_RAD) for a, b in zip(there, PARKED, strict=True))


def said_since(cell: Cell, begun: int) -> str:
    """Return what the bridge has said since then."""
    return cell.bridge.output[begun:]


def wait_said(cell: Cell, begun: int, *texts: str) -> None:
    for text in texts:
        run(until(lambda text=text: text in said_since(cell, begun), what=text))  # type: ignore[misc]


def test_a_close_mid_motion_stops_the_arm_parks_it_and_is_answered_then(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    begun = len(cell.bridge.output)

    async def play() -> float:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap, at_speed=True)
            assert tap.taken(TRAJECTORY) == 0
            asked_ns = time.monotonic_ns()
            await agent.call('session.close')
            took_ms = (time.monotonic_ns() - asked_ns) * 1e-6
            assert (await agent.status(go))['state'] == 'cancelled'
            await tap.caught_up()
            assert is_parked(tap)
            assert tap.taken(TRAJECTORY) == 1
            assert tap.most_running[TRAJECTORY] == 1
            assert not tap.running(TRAJECTORY)
            statuses = [h.params for h in agent.notifications if 'action_id' in h.params]
            assert {s['action_id'] for s in statuses} == {go}  # parking is no action
            return took_ms

    took_ms = run(play())
    record_testsuite_property('close_with_parking_ms', round(took_ms, 1))
    assert 1500 <= took_ms < ABORT_MS + PARK_MS
    wait_said(
        cell, begun, 'parks by follow_joint_trajectory',
        f'park follow_joint_trajectory: succeeded: {TRAJECTORY}', 'wait_at_rest: at rest',
    )  # fmt: skip


def test_an_arm_that_an_e_stop_stopped_is_not_moved_to_park_nor_when_it_is_released(
    cell: Cell, tap: RobotTap
) -> None:
    begun = len(cell.bridge.output)

    async def play() -> None:
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            await may_move(agent)
            go = await set_moving(agent, tap, at_speed=True)
            os.kill(cell.robot.pid, signal.SIGUSR1)
            tripped_ns = time.monotonic_ns()
            try:
                assert (await agent.status(go))['reason'] == 'e_stop'
                await agent.event('e_stop_engaged')
                await until(lambda: tap.rested_ns(tripped_ns), what='the arm at rest')
                why = 'park follow_joint_trajectory: not sent, the robot must not move'
                await until(lambda: why in said_since(cell, begun), what='the report')
                await agent.call('session.close')  # the end of a session would park it too
                await tap.caught_up()
                assert tap.taken(TRAJECTORY) == 0
            finally:
                os.kill(cell.robot.pid, signal.SIGUSR2)
            rested = tap.samples[-1].positions
            released = 'input=e_stop meaning=e_stop engaged=False'
            await until(lambda: released in said_since(cell, begun), what='the release')
            seen = len(tap.samples)
            await until(lambda: len(tap.samples) > seen + 50, what='half a second more')
            assert tap.samples[-1].positions == pytest.approx(rested, abs=1e-3)
            assert tap.taken(TRAJECTORY) == 0

    run(play())


def test_a_park_goal_that_takes_too_long_is_cancelled_and_told(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    begun = len(cell.bridge.output)
    set_parameter(peer, 'speed_scaling', 0.2)  # 1.5 s become 7.5 s

    async def play() -> float:
        async with cell.holding() as agent:
            asked_ns = time.monotonic_ns()
            await agent.call('session.close')
            took_ms = (time.monotonic_ns() - asked_ns) * 1e-6
            await tap.caught_up()
            assert not tap.running(TRAJECTORY)
            assert tap.rested_ns(asked_ns) is not None
            return took_ms

    took_ms = run(play())
    assert PARK_MS <= took_ms < PARK_MS + ABORT_MS
    assert tap.taken(TRAJECTORY) == len(tap.cancels) == 1
    assert not is_parked(tap)
    wait_said(cell, begun, 'safe state: not reached: park follow_joint_trajectory: canceled')


def test_who_falls_silent_has_its_arm_parked(cell: Cell, tap: RobotTap) -> None:
    point = {'positions_rad': [*HOME[:-1], HOME[-1] + 0.5], 'time_from_start_ms': 20_000}
    params = {'joint_names': list(ARM_JOINTS), 'points': [point]}

    async def play() -> None:
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            await may_move(agent)
            await agent.submit('go', 'follow_joint_trajectory', params)
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'connection_lost')
            await until(lambda: is_parked(tap), what='the arm in its place')
            assert tap.taken(TRAJECTORY) == 2  # the agent's and the one that parks
            assert len(tap.cancels) == 1

    run(play())
