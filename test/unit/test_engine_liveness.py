"""Heartbeats, loss by silence, telemetry and grants that run out (AWP-SAF-001..003, TIM-006)."""

from __future__ import annotations

from engine_agent import Agent
from engine_cell import MS, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.deadlines import Deadlines
from awp_ros_bridge.engine.inputs import BinaryReceived
from awp_ros_bridge.engine.telemetry import latency_stats, MAX_SAMPLES, Telemetry


def pings(agent: Agent) -> list[int]:
    """Return the origins of the world's pings."""
    return [m['params']['origin_ns'] for m in agent.inbox if m.get('method') == 'ping']


def test_world_pings_within_its_interval() -> None:
    world = World()
    agent = world.session(None)
    for _ in range(20):
        world.pass_ms(1_000)
        agent.ping()
    gaps = [b - a for a, b in zip(pings(agent), pings(agent)[1:], strict=False)]
    assert len(gaps) >= 3
    assert max(gaps) <= 5_000 * MS


def test_connection_is_lost_after_three_silent_intervals() -> None:
    world = World()
    agent = world.session(None)
    world.pass_ms(10_000)
    agent.text('{"jsonrpc":"2.0","id":"w1","result":{}}')
    world.pass_ms(14_900)
    assert not world.effects(fx.CloseConnection), 'an answer keeps the connection'
    world.pass_ms(200)
    assert agent.closed == (1001, 'three silent heartbeat intervals')
    back = world.resume(agent)
    assert back.session_states()[-2:] == ['suspended', 'active']


def test_silent_session_that_is_closing_closes() -> None:
    world = World(policy(heartbeat_ns=100 * MS))
    agent = world.session()
    world.auto_cancel = False
    agent.submit('move', 'a')
    agent.call_later('session.close')
    world.pass_ms(400)
    assert agent.closed is not None
    world.pay()
    assert not world.engine.kernel.sessions


@pytest.mark.parametrize(
    ('text', 'keeps_off'),
    [
        ('{"jsonrpc":"2.0","id":9,"method":"ping","params":{"origin_ns":1}}', True),
        ('{"jsonrpc":"2.0","id":9,"method":"x-test.nothing"}', True),
        ('{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}', True),
        ('{"jsonrpc":"2.0","method":"x-test.note"}', True),
        ('{"jsonrpc":"2.0","id":"w1","result":{}}', False),
        ('{"jsonrpc":"2.0","id":"w1","error":{"code":1,"message":"no"}}', False),
        ('{"jsonrpc":"2.0","id":"w1","result":{},"error":{}}', False),
        ('{"jsonrpc":"2.0","method":"x-test.note","params":[1]}', False),
        ('not JSON', False),
    ],
)
def test_only_what_the_agent_originates_keeps_the_watchdog_off(text: str, keeps_off: bool) -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    world.pass_ms(1_500)
    agent.text(text)
    world.pass_ms(1_000)
    assert (agent.states('a')[-1] == 'executing') == keeps_off


def test_binary_message_keeps_the_connection_but_not_the_watchdog_off() -> None:
    world = World()
    agent = world.session()
    world.pass_ms(14_000)
    world.tell(BinaryReceived(agent.conn, 3))
    world.pass_ms(14_000)
    assert not world.effects(fx.CloseConnection)
    assert agent.events() == ['safe_state_entered']
    world.pass_ms(1_500)
    assert agent.closed is not None


# ---------------------------------------------------------------- telemetry


def test_telemetry_comes_every_second_with_what_happened() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'log'}])
    for _ in range(10):
        world.pass_ms(100)
    session_id = agent.ready['session_id']
    world.capture('log', age_ms=8)
    basis = agent.frames[-1].ts_mono_ns
    world.pass_ms(20)
    agent.submit('move', 'a', basis_ts_mono_ns=basis)
    world.engine.admission_sent(session_id, 2 * MS)
    world.engine.admission_sent('nobody', 2 * MS)
    world.pass_ms(2_000)
    told = agent.notes('session.telemetry')
    assert len(told) >= 3
    assert all(t['window_ms'] <= 1_000 for t in told)
    full = next(t for t in told if 'admission_latency_ns' in t)
    assert full['admission_latency_ns'] == {
        'count': 1,
        'p50': 2 * MS,
        'p95': 2 * MS,
        'max': 2 * MS,
    }
    assert full['observation_latency_ns']['max'] == 8 * MS
    assert full['channels']['1']['count'] == 1
    assert full['observation_to_action_ns']['max'] == 28 * MS
    assert set(told[-1]) == {'window_ms'}


def test_telemetry_pauses_while_suspended() -> None:
    world = World()
    agent = world.session(None)
    agent.drop()
    world.log.clear()
    world.pass_ms(5_000)
    assert not world.effects(fx.SendMessage)


def test_latency_statistics() -> None:
    stats = latency_stats(list(range(100, 0, -1)))
    assert stats == {'count': 100, 'p50': 50, 'p95': 96, 'max': 100}
    assert latency_stats([7]) == {'count': 1, 'p50': 7, 'p95': 7, 'max': 7}


def test_telemetry_window_is_bounded_and_never_negative() -> None:
    telemetry = Telemetry()
    for _ in range(MAX_SAMPLES + 10):
        telemetry.frame(1, -5)
        telemetry.admission(-5)
        telemetry.basis(-5)
    report = telemetry.report(0)
    assert report['window_ms'] == 1
    for name in ('observation_latency_ns', 'admission_latency_ns', 'observation_to_action_ns'):
        assert (report[name]['count'], report[name]['max']) == (MAX_SAMPLES, 0)
    assert telemetry.report(MS) == {'window_ms': 1}


# ---------------------------------------------------------------- grants


def test_expired_grants_behave_as_never_granted() -> None:
    world = World(policy(grant_ttl_ns=1_000 * MS))
    agent = world.session(subscribe=[{'channel': 'log'}], admin=['reset'])
    assert 'expires_at' in agent.ready['granted']
    world.pass_ms(1_000)
    assert agent.events()[-1] == 'grant_expired'
    assert agent.submit('move')['error']['code'] == 4001
    assert agent.refusal('obs.subscribe', channels=[{'channel': 'log'}]) == 4001
    assert agent.refusal('world.reset') == 4001
    count = len(agent.frames)
    world.capture('log')
    assert len(agent.frames) == count
    back = world.resume(agent)
    assert back.ready['granted'] == {
        'channels': [],
        'action_types': [],
        'admin': [],
        'envelopes': back.ready['granted']['envelopes'],
    }


def test_grants_of_a_closing_session_expire_silently() -> None:
    world = World(policy(grant_ttl_ns=1_000 * MS))
    agent = world.session()
    world.auto_cancel = False
    agent.submit('move', 'a')
    agent.call_later('session.close')
    world.pass_ms(1_000)
    assert agent.events() == []
    world.pay()


# ---------------------------------------------------------------- the heap of deadlines


def test_deadlines_that_are_moved_and_cleared_leave_no_litter() -> None:
    deadlines = Deadlines()
    fired: list[int] = []
    for number in range(10_000):
        deadlines.set('moving', 10**12 + number, lambda: fired.append(1))
        deadlines.set(('gone', number), 10**15, lambda: fired.append(2))
        deadlines.clear(('gone', number))
    assert len(deadlines) == 1
    assert len(deadlines._heap) < 600
    assert deadlines.next_ns() == 10**12 + 9_999
    assert deadlines.pop_due(10**12) is None
    call = deadlines.pop_due(10**13)
    assert call is not None
    call()
    assert fired == [1]
    assert deadlines.next_ns() is None


def test_deadlines_of_one_time_fire_in_the_order_they_were_set() -> None:
    deadlines = Deadlines()
    fired: list[int] = []
    for number in range(5):
        deadlines.set(number, 100, lambda n=number: fired.append(n))  # type: ignore[misc]
    while (call := deadlines.pop_due(100)) is not None:
        call()
    assert fired == [0, 1, 2, 3, 4]
