"""Owns the steps about ``session/status``: what a question takes, and what others feel of many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import time

from bench.figures import distribution
from bench.rig import Meter, Rig
from bench.step import Named

PINGS = 1000
PING_PAUSE_S = 0.001
QUESTIONS = 1000
QUESTION_PAUSE_S = 0.001
FEEDBACKS = 20  # of an action that executes for two and a half seconds meanwhile
HELD_FEEDBACKS = 4  # of one of the actions that follow each other
HELD_MOST_S = 60.0
STATES_HZ = 100  # of joint states meanwhile
STATES_S = 2.2

ASKERS = 10
QUESTIONS_HZ = 5000.0
STORM_MOST_S = 8.0
LEAST_PINGS = 100  # that must have fallen into it
FLOOR_S = 1.5

CONNECTIONS = 200  # the holder of the robot and who asks among them
OBSERVERS = 50
OBSERVED_HZ = 10.0
LEAST_OBSERVED_HZ = 8.0

_US = 1e-3
_MS = 1e-6


class StatusCases:
    """The steps; in each the robot moves, and a session holds it."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def steps(self) -> Iterator[Named]:
        """Return the steps of a block; what is compared stands side by side, each twice."""
        yield Named('status quiet', self.quiet)
        yield Named('status crowd', self.in_crowd)
        yield Named('status crowd', self.in_crowd, 1)
        yield Named('status quiet', self.quiet, 1)
        yield Named('status alone', self.ping_alone)
        yield Named('status storm', self.ping_in_storm)
        yield Named('status floor', self.floor)
        yield Named('status storm', self.ping_in_storm, 1)
        yield Named('status floor', self.floor, 1)
        yield Named('status alone', self.ping_alone, 1)

    # ------------------------------------------------------------ one asks

    def quiet(self) -> dict[str, float]:
        """Measure questions, one after the other, while nobody else is there."""
        return self._ask('bridge.question_quiet')

    def in_crowd(self) -> dict[str, float]:
        """Measure the same among 200 connections, 50 of which observe."""
        rig, world = self._rig, self._rig.bridge
        rig.crowd.begin(
            'stand',
            url=world.url,
            token=world.token,
            connections=CONNECTIONS - 2,
            observers=OBSERVERS,
            channel=world.channel,
            rate_hz=OBSERVED_HZ,
        )
        rig.crowd.event('ready')
        found = self._ask('bridge.question_crowd')
        rig.crowd.end()
        seen = rig.crowd.result()
        if seen['least_hz'] < LEAST_OBSERVED_HZ:
            raise ValueError(f'an observer got {seen["least_hz"]:.1f} of {OBSERVED_HZ:g} Hz')
        return found | {'bridge.crowd.frames_hz': seen['frames_hz']}

    def _ask(self, name: str) -> dict[str, float]:
        """Let an agent hold the robot and move it, and ask about its session."""
        rig, world, run = self._rig, self._rig.bridge, self._rig.run()
        where = {'url': world.url, 'token': world.token}
        rig.agent.begin('hold', **where, feedback_count=HELD_FEEDBACKS, seconds=HELD_MOST_S)
        session_id = rig.agent.event('ready')
        rig.peer.begin('publish', topic='robot', rate_hz=STATES_HZ, seconds=STATES_S, run=run)
        meter = Meter(world.process)
        rig.askers.begin(
            'questions', **where, session_id=session_id, count=QUESTIONS, pause_s=QUESTION_PAUSE_S
        )
        try:
            took = rig.askers.result()
            share = meter.share()
        finally:  # why the session was lost, if it was, is known to the agent
            rig.agent.end()
            stopped = rig.agent.result()
            rig.peer.result()
        found = {f'{name}.cpu': share, 'bridge.status.stopped': float(stopped)}
        return distribution(f'{name}_ms', [t * _US for t in took]) | found

    # ------------------------------------------------------------ ten ask as much as they can

    def ping_alone(self) -> dict[str, float]:
        """Measure pings of an agent whose robot moves."""
        meter = Meter(self._rig.bridge.process)
        with self._pinging():
            rows = self._rows()
            share = meter.share()
        found = distribution('bridge.ping_alone_ms', [took * _MS for _, took in rows])
        return found | {'bridge.ping_alone.cpu': share, 'bridge.status.stopped': self._stopped}

    def ping_in_storm(self) -> dict[str, float]:
        """Measure the same while ten connections ask about the session, and their answers."""
        rig = self._rig
        with self._pinging() as session_id:
            self._begin_storm(rig.bridge.url, rig.bridge.token, session_id)
            meter = Meter(rig.bridge.process)
            rows = self._rows()
            share = meter.share()
        rig.askers.end()
        storm = rig.askers.result()
        inside = [t for sent, t in rows if storm['began_ns'] <= sent < storm['ended_ns']]
        if len(inside) < LEAST_PINGS:
            raise ValueError(f'only {len(inside)} of {len(rows)} pings fell into the storm')
        return {
            'bridge.ping_storm.cpu': share,
            'bridge.status.stopped': self._stopped,
            'bridge.ping_storm.pings': float(len(inside)),
            'bridge.status.asked_hz': storm['asked_hz'],
            'bridge.status.answered_hz': storm['answered_hz'],
            **distribution('bridge.ping_storm_ms', [took * _MS for took in inside]),
            **distribution('bridge.status_ms', [took * _US for took in storm['took_us']]),
        }

    def floor(self) -> dict[str, float]:
        """Measure the same questions to a bare server that answers each with the same text."""
        rig = self._rig
        self._begin_storm(f'{rig.echo_url}/answers', '', 'sess_' + 32 * '0', floor=True)
        meter = Meter(rig.echo)
        time.sleep(FLOOR_S)
        share = meter.share()
        rig.askers.end()
        storm = rig.askers.result()
        return {
            'floor.status.cpu': share,
            'floor.status.answered_hz': storm['answered_hz'],
            **distribution('floor.status_ms', [took * _US for took in storm['took_us']]),
        }

    def _begin_storm(self, url: str, token: str, session_id: str, floor: bool = False) -> None:
        self._rig.askers.begin(
            'storm',
            url=url,
            token=token,
            session_id=session_id,
            connections=ASKERS,
            rate_hz=QUESTIONS_HZ,
            seconds=STORM_MOST_S,
            floor=floor,
        )
        self._rig.askers.event('ready')

    # ------------------------------------------------------------ the robot

    @contextmanager
    def _pinging(self) -> Iterator[str]:
        """Let an agent hold the robot, move it, and ping; give its session's id."""
        rig, world = self._rig, self._rig.bridge
        rig.agent.begin(
            'pings',
            url=world.url,
            token=world.token,
            count=PINGS,
            pause_s=PING_PAUSE_S,
            feedback_count=FEEDBACKS,
        )
        self._told: list[list[int]] | None = None
        yield str(rig.agent.event('ready'))
        self._rows()

    def _rows(self) -> list[list[int]]:
        """Return what the pings of the agent took, once its robot has come to its end."""
        if self._told is None:
            found = self._rig.agent.result(60.0)
            self._told, self._stopped = found['rows'], float(found['stopped'])
        return self._told
