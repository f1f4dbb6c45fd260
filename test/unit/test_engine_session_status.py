"""The question where a session stands: every state, every race, and no effect on who is asked."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

from engine_agent import Agent
from engine_cell import embodiments, MS, policy
from engine_picture import picture
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.wire.lifecycle import ActionState, SessionState

Json = dict[str, Any]

UNKNOWN = 'unknown'


def sid(agent: Agent) -> str:
    return str(agent.ready['session_id'])


def ask(asker: Agent, of: Agent | str) -> str:
    """Return ``inactive``, ``unknown``, or what an active session does."""
    wanted = of if isinstance(of, str) else sid(of)
    reply = asker.call('session/status', sessionId=wanted)
    if 'error' in reply:
        error = reply['error']
        assert (error['code'], error['message']) == (-32002, 'Resource not found')
        assert error['data']['sessionId'] == wanted
        assert error['data']['retryable'] is False
        return UNKNOWN
    result = reply['result']
    if result['status'] == 'inactive':
        assert result == {'status': 'inactive'}
        return 'inactive'
    assert result['status'] == 'active'
    return str(result['state']['state'])


# ---------------------------------------------------------------- states


def test_a_session_is_ready_then_runs_then_is_idle_again() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    result = asker.call('session/status', sessionId=sid(agent))['result']
    own = {'session_state': 'ready', 'closing': False}
    assert result == {'status': 'active', 'state': {'state': 'idle'}, '_meta': {'awp': own}}
    agent.submit()
    result = asker.call('session/status', sessionId=sid(agent))['result']
    own = {'session_state': 'active', 'closing': False}
    assert result == {'status': 'active', 'state': {'state': 'running'}, '_meta': {'awp': own}}
    world.finish()
    assert ask(asker, agent) == 'idle'


def test_every_live_state_of_an_action_is_running() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    world.hold()
    agent.submit('move', 'a')  # handed over, not answered
    assert ask(asker, agent) == 'running'
    world.accept()
    agent.submit('move', 'b', preempt='queue')
    assert agent.states('b') == ['queued']
    world.finish()  # a: completed; b is handed over
    assert ask(asker, agent) == 'running'
    world.accept()
    agent.call('action.cancel', action_id='b')
    assert agent.states('b')[-1] == 'cancelling'
    assert ask(asker, agent) == 'running'
    world.finish(facts.GoalOutcome.CANCELED)
    world.rest()
    assert agent.states('b')[-1] == 'cancelled'
    assert ask(asker, agent) == 'idle'


def test_an_action_that_awaits_approval_asks_for_a_person_unless_another_runs() -> None:
    """No action of this version awaits approval; the answer is ready for it."""
    world = World()
    asker, agent = world.connect(), world.session()
    agent.submit('move', 'a')
    world.finish()
    session = world.engine.kernel.sessions[sid(agent)]
    waiting = dataclasses.replace(session.actions['a'], state=ActionState.PENDING_APPROVAL)
    session.live['w'] = waiting
    assert ask(asker, agent) == 'requires_action'
    agent.submit('move', 'b')
    assert ask(asker, agent) == 'running'
    world.finish()
    del session.live['w']
    assert ask(asker, agent) == 'idle'


def test_retained_actions_do_not_make_the_answer_longer() -> None:
    world = World(judged=False)
    agent = world.session()
    for _ in range(50):
        agent.submit_now('move')
        world.finish()
    session = world.engine.kernel.sessions[sid(agent)]
    assert len(session.actions) == 50
    assert session.live == {}
    assert session.live_actions() == []


def test_a_suspended_session_is_inactive_until_it_is_resumed() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    agent.drop()
    assert ask(asker, agent) == 'inactive'
    back = world.resume(agent)
    assert ask(asker, agent) == 'idle'
    assert sid(back) == sid(agent)


def test_the_window_ends_to_the_nanosecond() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    agent.drop()
    world.now_ns += world.policy.reconnect_window_ns - 1
    assert ask(asker, agent) == 'inactive'
    world.now_ns += 1
    assert ask(asker, agent) == UNKNOWN


def test_an_expired_session_is_unknown_while_its_robot_still_comes_to_rest() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    agent.drop()
    world.auto_behavior = False
    world.pass_ms(world.policy.reconnect_window_ns / MS)
    assert world.engine.kernel.sessions[sid(agent)].closing is not None
    assert ask(asker, agent) == UNKNOWN
    again = asker.call('session.resume', session_token=agent.ready['session_token'],
                       last_status_seq=0)  # fmt: skip
    assert again['error']['code'] == 2003  # it says the same
    world.behaved()
    assert ask(asker, agent) == UNKNOWN


def test_a_closing_session_runs_until_it_is_closed() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    agent.submit()
    world.hold()
    agent.call_later('session.close')
    result = asker.call('session/status', sessionId=sid(agent))['result']
    assert result['state'] == {'state': 'running'}
    assert result['_meta'] == {'awp': {'session_state': 'active', 'closing': True}}
    assert ask(agent, agent) == 'running'  # its own connection may ask too
    world.auto_behavior = world.auto_rest = True
    world.pay()
    assert ask(asker, agent) == UNKNOWN
    assert ask(agent, agent) == UNKNOWN


def test_a_closing_session_without_actions_is_running_too() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    world.auto_behavior = False
    agent.call_later('session.close')
    assert ask(asker, agent) == 'running'


def test_an_observer_closes_at_once() -> None:
    world = World()
    asker, agent = world.connect(), world.session(None)
    assert ask(asker, agent) == 'idle'
    agent.call('session.close')
    assert ask(asker, agent) == UNKNOWN


def test_a_closing_session_that_lost_its_connection_is_unknown() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    agent.submit()
    world.hold()
    agent.call_later('session.close')
    agent.drop()
    assert sid(agent) in world.engine.kernel.sessions
    assert ask(asker, agent) == UNKNOWN


def test_expired_grants_change_nothing_about_where_the_session_is() -> None:
    world = World(policy(grant_ttl_ns=1_000 * MS))
    asker, agent = world.connect(), world.session()
    world.pass_ms(1_500)
    assert world.engine.kernel.sessions[sid(agent)].is_expired
    assert ask(asker, agent) == 'idle'


@pytest.mark.parametrize('wanted', ['', 'sess_9999', 'x' * 100_000, 'Sess_0001', 'sess_0001 '])
def test_what_was_never_opened_is_unknown(wanted: str) -> None:
    world = World()
    world.session()
    asker = world.connect()
    reply = asker.call('session/status', sessionId=wanted)
    assert reply['error']['data']['sessionId'] == wanted
    assert len(reply['error']['data']['detail']) < 250
    assert ask(asker, wanted) == UNKNOWN


def test_a_token_is_no_name() -> None:
    world = World()
    agent = world.session()
    assert ask(world.connect(), str(agent.ready['session_token'])) == UNKNOWN


def test_a_restart_forgets() -> None:
    before = World()
    agent = before.session()
    assert ask(before.connect(), agent) == 'idle'
    assert ask(World().connect(), agent) == UNKNOWN


def test_deactivation_suspends() -> None:
    world = World()
    agent = world.session()
    world.tell(facts.Deactivated())
    world.tell(facts.Activated())
    assert ask(world.connect(), agent) == 'inactive'


def test_shutdown_closes() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    agent.submit()
    world.hold()
    world.tell(facts.ShutdownRequested())
    assert ask(asker, agent) == 'running'


# ---------------------------------------------------------------- races


def test_the_holder_stays_where_it_is_during_and_after_a_transfer() -> None:
    world = World()
    asker, holder = world.connect(), world.session()
    holder.submit()
    token = holder.call('session.transfer', expires_in_ms=5_000)['result']['transfer_token']
    taker = world.connect()
    world.auto_rest = False
    request = taker.call_later(
        'session.open', mode='streaming', embodiment='arm', takeover=True, transfer_token=token
    )
    assert ask(asker, holder) == 'running'  # its action is ending
    assert ask(taker, holder) == 'running'  # a connection whose own open is under way may ask
    world.pay()
    taker.ready = taker.reply(request)['result']
    assert (ask(asker, holder), ask(asker, taker)) == ('idle', 'idle')
    taker.submit()
    assert (ask(asker, holder), ask(asker, taker)) == ('idle', 'running')
    holder.drop()
    assert (ask(asker, holder), ask(asker, taker)) == ('inactive', 'running')


def test_a_replaced_connection_leaves_the_session_active() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    agent.submit()
    back = world.resume(agent)  # the old connection is still open
    assert agent.closed == (1000, 'connection_replaced')
    assert ask(asker, agent) == 'running'
    world.tell(facts.ConnectionLost(agent.conn, 'late'))  # the loss of the old one
    assert ask(asker, agent) == 'running'
    back.drop()
    assert ask(asker, agent) == 'inactive'


def test_a_lost_connection_is_noticed_when_the_engine_notices() -> None:
    """Three silent intervals: until then the session counts as attached."""
    world = World()
    agent = world.session(None)
    silent_ms = 3 * world.policy.heartbeat_ns / MS
    asker = world.connect()
    world.pass_ms(silent_ms - 1)
    assert ask(asker, agent) == 'idle'
    world.pass_ms(1)
    assert ask(asker, agent) == 'inactive'


def test_a_protocol_error_closes_the_session_and_then_the_connection() -> None:
    world = World()
    asker, agent = world.connect(), world.session()
    world.auto_behavior = False
    agent.text('{"jsonrpc":"2.0","id":"g","method":"ping","params":{"origin_ns":9007199254740992}}')
    assert ask(asker, agent) == 'running'
    world.behaved()
    assert agent.closed is not None
    assert ask(asker, agent) == UNKNOWN


# ---------------------------------------------------------------- who may ask, and how


def test_initialize_comes_first() -> None:
    world = World()
    agent = world.session()
    assert world.line().refusal('session/status', sessionId=sid(agent)) == -32600


@pytest.mark.parametrize(
    'params',
    [
        {},
        {'session_id': 'sess_0001'},
        {'sessionId': None},
        {'sessionId': 7},
        {'sessionId': ['sess_0001']},
        {'sessionId': {'id': 'sess_0001'}},
        {'sessionId': 'sess_0001', '_meta': 'text'},
        {'sessionId': 'sess_0001', '_meta': [1]},
    ],
)
def test_malformed_params_are_refused(params: Json) -> None:
    world = World()
    world.session()
    asker = world.connect()
    assert asker.refusal('session/status', **params) == -32602


def test_params_that_are_no_object_are_refused() -> None:
    asker = World().connect()
    asker.text('{"jsonrpc":"2.0","id":"q","method":"session/status","params":["s"]}')
    assert asker.inbox[-1]['error']['code'] == -32602


@pytest.mark.parametrize('meta', [{}, None, {'traceparent': '00-1', 'deep': {'er': [1]}}])
def test_meta_and_unknown_fields_are_accepted(meta: Json | None) -> None:
    world = World()
    agent = world.session()
    params = {'sessionId': sid(agent), '_meta': meta, 'later': 1}
    assert 'result' in world.connect().call('session/status', **params)


def test_switched_off_the_method_is_unknown() -> None:
    world = World(policy(status_query=False))
    agent = world.session()
    for asker in (agent, world.connect()):
        assert asker.refusal('session/status', sessionId=sid(agent)) == -32601
        assert asker.refusal('session/status') == -32601


def test_a_notification_is_no_question() -> None:
    world = World()
    asker = world.connect()
    before = len(asker.inbox)
    asker.text('{"jsonrpc":"2.0","method":"session/status","params":{"sessionId":"s"}}')
    assert len(asker.inbox) == before


# ---------------------------------------------------------------- no effect on who is asked


def _nothing(world: World, agent: Agent) -> None:
    pass


def _run(world: World, agent: Agent) -> None:
    agent.submit()


def _queue(world: World, agent: Agent) -> None:
    world.hold()
    for preempt in ('reject', 'queue', 'queue'):
        agent.submit('move', preempt=preempt)


def _suspend(world: World, agent: Agent) -> None:
    agent.submit()
    agent.drop()


def _close(world: World, agent: Agent) -> None:
    agent.submit()
    world.hold()
    agent.call_later('session.close')


def _expire(world: World, agent: Agent) -> None:
    agent.drop()
    world.auto_behavior = False
    world.pass_ms(world.policy.reconnect_window_ns / MS)


def _stop(world: World, agent: Agent) -> None:
    agent.submit()
    world.safety(Meaning.E_STOP, True)


def _mute(world: World, agent: Agent) -> None:
    agent.submit()
    world.pass_ms(2_100)


def _stream(world: World, agent: Agent) -> None:
    agent.call('obs.subscribe', channels=[{'channel': 'log'}, {'channel': 'proprio'}])
    agent.open_stream()
    world.capture('log')


def _hand_over(world: World, agent: Agent) -> None:
    agent.submit()
    token = agent.call('session.transfer', expires_in_ms=5_000)['result']['transfer_token']
    world.auto_rest = False
    wanted = {'mode': 'streaming', 'embodiment': 'arm', 'takeover': True}
    world.connect().call_later('session.open', transfer_token=token, **wanted)


SITUATIONS = [
    _nothing, _run, _queue, _suspend, _close, _expire, _stop, _mute, _stream, _hand_over,
]  # fmt: skip


@pytest.mark.parametrize('situation', SITUATIONS)
def test_a_question_changes_nothing_at_all(situation: Callable[[World, Agent], None]) -> None:
    """Watchdog, heartbeat, attachment, replay, audit, streams, deadlines: all compared."""
    world = World()
    agent = world.session('arm')
    situation(world, agent)
    asker = world.connect()
    before, effects, heard = picture(world.engine), len(world.log), len(agent.inbox)
    assert any('watchdog' in line or 'told_safe' in line for line in before)
    answers = set()
    for number in range(20):
        for wanted in (sid(agent), 'sess_9999'):
            asker.call('session/status', sessionId=wanted, _meta={'n': number})
        answers.add(str({**asker.inbox[-2], 'id': 0}))
    assert picture(world.engine) == before  # the asker's own connection included
    assert len(agent.inbox) == heard
    told = world.log[effects:]
    assert len(told) == 40
    assert all(isinstance(e, fx.SendMessage) and e.conn == asker.conn for e in told)
    assert all(e.session_id is None for e in told)
    assert len(answers) == 1, 'an earlier question changed a later answer'


def test_a_question_from_another_session_is_a_message_of_that_session_only() -> None:
    world = World()
    agent, other = world.session('arm'), world.session('grip')
    agent.submit()
    own = world.engine.kernel.sessions[sid(other)]
    before, effects = picture(world.engine, own), len(world.log)
    world.now_ns += 7 * MS
    before = [line for line in before if 'now_ns' not in line]
    assert ask(other, agent) == 'running'
    after = [line for line in picture(world.engine, own) if 'now_ns' not in line]
    assert after == before
    told = world.log[effects:]
    records = [e for e in told if isinstance(e, fx.RecordAudit)]
    assert [(e.session_id, e.direction) for e in records] == [
        (sid(other), 'agent'),
        (sid(other), 'world'),
    ]
    assert own.agent_ns == own.heard_ns == world.now_ns


def test_the_watchdog_trips_on_time_under_a_storm() -> None:
    world = World(judged=False)
    asker, agent = world.connect(), world.session()
    agent.submit_now()
    silent_since = world.now_ns
    asker.is_stalled = True
    while not agent.notes('world.event'):
        world.now_ns += MS // 5  # 5,000 questions a second
        ask(asker, agent)
        asker.inbox.clear()
        assert world.now_ns - silent_since < 3_000 * MS
    assert world.now_ns - silent_since == world.policy.watchdog_ns
    assert agent.notes('world.event')[0]['event'] == 'safe_state_entered'
    assert ask(asker, agent) == 'idle'


def test_a_storm_costs_no_action_rate() -> None:
    arm = dataclasses.replace(embodiments()['arm'], max_action_rate_hz=20.0)
    world = World(policy(embodiments={**embodiments(), 'arm': arm}), judged=False)
    agent = world.session()
    for _ in range(100):
        ask(agent, agent)
    assert 'result' in agent.submit_now()
    assert agent.submit_now()['error']['code'] == 4002  # the second action of 50 ms


def test_questions_stay_out_of_the_log_of_a_session_to_come() -> None:
    """A router asks and then resumes on the same connection: the session was not touched."""
    world = World()
    agent = world.session()
    agent.drop()
    effects = len(world.log)
    back = world.connect()
    for _ in range(20):
        ask(back, agent)
    back.call('session.resume', session_token=agent.ready['session_token'], last_status_seq=0)
    records = [e for e in world.log[effects:] if isinstance(e, fx.RecordAudit)]
    asked = [e.body.get('method') for e in records if e.direction == 'agent']
    assert asked == ['initialize', 'session.resume']


# ---------------------------------------------------------------- one's own session


def test_on_ones_own_session_it_is_an_ordinary_message_and_no_first_activity() -> None:
    world = World()
    agent = world.session()
    world.pass_ms(1_500)
    effects = len(world.log)
    assert ask(agent, agent) == 'idle'
    session = world.engine.kernel.sessions[sid(agent)]
    assert session.state is SessionState.READY
    assert session.agent_ns == world.now_ns  # AWP-SAF-003
    records = [e for e in world.log[effects:] if isinstance(e, fx.RecordAudit)]
    assert [(e.direction, e.kind) for e in records] == [('agent', 'message'), ('world', 'message')]
    assert records[0].body['method'] == 'session/status'  # AWP-AUD-001
    world.pass_ms(1_999)
    assert not agent.notes('world.event')
    world.pass_ms(1)
    assert [n['event'] for n in agent.notes('world.event')] == ['safe_state_entered']


def test_a_question_arms_a_watchdog_that_had_tripped() -> None:
    world = World()
    agent = world.session()
    world.pass_ms(2_500)
    assert world.engine.kernel.sessions[sid(agent)].watchdog_tripped
    ask(agent, agent)
    assert not world.engine.kernel.sessions[sid(agent)].watchdog_tripped
