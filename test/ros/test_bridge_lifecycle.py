"""The bridge as a lifecycle node, in a namespace that it shares with its robot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    AWAY_M,
    Cell,
    HOME_M,
    may_move,
    patient_config,
    RobotTap,
    set_moving,
    tapped,
)
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from patience import run, until, WAIT_S
from processes import BridgeProcess, guarding, start_sim_robot
import pytest
from ros_peer import RosPeer, WaitError
from sim_robot_goals import PRIMITIVE
from std_msgs.msg import Bool
from websockets.exceptions import InvalidStatus

NAMESPACE = '/cell1'
Record = Any


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('lifecycle')
    there = ['-r', f'__ns:={NAMESPACE}']
    config = patient_config(folder, guardian='required')
    with guarding(folder, config, ros_arguments=there):
        bridge = BridgeProcess(folder, 'bridge', config, ros_arguments=there)
        robot = start_sim_robot(folder, namespace=NAMESPACE)
        bridge.wait_ready()
        started = Cell(robot, bridge, folder)
        run(started.warm_up())
        yield started
        bridge.stop()
        robot.stop()


@pytest.fixture(scope='module')
def neighbour(ros: None) -> Iterator[RosPeer]:
    with RosPeer('neighbour', NAMESPACE) as peer:
        yield peer


@pytest.fixture
def tap(cell: Cell, neighbour: RosPeer) -> Iterator[RobotTap]:
    with tapped(neighbour, NAMESPACE) as opened:
        yield opened


@pytest.fixture
def change(neighbour: RosPeer) -> Callable[[int], Any]:
    def ask(transition: int) -> Any:
        request = ChangeState.Request(transition=Transition(id=transition))
        return neighbour.call(ChangeState, 'awp_ros_bridge/change_state', request).success

    return lambda transition: asyncio.to_thread(ask, transition)


def state_of(neighbour: RosPeer) -> str:
    return str(neighbour.call(GetState, 'awp_ros_bridge/get_state').current_state.label)


async def connected(cell: Cell) -> Agent:
    """Connect as soon as the bridge takes connections again."""
    ends_s = time.monotonic() + WAIT_S
    while True:
        try:
            return await cell.agent()
        except InvalidStatus as refused:
            if refused.response.status_code != 503 or time.monotonic() > ends_s:
                raise
        await asyncio.sleep(0.02)


def test_deactivating_mid_motion_stops_suspends_and_refuses_until_it_is_active_again(
    cell: Cell,
    tap: RobotTap,
    neighbour: RosPeer,
    change: Callable[[int], Any],
    record_testsuite_property: Record,
) -> None:
    assert state_of(neighbour) == 'active'

    async def play() -> float:
        agent = await cell.agent()
        await agent.open(subscribe=[{'channel': 'arm_state'}])
        agent.beat(0.2)
        await may_move(agent)
        go = await set_moving(agent, tap, at_speed=True)
        asked_ns = time.monotonic_ns()
        assert await change(Transition.TRANSITION_DEACTIVATE)
        assert await agent.ended() == (1001, 'the world was deactivated')
        said = await agent.status(go)
        assert (said['state'], said['reason']) == ('failed', 'x-ros2.safety_input')
        assert 'deactivated' in said['detail']
        assert agent.events()[-1] == 'safe_state_entered'
        await until(lambda: tap.rested_ns(asked_ns), what='the arm at rest')
        await until(lambda: not tap.running(PRIMITIVE), what='the end of the goal')
        with pytest.raises(InvalidStatus) as refused:
            await cell.agent()
        assert refused.value.response.status_code == 503
        rested_ns = tap.rested_ns(asked_ns)
        assert rested_ns is not None
        taken = tap.taken()
        assert await change(Transition.TRANSITION_ACTIVATE)
        async with await connected(cell) as late:
            assert (await late.resume(agent))['safe_state']
            late.beat(0.2)
            await may_move(late)
            assert tap.taken() == taken
            await late.submit('on', 'move_to_pose', to_pose(*HOME_M))
            assert (await late.status('on'))['state'] == 'completed'
            await late.close()
        return (rested_ns - asked_ns) * 1e-6

    rested_ms = run(play())
    record_testsuite_property('bridge_deactivate_to_rest_ms', round(rested_ms, 1))


def test_the_whole_cycle_of_transitions_ends_in_a_bridge_that_works(
    cell: Cell, tap: RobotTap, neighbour: RosPeer, change: Callable[[int], Any]
) -> None:
    async def play() -> None:
        for transition in (
            Transition.TRANSITION_DEACTIVATE,
            Transition.TRANSITION_CLEANUP,
            Transition.TRANSITION_CONFIGURE,
            Transition.TRANSITION_ACTIVATE,
        ):
            assert await change(transition)
        agent = await connected(cell)
        await agent.drop()
        await cell.warm_up()

    run(play())
    assert state_of(neighbour) == 'active'


def test_what_ros_sees_lies_in_the_namespace_and_follows_the_session(
    cell: Cell, tap: RobotTap, neighbour: RosPeer
) -> None:
    topics = ('motion_permitted', 'in_safe_state', 'at_rest')
    heard = {t: neighbour.listen(Bool, f'awp_ros_bridge/arm_01/{t}') for t in topics}

    def values() -> tuple[bool, ...]:
        return tuple(heard[t].newest.data if heard[t].messages else None for t in topics)

    def sees(*expected: bool) -> None:
        try:
            neighbour.wait_until(lambda: values() == expected, WAIT_S, 'it')
        except WaitError:
            assert values() == expected, topics

    async def play() -> None:
        await asyncio.to_thread(sees, True, True, True)
        async with cell.holding() as agent:
            # Slow enough for the listener to see it.
            await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M, max_velocity_mps=0.2))
            await asyncio.to_thread(sees, True, False, False)
            await agent.status('go')
            await asyncio.to_thread(sees, True, False, True)
        await asyncio.to_thread(sees, True, True, True)

    run(play())
    for listener in heard.values():
        listener.close()
    names = {name for name, _ in neighbour.node.get_topic_names_and_types()}
    assert not [n for n in names if 'awp_ros_bridge' in n and not n.startswith(NAMESPACE)]
