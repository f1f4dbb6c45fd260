"""Measured force beyond its limit, seen from the agent and from the arm (AWP-ENV-003)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
import time
from typing import Any

from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    Cell,
    HOME_M,
    may_move,
    patient_config,
    RobotTap,
    running_cell,
    set_moving,
    SLOWLY,
    tapped,
)
from geometry_msgs.msg import WrenchStamped
from lateness import Lateness
from patience import run
import pytest
from ros_peer import RosPeer

Record = Any
STALE_MS = 300


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    """Run a cell whose force is limited and measured."""
    folder: Path = tmp_path_factory.mktemp('force')
    force = {'topic': 'ft_sensor/wrench', 'stale_after_ms': STALE_MS}
    limits = {'max_force_n': 50.0, 'force': force}
    config = patient_config(folder, {'embodiments.arm_01.envelope': limits})
    with running_cell(folder, config, log_level='debug') as started:
        yield started


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


class Sensor:
    """Publishes a force at 100 Hz."""

    def __init__(self, tap: RobotTap) -> None:
        self.force_n: float | None = 3.0
        self._publisher = tap.node.create_publisher(WrenchStamped, 'ft_sensor/wrench', 10)
        self._timer = tap.node.create_timer(0.01, self._publish)

    def _publish(self) -> None:
        if self.force_n is not None:
            message = WrenchStamped()
            message.header.frame_id = 'tool0'
            message.wrench.force.z = self.force_n
            self._publisher.publish(message)


def test_a_force_that_is_too_great_fails_the_action_until_rest(
    cell: Cell, tap: RobotTap
) -> None:
    async def play(sensor: Sensor) -> None:
        async with cell.holding() as agent:
            (envelope,) = agent.manifest['safety_policy']['envelopes']
            assert envelope['max_force_n'] == 50.0
            press = await set_moving(agent, tap)
            sensor.force_n = 54.0  # within the tolerance of 5 N
            await asyncio.sleep(0.1)
            assert agent.states(press)[-1] == 'executing'
            sensor.force_n = 62.0
            said = await agent.status(press)
            assert (said['state'], said['reason']) == ('failed', 'envelope')
            detail = (await agent.event('envelope_violation')).params['detail']
            assert (detail['limit'], detail['bound'], detail['unit']) == ('max_force_n', 50.0, 'N')
            assert detail['measured'] == 62.0
            await may_move(agent)  # it presses at rest: it may move away
            home = to_pose(*HOME_M, **SLOWLY)
            await as_soon_as_possible(partial(agent.submit, 'away', 'move_to_pose', home))
            await agent.status('away', 'executing')
            sensor.force_n = 3.0
            assert (await agent.status('away'))['state'] == 'completed'

    run(play(Sensor(tap)))


def test_a_silent_force_sensor_forbids_motion(
    cell: Cell, tap: RobotTap, lateness: Lateness, record_testsuite_property: Record
) -> None:
    async def play(sensor: Sensor) -> tuple[float, float]:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            sensor.force_n, silent_ns = None, time.monotonic_ns()
            said = await agent.status(go)
            assert (said['state'], said['reason']) == ('failed', 'x-ros2.safety_input')
            assert 'ft_sensor/wrench silent for' in said['detail']
            failed_ns = time.monotonic_ns()
            lost_ms = lateness.since(silent_ns) * 1e-6
            sensor.force_n = 0.0
            await may_move(agent)
            return (failed_ns - silent_ns) * 1e-6, lost_ms

    silent_ms, lost_ms = run(play(Sensor(tap)))
    record_testsuite_property('bridge_force_silence_to_agent_ms', round(silent_ms, 1))
    assert STALE_MS - 10 <= silent_ms < 1000.0 + lost_ms
