"""Owns the bridge's process: arguments, signals, exit codes."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
import gc
import json
import logging
import os
from pathlib import Path
import signal
import sys
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

if TYPE_CHECKING:
    from awp_ros_bridge.bridge.wiring import World

log = logging.getLogger('awp_ros_bridge')

LOG_BOUND_S = 1.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; None leaves the configuration's own value."""

    config: Path | None
    port: int | None
    ready_file: Path | None
    audit_directory: Path | None
    guardian: str | None
    log_level: str
    ros_args: list[str]
    tokens_file: Path | None = None


def parse(argv: Sequence[str]) -> Options:
    """Split the command line at ``--ros-args`` and read our part."""
    words, ros_words = cut(argv)
    parser = argparse.ArgumentParser(
        prog='bridge',
        description='Serves a ROS 2 robot as an AWP world over WebSocket.',
        epilog='exit codes: 0 ended as asked, 1 the bridge failed and stopped the robot, '
        '2 arguments, configuration, credentials or library versions',
    )
    parser.add_argument('--config', type=Path, help='configuration; default: the simulated arm')
    parser.add_argument('--port', type=_port, help='overrides server.port; 0 takes a free one')
    parser.add_argument('--ready-file', type=Path, help='JSON with url and pid, once it serves')
    parser.add_argument('--audit-directory', type=Path, help='overrides audit.directory')
    parser.add_argument(
        '--guardian', choices=('required', 'off'), help='overrides guardian of the configuration'
    )
    parser.add_argument('--tokens-file', type=Path, help='overrides server.tokens_file')
    parser.add_argument('--log-level', choices=LEVELS, help='default: that of --ros-args, or info')
    found = parser.parse_args(words)
    ros = ros_options(ros_words, 'awp_ros_bridge')
    config = found.config or (Path(ros['config']) if ros.get('config') else None)
    return Options(
        config,
        found.port,
        found.ready_file,
        found.audit_directory,
        found.guardian,
        found.log_level or ros.get('level', 'info'),
        ros_words,
        found.tokens_file,
    )


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f'{number} is no TCP port; write 0 to 65535')
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the bridge until it is asked to end; return the exit code."""
    options = parse(sys.argv[1:] if argv is None else argv)
    for number in ending_signals():
        signal.signal(number, _end_at_once)
    logs = LogWriter(sys.stderr)
    logs.start(options.log_level.upper())
    logging.getLogger('websockets').setLevel(logging.ERROR)
    try:
        code = _run(options, logs)
    except BaseException:
        logs.finish(LOG_BOUND_S)
        raise
    if not logs.finish(LOG_BOUND_S):
        os._exit(code)  # nobody reads the log: the interpreter would wait for it to be flushed
    return code


def _run(options: Options, logs: LogWriter) -> int:
    found = versions.problems()
    if found:
        return _refused('\n'.join(found))
    from awp_ros_bridge.bridge.wiring import Refused, World

    try:
        world = World.build(options)
    except Refused as refused:
        return _refused(refused)
    gc.collect()
    gc.freeze()  # a full collection holds every thread up, the safety thread too
    sys.setswitchinterval(0.0002)  # a busy thread must not hold the others up for 5 ms
    return asyncio.run(_serve(world, options, logs))


def _refused(why: object) -> int:
    print(why, file=sys.stderr)  # noqa: T201 said to the person who started it, at any log level
    return EXIT_USAGE


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """Follow a signal that comes before anything was started."""
    raise SystemExit(EXIT_OK)


async def _serve(world: World, options: Options, logs: LogWriter) -> int:
    from awp_ros_bridge.bridge.wiring import Refused

    loop = asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, world.request_end, signal.Signals(number).name)
    code, why = EXIT_OK, ''
    try:
        _announce(options, await world.start(loop))
        await world.ended.wait()
    except Refused as refused:
        code, why = EXIT_USAGE, str(refused)
    except Exception as error:
        log.critical('the bridge failed; the robot is being stopped', exc_info=error)
        world.fault = f'{type(error).__name__}: {error}'
    is_over = await world.stop()
    if world.fault:
        code, why = EXIT_FAULT, world.fault
    log.log(logging.ERROR if why else logging.INFO, 'ended with %d: %s', code, why or 'as asked')
    if not is_over:  # what hangs would hold the interpreter's own end up, or change the code
        logs.finish(LOG_BOUND_S)
        os._exit(code)
    return code


def _announce(options: Options, url: str) -> None:
    from awp_ros_bridge.bridge.wiring import Refused

    log.info('serving %s', url)
    if options.ready_file is None:
        return
    body = json.dumps({'url': url, 'pid': os.getpid()})
    part = options.ready_file.with_suffix('.part')
    try:
        part.write_text(body, encoding='utf-8')
        part.rename(options.ready_file)
    except OSError as error:
        raise Refused(f'--ready-file {options.ready_file}: {error.strerror}') from None
