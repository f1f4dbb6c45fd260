"""The evidence in docs/conformance is what the code says today."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
import sys

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT = REPOSITORY / 'docs' / 'conformance'

pytest.importorskip('awp_conformance', reason='the suite is a test dependency; run scripts/setup')
sys.path.insert(0, str(REPOSITORY / 'scripts' / 'lib'))

import manual_rows  # noqa: E402


@pytest.fixture(scope='module')
def fresh() -> dict[str, object]:
    return manual_rows.evidence(run_tests=False)


def test_kept_evidence_is_current(fresh: dict[str, object]) -> None:
    kept = json.loads((KEPT / 'evidence.json').read_text(encoding='utf-8'))
    assert {k: kept[k] for k in fresh} == fresh


def test_every_frame_vector_is_decoded_or_refused_as_it_must(fresh: dict[str, object]) -> None:
    assert set(fresh['AWP-DAT-008'].values()) == {'ok'}  # type: ignore[attr-defined]


def test_no_field_is_without_unit_or_explanation(fresh: dict[str, object]) -> None:
    assert fresh['AWP-UNI-001']['unexplained'] == []  # type: ignore[index]


def test_the_report_belongs_to_this_configuration_and_manifest(fresh: dict[str, object]) -> None:
    run = json.loads((KEPT / 'run.json').read_text(encoding='utf-8'))
    config = REPOSITORY / 'config' / 'sim_arm.yaml'
    assert run['config_sha256'] == hashlib.sha256(config.read_bytes()).hexdigest()
    assert run['manifest_sha256'] == fresh['manifest_sha256']
    assert run['suite'] == fresh['suite']


def test_the_report_is_clean() -> None:
    run = json.loads((KEPT / 'run.json').read_text(encoding='utf-8'))
    assert not set(run['outcomes']) & {'fail', 'warn', 'untested'}


def test_violations_were_measured_often_enough_and_end_their_actions(
    fresh: dict[str, object],
) -> None:
    """AWP-ENV-003, with the limits that the manifest declares today."""
    row = json.loads((KEPT / 'evidence.json').read_text(encoding='utf-8'))['AWP-ENV-003']
    assert row['manifest_sha256'] == fresh['manifest_sha256']
    assert set(row['tests'].values()) == {'passed'}
    for what in ('failed', 'rest'):
        times = row[f'violation to {what}, ms']
        assert times['n'] >= manual_rows.VIOLATIONS_N
        assert 0.0 < times['p50'] <= times['p95'] <= times['max']
