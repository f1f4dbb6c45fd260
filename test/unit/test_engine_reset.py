"""``world.reset``: who may, what ends, what is asked of the simulator (AWP-PRM-005, PRM-006)."""

from __future__ import annotations

import dataclasses

from engine_agent import Agent
from engine_cell import actions, MS, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import GoalOutcome, Meaning, ResetFinished


def resetting(world: World) -> tuple[Agent, int]:
    """Return an agent whose reset waits for its action ``a``."""
    agent = world.session(admin=['reset'])
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    return agent, agent.call_later('world.reset', initial_state='home')


def test_reset_is_granted_to_one_session_at_a_time() -> None:
    world = World()
    first = world.session(admin=['reset'])
    second = world.session(None, admin=['reset'])
    assert first.ready['granted']['admin'] == ['reset']
    assert second.ready['granted']['admin'] == []
    assert second.refusal('world.reset') == 4001
    first.call('session.close')
    third = world.session(None, admin=['reset'])
    assert third.call('world.reset')['result'] == {}


def test_hardware_grants_no_reset() -> None:
    world = World(policy(reset_states=()))
    agent = world.session(admin=['reset'])
    assert agent.ready['granted']['admin'] == []
    assert agent.refusal('world.reset') == 4001


@pytest.mark.parametrize('params', [{'initial_state': 'elsewhere'}, {'seed': 1}])
def test_reset_refuses_what_is_not_declared(params: dict[str, object]) -> None:
    world = World()
    agent = world.session(admin=['reset'])
    assert agent.refusal('world.reset', **params) == -32602
    assert not world.effects(fx.ResetWorld)


def test_reset_tells_everyone_ends_everything_and_then_asks_the_simulator() -> None:
    world = World()
    grip = world.session('grip')
    watcher = world.session(None)
    grip.submit('grip', 'g')
    agent, request = resetting(world)
    for each in (agent, grip, watcher):
        (event,) = each.notes('world.event')
        assert event['event'] == 'world_resetting'
        assert event['detail']['initiator'] == agent.ready['session_id']
    assert agent.states('a')[-1] == grip.states('g')[-1] == 'cancelling'
    assert agent.submit('move', 'late')['error']['code'] == 2001
    world.finish(GoalOutcome.CANCELED)
    assert not world.effects(fx.ResetWorld)
    world.pay()
    assert agent.end('a') == grip.end('g') == ('cancelled', 'world_reset')
    assert len(world.effects(fx.ResetWorld)) == 1
    assert agent.reply(request)['result'] == {}
    assert 'result' in agent.submit('move', 'next')


def test_second_reset_is_busy_until_the_first_is_done() -> None:
    world = World()
    agent, request = resetting(world)
    again = agent.call('world.reset')
    assert again['error']['code'] == 3002
    assert again['error']['data']['retryable'] is True
    world.pay()
    assert 'result' in agent.reply(request)


def test_reset_that_fails_says_why() -> None:
    world = World()
    world.auto_reset = False
    agent = world.session(admin=['reset'])
    request = agent.call_later('world.reset')
    world.tell(ResetFinished(False, '/sim/reset: refused'))
    error = agent.reply(request)['error']
    assert error['code'] == -32603
    assert '/sim/reset: refused' in error['data']['detail']


def test_reset_is_bounded_and_a_late_answer_is_not_taken_for_the_next_one() -> None:
    world = World()
    world.auto_reset = False
    agent = world.session(admin=['reset'])
    first = agent.call_later('world.reset')
    for _ in range(11):
        agent.ping()
        world.pass_ms(1_000)
    assert 'timeout' in agent.reply(first)['error']['data']['detail']
    second = agent.call_later('world.reset')
    world.tell(ResetFinished(ok=True))
    assert not agent.reply(second), 'that was the answer to the first'
    world.tell(ResetFinished(ok=False, detail='no'))
    assert 'no' in agent.reply(second)['error']['data']['detail']


def test_reset_that_runs_out_of_time_while_actions_end_asks_nothing() -> None:
    slow = dataclasses.replace(actions()['move'], max_abort_ns=20_000 * MS)
    world = World(policy(actions={**actions(), 'move': slow}))
    agent, request = resetting(world)
    for _ in range(11):
        agent.ping()
        world.pass_ms(1_000)
    assert 'ending' in agent.reply(request)['error']['data']['detail']
    world.pay()
    assert agent.end('a') == ('cancelled', 'world_reset')
    assert not world.effects(fx.ResetWorld)


def test_answer_nobody_waits_for_is_ignored() -> None:
    world = World()
    world.session(admin=['reset'])
    count = len(world.log)
    world.tell(ResetFinished(ok=True))
    assert len(world.log) == count


def test_late_answer_that_meets_a_reset_still_ending_actions_is_ignored() -> None:
    world = World()
    world.auto_reset = False
    agent = world.session(admin=['reset'])
    agent.call_later('world.reset')
    for _ in range(11):
        agent.ping()
        world.pass_ms(1_000)
    world.auto_cancel = False
    agent.submit('move', 'a')
    second = agent.call_later('world.reset')
    world.tell(ResetFinished(ok=True))
    assert not agent.reply(second)
    world.pay()
    assert agent.reply(second)['result'] == {}


def test_initiator_that_leaves_gets_no_answer_and_the_reset_goes_on() -> None:
    world = World()
    agent, _request = resetting(world)
    agent.drop()
    world.pay()
    assert len(world.effects(fx.ResetWorld)) == 1
    assert not world.engine.kernel.closer.is_resetting


def test_reset_waits_for_the_behaviour_that_a_failed_abort_began() -> None:
    world = World()
    agent, request = resetting(world)
    world.pass_ms(1_500)
    assert agent.end('a') == ('failed', 'abort_failed')
    assert not world.effects(fx.ResetWorld)
    world.behaved()
    assert not world.effects(fx.ResetWorld), 'the goal is still active'
    world.pay()
    assert agent.reply(request)['result'] == {}


def test_e_stop_outranks_a_reset_under_way() -> None:
    world = World()
    agent, request = resetting(world)
    world.safety(Meaning.E_STOP, True)
    assert agent.end('a') == ('failed', 'e_stop')
    world.pay()
    assert agent.reply(request)['result'] == {}


def test_sessions_survive_a_reset() -> None:
    world = World()
    watcher = world.session(None, subscribe=[{'channel': 'log'}])
    agent, _request = resetting(world)
    world.pay()
    assert 'result' in watcher.ping()
    world.capture('log')
    assert watcher.frames
    assert 'result' in agent.ping()
