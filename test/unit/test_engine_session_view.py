"""What a person at the robot sees of sessions, and the close that somebody there asks for."""

from __future__ import annotations

from engine_world import World

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import SessionCloseRequested
from awp_ros_bridge.engine.session_view import (
    channel_views,
    ChannelView,
    one_line,
    session_views,
    SessionView,
)


def views(world: World) -> tuple[SessionView, ...]:
    return session_views(world.engine.kernel, world.now_ns)


def test_a_session_is_shown_with_what_it_holds_does_and_reads() -> None:
    world = World()
    world.auto_accept = True
    agent = world.session(subscribe=[{'channel': 'proprio', 'rate_hz': 20}])
    watcher = world.session(None, subscribe=[{'channel': 'proprio', 'rate_hz': 50}])
    agent.submit('move', 'go')
    world.pass_ms(150)
    holding, watching = views(world)
    assert holding == SessionView(
        session_id=agent.ready['session_id'],
        state='active',
        agent='a',
        peer='test',
        credential='everything',
        embodiments=('arm',),
        actions=('go move executing',),
        channels=('proprio',),
        age_ms=200,
        silent_ms=200,
        closing='',
        watchdog_tripped=False,
    )
    assert (watching.session_id, watching.embodiments) == (watcher.ready['session_id'], ())
    channels = channel_views(world.engine.kernel)
    assert channels['proprio'] == ChannelView(2, 50.0)
    assert channels['arm_state'] == ChannelView(0, 0.0)


def test_a_session_without_a_connection_is_shown_as_such_and_keeps_its_agent() -> None:
    world = World()
    agent = world.session()
    agent.drop()
    world.pass_ms(2500)
    (view,) = views(world)
    assert (view.state, view.peer, view.agent) == ('suspended', '', 'a')
    assert view.watchdog_tripped
    world.resume(agent)
    (view,) = views(world)
    assert (view.peer, view.watchdog_tripped) == ('test', False)


def test_nothing_that_opens_a_session_is_shown() -> None:
    world = World()
    agent = world.session()
    token = agent.call('session.transfer', embodiment_id='arm')
    shown = repr(views(world))
    assert agent.ready['session_token'] not in shown
    for value in (token.get('result') or {}).values():
        assert str(value) not in shown


def test_what_an_agent_calls_itself_stays_one_bounded_line() -> None:
    assert one_line('a\nb') == r"'a\nb'"
    assert len(one_line('x' * 1000)) == 128
    assert one_line('x' * 1000).endswith('...')


# ---------------------------------------------------------------- the close that is asked for


def close(world: World, session_id: str) -> None:
    world.tell(SessionCloseRequested(session_id, 'an operator asked, for arm'))


def test_a_close_that_is_asked_for_is_as_the_agent_s_own() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'go')
    world.hold()
    close(world, agent.ready['session_id'])
    (view,) = views(world)
    assert view.closing == 'session_closed'
    assert agent.states('go')[-1] == 'cancelling'
    close(world, agent.ready['session_id'])  # once more changes nothing
    world.pay()
    world.rest()
    world.pay()
    assert agent.end('go') == ('cancelled', 'session_closed')
    assert agent.notes('session.state')[-1]['reason'] == 'session_closed'
    assert agent.closed is None, 'its connection stays'
    assert world.engine.kernel.embodiments['arm'].session is None
    report = world.effects(fx.ReportEmbodiment)[-1]
    assert (report.embodiment, report.session_id, report.in_safe_state) == ('arm', None, True)
    notes = [e.body for e in world.effects(fx.RecordAudit) if e.kind == 'note']
    assert {'close_requested': 'an operator asked, for arm'} in notes
    world.check()


def test_a_suspended_session_can_be_closed_and_not_resumed_any_more() -> None:
    world = World()
    agent = world.session()
    agent.drop()
    close(world, agent.ready['session_id'])
    assert views(world) == ()
    back = world.connect()
    token = agent.ready['session_token']
    assert back.refusal('session.resume', session_token=token, last_status_seq=0) == 2003


def test_a_close_of_nobody_s_session_changes_nothing() -> None:
    world = World()
    agent = world.session()
    before = len(world.log)
    close(world, 'sess_none')
    assert len(world.log) == before
    world.pass_ms(10)
    assert views(world)[0].session_id == agent.ready['session_id']
