"""Owns the bridge's process: arguments, signals, exit codes."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
import json
import logging
import os
from pathlib import Path
import signal
import sys

from awp_ros_bridge.bridge import versions

log = logging.getLogger('awp_ros_bridge')

EXIT_OK = 0
EXIT_FAULT = 1  # the bridge itself failed; the robot was stopped
EXIT_USAGE = 2  # arguments, configuration, credentials or library versions

STOP_BOUND_S = 5.0
LEVELS = ('debug', 'info', 'warning', 'error')
ROS_LEVELS = {**dict(zip(LEVELS, LEVELS, strict=True)), 'warn': 'warning', 'fatal': 'error'}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; None leaves the configuration's own value."""

    config: Path | None
    port: int | None
    ready_file: Path | None
    audit_directory: Path | None
    log_level: str
    ros_args: list[str]


def parse(argv: Sequence[str]) -> Options:
    """Split the command line at ``--ros-args`` and read our part."""
    words = list(argv)
    cut = words.index('--ros-args') if '--ros-args' in words else len(words)
    parser = argparse.ArgumentParser(
        prog='bridge',
        description='Serves a ROS 2 robot as an AWP world over WebSocket.',
        epilog='exit codes: 0 ended as asked, 1 the bridge failed and stopped the robot, '
        '2 arguments, configuration, credentials or library versions',
    )
    parser.add_argument('--config', type=Path, help='configuration; default: the simulated arm')
    parser.add_argument('--port', type=int, help='overrides server.port; 0 takes a free one')
    parser.add_argument('--ready-file', type=Path, help='JSON with url and pid, once it serves')
    parser.add_argument('--audit-directory', type=Path, help='overrides audit.directory')
    parser.add_argument('--log-level', choices=LEVELS, help='default: that of --ros-args, or info')
    found = parser.parse_args(words[:cut])
    ros = _ros_options(words[cut:])
    config = found.config or (Path(ros['config']) if ros.get('config') else None)
    return Options(
        config,
        found.port,
        found.ready_file,
        found.audit_directory,
        found.log_level or ros.get('level', 'info'),
        words[cut:],
    )


def _ros_options(words: Sequence[str]) -> dict[str, str]:
    """Return the parameter ``config`` and the log level that stand among the ROS arguments."""
    found: dict[str, str] = {}
    for flag, value in pairwise(words):
        name, _, text = value.rpartition(':=')
        if flag in ('-p', '--param') and name in ('config', 'awp_ros_bridge:config'):
            found['config'] = text
        elif flag == '--log-level' and name in ('', 'awp_ros_bridge'):
            found['level'] = ROS_LEVELS.get(text.lower(), 'info')
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the bridge until it is asked to end; return the exit code."""
    options = parse(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(
        level=options.log_level.upper(),
        format='%(asctime)s %(levelname)s %(name)s: %(message)s',
        stream=sys.stderr,
    )
    logging.getLogger('websockets').setLevel(logging.ERROR)
    found = versions.problems()
    if found:
        print('\n'.join(found), file=sys.stderr)  # noqa: T201 no logging has a use here
        return EXIT_USAGE
    from awp_ros_bridge.bridge.wiring import Refused, World

    try:
        world = World.build(options)
    except Refused as refused:
        print(refused, file=sys.stderr)  # noqa: T201
        return EXIT_USAGE
    sys.setswitchinterval(0.0002)  # a busy thread must not hold the others up for 5 ms
    return asyncio.run(_serve(world, options))


async def _serve(world: object, options: Options) -> int:
    from awp_ros_bridge.bridge.wiring import World

    assert isinstance(world, World)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, world.request_end, signal.Signals(number).name)
    try:
        url = await world.start(loop)
    except OSError as error:
        log.error('cannot listen: %s', error)
        await world.stop(STOP_BOUND_S)
        return EXIT_USAGE
    _announce(options, url)
    await world.ended.wait()
    await world.stop(STOP_BOUND_S)
    return EXIT_FAULT if world.fault else EXIT_OK


def _announce(options: Options, url: str) -> None:
    log.info('serving %s', url)
    if options.ready_file is not None:
        body = json.dumps({'url': url, 'pid': os.getpid()})
        part = options.ready_file.with_suffix('.part')
        part.write_text(body, encoding='utf-8')
        part.rename(options.ready_file)
