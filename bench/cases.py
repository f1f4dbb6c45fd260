"""Owns what is measured: the steps of each case, floors and bridge side by side."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
import time

from bench.figures import distribution
from bench.processes import Process, Worker
from bench.rig import Meter, Rig, World
from bench.status_cases import StatusCases
from bench.step import Named

RATES_HZ = (100, 500, 1000)
BINDINGS = ('inline', 'ws')

GOALS = 60
ECHOES = 120
LONG_GOALS = 15
LONG_POINTS = 100
PAUSE_S = 0.01
FEEDBACKS = 15
REFERENCE_GOALS = 12
REFERENCE_PAUSE_S = 0.06  # it admits 20 actions a second
SUBMISSIONS = 1500
FRAMES = 8000

_TAIL_S = 0.6  # how much longer a listener listens than the publisher speaks
_MS = 1e-6

class Cases:
    """
    The cases of a run.

    :param seconds: how long each stretch of publishing lasts.
    """

    def __init__(self, rig: Rig, seconds: float) -> None:
        self._rig = rig
        self._seconds = seconds

    def steps(self) -> Iterator[Named]:
        """Return the steps of a block in order; a floor encloses what stands on it."""
        yield Named('action floor', self.action_floor)
        yield Named('action echo', self.echo_floor)
        yield Named('action bridge', self.submit)
        yield Named('action echo', self.echo_floor, 1)
        yield Named('action floor', self.action_floor, 1)
        yield Named('action long', self.submit_long)
        yield Named('feedback floor', self.feedback_floor)
        yield Named('feedback bridge', self.feedback)
        for rate in RATES_HZ:
            floor = partial(self.topic_floor, rate)
            yield Named(f'topic {rate} floor', floor)
            for binding in BINDINGS:
                yield Named(f'topic {rate} {binding}', partial(self.topic, rate, binding))
            yield Named(f'topic {rate} floor', floor, 1)
        for variant in (0, 1):
            yield Named('idle alone', self.idle, variant)
            yield Named('idle 500', self.idle_with_robot, variant)
        for variant in (0, 1):
            yield Named('engine submissions', self.engine_submissions, variant)
            yield Named('engine frames', self.engine_frames, variant)
        yield from StatusCases(self._rig).steps()
        if self._rig.reference is not None:
            yield Named('reference action', self.reference_submit)
            for binding in BINDINGS:
                step = partial(self.reference_topic, binding)
                yield Named(f'reference topic {binding}', step)

    # ------------------------------------------------------------ actions

    def action_floor(self) -> dict[str, float]:
        """Measure the action round trip in plain rclpy."""
        rig = self._rig
        rows = rig.floors.call('action', 60.0, count=GOALS, pause_s=PAUSE_S)
        received = dict(rig.peer.call('notes', server='floor')['received_ns'])
        name = 'floor.action'
        return {
            **distribution(f'{name}.at_server_ms', [(received[n] - s) * _MS for n, s, *_ in rows]),
            **distribution(f'{name}.accept_ms', [(a - s) * _MS for _, s, a, _ in rows]),
            **distribution(f'{name}.result_ms', [(e - s) * _MS for _, s, _, e in rows]),
        }

    def echo_floor(self) -> dict[str, float]:
        """Measure the round trip of a text of a submission's size."""
        rig = self._rig
        took = rig.agent.call('echo', url=rig.echo_url, count=ECHOES, pause_s=PAUSE_S)
        return distribution('floor.echo_ms', [t * _MS for t in took])

    def submit(self) -> dict[str, float]:
        """Measure submissions to the bridge, and when their goals reach the server."""
        rig = self._rig
        meter = Meter(rig.bridge.process)
        rows = _submit(rig.agent, rig.bridge, GOALS, PAUSE_S)
        share = meter.share()
        received = dict(rig.peer.call('notes', server='robot')['received_ns'])
        name = 'bridge.action'
        return {
            **distribution(f'{name}.accept_ms', [(a - s) * _MS for _, s, a, _ in rows]),
            **distribution(f'{name}.at_server_ms', [(received[n] - s) * _MS for n, s, *_ in rows]),
            **distribution(f'{name}.result_ms', [(e - s) * _MS for _, s, _, e in rows]),
            f'{name}.cpu': share,
        }

    def submit_long(self) -> dict[str, float]:
        """Measure submissions of long trajectories, each of which is checked in full."""
        rig = self._rig
        rows = _submit(rig.agent, rig.bridge, LONG_GOALS, PAUSE_S, LONG_POINTS)
        rig.peer.call('notes', server='robot')
        return distribution('bridge.long_action.accept_ms', [(a - s) * _MS for _, s, a, _ in rows])

    def feedback_floor(self) -> dict[str, float]:
        """Measure feedback from the server to a plain client."""
        rig = self._rig
        heard = rig.floors.call('feedback', count=FEEDBACKS)
        return _feedback('floor.feedback_ms', heard, rig.peer.call('notes', server='floor'))

    def feedback(self) -> dict[str, float]:
        """Measure feedback from the server to the agent."""
        rig, world = self._rig, self._rig.bridge
        heard = rig.agent.call('feedback', url=world.url, token=world.token, count=FEEDBACKS)
        return _feedback('bridge.feedback_ms', heard, rig.peer.call('notes', server='robot'))

    # ------------------------------------------------------------ topics

    def topic_floor(self, rate_hz: int) -> dict[str, float]:
        """Measure joint states to a plain subscription."""
        floors, run = self._rig.floors, self._rig.run()
        floors.begin('subscribe', seconds=self._seconds + _TAIL_S, run=run)
        return self._publish(f'floor.topic_{rate_hz}', floors, floors, 'floor', rate_hz, run)

    def topic(self, rate_hz: int, binding: str) -> dict[str, float]:
        """Measure joint states to an agent of the bridge."""
        rig, run = self._rig, self._rig.run()
        _observe(rig.agent, rig.bridge, binding, 1000.0, self._seconds + _TAIL_S, run)
        name = f'bridge.topic_{rate_hz}_{binding}'
        return self._publish(name, rig.agent, rig.bridge.process, 'robot', rate_hz, run)

    def _publish(
        self, name: str, listener: Worker, metered: Process, topic: str, rate_hz: int, run: int
    ) -> dict[str, float]:
        """Publish while somebody listens, and compare what was said with what was heard."""
        listener.event('ready')
        meter = Meter(metered)
        said = self._rig.peer.call(
            'publish', topic=topic, rate_hz=rate_hz, seconds=self._seconds, run=run
        )
        share = meter.share()
        heard = listener.result()
        found = {
            **distribution(f'{name}.latency_ms', [t * 1e-3 for t in heard['latency_us']]),
            f'{name}.delivered': heard['count'] / said['count'],
            f'{name}.published_hz': said['rate_hz'],
            f'{name}.cpu': share,
        }
        if 'age_us' in heard:
            found |= distribution(f'{name}.age_ms', [t * 1e-3 for t in heard['age_us']])
        return found

    # ------------------------------------------------------------ idle

    def idle(self) -> dict[str, float]:
        """Measure a bridge with neither robot nor client."""
        meter = Meter(self._rig.idle)
        time.sleep(self._seconds)
        return {'bridge.idle_alone.cpu': meter.share()}

    def idle_with_robot(self) -> dict[str, float]:
        """Measure the bridge with joint states and no client."""
        rig = self._rig
        meter = Meter(rig.bridge.process)
        rig.peer.call('publish', topic='robot', rate_hz=500, seconds=self._seconds, run=rig.run())
        return {'bridge.idle_500.cpu': meter.share()}

    # ------------------------------------------------------------ engine

    def engine_submissions(self) -> dict[str, float]:
        """Measure how many submissions pass the engine."""
        rate = self._rig.engine.call('submissions', 60.0, count=SUBMISSIONS)
        return {'engine.submissions_per_s': rate}

    def engine_frames(self) -> dict[str, float]:
        """Measure how many frames pass the engine."""
        return {'engine.frames_per_s': self._rig.engine.call('frames', 60.0, count=FRAMES)}

    # ------------------------------------------------------------ the reference world

    def _reference(self) -> World:
        assert self._rig.reference is not None
        return self._rig.reference

    def reference_submit(self) -> dict[str, float]:
        """Measure submissions to the reference world."""
        rows = _submit(self._rig.agent, self._reference(), REFERENCE_GOALS, REFERENCE_PAUSE_S)
        return distribution('reference.action.accept_ms', [(a - s) * _MS for _, s, a, _ in rows])

    def reference_topic(self, binding: str) -> dict[str, float]:
        """Measure the frames of the reference world, which has a pace of its own."""
        rig, world = self._rig, self._reference()
        _observe(rig.agent, world, binding, 100.0, self._seconds, 0)
        rig.agent.event('ready')
        meter = Meter(world.process)
        heard = rig.agent.result()
        name = f'reference.topic_{binding}'
        return {
            **distribution(f'{name}.age_ms', [t * 1e-3 for t in heard['age_us']]),
            f'{name}.delivered': heard['share'],
            f'{name}.published_hz': heard['rate_hz'],
            f'{name}.cpu': meter.share(),
        }


def _submit(
    agent: Worker, world: World, count: int, pause_s: float, points: int = 1
) -> list[list[int]]:
    rows: list[list[int]] = agent.call(
        'submit',
        90.0,
        url=world.url,
        token=world.token,
        kind=world.action,
        count=count,
        pause_s=pause_s,
        points=points,
    )
    return rows


def _observe(
    agent: Worker, world: World, binding: str, rate_hz: float, seconds: float, run: int
) -> None:
    arguments = {'url': world.url, 'token': world.token, 'channel': world.channel}
    agent.begin('observe', binding=binding, rate_hz=rate_hz, seconds=seconds, run=run, **arguments)


def _feedback(
    name: str, heard: list[list[int]], notes: dict[str, list[list[int]]]
) -> dict[str, float]:
    sent = {int(step): at_ns for step, at_ns in notes['feedback_ns']}
    arrived: dict[int, int] = {}
    for step, at_ns in heard:
        arrived.setdefault(step, at_ns)  # the last progress is repeated
    return distribution(name, [(arrived[k] - sent[k]) * _MS for k in arrived if k in sent])
