"""Owns the evidence for the rows of the requirement matrix that the suite leaves to people."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import hashlib
from importlib.metadata import version
from importlib.resources import files
import json
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile
from typing import Any
from xml.etree import ElementTree

from awp_ros_bridge.config import load
from awp_ros_bridge.manifest import build, declare, manifest_hash
from awp_ros_bridge.ros.adapters.registry import infos
from awp_ros_bridge.wire.frames import decode_binary, FrameFault

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG = REPOSITORY / 'config' / 'sim_arm.yaml'
REVISION = '0.1-draft.12'

STALLED = (
    'test/unit/test_transport_delivery.py::'
    'test_a_stalled_receiver_leaves_at_most_one_undelivered_frame_per_channel',
)
VIOLATIONS = ('test/ros/test_bridge_limits.py', 'test/ros/test_bridge_force.py')
VIOLATION_TIMES = (
    'test/ros/test_bridge_limits_times.py::test_violations_fail_their_actions_in_time'
)
VIOLATIONS_N = 20
UNITS = re.compile(r'_(m|rad|s|ms|ns|mps|mps2|radps|radps2|n|nm|kg|hz)$|^(p_m|q)$', re.ASCII)
# Fields that carry no physical quantity, each with what it is instead.
WITHOUT_UNIT = {
    'aabb_m': 'metres',
    'action_id': 'identifier',
    'action_state': 'word',
    'at_rest': 'truth value',
    'detail': 'text',
    'embodiment': 'identifier',
    'frame': 'frame name',
    'in_safe_state': 'truth value',
    'input': 'name of a safety input',
    'joint_names': 'names',
    'meaning': 'word',
    'motion': 'word',
    'motion_permitted': 'truth value',
    'name': 'names',
    'parent': 'frame name',
    'points': 'list',
    'pose': 'object',
    'progress': 'fraction, 0 to 1',
    'stops': 'list',
    'transforms': 'list',
}


def _manifest() -> dict[str, Any]:
    adapters = infos()
    config = load(CONFIG, adapters).config
    if config is None:
        raise SystemExit(f'{CONFIG} does not load')
    return build(config, declare(config, adapters))


def vectors() -> dict[str, str]:
    """Decode the frame vectors of the suite (AWP-DAT-008): name to ``ok`` or what differed."""
    text = (files('awp_conformance') / '_spec' / 'frames.json').read_text(encoding='utf-8')
    out = {}
    for vector in json.loads(text)['vectors']:
        out[vector['name']] = _vector(vector)
    return out


def _vector(vector: dict[str, Any]) -> str:
    try:
        frame = decode_binary(bytes.fromhex(vector['hex']))
    except FrameFault as fault:
        return 'ok' if 'expect_error' in vector else f'refused: {fault}'
    if 'expect_error' in vector:
        return 'decoded, a refusal was expected'
    expected = vector['expect']
    found = {
        'channel_id': frame.channel_id,
        'seq': frame.seq,
        'ts_mono_ns': frame.ts_mono_ns,
        'payload_hex': frame.payload.hex(),
        'tick': frame.tick,
        'ts_sim_ns': frame.ts_sim_ns,
        'ts_send_ns': frame.ts_send_ns,
    }
    wrong = [k for k, v in found.items() if k in expected and expected[k] != v]
    return f'differs: {wrong}' if wrong else 'ok'


def _names(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, dict):
        return
    for name, inner in (schema.get('properties') or {}).items():
        yield name, f'{path}.{name}'
        yield from _names(inner, f'{path}.{name}')
    for key in ('items', 'additionalProperties'):
        yield from _names(schema.get(key), f'{path}[]')
    for key in ('prefixItems', 'anyOf', 'oneOf'):
        for inner in schema.get(key, ()):
            yield from _names(inner, path)


def units(manifest: dict[str, Any]) -> dict[str, list[str]]:
    """Sort every field of params and payloads by how it says its unit (AWP-UNI-001)."""
    found: dict[str, list[str]] = {'with unit': [], 'without a quantity': [], 'unexplained': []}
    rows = [
        *((d['type'], d['params_schema']) for d in manifest['action_schemas']),
        *((c['id'], c['schema']) for c in manifest['observation_channels']),
    ]
    for owner, schema in rows:
        for name, path in _names(schema, owner):
            if UNITS.search(name):
                found['with unit'].append(path)
            elif name in WITHOUT_UNIT:
                found['without a quantity'].append(f'{path} ({WITHOUT_UNIT[name]})')
            else:
                found['unexplained'].append(path)
    return {k: sorted(set(v)) for k, v in found.items()}


def stalled() -> dict[str, str]:
    """Run the tests with a receiver that stops reading (AWP-DAT-002, AWP-TRN-009)."""
    out = {}
    for test in STALLED:
        done = subprocess.run(
            [sys.executable, '-m', 'pytest', '-q', '--no-cov', '-p', 'no:cacheprovider', test],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        out[test] = 'passed' if done.returncode == 0 else 'FAILED'
    return out


def violations(manifest_sha256: str) -> dict[str, Any]:
    """Disturb the moving robot and measure what follows (AWP-ENV-003)."""
    with tempfile.TemporaryDirectory(prefix='awp-violations-') as scratch:
        report = Path(scratch) / 'report.xml'
        command = [sys.executable, '-m', 'pytest', '-q', '--no-cov', '-p', 'no:cacheprovider']
        command += ['--reruns', '2', '--junitxml', str(report), *VIOLATIONS, VIOLATION_TIMES]
        environment = {**os.environ, 'AWP_VIOLATIONS': str(VIOLATIONS_N)}
        subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
        )
        suite = ElementTree.parse(report).getroot().find('testsuite')
    if suite is None:
        raise SystemExit('the tests of AWP-ENV-003 left no report')
    found = {p.get('name', ''): p.get('value') for p in suite.iter('property')}
    times = {
        f'violation to {what}, ms': {
            key: float(found.get(f'violation_to_{what}_{key}') or 'nan')
            for key in ('n', 'p50', 'p95', 'max')
        }
        for what in ('failed', 'rest')
    }
    return {
        'disturbance': 'the arm moves 1.6 or 3 times as far and as fast as commanded; a hand '
        'turns its first joint; a force sensor tells too much',
        'sensor': 'joint_states at 100 Hz through forward kinematics; WrenchStamped at 100 Hz',
        'from': 'arrival of the first violating joint state at an observer of the robot',
        'to': 'action.status failed (envelope) at the agent; measured rest of the joints',
        'config_sha256': hashlib.sha256(CONFIG.read_bytes()).hexdigest(),
        'manifest_sha256': manifest_sha256,
        'tests': {case.get('name', ''): _outcome(case) for case in suite.iter('testcase')},
        **times,
    }


def _outcome(case: ElementTree.Element) -> str:
    spoiled = [c.tag for c in case if c.tag in ('failure', 'error', 'skipped')]
    return spoiled[0].upper() if spoiled else 'passed'


def named() -> dict[str, bool]:
    """Say where the draft revision is named (AWP-VER-009)."""
    places = ('README.md', 'docs/conformance/README.md', 'docs/conformance/report.json')
    texts = {p: REPOSITORY / p for p in places}
    return {
        p: path.exists() and REVISION in path.read_text(encoding='utf-8')
        for p, path in texts.items()
    }


def evidence(*, run_tests: bool) -> dict[str, Any]:
    """Collect the evidence for every manual row that is covered."""
    manifest = _manifest()
    out: dict[str, Any] = {
        'suite': f'awp-conformance {version("awp-conformance")}',
        'specification': REVISION,
        'manifest_sha256': manifest_hash(manifest),
        'AWP-DAT-008': vectors(),
        'AWP-UNI-001': units(manifest),
        'AWP-VER-009': named(),
    }
    if run_tests:
        out['AWP-DAT-002'] = out['AWP-TRN-009'] = stalled()
        out['AWP-ENV-003'] = violations(out['manifest_sha256'])
    return out


def _tests(found: dict[str, Any]) -> dict[str, str]:
    """Return the outcomes of the tests of AWP-ENV-003; none at all is no evidence."""
    tests: dict[str, str] = found['AWP-ENV-003']['tests']
    return tests or {'tests': 'none ran'}


def main() -> int:
    """Write the evidence; exit 1 when some of it speaks against the world."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = REPOSITORY / 'docs' / 'conformance' / 'evidence.json'
    parser.add_argument('--out', type=Path, default=default)
    args = parser.parse_args()
    found = evidence(run_tests=True)
    args.out.write_text(json.dumps(found, indent=2, sort_keys=True) + '\n', encoding='utf-8')
    bad = [
        *(f'AWP-DAT-008 {k}: {v}' for k, v in found['AWP-DAT-008'].items() if v != 'ok'),
        *(f'AWP-UNI-001 {path}' for path in found['AWP-UNI-001']['unexplained']),
        *(f'AWP-TRN-009 {k}' for k, v in found['AWP-TRN-009'].items() if v != 'passed'),
        *(f'AWP-ENV-003 {k}: {v}' for k, v in _tests(found).items() if v != 'passed'),
        *(f'AWP-VER-009 {k}' for k, v in found['AWP-VER-009'].items() if not v),
    ]
    print('\n'.join(bad) or 'nothing speaks against the manual rows')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
