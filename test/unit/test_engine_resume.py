"""Lost connections: suspension, replay, retention, half-open connections (AWP-CTL-008/010)."""

from __future__ import annotations

from typing import Any

from engine_agent import Agent
from engine_cell import MS, policy
from engine_world import World

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import ConnectionLost, GoalOutcome

Json = dict[str, Any]


def sequence(agent: Agent) -> list[int]:
    """Return the ``status_seq`` of what arrived as notifications, in order."""
    return [m['params']['status_seq'] for m in agent.inbox if 'status_seq' in m.get('params', {})]


def test_drop_suspends_and_actions_go_on() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.drop()
    world.pass_ms(500)
    world.finish()
    back = world.resume(agent)
    assert back.ready['safe_state'] is False
    assert back.end('a') == ('completed', None)
    assert back.session_states() == ['suspended', 'active']
    assert 'result' in back.submit('move', 'b')


def test_replay_begins_after_what_the_agent_has_and_ends_where_said() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    seen = agent.highest()
    agent.drop()
    world.finish()
    back = world.resume(agent, last_status_seq=seen)
    end = back.ready['replay_to_status_seq']
    assert sequence(back) == list(range(seen + 1, end + 2)), 'and "resumed" is live'
    reply = next(i for i, m in enumerate(back.inbox) if 'replay_to' in str(m.get('result')))
    replayed = next(i for i, m in enumerate(back.inbox) if m.get('method') == 'session.state')
    assert reply < replayed


def test_transition_that_was_told_in_a_result_is_replayed_as_a_status() -> None:
    world = World()
    agent = world.session()
    world.hold()
    agent.submit('move', 'a')
    agent.call('action.cancel', action_id='a')
    agent.drop()
    back = world.resume(agent, last_status_seq=0)
    states = [p['state'] for p in back.notes('action.status')]
    assert states == ['accepted', 'executing', 'cancelling']


def test_acknowledged_notifications_are_forgotten() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.ping()
    session = next(iter(world.engine.kernel.sessions.values()))
    assert not session.log
    world.finish()
    assert [seq for seq, _ in session.log] == [session.status_seq]
    agent.call('ping', origin_ns=1, last_status_seq=2**40)
    assert session.acknowledged == session.status_seq


def test_resume_acknowledges_and_a_later_resume_replays_less() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.drop()
    first = world.resume(agent, last_status_seq=2)
    first.ready['session_token'] = agent.ready['session_token']
    seen = first.highest()
    first.drop()
    second = world.resume(first, last_status_seq=seen)
    assert sequence(second)[0] == seen + 1


def test_half_open_connection_is_replaced() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    back = world.resume(agent, last_status_seq=0)
    assert agent.closed == (1000, 'connection_replaced')
    reasons = [p['reason'] for p in back.notes('session.state')]
    assert reasons[-2:] == ['connection_replaced', 'resumed']
    assert back.states('a')[-1] == 'executing', 'the motion goes on'
    assert 'result' in back.ping()


def test_replaced_connection_is_not_listened_to_any_more() -> None:
    world = World()
    agent = world.session()
    world.engine.kernel.connections[agent.conn].is_closing = True
    count = len(world.log)
    agent.text('{"jsonrpc":"2.0","id":1,"method":"session.close"}')
    assert len(world.log) == count


def test_resume_within_the_window_keeps_the_session_and_after_it_does_not() -> None:
    world = World(policy(reconnect_window_ns=5_000 * MS))
    agent = world.session()
    agent.drop()
    world.pass_ms(4_999)
    back = world.resume(agent)
    back.drop()
    world.pass_ms(5_001)
    ask = {'session_token': agent.ready['session_token'], 'last_status_seq': 0}
    assert world.connect().refusal('session.resume', **ask) == 2003


def test_window_of_a_resumed_session_does_not_run_on() -> None:
    world = World(policy(reconnect_window_ns=5_000 * MS))
    agent = world.session()
    agent.drop()
    world.pass_ms(3_000)
    back = world.resume(agent)
    for _ in range(6):
        world.pass_ms(1_000)
        back.ping()
    assert back.session_states()[-1] == 'active'


def test_token_never_issued_is_unknown() -> None:
    world = World()
    ask = {'session_token': 'st_' + '0' * 32, 'last_status_seq': 0}
    assert world.connect().refusal('session.resume', **ask) == 2005


def test_tokens_of_closed_sessions_are_remembered_within_a_bound() -> None:
    world = World(judged=False)
    tokens = world.engine.kernel.tokens
    first = world.session(None)
    first.call('session.close')
    assert tokens.is_over(first.ready['session_token'])
    session = world.session(None)
    live = next(iter(world.engine.kernel.sessions.values()))
    for number in range(5000):
        live.token = f'st_{number}'
        tokens.retire(live)
    assert not tokens.is_over(first.ready['session_token'])
    assert tokens.is_over('st_4999')
    assert session.ready['session_token'] != first.ready['session_token']


def test_suspended_session_trips_the_watchdog_and_says_so_on_return() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.drop()
    world.pass_ms(2_000)
    back = world.resume(agent)
    assert back.ready['safe_state'] is True
    assert back.end('a') == ('failed', 'connection_lost')
    assert back.events() == ['safe_state_entered']
    back.submit('move', 'b')
    assert back.events() == ['safe_state_entered', 'safe_state_exited']


def test_return_restarts_the_watchdog() -> None:
    world = World()
    agent = world.session()
    agent.drop()
    world.pass_ms(2_500)
    back = world.resume(agent)
    back.submit('move', 'a')
    world.pass_ms(1_900)
    assert back.states('a')[-1] == 'executing'
    world.pass_ms(200)
    assert back.end('a') == ('failed', 'connection_lost')


def test_agent_that_returns_with_other_tastes_gets_only_those() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'proprio'}, {'channel': 'log'}])
    agent.drop()
    back = world.connect(consumes_modalities=['proprio/json'], max_obs_rate_hz=5)
    token = agent.ready['session_token']
    reply = back.call('session.resume', session_token=token, last_status_seq=0)
    granted = reply['result']['granted']['channels']
    assert granted == [{'channel': 'proprio', 'rate_hz': 5, 'channel_id': 1}]


def test_second_loss_of_a_connection_means_nothing() -> None:
    world = World()
    agent = world.session()
    agent.drop()
    count = len(world.log)
    world.tell(ConnectionLost(agent.conn, 'again'))
    assert len(world.log) == count


def test_status_pull_repeats_the_newest_status_and_is_forgotten_after_its_retention() -> None:
    world = World(policy(reconnect_window_ns=5_000 * MS))
    agent = world.session()
    agent.submit('move', 'a')
    world.finish(GoalOutcome.ABORTED, detail='tolerance violated')
    told = agent.last('a')
    pulled = agent.call('action.status', action_id='a')['result']
    assert pulled == {**told, 'progress': 0.0}
    assert agent.refusal('action.status', action_id='never') == 3008
    for _ in range(6):
        agent.ping()
        world.pass_ms(1_000)
    agent.submit('move', 'b')
    assert agent.refusal('action.status', action_id='a') == 3008
    assert agent.refusal('action.cancel', action_id='a') == 3008


def test_answers_reach_only_the_connection_that_asked() -> None:
    world = World()
    agent = world.session()
    world.auto_cancel = False
    agent.submit('move', 'a')
    agent.call_later('session.close')
    agent.drop()
    world.pay()
    assert not [e for e in world.effects(fx.SendMessage) if e.conn != agent.conn]
