"""How sessions begin, are negotiated, and end (AWP-SES, AWP-NEG, AWP-EMB, AWP-CTL-007)."""

from __future__ import annotations

from typing import Any

from engine_agent import Agent
from engine_cell import MS, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    FrameTreeChanged,
    GoalOutcome,
)

# ---------------------------------------------------------------- before a session


def test_nothing_but_ping_is_served_before_initialize() -> None:
    world = World()
    agent = world.line()
    assert agent.refusal('session.open', mode='streaming') == -32600
    assert agent.refusal('world.manifest') == -32600
    assert agent.call('ping', origin_ns=7)['result']['origin_ns'] == 7


def test_version_must_be_shared() -> None:
    world = World()
    agent = world.line()
    fields = {'agent': {'name': 'a', 'version': '1', 'vendor': 'v'}, 'consumes_modalities': ['x']}
    reply = agent.call('initialize', protocol_versions=['9.0'], **fields)
    assert reply['error']['code'] == 1001
    assert reply['error']['data']['supported'] == ['0.1']
    assert 'result' in agent.call('initialize', protocol_versions=['9.0', '0.1'], **fields)


def test_manifest_is_the_one_of_initialize() -> None:
    world = World()
    agent = world.connect()
    assert agent.call('world.manifest')['result'] == world.policy.manifest


def test_ping_without_a_session_counts_from_the_connection() -> None:
    """A host that is up for more than 104 days must not leave 2^53 - 1 (AWP-CTL-009)."""
    world = World()
    world.now_ns = 2**60
    agent = world.line()
    world.pass_ms(5)
    result = agent.call('ping', origin_ns=1)['result']
    assert result == {'origin_ns': 1, 'receive_ns': 5 * MS, 'transmit_ns': 5 * MS}


@pytest.mark.parametrize(
    'method',
    [
        'action.submit',
        'action.cancel',
        'action.status',
        'session.close',
        'session.transfer',
        'obs.subscribe',
        'obs.unsubscribe',
        'world.reset',
    ],
)
def test_methods_of_a_session_need_one(method: str) -> None:
    assert World().connect().refusal(method) == 2005


def test_methods_that_are_not_offered_are_unknown() -> None:
    agent = World().session()
    for method in ('world.tick', 'world.snapshot', 'task.update', 'x-test.nothing'):
        assert agent.refusal(method) == -32601


# ---------------------------------------------------------------- session.open


def test_ready_enumerates_the_grants() -> None:
    world = World()
    agent = world.session(
        subscribe=[{'channel': 'proprio', 'rate_hz': 10}, {'channel': 'grip_state'}],
        action_types=['move', 'grip', 'nothing'],
        admin=['reset', 'snapshot'],
    )
    granted = agent.ready['granted']
    assert granted['action_types'] == ['move']
    assert granted['admin'] == ['reset']
    assert granted['channels'] == [{'channel': 'proprio', 'rate_hz': 10, 'channel_id': 1}]
    assert [e['embodiment'] for e in granted['envelopes']] == ['arm']
    bindings = [e['binding'] for e in agent.ready['stream_endpoints']]
    assert bindings == ['inline', 'ws']


@pytest.mark.parametrize(
    ('params', 'code'),
    [
        ({'mode': 'lockstep', 'embodiment': 'arm'}, 2002),
        ({'mode': 'streaming', 'embodiment': 'nobody'}, 2001),
        ({'mode': 'streaming', 'embodiments': ['arm', 'base']}, 2001),
        ({'mode': 'streaming', 'embodiments': ['arm', 'nobody']}, 2001),
        ({'mode': 'streaming', 'embodiment': 'arm', 'embodiments': ['arm', 'grip']}, -32602),
        ({'mode': 'streaming', 'takeover': True}, -32602),
    ],
)
def test_open_is_refused_and_the_connection_may_try_again(
    params: dict[str, Any], code: int
) -> None:
    agent = World().connect()
    assert agent.refusal('session.open', **params) == code
    assert 'result' in agent.call('session.open', mode='streaming', embodiment='arm')


def test_embodiment_is_bound_once() -> None:
    world = World()
    world.session('arm')
    assert world.connect().refusal('session.open', mode='streaming', embodiment='arm') == 2001
    both = ['arm', 'grip']
    assert world.connect().refusal('session.open', mode='streaming', embodiments=both) == 2001
    world.session('grip')
    world.session(None)


def test_connection_carries_one_session() -> None:
    world = World()
    agent = world.session()
    assert agent.refusal('session.open', mode='streaming') == 2004
    token = agent.ready['session_token']
    assert agent.refusal('session.resume', session_token=token, last_status_seq=0) == 2004
    assert agent.refusal('initialize', protocol_versions=['0.1']) == -32602


def test_initialize_is_refused_inside_a_session() -> None:
    agent = World().session()
    fields = {'agent': {'name': 'a', 'version': '1', 'vendor': 'v'}, 'consumes_modalities': ['x']}
    assert agent.refusal('initialize', protocol_versions=['0.1'], **fields) == -32600


def test_sessions_are_bounded() -> None:
    world = World(policy(max_sessions=2))
    first = world.session(None)
    world.session(None)
    assert world.connect().refusal('session.open', mode='streaming') == 2001
    first.call('session.close')
    world.session(None)


def test_observer_cannot_act_but_sees_everything() -> None:
    world = World()
    agent = world.session(None, subscribe=[{'channel': 'proprio'}, {'channel': 'grip_state'}])
    assert len(agent.ready['granted']['channels']) == 2
    assert agent.submit('move')['error']['code'] == 4001
    assert agent.refusal('session.transfer') == 4001
    assert agent.refusal('world.reset') == 4001


def test_frame_tree_is_the_newest() -> None:
    world = World()
    world.tell(FrameTreeChanged(({'id': 'map', 'parent': None},)))
    assert world.session().ready['frame_tree'] == {'frames': [{'id': 'map', 'parent': None}]}


def test_multi_bind_needs_embodiment_id() -> None:
    world = World()
    agent = world.connect()
    agent.call('session.open', mode='streaming', embodiments=['arm', 'grip'])
    assert agent.submit('move')['error']['code'] == -32602
    assert agent.submit('move', embodiment_id='grip')['error']['code'] == 4001
    assert agent.submit('move', embodiment_id='base')['error']['code'] == 4001
    assert 'result' in agent.submit('move', embodiment_id='arm')


# ---------------------------------------------------------------- session.close


def test_close_follows_its_order() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'log'}])
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    agent.submit('move', 'b', preempt='queue')
    request = agent.call_later('session.close')
    assert agent.end('b') == ('cancelled', 'session_closed')
    world.log.clear()
    world.finish(GoalOutcome.CANCELED)
    assert agent.states('a')[-1] == 'cancelling'
    world.rest()
    assert agent.end('a') == ('cancelled', 'session_closed')
    assert not agent.reply(request)
    world.behaved()
    assert agent.reply(request)['result'] == {}
    order = [_name(e) for e in world.log]
    ends = [order.index(n) for n in ('action.status', 'BeginBehavior', 'session.state', 'result')]
    assert ends == sorted(ends)
    released = [e for e in world.effects(fx.ReportEmbodiment) if e.session_id is None]
    assert world.log.index(released[0]) < order.index('session.state')
    assert agent.closed is None, 'the connection stays'


def _name(effect: fx.Effect) -> str:
    if isinstance(effect, fx.SendMessage):
        return str(effect.message.get('method', 'result'))
    return type(effect).__name__


@pytest.mark.parametrize(
    ('method', 'params'),
    [
        ('action.submit', {'action_id': 'x', 'type': 'move', 'params': {'x_m': 0}}),
        ('action.cancel', {'action_id': 'a'}),
        ('obs.subscribe', {'channels': [{'channel': 'log'}]}),
        ('obs.unsubscribe', {'channels': ['log']}),
        ('session.transfer', {}),
        ('world.reset', {}),
    ],
)
def test_closing_session_refuses_changes(method: str, params: dict[str, Any]) -> None:
    world = World()
    agent = closing(world)
    assert agent.refusal(method, **params) == 2003


def closing(world: World) -> Agent:
    """Return an agent whose close waits for its action ``a``."""
    agent = world.session(admin=['reset'])
    world.auto_cancel = False
    agent.submit('move', 'a')
    agent.call_later('session.close')
    return agent


def test_closing_session_still_answers_questions() -> None:
    world = World()
    agent = closing(world)
    assert 'result' in agent.call('ping', origin_ns=1)
    assert agent.call('action.status', action_id='a')['result']['state'] == 'cancelling'
    assert 'result' in agent.call('world.manifest')


def test_closing_session_cannot_be_resumed_from_anywhere() -> None:
    world = World()
    agent = closing(world)
    token = agent.ready['session_token']
    ask = {'session_token': token, 'last_status_seq': 0}
    assert agent.refusal('session.resume', **ask) == 2003, 'not even on its own connection'
    assert world.connect().refusal('session.resume', **ask) == 2003
    agent.drop()
    world.pay()
    assert world.connect().refusal('session.resume', **ask) == 2003
    other = {'session_token': 'st_never_issued_000', 'last_status_seq': 0}
    assert world.connect().refusal('session.resume', **other) == 2005


def test_close_is_bounded_although_nothing_obeys() -> None:
    world = World()
    agent = world.session()
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    request = agent.call_later('session.close')
    began = world.now_ns
    while not agent.reply(request):
        agent.ping()
        world.pass_ms(100)
        assert world.now_ns - began < 10_000 * MS, 'a client waits no longer'
    assert agent.end('a') == ('failed', 'abort_failed')
    busy = world.connect()
    assert busy.refusal('session.open', mode='streaming', embodiment='arm') == 2001
    world.pay()
    assert 'result' in busy.call('session.open', mode='streaming', embodiment='arm')


def test_close_releases_though_rest_was_not_reached_and_keeps_the_embodiment() -> None:
    world = World()
    agent = world.session()
    world.auto_behavior = world.auto_rest = False
    request = agent.call_later('session.close')
    world.behaved(ok=False, detail='gripper did not confirm')
    assert agent.reply(request)['result'] == {}
    reply = world.connect().call('session.open', mode='streaming', embodiment='arm')
    assert 'error' in reply
    assert 'gripper did not confirm' in reply['error']['data']['detail']
    world.pay()
    world.session()


def test_connection_may_carry_the_next_session_after_a_close() -> None:
    world = World()
    agent = world.session()
    agent.call('session.close')
    agent.ready = agent.call('session.open', mode='streaming', embodiment='arm')['result']
    assert agent.submit('move', 'a')['result']['status_seq'] == 2


def test_close_of_a_suspended_session_by_expiry_enters_safe_state_and_releases() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.drop()
    world.pass_ms(31_000)
    assert not world.engine.kernel.sessions
    world.session()
    ask = {'session_token': agent.ready['session_token'], 'last_status_seq': 0}
    assert world.connect().refusal('session.resume', **ask) == 2003


def test_session_that_drops_while_closing_closes_all_the_same() -> None:
    world = World()
    agent = closing(world)
    agent.drop()
    world.pay()
    assert not world.engine.kernel.sessions
    assert not [e for e in world.effects(fx.RecordAudit) if 'suspended' in str(e.body)]


def test_closed_session_leaves_nothing_that_falls_due() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'log'}, {'channel': 'arm_state'}])
    agent.submit('move', 'a')
    agent.call('session.close')
    assert world.engine.next_deadline_ns() is None
