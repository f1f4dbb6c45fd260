"""The table of meanings: what an input does to each state of an action and to new submissions."""

from __future__ import annotations

from engine_agent import Agent
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    AuditChanged,
    AvailabilityChanged,
    GoalAccepted,
    Meaning,
)

STOPS = (Meaning.E_STOP, Meaning.PROTECTIVE_STOP, Meaning.OPERATOR_STOP)
BLOCKS = (Meaning.FAULT, Meaning.NOT_READY, Meaning.MANUAL_MODE)
STATES = ('executing', 'cancelling', 'queued', 'accepted', 'in_flight')
RAN = ('executing', 'cancelling', 'in_flight')  # what was handed to ROS counts as execution


def put_into(world: World, agent: Agent, state: str) -> str:
    """Bring an action into a state and return its id."""
    if state == 'in_flight':
        world.auto_accept = False
        agent.submit('move', 'a')
        return 'a'
    agent.submit('move', 'a')
    if state == 'executing':
        return 'a'
    if state == 'cancelling':
        world.auto_cancel = False
        agent.call('action.cancel', action_id='a')
        return 'a'
    if state == 'queued':
        agent.submit('move', 'b', preempt='queue')
        return 'b'
    world.auto_cancel = False  # the old goal keeps the new action waiting
    agent.submit('move', 'b', preempt='replace')
    assert agent.states('b') == ['accepted']
    return 'b'


@pytest.mark.parametrize('state', STATES)
@pytest.mark.parametrize('meaning', [*STOPS, *BLOCKS])
def test_each_meaning_ends_each_state_as_the_table_says(meaning: Meaning, state: str) -> None:
    world = World()
    agent = world.session()
    action_id = put_into(world, agent, state)
    world.safety(meaning, True)
    if meaning in STOPS:
        expected = ('failed', 'e_stop') if state in RAN else ('cancelled', 'e_stop')
        event, code = 'e_stop_engaged', 3005
    else:
        ran = ('failed', 'x-ros2.safety_input')
        expected = ran if state in RAN else ('cancelled', 'safe_state')
        event, code = 'safe_state_entered', 2001
    assert agent.end(action_id) == expected
    assert agent.events() == [event]
    detail = agent.notes('world.event')[0]['detail']
    assert detail['embodiment'] == 'arm'
    assert detail['inputs'] == [{'input': 'in', 'meaning': meaning, 'detail': 'test'}]
    error = agent.submit('move', 'new')['error']
    assert (error['code'], error['data']['retryable']) == (code, True)
    assert 'in' in error['data']['detail']
    if state == 'in_flight':  # its late acceptance changes nothing any more
        world.tell(GoalAccepted(world.started[-1].goal_id))
        assert agent.states('a')[-1] == 'failed'


@pytest.mark.parametrize('state', STATES)
def test_degraded_ends_nothing_and_admits(state: str) -> None:
    world = World()
    agent = world.session()
    action_id = put_into(world, agent, state)
    before = agent.states(action_id)
    world.safety(Meaning.DEGRADED, True)
    assert agent.states(action_id) == before
    assert agent.events() == []
    assert not world.effects(fx.BeginBehavior)
    world.auto_accept = world.auto_cancel = True
    assert 'result' in agent.submit('move', 'new', preempt='queue')
    assert world.engine.kernel.embodiments['arm'].permits_motion


@pytest.mark.parametrize('meaning', [*STOPS, *BLOCKS])
def test_new_submissions_are_taken_when_the_input_is_clear(meaning: Meaning) -> None:
    world = World()
    agent = world.session()
    world.safety(meaning, True)
    world.safety(meaning, False)
    assert 'result' in agent.submit('move', 'new')


@pytest.mark.parametrize('first', [*STOPS, *BLOCKS])
@pytest.mark.parametrize('second', [*STOPS, *BLOCKS, Meaning.DEGRADED])
def test_an_input_may_change_its_meaning(first: Meaning, second: Meaning) -> None:
    world = World()
    agent = world.session()
    world.safety(first, True)
    world.safety(second, True)
    reply = agent.submit('move', 'a')
    if second in STOPS:
        assert reply['error']['code'] == 3005
    elif second in BLOCKS:
        assert reply['error']['code'] == 2001
    else:
        assert 'result' in reply
    world.safety(second, False)
    assert 'result' in agent.submit('move', 'b', preempt='queue')


def test_the_account_tells_goals_that_have_not_ended_and_the_watchdog() -> None:
    world = World()
    agent = world.session()
    world.auto_cancel = world.auto_behavior = False
    agent.submit('move', 'a')
    world.safety(Meaning.FAULT, True)
    detail = agent.notes('world.event')[0]['detail']
    assert detail['active_goals'] == [{'action_type': 'move', 'server': 'move_server'}]
    assert detail['watchdog_tripped'] is False
    world.pass_ms(2500)
    back = world.resume(agent)
    told = back.ready['x-ros2.safety']['arm']
    assert told['watchdog_tripped'] is True
    assert told['motion_permitted'] is False
    assert told['in_safe_state'] is True
    assert told['inputs'] == [{'input': 'in', 'meaning': 'fault', 'detail': 'test'}]
    assert told['active_goals'] == [{'action_type': 'move', 'server': 'move_server'}]
    again = world.resume(back)
    assert again.ready['x-ros2.safety']['arm']['watchdog_tripped'] is False


def reasons(world: World) -> dict[str, str]:
    """Return what ROS was told last that the engine has against motion."""
    reports = [r for r in world.effects(fx.ReportEmbodiment) if r.embodiment == 'arm']
    return dict(reports[-1].reasons)


def test_ros_is_told_what_the_engine_has_against_motion() -> None:
    world = World()
    agent = world.session()
    world.pass_ms(2500)
    assert reasons(world) == {'watchdog': 'the agent sent no message for 2000 ms'}
    agent.submit('move', 'a')
    assert reasons(world) == {}
    world.auto_behavior = False
    world.safety(Meaning.E_STOP, True)
    world.safety(Meaning.E_STOP, False)
    assert list(reasons(world)) == ['e_stop']
    world.auto_rest = False
    world.behaved(ok=False, detail='the arm did not rest')
    assert list(reasons(world)) == ['rest']
    world.rest()
    assert reasons(world) == {}
    world.tell(AvailabilityChanged('arm', 'move', False, 'move_server is not there'))
    world.tell(AuditChanged(False, 'disk full'))
    assert reasons(world) == {
        'missing:move': 'move_server is not there',
        'audit': 'the audit log cannot be written: disk full',
    }
    world.tell(AvailabilityChanged('arm', 'move', True, ''), AuditChanged(True))
    assert reasons(world) == {}
