"""Field cases of servers and threads that misbehave, at the gateway and the whole bridge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import os
import signal
import threading
import time

from agent_words import to_pose
from bridge_cell import as_soon_as_possible, AWAY_M, RobotTap, tapped
from bridge_host import holding, Host
from fakes import eventually, FakeRobot
from gateway_rig import config, E_STOP, outcome, Rig, running
from lateness import Lateness
from patience import run
from processes import StartedProcess
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE, set_fault
from speakers import SafetyTopic

from awp_ros_bridge.bridge import main as bridge_main
from awp_ros_bridge.engine.inputs import (
    AvailabilityChanged,
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    SafetyChanged,
)

ACCEPT_S = 0.15


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


@pytest.fixture
def rig(robot: FakeRobot) -> Iterator[Rig]:
    with running(config(move={'ack_timeout_ms': 500})) as rig:
        yield rig


@pytest.mark.filterwarnings('ignore:Deprecated in favor:DeprecationWarning')  # of rclpy's server
def test_f28_fifty_goals_in_bursts_to_a_slow_server_each_end_once_and_none_is_left(
    rig: Rig, robot: FakeRobot
) -> None:
    rig.ready()
    robot.knobs.accept_s = ACCEPT_S
    goals: list[str] = []
    for burst in range(1, 11):
        goals += [rig.start_goal() for _ in range(5)]
        # the last ones of a burst are answered after the ack timeout of 500 ms
        eventually(lambda n=5 * burst: len(robot.seen.requests) == n, 'every answer')  # type: ignore[misc]
        for goal_id in goals[-5:]:
            if rig.gateway.goals.get(goal_id) is not None:
                rig.cancel_goal(goal_id)
            rig.ended(goal_id)
    eventually(lambda: not robot.handles, 'no goal runs on the robot')
    for goal_id in goals:
        assert len(rig.all(GoalEnded, goal_id=goal_id)) == 1
    outcomes = {rig.ended(goal_id).outcome for goal_id in goals}
    assert outcomes == {GoalOutcome.CANCELED, GoalOutcome.UNANSWERED}
    eventually(lambda: rig.gateway.health()['held'] == 0, 'nothing is held')


def test_f31_a_controller_that_is_deactivated_mid_goal_fails_it_by_name(
    rig: Rig, robot: FakeRobot
) -> None:
    """A deactivated controller aborts its goal and refuses others; unloaded, it is missing."""
    rig.ready()
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    rig.clear()
    robot.knobs.accepts = False
    robot.end(goal_id, 'abort')
    assert outcome(rig, goal_id) is GoalOutcome.ABORTED
    assert 'arm/move' in rig.ended(goal_id).detail
    refused = rig.start_goal()
    assert outcome(rig, refused) is GoalOutcome.REFUSED
    assert 'arm/move' in rig.ended(refused).detail
    robot.stop_server()
    change = rig.wait(AvailabilityChanged, action_type='move', available=False)
    assert 'arm/move' in change.detail
    assert outcome(rig, rig.start_goal()) is GoalOutcome.NOT_SENT


def test_f68_observations_that_block_their_thread_delay_no_stop(
    robot: FakeRobot, ros_domain_id: int, lateness: Lateness
) -> None:
    with (
        SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button,
        running(config(safety_inputs=(E_STOP,))) as rig,
    ):
        button.say(False)
        button.repeat(50)
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        busy = threading.Event()

        def decode() -> None:
            busy.set()
            time.sleep(0.3)

        rig.gateway.observations_thread.post(decode)
        assert busy.wait(5.0)
        said_ns = time.monotonic_ns()
        button.say(True)
        _, heard_ns = rig.wait_timed(SafetyChanged, input_name='e_stop', engaged=True)
        eventually(lambda: robot.seen.cancelled(goal_id), 'the cancel')
        cancelled_ns = next(at for uuid, at in robot.seen.cancels if uuid.hex() == goal_id)
        lost_ns = lateness.since(said_ns)
        assert heard_ns - said_ns < 100e6 + lost_ns
        assert cancelled_ns - said_ns < 100e6 + lost_ns


@pytest.fixture
def tap(peer: RosPeer, sim_robot: StartedProcess) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


def test_f34_sigterm_while_the_server_has_not_answered_leaves_no_goal_running(
    host: Host, tap: RobotTap, peer: RosPeer, lateness: Lateness
) -> None:
    sent_ns: list[int] = []

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await holding(url)
            await asyncio.to_thread(set_fault, peer, 'slow_accept=500')
            await as_soon_as_possible(lambda: agent.submit('go', 'move_to_pose', to_pose(*AWAY_M)))
            await asyncio.sleep(0.1)
            sent_ns.append(time.monotonic_ns())
            os.kill(os.getpid(), signal.SIGTERM)
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('cancelled', 'session_closed')
            assert 'executing' in agent.states('go')
            assert (await agent.ended())[0] == 1001

        run(play())

    assert host.run(visit) == bridge_main.EXIT_OK
    assert (time.monotonic_ns() - sent_ns[0]) * 1e-9 < 5.0 + lateness.since(sent_ns[0]) * 1e-9
    run(tap.caught_up())
    assert tap.taken(PRIMITIVE) == 1  # it was accepted after all, and cancelled then
    assert not tap.running(PRIMITIVE)
    assert tap.is_at_rest
