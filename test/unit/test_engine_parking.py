"""When a park goal may be sent, what else is told of a goal, and the end of the process."""

from __future__ import annotations

from dataclasses import replace

from engine_cell import embodiments, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import GoalNoted, GoalOutcome, Meaning, ShutdownRequested


def parking() -> World:
    bodies = {name: replace(each, parks=True) for name, each in embodiments().items()}
    return World(policy(embodiments=bodies))


def park_goals(world: World) -> list[str]:
    return [effect.park_goal for effect in world.effects(fx.BeginBehavior)]


def test_a_silent_or_closing_agent_leaves_a_robot_that_may_park() -> None:
    world = parking()
    agent = world.session()
    world.pass_ms(2000)  # watchdog
    agent.call('session.close')
    first, second = park_goals(world)
    assert len(first) == len(second) == 32
    assert first != second


def test_a_stopped_robot_is_not_parked() -> None:
    world = parking()
    agent = world.session()
    world.safety(Meaning.E_STOP, True)
    agent.call('session.close')
    assert park_goals(world) == ['', '']


@pytest.mark.parametrize('meaning', [Meaning.FAULT, Meaning.NOT_READY, Meaning.MANUAL_MODE])
def test_a_robot_that_must_not_move_is_not_parked(meaning: Meaning) -> None:
    world = parking()
    agent = world.session()
    world.safety(meaning, True)
    agent.call('session.close')
    assert park_goals(world) == ['', '']


def test_a_process_that_ends_parks_nothing() -> None:
    world = parking()
    world.session()
    world.tell(ShutdownRequested())
    assert park_goals(world) == ['']


def test_steps_without_a_place_to_park_get_no_goal() -> None:
    world = World()
    world.session().call('session.close')
    assert park_goals(world) == ['']


def test_who_stopped_it_is_told_with_the_end() -> None:
    world = World()
    agent = world.session()
    world.auto_cancel = False
    agent.submit('move', 'a')
    agent.call('action.cancel', action_id='a')
    goal = world.started[0].goal_id
    world.tell(GoalNoted(goal, 'arm/follow stopped 1 of its goals'))
    world.pass_ms(1500)
    status = agent.last('a')
    assert (status['state'], status['reason']) == ('failed', 'abort_failed')
    assert status['detail'] == (
        'its goal on move_server did not end within max_abort_ms 1500; '
        'arm/follow stopped 1 of its goals'
    )
    world.tell(GoalNoted(goal, 'too late'), GoalNoted('f' * 32, 'of nobody'))
    world.finish(GoalOutcome.CANCELED)
    assert agent.last('a') == status


def test_an_abort_that_takes_longer_than_the_end_of_the_process_is_cut() -> None:
    slow = {name: replace(each, max_abort_ns=10**10) for name, each in policy().actions.items()}
    world = World(policy(actions=slow))
    agent = world.session()
    agent.submit('move', 'a')
    world.auto_cancel = False
    began = world.now_ns
    world.tell(ShutdownRequested())
    while not world.effects(fx.Finish):
        world.pass_ms(50)
        assert world.now_ns - began < 4e9
    assert world.now_ns - began <= 3.3e9  # the rest of the 4 s is for the process itself
    assert agent.end('a') == ('failed', 'connection_lost')
    assert len(world.effects(fx.BeginBehavior)) == 1
