"""Field cases of many clients: the loop keeps turning and nobody is thrown out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
import time
from typing import Any

from bridge_cell import Cell, RobotTap, running_cell, set_moving, tapped
from lateness import Lateness
from patience import run
import pytest
from ros_peer import RosPeer

CLIENTS = 50
PINGS = 30
RATE_HZ = 20


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    with running_cell(tmp_path_factory.mktemp('field_clients')) as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


def test_f78_fifty_watchers_throw_nobody_out_and_the_loop_answers(
    cell: Cell, tap: RobotTap, lateness: Lateness, record_testsuite_property: Any
) -> None:
    before, begun_ns = len(cell.bridge.output), time.monotonic_ns()

    async def play() -> float:
        async with AsyncExitStack() as stack:
            watchers = [
                await stack.enter_async_context(cell.watching('proprio', rate_hz=RATE_HZ))
                for _ in range(CLIENTS)
            ]
            agent = await stack.enter_async_context(cell.holding())
            go = await set_moving(agent, tap)
            took_s = []
            for _ in range(PINGS):
                began_s = time.monotonic()
                await agent.settle()
                took_s.append(time.monotonic() - began_s)
                await asyncio.sleep(0.05)
            said = await agent.status(go)
            stopped = 'bridge:loop' in said.get('detail', '') and lateness.stood_since(begun_ns)
            assert stopped or said['state'] == 'completed', said
            assert [w.closed for w in watchers] == [None] * CLIENTS
            assert min(len(w.frames) for w in watchers) > RATE_HZ
            return sorted(took_s)[len(took_s) // 2]

    median_s = run(play())
    record_testsuite_property('bridge_ping_beside_50_watchers_ms', round(median_s * 1e3, 1))
    # This process reads the frames of all of them too; a loop that stood still would show.
    lost_s = lateness.since(begun_ns) * 1e-9
    assert median_s < 0.5 + lost_s / PINGS
    was_silent = 'bridge loop was silent' in cell.bridge.output[before:]
    assert not was_silent or lateness.stood_since(begun_ns)
