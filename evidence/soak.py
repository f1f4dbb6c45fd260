"""
Owns the soak: thousands of goals that succeed, are refused or cancelled, and their traces.

A server that retains results grows slower with each, whoever asks. So the robot notes when a goal
came and when the server was done with it, and what remains of a goal's time is the bridge's own.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, field
import json
import os
from pathlib import Path
import secrets
import signal
import sys
import tempfile
import time
from typing import Any

from agent import Agent
from agent_words import Refused, TERMINAL
from bridge_cell import as_soon_as_possible, open_when_free
from patience import until

from bench.figures import percentile
from bench.processes import Process, start_bridge, Worker
from evidence import report
from evidence.soak_robot import JOINTS, NUMBER_RAD

CONFIG = Path(__file__).with_name('soak_arm.yaml')
KEPT = report.REPOSITORY / 'docs' / 'conformance' / 'soak.json'
RETENTIONS_S = (10, 900)
GOALS = 5000
QUICK_GOALS = 1500
SETTLED = 1000  # goals after which memory may not grow, nor latency
WINDOW = 500
GROWTH_KB = 5000
MEDIAN_TIMES, P95_TIMES = 1.2, 1.5
DISTURBED_SHARE = 0.01  # a machine that starves the bridge trips its dead-man timer
ACKNOWLEDGE_EVERY = 10
RUN_S = 1500.0
SAMPLE_EVERY = 250
FLOOR_EVERY = 5
GROWN = 12


@dataclass
class Soak:
    """
    What a soak found.

    :ivar latency_ms: submission to ``completed``, by the number of the goal.
    :ivar server_ms: how much of it the action server had the goal, likewise.
    :ivar floor_ms: goals without a bridge, on a server that never has many, likewise.
    :ivar resident_kb: memory of the bridge by the number of goals that had succeeded.
    :ivar held: what the bridge kept at the end.
    :ivar types: objects of the bridge by type, when memory had settled and at the end.
    :ivar disturbed: actions that ended as they should not, because something was too late.
    """

    latency_ms: dict[int, float] = field(default_factory=dict)
    server_ms: dict[int, float] = field(default_factory=dict)
    floor_ms: dict[int, float] = field(default_factory=dict)
    resident_kb: dict[int, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    types: list[dict[str, int]] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)

    @property
    def own_ms(self) -> dict[int, float]:
        """What is not the server's of each goal's latency: the bridge, both ways, and DDS."""
        server = self.server_ms
        return {n: took - server[n] for n, took in self.latency_ms.items() if n in server}

    def numbers(self) -> dict[str, Any]:
        """Return what is compared with the bounds."""
        settled_kb, most = self.resident_kb[SETTLED], max(self.latency_ms)
        found: dict[str, Any] = {
            'goals': most,
            'refused_or_cancelled': most,
            'settled_kb': settled_kb,
            'growth_kb': max(self.resident_kb.values()) - settled_kb,
            'held': self.held,
            'disturbed': len(self.disturbed),
        }
        rows = {
            'own': self.own_ms,
            'server': self.server_ms,
            'latency': self.latency_ms,
            'floor': self.floor_ms,
        }
        for name, row in rows.items():
            for when, last in (('first', SETTLED), ('last', most)):
                part = sorted(took for n, took in row.items() if last - WINDOW < n <= last)
                found[f'{name}_median_{when}_ms'] = round(percentile(part, 0.5), 2)
                found[f'{name}_p95_{when}_ms'] = round(percentile(part, 0.95), 2)
        return found

    def grown(self) -> list[str]:
        """Say of which types there are many more objects than when memory had settled."""
        first, last = self.types[0], self.types[-1]
        more = {kind: count - first.get(kind, 0) for kind, count in last.items()}
        rows = sorted(more.items(), key=lambda row: -row[1])[:GROWN]
        return [f'{kind}: +{count} to {last[kind]}' for kind, count in rows if count > 100]

    def problems(self, *, short: bool) -> list[str]:
        """
        Say which bounds are not kept.

        A machine that became busier slows everything by a factor, which the floor tells.

        :param short: the server keeps its results for a short time and does not grow slower, so
            that the whole latency is judged too.
        """
        found = self.numbers()
        out = []
        if found['growth_kb'] > GROWTH_KB:
            out.append(f'memory grew by {found["growth_kb"]} kB after goal {SETTLED}, '
                       f'bound {GROWTH_KB} kB')  # fmt: skip
        for name in ('own', 'latency') if short else ('own',):
            for which, times in (('median', MEDIAN_TIMES), ('p95', P95_TIMES)):
                first, last = (found[f'{name}_{which}_{when}_ms'] for when in ('first', 'last'))
                floors = [found[f'floor_{which}_{when}_ms'] for when in ('first', 'last')]
                slower = max(1.0, floors[1] / floors[0])
                if last > times * slower * first:
                    out.append(
                        f'{which} of {name} went from {first} to {last} ms, bound {times} times; '
                        f'the floor went from {floors[0]} to {floors[1]} ms'
                    )
        if len(self.disturbed) > DISTURBED_SHARE * len(self.latency_ms):
            out.append(f'{len(self.disturbed)} actions ended wrongly, first {self.disturbed[0]}')
        kept = ('held', 'goals', 'cancels', 'engine_goals')
        left = {name: self.held[name] for name in kept if self.held[name]}
        if left:
            out.append(f'kept after the end: {left}')
        return out


def _params(position_rad: float, number: int = 0) -> dict[str, Any]:
    point = {'positions_rad': [position_rad, number * NUMBER_RAD], 'time_from_start_ms': 1000}
    return {'joint_names': JOINTS, 'points': [point]}


def _resident_kb(process: Process) -> int:
    text = Path(f'/proc/{process.pid}/status').read_text(encoding='ascii')
    return int(text.split('VmRSS:')[1].split()[0])


class Run:
    """One agent that submits, against one bridge and one server."""

    def __init__(
        self, agent: Agent, bridge: Process, notes: Path, robot: Worker, floor: Worker
    ) -> None:
        self.soak = Soak()
        self._robot = robot
        self._floor = floor
        self._agent = agent
        self._bridge = bridge
        self._notes = notes

    async def play(self, goals: int, *, lists_types: bool) -> Soak:
        """
        Send so many goals that succeed, and as many that are refused or cancelled, in turn.

        :param lists_types: look at the objects of the bridge in between, which takes memory too.
        """
        for number in range(1, goals + 1):
            await self._succeed(number)
            await (self._refused if number % 2 else self._cancelled)(f'x{number}')
            if number % FLOOR_EVERY == 0:
                took = await asyncio.to_thread(self._floor.call, 'goals', count=1)
                self.soak.floor_ms[number] = took[0]
            if number % ACKNOWLEDGE_EVERY == 0:
                await self._acknowledge()
            if number % SAMPLE_EVERY == 0:
                self.soak.resident_kb[number] = _resident_kb(self._bridge)
                await self._ask_server()
            if number == SETTLED and lists_types:
                await self._held()
            if number % SETTLED == 0:
                self._say(number)
        await asyncio.sleep(1.0)  # late answers
        await self._held()
        return self.soak

    async def _ask_server(self) -> None:
        for number, came_ns, done_ns in await asyncio.to_thread(self._robot.call, 'spans'):
            self.soak.server_ms[number] = (done_ns - came_ns) * 1e-6

    def _say(self, number: int) -> None:
        def median_ms(row: dict[int, float]) -> str:
            part = sorted(took for n, took in row.items() if n > number - WINDOW)
            return f'{percentile(part, 0.5):.1f}'

        soak = self.soak
        own_ms, server_ms, floor_ms = map(median_ms, (soak.own_ms, soak.server_ms, soak.floor_ms))
        print(f'  {number} goals: {soak.resident_kb[number]} kB, median {own_ms} ms beside '
              f'{server_ms} ms of the server, floor {floor_ms} ms', flush=True)  # fmt: skip

    async def _submit(self, name: str, position_rad: float, number: int = 0) -> bool:
        """Submit, and tell whether the first attempt was admitted."""
        content = (name, 'follow_joint_trajectory', _params(position_rad, number))
        try:
            await self._agent.submit(*content)
        except Refused as refused:  # the dead-man timer struck: the machine starves the bridge
            self.soak.disturbed.append(f'{name}: {refused.detail}')
            await as_soon_as_possible(lambda: self._agent.submit(*content), 30.0)
            return False
        return True

    def _is_as_wanted(self, said: dict[str, Any], state: str) -> bool:
        if said['state'] != state:
            self.soak.disturbed.append(f'{said["action_id"]}: {said.get("detail", said["state"])}')
        return bool(said['state'] == state)

    async def _succeed(self, number: int) -> None:
        name = f's{number}'
        began_s = time.monotonic()
        is_first = await self._submit(name, 0.0, number)
        said = await self._agent.status(name)
        took_ms = (time.monotonic() - began_s) * 1e3
        if self._is_as_wanted(said, 'completed') and is_first:
            self.soak.latency_ms[number] = took_ms

    async def _refused(self, name: str) -> None:
        await self._submit(name, -0.1)
        self._is_as_wanted(await self._agent.status(name), 'rejected')

    async def _cancelled(self, name: str) -> None:
        await self._submit(name, 0.1)
        if self._is_as_wanted(await self._agent.status(name, 'executing', *TERMINAL), 'executing'):
            await self._agent.call('action.cancel', action_id=name)
            self._is_as_wanted(await self._agent.status(name), 'cancelled')

    async def _acknowledge(self) -> None:
        """Say what was heard, so that the bridge may forget it (AWP-CTL-010)."""
        agent = self._agent
        await agent.call('ping', origin_ns=time.monotonic_ns(), last_status_seq=agent.status_seq)
        agent.notifications.clear()
        agent.frames.clear()

    async def _held(self) -> None:
        """Ask the bridge what it holds."""
        self._notes.unlink(missing_ok=True)
        os.kill(self._bridge.pid, signal.SIGUSR2)
        await until(self._notes.exists, what='the notes of the bridge')
        found: dict[str, Any] = json.loads(self._notes.read_text(encoding='ascii'))
        self.soak.types.append(found.pop('types'))
        self.soak.held = found


async def _first(agent: Agent) -> None:
    """Wait until the server is found and a goal succeeds."""
    for number in range(100):
        name = f'first-{number}'
        await as_soon_as_possible(
            lambda name=name: agent.submit(  # type: ignore[misc]
                name, 'follow_joint_trajectory', _params(0.0)
            ),
            30.0,
        )
        if (await agent.status(name, *TERMINAL))['state'] == 'completed':
            return
    raise AssertionError('no goal succeeds')


async def _session(
    bridge: Process,
    notes: Path,
    robot: Worker,
    floor: Worker,
    url: str,
    token: str,
    goals: int,
    *,
    lists_types: bool,
) -> Soak:
    async with asyncio.timeout(RUN_S), await Agent.connect(url, token) as agent:
        await open_when_free(agent, 'arm_01')
        agent.beat(0.5)
        await _first(agent)
        run = Run(agent, bridge, notes, robot, floor)
        soak = await run.play(goals, lists_types=lists_types)
        await agent.close()
    return soak


def soak_once(folder: Path, retain_s: int, goals: int, *, lists_types: bool = False) -> Soak:
    """Run a robot, a bridge and an agent, and let the agent submit."""
    with ExitStack() as stack:
        token, notes = secrets.token_urlsafe(24), folder / 'notes.json'
        robot = Worker('robot', 'evidence.soak_robot', folder, [str(retain_s)])
        stack.callback(robot.stop)
        floor = Worker('floor', 'evidence.soak_floor', folder)
        stack.callback(floor.stop)
        module = ('evidence.bridge', str(notes))
        bridge, url = start_bridge('bridge', folder, token, config=CONFIG, module=module)
        stack.callback(bridge.stop)
        work = _session(bridge, notes, robot, floor, url, token, goals, lists_types=lists_types)
        return asyncio.run(work)


def soak(arguments: argparse.Namespace) -> int:
    """Soak the bridge, once for each retention of results; 1 where a bound is not kept."""
    goals = arguments.goals or (QUICK_GOALS if arguments.quick else GOALS)
    problems = []
    found: dict[str, Any] = {}
    for retain_s in arguments.retain or RETENTIONS_S:
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='awp-soak-') as scratch:
            result = soak_once(Path(scratch), retain_s, goals, lists_types=arguments.types)
        took_s = round(time.monotonic() - began_s)
        name = f'results kept {retain_s} s'
        found[name] = {'took_s': took_s, **result.numbers(), 'resident_kb': result.resident_kb}
        print(f'{name}, {took_s} s: {json.dumps(found[name])}', flush=True)
        for text in result.grown() if arguments.types else ():
            print(f'  more objects: {text}', flush=True)
        for text in result.disturbed[:5]:
            print(f'  disturbed: {text}', flush=True)
        problems += [
            f'{name}: {p}' for p in result.problems(short=retain_s <= RETENTIONS_S[0])
        ]
    out = arguments.out or (KEPT if goals >= GOALS else None)
    if out is not None:
        bounds = {
            'growth_kb': GROWTH_KB, 'median_times': MEDIAN_TIMES, 'p95_times': P95_TIMES,
        }  # fmt: skip
        body = {
            'machine': report.machine(),
            'configuration': report.configuration(CONFIG, bounds),
            'conditions': found,
        }
        report.write(out, report.text_of(report.merged(out, body)))
    for problem in problems:
        print(f'[evidence] not kept: {problem}', file=sys.stderr)
    return 1 if problems else 0


def add_verb(verbs: Any) -> None:
    """Describe the verb."""
    verb = verbs.add_parser('soak', help='thousands of goals: memory, latency, what is kept')
    verb.add_argument('--quick', action='store_true', help=f'{QUICK_GOALS} goals')
    verb.add_argument('--goals', type=int, help=f'goals that succeed, {SETTLED} or more')
    verb.add_argument('--retain', type=int, action='append', help='only this retention, in s')
    verb.add_argument('--types', action='store_true', help='tell what there is more of')
    verb.add_argument('--out', type=Path, help=f'JSON file, {KEPT.name} after {GOALS} goals')
    verb.set_defaults(run=soak)
