"""Runs the bench: ``scripts/bench`` sets up what it needs and calls this."""

from __future__ import annotations

import argparse
from datetime import datetime, UTC
import hashlib
from importlib.metadata import PackageNotFoundError, version
import json
import os
from pathlib import Path
import platform
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.aims import aims
from bench.cases import Cases
from bench.figures import Figures
from bench.processes import BenchError, CONFIG, REPOSITORY
from bench.report import table
from bench.rig import Rig, running_rig
from bench.step import Named

RESULT = REPOSITORY / 'bench' / 'results' / 'latest.json'

_PACKAGES = ('awp_ros_bridge', 'awp-sim', 'orjson', 'pydantic', 'websockets')


def say(text: str) -> None:
    """Print progress at once, beside the table."""
    print(f'[bench] {text}', file=sys.stderr, flush=True)


def _block(figures: Figures, steps: list[Named], rig: Rig) -> None:
    for step in steps:
        try:
            figures.add(step.run(), step.variant)
        except (BenchError, KeyError, ValueError) as error:
            text = '\n'.join(filter(None, [f'{step.name}: {error}', rig.dead()]))
            raise BenchError(text) from error


def _measure(arguments: argparse.Namespace, folder: Path) -> Figures:
    figures = Figures()
    say('starting the robot, two bridges, the agent and the floors')
    with running_rig(folder) as rig:
        cases = Cases(rig, arguments.seconds)
        steps = [s for s in cases.steps() if not arguments.only or arguments.only in s.name]
        if not steps:
            known = ', '.join(dict.fromkeys(step.name for step in cases.steps()))
            raise BenchError(f'no step is called like {arguments.only!r}; there are {known}')
        for number in range(1, arguments.blocks + 1):
            began = time.monotonic()
            # Every other block backward, so that drift and order fall on both sides alike.
            _block(figures, steps if number % 2 else steps[::-1], rig)
            took = time.monotonic() - began
            say(f'block {number} of {arguments.blocks}: {took:.0f} s')
    return figures


class Pressure:
    """How long something waited for a processor, from the making of this object on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._waited_us = self._read()

    @staticmethod
    def _read() -> int | None:
        try:
            line = Path('/proc/pressure/cpu').read_text(encoding='ascii').splitlines()[0]
        except (OSError, IndexError):
            return None  # a kernel without it
        return int(line.rpartition('total=')[2])

    def share(self) -> float | None:
        """Return the share of time in which a task of the machine waited, None if unknown."""
        now_us = self._read()
        if now_us is None or self._waited_us is None:
            return None
        return round((now_us - self._waited_us) * 1e-6 / (time.monotonic() - self._began), 3)


def _facts(blocks: int, seconds: float, pressure: Pressure) -> dict[str, Any]:
    versions: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return {
        'date': datetime.now(UTC).isoformat(timespec='seconds'),
        'blocks': blocks,
        'seconds': seconds,
        'ros_distro': os.environ.get('ROS_DISTRO', ''),
        'python': platform.python_version(),
        'kernel': platform.release(),
        'machine': platform.machine(),
        'cores': os.cpu_count(),
        'waited_for_cores': pressure.share(),
        'revision': _revision(),
        'config_sha256': hashlib.sha256(CONFIG.read_bytes()).hexdigest(),
        'versions': versions,
    }


def _revision() -> str | None:
    """Return the commit that was measured, with ``-dirty`` where files differ from it."""
    command = ['git', 'describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']
    try:
        found = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _write(path: Path, body: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + '.tmp')
    draft.write_text(json.dumps(body, indent=2) + '\n', encoding='utf-8')
    draft.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='scripts/bench', description=__doc__)
    parser.add_argument('--blocks', type=int, default=8, help='interleaved blocks, default 8')
    parser.add_argument('--only', default='', help='steps whose name holds this, such as action')
    parser.add_argument('--out', type=Path, default=RESULT, help='JSON file')
    parser.add_argument(
        '--seconds', type=float, default=2.0, help='length of a stretch of joint states, 1 to 8'
    )
    found = parser.parse_args()
    if found.blocks < 1 or not 1.0 <= found.seconds <= 8.0:
        parser.error('--blocks is 1 or more, --seconds 1 to 8')
    return found


def _interrupt(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    """Measure, print, write; 0 whatever the figures say."""
    arguments = _arguments()
    # Set by hand: a shell that runs this in the background would have it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)
    pressure = Pressure()
    with tempfile.TemporaryDirectory(prefix='awp-bench-') as scratch:
        try:
            figures = _measure(arguments, Path(scratch))
        except BenchError as error:
            say(str(error))
            return 1
        except KeyboardInterrupt:
            say('interrupted')
            return 130
    facts = _facts(arguments.blocks, arguments.seconds, pressure)
    reached = list(aims(figures))
    print(table(figures, reached, facts))
    body = {'facts': facts, 'aims': [a.dump() for a in reached], 'figures': figures.dump()}
    _write(arguments.out, body)
    say(f'written to {os.path.relpath(arguments.out)}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
