"""Owns what all tests share: what failed and how long each file took, where somebody asks."""

from collections import Counter
import os
from pathlib import Path
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write what failed and what got another try to a file, and print the slowest files."""
    path = os.environ.get('AWP_BRIDGE_FAILED_TESTS')
    if path is None:
        return
    stats = terminalreporter.stats
    lines = [
        f'{kind} {report.nodeid}'
        for kind in ('failed', 'error', 'rerun')
        for report in stats.get(kind, ())
    ]
    if lines:
        Path(path).write_text('\n'.join(lines) + '\n', encoding='utf-8')
    took_s: Counter[str] = Counter()
    for report in (each for reports in stats.values() for each in reports):
        if hasattr(report, 'duration'):
            took_s[report.nodeid.split('::')[0]] += report.duration
    terminalreporter.section('slowest files')
    for name, seconds in took_s.most_common(25):
        terminalreporter.write_line(f'{seconds:7.1f} s  {name}')
