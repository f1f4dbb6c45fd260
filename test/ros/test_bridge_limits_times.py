"""
How long it takes from a measured violation to the end of the action (AWP-ENV-003).

The times become properties of the test report; ``scripts/lib/manual_rows.py`` asks for twenty of
them and keeps them as evidence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
import os
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    Cell,
    completed,
    HOME_M,
    JointSample,
    may_move,
    RobotTap,
    tapped,
)
from lateness import Lateness
import numpy as np
from patience import run, until
from processes import SIM_ARM
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE, set_fault

from awp_ros_bridge.sim_robot.description import load_arm_chain, load_urdf

Record = Any
CONFIG = SIM_ARM if 'AWP_VIOLATIONS' in os.environ else None  # the evidence is of that one
Json = dict[str, Any]

CHAIN = load_arm_chain(load_urdf())
COUNT = int(os.environ.get('AWP_VIOLATIONS', '4'))
NEAR_M = (0.3, 0.0, 0.4)
SPEED_MPS, REACH_M = 0.5 * 1.1, 0.5 + 0.01  # bound and tolerance of config/sim_arm.yaml
LONGEST_MS = 500.0  # beside what a busy machine takes; the evidence says what is usual


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened
        set_fault(peer, '')


def violates(sample: JointSample, limit: str) -> bool:
    """Tell by the joint states alone whether the tip is beyond bound and tolerance."""
    if limit == 'spatial':
        return bool(np.abs(CHAIN.tip_position(sample.positions)[:2]).max() > REACH_M)
    return CHAIN.tip_speed_mps(sample.positions, sample.velocities) > SPEED_MPS


def first_violation(samples: list[JointSample], limit: str) -> int:
    """Return when the first violating sample arrived at an observer of the robot."""
    found = next((s.at_ns for s in samples if violates(s, limit)), None)
    assert found is not None, f'no sample of {len(samples)} violates {limit}'
    return found


async def violate(
    agent: Agent, tap: RobotTap, peer: RosPeer, lateness: Lateness, number: int
) -> tuple[float, float, float]:
    """Cause one violation; return the times from it to ``failed`` and to rest, and lost ones."""
    limit = 'spatial' if number % 2 else 'max_velocity_mps'
    fault = 'overshoot=3' if number % 2 else 'overshoot=1.6'
    velocity: Json = {'max_velocity_mps': 0.15} if number % 2 else {}
    await asyncio.to_thread(set_fault, peer, fault)
    tap.samples.clear()
    out = partial(agent.submit, f'out-{number}', 'move_to_pose', to_pose(*NEAR_M, **velocity))
    await as_soon_as_possible(out)
    said = await agent.hear(
        lambda h: h.method == 'action.status'
        and h.params['action_id'] == f'out-{number}'
        and h.params['state'] == 'failed'
    )
    assert said.params['reason'] == 'envelope'
    event = await agent.event('envelope_violation', since=agent.notifications.index(said))
    assert event.params['detail']['limit'] == limit
    rested_ns = await until(lambda: tap.rested_ns(said.at_ns), what='the arm at rest')
    await until(lambda: not tap.running(PRIMITIVE), what='the cancelled goal')
    await tap.caught_up()
    began_ns = first_violation(tap.samples, limit)
    lost_ms = lateness.since(began_ns) * 1e-6
    await asyncio.to_thread(set_fault, peer, '')
    await may_move(agent)
    await completed(agent, f'home-{number}', 'move_to_pose', to_pose(*HOME_M))
    return (said.at_ns - began_ns) * 1e-6, (float(rested_ns) - began_ns) * 1e-6, lost_ms


@pytest.mark.timeout(120 + 20 * COUNT)
@pytest.mark.slow
def test_violations_fail_their_actions_in_time(
    cell: Cell,
    tap: RobotTap,
    peer: RosPeer,
    lateness: Lateness,
    record_testsuite_property: Record,
) -> None:
    async def play() -> list[tuple[float, float, float]]:
        async with cell.holding() as agent:
            return [await violate(agent, tap, peer, lateness, n) for n in range(COUNT)]

    times = run(play(), 80.0 + 20 * COUNT)
    for name, column in (('failed', 0), ('rest', 1)):
        values = np.array([row[column] for row in times])
        found = {
            'n': len(values),
            'p50': np.percentile(values, 50),
            'p95': np.percentile(values, 95),
            'max': values.max(),
        }
        for key, value in found.items():
            record_testsuite_property(f'violation_to_{name}_{key}', round(float(value), 1))
    assert all(failed_ms < LONGEST_MS + lost_ms for failed_ms, _, lost_ms in times), times
