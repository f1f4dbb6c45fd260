"""Owns the process of the simulated robot: arguments, signals, start and end."""

import argparse
from collections.abc import Callable, Sequence
import json
import os
from pathlib import Path
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING

import rclpy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import remove_ros_args

from awp_ros_bridge.sim_robot.node import SimRobot

if TYPE_CHECKING:
    from rclpy.executors import Executor

_LAST_RESULTS_S = 0.8
_FAREWELL_S = 0.2


def main(
    argv: Sequence[str] | None = None, make_robot: Callable[[], SimRobot] = SimRobot
) -> int:
    """
    Run the robot until SIGINT or SIGTERM.

    SIGUSR1 trips the emergency stop and SIGUSR2 clears it.

    :param argv: the command line with the program's name first, as in :data:`sys.argv`
    :param make_robot: makes the node; another one may be moved by something else
    :return: the exit status
    """
    arguments = list(sys.argv if argv is None else argv)
    options = _parser().parse_args(remove_ros_args(arguments)[1:])
    # The interpreter lock changes hands soon: planning must not make the loop late.
    sys.setswitchinterval(0.0005)
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    robot = make_robot()
    executor = _new_executor()
    executor.add_node(robot)
    ending: Future[None] = Future()
    _take_signals(robot, ending)
    if options.ready_file is not None:
        _write_ready(options.ready_file)
    print('sim_robot ready', flush=True)  # noqa: T201
    while not ending.done():
        # Bounded: the events executor's endless spin handles nothing in some releases.
        executor.spin_until_future_complete(ending, 1.0)
    robot.abort_goals('the robot shuts down')
    end_s = time.monotonic() + _LAST_RESULTS_S
    while robot.has_results_to_send and time.monotonic() < end_s:
        executor.spin_once(0.02)
    executor.spin_until_future_complete(Future(), _FAREWELL_S)
    executor.remove_node(robot)
    robot.close()
    executor.shutdown(_FAREWELL_S)
    rclpy.shutdown()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='sim_robot',
        description='A simulated arm with a gripper; everything else is a ROS parameter.',
    )
    parser.add_argument(
        '--ready-file', type=Path, help='write {"pid": ...} to this file once all servers are up'
    )
    return parser


def _new_executor() -> 'Executor':
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor

        return SingleThreadedExecutor()
    return EventsExecutor()


def _take_signals(robot: SimRobot, ending: 'Future[None]') -> None:
    def end(_: int, __: FrameType | None) -> None:
        if not ending.done():
            ending.set_result(None)

    def trip(_: int, __: FrameType | None) -> None:
        robot.want_stop('e_stop', True)

    def clear(_: int, __: FrameType | None) -> None:
        robot.want_stop('e_stop', False)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, trip)
    signal.signal(signal.SIGUSR2, clear)


def _write_ready(path: Path) -> None:
    """Write the file under another name first, so that nobody reads half of it."""
    draft = path.with_name(path.name + '.draft')
    draft.write_text(json.dumps({'pid': os.getpid()}), encoding='ascii')
    draft.replace(path)
