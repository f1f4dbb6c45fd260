"""The bridge's main function: how it starts, serves, ends, and what it returns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import gc
import os
import signal
import socket
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import as_soon_as_possible, AWAY_M, RobotTap, tapped
from bridge_host import ENDING, EXIT_S, holding, Host, moving, no_visit, TOKEN
from lateness import Lateness
from patience import run, until
from processes import SIM_ARM, StartedProcess
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE, set_fault

from awp_ros_bridge.bridge import main as bridge_main
from awp_ros_bridge.bridge import wiring
from awp_ros_bridge.process import versions

# ---------------------------------------------------------------- as asked


def test_the_main_function_serves_until_a_signal_and_returns_0(host: Host) -> None:
    seen: list[str] = []
    frozen: list[int] = []

    def visit(url: str) -> None:
        frozen.append(gc.get_freeze_count())

        async def look() -> None:
            async with await Agent.connect(url, TOKEN) as agent:
                seen.append(str(agent.manifest['world']['name']))

        run(look())

    assert host.run(visit) == bridge_main.EXIT_OK
    assert seen == ['demo-cell']
    assert frozen[0] > 10_000  # what was loaded is in no collection that holds every thread up
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
    with tapped(peer) as opened:
        yield opened


@pytest.mark.parametrize('number', ENDING)
def test_every_signal_mid_motion_returns_0_when_the_arm_rests(
    host: Host, tap: RobotTap, lateness: Lateness, number: signal.Signals
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
    took_s = (time.monotonic_ns() - sent_ns[0]) * 1e-9
    run(tap.caught_up())
    assert tap.rested_ns(sent_ns[0]) is not None
    assert not tap.running(PRIMITIVE)
    assert took_s < EXIT_S + lateness.since(sent_ns[0]) * 1e-9


@pytest.mark.parametrize('fault', ['ignore_cancel', 'slow_cancel=60000'])
def test_f74_a_cancel_without_effect_or_answer_does_not_hold_the_end_up(
    host: Host,
    tap: RobotTap,
    peer: RosPeer,
    fault: str,
    lateness: Lateness,
    caplog: pytest.LogCaptureFixture,
    record_testsuite_property: Any,
) -> None:
    sent_ns: list[int] = []

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await holding(url)
            slow = to_pose(*AWAY_M, max_velocity_mps=0.08)  # it does not end by itself in time
            await as_soon_as_possible(lambda: agent.submit('go', 'move_to_pose', slow))
            await until(lambda: tap.is_moving, what='the arm moving')
            await asyncio.to_thread(set_fault, peer, fault)
            sent_ns.append(time.monotonic_ns())
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)  # impatience changes nothing
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'abort_failed')
            assert (await agent.ended())[0] == 1001

        run(play())

    assert host.run(visit) == bridge_main.EXIT_OK
    took_s = (time.monotonic_ns() - sent_ns[0]) * 1e-9
    record_testsuite_property(f'bridge_end_with_{fault}_s', round(took_s, 3))
    assert took_s < EXIT_S + lateness.since(sent_ns[0]) * 1e-9
    assert 'a goal did not end' in caplog.text
    # Nor the loop, where the machine let this process run.
    was_silent = 'bridge loop was silent' in caplog.text
    assert not was_silent or lateness.stood_since(sent_ns[0])
