"""Bad input, noisy neighbours and long runs: one clear answer, no trace, nothing for others."""

from __future__ import annotations

import gc
import json
from typing import Any

from engine_cell import MS
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.actions import Action
from awp_ros_bridge.engine.inputs import (
    BinaryReceived,
    ConnectionLost,
    FramesDropped,
    StreamLost,
    TextReceived,
)

BIG = 2**53

# ---------------------------------------------------------------- malformed input


@pytest.mark.parametrize(
    ('text', 'code'),
    [
        ('not JSON', -32700),
        ('{"jsonrpc":"2.0","id":1', -32700),
        ('[]', -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"origin_ns":1}}]', -32600),
        ('1', -32600),
        ('{"id":1,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"origin_ns":1e999}}', -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"origin_ns":NaN}}', -32700),
        ('[' * 100_000, -32700),
        ('{"a":' * 100 + '1' + '}' * 100, -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"action.submit","params":{"type":1}}', -32602),
        (b'\xff\xfe', -32700),
    ],
)
def test_bad_message_gets_one_error_and_the_next_one_works(text: str | bytes, code: int) -> None:
    world = World()
    agent = world.session()
    world.log.clear()
    agent.text(text)
    sent = [e.message for e in world.effects(fx.SendMessage)]
    assert [m['error']['code'] for m in sent] == [code]
    assert 'result' in agent.ping()
    assert 'result' in agent.submit('move')


@pytest.mark.parametrize(
    'text',
    [
        '{"jsonrpc":"2.0","method":"ping","params":[1]}',
        '{"jsonrpc":"2.0","method":"action.submit","params":{"action_id":"a"}}',
        '{"jsonrpc":"2.0","method":"obs.report","params":{"window_ms":0}}',
        '{"jsonrpc":"2.0","method":"session.close"}',
        '{"jsonrpc":"2.0","id":"w1","result":{},"error":{"code":1,"message":"m"}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
    ],
)
def test_what_must_not_be_answered_is_not(text: str) -> None:
    world = World()
    agent = world.session()
    world.log.clear()
    agent.text(text)
    assert not world.effects(fx.SendMessage)
    assert world.effects(fx.RecordAudit), 'but it is on record'


def test_receiver_report_is_taken() -> None:
    world = World()
    agent = world.session()
    params = {'window_ms': 5, 'sync': {'offset_ns': 0, 'rtt_ns': 1}, 'channels': {}}
    world.log.clear()
    agent.text(json.dumps({'jsonrpc': '2.0', 'method': 'obs.report', 'params': params}))
    assert [type(e) for e in world.log] == [fx.RecordAudit]


def test_notification_without_a_session_is_ignored() -> None:
    world = World()
    agent = world.connect()
    count = len(world.log)
    agent.text('{"jsonrpc":"2.0","method":"obs.report","params":{}}')
    assert len(world.log) == count


@pytest.mark.parametrize('in_session', [True, False])
def test_integer_beyond_the_range_ends_the_session(in_session: bool) -> None:
    world = World()
    agent = world.session() if in_session else world.connect()
    request = agent.call_later('ping', origin_ns=BIG)
    assert agent.reply(request)['error']['code'] == 2006
    assert agent.closed == (1002, 'AWP_INTEGER_RANGE')
    if in_session:
        last = agent.notes('session.state')[-1]
        assert (last['state'], last['reason']) == ('closed', 'protocol_error')


def test_integer_beyond_the_range_in_a_notification_is_not_answered() -> None:
    world = World()
    agent = world.session()
    agent.text(f'{{"jsonrpc":"2.0","method":"x-test.note","params":{{"n":{BIG}}}}}')
    assert not [m for m in agent.inbox if 'error' in m]
    assert agent.closed == (1002, 'AWP_INTEGER_RANGE')


def test_integer_beyond_the_range_while_closing_closes_the_connection_at_the_end() -> None:
    world = World()
    agent = world.session()
    world.auto_cancel = False
    agent.submit('move', 'a')
    close = agent.call_later('session.close')
    agent.call_later('ping', origin_ns=BIG)
    assert agent.closed is None
    world.pay()
    assert agent.reply(close)['result'] == {}
    assert agent.closed == (1002, 'AWP_INTEGER_RANGE')


def test_binary_message_is_refused_and_the_next_one_works() -> None:
    world = World()
    agent = world.session()
    world.tell(BinaryReceived(agent.conn, 5), BinaryReceived(999, 5))
    assert agent.inbox[-1]['error']['code'] == 1002
    assert 'result' in agent.ping()


def test_connections_that_are_gone_are_not_heard() -> None:
    world = World()
    world.tell(
        TextReceived(77, '{}', 0),
        ConnectionLost(77, ''),
        StreamLost(77),
        FramesDropped(77, 1, 1),
    )
    assert world.log == []


# ---------------------------------------------------------------- the audit log


def test_audit_log_has_everything_from_the_first_message_on() -> None:
    world = World()
    agent = world.session()
    opened = world.effects(fx.OpenAudit)
    assert [e.session_id for e in opened] == [agent.ready['session_id']]
    assert opened[0].header['granted'] == agent.ready['granted']
    records = world.effects(fx.RecordAudit)
    methods = [r.body.get('method') for r in records if r.direction == 'agent']
    assert methods == ['initialize', 'session.open']
    agent.submit('move', 'a')
    world.finish()
    agent.call('session.close')
    records = world.effects(fx.RecordAudit)
    states = [
        r.body['params']['state'] for r in records if r.body.get('method') == 'action.status'
    ]
    assert states == ['accepted', 'executing', 'completed']
    assert isinstance(world.log[-1], (fx.CloseAudit, fx.ReportEmbodiment))
    assert len(world.effects(fx.CloseAudit)) == 1


# ---------------------------------------------------------------- neighbours


def test_noise_of_one_session_changes_nothing_for_another() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'arm_state'}])
    agent.submit('move', 'a')
    noisy = world.session(None, subscribe=[])
    before = len(agent.inbox)
    noisy.call('obs.subscribe', channels=[{'channel': 'nothing'}])
    noisy.call('action.submit', action_id='x', type='nothing', params={})
    noisy.call('action.cancel', action_id='a')
    noisy.call('action.status', action_id='a')
    noisy.call('world.reset')
    noisy.text('garbage')
    noisy.call('obs.subscribe', channels=[{'channel': 'arm_state'}])
    noisy.call('obs.unsubscribe', channels=['arm_state'])
    noisy.call('session.close')
    assert len(agent.inbox) == before
    frames = len(agent.frames)
    world.pass_ms(300)
    assert len(agent.frames) >= frames + 2
    assert agent.states('a')[-1] == 'executing'


def test_status_of_one_session_reaches_no_other() -> None:
    world = World()
    arm, grip = world.session('arm'), world.session('grip')
    arm.submit('move', 'same')
    grip.submit('grip', 'same')
    world.finish(goal=0)
    assert arm.states('same')[-1] == 'completed'
    assert grip.states('same')[-1] == 'executing'


# ---------------------------------------------------------------- long runs


def held(world: World) -> dict[str, Any]:
    """Return the sizes of everything that could grow."""
    kernel = world.engine.kernel
    (session,) = kernel.sessions.values()
    gc.collect()
    return {
        'actions': sum(isinstance(o, Action) for o in gc.get_objects()),
        'goals': len(kernel.goals),
        'kept': len(session.actions),
        'ended': len(session.ended),
        'log': len(session.log),
        'deadlines': len(kernel.deadlines),
        'heap': len(kernel.deadlines._heap),
        'barriers': len(kernel._barriers),
        'rests': len(kernel.endings._rests),
        'behaviors': len(kernel.safety._behaviors),
    }


def test_many_hundreds_of_goals_and_refusals_leave_nothing_behind() -> None:
    world = World(judged=False)
    world.keeps_log = False
    agent = world.session()
    sizes: list[dict[str, Any]] = []
    for number in range(1_500):
        fields = {'deadline_ms': 2**50} if number % 2 else {}
        agent.submit_now('move', f'a{number}', **fields)
        agent.submit_now('move', f'b{number}', preempt='reject')
        agent.submit_now('move', f'c{number}', params={})
        if number % 3:
            world.finish()
        else:
            agent.call('action.cancel', action_id=f'a{number}')
        if number % 50 == 0:
            agent.ping()
        agent.inbox.clear()
        world.started.clear()
        world.now_ns += 100 * MS
        if number in (500, 1_499):
            agent.call('ping', origin_ns=1, last_status_seq=BIG - 1)
            sizes.append(held(world))
    first, last = sizes
    assert last['kept'] <= 310, 'retention is 30 s'
    for name, size in last.items():
        assert size <= max(first[name] * 1.2, first[name] + 10), (name, first, last)


def test_actions_whose_retention_is_over_are_freed_without_a_collection() -> None:
    world = World(judged=False)
    world.keeps_log = False
    agent = world.session()
    gc.collect()
    gc.disable()
    try:
        for number in range(400):
            agent.submit_now('move', f'a{number}')
            world.finish()
            agent.call('ping', origin_ns=1, last_status_seq=BIG - 1)
            agent.inbox.clear()
            world.started.clear()
            world.now_ns += 1000 * MS
        alive = sum(isinstance(each, Action) for each in gc.get_objects())
    finally:
        gc.enable()
    assert alive <= 40, 'retention is 30 s, one action a second'


def test_sessions_that_come_and_go_leave_nothing_behind() -> None:
    world = World(judged=False)
    world.keeps_log = False
    for _ in range(300):
        agent = world.session(subscribe=[{'channel': 'log'}, {'channel': 'arm_state'}])
        agent.open_stream()
        agent.submit_now('move', 'a')
        agent.call('session.close')
        agent.drop()
    kernel = world.engine.kernel
    assert not kernel.sessions
    assert not kernel.connections
    assert not kernel.streams
    assert not kernel.goals
    assert len(kernel.deadlines) == 0
    assert not any(kernel.channels._listeners.values())
