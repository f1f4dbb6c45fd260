"""Owns what all tests share: what failed, how long each file took, and what a crash leaves."""

from collections import Counter
import gc
import os
from pathlib import Path
import signal
from typing import Any

import pytest

WHY_CHARACTERS = 300


def pytest_collection_finish() -> None:
    """Keep the collector from looking again and again at what was imported, which stays."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write what failed and what got another try to a file, and print the slowest files."""
    path = os.environ.get('AWP_BRIDGE_FAILED_TESTS')
    if path is None or hasattr(terminalreporter.config, 'workerinput'):
        return  # a worker's reports reach the process that asked for it
    stats = terminalreporter.stats
    with Path(path).open('a', encoding='utf-8') as told:
        for kind in ('failed', 'error', 'rerun'):
            for report in stats.get(kind, ()):
                told.write(f'{kind}\t{report.nodeid}\t{_why(report)}\n')
    took_s: Counter[str] = Counter()
    for report in (each for reports in stats.values() for each in reports):
        if hasattr(report, 'duration'):
            took_s[report.nodeid.split('::')[0]] += report.duration
    terminalreporter.section('slowest files')
    for name, seconds in took_s.most_common(25):
        terminalreporter.write_line(f'{seconds:7.1f} s  {name}')


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """End what a worker has started that ended without an end, a hanging one above all."""
    if not error:
        return
    marks = {
        f'PYTEST_XDIST_WORKER={node.gateway.id}'.encode(),
        f'PYTEST_XDIST_TESTRUNUID={node.workerinput["testrunuid"]}'.encode(),
    }
    for process in Path('/proc').glob('[0-9]*'):
        try:
            if marks <= set((process / 'environ').read_bytes().split(b'\0')):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:  # it has ended, or is another user's
            continue


def _why(report: Any) -> str:
    """Tell in one line where and with what a test failed."""
    crash = getattr(report.longrepr, 'reprcrash', None)
    if crash is None:
        return ' '.join(str(report.longrepr).split())[-WHY_CHARACTERS:]
    said = ' '.join(crash.message.split())[:WHY_CHARACTERS]
    return f'{Path(crash.path).name}:{crash.lineno}: {said}'
