"""What only physics can do to a robot: pushes, a world that stands still, drives that lag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
import itertools
import statistics
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import AWAY_M, Cell, HOME_M, JointSample, may_move, RobotTap
from gazebo_cell import arrive, EASY
from geometry_msgs.msg import Wrench
from lateness import Lateness
from patience import run, until
import pytest
from ros_peer import RosPeer
from rosgraph_msgs.msg import Clock
from sim_robot_goals import (
    away,
    HOME,
    PRIMITIVE,
    reset,
    send_trajectory,
    TRAJECTORY,
    trajectory,
)
from std_srvs.srv import SetBool

from awp_ros_bridge.kinematics import Chain
from awp_ros_bridge.sim_robot.description import ARM_JOINTS, load_arm_chain, load_urdf

Figure = Callable[..., None]

# What a joint may be off where it was told to be, and the tip with all of them.
_REACHED_M = 0.002


@pytest.fixture(scope='module')
def chain() -> Chain:
    return load_arm_chain(load_urdf())


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    pause(peer, False)
    reset(peer)
    with RobotTap() as opened:
        peer.wait_until(lambda: opened.samples, what='joint states')
        yield opened
    pause(peer, False)
    reset(peer)


def pause(peer: RosPeer, is_paused: bool) -> None:
    assert peer.call(SetBool, 'sim/pause', SetBool.Request(data=is_paused)).success


@contextmanager
def pushing(
    peer: RosPeer, *, force_n: float = 0.0, torque_nm: float = 0.0
) -> Iterator[Callable[[], None]]:
    """Give what pushes the last link to the side, and twists it, for a second or this block."""
    publisher = peer.node.create_publisher(Wrench, 'sim/push', 10)
    peer.wait_until(publisher.get_subscription_count, what='the robot to listen')
    push = Wrench()
    push.force.y, push.torque.z = force_n, torque_nm
    try:
        yield lambda: publisher.publish(push)
    finally:
        publisher.publish(Wrench())
        peer.node.destroy_publisher(publisher)


def farthest_rad(samples: list[JointSample], from_rad: list[float]) -> float:
    """Give how far a joint was from where it should be, at the worst."""
    errors = (
        abs(is_rad - was_rad)
        for sample in samples
        for is_rad, was_rad in zip(sample.positions, from_rad, strict=True)
    )
    return max(errors, default=0.0)


async def move_home(agent: Agent) -> None:
    """Move home as soon as motion is permitted again."""
    await may_move(agent)
    await arrive(agent, 'home', 'move_to_pose', to_pose(*HOME_M, **EASY))


async def standing(tap: RobotTap) -> int:
    """Wait until no joint state comes any more, and return how many there were."""
    for _ in range(50):
        count = len(tap.samples)
        await asyncio.sleep(0.1)
        if len(tap.samples) == count:
            return count
    raise AssertionError('the world goes on')


def clock_s(message: Any) -> float:
    return float(message.clock.sec + message.clock.nanosec * 1e-9)


def spans(times_ns: list[int]) -> list[float]:
    """Give the milliseconds between neighbours."""
    return [(b - a) * 1e-6 for a, b in itertools.pairwise(times_ns)]


def test_the_world_runs_in_real_time_and_tells_joint_states_at_their_rate(
    tap: RobotTap, peer: RosPeer, figure: Figure
) -> None:
    clock = peer.listen(Clock, '/clock')
    clock.wait_next()
    start = len(tap.samples)
    peer.turn_for(3.0)
    told_s = [clock_s(message) for message in clock.messages]
    # the reset before this test may be told late
    first = max((at for at in range(1, len(told_s)) if told_s[at] < told_s[at - 1]), default=0)
    took_s = clock.arrivals_s[-1] - clock.arrivals_s[first]
    factor = (told_s[-1] - told_s[first]) / took_s
    samples = tap.samples[start:]
    rate_hz = (len(samples) - 1) / ((samples[-1].at_ns - samples[0].at_ns) * 1e-9)
    worst_ms = max(spans([s.at_ns for s in samples]))
    figure('real_time_factor', factor, 'times')
    figure('joint_states', rate_hz, 'hz')
    figure('joint_states_worst_gap', worst_ms, 'ms')
    # On a busy machine the world takes its time, and joint states come as it goes on.
    assert 0.1 < factor < 1.1
    assert 20.0 < rate_hz < 110.0


def test_a_command_moves_the_joints_within_a_moment(
    tap: RobotTap, peer: RosPeer, figure: Figure, lateness: Lateness
) -> None:
    """The time from a goal that is sent to joints that are measured to move."""
    took_ms, late_ms = [], []
    for number in range(5):
        goal = trajectory([(0.5, away(0.1 * (number % 2 == 0)))])
        start, sent_ns = len(tap.samples), time.monotonic_ns()
        sent = send_trajectory(peer, goal)
        peer.wait_until(
            lambda start=start: any(s.speed_radps > 5e-3 for s in tap.samples[start:]),
            10.0,
            'the arm moving',
        )
        moved = next(s for s in tap.samples[start:] if s.speed_radps > 5e-3)
        took_ms.append((moved.at_ns - sent_ns) * 1e-6)
        late_ms.append(took_ms[-1] - lateness.since(sent_ns) * 1e-6)
        sent.wait_result()
        peer.wait_until(
            lambda: all(s.speed_radps < 1e-3 for s in tap.samples[-5:]), what='the arm at rest'
        )
    figure('goal_to_measured_motion_median', statistics.median(took_ms), 'ms')
    assert min(late_ms) < 200.0


def test_the_tip_arrives_where_it_was_sent_and_lags_on_the_way(
    cell: Cell, tap: RobotTap, chain: Chain
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await arrive(agent, 'go', 'move_to_pose', to_pose(*AWAY_M, **EASY))

    run(play())
    tip_m = chain.forward(tap.samples[-1].positions).position_m
    assert tip_m == pytest.approx(AWAY_M, abs=_REACHED_M)
    # Drives in physics err a little; a robot that moved itself would not.
    assert any(abs(v - round(v, 6)) > 1e-9 for v in tap.samples[-1].positions)


def test_a_push_that_throws_the_resting_tip_is_told_and_withstood(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            start = len(tap.samples)

            def push() -> None:
                with pushing(peer, force_n=600.0) as push_on:

                    def gives_way() -> bool:
                        push_on()
                        return farthest_rad(tap.samples[start:], HOME) > 0.1

                    peer.wait_until(gives_way, what='a joint giving way')

            await asyncio.to_thread(push)
            event = await agent.event('envelope_violation')
            assert 'action_id' not in event.params['detail']
            assert event.params['detail']['limit'] == 'max_velocity_mps'
            await agent.event('safe_state_entered', since=agent.notifications.index(event))
            await until(lambda: tap.is_at_rest, what='the arm at rest')
            assert list(tap.samples[-1].positions) == pytest.approx(HOME, abs=1e-3)
            await move_home(agent)

    run(play())


def test_a_push_that_tears_the_arm_from_its_path_fails_the_action(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            params = {
                'joint_names': list(ARM_JOINTS),
                'points': [{'positions_rad': away(0.3), 'time_from_start_ms': 4000}],
            }
            await agent.submit('go', 'follow_joint_trajectory', params)
            await until(lambda: tap.is_moving, what='the arm moving')

            def push() -> None:
                with pushing(peer, force_n=900.0, torque_nm=200.0) as push_on:

                    def has_ended() -> bool:
                        push_on()
                        return not tap.running(TRAJECTORY)

                    peer.wait_until(has_ended, what='the goal ended')

            await asyncio.to_thread(push)
            said = await agent.status('go')
            assert said['state'] == 'failed', said
            # Whoever is first: the bridge, which measures the tip, or the controller on its path.
            why = {'envelope': 'max_velocity_mps', 'world_error': 'path tolerance'}
            assert why[said['reason']] in said['detail']
            await until(lambda: tap.is_at_rest, what='the arm at rest')
            await move_home(agent)

    run(play())


def test_a_silent_agent_loses_the_motion_and_the_arm_comes_to_rest(
    cell: Cell, tap: RobotTap, figure: Figure
) -> None:
    async def play() -> tuple[float, float]:
        async with cell.holding() as agent:
            watchdog_ms = float(agent.manifest['safety_policy']['safe_state']['watchdog_ms'])
            slow = to_pose(*AWAY_M, max_velocity_mps=0.05)
            await agent.submit('go', 'move_to_pose', slow)
            await until(lambda: tap.is_moving, what='the arm moving')
            await agent.hush()
            silent_ns = time.monotonic_ns()
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'connection_lost')
            await agent.event('safe_state_entered')
            rested_ns = await until(lambda: tap.rested_ns(silent_ns), what='the arm at rest')
            await until(lambda: not tap.running(PRIMITIVE), what='the goal ended')
            agent.beat(0.2)
            return (rested_ns - silent_ns) * 1e-6, watchdog_ms

    rested_ms, watchdog_ms = run(play())
    figure('silent_agent_to_rest', rested_ms, 'ms')
    assert watchdog_ms - 500.0 < rested_ms < watchdog_ms + 6000.0  # else it hangs


def test_a_paused_world_stops_neither_deadlines_nor_the_watch_over_joint_states(
    cell: Cell, tap: RobotTap, peer: RosPeer, lateness: Lateness
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            slow = to_pose(*AWAY_M, max_velocity_mps=0.1)
            sent_ns = time.monotonic_ns()
            await agent.submit('go', 'move_to_pose', slow, deadline_ms=6000)
            await until(lambda: tap.is_moving, what='the arm moving')
            await asyncio.to_thread(pause, peer, True)
            count = await standing(tap)
            before_rad = farthest_rad(tap.samples[-1:], HOME)
            said = await agent.status('go')
            ended_ms = (time.monotonic_ns() - sent_ns) * 1e-6
            assert said['state'] == 'failed', said
            limit_ms = 6000.0 + 1500.0 + 500.0  # deadline, abort, and some
            assert ended_ms < limit_ms + lateness.since(sent_ns) * 1e-6, said
            assert len(tap.samples) == count  # the world stands still
            await agent.event('safe_state_entered')
            await asyncio.to_thread(pause, peer, False)
            paused_ns = time.monotonic_ns()
            await until(lambda: tap.rested_ns(paused_ns), what='the arm at rest')
            await until(lambda: not tap.running(PRIMITIVE), what='the goal ended')
            reached = farthest_rad(tap.samples[-1:], HOME)
            assert reached < before_rad + 0.1  # the move was not taken up again
            await move_home(agent)

    run(play())


def test_a_deadline_passes_while_the_world_stands_still(
    cell: Cell, tap: RobotTap, peer: RosPeer, lateness: Lateness
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            slow = to_pose(*AWAY_M, max_velocity_mps=0.1)
            await agent.submit('go', 'move_to_pose', slow, deadline_ms=1500)
            await until(lambda: tap.is_moving, what='the arm moving')
            await asyncio.to_thread(pause, peer, True)
            paused_ns = time.monotonic_ns()
            said = await agent.status('go')
            assert said['state'] == 'failed', said
            ended_ms = (time.monotonic_ns() - paused_ns) * 1e-6
            assert ended_ms < 1500.0 + 1500.0 + 500.0 + lateness.since(paused_ns) * 1e-6
            await asyncio.to_thread(pause, peer, False)
            await until(lambda: tap.rested_ns(paused_ns), what='the arm at rest')

    run(play())


def test_a_reset_brings_the_world_back_to_its_beginning(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    clock = peer.listen(Clock, '/clock')

    async def play() -> None:
        async with cell.holding(admin=['reset']) as agent:
            await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M))
            await until(lambda: tap.is_moving, what='the arm moving')
            assert await agent.call('world.reset', initial_state='home') == {}
            assert (await agent.status('go'))['reason'] == 'world_reset'
            await until(
                lambda: list(tap.samples[-1].positions) == pytest.approx(HOME, abs=1e-4),
                what='the arm at home',
            )

    begun_s = time.monotonic()
    run(play())
    # The world is older than this test, unless it began again.
    assert clock_s(clock.wait_next()) < time.monotonic() - begun_s
