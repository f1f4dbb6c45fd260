"""What the process does to sessions: shutdown, deactivation, activation (AWP-SES-006)."""

from __future__ import annotations

import dataclasses

from engine_agent import Agent
from engine_cell import actions, MS, policy
from engine_world import World

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    Activated,
    BehaviorFinished,
    Deactivated,
    Meaning,
    ShutdownRequested,
)


def closing(world: World) -> Agent:
    """Return an agent whose close waits for its action ``a``."""
    agent = world.session(admin=['reset'])
    world.auto_cancel = False
    agent.submit('move', 'a')
    agent.call_later('session.close')
    return agent


# ---------------------------------------------------------------- the process


def test_shutdown_tells_and_closes_everyone() -> None:
    world = World()
    agent = world.session()
    watcher = world.session(None)
    idle = world.connect()
    agent.submit('move', 'a')
    world.tell(ShutdownRequested('SIGTERM'))
    for each in (agent, watcher):
        assert each.events() == ['world_shutdown']
        assert each.notes('session.state')[-1]['reason'] == 'world_shutdown'
        assert each.closed == (1001, 'world_shutdown')
    assert idle.closed == (1001, 'world_shutdown')
    assert agent.end('a') == ('cancelled', 'session_closed')
    assert len(world.effects(fx.Finish)) == 1
    assert not world.engine.is_accepting


def test_shutdown_is_over_within_four_seconds_whatever_happens() -> None:
    world = World()
    agent = world.session()
    other = world.connect()
    other.call('session.open', mode='streaming', embodiment='grip')
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    request = agent.call_later('session.close')
    world.tell(ShutdownRequested())
    world.pass_ms(3_190)
    assert not world.effects(fx.Finish)
    world.pass_ms(10)
    assert len(world.effects(fx.Finish)) == 1
    assert agent.end('a')[0] == 'failed'
    assert agent.reply(request)['result'] == {}
    assert agent.session_states()[-1] == 'closed'
    assert not world.invariants.open_actions()
    world.pay()


def test_shutdown_by_force_ends_aborts_takeovers_and_closes() -> None:
    slow = {
        name: dataclasses.replace(action, max_abort_ns=20_000 * MS)
        for name, action in actions().items()
    }
    world = World(policy(actions=slow))
    holder = world.session()
    world.hold()
    world.auto_accept = True
    holder.submit('move', 'a')
    taker, request = take(world, holder)
    world.tell(ShutdownRequested())
    world.pass_ms(4_000)
    assert holder.end('a') == ('failed', 'connection_lost')
    assert taker.reply(request)['error']['code'] == 2001
    assert holder.session_states()[-1] == 'closed'
    assert len(world.effects(fx.Finish)) == 1
    world.pay()


def test_takeover_that_shutdown_catches_is_not_granted() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    taker, request = take(world, holder)
    world.tell(ShutdownRequested())
    world.pay()
    assert taker.reply(request)['error']['code'] == 2001
    assert len(world.effects(fx.Finish)) == 1


def take(world: World, holder: Agent) -> tuple[Agent, int]:
    """Begin a takeover of the arm; return the receiver and its request."""
    token = holder.call('session.transfer')['result']['transfer_token']
    taker = world.connect()
    wanted = {'mode': 'streaming', 'embodiment': 'arm', 'takeover': True}
    return taker, taker.call_later('session.open', transfer_token=token, **wanted)


def test_close_waits_for_every_embodiment() -> None:
    world = World()
    agent = world.connect()
    agent.call('session.open', mode='streaming', embodiments=['arm', 'grip'])
    world.auto_behavior = False
    request = agent.call_later('session.close')
    first, second = world.owed
    world.tell(second)
    assert not agent.reply(request)
    world.tell(first)
    assert agent.reply(request)['result'] == {}


def test_shutdown_without_sessions_is_immediate_and_asked_once() -> None:
    world = World()
    world.tell(ShutdownRequested(), ShutdownRequested())
    assert len(world.effects(fx.Finish)) == 1
    assert world.engine.next_deadline_ns() is None


def test_nothing_begins_while_shutting_down() -> None:
    world = World()
    closing(world)
    idle = world.connect()
    world.tell(ShutdownRequested())
    assert idle.refusal('session.open', mode='streaming') == 2001
    world.pay()


def test_deactivation_stops_suspends_and_disconnects() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.submit('move', 'b', preempt='queue')
    world.tell(Deactivated())
    assert agent.end('a') == ('failed', 'x-ros2.safety_input')
    assert agent.end('b') == ('cancelled', 'safe_state')
    assert agent.closed == (1001, 'the world was deactivated')
    assert not world.engine.is_accepting
    world.tell(Activated())
    back = world.resume(agent)
    assert back.ready['safe_state'] is True
    assert back.session_states() == ['suspended', 'active']
    back.submit('move', 'c')
    assert back.events() == ['safe_state_exited']


def test_open_is_refused_on_a_connection_that_outlived_deactivation() -> None:
    world = World()
    idle = world.connect()
    world.engine.kernel.active = False
    assert idle.refusal('session.open', mode='streaming') == 2001


def test_takeover_that_deactivation_catches_is_not_granted() -> None:
    world = World()
    holder = world.session()
    world.auto_cancel = False
    holder.submit('move', 'a')
    taker, _request = take(world, holder)
    world.tell(Deactivated())
    assert len(world.engine.kernel.sessions) == 1
    assert taker.closed is not None


def test_overtaken_behaviour_proves_nothing() -> None:
    world = World()
    agent = world.session()
    world.auto_behavior = False
    world.pass_ms(2000)  # watchdog
    world.safety(Meaning.FAULT, True)
    first, second = (e.ticket for e in world.effects(fx.BeginBehavior))
    world.safety(Meaning.FAULT, False)
    world.tell(BehaviorFinished(second, ok=True))
    agent.submit('move', 'a')
    world.tell(BehaviorFinished(first, ok=False, detail='too slow'))
    assert agent.states('a')[-1] == 'executing'
    assert 'result' in agent.submit('move', 'b', preempt='queue')
