"""Field cases of goals, ownership and reconnection, between an agent and the robot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
import itertools
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    AWAY_M,
    Cell,
    completed,
    HOME_M,
    may_move,
    newest,
    open_when_free,
    patient_config,
    RobotTap,
    running_cell,
    set_moving,
    tapped,
)
from geometry_msgs.msg import TransformStamped
from lateness import Lateness
from patience import run, until
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_peer import RosPeer
from sim_robot_goals import HOME, PRIMITIVE, set_fault, set_parameter, TRAJECTORY
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

WINDOW_MS = 3000
WATCHDOG_MS = 2000
LATE_FRAME = 'tray'
STALL_MS = 2000


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('field_goals')
    sections = {
        'session': {'heartbeat_interval_ms': 5000, 'reconnect_window_ms': WINDOW_MS},
        'frames.include': {LATE_FRAME: LATE_FRAME},
        'embodiments.arm_01': {
            'speed_scaling': {
                'topic': 'speed_scaling',
                'type': 'std_msgs/msg/Float64',
                'field': 'data',
                'full': 1.0,
                'latched': True,
            },
        },
        'actions.follow_joint_trajectory': {'stall_after_ms': STALL_MS},
    }
    with running_cell(folder, patient_config(folder, sections)) as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


def turn(duration_ms: int, by_rad: float) -> dict[str, Any]:
    """Return a trajectory that turns the last joint, which leaves the tip where it is."""
    point = {
        'positions_rad': [*HOME[:-1], HOME[-1] + by_rad],
        'time_from_start_ms': duration_ms,
    }
    return {'joint_names': list(ARM_JOINTS), 'points': [point]}


def test_f1_a_client_that_is_reset_during_a_long_trajectory_loses_the_arm_to_others(
    cell: Cell, tap: RobotTap, lateness: Lateness
) -> None:
    async def play() -> None:
        async with cell.watching('arm_state') as watcher:
            agent = await cell.agent()
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            await may_move(agent)
            await agent.submit('go', 'follow_joint_trajectory', turn(30_000, 2.5))
            await until(lambda: tap.is_moving, what='the arm moving')
            moves = 'the watcher seeing the motion'
            await until(
                lambda: (newest(watcher, 'arm_state') or {}).get('at_rest') is False, what=moves
            )
            await agent.reset()
            reset_ns = time.monotonic_ns()
            await until(lambda: tap.rested_ns(reset_ns), what='the arm at rest')
            await tap.caught_up()
            assert not tap.running(TRAJECTORY)
            async with await cell.agent('next') as late:
                await open_when_free(late, 'arm_01')
                took_ms = (time.monotonic_ns() - reset_ns) * 1e-6
                # The window, and a stop.
                assert took_ms < WINDOW_MS + 1500 + lateness.since(reset_ns) * 1e-6
                gone = await late.refusal(
                    'session.resume',
                    session_token=agent.ready['session_token'],
                    last_status_seq=0,
                )
                assert gone.code == 2004  # this connection has one; the token is spent either way
                await late.close()
            async with await cell.agent('late') as late:
                refused = await late.refusal(
                    'session.resume',
                    session_token=agent.ready['session_token'],
                    last_status_seq=0,
                )
                assert refused.code == 2003
            await until(
                lambda: (newest(watcher, 'arm_state') or {}).get('at_rest') is True,
                what='the watcher seeing the rest',
            )

    run(play())


def test_f2_a_silent_goal_is_cancelled_at_once_and_pings_are_answered(
    cell: Cell, tap: RobotTap, peer: RosPeer, lateness: Lateness
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await asyncio.to_thread(set_fault, peer, 'feedback_silence')
            await agent.submit('go', 'follow_joint_trajectory', turn(20_000, 2.0))
            await until(lambda: tap.is_moving, what='the arm moving')
            asked_ns = time.monotonic_ns()
            cancel = await agent.ask('action.cancel', {'action_id': 'go'})
            await agent.settle()
            answered_ms = (time.monotonic_ns() - asked_ns) * 1e-6
            assert (await agent.answer(cancel))['state'] == 'cancelling'
            await until(lambda: not tap.running(TRAJECTORY), what='the end of the goal')
            cancelled_ms = (time.monotonic_ns() - asked_ns) * 1e-6
            lost_ms = lateness.since(asked_ns) * 1e-6
            assert answered_ms < 200.0 + lost_ms
            assert cancelled_ms < 200.0 + lost_ms
            assert (await agent.status('go'))['state'] == 'cancelled'

    run(play())


def test_f24_a_deadline_cancels_and_is_told_when_the_arm_rests(
    cell: Cell, tap: RobotTap, lateness: Lateness
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            sent_ns = time.monotonic_ns()
            await agent.submit(
                'go', 'follow_joint_trajectory', turn(10_000, 2.0), deadline_ms=2000
            )
            said = await agent.status('go')
            told_ns = time.monotonic_ns()
            assert (said['state'], said['reason']) == ('failed', 'deadline_exceeded')
            assert 2000 <= (told_ns - sent_ns) * 1e-6 < 3500 + lateness.since(sent_ns) * 1e-6
            await tap.caught_up()
            assert not tap.running(TRAJECTORY)
            assert tap.is_at_rest

    run(play())


def test_f16_and_f60_a_goal_in_an_unknown_frame_is_refused_and_the_running_one_goes_on(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap, max_velocity_mps=0.2)
            taken = tap.taken()
            for frame in ('no_such_frame', '', '/map', 'base_link', 'nope'):
                params = to_pose(*HOME_M)
                params['pose']['frame'] = frame
                refused = await agent.refusal(
                    'action.submit', action_id='bad', type='move_to_pose', params=params
                )
                assert refused.code == 3001, frame
                assert 'frame' in refused.detail
            assert (await agent.status(go))['state'] == 'completed'
            await tap.caught_up()
            assert tap.taken() == taken

    run(play())


def test_f27_a_submission_that_was_cut_off_and_sent_again_is_one_goal(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    set_fault(peer, 'slow_accept=150')

    async def cut(agent: Agent, action_id: str, after_s: float) -> Agent:
        """Submit, lose the connection before the answer, come back and submit the same."""
        params = to_pose(*AWAY_M)
        content = {'action_id': action_id, 'type': 'move_to_pose', 'params': params}
        await agent.ask('action.submit', content)
        await asyncio.sleep(after_s)
        await agent.reset()
        late = await cell.agent()
        await late.resume(agent)
        late.beat(0.2)
        await late.submit(action_id, 'move_to_pose', params)
        said = await late.status(action_id)
        assert said['state'] == 'completed', said
        return late

    async def play() -> None:
        agent = await cell.agent()
        await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
        agent.beat(0.2)
        await may_move(agent)
        for number, after_s in enumerate((0.0, 0.001, 0.004, 0.02)):
            taken = tap.taken()
            agent = await cut(agent, f'cut-{number}', after_s)
            await agent.settle()
            await tap.caught_up()
            assert tap.taken() == taken + 1
        await agent.close()
        await agent.drop()

    run(play())


def test_f32_a_server_that_never_ends_is_cancelled_at_the_deadline(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            sent_ns = time.monotonic_ns()
            await asyncio.to_thread(set_fault, peer, 'stall')
            await agent.submit('go', 'follow_joint_trajectory', turn(400, 0.1), deadline_ms=1500)
            said = await agent.status('go')
            took_ms = (time.monotonic_ns() - sent_ns) * 1e-6
            assert (said['state'], said['reason']) == ('failed', 'deadline_exceeded')
            assert took_ms >= 1500
            await tap.caught_up()
            assert not tap.running(TRAJECTORY)

    run(play())


def test_f32_a_goal_that_stalls_is_cancelled_and_fails_saying_for_how_long(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await agent.submit('go', 'follow_joint_trajectory', turn(10_000, 1.0))
            await until(lambda: tap.is_moving, what='the arm moving')
            cancels = len(tap.cancels)
            await asyncio.to_thread(set_fault, peer, 'stall')
            stalled_ns = time.monotonic_ns()
            said = await agent.status('go')
            took_ms = (time.monotonic_ns() - stalled_ns) * 1e-6
            assert (said['state'], said['reason']) == ('failed', 'x-ros2.stalled')
            assert f'(stall_after_ms {STALL_MS}, speed scaling 1.00)' in said['detail']
            assert took_ms >= STALL_MS - 200  # it may have stood since a look before
            assert len(tap.cancels) == cancels + 1
            await tap.caught_up()
            assert not tap.running(TRAJECTORY)

    run(play())


def test_a_robot_slowed_to_nothing_is_not_taken_for_stalled_and_its_deadline_stays(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    """A speed slider at zero, as of a UR whose program is paused: longer than the stall limit."""

    async def play() -> None:
        async with cell.holding() as agent:
            await asyncio.to_thread(set_parameter, peer, 'speed_scaling', 0.0)
            sent_ns = time.monotonic_ns()
            await agent.submit('go', 'follow_joint_trajectory', turn(400, 0.1), deadline_ms=3000)
            said = await agent.status('go')
            took_ms = (time.monotonic_ns() - sent_ns) * 1e-6
            assert (said['state'], said['reason']) == ('failed', 'deadline_exceeded')
            assert took_ms >= 3000
            await tap.caught_up()
            assert not tap.running(TRAJECTORY)
            await asyncio.to_thread(set_parameter, peer, 'speed_scaling', 0.5)
            await agent.submit('on', 'follow_joint_trajectory', turn(400, 0.1), deadline_ms=15_000)
            assert (await agent.status('on'))['state'] == 'completed'

    try:
        run(play())
    finally:
        set_parameter(peer, 'speed_scaling', 1.0)


def test_f59_a_frame_that_appears_later_is_refused_until_then_and_blocks_nobody(
    cell: Cell, tap: RobotTap, peer: RosPeer, lateness: Lateness
) -> None:
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = peer.node.create_publisher(TFMessage, '/tf_static', latched)
    content: dict[str, Any] = {
        'action_id': 'go', 'type': 'move_to_pose', 'params': to_pose(0.0, 0.0, 0.3),
    }  # fmt: skip
    content['params']['pose']['frame'] = LATE_FRAME

    async def play() -> None:
        async with cell.holding() as agent:
            taken = tap.taken()
            asked_ns = time.monotonic_ns()
            refused = await agent.refusal('action.submit', **content)
            await agent.settle()
            took_ns = time.monotonic_ns() - asked_ns
            assert took_ns < 200e6 + lateness.since(asked_ns)  # both: nothing waits for tf
            assert (refused.code, refused.is_retryable) == (2001, True)
            assert LATE_FRAME in refused.detail
            await tap.caught_up()
            assert tap.taken() == taken
            transform = TransformStamped()
            transform.header.frame_id, transform.child_frame_id = 'base', LATE_FRAME
            transform.header.stamp = peer.node.get_clock().now().to_msg()
            transform.transform.translation.z = 0.1
            transform.transform.rotation.w = 1.0
            publisher.publish(TFMessage(transforms=[transform]))
            await as_soon_as_possible(partial(agent.call, 'action.submit', **content))
            assert (await agent.status('go'))['state'] == 'completed'
            await tap.caught_up()
            assert tap.taken() == taken + 1

    try:
        run(play())
    finally:
        peer.node.destroy_publisher(publisher)


def test_f80_who_returns_within_the_window_hears_what_was_missed_and_later_nothing(
    cell: Cell, tap: RobotTap
) -> None:
    async def cut_off() -> Agent:
        agent = await cell.agent()
        await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
        agent.beat(0.2)
        await may_move(agent)
        await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M))
        await agent.progress('go', 0.05)
        await agent.reset()
        return agent

    async def play() -> None:
        lost = await cut_off()
        told = lost.status_seq
        await asyncio.sleep(0.6 * WINDOW_MS * 1e-3)
        async with await cell.agent() as late:
            await late.resume(lost)
            late.beat(0.2)
            said = await late.status('go')
            assert said['state'] == 'completed'
            await late.settle()
            seqs = [h.params['status_seq'] for h in late.notifications if 'status_seq' in h.params]
            assert seqs == list(range(told + 1, told + 1 + len(seqs)))
            await completed(late, 'home', 'move_to_pose', to_pose(*HOME_M))
            await late.close()
        lost = await cut_off()
        await asyncio.sleep(1.2 * WINDOW_MS * 1e-3)
        async with await cell.agent() as late:
            token = lost.ready['session_token']
            refused = await late.refusal('session.resume', session_token=token, last_status_seq=0)
            assert refused.code == 2003
            await open_when_free(late, 'arm_01')
            await late.close()

    run(play())


def test_f82_an_action_without_feedback_is_told_about_every_second(
    cell: Cell, tap: RobotTap, peer: RosPeer, lateness: Lateness
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await asyncio.to_thread(set_fault, peer, 'feedback_silence')
            await agent.submit('go', 'follow_joint_trajectory', turn(3000, 0.3))
            said = await agent.status('go')
            assert said['state'] == 'completed'
            told_ns = [
                h.at_ns
                for h in agent.notifications
                if h.method == 'action.status' and h.params['action_id'] == 'go'
            ]
            gaps_s = [(b - a) * 1e-9 for a, b in itertools.pairwise(told_ns)]
            assert max(gaps_s) < 1.3 + lateness.since(told_ns[0]) * 1e-9

    run(play())


def test_f101_only_the_owner_moves_and_a_transfer_stops_first(cell: Cell, tap: RobotTap) -> None:
    async def play() -> None:
        async with cell.holding() as owner, await cell.agent('other') as other:
            go = await set_moving(owner, tap)
            taken = tap.taken()
            await other.open(None, subscribe=[{'channel': 'arm_state'}])
            refused = await other.refusal(
                'action.submit', action_id='mine', type='move_to_pose', params=to_pose(*HOME_M)
            )
            assert refused.code == 4001
            refused = await other.refusal('action.cancel', action_id=go)
            assert refused.code == 3008  # another session's action is nobody's
            await other.close()
            assert not owner.has_ended(go)
            token = (await owner.call('session.transfer'))['transfer_token']
            await other.open('arm_01', takeover=True, transfer_token=token)
            await tap.caught_up()
            assert tap.is_at_rest
            assert not tap.running(PRIMITIVE)
            said = await owner.status(go)
            assert (said['state'], said['reason']) == ('preempted', 'transferred')
            await tap.caught_up()
            assert tap.taken() == taken
            await other.close()

    run(play())
