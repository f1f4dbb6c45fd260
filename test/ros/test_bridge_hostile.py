"""Hostile input beside a robot that moves: the bridge serves on and keeps nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
import itertools
import json
import os
from pathlib import Path
import time
from typing import Any, TypeVar

from agent import Agent
from agent_words import hello, judge_error, Refused, strict_json, TERMINAL, to_pose
from bridge_cell import (
    as_soon_as_possible,
    AWAY_M,
    Cell,
    HOME_M,
    may_move,
    open_when_free,
    patient_config,
    RobotTap,
    running_cell,
    tapped,
    TcpProxy,
)
from hostile_words import BYTES, METHODS, requests, submissions
from hypothesis import given, HealthCheck, settings
from hypothesis import strategies as st
from lateness import Lateness
from patience import run, until
import pytest
from ros_peer import RosPeer
from rude_clients import come_and_go, frame, handshake, HELLO, RudeClient
import secrets_written
from websockets.asyncio.client import ClientConnection, connect

Json = dict[str, Any]
Record = Any
T = TypeVar('T')

HANDSHAKE_S = 10.0  # what a handshake has
IDLE_S = 15.0  # what a connection without a session has
WINDOW_MS = 3000
PING_S = 5.0  # only tells a loop that stood
CONNECTIONS = int(os.environ.get('AWP_TEST_CONNECTIONS', '3000'))  # docs/security.md
WARM_CONNECTIONS = 1000  # before it is weighed: pools are filled then
MOST_GROWTH_KB = 6000
SLOW = 12  # of each kind of slow client


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Draw examples before anything moves: an agent must not fall silent meanwhile."""
    found: list[T] = []

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(example: T) -> None:
        found.append(example)

    draw()
    assert len(found) > count // 2
    return found


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('hostile')
    more = {
        'server': {'idle_timeout_s': IDLE_S},
        'session': {'reconnect_window_ms': WINDOW_MS, 'max_sessions': 512},
        'safety': {'watchdog_ms': WINDOW_MS},
    }
    with running_cell(folder, patient_config(folder, more)) as started:
        run(started.warm_up())
        yield started
        assert started.bridge.exit_status is None
        for word in ('Traceback', ' CRITICAL '):
            assert word not in started.bridge.output


@pytest.fixture
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


@dataclass
class Driver:
    """
    Moves the arm to and fro while others behave badly.

    :ivar ends: how each of its actions ended.
    :ivar longest_s: the longest that a ping of it took.
    """

    agent: Agent
    ends: list[Json] = field(default_factory=list)
    longest_s: float = 0.0

    async def drive(self) -> None:
        """Move, and ping meanwhile, until cancelled."""
        for number in itertools.count():
            where = AWAY_M if number % 2 == 0 else HOME_M
            name = f'drive-{number}'
            await as_soon_as_possible(
                lambda name=name, where=where: self.agent.submit(
                    name, 'move_to_pose', to_pose(*where, max_velocity_mps=0.2)
                )
            )
            while not self.agent.has_ended(name):
                began_s = time.monotonic()
                await self.agent.settle()
                self.longest_s = max(self.longest_s, time.monotonic() - began_s)
                await asyncio.sleep(0.05)
            self.ends.append(await self.agent.status(name))


class Driven:
    """
    An arm that is driven as long as the context lasts; each of its moves must complete.

    But for a machine that stood, on which the dead-man timer may have struck.
    """

    def __init__(self, cell: Cell, tap: RobotTap) -> None:
        self._cell = cell
        self._tap = tap
        self._lateness = Lateness()
        self._begun_ns = time.monotonic_ns()

    async def __aenter__(self) -> Driver:
        """Open the arm and set it moving."""
        self._lateness.__enter__()
        agent = await self._cell.agent('driver')
        await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
        agent.beat(0.1)
        await may_move(agent)
        self.driver = Driver(agent)
        self._task = asyncio.create_task(self.driver.drive())
        await until(lambda: self._tap.is_moving, what='the arm moving')
        return self.driver

    async def __aexit__(self, kind: object, *_: object) -> None:
        """Close its session: the arm comes to rest."""
        agent = self.driver.agent
        if self._task.done():
            self._task.result()  # why it ended is what matters
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        since_ns = time.monotonic_ns()
        await agent.close()
        await agent.drop()
        stood = self._lateness.stood_since(self._begun_ns)
        self._lateness.__exit__()
        if kind is None:
            spoiled = [said for said in self.driver.ends if said['state'] != 'completed']
            assert not spoiled or stood, spoiled
            assert all('bridge:loop' in said['detail'] for said in spoiled), spoiled
            assert 'safe_state_entered' not in agent.events() or stood
            await until(lambda: self._tap.rested_ns(since_ns), what='the arm at rest')
            assert max(self._tap.most_running.values()) == 1


# ---------------------------------------------------------------- every method


class Hostile:
    """
    A client that says anything and reads every answer.

    :param has_session: it has an observing session, opened again when something closed it; else
        it has none, and what opens one is closed.
    """

    def __init__(self, connection: ClientConnection, *, has_session: bool) -> None:
        self._connection = connection
        self._has_session = has_session
        self._numbers = itertools.count()

    async def ask(self, method: str, params: Any) -> int:
        """Ask, hear the one answer, after which the next message works, and return its code."""
        code = await self._ask(method, params)
        if code == 0 and method == 'session.close' and self._has_session:
            assert await self._ask('session.open', {'mode': 'streaming'}) == 0
        if code == 0 and method == 'session.open' and not self._has_session:
            assert await self._ask('session.close', {}) == 0
        return code

    async def _ask(self, method: str, params: Any) -> int:
        name, last = f'q{next(self._numbers)}', f'q{next(self._numbers)}'
        await self._send(name, method, params)
        await self._send(last, 'ping', {'origin_ns': 1})
        answers = []
        while (heard := strict_json(str(await self._connection.recv()))).get('id') != last:
            if 'method' not in heard:
                answers.append(heard)
        assert heard['result']['origin_ns'] == 1
        assert [each['id'] for each in answers] == [name], (method, params, answers)
        if 'error' not in answers[0]:
            return 0
        error = answers[0]['error']
        judge_error(error)
        assert not secrets_written.in_text(json.dumps(error))
        assert len(error['data']['detail']) < 1000, error
        return int(error['code'])

    async def _send(self, name: str, method: str, params: Any) -> None:
        body = {'jsonrpc': '2.0', 'id': name, 'method': method, 'params': params}
        await self._connection.send(json.dumps(body))


def test_whatever_is_asked_of_any_method_gets_one_answer_and_the_arm_moves_on(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    many = [*METHODS.items(), *drawn(requests(), 250)]  # what is right first
    codes: dict[str, set[int]] = {}

    async def play() -> None:
        async with Driven(cell, tap) as driver:
            for has_session in (False, True):
                async with connect(
                    cell.bridge.url,
                    subprotocols=['awp'],  # type: ignore[list-item]
                    additional_headers={'Authorization': f'Bearer {cell.bridge.token}'},
                    compression=None,
                ) as connection:
                    hostile = Hostile(connection, has_session=has_session)
                    await hostile.ask('initialize', hello('hostile'))
                    if has_session:
                        await hostile.ask('session.open', {'mode': 'streaming'})
                    for method, params in many:
                        codes.setdefault(method, set()).add(await hostile.ask(method, params))
            assert driver.longest_s < PING_S

    run(play())
    record_testsuite_property('bridge_codes_of_hostile_requests', str(codes))
    assert set(codes) == set(METHODS)
    assert all(-32603 not in found for found in codes.values()), codes  # a fault of ours
    assert {2005, -32602} <= codes['session.resume']
    for method in ('initialize', 'ping', 'session.open', 'session/status', 'obs.subscribe'):
        assert -32602 in codes[method], (method, codes[method])
    for method in ('initialize', 'ping', 'session.open', 'session.close', 'obs.subscribe'):
        assert 0 in codes[method], (method, codes[method])


async def submitted(agent: Agent, name: str, kind: str, params: Json) -> int:
    """Submit an action and return the code of its refusal, 0 where it is admitted."""
    try:
        await agent.submit(name, kind, params)
    except Refused as refused:
        return refused.code
    return 0


def test_whatever_is_submitted_either_moves_the_arm_within_its_limits_or_reaches_nobody(
    cell: Cell, tap: RobotTap
) -> None:
    many = drawn(submissions(), 150)
    codes: list[int] = []

    async def play() -> None:
        async with cell.holding() as agent:
            for number, (kind, params) in enumerate(many):
                taken = tap.taken()
                name = f'n{number}'
                codes.append(await submitted(agent, name, kind, params))
                if codes[-1] == 0:
                    assert (await agent.status(name))['state'] in TERMINAL
                else:
                    await agent.settle()
                    assert tap.taken() == taken, params

    run(play())
    assert set(codes) <= {0, 3001, 4002, -32602}
    assert sum(code != 0 for code in codes) > 50
    assert max(tap.most_running.values(), default=0) <= 1


# ---------------------------------------------------------------- raw bytes


def test_no_bytes_after_a_handshake_harm_anybody_else(cell: Cell, tap: RobotTap) -> None:
    many = drawn(BYTES, 150)

    async def one(data: bytes) -> None:
        client = await RudeClient.let_in(cell.bridge.url, cell.bridge.token)
        await client.say(data)
        client.leave()
        await client.gone(HANDSHAKE_S + 20.0)

    async def play() -> None:
        async with Driven(cell, tap) as driver:
            for first in range(0, len(many), 16):
                await asyncio.gather(*(one(data) for data in many[first : first + 16]))
            assert driver.longest_s < PING_S

    run(play())


def floods(url: str, token: str) -> dict[str, bytes]:
    """Return requests that are too much of something, none of which may be let in."""
    request = handshake(url, token)[:-2]
    return {
        'ten thousand headers': request + b'X-A: b\r\n' * 10_000 + b'\r\n',
        'a header of a megabyte': request + b'X-A: ' + b'b' * 1_000_000 + b'\r\n\r\n',
        'headers without an end': request + b'X-A: b\r\n' * 200_000,
        'a line without an end': b'GET /' + b'a' * 2_000_000,
        'a target of a megabyte': b'GET /' + b'a' * 1_000_000 + b' HTTP/1.1\r\n\r\n',
        'ten thousand tokens': request + b'Authorization: Bearer a\r\n' * 100 + b'\r\n',
        'a body': request + b'Content-Length: 1000000\r\n\r\n' + b'x' * 1_000_000,
        'a folded header': request + b'X-A: b\r\n c\r\n' * 100 + b'\r\n',
        'requests in a row': request.replace(b'GET', b'PUT') * 100,
    }


def test_floods_of_headers_are_answered_or_cut_and_let_nobody_in(
    cell: Cell, tap: RobotTap
) -> None:
    url, token = cell.bridge.url, cell.bridge.token

    async def one(name: str, data: bytes) -> None:
        client = await RudeClient.dial(url)
        saying = asyncio.create_task(client.say(data))
        said = await client.gone(HANDSHAKE_S + 20.0)
        await saying
        client.leave()
        assert b'101' not in said[:15], (name, said[:200])

    async def play() -> None:
        async with Driven(cell, tap) as driver:
            for name, data in floods(url, token).items():
                before_kb = cell.bridge.resident_kb()
                await asyncio.gather(*(one(name, data) for _ in range(8)))
                assert cell.bridge.resident_kb() - before_kb < 30_000, name
            assert driver.longest_s < PING_S

    run(play())


# ---------------------------------------------------------------- slow, silent, many


def open_files(pid: int) -> int:
    return len(list(Path(f'/proc/{pid}/fd').iterdir()))


async def slow_handshake(url: str, token: str) -> float:
    """Send a handshake byte by byte, and return when it was cut."""
    client = await RudeClient.dial(url)
    began_s = time.monotonic()
    sending = asyncio.create_task(client.trickle(handshake(url, token), 0.5))
    await client.gone(HANDSHAKE_S + 20.0)
    sending.cancel()
    client.leave()
    return time.monotonic() - began_s


async def slow_message(url: str, token: str) -> float:
    """Send a message byte by byte, and return when that was ended."""
    client = await RudeClient.let_in(url, token)
    began_s = time.monotonic()
    sending = asyncio.create_task(client.trickle(frame(HELLO.encode()), 0.5))
    await client.gone(IDLE_S + 20.0)
    sending.cancel()
    client.leave()
    return time.monotonic() - began_s


def test_thousands_of_connections_beside_slow_and_half_open_ones_leave_nothing_behind(
    cell: Cell, tap: RobotTap, lateness: Lateness, record_testsuite_property: Record
) -> None:
    bridge = cell.bridge
    url, token = bridge.url, bridge.token

    async def play() -> tuple[float, int, float]:
        await come_and_go(url, token, WARM_CONNECTIONS)
        files, weight_kb = open_files(bridge.pid), bridge.resident_kb()
        async with TcpProxy(url) as proxy, Driven(cell, tap) as driver:
            half_open = [await RudeClient.let_in(proxy.url, token) for _ in range(SLOW)]
            proxy.darken()
            slow = [
                asyncio.create_task(kind(url, token))
                for kind in (slow_handshake, slow_message)
                for _ in range(SLOW)
            ]
            began_s = time.monotonic()
            await come_and_go(url, token, CONNECTIONS)
            took_s = time.monotonic() - began_s
            cut_s = await asyncio.gather(*slow)
            lost_s = lateness.since(int(began_s * 1e9)) * 1e-9
            assert max(cut_s[:SLOW]) < HANDSHAKE_S + 4.0 + lost_s
            assert min(cut_s[SLOW:]) > IDLE_S - 1.0
            assert max(cut_s[SLOW:]) < IDLE_S + 6.0 + lost_s
            # The driver, this proxy and its half of the half-open ones are still there.
            await until(lambda: open_files(bridge.pid) <= files + 1, 30.0, 'closed sockets')
            for client in half_open:
                client.reset()
        await until(lambda: open_files(bridge.pid) <= files, 30.0, 'closed sockets')
        grown_kb = bridge.resident_kb() - weight_kb
        return took_s, grown_kb, driver.longest_s

    took_s, grown_kb, longest_s = run(play(), 100.0)
    record_testsuite_property('bridge_connections_a_second', round(CONNECTIONS / took_s))
    record_testsuite_property('bridge_rss_growth_after_connections_kb', grown_kb)
    record_testsuite_property('bridge_ping_beside_connections_ms', round(longest_s * 1e3))
    assert grown_kb < MOST_GROWTH_KB
    assert longest_s < PING_S
