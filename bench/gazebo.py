"""
Measures the robot in Gazebo: how fast its world runs, how soon its joints do what they are told.

``scripts/bench --robot gazebo`` sets up what it needs and calls this.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
import json
import os
from pathlib import Path
from statistics import median
import sys
import tempfile
import time

from agent import Agent
from bridge_cell import Cell, RobotTap
from gazebo_cell import running_in_gazebo
from gazebo_robot.drives import DriveModel
from gazebo_robot.hardware import GazeboJoints
from gazebo_robot.robots import ARM_HOME, start_world
from patience import run as run_bounded
from patience import until
import rclpy
from rclpy.signals import SignalHandlerOptions
from ros_peer import RosPeer
from rosgraph_msgs.msg import Clock
from sim_robot_goals import away, HOME, send_trajectory, trajectory

from awp_ros_bridge.sim_robot.description import ARM_JOINTS, load_urdf
from bench.figures import percentile

_MOVES_RADPS, _STILL_RADPS = 5e-3, 1e-3
_TURN_RAD = 0.05
_TURN_S = 0.4
_STILL_S = 0.15
_LATE_S = 5.0


def say(text: str) -> None:
    """Print progress at once, beside the table."""
    print(f'[bench] {text}', file=sys.stderr, flush=True)


def drives(count: int) -> list[float]:
    """
    Measure from a drive's command to its joint in motion, in ms, on a world without ROS.

    :raises TimeoutError: a joint did not move
    """
    urdf = load_urdf()
    model = DriveModel(urdf, ARM_HOME)
    still = [0.0] * len(ARM_HOME)
    wheels = [0.0, 0.0]
    took_ms = []
    with tempfile.TemporaryDirectory(prefix='awp-bench-gazebo-') as folder:
        joints = start_world(urdf, model, Path(folder))

        def command() -> None:
            loads = model.loads(positions, still)
            joints.command([*positions, *wheels], [*still, *wheels], [*loads, *wheels])

        try:
            positions = list(ARM_HOME.values())
            command()
            joints.pause(False)
            for _ in range(count):
                time.sleep(_STILL_S)
                joints.read()
                positions[0] += 0.002
                began = time.monotonic()
                command()
                _wait_for_joint(joints, began + _LATE_S)
                took_ms.append((time.monotonic() - began) * 1e3)
        finally:
            joints.close()
    return took_ms


def _wait_for_joint(joints: GazeboJoints, ends_s: float) -> None:
    while True:
        measured = joints.read()
        if measured is not None and abs(measured.velocities[0]) > _MOVES_RADPS:
            return
        if time.monotonic() > ends_s:
            raise TimeoutError(f'joint_1 does not move within {_LATE_S:g} s')
        time.sleep(0.0001)


def world(peer: RosPeer, tap: RobotTap, seconds: float) -> dict[str, float]:
    """Measure the real-time factor and the rate of joint states."""
    clock = peer.listen(Clock, '/clock')
    clock.wait_next()
    start = len(tap.samples)
    peer.turn_for(seconds)
    first_s, last_s = (
        m.clock.sec + m.clock.nanosec * 1e-9 for m in (clock.messages[0], clock.messages[-1])
    )
    times_ms = [s.at_ns * 1e-6 for s in tap.samples[start:]]
    return {
        'real_time_factor': (last_s - first_s) / (clock.arrivals_s[-1] - clock.arrivals_s[0]),
        'joint_states_hz': (len(times_ms) - 1) / (times_ms[-1] - times_ms[0]) * 1e3,
        'joint_states_worst_gap_ms': max(b - a for a, b in pairwise(times_ms)),
    }


def _is_still(tap: RobotTap) -> bool:
    return all(s.speed_radps < _STILL_RADPS for s in tap.samples[-5:])


def _moved(tap: RobotTap, since: int) -> int | None:
    found = (s.at_ns for s in tap.samples[since:] if s.speed_radps > _MOVES_RADPS)
    return next(found, None)


def goals(peer: RosPeer, tap: RobotTap, count: int) -> list[float]:
    """Measure from a goal that is sent to joint states that tell of motion, in ms."""
    took_ms = []
    for number in range(count):
        goal = trajectory([(_TURN_S, away(_TURN_RAD * (number % 2 == 0)))])
        peer.wait_until(lambda: _is_still(tap), _LATE_S, 'the arm at rest')
        start, sent_ns = len(tap.samples), time.monotonic_ns()
        sent = send_trajectory(peer, goal)
        moved = _waits_for_motion(peer, tap, start)
        took_ms.append((moved - sent_ns) * 1e-6)
        sent.wait_result()
    return took_ms


def _waits_for_motion(peer: RosPeer, tap: RobotTap, start: int) -> int:
    peer.wait_until(lambda: _moved(tap, start), _LATE_S, 'the arm moving')
    moved = _moved(tap, start)
    assert moved is not None
    return moved


async def actions(cell: Cell, tap: RobotTap, count: int) -> list[float]:
    """Measure from an action that is submitted to joint states that tell of motion, in ms."""
    took_ms = []
    async with cell.holding() as agent:
        for number in range(count):
            await until(lambda: _is_still(tap), what='the arm at rest')
            took_ms.append(await _action(agent, tap, number))
    return took_ms


async def _action(agent: Agent, tap: RobotTap, number: int) -> float:
    end = [*HOME]
    end[0] += _TURN_RAD * (number % 2 == 0)
    point = {'positions_rad': end, 'time_from_start_ms': round(_TURN_S * 1e3)}
    params = {'joint_names': list(ARM_JOINTS), 'points': [point]}
    start, sent_ns = len(tap.samples), time.monotonic_ns()
    await agent.submit(f'turn-{number}', 'follow_joint_trajectory', params)
    moved = await until(lambda: _moved(tap, start), what='the arm moving')
    await agent.status(f'turn-{number}')
    return (moved - sent_ns) * 1e-6


def _measure(count: int, seconds: float) -> dict[str, dict[str, float]]:
    say('drives: a world alone')
    found = {'drive_command_to_motion_ms': _spread(drives(count))}
    say('starting the robot in Gazebo, the guardian and the bridge')
    with _cell() as (cell, peer, tap):
        say(f'the world, {seconds:g} s')
        found['world'] = world(peer, tap, seconds)
        steps: list[tuple[str, Callable[[], list[float]]]] = [
            ('ros_goal_to_motion_ms', lambda: goals(peer, tap, count)),
            (
                'agent_submit_to_motion_ms',
                lambda: run_bounded(actions(cell, tap, count), 10.0 + 2.0 * count),
            ),
        ]
        for name, step in steps:
            say(name)
            found[name] = _spread(step())
    return found


@contextmanager
def _cell() -> Iterator[tuple[Cell, RosPeer, RobotTap]]:
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        with (
            tempfile.TemporaryDirectory(prefix='awp-bench-gazebo-') as folder,
            running_in_gazebo(Path(folder)) as cell,
            RosPeer('bench_peer') as peer,
            RobotTap() as tap,
        ):
            yield cell, peer, tap
    finally:
        rclpy.shutdown()


def _spread(samples: Sequence[float]) -> dict[str, float]:
    ordered = sorted(samples)
    return {
        'n': len(ordered),
        'p50': median(ordered),
        'p95': percentile(ordered, 0.95),
        'max': ordered[-1],
    }


def _table(found: dict[str, dict[str, float]]) -> str:
    rows = dict(found)
    world_row = rows.pop('world')
    lines = [f'{"":28}{"n":>6}{"p50":>9}{"p95":>9}{"max":>9}']
    for name, row in rows.items():
        label = name.removesuffix('_ms').replace('_', ' ') + ', ms'
        cells = ''.join(f'{row[key]:9.1f}' for key in ('p50', 'p95', 'max'))
        lines.append(f'{label:28}{row["n"]:6.0f}{cells}')
    lines += [
        f'real-time factor             {world_row["real_time_factor"]:.3f}',
        f'joint states                 {world_row["joint_states_hz"]:.1f} Hz, worst gap '
        f'{world_row["joint_states_worst_gap_ms"]:.1f} ms',
    ]
    return '\n'.join(lines)


def main() -> int:
    """Measure and print; 0 whatever the figures say."""
    parser = argparse.ArgumentParser(prog='scripts/bench --robot gazebo', description=__doc__)
    parser.add_argument('--count', type=int, default=30, help='motions of a kind, default 30')
    parser.add_argument('--seconds', type=float, default=10.0, help='of the world, default 10')
    parser.add_argument('--out', type=Path, help='JSON file')
    arguments = parser.parse_args()
    if arguments.count < 1 or not 1.0 <= arguments.seconds <= 600.0:
        parser.error('--count is 1 or more, --seconds 1 to 600')
    found = _measure(arguments.count, arguments.seconds)
    print(f'ROS 2 {os.environ.get("ROS_DISTRO", "")}, {os.cpu_count()} cores')
    print(_table(found))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=2) + '\n', encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
