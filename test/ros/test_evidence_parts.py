"""The processes that ./scripts/evidence measures with find each other, run after run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.processes import Worker

pytestmark = pytest.mark.usefixtures('ros_domain_id')


def test_the_robot_of_the_evidence_notes_the_cancel_of_the_floor(tmp_path: Path) -> None:
    parts: dict[str, Worker] = {}
    try:
        for name in ('robot', 'hardware', 'floor'):
            parts[name] = Worker(name, f'evidence.{name}', tmp_path)
        assert parts['floor'].call('hold') is True
        said_ns = parts['hardware'].call('say', name='floor', engaged=True)
        found = parts['robot'].call('cancel', kind='floor', since_ns=said_ns, seconds=5.0)
        assert found is not None
        assert found[1] > said_ns
    finally:
        for part in parts.values():
            part.stop()
