"""Safety inputs, e-stop, safe state and what a session is told of them (AWP-SAF, AWP-EVT-002)."""

from __future__ import annotations

from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    AvailabilityChanged,
    GoalOutcome,
    Meaning,
    RestChanged,
    SafetyChanged,
)

STOPS = [Meaning.E_STOP, Meaning.PROTECTIVE_STOP, Meaning.OPERATOR_STOP]
BLOCKS = [Meaning.FAULT, Meaning.NOT_READY, Meaning.MANUAL_MODE]

# ---------------------------------------------------------------- e-stop


@pytest.mark.parametrize('meaning', STOPS)
def test_stop_ends_everything_and_refuses_until_it_is_released(meaning: Meaning) -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.submit('move', 'b', preempt='queue')
    world.safety(meaning, True)
    assert agent.end('a') == ('failed', 'e_stop')
    assert agent.end('b') == ('cancelled', 'e_stop')
    (event,) = agent.notes('world.event')
    assert event['event'] == 'e_stop_engaged'
    assert event['detail']['cause'] == meaning
    assert event['detail']['embodiment'] == 'arm'
    assert event['detail']['motion_permitted'] is False
    reply = agent.submit('move', 'c')
    assert reply['error']['code'] == 3005
    assert reply['error']['data']['retryable'] is True
    assert agent.submit('stop', 'd')['error']['code'] == 3005, 'no admission at all'
    world.safety(meaning, False)
    assert agent.events() == ['e_stop_engaged', 'e_stop_released']
    assert 'result' in agent.submit('move', 'e')


def test_stop_is_released_when_every_input_is_clear() -> None:
    world = World()
    agent = world.session()
    world.safety(Meaning.E_STOP, True, 'left', 1)
    world.safety(Meaning.PROTECTIVE_STOP, True, 'right', 2)
    assert agent.events() == ['e_stop_engaged']
    world.safety(Meaning.E_STOP, False, 'left', 2)
    assert agent.events() == ['e_stop_engaged']
    world.safety(Meaning.PROTECTIVE_STOP, False, 'right', 2)
    assert agent.events() == ['e_stop_engaged', 'e_stop_released']


def test_stop_is_released_when_the_behaviour_is_over() -> None:
    world = World()
    agent = world.session()
    world.auto_behavior = False
    world.safety(Meaning.E_STOP, True)
    world.safety(Meaning.E_STOP, False)
    assert agent.events() == ['e_stop_engaged']
    world.pay()
    assert agent.events() == ['e_stop_engaged', 'e_stop_released']


def test_stop_is_not_released_while_an_old_goal_of_a_chain_may_be_active() -> None:
    world = World()
    agent = world.session()
    agent.submit('chunk', 'a')
    agent.submit('chunk', 'b')
    world.auto_cancel = False
    world.safety(Meaning.E_STOP, True)
    world.safety(Meaning.E_STOP, False)
    world.finish(GoalOutcome.CANCELED, goal=1)
    assert agent.events() == ['e_stop_engaged']
    world.finish(GoalOutcome.CANCELED, goal=0)
    assert agent.events() == ['e_stop_engaged', 'e_stop_released']


def test_stop_that_becomes_a_fault_is_released_into_safe_state() -> None:
    world = World()
    agent = world.session()
    world.safety(Meaning.E_STOP, True)
    world.safety(Meaning.FAULT, True)
    assert agent.events() == ['e_stop_engaged', 'e_stop_released', 'safe_state_entered']
    assert agent.submit('move')['error']['code'] == 2001


def test_fault_behind_a_stop_shows_when_the_stop_is_released() -> None:
    world = World()
    agent = world.session()
    world.safety(Meaning.E_STOP, True, 'button')
    world.safety(Meaning.FAULT, True, 'drive', 2)
    assert agent.events() == ['e_stop_engaged']
    world.safety(Meaning.E_STOP, False, 'button', 2)
    assert agent.events() == ['e_stop_engaged', 'e_stop_released', 'safe_state_entered']


def test_stop_behind_a_fault_is_told_and_its_release_repeats_nothing() -> None:
    world = World()
    agent = world.session()
    world.safety(Meaning.FAULT, True, 'drive')
    world.safety(Meaning.E_STOP, True, 'button', 2)
    world.safety(Meaning.E_STOP, False, 'button', 2)
    assert agent.events() == ['safe_state_entered', 'e_stop_engaged', 'e_stop_released']


def test_stop_of_one_embodiment_leaves_the_other_alone() -> None:
    world = World()
    agent = world.connect()
    agent.call('session.open', mode='streaming', embodiments=['arm', 'grip'])
    agent.submit('grip', 'g', embodiment_id='grip')
    agent.submit('move', 'a', embodiment_id='arm')
    world.safety(Meaning.E_STOP, True)
    assert agent.end('a') == ('failed', 'e_stop')
    assert agent.states('g')[-1] == 'executing'
    assert 'result' in agent.submit('grip', 'h', embodiment_id='grip')


def test_behaviour_begins_before_anything_is_told() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    world.log.clear()
    world.safety(Meaning.E_STOP, True)
    first = next(e for e in world.log if isinstance(e, (fx.BeginBehavior, fx.SendMessage)))
    assert isinstance(first, fx.BeginBehavior)
    assert agent.events() == ['e_stop_engaged']


# ---------------------------------------------------------------- other inputs


@pytest.mark.parametrize('meaning', BLOCKS)
def test_block_enters_safe_state_and_refuses_motion(meaning: Meaning) -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.submit('move', 'b', preempt='queue')
    world.safety(meaning, True)
    assert agent.end('a') == ('failed', 'x-ros2.safety_input')
    assert agent.end('b') == ('cancelled', 'safe_state')
    (event,) = agent.notes('world.event')
    assert event['event'] == 'safe_state_entered'
    assert event['detail']['inputs'][0]['meaning'] == meaning
    reply = agent.submit('move', 'c')
    assert reply['error']['code'] == 2001
    assert reply['error']['data']['retryable'] is True
    assert str(meaning) in reply['error']['data']['detail']
    world.safety(meaning, False)
    assert agent.events() == ['safe_state_entered'], 'it stays in safe state'
    agent.submit('move', 'd')
    assert agent.events() == ['safe_state_entered', 'safe_state_exited']


def test_stopping_action_is_admitted_while_motion_is_forbidden_and_ends_no_safe_state() -> None:
    world = World()
    agent = world.session()
    world.safety(Meaning.FAULT, True)
    agent.submit('stop', 's')
    assert agent.states('s')[-1] == 'executing'
    assert agent.events() == ['safe_state_entered']
    assert world.engine.kernel.embodiments['arm'].in_safe_state


def test_flickering_input_is_told_once_and_stops_every_time() -> None:
    world = World()
    agent = world.session()
    for epoch in range(1, 6):
        world.safety(Meaning.FAULT, True, epoch=epoch)
        world.safety(Meaning.FAULT, False, epoch=epoch)
    assert agent.events() == ['safe_state_entered']
    assert len(world.effects(fx.BeginBehavior)) == 5


def test_entry_that_ends_a_waiting_action_is_told_again() -> None:
    world = World()
    agent = world.session()
    world.auto_behavior = False
    world.safety(Meaning.FAULT, True)
    world.safety(Meaning.FAULT, False)
    agent.submit('move', 'a')
    assert agent.states('a') == ['accepted'], 'the behaviour is still running'
    world.safety(Meaning.FAULT, True, epoch=2)
    assert agent.end('a') == ('cancelled', 'safe_state')
    assert agent.events() == ['safe_state_entered', 'safe_state_entered']


def test_degraded_input_changes_nothing() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    world.safety(Meaning.DEGRADED, True)
    assert agent.states('a')[-1] == 'executing'
    assert agent.events() == []
    assert 'result' in agent.submit('move', 'b')


def test_goal_carries_the_newest_epoch() -> None:
    world = World()
    agent = world.session()
    world.safety(Meaning.FAULT, True, epoch=7)
    world.safety(Meaning.FAULT, False, epoch=7)
    agent.submit('move', 'a')
    assert world.started[-1].epoch == 7


def test_input_of_an_unknown_embodiment_is_ignored() -> None:
    world = World()
    world.tell(
        SafetyChanged('nobody', 'in', Meaning.E_STOP, True, '', 1),
        RestChanged('nobody', True),
        AvailabilityChanged('nobody', 'move', True, ''),
    )
    assert world.log == []


# ---------------------------------------------------------------- before and after sessions


@pytest.mark.parametrize(
    ('meaning', 'event'),
    [(Meaning.E_STOP, 'e_stop_engaged'), (Meaning.FAULT, 'safe_state_entered')],
)
def test_session_that_opens_on_a_stopped_embodiment_is_told_after_ready(
    meaning: Meaning, event: str
) -> None:
    world = World()
    world.safety(meaning, True)
    agent = world.session()
    told = [m['method'] for m in agent.inbox if 'method' in m]
    assert told == ['session.state', 'world.event']
    assert agent.events() == [event]


def test_session_that_opens_on_a_stop_waiting_for_its_goals_is_told_so() -> None:
    world = World()
    agent = world.session()
    world.auto_cancel = False
    agent.submit('move', 'a')
    world.safety(Meaning.E_STOP, True)
    world.safety(Meaning.E_STOP, False)
    agent.call('session.close')
    late = world.session()
    assert 'goals are still active' in late.notes('world.event')[0]['detail']['detail']
    reply = late.submit('move', 'b')
    assert 'goals are still active' in reply['error']['data']['detail']
    world.pay()
    assert late.events() == ['e_stop_engaged', 'e_stop_released']


def test_stop_without_a_session_comes_and_goes_silently() -> None:
    world = World()
    world.safety(Meaning.E_STOP, True)
    world.safety(Meaning.FAULT, True, 'drive', 2)
    world.safety(Meaning.E_STOP, False, epoch=2)
    assert world.engine.kernel.embodiments['arm'].in_safe_state
    assert not world.effects(fx.SendMessage)
