"""Field cases of the ROS clock: it never starts, stops, jumps, and stopping does not care."""

from __future__ import annotations

from collections.abc import Iterator
import threading
import time

from agent_words import to_pose
from bridge_cell import (
    AWAY_M,
    Cell,
    completed,
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
from rosgraph_msgs.msg import Clock
from sim_robot_goals import PRIMITIVE

WATCHDOG_MS = 2000
DEADLINE_MS = 800
SIM_TIME = ('-p', 'use_sim_time:=true')


class Simulator:
    """A source of /clock that runs, stands still or jumps."""

    def __init__(self, peer: RosPeer) -> None:
        self._publisher = peer.node.create_publisher(Clock, '/clock', 10)
        self._time_ns = 5_000_000_000
        self._runs = False
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._turn, daemon=True)
        self._thread.start()

    def run(self) -> None:
        self._runs = True

    def stop(self) -> None:
        self._runs = False

    def jump(self, seconds: float) -> None:
        self._time_ns += int(seconds * 1e9)

    def close(self) -> None:
        self._ends.set()
        self._thread.join(2.0)

    def _turn(self) -> None:
        while not self._ends.wait(0.01):
            if self._runs:
                self._time_ns += 10_000_000
                message = Clock()
                seconds, rest = divmod(self._time_ns, 1_000_000_000)
                message.clock.sec, message.clock.nanosec = seconds, rest
                self._publisher.publish(message)


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('field_clocks')
    config = patient_config(folder, {'safety': {'watchdog_ms': WATCHDOG_MS}}, guardian='required')
    with running_cell(folder, config, ros_arguments=SIM_TIME) as started:
        run(started.warm_up())  # with a clock that nobody publishes
        yield started


@pytest.fixture(scope='module')
def simulator(peer: RosPeer, cell: Cell) -> Iterator[Simulator]:
    source = Simulator(peer)
    yield source
    source.close()


@pytest.fixture
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


async def silent_agent_is_stopped(cell: Cell, tap: RobotTap) -> None:
    async with await cell.agent() as agent:
        await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
        agent.beat(0.2)
        await may_move(agent)
        go = await set_moving(agent, tap)
        heard_ns = time.monotonic_ns()
        await agent.settle()  # its last word, unless a heartbeat is on its way
        await agent.hush()
        silent_ns = time.monotonic_ns()
        said = await agent.status(go)
        took_ms = (time.monotonic_ns() - heard_ns) * 1e-6
        assert (said['state'], said['reason']) == ('failed', 'connection_lost')
        assert took_ms >= WATCHDOG_MS  # test_f100 holds it to its limit
        await until(lambda: tap.rested_ns(silent_ns), what='the arm at rest')
        agent.beat(0.2)
        await agent.close()


async def deadline_and_cancel_work(cell: Cell, tap: RobotTap) -> None:
    async with cell.holding() as agent:
        slow = to_pose(*AWAY_M, max_velocity_mps=0.1)
        sent_ns = time.monotonic_ns()
        await agent.submit('late', 'move_to_pose', slow, deadline_ms=DEADLINE_MS)
        said = await agent.status('late')
        took_ms = (time.monotonic_ns() - sent_ns) * 1e-6
        assert (said['state'], said['reason']) == ('failed', 'deadline_exceeded')
        assert took_ms >= DEADLINE_MS
        go = await set_moving(agent, tap)
        await agent.call('action.cancel', action_id=go)
        assert (await agent.status(go))['state'] == 'cancelled'
        await tap.caught_up()
        assert tap.is_at_rest
        assert not tap.running(PRIMITIVE)


def test_f49_a_clock_that_never_starts_keeps_nothing_from_stopping(
    cell: Cell, tap: RobotTap
) -> None:
    run(silent_agent_is_stopped(cell, tap))
    run(deadline_and_cancel_work(cell, tap))
    assert 'the ROS clock was not heard yet' in cell.bridge.output


def test_f50_a_clock_that_stops_mid_goal_is_told_and_everything_goes_on(
    cell: Cell, tap: RobotTap, simulator: Simulator
) -> None:
    simulator.run()

    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap, max_velocity_mps=0.05)  # for 7.5 s
            before = len(cell.bridge.output)
            simulator.stop()
            said = 'the ROS clock stands at'
            await until(lambda: said in cell.bridge.output[before:], what='the news of the clock')
            assert not agent.has_ended(go)  # a clock that stands is no reason to stop
            await agent.call('action.cancel', action_id=go)
            assert (await agent.status(go))['state'] == 'cancelled'

    run(play())
    run(silent_agent_is_stopped(cell, tap))
    before = len(cell.bridge.output)
    simulator.run()
    text = 'the ROS clock runs again'
    run(until(lambda: text in cell.bridge.output[before:], what='the clock running'))


def test_f49_a_clock_that_jumps_is_told_and_moves_no_deadline(
    cell: Cell, tap: RobotTap, simulator: Simulator
) -> None:
    simulator.run()

    async def play() -> None:
        async with cell.holding() as agent:
            for seconds, said in ((600.0, 'jumped by +6'), (-300.0, 'jumped by -')):
                name = f'go{seconds:g}'
                params = to_pose(*AWAY_M, max_velocity_mps=0.2)
                await agent.submit(name, 'move_to_pose', params, deadline_ms=9000)
                await agent.progress(name, 0.05)
                before = len(cell.bridge.output)
                simulator.jump(seconds)
                await until(
                    lambda said=said, before=before: said in cell.bridge.output[before:],  # type: ignore[misc]
                    what=said,
                )
                ended = await agent.status(name)
                assert ended['state'] == 'completed', ended
                await completed(agent, f'{name}-home', 'move_to_pose', to_pose(0.0, 0.0, 0.4))

    run(play())
    run(deadline_and_cancel_work(cell, tap))
