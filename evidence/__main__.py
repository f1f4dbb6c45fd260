"""Runs the evidence: ``scripts/evidence`` sets up what it needs and calls this."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import nullcontext
import json
import os
from pathlib import Path
import signal
import sys
import tempfile
import time
from typing import Any

from awp_ros_bridge.config import BridgeConfig, load
from bench.__main__ import Pressure
from bench.processes import BenchError
from evidence import report, soak
from evidence.load import AGENTS, IMAGE_HZ
from evidence.measures import judge, judged, Limits, missed
from evidence.rig import CONFIG, loaded, Rig, running_rig
from evidence.rounds import measure, Rounds

CONDITIONS = ('idle', 'loaded')
COUNTS = {
    'e_stop': 300,
    'watchdog': 15,
    'stalled': 25,
    'close': 25,
    'takeover': 25,
    'killed': 10,
    'violation': 15,
}
QUICK = {
    'e_stop': 15,
    'watchdog': 1,
    'stalled': 2,
    'close': 2,
    'takeover': 2,
    'killed': 1,
    'violation': 1,
}
LEASE_MS = 300.0
RUN_S = 1500.0


def say(text: str) -> None:
    """Print progress at once."""
    print(f'[evidence] {text}', file=sys.stderr, flush=True)


def _configuration() -> BridgeConfig:
    from awp_ros_bridge.ros.adapters.registry import registry

    found = load(CONFIG, registry().infos()).config
    if found is None:
        raise SystemExit(f'{CONFIG} does not load: run awp check')
    return found


def _limits(config: BridgeConfig) -> Limits:
    return Limits(
        watchdog_ms=float(config.safety.watchdog_ms),
        max_abort_ms=float(config.actions['move_to_pose'].max_abort_ms),
        lease_ms=LEASE_MS,
    )


async def _play(rig: Rig, counts: dict[str, int]) -> Rounds:
    rounds = Rounds(rig)
    async with asyncio.timeout(RUN_S):
        try:
            await measure(rounds, counts, say, is_guarded=rig.is_guarded)
        except AssertionError as error:
            raise BenchError('\n'.join(filter(None, [str(error), rig.dead()]))) from error
    return rounds


def _condition(name: str, rig: Rig, counts: dict[str, int], limits: Limits) -> dict[str, Any]:
    load_ = loaded(rig, AGENTS) if name == 'loaded' else nullcontext({})
    with load_ as parts:
        pressure, began_s = Pressure(), time.monotonic()
        before = {part: worker.call('heard') for part, worker in parts.items() if part != 'camera'}
        rounds = asyncio.run(_play(rig, counts))
        took_s = time.monotonic() - began_s
        facts: dict[str, Any] = {'waited_for_cores': pressure.share(), 'nice': os.nice(0)}
        if parts:
            heard = {part: parts[part].call('heard') - count for part, count in before.items()}
            facts['images_hz'] = round(heard['reader'] / took_s, 1)
            facts['agent_messages_hz'] = round(heard['crowd'] / took_s, 1)
            say(f'load: images at {facts["images_hz"]} Hz of {IMAGE_HZ:g}, '
                f'{facts["agent_messages_hz"]} messages a second to {AGENTS} agents')  # fmt: skip
    return {**facts, 'measures': judged(rounds.samples, name, limits)}


def times(arguments: argparse.Namespace) -> int:
    """Measure the reaction times; 1 where a bound is not kept."""
    config = _configuration()
    limits = _limits(config)
    counts = QUICK if arguments.quick else COUNTS
    wanted = [c for c in CONDITIONS if arguments.only in (None, c)]
    conditions: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix='awp-evidence-') as scratch:
        for name in wanted:
            folder = (arguments.keep or Path(scratch)) / name
            folder.mkdir(parents=True, exist_ok=True)
            say(f'{name}: starting the robot, the bridge, the safety hardware and the floor')
            with running_rig(folder) as rig:
                conditions[name] = _condition(name, rig, counts, limits)
    promised = {'watchdog_ms': limits.watchdog_ms, 'max_abort_ms': limits.max_abort_ms}
    body = {
        'machine': report.machine(),
        'configuration': report.configuration(CONFIG, promised),
        'conditions': conditions,
    }
    for name, found in conditions.items():
        print(f'\n{name}\n' + '\n'.join(report.table(found['measures'])))
    out = arguments.out or (None if arguments.quick else report.KEPT)
    if out is not None:
        body = report.merged(out, body)
        report.write(out, report.text_of(body))
        if out == report.KEPT:
            report.draw(body)
    problems = missed(conditions)
    for problem in problems:
        say(f'not kept: {problem}')
    return 1 if problems else 0


def page(_: argparse.Namespace) -> int:
    """Judge and draw again what is kept."""
    body = json.loads(report.KEPT.read_text(encoding='utf-8'))
    config = body['configuration']
    limits = Limits(config['watchdog_ms'], config['max_abort_ms'], LEASE_MS)
    for name, found in body['conditions'].items():
        judge(found['measures'], name, limits)
    report.write(report.KEPT, report.text_of(body))
    report.draw(body)
    return 1 if missed(body['conditions']) else 0


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='scripts/evidence', description=__doc__)
    verbs = parser.add_subparsers(dest='verb', required=True)
    verb = verbs.add_parser('times', help='reaction times, idle and under load')
    verb.add_argument('--quick', action='store_true', help='few samples, nothing kept')
    verb.add_argument('--only', choices=CONDITIONS, help='one condition; the other is kept')
    verb.add_argument('--out', type=Path, help='JSON file')
    verb.add_argument('--keep', type=Path, help='folder that keeps the logs of every process')
    verb.set_defaults(run=times)
    soak.add_verb(verbs)
    verb = verbs.add_parser('page', help='draw the page again from the JSON file')
    verb.set_defaults(run=page)
    return parser.parse_args(words)


def _interrupt(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    """Run one verb; ``times`` when none is named."""
    words = sys.argv[1:]
    if not words or words[0].startswith('--'):
        words.insert(0, 'times')
    arguments = _arguments(words)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        found: int = arguments.run(arguments)
    except BenchError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say('interrupted')
        return 130
    return found


if __name__ == '__main__':
    sys.exit(main())
