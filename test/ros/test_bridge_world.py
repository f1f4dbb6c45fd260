"""The bridge's main function inside of the test's own process, where faults can be put into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
import contextlib
import json
import logging
import os
from pathlib import Path
import secrets
import signal
import socket
import sys
import threading
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import as_soon_as_possible, AWAY_M, may_move, open_when_free, RobotTap
from patience import run, until
from processes import SIM_ARM, StartedProcess
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE, reset, set_fault

from awp_ros_bridge.bridge import main as bridge_main
from awp_ros_bridge.bridge import versions, wiring
from awp_ros_bridge.engine.engine import Engine

TOKEN = secrets.token_urlsafe(24)
EXIT_S = 5.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Visit = Callable[[str], None]


class Host:
    """
    Runs the main function, and a visitor on another thread once it serves.

    :ivar world: what the main function built.
    :ivar left: the code that :func:`os._exit` was called with.
    """

    def __init__(self, folder: Path) -> None:
        self.world: wiring.World | None = None
        self.left: int | None = None
        self._ready = folder / 'ready.json'
        self._arguments = ['--config', str(SIM_ARM), '--port', '0']
        self._arguments += ['--audit-directory', str(folder / 'audit')]
        self._arguments += ['--ready-file', str(self._ready)]
        self._visitor_error: BaseException | None = None
        self._is_over = threading.Event()

    def run(self, visit: Visit, *more: str) -> int:
        """Run until the visitor ended the bridge, or ask it to end after the visit."""
        thread = threading.Thread(target=self._visit, args=(visit,), daemon=True)
        thread.start()
        try:
            code = bridge_main.main([*self._arguments, *more])
        finally:
            self._is_over.set()
        thread.join(10.0)
        if self._visitor_error is not None:
            raise self._visitor_error
        return code

    def _visit(self, visit: Visit) -> None:
        try:
            while not self._ready.exists():
                if self._is_over.wait(0.01):
                    return
            visit(json.loads(self._ready.read_text(encoding='utf-8'))['url'])
        except BaseException as error:  # noqa: BLE001 the test shall see it
            self._visitor_error = error
        finally:
            self._end_if_running()

    def _end_if_running(self) -> None:
        if not self._is_over.is_set() and self.world is not None and not self.world.fault:
            os.kill(os.getpid(), signal.SIGTERM)

    def leave(self, code: int) -> None:
        """Stand in for :func:`os._exit`."""
        self.left = code


@pytest.fixture
def host(ros: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    before = {number: signal.getsignal(number) for number in ENDING}
    interval_s = sys.getswitchinterval()
    made = Host(tmp_path)
    build = wiring.World.build

    def remember(options: bridge_main.Options) -> wiring.World:
        made.world = build(options)
        return made.world

    monkeypatch.setenv('AWP_BRIDGE_TOKEN', TOKEN)
    monkeypatch.setattr(wiring.World, 'build', remember)
    monkeypatch.setattr(os, '_exit', made.leave)
    yield made
    sys.setswitchinterval(interval_s)
    for number, handler in before.items():
        signal.signal(number, handler)


def no_visit(url: str) -> None:
    raise AssertionError(f'it serves {url}')


# ---------------------------------------------------------------- as asked


def test_the_main_function_serves_until_a_signal_and_returns_0(host: Host) -> None:
    seen: list[str] = []

    def visit(url: str) -> None:
        async def look() -> None:
            async with await Agent.connect(url, TOKEN) as agent:
                seen.append(str(agent.manifest['world']['name']))

        run(look())

    assert host.run(visit) == bridge_main.EXIT_OK
    assert seen == ['demo-cell']
    assert host.left is None
    assert host.world is not None
    assert host.world.fault is None
    assert host.world.ros.is_stopped


@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        (['--config', '/no/such/file.yaml'], 'No such file'),
        (['--ros-args', '--nonsense'], 'look at --ros-args'),
        (['--ros-args', '-p', 'autostart:=5'], 'look at --ros-args'),
        (['--ready-file', '/no/such/folder/x'], 'No such file'),
    ],
)
def test_what_cannot_start_returns_2_and_says_why(
    host: Host,
    arguments: list[str],
    says: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert host.run(no_visit, *arguments) == bridge_main.EXIT_USAGE
    assert says in capfd.readouterr().err + caplog.text


def test_libraries_that_are_too_old_return_2(
    host: Host, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, 'problems', lambda: ['websockets 10.4 was found'])
    assert host.run(no_visit) == bridge_main.EXIT_USAGE
    assert 'websockets 10.4 was found' in capfd.readouterr().err


def test_a_missing_token_returns_2(
    host: Host, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv('AWP_BRIDGE_TOKEN')
    assert host.run(no_visit) == bridge_main.EXIT_USAGE
    assert 'holds no token' in capfd.readouterr().err


def test_a_port_that_is_taken_returns_2(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = str(taken.getsockname()[1])
        assert host.run(no_visit, '--port', port) == bridge_main.EXIT_USAGE
    assert 'address already in use' in caplog.text
    assert 'choose another --port' in caplog.text


def test_a_port_that_is_none_is_refused_with_the_arguments(
    host: Host, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        host.run(no_visit, '--port', '70000')
    assert left.value.code == bridge_main.EXIT_USAGE
    assert '70000 is no TCP port; write 0 to 65535' in capfd.readouterr().err


def test_without_a_configuration_the_shipped_arm_is_served() -> None:
    assert wiring.default_config() == SIM_ARM


# ---------------------------------------------------------------- mid-motion


@pytest.fixture
def tap(peer: RosPeer, sim_robot: StartedProcess) -> Iterator[RobotTap]:
    reset(peer)
    with RobotTap() as opened:
        peer.wait_until(lambda: opened.samples, 10.0, 'joint states')
        yield opened


async def moving(url: str, tap: RobotTap) -> Agent:
    """Return an agent whose action moves the arm."""
    agent = await Agent.connect(url, TOKEN)
    await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
    agent.beat(0.2)
    await may_move(agent)
    numbers = iter(range(1000))

    async def move() -> Any:
        return await agent.submit(f'go-{next(numbers)}', 'move_to_pose', to_pose(*AWAY_M))

    await as_soon_as_possible(move)
    await until(lambda: tap.speed_radps > 0.2, what='the arm at speed')
    return agent


@pytest.mark.parametrize('number', ENDING)
def test_every_signal_mid_motion_returns_0_when_the_arm_rests(
    host: Host, tap: RobotTap, number: signal.Signals
) -> None:
    sent_ns: list[int] = []

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await moving(url, tap)
            sent_ns.append(time.monotonic_ns())
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)  # impatience changes nothing
            assert await agent.ended() == (1001, 'world_shutdown')
            assert agent.events()[-1] == 'world_shutdown'
            assert (await agent.session_state('closed')).params['reason'] == 'world_shutdown'

        run(play())

    assert host.run(visit) == bridge_main.EXIT_OK
    assert tap.rested_ns(sent_ns[0]) is not None
    assert not tap.running(PRIMITIVE)
    assert (time.monotonic_ns() - sent_ns[0]) * 1e-9 < EXIT_S


def test_a_goal_that_never_ends_does_not_hold_the_end_up(
    host: Host,
    tap: RobotTap,
    peer: RosPeer,
    caplog: pytest.LogCaptureFixture,
    record_testsuite_property: Any,
) -> None:
    sent_ns: list[int] = []

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await moving(url, tap)
            await asyncio.to_thread(set_fault, peer, 'ignore_cancel')
            sent_ns.append(time.monotonic_ns())
            os.kill(os.getpid(), signal.SIGTERM)
            said = await agent.status(agent.newest_action)
            assert (said['state'], said['reason']) == ('failed', 'abort_failed')
            assert (await agent.ended())[0] == 1001

        run(play())

    assert host.run(visit) == bridge_main.EXIT_OK
    took_s = (time.monotonic_ns() - sent_ns[0]) * 1e-9
    record_testsuite_property('bridge_end_with_a_stuck_goal_s', round(took_s, 3))
    assert took_s < EXIT_S
    assert 'a goal did not end' in caplog.text
    assert 'bridge loop was silent' not in caplog.text


def test_an_audit_directory_that_cannot_be_made_refuses_actions_until_it_can(
    host: Host, tap: RobotTap, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / 'a file'
    in_the_way.write_text('not a folder', encoding='ascii')
    caplog.set_level(logging.INFO)

    def visit(url: str) -> None:
        async def play() -> None:
            async with await Agent.connect(url, TOKEN) as agent:
                await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
                agent.beat(0.2)
                await may_move(agent)
                content = {'action_id': 'no', 'type': 'move_to_pose', 'params': to_pose(*AWAY_M)}
                details: list[str] = []
                while not any(str(in_the_way) in detail for detail in details):
                    refused = await agent.refusal('action.submit', **content)
                    assert (refused.code, refused.is_retryable) == (2001, True)
                    details.append(refused.detail)
                    await asyncio.sleep(0.02)
                in_the_way.unlink()
                await until(lambda: 'audit log is writable again' in caplog.text)
                await as_soon_as_possible(lambda: agent.call('action.submit', **content))
                await agent.close()

        run(play())

    assert host.run(visit, '--audit-directory', str(in_the_way / 'b')) == bridge_main.EXIT_OK
    assert 'audit log cannot be written' in caplog.text


# ---------------------------------------------------------------- faults


def test_a_fault_of_the_engine_mid_motion_stops_the_arm_and_returns_1(
    host: Host,
    tap: RobotTap,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    record_testsuite_property: Any,
) -> None:
    broken_ns: list[int] = []

    def fail(*_: object) -> None:
        raise ZeroDivisionError('injected')

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await moving(url, tap)
            broken_ns.append(time.monotonic_ns())
            monkeypatch.setattr(Engine, 'handle', fail)
            assert (await agent.ended())[0] == 1001

        run(play())

    assert host.run(visit) == bridge_main.EXIT_FAULT
    ended_ns = time.monotonic_ns()
    rested_ns = tap.rested_ns(broken_ns[0])
    assert rested_ns is not None
    assert not tap.running(PRIMITIVE)
    record_testsuite_property(
        'bridge_engine_fault_to_rest_ms', round((rested_ns - broken_ns[0]) * 1e-6, 1)
    )
    assert (ended_ns - broken_ns[0]) * 1e-9 < 5.0
    assert host.world is not None
    assert host.world.fault == 'ZeroDivisionError: injected'
    assert 'the engine failed; the robot is being stopped' in caplog.text


@pytest.mark.parametrize('thread', ['goals_thread', 'safety_thread', 'observations_thread'])
def test_a_fault_of_a_ros_thread_mid_motion_stops_the_arm_and_returns_1(
    host: Host, tap: RobotTap, thread: str
) -> None:
    def fail() -> None:
        raise ZeroDivisionError('injected')

    broken_ns: list[int] = []

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await moving(url, tap)
            assert host.world is not None
            broken_ns.append(time.monotonic_ns())
            getattr(host.world.ros.gateway, thread).post(fail)
            assert (await agent.ended())[0] == 1001
            assert 'world_shutdown' in agent.events()

        run(play())

    assert host.run(visit) == bridge_main.EXIT_FAULT
    assert tap.rested_ns(broken_ns[0]) is not None
    assert host.world is not None
    assert 'ZeroDivisionError: injected' in str(host.world.fault)


def test_a_fault_of_our_own_during_the_start_stops_everything_and_returns_1(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError('injected')

    monkeypatch.setattr(wiring, 'manifest_hash', fail)
    assert host.run(no_visit) == bridge_main.EXIT_FAULT
    assert host.world is not None
    assert host.world.ros.is_stopped
    assert 'the bridge failed' in caplog.text


def test_a_ros_side_that_hangs_does_not_hold_the_exit_up(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wiring, 'TEARDOWN_S', 0.1)
    released = threading.Event()

    def visit(url: str) -> None:
        assert host.world is not None
        stop = host.world.ros.stop

        def hang(timeout_s: float) -> bool:
            released.wait(20.0)
            return stop(timeout_s)

        monkeypatch.setattr(host.world.ros, 'stop', hang)
        os.kill(os.getpid(), signal.SIGTERM)
        with contextlib.suppress(AssertionError):
            asyncio.run(until(lambda: host.left is not None))
        released.set()

    host.run(visit)
    assert host.left == bridge_main.EXIT_OK
    assert 'the ROS side did not stop within' in caplog.text


def test_an_audit_log_that_hangs_does_not_hold_the_exit_up(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def visit(url: str) -> None:
        assert host.world is not None
        audit = host.world.audit
        stop = audit.stop

        def late(timeout_s: float) -> bool:
            stop(timeout_s)
            return False

        monkeypatch.setattr(audit, 'stop', late)

    caplog.set_level(logging.INFO)
    host.run(visit)
    assert host.left == bridge_main.EXIT_OK
    assert 'the audit log was not written to its end' in caplog.text
