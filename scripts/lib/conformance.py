"""Owns the conformance run: the public suite against the running bridge, and what it found."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
import hashlib
from importlib.metadata import version
import json
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from cell import CellError, DEFAULT_CONFIG, EMBEDDED_ROBOT, REPOSITORY, running_cell
from demo import look, wait_for_robot
import yaml

from awp_ros_bridge.manifest import manifest_hash

FIXTURE = REPOSITORY / 'test' / 'conformance' / 'fixture.json'
KEPT = REPOSITORY / 'docs' / 'conformance'
ROBOTS = {'embedded': EMBEDDED_ROBOT, 'gazebo': 'gazebo_robot'}
RUN_S = 900
# The suite's agent is silent while it checks a manifest, for a second of a core, and the takeover
# that it then asks for must find the move under way. Where it shares the cores with physics it
# gets more time to speak, and moves of its own that outlast it.
GAZEBO_MOVES = FIXTURE.with_name('gazebo.json')
GAZEBO_WATCHDOG_MS = 3000
GAZEBO_MAX_DURATION_MS = 18000
# What the kept run, with the embedded robot, must have in common with one in Gazebo.
OF_EVERY_ROBOT = ('suite', 'specification', 'outcomes')


def say(text: str) -> None:
    """Print a line of our own at once."""
    print(f'[conformance] {text}', flush=True)


def config_for_gazebo(shipped: str) -> str:
    """Return a configuration for the robot in Gazebo: the given one with more time for agents."""
    config: dict[str, Any] = yaml.safe_load(shipped)
    config['safety']['watchdog_ms'] = GAZEBO_WATCHDOG_MS
    config['actions']['move_to_pose']['max_duration_ms'] = GAZEBO_MAX_DURATION_MS
    return yaml.safe_dump(config, sort_keys=False)


def fixture_for(robot: str) -> dict[str, Any]:
    """Return the fixture of the suite for a robot: where to move, and how fast."""
    fixture: dict[str, Any] = json.loads(FIXTURE.read_text(encoding='utf-8'))
    if robot == 'gazebo':
        fixture.update(json.loads(GAZEBO_MOVES.read_text(encoding='utf-8')))
    return fixture


def _config(folder: Path, config: Path, robot: str) -> Path:
    if robot != 'gazebo':
        return config
    path = folder / config.name
    path.write_text(config_for_gazebo(config.read_text(encoding='utf-8')), encoding='utf-8')
    return path


def _fixture(folder: Path, robot: str, audit: Path) -> Path:
    fixture = fixture_for(robot)
    fixture['audit_dir'] = str(audit)
    path = folder / 'fixture.json'
    path.write_text(json.dumps(fixture, indent=2), encoding='utf-8')
    return path


def _problems(report: dict[str, object]) -> list[str]:
    """Return what keeps the run from being clean: failures, warnings, untested in scope."""
    found = []
    for row in _rows(report):
        if row.get('outcome') in ('fail', 'warn', 'untested'):
            detail = row.get('detail') or row.get('reason') or row.get('findings') or ''
            found.append(f'{row["id"]}: {row["outcome"]}: {json.dumps(detail)[:400]}')
    return found


def _rows(report: dict[str, object]) -> list[dict[str, object]]:
    rows = report.get('requirements') or report.get('results') or []
    if isinstance(rows, dict):
        return [{'id': key, **value} for key, value in rows.items()]
    return list(rows)  # type: ignore[call-overload]


def run(
    mode: str, out: Path, only: list[str], config: Path, *, robot: str, compare: bool
) -> int:
    """Run the suite once; return 0 when nothing failed, warned or stayed untested."""
    out.mkdir(parents=True, exist_ok=True)
    suite = shutil.which('awp-conformance') or str(
        Path(sys.executable).with_name('awp-conformance')
    )
    with tempfile.TemporaryDirectory(prefix='awp-conformance-') as scratch:
        folder = Path(scratch)
        used = _config(folder, config, robot)
        try:
            with running_cell(folder, config=used, robot_module=ROBOTS[robot]) as cell:
                wait_for_robot(cell)
                manifest, _ = asyncio.run(look(cell))
                judge = f'awp-conformance {version("awp-conformance")}'
                say(f'{judge} against {cell.url}, {robot} robot')
                fixture = _fixture(folder, robot, cell.audit)
                command = [suite, 'world', cell.url, '--fixture', str(fixture)]
                command += ['--mode', mode, '--out', str(out)]
                command += [a for test in only for a in ('--only', test)]
                environment = {
                    **os.environ,
                    'AWP_TOKEN': cell.token,
                    'SIM_ROBOT_PID': str(cell.robot_pid),
                }
                status = subprocess.run(
                    command, env=environment, check=False, timeout=RUN_S
                ).returncode
                dead = cell.dead()
        finally:
            for log in folder.glob('*.log'):
                shutil.copy(log, out / log.name)
    if dead:
        raise CellError(dead)
    path = out / 'report.json'
    if status not in (0, 1) or not path.exists():
        say(f'the suite ended with {status}')
        return 2
    report = json.loads(path.read_text(encoding='utf-8'))
    facts = _facts(report, config, manifest)
    (out / 'run.json').write_text(json.dumps(facts, indent=2) + '\n', encoding='utf-8')
    compared = OF_EVERY_ROBOT if robot == 'gazebo' else tuple(facts)
    keys = compared if compare and config == DEFAULT_CONFIG else ()
    return _judge(report, facts, bool(only), keys)


def _facts(
    report: dict[str, object], config: Path, manifest: dict[str, object]
) -> dict[str, object]:
    """Return what a later run is compared with."""
    counts = Counter(str(row.get('outcome')) for row in _rows(report))
    return {
        'suite': f'awp-conformance {version("awp-conformance")}',
        'specification': report.get('specification'),
        'config': str(config.relative_to(REPOSITORY)) if config.is_relative_to(REPOSITORY) else '',
        'config_sha256': hashlib.sha256(config.read_bytes()).hexdigest(),
        'manifest_sha256': manifest_hash(manifest),
        'outcomes': dict(sorted(counts.items())),
    }


def _judge(
    report: dict[str, object], facts: dict[str, object], partial: bool, compared: tuple[str, ...]
) -> int:
    say(f'outcomes: {facts["outcomes"]}')
    problems = _problems(report)
    if not any(row.get('outcome') in ('pass', 'fail') for row in _rows(report)):
        problems = ['nothing was tested; --only takes names without the mode, such as queue']
    elif partial:
        problems = [p for p in problems if ': untested' not in p]
    else:
        problems += _differences({key: facts[key] for key in compared})
    for problem in problems:
        say(problem)
    say('clean' if not problems else f'{len(problems)} things are not clean')
    return 1 if problems else 0


def _differences(facts: dict[str, object]) -> list[str]:
    """Return where the report in docs/conformance is not what this run found."""
    if not facts:
        return []
    path = KEPT / 'run.json'
    if not path.exists():
        return [f'{path.relative_to(REPOSITORY)} is missing; make it with --keep']
    kept = json.loads(path.read_text(encoding='utf-8'))
    return [
        f'docs/conformance says {key} {kept.get(key)}, this run {value}; renew it with --keep'
        for key, value in facts.items()
        if kept.get(key) != value
    ]


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog='scripts/conformance', description=__doc__)
    parser.add_argument('--mode', default='streaming', choices=['streaming'])
    parser.add_argument('--robot', default='embedded', choices=list(ROBOTS))
    parser.add_argument('--out', type=Path, help='folder for report.json, run.json and traces')
    parser.add_argument(
        '--keep', action='store_true', help='renew the report in docs/conformance by this run'
    )
    parser.add_argument('--only', action='append', default=[], help='only this test, as queue')
    parser.add_argument('--config', type=Path, default=DEFAULT_CONFIG)
    args = parser.parse_args()
    if args.keep and args.robot != 'embedded':
        parser.error('docs/conformance keeps the run with the embedded robot; leave out --keep')
    with tempfile.TemporaryDirectory(prefix='awp-conformance-out-') as scratch:
        try:
            out = args.out or Path(scratch)
            config = args.config.resolve()
            status = run(
                args.mode, out, args.only, config, robot=args.robot, compare=not args.keep
            )
            if args.keep and not args.only and status == 0:
                for name in ('report.json', 'run.json'):
                    shutil.copy(out / name, KEPT / name)
            return status
        except CellError as error:
            say(str(error))
            return 2


if __name__ == '__main__':
    sys.exit(main())
