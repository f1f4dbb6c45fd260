"""Measured violations of the envelope: what fails, what is told, what is admitted then."""

from __future__ import annotations

from engine_agent import Agent
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import GoalOutcome, Meaning, SafetyChanged


def release(world: World, limit: str = 'spatial') -> None:
    """Say that the body is within its limits again, and at rest."""
    name = f'envelope:{limit}'
    world.tell(SafetyChanged('arm', name, Meaning.FAULT, False, 'within again', 1))


def violation(agent: Agent) -> dict[str, object]:
    (event,) = [e for e in agent.notes('world.event') if e['event'] == 'envelope_violation']
    detail: dict[str, object] = event['detail']
    return detail


def test_what_executes_fails_and_what_waits_is_cancelled() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.submit('move', 'b', preempt='queue')
    world.violate()
    assert agent.end('a') == ('failed', 'envelope')
    assert agent.end('b') == ('cancelled', 'safe_state')
    assert agent.events() == ['envelope_violation', 'safe_state_entered']
    assert violation(agent) == {
        'embodiment': 'arm',
        'limit': 'spatial',
        'measured': 0.03,
        'bound': 0.0,
        'tolerance': 0.01,
        'unit': 'm',
        'detail': 'test',
        'action_id': 'a',
    }


def test_order_is_behaviour_then_statuses_then_events() -> None:
    """AWP-SAF-004, with the violation told before the entry that follows from it."""
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    world.log.clear()
    world.violate()
    told = [e for e in world.log if isinstance(e, (fx.BeginBehavior, fx.SendMessage))]
    assert isinstance(told[0], fx.BeginBehavior)
    assert told[0].cause == 'envelope: spatial: test'
    said = [e.message['params'] for e in told[1:] if isinstance(e, fx.SendMessage)]
    kinds = [p.get('state') or p.get('event') for p in said]
    assert kinds == ['failed', 'envelope_violation', 'safe_state_entered']


@pytest.mark.parametrize('answered', [True, False])
def test_a_chain_ends_with_its_newest_goal_in_flight_or_not(answered: bool) -> None:
    world = World()
    agent = world.session()
    agent.submit('chunk', 'a')
    world.auto_accept = answered
    agent.submit('chunk', 'b')
    world.violate()
    assert agent.end('b') == ('failed', 'envelope')
    assert agent.end('a') == (('preempted', None) if answered else ('failed', 'envelope'))
    assert violation(agent)['action_id'] == ('b' if answered else 'a')
    assert set(world.live) <= world.unwanted, 'what was not answered is cancelled on acceptance'


def test_motion_is_refused_until_the_limit_is_released() -> None:
    world = World()
    agent = world.session()
    world.violate()
    reply = agent.submit('move', 'c')
    assert reply['error']['code'] == 2001
    assert reply['error']['data']['retryable'] is True
    assert 'envelope:spatial' in reply['error']['data']['detail']
    agent.submit('stop', 's')
    assert agent.states('s')[-1] == 'executing', 'one that only stops is admitted'
    world.finish()
    release(world)
    agent.submit('move', 'd')
    assert agent.states('d')[-1] == 'executing'
    assert agent.events() == ['envelope_violation', 'safe_state_entered', 'safe_state_exited']


def test_a_push_by_hand_is_told_without_an_action() -> None:
    world = World()
    agent = world.session()
    world.violate()
    assert 'action_id' not in violation(agent)
    assert agent.events() == ['envelope_violation', 'safe_state_entered']


def test_two_limits_at_once_are_both_told_and_both_must_be_released() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    world.violate('spatial', 1)
    world.violate('max_velocity_mps', 2)
    assert agent.events() == ['envelope_violation', 'safe_state_entered', 'envelope_violation']
    release(world, 'spatial')
    assert agent.submit('move', 'b')['error']['code'] == 2001
    release(world, 'max_velocity_mps')
    agent.submit('move', 'c')
    assert world.started[-1].epoch == 2


def test_an_abort_that_is_under_way_goes_on() -> None:
    """AWP-LIF-008: the agent's cancel is the stronger cause; the behaviour stops the body."""
    world = World()
    agent = world.session()
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    agent.call('action.cancel', action_id='a')
    world.violate()
    assert agent.states('a')[-1] == 'cancelling'
    assert violation(agent)['action_id'] == 'a'
    assert len(world.effects(fx.BeginBehavior)) == 1
    world.pay()
    assert agent.end('a') == ('cancelled', 'cancelled_by_agent')


def test_in_an_e_stop_the_violation_is_only_told() -> None:
    world = World()
    agent = world.session()
    world.safety(Meaning.E_STOP, True)
    behaviours = len(world.effects(fx.BeginBehavior))
    world.violate()
    assert agent.events() == ['e_stop_engaged', 'envelope_violation']
    assert len(world.effects(fx.BeginBehavior)) == behaviours
    world.safety(Meaning.E_STOP, False)
    assert agent.events()[2:] == ['e_stop_released', 'safe_state_entered']
    assert agent.submit('move', 'b')['error']['code'] == 2001


def test_a_goal_that_succeeds_after_the_violation_changes_nothing() -> None:
    world = World()
    agent = world.session()
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    world.violate()
    world.finish(GoalOutcome.SUCCEEDED)
    assert agent.end('a') == ('failed', 'envelope')


def test_who_opens_a_session_outside_the_limits_is_told_why_nothing_moves() -> None:
    world = World()
    world.violate()
    agent = world.session()
    assert agent.events() == ['safe_state_entered']
    (event,) = agent.notes('world.event')
    assert event['detail']['inputs'] == [
        {'input': 'envelope:spatial', 'meaning': 'fault', 'detail': 'test'}
    ]


def test_a_violation_of_an_unknown_embodiment_is_ignored() -> None:
    world = World()
    world.violate(embodiment='nobody')
    assert world.log == []
