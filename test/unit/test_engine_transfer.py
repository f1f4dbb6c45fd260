"""Handing an embodiment over: tokens, takeovers and what comes between (AWP-EMB-003)."""

from __future__ import annotations

from typing import Any

from engine_agent import Agent
from engine_cell import MS, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import GoalOutcome, Meaning


def mint(holder: Agent, **params: Any) -> str:
    """Return a transfer token of the holder."""
    return str(holder.call('session.transfer', **params)['result']['transfer_token'])


def take(world: World, token: str, embodiment: str = 'arm') -> tuple[Agent, int]:
    """Begin a takeover on a new connection; return the receiver and its request."""
    taker = world.connect()
    wanted = {'mode': 'streaming', 'embodiment': embodiment, 'takeover': True}
    return taker, taker.call_later('session.open', transfer_token=token, **wanted)


def code(agent: Agent, request: int) -> int | None:
    """Return the error code of an answer, None for a result."""
    reply = agent.reply(request)
    assert reply
    return reply['error']['code'] if 'error' in reply else None


def test_idle_embodiment_changes_hands_at_once() -> None:
    world = World()
    holder = world.session()
    taker, request = take(world, mint(holder))
    assert code(taker, request) is None
    (event,) = holder.notes('world.event')
    assert event['event'] == 'embodiment_transferred'
    assert event['detail']['embodiment'] == 'arm'
    assert holder.submit('move')['error']['code'] == 4001
    assert 'result' in taker.submit('move')
    assert 'result' in holder.ping(), 'the holder goes on as an observer'


def test_takeover_waits_for_goal_and_rest() -> None:
    world = World()
    holder = world.session()
    world.hold()
    world.auto_accept = True
    holder.submit('move', 'a')
    holder.submit('move', 'b', preempt='queue')
    taker, request = take(world, mint(holder))
    assert holder.end('b') == ('cancelled', 'transferred')
    assert not taker.reply(request)
    world.finish(GoalOutcome.CANCELED)
    assert not taker.reply(request)
    world.rest()
    assert holder.end('a') == ('preempted', 'transferred')
    assert code(taker, request) is None


def test_no_submission_of_the_holder_slips_in_while_hands_change() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    _taker, _request = take(world, mint(holder))
    reply = holder.submit('move', 'late')
    assert reply.get('error', {}).get('code') == 2001
    assert 'changing hands' in reply['error']['data']['detail']
    world.pay()
    assert len(world.started) == 1


@pytest.mark.parametrize('which', ['unknown', 'used', 'expired', 'foreign', 'replaced'])
def test_unusable_token_changes_nothing(which: str) -> None:
    world = World()
    holder = world.session()
    holder.submit('move', 'a')
    other = world.session('grip')
    token = mint(holder, expires_in_ms=1000)
    match which:
        case 'unknown':
            token = 'tt_nobody'
        case 'used':
            first, request = take(world, token)
            assert code(first, request) is None
            holder = first
            holder.submit('move', 'a')
        case 'expired':
            holder.ping()
            world.pass_ms(1000)
        case 'foreign':
            token = mint(other)
        case 'replaced':
            mint(holder)
    taker, request = take(world, token)
    assert code(taker, request) == 2001
    assert holder.states('a')[-1] == 'executing'
    assert 'result' in holder.submit('move', 'b')
    assert 'result' in taker.call('session.open', mode='streaming'), 'the connection is free'


def test_takeover_needs_one_embodiment_of_the_manifest() -> None:
    world = World()
    holder = world.session()
    token = mint(holder)
    ask: dict[str, Any] = {'mode': 'streaming', 'takeover': True, 'transfer_token': token}
    assert world.connect().refusal('session.open', embodiments=['arm', 'grip'], **ask) == 2001
    assert world.connect().refusal('session.open', embodiment='nobody', **ask) == 2001
    assert world.connect().refusal('session.open', embodiment='base', **ask) == 2001
    assert 'result' in world.connect().call('session.open', embodiment='arm', **ask)


def test_of_two_receivers_the_first_wins() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    token = mint(holder)
    first, request = take(world, token)
    second, refused = take(world, token)
    assert code(second, refused) == 2001
    assert holder.refusal('session.transfer') == 3002
    world.pay()
    assert code(first, request) is None


def test_waiting_receiver_cannot_open_or_resume_anything_else() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    taker, request = take(world, mint(holder))
    assert taker.refusal('session.open', mode='streaming') == 2004
    ask = {'session_token': holder.ready['session_token'], 'last_status_seq': 0}
    assert taker.refusal('session.resume', **ask) == 2004
    world.pay()
    assert code(taker, request) is None


def test_receiver_that_leaves_gets_nothing_and_the_holder_keeps_the_embodiment() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    taker, _request = take(world, mint(holder))
    taker.drop()
    world.pay()
    assert holder.end('a') == ('preempted', 'transferred')
    assert 'result' in holder.submit('move', 'b')
    assert len(world.engine.kernel.sessions) == 1
    mint(holder)


def test_holder_that_closes_meanwhile_still_hands_over() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    taker, request = take(world, mint(holder))
    close = holder.call_later('session.close')
    world.pay()
    assert holder.end('a') == ('preempted', 'transferred')
    assert holder.reply(close)['result'] == {}
    assert code(taker, request) is None
    assert 'result' in taker.submit('move')


def test_takeover_of_a_closing_session_is_refused() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    token = mint(holder)
    holder.call_later('session.close')
    taker, request = take(world, token)
    assert code(taker, request) == 2001
    world.pay()


def test_takeover_of_a_suspended_session_is_told_on_return() -> None:
    world = World()
    holder = world.session()
    token = mint(holder)
    holder.submit('move', 'a')
    holder.drop()
    taker, request = take(world, token)
    assert code(taker, request) is None
    back = world.resume(holder)
    assert back.end('a') == ('preempted', 'transferred')
    assert back.events() == ['embodiment_transferred']
    assert back.ready['safe_state'] is False


def test_takeover_in_e_stop_tells_the_receiver() -> None:
    world = World()
    holder = world.session()
    token = mint(holder)
    world.safety(Meaning.E_STOP, True)
    taker, request = take(world, token)
    assert code(taker, request) is None
    assert taker.events() == ['e_stop_engaged']
    assert taker.submit('move')['error']['code'] == 3005
    world.safety(Meaning.E_STOP, False)
    assert taker.events() == ['e_stop_engaged', 'e_stop_released']
    assert holder.events() == ['e_stop_engaged', 'embodiment_transferred']


def test_takeover_waits_for_an_abort_under_way() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    holder.call('action.cancel', action_id='a')
    taker, request = take(world, mint(holder))
    assert not taker.reply(request)
    world.pay()
    assert holder.end('a') == ('cancelled', 'cancelled_by_agent')
    assert code(taker, request) is None


@pytest.mark.parametrize('state', ['executing', 'cancelling'])
def test_takeover_without_rest_is_refused_and_leaves_safe_state_with_the_holder(
    state: str,
) -> None:
    world = World()
    holder = world.session()
    world.hold()
    world.auto_accept = True
    holder.submit('move', 'a')
    if state == 'cancelling':
        holder.call('action.cancel', action_id='a')
    taker, request = take(world, mint(holder))
    world.pass_ms(1_500)
    assert code(taker, request) == 2001
    assert holder.end('a')[0] == 'failed'
    assert holder.events() == ['safe_state_entered']
    assert taker.refusal('session.open', mode='streaming', embodiment='arm') == 2001
    world.pay()
    assert 'result' in holder.submit('move', 'b')


def test_takeover_of_an_embodiment_that_owes_rest_is_refused_and_the_token_survives() -> None:
    world = World()
    holder = world.session()
    token = mint(holder)
    world.auto_behavior = world.auto_rest = False
    world.pass_ms(2_000)
    world.behaved(ok=False)
    taker, request = take(world, token)
    assert code(taker, request) == 2001
    world.pay()
    assert 'result' in taker.call(
        'session.open', mode='streaming', embodiment='arm', takeover=True, transfer_token=token
    )


def test_e_stop_during_a_takeover_wins_and_the_receiver_is_told() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    taker, request = take(world, mint(holder))
    world.safety(Meaning.E_STOP, True)
    assert holder.end('a') == ('failed', 'e_stop')
    assert code(taker, request) is None
    assert taker.events() == ['e_stop_engaged']
    world.pay()


def test_actions_of_other_embodiments_go_on() -> None:
    world = World()
    holder = world.connect()
    holder.call('session.open', mode='streaming', embodiments=['arm', 'grip'])
    holder.submit('move', 'a', embodiment_id='arm')
    holder.submit('grip', 'g', embodiment_id='grip')
    taker, request = take(world, mint(holder))
    assert code(taker, request) is None
    assert holder.states('g')[-1] == 'executing'
    assert 'result' in holder.submit('grip', 'h', embodiment_id='grip')
    assert holder.submit('move', embodiment_id='arm')['error']['code'] == 4001


def test_goal_that_outlives_the_holder_holds_the_receivers_up() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    token = mint(holder)
    world.pass_ms(1_000)
    world.pass_ms(1_000)  # watchdog: the action fails, its goal goes on
    taker, request = take(world, token)
    assert code(taker, request) is None
    taker.submit('move', 'n')
    assert len(world.started) == 1
    assert taker.states('n') == ['accepted']
    world.pay()
    assert taker.states('n')[-1] == 'executing'


def test_expiry_of_a_token_is_bounded_by_the_world() -> None:
    holder = World().session()
    reply = holder.call('session.transfer', expires_in_ms=3_600_000)
    assert reply['result']['expires_in_ms'] == 600_000


def test_expired_grants_cannot_be_handed_over() -> None:
    world = World(policy(grant_ttl_ns=100 * MS))
    holder = world.session()
    world.pass_ms(100)
    assert holder.refusal('session.transfer') == 4001


def test_watchdog_follows_the_embodiment() -> None:
    world = World()
    holder = world.session()
    taker, _request = take(world, mint(holder))
    taker.submit('move', 'a')
    for _ in range(5):
        world.pass_ms(900)
        taker.ping()
    assert taker.states('a')[-1] == 'executing'
    assert holder.events() == ['embodiment_transferred'], 'who holds nothing trips nothing'
    assert not [e for e in world.effects(fx.BeginBehavior) if 'watchdog' in e.cause]
