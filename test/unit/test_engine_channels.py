"""Subscriptions and frames: grants, rates, numbering, streams, outages (AWP-OBS, AWP-TRN)."""

from __future__ import annotations

from typing import Any

from engine_agent import Agent
from engine_cell import policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    FramesDropped,
    ObservationCaptured,
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


# ---------------------------------------------------------------- grants


@pytest.mark.parametrize(
    ('channel', 'code'), [('nothing', 2007), ('grip_state', 4001), ('proprio', None)]
)
def test_subscription_is_refused_for_what_may_not_be_read(channel: str, code: int | None) -> None:
    agent = listener(World(), 'log')
    reply = agent.call('obs.subscribe', channels=[{'channel': channel}])
    assert reply.get('error', {}).get('code') == code


def test_subscription_is_all_or_nothing() -> None:
    agent = listener(World())
    wanted = [{'channel': 'log'}, {'channel': 'grip_state'}]
    assert agent.refusal('obs.subscribe', channels=wanted) == 4001
    reply = agent.call('obs.subscribe', channels=[{'channel': 'proprio'}])
    assert [g['channel'] for g in reply['result']['granted']] == ['proprio']


def test_modality_that_the_agent_does_not_consume_is_not_granted() -> None:
    world = World()
    agent = world.connect(consumes_modalities=['proprio/json'])
    wanted = [{'channel': 'proprio'}, {'channel': 'log'}]
    reply = agent.call('session.open', mode='streaming', embodiment='arm', subscribe=wanted)
    assert [g['channel'] for g in reply['result']['granted']['channels']] == ['proprio']
    assert agent.refusal('obs.subscribe', channels=[{'channel': 'log'}]) == 4001


@pytest.mark.parametrize(
    ('asked', 'agents', 'granted'),
    [(None, None, 100), (10, None, 10), (500, None, 100), (50, 5, 5)],
)
def test_rate_is_the_lowest_of_channel_wish_and_agent(
    asked: float | None, agents: float | None, granted: float
) -> None:
    world = World()
    agent = world.connect(**({} if agents is None else {'max_obs_rate_hz': agents}))
    agent.call('session.open', mode='streaming', embodiment='arm')
    item: dict[str, Any] = {'channel': 'proprio'}
    if asked is not None:
        item['rate_hz'] = asked
    (grant,) = agent.call('obs.subscribe', channels=[item])['result']['granted']
    assert grant['rate_hz'] == granted


def test_unsubscribe_forgets_what_waits_and_stops_the_frames() -> None:
    world = World()
    agent = listener(world, 'proprio', 'log')
    reply = agent.call('obs.unsubscribe', channels=['proprio', 'arm_state'])
    assert [g['channel'] for g in reply['result']['granted']] == ['log']
    assert world.effects(fx.DropFrames) == [fx.DropFrames(agent.conn, 1)]
    world.capture('proprio')
    assert agent.frames == []


def test_channel_keeps_its_number_and_counts_on() -> None:
    world = World()
    agent = listener(world, 'proprio')
    for _ in range(3):
        world.pass_ms(20)
        world.capture('proprio')
    agent.call('obs.unsubscribe', channels=['proprio'])
    agent.call('obs.subscribe', channels=[{'channel': 'log'}, {'channel': 'proprio'}])
    ids = {f.channel_id: f.seq for f in agent.frames}
    assert ids == {1: 4}
    assert agent.frames[-1].flags == FRESH


# ---------------------------------------------------------------- frames


def test_subscription_is_answered_before_its_first_frame_which_is_the_newest_sample() -> None:
    world = World()
    first = listener(world, 'proprio')
    world.capture('proprio', b'{"n":1}')
    world.pass_ms(500)
    world.log.clear()
    second = world.session(None, subscribe=[{'channel': 'proprio'}])
    kinds = [type(e) for e in world.log if isinstance(e, (fx.SendMessage, fx.SendFrame))]
    assert kinds.index(fx.SendMessage) < kinds.index(fx.SendFrame)
    assert second.frames[0].payload == b'{"n":1}'
    assert second.frames[0].flags == KEYFRAME
    assert first.frames[0].seq == 1


def test_first_frame_makes_the_session_active() -> None:
    world = World()
    agent = listener(world, 'proprio')
    assert agent.session_states() == ['ready']
    world.capture('proprio')
    assert agent.session_states() == ['ready', 'active']


def test_frames_keep_to_the_granted_rate() -> None:
    world = World()
    agent = listener(world, 'proprio', rate_hz=10)
    for _ in range(200):
        world.capture('proprio')
        world.pass_ms(10)
        agent.ping()
    assert 19 <= len(agent.frames) <= 21


def test_burst_of_samples_is_thinned_out() -> None:
    world = World()
    agent = listener(world, 'proprio')
    for _ in range(100):
        world.capture('proprio')
    assert len(agent.frames) <= 12  # a tenth of a second of them


def test_rate_can_be_changed_without_a_new_first_frame() -> None:
    world = World()
    agent = listener(world, 'proprio')
    world.capture('proprio')
    for _ in range(5):
        agent.call('obs.subscribe', channels=[{'channel': 'proprio', 'rate_hz': 5}])
    assert len(agent.frames) == 1
    assert world.effects(fx.SetChannelDemand)[-1] == fx.SetChannelDemand('proprio', 5, False)


def test_capture_time_never_runs_backward_nor_ahead() -> None:
    world = World()
    agent = listener(world, 'proprio')
    world.capture('proprio', age_ms=5)
    world.pass_ms(20)
    world.capture('proprio', age_ms=500)
    world.pass_ms(20)
    world.capture('proprio', age_ms=-1000)
    times = [f.ts_mono_ns for f in agent.frames]
    assert times[0] == times[1] < times[2]
    assert times[2] <= world.now_ns - agent.frames[0].clock_zero_ns


def test_simulated_time_travels_along() -> None:
    world = World()
    agent = listener(world, 'proprio')
    world.tell(ObservationCaptured('proprio', b'{}', world.now_ns, sim_ns=77))
    assert agent.frames[-1].sim_ns == 77


def test_sample_of_an_unknown_channel_is_ignored() -> None:
    world = World()
    world.tell(ObservationCaptured('nothing', b'', 0))
    assert world.log == []


def test_frame_larger_than_the_endpoint_carries_is_not_sent_and_shows_as_an_outage() -> None:
    world = World(policy(max_frame_bytes=1024))
    agent = listener(world, 'log')
    world.capture('log', b'x' * 1000)
    assert agent.frames == []
    world.pass_ms(250)
    assert degraded(agent) == 1
    world.capture('log', b'"x"' + b' ' * (1024 - 53))
    assert agent.frames[0].flags == FRESH


# ---------------------------------------------------------------- demand


def test_demand_follows_the_fastest_listener() -> None:
    world = World()
    fast = listener(world, 'proprio', rate_hz=50)
    slow = world.session(None, subscribe=[{'channel': 'proprio', 'rate_hz': 5}])
    asked = [(e.rate_hz, e.fresh) for e in world.effects(fx.SetChannelDemand)]
    assert asked == [(50, True), (50, True)]
    fast.call('session.close')
    slow.drop()
    asked = [(e.rate_hz, e.fresh) for e in world.effects(fx.SetChannelDemand)]
    assert asked[2:] == [(5, False), (0, False)]
    world.resume(slow)
    assert world.effects(fx.SetChannelDemand)[-1].rate_hz == 5


def test_rate_of_nearly_nothing_is_harmless() -> None:
    world = World()
    agent = listener(world, 'log', rate_hz=1e-300)
    assert agent.ready['granted']['channels'][0]['rate_hz'] == 1e-300
    world.capture('log')
    world.pass_ms(1_000)
    assert world.effects(fx.SetChannelDemand)[0].rate_hz == 0.001
    assert degraded(agent) == 0


def test_embodiment_state_is_published_while_somebody_listens() -> None:
    world = World()
    agent = listener(world, 'arm_state')
    assert len(agent.frames) == 1
    world.pass_ms(1_000)
    assert 9 <= len(agent.frames) <= 11
    agent.call('obs.unsubscribe', channels=['arm_state'])
    assert not world.effects(fx.SetChannelDemand)
    count = len(agent.frames)
    world.pass_ms(1_000)
    assert len(agent.frames) == count


# ---------------------------------------------------------------- outages


def test_outage_is_told_once_and_ends_with_a_resync_keyframe() -> None:
    world = World()
    agent = listener(world, 'log')
    world.capture('log')
    world.pass_ms(190)
    assert degraded(agent) == 0
    world.pass_ms(2_000)
    assert degraded(agent) == 1
    (event,) = [e for e in agent.notes('world.event') if e['event'] == 'channel_degraded']
    assert event['detail']['channel'] == 'log'
    world.capture('log')
    assert agent.frames[-1].flags == FRESH
    world.pass_ms(250)
    assert degraded(agent) == 2, 'the next outage is another one'


def test_latest_wins_channel_has_no_outages() -> None:
    world = World()
    agent = listener(world, 'proprio')
    world.capture('proprio')
    world.pass_ms(1_500)
    assert degraded(agent) == 0


def test_slow_grant_of_a_fast_channel_is_no_outage() -> None:
    world = World()
    agent = listener(world, 'arm_state', rate_hz=1)
    for _ in range(5):
        world.pass_ms(1_000)
        agent.ping()
    assert degraded(agent) == 0
    assert 5 <= len(agent.frames) <= 7


def test_lower_rate_is_no_outage() -> None:
    world = World()
    agent = listener(world, 'arm_state')
    world.pass_ms(300)
    agent.call('obs.subscribe', channels=[{'channel': 'arm_state', 'rate_hz': 2}])
    world.pass_ms(1_600)
    assert degraded(agent) == 0


def test_stalled_receiver_is_an_outage_and_dropped_frames_are_marked() -> None:
    world = World()
    agent = listener(world, 'log')
    agent.is_stalled = True
    for _ in range(5):
        world.capture('log')
        world.pass_ms(100)
    assert degraded(agent) == 1
    world.tell(FramesDropped(agent.conn, 9, 1), FramesDropped(999, 1, 1))
    agent.catch_up()
    world.capture('log')
    assert agent.frames[-1].flags == FRESH
    assert agent.frames[-1].seq == 6


def test_frame_of_a_forgotten_session_is_not_counted() -> None:
    world = World()
    agent = listener(world, 'log')
    world.capture('log')
    agent.call('session.close')
    world.engine.frame_sent(agent.frames[0], world.now_ns)
    assert world.engine.next_deadline_ns() is None
