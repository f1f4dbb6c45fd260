"""What scopes allow, and what is left of a credential that was revoked (AWP-PRM-001)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine_agent import Agent
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.permissions import ALL_SCOPES, Permissions, Scope

FORBIDDEN = 4001
REVOKED = (1008, 'the credential was revoked')


def only(*scopes: str, reach: set[str] | None = None, name: str = 'some') -> Permissions:
    """Return permissions with some scopes."""
    limit = None if reach is None else frozenset(reach)
    return Permissions(name, frozenset(Scope(s) for s in scopes), limit)


def opened(world: World, permissions: Permissions, embodiment: str | None, **more: Any) -> Agent:
    """Return an agent with a session under these permissions."""
    agent = world.connect(permissions)
    if embodiment is not None:
        more['embodiment'] = embodiment
    reply = agent.call('session.open', mode='streaming', **more)
    assert 'result' in reply, reply
    agent.ready = reply['result']
    return agent


def notes(world: World) -> list[dict[str, Any]]:
    """Return the notes of the process' own log."""
    rows = [e for e in world.effects(fx.RecordAudit) if e.session_id.startswith('access_')]
    return [e.body for e in rows]


@pytest.mark.parametrize('missing', list(Scope))
def test_every_scope_forbids_alone_what_it_stands_for(missing: Scope) -> None:
    world = World()
    given = Permissions('most', ALL_SCOPES - {missing})
    agent = world.connect(given)
    reply = agent.call('session.open', mode='streaming', embodiment='arm', admin=['reset'])
    if missing is Scope.ACT:
        assert reply['error']['code'] == FORBIDDEN
        assert "needs scope 'act'" in reply['error']['data']['detail']
        return
    granted = reply['result']['granted']
    assert granted['admin'] == ([] if missing is Scope.ADMIN else ['reset'])
    assert 'result' in agent.submit()
    refused = {
        'obs.subscribe': agent.call('obs.subscribe', channels=[{'channel': 'proprio'}]),
        'session.transfer': agent.call('session.transfer', expires_in_ms=1000),
        'world.reset': agent.call('world.reset', initial_state='home'),
    }
    expected = {
        Scope.OBSERVE: {'obs.subscribe'},
        Scope.TRANSFER: {'session.transfer'},
        Scope.ADMIN: {'world.reset'},
        Scope.APPROVE: set(),
    }
    codes = {m for m, r in refused.items() if r.get('error', {}).get('code') == FORBIDDEN}
    assert codes == expected[missing]


def test_f102_an_observer_sees_and_moves_nothing() -> None:
    world = World()
    agent = opened(world, only('observe'), None, subscribe=[{'channel': 'proprio'}])
    assert [c['channel'] for c in agent.ready['granted']['channels']] == ['proprio']
    assert agent.refusal('action.submit', action_id='a', type='move', params={}) == FORBIDDEN
    assert (
        world.connect(only('observe')).refusal('session.open', mode='streaming', embodiment='arm')
        == FORBIDDEN
    )
    assert not world.started
    assert [n['refused'] for n in notes(world)] == ['session.open']
    assert notes(world)[0]['credential'] == 'some'
    forbidden = [
        e
        for e in world.effects(fx.RecordAudit)
        if e.body.get('error', {}).get('code') == FORBIDDEN
    ]
    assert len(forbidden) == 1  # the one inside a session stands in its own log


def test_without_any_scope_nothing_opens() -> None:
    world = World()
    agent = world.connect(only())
    for more in ({}, {'embodiment': 'arm'}, {'embodiments': ['arm', 'grip']}):
        assert agent.refusal('session.open', mode='streaming', **more) == FORBIDDEN
    assert len(notes(world)) == 3


def test_what_is_asked_before_initialize_is_refused_for_that_first() -> None:
    world = World()
    agent = world.line(only())
    assert agent.refusal('session.open', mode='streaming') == -32600
    assert not notes(world)


def test_a_credential_reaches_its_embodiments_and_their_channels_only() -> None:
    world = World()
    limited = only('observe', 'act', reach={'grip'})
    assert (
        world.connect(limited).refusal('session.open', mode='streaming', embodiment='arm')
        == FORBIDDEN
    )
    assert (
        world.connect(limited).refusal(
            'session.open', mode='streaming', embodiments=['arm', 'grip']
        )
        == FORBIDDEN
    )
    watcher = opened(
        world, limited, None, subscribe=[{'channel': 'proprio'}, {'channel': 'grip_state'}]
    )
    assert [c['channel'] for c in watcher.ready['granted']['channels']] == ['grip_state']
    assert watcher.refusal('obs.subscribe', channels=[{'channel': 'proprio'}]) == FORBIDDEN
    assert 'result' in opened(world, limited, 'grip').submit('grip')


def test_reset_moves_everything_so_it_needs_a_credential_that_reaches_everything() -> None:
    world = World()
    agent = opened(world, only(*Scope, reach={'arm'}), 'arm', admin=['reset'])
    assert agent.ready['granted']['admin'] == []
    assert agent.refusal('world.reset', initial_state='home') == FORBIDDEN


@pytest.mark.parametrize(
    ('permissions', 'word'),
    [
        (only('act'), 'transfer'),
        (only('transfer', 'observe'), 'act'),
        (only('act', 'transfer', reach={'grip'}), 'reaches'),
    ],
)
def test_a_takeover_needs_transfer_and_act_and_the_embodiment(
    permissions: Permissions, word: str
) -> None:
    world = World()
    holder = world.session('arm')
    token = holder.call('session.transfer', expires_in_ms=5000)['result']['transfer_token']
    ask = {'mode': 'streaming', 'embodiment': 'arm', 'takeover': True, 'transfer_token': token}
    reply = world.connect(permissions).call('session.open', **ask)
    assert reply['error']['code'] == FORBIDDEN
    assert word in reply['error']['data']['detail']
    # and the token is still good for somebody who may
    assert 'result' in world.connect(only('act', 'transfer')).call('session.open', **ask)


@pytest.mark.parametrize(
    ('more', 'permissions', 'passes'),
    [
        ({'embodiment': 'arm'}, only('act', 'observe'), True),
        ({'embodiment': 'arm'}, only('act'), True),
        ({'embodiment': 'arm'}, only('observe', 'transfer', 'admin'), False),
        ({'embodiment': 'arm'}, only('act', reach={'grip'}), False),
        ({'embodiment': 'arm', 'subscribe': [{'channel': 'log'}]}, only('act'), False),
        ({'embodiment': 'arm', 'admin': ['reset']}, only('act'), False),
        ({'embodiment': 'arm', 'admin': ['reset']}, only('act', 'admin'), True),
        ({'subscribe': [{'channel': 'log'}]}, only('observe'), True),
        ({'subscribe': [{'channel': 'log'}]}, only('observe', reach={'grip'}), False),
        ({'subscribe': [{'channel': 'log'}]}, only('observe', reach={'arm'}), True),
    ],
)
def test_a_session_is_resumed_by_who_may_do_what_it_does(
    more: dict[str, Any], permissions: Permissions, passes: bool
) -> None:
    world = World()
    agent = world.connect()
    ready = agent.call('session.open', mode='streaming', **more)['result']
    agent.drop()
    back = world.connect(permissions)
    ask = {'session_token': ready['session_token'], 'last_status_seq': agent.highest()}
    reply = back.call('session.resume', **ask)
    assert ('result' in reply) is passes, reply
    if not passes:
        assert reply['error']['code'] == FORBIDDEN
        assert 'result' in world.connect().call('session.resume', **ask)  # nothing has changed


def test_who_resumes_with_less_may_not_read_more_than_that() -> None:
    world = World()
    agent = world.session(None)
    agent.drop()
    back = world.connect(only('observe', reach={'grip'}))
    back.call('session.resume', session_token=agent.ready['session_token'], last_status_seq=0)
    assert back.refusal('obs.subscribe', channels=[{'channel': 'log'}]) == FORBIDDEN
    assert 'result' in back.call('obs.subscribe', channels=[{'channel': 'grip_state'}])


def revoke(world: World, *names: str) -> None:
    """Revoke credentials."""
    world.tell(facts.CredentialsRevoked(frozenset(names), 'test'))


def test_revoking_ends_the_session_as_a_close_does_and_then_the_connection() -> None:
    world = World()
    agent = opened(world, only('act', 'observe', name='a'), 'arm', subscribe=[{'channel': 'log'}])
    other = opened(world, only('act', name='b'), 'grip')
    waiting = world.connect(only('observe', name='a'))
    action = agent.submit()['action_id']
    world.hold()
    revoke(world, 'a')
    assert world.effects(fx.CancelGoal)
    assert waiting.closed == REVOKED
    assert agent.closed is None  # the goal has not ended, so the robot may still move
    assert agent.events()[-1] == 'grant_expired'
    assert agent.refusal('action.submit', action_id='z', type='move', params={'x_m': 0}) == 2003
    world.capture('log')
    assert not agent.frames
    world.pay()
    world.pass_ms(10)
    world.pay()
    assert agent.end(action) == ('cancelled', 'session_closed')
    assert agent.session_states()[-1] == 'closed'
    assert agent.closed == REVOKED
    assert other.closed is None
    assert other.ping()['result']
    assert world.engine.kernel.embodiments['arm'].session is None
    assert notes(world) == [{'revoked': ['a'], 'detail': 'test'}]


@pytest.mark.parametrize('leave', [Agent.drop, lambda agent: None])
def test_a_session_belongs_to_the_credential_that_carried_it_last(
    leave: Callable[[Agent], None],
) -> None:
    world = World()
    first = opened(world, only('act', name='a'), 'arm')
    leave(first)
    second = world.connect(only('act', name='b'))
    token = first.ready['session_token']
    second.call('session.resume', session_token=token, last_status_seq=first.highest())
    revoke(world, 'a')
    assert second.closed is None
    second.drop()
    revoke(world, 'b')
    world.pass_ms(10)
    assert not world.engine.kernel.sessions
    third = world.connect(only('act', name='c'))
    assert third.refusal('session.resume', session_token=token, last_status_seq=0) == 2003


def test_revoking_the_receiver_of_a_takeover_under_way_leaves_it_without_the_robot() -> None:
    world = World()
    holder = world.session('arm')
    holder.submit()
    token = holder.call('session.transfer', expires_in_ms=5000)['result']['transfer_token']
    world.hold()
    taker = world.connect(only('act', 'transfer', name='t'))
    taker.call_later(
        'session.open', mode='streaming', embodiment='arm', takeover=True, transfer_token=token
    )
    revoke(world, 't')
    assert taker.closed == REVOKED
    world.pay()
    world.pass_ms(10)
    world.pay()
    assert world.engine.kernel.embodiments['arm'].session is not None
    assert holder.closed is None
    assert 'embodiment_transferred' not in holder.events()


def test_revoking_what_nobody_uses_changes_nothing_but_the_record() -> None:
    world = World()
    agent = world.session('arm')
    before = len(world.log)
    revoke(world, 'nobody')
    assert agent.closed is None
    assert {type(e) for e in world.log[before:]} == {fx.OpenAudit, fx.RecordAudit}


def test_refused_handshakes_are_recorded_in_one_log_that_ends_with_the_process() -> None:
    world = World()
    for status in (401, 403):
        world.tell(facts.HandshakeRefused('10.0.0.9', status, 'no'))
    assert [n['status'] for n in notes(world)] == [401, 403]
    opened_logs = world.effects(fx.OpenAudit)
    assert len(opened_logs) == 1
    world.tell(facts.ShutdownRequested())
    assert [e.session_id for e in world.effects(fx.CloseAudit)] == [opened_logs[0].session_id]
    world.tell(facts.HandshakeRefused('10.0.0.9', 401, 'no'))
    assert len(world.effects(fx.OpenAudit)) == 1


def test_what_a_session_may_do_stands_in_its_log() -> None:
    world = World()
    opened(world, only('act', name='tok_1'), 'arm')
    header = world.effects(fx.OpenAudit)[-1].header
    assert (header['credential'], header['scopes']) == ('tok_1', ['act'])
