"""The mobile base in physics: its driver, its odometry, and the bridge in front of both robots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
import math
from typing import Any

from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    AWAY_M,
    Cell,
    HOME_M,
    may_move,
    newest,
    RobotTap,
)
from gazebo_cell import arrive, EASY, WHOLE
from geometry_msgs.msg import PoseStamped, Twist
from nav_msgs.msg import Odometry
from patience import run, until
import pytest
from ros_peer import RosPeer
from sim_robot_goals import reset
from std_srvs.srv import Trigger

Figure = Callable[..., None]
Json = dict[str, Any]

CONFIG = WHOLE
BEGINS_M = (2.5, 0.0)  # in the world
_REST_MPS = 0.01


class BaseTap(RobotTap):
    """
    Hears the arm and the base.

    :ivar odometry: what the base says of itself.
    :ivar truth: where Gazebo says that it is.
    :ivar fast_mps: greatest speed that the odometry told.
    """

    def __init__(self) -> None:
        super().__init__()
        self.odometry: list[Any] = []
        self.truth: list[Any] = []
        self.node.create_subscription(Odometry, 'odom', self.odometry.append, 100)
        self.node.create_subscription(PoseStamped, 'sim/base_pose', self.truth.append, 100)

    @property
    def base_mps(self) -> float:
        """Speed of the base, as measured at its wheels."""
        twist = self.odometry[-1].twist.twist
        return max(abs(twist.linear.x), abs(twist.angular.z) * 0.2)

    @property
    def is_base_moving(self) -> bool:
        """Tell whether the base moves."""
        return self.base_mps > 0.05

    @property
    def is_base_at_rest(self) -> bool:
        """Tell whether the base rests."""
        return self.base_mps < _REST_MPS

    def odometry_place(self) -> tuple[float, float, float]:
        """Give x, y and yaw of the odometry."""
        return _place(self.odometry[-1].pose.pose)

    def true_place(self) -> tuple[float, float, float]:
        """Give x, y and yaw in the map, in truth."""
        x, y, yaw = _place(self.truth[-1].pose)
        return x - BEGINS_M[0], y - BEGINS_M[1], yaw


def _place(pose: Any) -> tuple[float, float, float]:
    yaw_rad = 2.0 * math.atan2(pose.orientation.z, pose.orientation.w)
    return pose.position.x, pose.position.y, yaw_rad


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[BaseTap]:
    reset(peer)
    with BaseTap() as opened:
        peer.wait_until(lambda: opened.samples and opened.truth, what='both robots')
        peer.wait_until(
            lambda: opened.odometry and opened.is_base_at_rest
            and opened.odometry_place() == pytest.approx((0.0, 0.0, 0.0), abs=0.01),
            10.0,
            'the base where it begins',
        )
        yield opened
    reset(peer)


def drive_to(x_m: float, y_m: float, yaw_rad: float = 0.0, frame: str = 'map') -> Json:
    q = [0, 0, math.sin(yaw_rad / 2.0), math.cos(yaw_rad / 2.0)]
    return {'pose': {'frame': frame, 'p_m': [x_m, y_m, 0.0], 'q': q}}


async def trip(peer: RosPeer, what: str) -> None:
    await asyncio.to_thread(partial(peer.call, Trigger, f'sim/{what}'))


def test_the_driver_ramps_stops_in_silence_and_knows_where_it_went(
    cell: Cell, tap: BaseTap, peer: RosPeer
) -> None:
    commands = peer.node.create_publisher(Twist, 'cmd_vel', 10)
    peer.wait_until(commands.get_subscription_count, what='the base to listen')
    command = Twist()
    command.linear.x, command.angular.z = 0.25, 0.4
    start = len(tap.odometry)

    def is_driving() -> bool:
        """Say it again every 100 ms, in the time of the world."""
        commands.publish(command)
        peer.turn_for(0.1)
        return math.hypot(*tap.true_place()[:2]) > 0.2 and (
            tap.odometry[-1].twist.twist.linear.x == pytest.approx(0.25, abs=0.03)
        )

    peer.wait_until(is_driving, 20.0, 'the base at speed')
    peer.wait_until(lambda: tap.is_base_at_rest, what='the base at rest in silence')
    peer.node.destroy_publisher(commands)
    speeds = [m.twist.twist.linear.x for m in tap.odometry[start:]]
    times = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in tap.odometry[start:]]
    half, full = (next(t for t, v in zip(times, speeds, strict=True) if v > share * 0.25)
                  for share in (0.2, 0.9))
    assert full - half > 0.1  # 0.8 m/s2: no jump
    peer.wait_until(
        lambda: tap.odometry_place() == pytest.approx(tap.true_place(), abs=0.03),
        what='the odometry where the base is',
    )


def test_the_base_drives_where_an_action_sends_it_and_agents_see_it_there(
    cell: Cell, tap: BaseTap, figure: Figure
) -> None:
    async def play() -> None:
        async with cell.holding('base_01', subscribe=[{'channel': 'awp.tf'}]) as agent:
            await arrive(agent, 'go', 'navigate_to_pose', drive_to(0.6, -0.3, 0.8))
            x_m, y_m, yaw_rad = tap.true_place()
            assert (x_m, y_m) == pytest.approx((0.6, -0.3), abs=0.06)
            assert yaw_rad == pytest.approx(0.8, abs=0.1)
            figure('base_error', math.hypot(x_m - 0.6, y_m + 0.3) * 1e3, 'mm')

            def row() -> Json | None:
                told = newest(agent, 'awp.tf') or {'transforms': []}
                return next((r for r in told['transforms'] if r['frame'] == 'base_link'), None)

            def is_seen() -> bool:
                found = row()
                return found is not None and found['p_m'][:2] == pytest.approx(
                    tap.odometry_place()[:2], abs=0.01
                )

            await until(is_seen, what='base_link where the odometry has it')
            assert (row() or {})['parent'] == 'odom'
            refused = await agent.refusal(
                'action.submit',
                action_id='far',
                type='navigate_to_pose',
                params=drive_to(BEGINS_M[0] + 2.4, 0.0, frame='world'),
            )
            assert refused.code == 4002

    run(play())


def test_an_e_stop_stops_arm_and_base_and_both_go_on(
    cell: Cell, tap: BaseTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with cell.holding('base_01') as base, cell.holding() as arm:
            await base.submit('drive', 'navigate_to_pose', drive_to(1.2, 0.0))
            await arm.submit('move', 'move_to_pose', to_pose(*AWAY_M, max_velocity_mps=0.1))
            await until(lambda: tap.is_base_moving and tap.is_moving, what='both moving')
            await trip(peer, 'trip_e_stop')
            for agent, name in ((base, 'drive'), (arm, 'move')):
                said = await agent.status(name)
                assert (said['state'], said['reason']) == ('failed', 'e_stop'), said
                await agent.event('e_stop_engaged')
            await until(lambda: tap.is_base_at_rest and tap.is_at_rest, what='both at rest')
            before = tap.true_place()
            await trip(peer, 'clear_e_stop')
            await may_move(base)
            await may_move(arm)
            assert tap.true_place() == pytest.approx(before, abs=0.005)
            await asyncio.gather(
                arrive(base, 'back', 'navigate_to_pose', drive_to(0.3, 0.0)),
                arrive(arm, 'home', 'move_to_pose', to_pose(*HOME_M, **EASY)),
            )

    run(play())


def test_a_cancel_and_a_close_leave_the_base_at_rest(cell: Cell, tap: BaseTap) -> None:
    async def play() -> None:
        async with cell.holding('base_01') as agent:
            await agent.submit('go', 'navigate_to_pose', drive_to(1.2, 0.0))
            await until(lambda: tap.is_base_moving, what='the base moving')
            await agent.call('action.cancel', action_id='go')
            said = await agent.status('go')
            assert said['state'] == 'cancelled', said
            await until(lambda: tap.is_base_at_rest, what='the base at rest')
            await as_soon_as_possible(
                partial(agent.submit, 'on', 'navigate_to_pose', drive_to(1.4, 0.0))
            )
            await until(lambda: tap.is_base_moving, what='the base moving again')
            await agent.call('session.close')
            # The answer waited for measured rest.
            assert tap.is_base_at_rest
            assert tap.true_place()[0] < 1.3

    run(play())


def test_who_drives_the_base_too_fast_beside_the_bridge_is_stopped(
    cell: Cell, tap: BaseTap, peer: RosPeer
) -> None:
    async def play() -> None:
        commands = tap.node.create_publisher(Twist, 'cmd_vel', 10)
        fast = Twist()
        fast.linear.x = 0.5
        async with cell.holding('base_01') as agent:
            await agent.submit('go', 'navigate_to_pose', drive_to(1.2, 0.0))
            await until(lambda: tap.is_base_moving, what='the base moving')

            def is_told() -> bool:
                commands.publish(fast)
                return 'envelope_violation' in agent.events()

            await until(is_told, what='the violation')
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'envelope'), said
            event = await agent.event('envelope_violation')
            detail = event.params['detail']
            assert (detail['embodiment'], detail['limit']) == ('base_01', 'max_velocity_mps')
            assert 0.42 < detail['measured'] <= 0.52
            await agent.event('safe_state_entered', since=agent.notifications.index(event))
            await until(lambda: tap.is_base_at_rest, what='the base at rest')
            await may_move(agent)
            await arrive(agent, 'back', 'navigate_to_pose', drive_to(1.0, 0.0))

    run(play())
