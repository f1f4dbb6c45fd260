"""Owns what is measured: rounds of one stop each, against the running cell."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
import itertools
import random
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import as_soon_as_possible, AWAY_M, HOME_M, may_move, open_when_free

from evidence.rig import cancelled, Rig

Samples = dict[str, list[float]]

MS = 1e-6
ARM = 'arm_01'
NEAR_M = (0.3, 0.0, 0.4)
SLOW_MPS = 0.05  # half of the way takes longer than the watchdog
MOVING_RADPS = 0.1  # slower at the stop, and the way to rest says nothing
EARLIEST_S, LATEST_S = 0.05, 0.35  # of a stop after the beginning of the move
STOP_S = 6.0
WARM_UP = 3  # rounds that are not counted: clients find their servers, code is read


class Rounds:
    """
    Drives the arm, stops it, and keeps how long everything took.

    :ivar samples: milliseconds by measure.
    """

    def __init__(self, rig: Rig, seed: int = 1) -> None:
        self.samples: Samples = defaultdict(list)
        self._rig = rig
        self._names = (f'go-{number}' for number in itertools.count())
        self._target, self._behind = AWAY_M, HOME_M
        self._left = 1.0  # of the way between both that lies before the arm
        self._random = random.Random(seed)

    # ------------------------------------------------------------ agents

    @asynccontextmanager
    async def driver(self) -> AsyncIterator[Agent]:
        """Hold the arm, and let it go at the end."""
        async with await Agent.connect(self._rig.url, self._rig.token) as agent:
            await open_when_free(agent, ARM, subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            try:
                await may_move(agent, 30.0)
                yield agent
            finally:
                await agent.close()

    async def go(self, agent: Agent, **more: Any) -> str:
        """Begin a move and return its name once it executes."""
        for _ in range(20):
            agent.notifications.clear()
            agent.frames.clear()
            name = next(self._names)
            submit = self._submission(agent, name, to_pose(*self._target, **more))
            await as_soon_as_possible(submit)
            said = await agent.status(name, 'executing', 'rejected', 'failed', 'completed')
            if said['state'] == 'executing':
                return name
        raise AssertionError(f'no move begins: {said}')

    def _stopped(self, said: dict[str, Any]) -> None:
        """Turn round when less than half of the way is left: no move may end by itself."""
        self._left *= 1.0 - float(said['aborted_at_progress'])
        if self._left < 0.5:
            self._target, self._behind = self._behind, self._target
            self._left = 1.0 - self._left

    @staticmethod
    def _submission(agent: Agent, name: str, params: Any) -> Callable[[], Any]:
        return lambda: agent.submit(name, 'move_to_pose', params)

    async def _underway(self) -> None:
        """Let the arm move for a while that differs from round to round."""
        await asyncio.sleep(self._random.uniform(EARLIEST_S, LATEST_S))

    # ------------------------------------------------------------ sensors

    async def _say(self, name: str, engaged: bool) -> int:
        hardware = self._rig.hardware
        return int(await asyncio.to_thread(hardware.call, 'say', name=name, engaged=engaged))

    async def _cancelled(self, since_ns: int, kind: str = 'robot') -> int:
        return await asyncio.to_thread(cancelled, self._rig, kind, since_ns, STOP_S)

    async def _rest(self, since_ns: int) -> tuple[float, float]:
        """Wait for rest: speed at a time in rad/s, and the ms from then to rest."""
        ends_s = time.monotonic() + STOP_S
        while True:
            robot = self._rig.robot
            speed, took = await asyncio.to_thread(robot.call, 'motion', since_ns=since_ns)
            if took is not None:
                return speed, took * MS
            assert time.monotonic() < ends_s, f'the arm did not rest within {STOP_S:g} s'
            await asyncio.sleep(0.02)

    async def _keep_rest(self, since_ns: int, name: str = 'stop_to_rest') -> None:
        speed, took_ms = await self._rest(since_ns)
        if speed > MOVING_RADPS:
            self.samples[name].append(took_ms)

    # ------------------------------------------------------------ rounds

    async def e_stop(self, agent: Agent) -> None:
        """Engage the e-stop of a moving arm."""
        name = await self.go(agent)
        await self._underway()
        at_ns = await self._say('e_stop', True)
        cancel_ns = await self._cancelled(at_ns)
        self.samples['e_stop_to_cancel'].append((cancel_ns - at_ns) * MS)
        told = await agent.event('e_stop_engaged')
        self.samples['e_stop_to_agent'].append((told.at_ns - at_ns) * MS)
        said = await agent.status(name)
        assert (said['state'], said['reason']) == ('failed', 'e_stop'), said
        self._stopped(said)
        await self._keep_rest(cancel_ns)
        await self._say('e_stop', False)
        await agent.event('e_stop_released')

    async def floor(self) -> None:
        """Let the plain node follow the same edge on its own topic."""
        rig = self._rig
        await asyncio.to_thread(rig.floor.call, 'hold')
        await asyncio.sleep(self._random.uniform(0.01, 0.03))
        at_ns = await self._say('floor', True)
        cancel_ns = await self._cancelled(at_ns, 'floor')
        self.samples['floor_to_cancel'].append((cancel_ns - at_ns) * MS)
        await self._say('floor', False)

    async def watchdog(self, agent: Agent) -> None:
        """Say nothing any more."""
        name = await self.go(agent, max_velocity_mps=SLOW_MPS)
        await agent.hush()
        at_ns = time.monotonic_ns()
        await agent.call('ping', origin_ns=at_ns)
        cancel_ns = await self._cancelled(at_ns)
        agent.beat(0.2)
        self.samples['watchdog_to_cancel'].append((cancel_ns - at_ns) * MS)
        said = await agent.status(name)
        assert (said['state'], said['reason']) == ('failed', 'connection_lost'), said
        self._stopped(said)

    async def stalled(self, agent: Agent) -> None:
        """Block the loop of the bridge."""
        name = await self.go(agent)
        await self._underway()
        at_ns = time.monotonic_ns()
        self._rig.stall()
        cancel_ns = await self._cancelled(at_ns)
        beat_ns = self._rig.last_beat_ns()
        self.samples['stalled_to_cancel'].append((cancel_ns - beat_ns) * MS)
        said = await agent.status(name)
        assert said['state'] == 'failed', said
        self._stopped(said)
        await self._keep_rest(cancel_ns)

    async def violation(self, agent: Agent) -> None:
        """Let the arm move farther than commanded, out of its box."""
        robot, envelope = self._rig.robot, self.measured_envelope(agent)
        assert envelope is not None
        lower_m, upper_m = envelope['spatial']['aabb_m']
        margin_m = envelope['x-ros2.measured_tolerances']['spatial_m']
        await self._home(agent)
        agent.notifications.clear()
        await asyncio.to_thread(robot.call, 'fault', text='overshoot=4')
        name, params = next(self._names), to_pose(*NEAR_M, max_velocity_mps=2 * SLOW_MPS)
        since_ns = time.monotonic_ns()
        await as_soon_as_possible(self._submission(agent, name, params))
        said = await agent.status(name)
        told_ns = next(h.at_ns for h in agent.notifications if h.params == said)
        assert (said['state'], said['reason']) == ('failed', 'envelope'), said
        await agent.event('envelope_violation')
        box = {'lower_m': lower_m, 'upper_m': upper_m, 'margin_m': margin_m}
        seen_ns = await asyncio.to_thread(robot.call, 'outside', since_ns=since_ns, **box)
        assert seen_ns is not None, 'the arm did not leave its box'
        self.samples['violation_to_failed'].append((told_ns - seen_ns) * MS)
        await self._rest(told_ns)
        await asyncio.to_thread(robot.call, 'fault', text='')
        await may_move(agent)
        await self._home(agent)

    @staticmethod
    def measured_envelope(agent: Agent) -> dict[str, Any] | None:
        """Return the limits that executed motion is measured against, None where it is not."""
        rows = agent.manifest['safety_policy'].get('envelopes', ())
        found: dict[str, Any] | None = next((r for r in rows if r['embodiment'] == ARM), None)
        return found if found and 'x-ros2.measured_tolerances' in found else None

    async def close(self) -> None:
        """Close the session of a moving arm."""
        async with self.driver() as agent:
            name = await self.go(agent)
            await self._underway()
            at_ns = time.monotonic_ns()
            await agent.call('session.close')
            answered_ns = time.monotonic_ns()
            self._stopped(await agent.status(name))
        _, took_ms = await self._rest(at_ns)
        self.samples['close_to_rest'].append(took_ms)
        self.samples['close_to_answer'].append((answered_ns - at_ns) * MS)
        assert took_ms <= self.samples['close_to_answer'][-1] + 10.0, 'answered before rest'

    async def takeover(self) -> None:
        """Hand a moving arm over."""
        rig = self._rig
        async with self.driver() as giver, await Agent.connect(rig.url, rig.token) as taker:
            name = await self.go(giver)
            await self._underway()
            token = (await giver.call('session.transfer'))['transfer_token']
            at_ns = time.monotonic_ns()
            await taker.open(ARM, takeover=True, transfer_token=token)
            answered_ns = time.monotonic_ns()
            self._stopped(await giver.status(name))
            await taker.close()
        _, took_ms = await self._rest(at_ns)
        self.samples['takeover_to_rest'].append(took_ms)
        self.samples['takeover_to_answer'].append((answered_ns - at_ns) * MS)
        assert took_ms <= self.samples['takeover_to_answer'][-1] + 10.0, 'answered before rest'

    async def killed(self) -> None:
        """Kill the bridge of a moving arm; the guardian is left."""
        rig = self._rig
        async with self.driver() as agent:
            await self._home(agent)
            await self.go(agent)
            await self._underway()
            at_ns = time.monotonic_ns()
            await asyncio.to_thread(rig.kill)
            cancel_ns = await self._cancelled(at_ns)
            self.samples['killed_to_cancel'].append((cancel_ns - at_ns) * MS)
            await self._keep_rest(cancel_ns)
        await asyncio.to_thread(rig.restart)

    async def _home(self, agent: Agent) -> None:
        """Move to where a way begins, and wait."""
        self._target, self._behind, self._left = HOME_M, AWAY_M, 1.0
        name = await self.go(agent)
        assert (await agent.status(name))['state'] == 'completed'
        self._target, self._behind = AWAY_M, HOME_M


async def measure(
    rounds: Rounds, counts: dict[str, int], say: Callable[[str], None], *, is_guarded: bool
) -> None:
    """Play every kind of round; the floor in turns with the e-stop: both meet the same noise."""
    async with rounds.driver() as agent:
        for _ in range(WARM_UP):
            await rounds.e_stop(agent)
            await rounds.floor()
        rounds.samples.clear()
        for name in ('e_stop', 'watchdog', 'stalled', 'violation'):
            began_s = time.monotonic()
            if name == 'violation' and rounds.measured_envelope(agent) is None:
                say('violation: executed motion is not measured by this configuration')
                continue
            for _ in range(counts[name]):
                await getattr(rounds, name)(agent)
                if name == 'e_stop':
                    await rounds.floor()
            say(f'{name}: {counts[name]} rounds in {time.monotonic() - began_s:.0f} s')
    for name in ('close', 'takeover', 'killed'):
        if name == 'killed' and not is_guarded:
            say('killed: no guardian is installed, not measured')
            continue
        for _ in range(counts[name]):
            await getattr(rounds, name)()
        say(f'{name}: {counts[name]} rounds')
