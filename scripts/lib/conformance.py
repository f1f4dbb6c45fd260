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

from cell import CellError, DEFAULT_CONFIG, EMBEDDED_ROBOT, REPOSITORY, running_cell
from demo import look, wait_for_robot

from awp_ros_bridge.manifest import manifest_hash

FIXTURE = REPOSITORY / 'test' / 'conformance' / 'fixture.json'
KEPT = REPOSITORY / 'docs' / 'conformance'
ROBOTS = {'embedded': EMBEDDED_ROBOT, 'gazebo': 'gazebo_robot'}
RUN_S = 900


def say(text: str) -> None:
    """Print a line of our own at once."""
    print(f'[conformance] {text}', flush=True)


def _fixture(folder: Path, audit: Path) -> Path:
    fixture = json.loads(FIXTURE.read_text(encoding='utf-8'))
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
        with running_cell(folder, config=config, robot_module=ROBOTS[robot]) as cell:
            wait_for_robot(cell)
            manifest, _ = asyncio.run(look(cell))
            say(f'awp-conformance {version("awp-conformance")} against {cell.url}, {robot} robot')
            command = [suite, 'world', cell.url, '--fixture', str(_fixture(folder, cell.audit))]
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
        for name in ('bridge.log', 'guardian.log', 'sim_robot.log'):
            shutil.copy(folder / name, out / name)
    if dead:
        raise CellError(dead)
    path = out / 'report.json'
    if status not in (0, 1) or not path.exists():
        say(f'the suite ended with {status}')
        return 2
    report = json.loads(path.read_text(encoding='utf-8'))
    facts = _facts(report, config, manifest)
    (out / 'run.json').write_text(json.dumps(facts, indent=2) + '\n', encoding='utf-8')
    return _judge(report, facts, bool(only), compare and config == DEFAULT_CONFIG)


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
    report: dict[str, object], facts: dict[str, object], partial: bool, compare: bool
) -> int:
    say(f'outcomes: {facts["outcomes"]}')
    problems = _problems(report)
    if partial:
        problems = [p for p in problems if ': untested' not in p]
    elif compare:
        problems += _differences(facts)
    for problem in problems:
        say(problem)
    say('clean' if not problems else f'{len(problems)} requirements are not clean')
    return 1 if problems else 0


def _differences(facts: dict[str, object]) -> list[str]:
    """Return where the report in docs/conformance is not what this run found."""
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
    parser.add_argument('--only', action='append', default=[], help='run only this test')
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
