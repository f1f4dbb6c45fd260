"""Stream connections: moving channels, losing and replacing them (AWP-TRN-010..013)."""

from __future__ import annotations

from engine_agent import Agent
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    FramesDropped,
    StreamLost,
    StreamOpened,
    StreamReceived,
)
from awp_ros_bridge.wire.frames import KEYFRAME, RESYNC

FRESH = KEYFRAME | RESYNC


def listener(world: World, *names: str, rate_hz: float | None = None) -> Agent:
    """Return an agent that holds the arm and listens."""
    rate = {} if rate_hz is None else {'rate_hz': rate_hz}
    return world.session(subscribe=[{'channel': name, **rate} for name in names])


def degraded(agent: Agent) -> int:
    """Return how many outages the agent was told of."""
    return agent.events().count('channel_degraded')


# ---------------------------------------------------------------- stream connections


def test_stream_takes_every_channel_over_with_resync_keyframes() -> None:
    world = World()
    agent = listener(world, 'proprio', 'log')
    world.capture('proprio')
    agent.open_stream()
    assert world.effects(fx.DropFrames) == [
        fx.DropFrames(agent.conn, 1),
        fx.DropFrames(agent.conn, 2),
    ]
    world.pass_ms(20)
    world.capture('log')
    assert [(f.inline, f.flags) for f in agent.frames] == [
        (True, KEYFRAME),
        (False, FRESH),
        (False, FRESH),
    ]
    agent.call('obs.subscribe', channels=[{'channel': 'arm_state'}])
    last = agent.frames[-1]
    assert (last.inline, last.flags) == (False, FRESH), 'channels subscribed later too'


def test_lost_stream_delivers_nothing_until_it_returns() -> None:
    world = World()
    agent = listener(world, 'log', 'arm_state')
    agent.open_stream()
    world.capture('log')
    agent.lose_stream()
    count = len(agent.frames)
    for _ in range(10):
        world.capture('log')
        world.pass_ms(100)
    assert len(agent.frames) == count
    assert degraded(agent) == 2
    agent.open_stream()
    assert {f.flags for f in agent.frames[count:]} == {FRESH}
    assert {f.channel_id for f in agent.frames[count:]} == {1, 2}


def test_second_stream_replaces_the_first() -> None:
    world = World()
    agent = listener(world, 'log')
    agent.open_stream()
    first = agent.stream
    agent.open_stream()
    assert world.effects(fx.CloseConnection) == [fx.CloseConnection(first or 0, 1000, 'replaced')]
    world.tell(StreamLost(first or 0))
    world.capture('log')
    assert agent.frames[-1].conn == agent.stream


@pytest.mark.parametrize('data', ['text', b'no frame', b''])
def test_malformed_message_closes_the_stream(data: str | bytes) -> None:
    world = World()
    agent = listener(world, 'log')
    agent.open_stream()
    assert agent.stream is not None
    world.tell(StreamReceived(agent.stream, data))
    assert agent.stream_closed == (1002, 'AWP_MALFORMED')
    world.capture('log')
    assert agent.frames == [], 'nothing inline, nothing on the closing connection'
    assert 'result' in agent.ping()


def test_valid_frame_from_an_agent_goes_nowhere() -> None:
    world = World()
    agent = listener(world, 'log')
    agent.open_stream()
    assert agent.stream is not None
    header = b'AWPF' + bytes([1, 1]) + (1).to_bytes(2, 'little') + bytes(16) + bytes(4)
    count = len(world.log)
    world.tell(StreamReceived(agent.stream, header), StreamReceived(999, header))
    assert len(world.log) == count


def test_stream_of_an_unknown_or_suspended_session_is_closed() -> None:
    world = World()
    agent = listener(world, 'log')
    token = agent.ready['session_token']
    assert world.engine.stream_allowed(token)
    assert not world.engine.stream_allowed('st_other')
    agent.drop()
    assert not world.engine.stream_allowed(token)
    world.tell(StreamOpened(50, token), StreamOpened(51, 'st_other'))
    closed = [(e.conn, e.code) for e in world.effects(fx.CloseConnection)]
    assert closed == [(50, 1008), (51, 1008)]


def test_suspension_closes_the_stream_and_return_is_inline() -> None:
    world = World()
    agent = listener(world, 'log', 'arm_state')
    agent.open_stream()
    stream = agent.stream
    agent.drop()
    assert world.effects(fx.CloseConnection)[-1] == fx.CloseConnection(
        stream or 0, 1001, 'session suspended'
    )
    world.pass_ms(1_000)
    back = world.resume(agent)
    world.capture('log')
    assert {(f.inline, f.flags) for f in back.frames} == {(True, FRESH)}
    assert degraded(back) == 2, 'the outage was kept for the return'
    token = agent.ready['session_token']
    assert world.engine.stream_allowed(token)


def test_close_takes_the_stream_along() -> None:
    world = World()
    agent = listener(world, 'log')
    agent.open_stream()
    agent.call('session.close')
    assert agent.stream_closed == (1000, 'session closed')
    assert not world.engine.kernel.streams


def test_frames_dropped_on_a_stream_mark_its_session() -> None:
    world = World()
    agent = listener(world, 'log')
    agent.open_stream()
    world.capture('log')
    world.pass_ms(100)
    assert agent.stream is not None
    world.tell(FramesDropped(agent.stream, 1, 2))
    world.capture('log')
    assert agent.frames[-1].flags == FRESH
