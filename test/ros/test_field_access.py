"""Field cases of credentials: who gets in, who moves the arm, and what revoking does to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import json
from pathlib import Path
import subprocess
import sys
import time
from typing import Any

from agent import Agent
from agent_words import Refused, to_pose
from bridge_cell import (
    AWAY_M,
    Cell,
    may_move,
    open_when_free,
    RobotTap,
    running_cell,
    set_moving,
    tapped,
)
from lateness import Lateness
from patience import run, until
from processes import REPOSITORY
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE
from websockets.exceptions import InvalidStatus

sys.path.append(str(REPOSITORY / 'test' / 'unit'))


Record = Any
FORBIDDEN = 4001
LOOK_S = 1.0  # how often the bridge looks at its tokens
SLOW_MPS = 0.045  # a move of 8 s: until somebody ends it


def awp_token(path: Path, *words: str) -> dict[str, Any]:
    """Run ``awp token`` beside the bridge and return what it says."""
    command = [sys.executable, '-m', 'awp_ros_bridge.cli.main', 'token', *words]
    command += ['--file', str(path), '--json']
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.fixture(scope='module')
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('tokens') / 'tokens.yaml'


@pytest.fixture(scope='module')
def cell(
    ros: None, tokens: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cell]:
    made = awp_token(tokens, 'make', '--scopes', 'all', '--name', 'operator')
    folder = tmp_path_factory.mktemp('access')
    more = {'arguments': ['--tokens-file', str(tokens)], 'log_level': 'debug'}
    with running_cell(folder, **more) as started:
        started.bridge.token = made['token']
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


def changed_ns(path: Path) -> int:
    """Return when a file was changed, in steady time."""
    return time.monotonic_ns() - (time.time_ns() - path.stat().st_mtime_ns)


async def let_in(cell: Cell, token: str, name: str = 'tester') -> Agent:
    """Connect with a token that the bridge may not have looked at yet."""
    ends_s = time.monotonic() + 20 * LOOK_S
    while True:
        try:
            return await Agent.connect(cell.bridge.url, token, name=name)
        except InvalidStatus as refused:
            if refused.response.status_code not in (401, 429) or time.monotonic() > ends_s:
                raise
        await asyncio.sleep(0.1)


async def status_of_login(url: str, token: str) -> int:
    """Return the HTTP status with which a login is refused."""
    with pytest.raises(InvalidStatus) as caught:
        await Agent.dial(url, token)
    return caught.value.response.status_code


def access_notes(cell: Cell) -> list[dict[str, Any]]:
    """Return what the bridge recorded of those who had no session."""
    found = []
    for path in cell.bridge.audit.glob('*_access_*.jsonl'):
        rows = [json.loads(line) for line in path.read_text('ascii').splitlines()]
        found += [row['body'] for row in rows if row['kind'] == 'note']
    return found


async def moving(agent: Agent, tap: RobotTap, action_id: str) -> str:
    """Open the arm and move it; return the id of the action."""
    await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
    agent.beat(0.2)
    await may_move(agent)
    return await set_moving(agent, tap, action_id, max_velocity_mps=SLOW_MPS)


def test_f102_who_may_only_observe_sees_the_arm_and_cannot_move_it(
    cell: Cell, tap: RobotTap, tokens: Path
) -> None:
    made = awp_token(tokens, 'make', '--scopes', 'observe', '--name', 'watcher')

    async def play() -> None:
        async with await let_in(cell, made['token']) as agent:
            taken = tap.taken()
            refused = await agent.refusal('session.open', mode='streaming', embodiment='arm_01')
            assert refused.code == FORBIDDEN
            assert "scope 'act'" in refused.detail
            await agent.open(None, subscribe=[{'channel': 'proprio'}])
            await until(lambda: len(agent.frames) > 3, what='frames')
            params = to_pose(*AWAY_M)
            refused = await agent.refusal(
                'action.submit', action_id='a', type='move_to_pose', params=params
            )
            assert refused.code == FORBIDDEN
            await agent.settle()
            await tap.caught_up()
            assert tap.taken() == taken
            await agent.close()

        def noted() -> bool:
            rows = [n for n in access_notes(cell) if n.get('refused') == 'session.open']
            return any(row['credential'] == made['id'] for row in rows)

        await until(noted, what='the refusal in the log of the process')

    run(play())


def test_f102_wrong_tokens_are_refused_limited_and_recorded_and_a_right_one_still_opens(
    cell: Cell,
) -> None:
    async def play() -> None:
        url = cell.bridge.url
        wrong = [await status_of_login(url, f'awp_wrong_wrong_wrong_{n}') for n in range(14)]
        assert set(wrong) <= {401, 429}
        assert wrong[-1] == 429
        with pytest.raises(InvalidStatus) as caught:
            await Agent.dial(f'{url}/?token={cell.bridge.token}', cell.bridge.token)
        assert caught.value.response.status_code == 400
        async with await cell.agent() as agent:
            await agent.settle()

        def noted() -> bool:
            return {401, 429, 400} <= {n.get('status') for n in access_notes(cell)}

        await until(noted, what='the refusals in the log of the process')

    run(play())


def test_f103_what_is_not_configured_or_beyond_a_limit_reaches_no_server(
    cell: Cell, tap: RobotTap, tokens: Path
) -> None:
    made = awp_token(tokens, 'make', '--scopes', 'observe,act')
    fast = to_pose(*AWAY_M, max_velocity_mps=100.0)
    point = {'positions_rad': [50.0] * 6, 'time_from_start_s': 5.0}
    joints = [f'joint_{n}' for n in range(1, 7)]
    far = {'joint_names': joints, 'points': [point]}
    cases: list[tuple[str, dict[str, Any], set[int]]] = [
        ('move_to_pose', fast, {4002, 3001}),
        ('move_to_pose', to_pose(50.0, 0.0, 0.4), {4002}),
        ('follow_joint_trajectory', far, {4002, 3001}),
        ('set_parameters', {}, {FORBIDDEN}),
        ('/controller_manager/switch_controller', {}, {-32602, FORBIDDEN}),
    ]

    async def play() -> None:
        async with await let_in(cell, made['token']) as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            await may_move(agent)
            taken = tap.taken()
            for number, (kind, params, codes) in enumerate(cases):
                refused = await agent.refusal(
                    'action.submit', action_id=f'n{number}', type=kind, params=params
                )
                assert refused.code in codes, (kind, str(refused))
            await agent.settle()
            await tap.caught_up()
            assert tap.taken() == taken
            session = agent.ready['session_id']
            await agent.close()
        (log,) = cell.bridge.audit.glob(f'*_{session}*.jsonl')

        def codes_in_log() -> list[int]:
            rows = [json.loads(line)['body'] for line in log.read_text('ascii').splitlines()]
            return [row['error']['code'] for row in rows if row.get('error')]

        await until(lambda: len(codes_in_log()) >= len(cases), what='the refusals in the log')

    run(play())


def test_f102_revoking_a_token_mid_motion_brings_the_arm_to_rest_and_ends_its_session(
    cell: Cell,
    tap: RobotTap,
    tokens: Path,
    lateness: Lateness,
    record_testsuite_property: Record,
) -> None:
    made = awp_token(tokens, 'make', '--scopes', 'observe,act', '--name', 'leaked')

    async def play() -> tuple[float, float, float]:
        async with await let_in(cell, made['token'], 'leaked') as agent:
            go = await moving(agent, tap, 'go')
            session = agent.ready
            await asyncio.to_thread(awp_token, tokens, 'revoke', made['id'])
            begun_ns = changed_ns(tokens)
            await until(lambda: agent.closed is not None, what='the connection closed')
            closed_ns = time.monotonic_ns()
            assert agent.closed == (1008, 'the credential was revoked')
            await tap.caught_up()
            rested_ns = tap.rested_ns(begun_ns)
            lost_ms = lateness.since(begun_ns) * 1e-6
            assert rested_ns is not None  # the arm rested before the session was said to be closed
            assert rested_ns < closed_ns
            await tap.caught_up()
            assert not tap.running(PRIMITIVE)
            assert agent.states(go)[-1] == 'cancelled'
            events = [h.params['event'] for h in agent.notifications if h.method == 'world.event']
            assert 'grant_expired' in events
        assert await status_of_login(cell.bridge.url, made['token']) in (401, 429)
        async with await cell.agent() as other:
            with pytest.raises(Refused) as refused:
                await other.call(
                    'session.resume', session_token=session['session_token'], last_status_seq=0
                )
            assert refused.value.code == 2003
            await moving(other, tap, 'on')  # the arm is free, and moves for others
            await other.close()
        return (rested_ns - begun_ns) * 1e-6, (closed_ns - begun_ns) * 1e-6, lost_ms

    rested_ms, closed_ms, lost_ms = run(play())
    record_testsuite_property('bridge_revoke_to_rest_ms', round(rested_ms, 1))
    record_testsuite_property('bridge_revoke_to_closed_ms', round(closed_ms, 1))
    assert rested_ms < 2000.0 + lost_ms  # the look and the stop


def test_no_token_stands_in_any_log(cell: Cell, tokens: Path) -> None:
    made = awp_token(tokens, 'make', '--scopes', 'all')
    secrets = {made['token'], cell.bridge.token}

    async def play() -> None:
        async with await let_in(cell, made['token']) as agent:
            await agent.open(None)
            secrets.add(agent.ready['session_token'])
            await agent.refusal(  # an agent that says its token where it does not belong
                'action.submit', action_id='x', type='move_to_pose', params={'t': made['token']}
            )
            await agent.close()

    run(play())
    awp_token(tokens, 'revoke', made['id'])
    said = cell.bridge.output
    kept = [path.read_text('ascii') for path in cell.bridge.audit.glob('*.jsonl')]
    assert len(said) > 1000
    assert len(kept) > 2
    for secret in secrets:
        assert secret not in said
        assert not any(secret in text for text in kept)
