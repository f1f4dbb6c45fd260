"""The processes that ./scripts/evidence measures with find each other, run after run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.processes import Worker
from evidence import soak

pytestmark = pytest.mark.usefixtures('ros_domain_id')


def test_the_robot_of_the_evidence_notes_the_cancel_of_the_floor(tmp_path: Path) -> None:
    parts: dict[str, Worker] = {}
    try:
        for name in ('robot', 'hardware', 'floor'):
            parts[name] = Worker(name, f'evidence.{name}', tmp_path)
        assert parts['floor'].call('hold') is True
        said_ns = parts['hardware'].call('say', name='floor', engaged=True)
        found = parts['robot'].call('cancel', kind='floor', since_ns=said_ns, seconds=20.0)
        assert found is not None
        assert found[1] > said_ns
    finally:
        for part in parts.values():
            part.stop()


def test_a_short_soak_counts_what_it_sent_and_finds_nothing_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, 'SAMPLE_EVERY', 10)
    monkeypatch.setattr(soak, 'FLOOR_EVERY', 10)
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        found = soak.soak_once(tmp_path / str(number), 10, 20)
        if not found.disturbed or not all('silent' in each for each in found.disturbed):
            break  # else a busy machine kept a topic or the loop silent for too long
    assert not found.disturbed
    assert set(found.latency_ms) == set(range(1, 21)) == set(found.server_ms)
    assert all(each > 0 for each in found.own_ms.values())
    assert set(found.resident_kb) == set(found.floor_ms) == {10, 20}
    assert found.held['goals'] == found.held['held'] == found.held['engine_goals'] == 0
