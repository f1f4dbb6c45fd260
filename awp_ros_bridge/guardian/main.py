"""
Owns the guardian's process: arguments, signals, exit codes.

It outlives SIGINT, SIGTERM and SIGHUP, which reach it together with the bridge, until the bridge
has said goodbye or its lease has ended, at most 8 s.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import json
import logging
import os
from pathlib import Path
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

from awp_ros_bridge.process import versions
from awp_ros_bridge.process.arguments import (
    cut,
    ending_signals,
    EXIT_FAULT,
    EXIT_OK,
    EXIT_USAGE,
    LEVELS,
    ros_options,
)
from awp_ros_bridge.process.logs import LogWriter
from awp_ros_bridge.process.shipped import shipped_config

if TYPE_CHECKING:
    from awp_ros_bridge.config import BridgeConfig

log = logging.getLogger('awp_ros_bridge.guardian')

NODE = 'awp_ros_guardian'
BRIDGE = 'awp_ros_bridge'
STOP_BOUND_S = 1.0
LOG_BOUND_S = 1.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    config: Path | None
    bridge: str
    ready_file: Path | None
    log_level: str
    ros_args: list[str]


def parse(argv: Sequence[str]) -> Options:
    """Split the command line at ``--ros-args`` and read our part."""
    words, ros_words = cut(argv)
    parser = argparse.ArgumentParser(
        prog='guardian',
        description='Stops the robot when the bridge dies. Start it beside the bridge, with the '
        'same configuration, namespace and remappings.',
        epilog='exit codes: 0 ended as asked, 1 it failed, or a goal could not be cancelled, '
        '2 arguments, configuration or library versions',
    )
    parser.add_argument('--config', type=Path, help='configuration of the bridge')
    parser.add_argument('--bridge', default=BRIDGE, help='name of the node of the bridge')
    parser.add_argument('--ready-file', type=Path, help='JSON with the pid, once it guards')
    parser.add_argument('--log-level', choices=LEVELS, help='default: that of --ros-args, or info')
    found = parser.parse_args(words)
    ros = ros_options(ros_words, NODE)
    config = found.config or (Path(ros['config']) if ros.get('config') else None)
    level = found.log_level or ros.get('level', 'info')
    return Options(config, found.bridge, found.ready_file, level, ros_words)


def main(argv: Sequence[str] | None = None) -> int:
    """Guard until asked to end and nothing is left to guard; return the exit code."""
    options = parse(sys.argv[1:] if argv is None else argv)
    request = _Request()
    for number in ending_signals():
        signal.signal(number, request.on_signal)
    logs = LogWriter(sys.stderr)
    logs.start(options.log_level.upper())
    try:
        code = _run(options, request)
    finally:
        written = logs.finish(LOG_BOUND_S)
    if not written:
        os._exit(code)  # nobody reads the log: the interpreter would wait for it to be flushed
    return code


class _Request:
    """The request to end; a handler of signals takes no lock."""

    def __init__(self) -> None:
        self.is_made = False
        self.follow: Callable[[], None] = lambda: None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        self.is_made = True
        self.follow()


def _run(options: Options, request: _Request) -> int:
    found = versions.problems()
    if found:
        return _refused('\n'.join(found))
    config = _config(options)
    if isinstance(config, str):
        return _refused(config)
    from rclpy.exceptions import ParameterException

    from awp_ros_bridge.guardian.watch import Watch

    over = threading.Event()
    try:
        watch = Watch(config, options.bridge, options.ros_args, over.set)
    except (RuntimeError, ValueError, ParameterException) as error:
        return _refused(f'ROS does not start, look at --ros-args: {error}')
    watch.start()
    request.follow = watch.ask_to_end
    if request.is_made:
        watch.ask_to_end()
    log.info('guarding bridges on %s, servers: %s', watch.topic, ', '.join(watch.servers))
    if options.ready_file is not None:
        _say_ready(options.ready_file)
    over.wait()
    watch.stop(STOP_BOUND_S)
    if watch.failure is not None:
        log.error('ended with %d: %s', EXIT_FAULT, watch.failure)
        return EXIT_FAULT
    if watch.failed_stops:
        log.error('ended with %d: %d goals not cancelled', EXIT_FAULT, watch.failed_stops)
        return EXIT_FAULT
    log.info('ended with %d: as asked', EXIT_OK)
    return EXIT_OK


def _config(options: Options) -> BridgeConfig | str:
    """Return the configuration, or why there is none."""
    from awp_ros_bridge.config import load

    path = options.config or shipped_config()
    if path is None:
        return 'no --config given, and the shipped one is not installed'
    result = load(path)
    if result.config is None:
        return '\n'.join(str(problem) for problem in result.errors)
    return result.config


def _refused(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201 said to the person who started it, at any log level
    return EXIT_USAGE


def _say_ready(path: Path) -> None:
    part = path.with_suffix('.part')
    part.write_text(json.dumps({'pid': os.getpid()}), encoding='utf-8')
    part.rename(path)
