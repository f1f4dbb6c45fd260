"""Replacing where the server blends by itself: chains, refusals, races (AWP-PRE-003)."""

from __future__ import annotations

import dataclasses
from typing import Any

from engine_agent import Agent
from engine_cell import MS, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    GoalOutcome,
    GoalProgressed,
    Meaning,
)


def running(world: World, kind: str = 'move', **fields: Any) -> Agent:
    """Return an agent whose action ``a`` executes."""
    agent = world.session(subscribe=[])
    agent.submit(kind, 'a', **fields)
    assert agent.states('a')[-1] == 'executing'
    return agent


# ---------------------------------------------------------------- replace, native


def test_native_replacement_leaves_at_once_and_ends_the_old_on_acceptance() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    assert len(world.started) == 2
    assert agent.states('a')[-1] == 'executing'
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b') == ['accepted', 'executing']
    assert not world.effects(fx.CancelGoal)
    assert not world.effects(fx.AwaitRest)


def test_chain_at_fifty_hertz_keeps_one_answer_outstanding() -> None:
    settings = policy()
    arm = dataclasses.replace(settings.embodiments['arm'], envelope=None, max_action_rate_hz=None)
    world = World(policy(embodiments={**settings.embodiments, 'arm': arm}))
    agent = running(world, 'chunk')
    world.auto_accept = False
    for number in range(50):  # the server answers every third
        agent.submit_now('chunk', f'n{number}')
        world.pass_ms(20)
        unanswered = [g for g in world.live if g not in world.accepted]
        assert len(unanswered) <= 1
        if number % 3 == 2:
            world.accept()
    world.auto_accept = True
    world.pay()
    assert agent.states('n49')[-1] == 'executing'
    assert not world.effects(fx.CancelGoal)
    ends = [agent.end(f'n{n}') for n in range(49)]
    assert set(ends) == {('preempted', None), ('cancelled', 'superseded')}


def test_old_goals_of_a_chain_end_without_a_word() -> None:
    world = World()
    agent = running(world, 'chunk')
    agent.submit('chunk', 'b')
    count = len(agent.inbox)
    world.finish(GoalOutcome.ABORTED, goal=0)
    world.tell(GoalProgressed(world.started[0].goal_id, 0.9))
    assert len(agent.inbox) == count
    assert not world.engine.kernel.embodiments['arm'].group('arm').draining


@pytest.mark.parametrize('outcome', [GoalOutcome.REFUSED, GoalOutcome.NOT_SENT])
def test_refused_incoming_leaves_the_running_one_alone(outcome: GoalOutcome) -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    agent.submit('chunk', 'c')
    world.finish(outcome)
    assert agent.end('b')[0] == 'rejected'
    assert agent.states('a')[-1] == 'executing'
    assert len(world.started) == 3, 'the next one tries'
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('c')[-1] == 'executing'


@pytest.mark.parametrize('outcome', [GoalOutcome.ABORTED, GoalOutcome.CANCELED])
def test_old_goal_that_ends_just_before_the_acceptance_was_taken_over(
    outcome: GoalOutcome,
) -> None:
    """A server may report the old goal's end before its answer to the new one arrives."""
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(outcome, goal=0)
    assert agent.states('a')[-1] == 'executing'
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b')[-1] == 'executing'


def test_old_goal_that_ended_by_itself_fails_where_the_new_one_is_refused() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.ABORTED, goal=0, detail='path tolerance violated')
    world.finish(GoalOutcome.REFUSED, goal=1)
    assert agent.end('a') == ('failed', 'world_error')
    assert agent.last('a')['detail'] == 'path tolerance violated'
    assert agent.end('b') == ('rejected', 'x-ros2.goal_refused')


def test_old_goal_that_succeeds_while_the_new_one_is_in_flight_completed() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.SUCCEEDED, goal=0)
    assert agent.end('a') == ('completed', None)
    world.accept()
    assert agent.states('b') == ['accepted', 'executing']


def test_unanswered_incoming_stops_both_goals() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.UNANSWERED)
    assert agent.end('a') == ('preempted', None)
    assert agent.end('b') == ('failed', 'world_error')
    agent.submit('chunk', 'c')
    world.behaved()
    assert len(world.started) == 2, 'nobody said that the server dropped the first goal'
    world.pay()
    assert agent.states('c')[-1] == 'executing'


def test_incoming_that_ends_at_once_took_over_all_the_same() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.ABORTED)
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b') == ['accepted', 'executing', 'failed']


@pytest.mark.parametrize('accepted', [True, False], ids=['accepted', 'refused'])
def test_cancel_of_the_running_one_while_its_successor_is_in_flight(accepted: bool) -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    agent.call('action.cancel', action_id='a')
    if accepted:
        world.accept()
        assert agent.states('b')[-1] == 'executing'
    else:
        world.finish(GoalOutcome.REFUSED)
        world.pay()
        assert agent.end('b')[0] == 'rejected'
    assert agent.end('a') == ('cancelled', 'cancelled_by_agent')


def test_cancel_of_the_successor_in_flight_stops_both() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    reply = agent.call('action.cancel', action_id='b')
    assert reply['result']['state'] == 'cancelling'
    assert agent.end('a') == ('preempted', None)
    assert len(world.effects(fx.CancelGoal)) == 2
    world.accept()
    world.pay()
    assert agent.end('b') == ('cancelled', 'cancelled_by_agent')


@pytest.mark.parametrize('accepted', [True, False], ids=['accepted', 'refused'])
def test_deadline_of_the_running_one_while_its_successor_is_in_flight(accepted: bool) -> None:
    world = World()
    agent = running(world, 'chunk', deadline_ms=100)
    world.hold()
    agent.submit('chunk', 'b')
    world.pass_ms(50)
    if accepted:
        world.accept()
    else:
        world.finish(GoalOutcome.REFUSED)
        world.pay()
    assert agent.end('a') == ('failed', 'deadline_exceeded')
    assert agent.states('b')[-1] == ('executing' if accepted else 'rejected')


def test_close_ends_a_chain_as_one() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    agent.submit('chunk', 'c')
    request = agent.call_later('session.close')
    assert agent.end('c') == ('cancelled', 'session_closed')
    assert agent.end('a') == ('cancelled', 'session_closed')
    assert agent.states('b') == ['accepted', 'executing', 'cancelling']
    world.accept(1)
    world.pay()
    assert agent.end('b') == ('cancelled', 'session_closed')
    assert agent.reply(request)['result'] == {}


def test_e_stop_ends_a_chain_as_one() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    agent.submit('chunk', 'c')
    world.safety(Meaning.E_STOP, True)
    assert agent.end('a') == agent.end('b') == ('failed', 'e_stop')
    assert agent.end('c') == ('cancelled', 'e_stop')


def test_native_replacement_waits_for_an_abort_under_way() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    world.auto_accept = True
    agent.call('action.cancel', action_id='a')
    agent.submit('chunk', 'b')
    assert len(world.started) == 1
    world.pay()
    assert agent.end('a') == ('cancelled', 'cancelled_by_agent')
    assert agent.states('b')[-1] == 'executing'


def test_native_replacement_waits_for_the_answer_to_the_first() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.auto_accept = False
    agent.submit('chunk', 'a')
    agent.submit('chunk', 'b')
    assert len(world.started) == 1
    world.accept()
    assert len(world.started) == 2
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b')[-1] == 'executing'


def test_native_replacement_whose_validity_passed_meanwhile_is_rejected() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.auto_accept = False
    agent.submit('chunk', 'a')
    now = world.now_ns - next(iter(world.engine.kernel.sessions.values())).clock.zero_ns
    agent.submit('chunk', 'b', valid_until_ns=now + 60 * MS)
    world.pass_ms(100)
    world.accept()
    assert agent.end('b') == ('rejected', 'stale_intent')
    assert agent.states('a')[-1] == 'executing'


def test_cancel_of_an_outrun_goal_waits_for_rest_only() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.ABORTED, goal=0)
    agent.call('action.cancel', action_id='a')
    assert not world.effects(fx.CancelGoal)
    world.rest()
    assert agent.end('a') == ('cancelled', 'cancelled_by_agent')
    world.accept()
    assert agent.states('b')[-1] == 'executing'


def test_native_replacement_of_a_refused_goal_starts_alone() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.auto_accept = False
    agent.submit('chunk', 'a')
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.REFUSED)
    world.accept()
    assert agent.states('a') == ['accepted', 'rejected']
    assert agent.states('b') == ['accepted', 'executing']


def test_superseded_actions_are_told_before_the_result_of_the_replacement() -> None:
    world = World()
    agent = world.session()
    agent.submit(action_id='a')
    agent.submit(action_id='b', preempt='queue')
    agent.submit(action_id='c', preempt='replace')
    order = [
        (body.get('action_id'), body.get('state'))
        for body in (m.get('params') or m.get('result') or {} for m in agent.inbox)
        if body.get('state') in ('cancelled', 'accepted')
    ]
    assert order.index(('b', 'cancelled')) < order.index(('c', 'accepted'))
