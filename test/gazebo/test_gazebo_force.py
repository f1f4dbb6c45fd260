"""Contact in physics: what the wrist feels, and what the bridge makes of too much of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
import math
import time
from typing import Any

from agent_words import to_pose
from bridge_cell import as_soon_as_possible, Cell, HOME_M, may_move, RobotTap, tapped
from gazebo_cell import arrive, EASY, WHOLE
from geometry_msgs.msg import Wrench, WrenchStamped
from lateness import Lateness
from patience import run, until
import pytest
from ros_peer import Listener, RosPeer
from sim_robot_goals import PRIMITIVE

from awp_ros_bridge.sim_robot.description import load_arm_chain, load_urdf

Figure = Callable[..., None]

CONFIG = WHOLE
CHAIN = load_arm_chain(load_urdf())
MOST_N = 50.0
TOLERATED_N = 5.0  # a tenth
BLOCK_XY_M = (0.3, -0.2)
BLOCK_TOP_M = 0.05  # above base


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


class Feeler:
    """Hears what the sensor tells."""

    def __init__(self, tap: RobotTap) -> None:
        self.messages: list[Any] = []
        tap.node.create_subscription(WrenchStamped, 'ft_sensor/wrench', self.messages.append, 1000)

    @property
    def newest_n(self) -> float:
        """Give the newest force."""
        return force_n(self.messages[-1])

    def most_n(self, since: int = 0) -> float:
        """Give the greatest force since some message."""
        return max(force_n(m) for m in self.messages[since:])


def force_n(message: Any) -> float:
    force = message.wrench.force
    return math.hypot(force.x, force.y, force.z)


def tip_z_m(tap: RobotTap) -> float:
    return float(CHAIN.tip_position(tap.samples[-1].positions)[2])


def means(listener: Listener, count: int) -> list[float]:
    """Give the mean force along each axis over the newest messages."""
    rows = [m.wrench.force for m in listener.messages[-count:]]
    return [sum(getattr(row, axis) for row in rows) / len(rows) for axis in 'xyz']


def test_the_sensor_feels_a_push_and_neither_weight_nor_joints(
    cell: Cell, tap: RobotTap, peer: RosPeer, lateness: Lateness
) -> None:
    felt = peer.listen(WrenchStamped, 'ft_sensor/wrench', 100)
    peer.wait_until(lambda: len(felt.messages) > 20, what='the sensor')
    assert felt.newest.header.frame_id == 'tool0'
    assert means(felt, 10) == pytest.approx([0.0, 0.0, 0.0], abs=0.5)  # it carries 13.7 N
    publisher = peer.node.create_publisher(Wrench, 'sim/push', 10)
    peer.wait_until(publisher.get_subscription_count, what='the robot to listen')
    push = Wrench()
    push.force.y = 10.0

    def has_told(count: int) -> bool:
        publisher.publish(push)  # a push lasts a second
        return len(felt.messages) > count and felt.newest.wrench.force.y > 5.0

    peer.wait_until(lambda: has_told(0), what='the push')
    felt.clear()
    began_ns = time.monotonic_ns()
    peer.wait_until(lambda: has_told(80), what='what it comes to')
    x_n, y_n, z_n = means(felt, 60)
    # it is given in steps, which are of another size when the robot's loop is late
    late = lateness.since(began_ns) / (time.monotonic_ns() - began_ns)
    publisher.publish(Wrench())
    peer.node.destroy_publisher(publisher)
    # The drives hold: what pushes is what the wrist bears.
    assert y_n == pytest.approx(10.0, rel=0.15 + 3.0 * late)
    assert y_n > 5.0
    assert (x_n, z_n) == pytest.approx((0.0, 0.0), abs=0.7 + 3.0 * late)


def test_pressing_too_hard_fails_the_action_and_the_arm_moves_away_again(
    cell: Cell, tap: RobotTap, figure: Figure
) -> None:
    async def play() -> float:
        felt = Feeler(tap)
        async with cell.holding() as agent:
            limits = agent.manifest['safety_policy']['envelopes']
            assert [e['max_force_n'] for e in limits if 'max_force_n' in e] == [MOST_N]
            above = to_pose(*BLOCK_XY_M, BLOCK_TOP_M + 0.05, **EASY)
            await arrive(agent, 'above', 'move_to_pose', above)
            assert len(felt.messages) > 100
            assert felt.most_n() < MOST_N  # on the way through free air
            start = len(felt.messages)
            into = to_pose(*BLOCK_XY_M, BLOCK_TOP_M - 0.03, max_velocity_mps=0.05)
            await agent.submit('press', 'move_to_pose', into)
            home = to_pose(*HOME_M, **EASY)
            queue = partial(agent.submit, 'next', 'move_to_pose', home, preempt='queue')
            await as_soon_as_possible(queue)
            said = await agent.status('press')
            assert (said['state'], said['reason']) == ('failed', 'envelope'), said
            assert 'max_force_n' in said['detail']
            assert (await agent.status('next'))['reason'] == 'safe_state'
            event = await agent.event('envelope_violation')
            detail = event.params['detail']
            assert (detail['limit'], detail['action_id']) == ('max_force_n', 'press')
            assert (detail['bound'], detail['tolerance'], detail['unit']) == (
                MOST_N, TOLERATED_N, 'N',
            )
            assert detail['measured'] > MOST_N + TOLERATED_N
            # The event tells a force that the sensor told.
            assert any(
                force_n(m) == pytest.approx(detail['measured'], rel=1e-6)
                for m in felt.messages[start:]
            )
            entered = await agent.event(
                'safe_state_entered', since=agent.notifications.index(event)
            )
            rested_ns = await until(lambda: tap.rested_ns(entered.at_ns), what='the arm at rest')
            await until(lambda: not tap.running(PRIMITIVE), what='the goal ended')
            assert tip_z_m(tap) == pytest.approx(BLOCK_TOP_M, abs=0.005)
            assert felt.messages[-1].wrench.force.z > 5.0  # the block, upwards; it still presses
            most_n = felt.most_n(start)
            await may_move(agent)
            await arrive(agent, 'away', 'move_to_pose', home)
            assert agent.events().count('envelope_violation') == 1
            await until(lambda: felt.newest_n < 1.0, what='the tool free')
            figure('contact_greatest_force', most_n, 'n')
            return float(rested_ns - event.at_ns) * 1e-6

    rested_ms = run(play())
    figure('contact_violation_to_rest', rested_ms, 'ms')
    assert rested_ms < 3000.0  # it hangs
