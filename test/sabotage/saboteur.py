"""
Owns the pytest plugin that plays the table: a test passes where it noticed the sabotage.

Each selected test runs with its mechanism disabled. It has noticed when it failed in its own body
by an assertion about a value; an error, a skip, or a wait that ran out of time is no notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mechanisms import by_test, Mechanism, place
import pytest

WAITS = {'eventually', 'until', 'wait', 'wait_timed', 'wait_until', '_wait', 'bounded'}


def _mechanism(item: pytest.Item) -> Mechanism | None:
    table = by_test()
    return table.get(item.nodeid) or table.get(item.nodeid.partition('[')[0])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Disable the mechanism around fixtures and test."""
    mechanism = _mechanism(item)
    if mechanism is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        owner, name = place(mechanism)
        raw = owner.__dict__[name]
        patch.setattr(owner, name, mechanism.make(getattr(raw, '__func__', raw)))
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Turn the verdict over: the assertion that failed is what was wanted."""
    outcome: Any = yield
    mechanism = _mechanism(item)
    if mechanism is None:
        return
    report: pytest.TestReport = outcome.get_result()
    if report.when == 'teardown':
        report.outcome, report.longrepr = 'passed', None  # what a sabotaged test leaves behind
    if report.when != 'call':
        return
    said = _unnoticed(call)
    report.outcome = 'failed' if said else 'passed'
    report.longrepr = f'{mechanism.name} is off ({mechanism.disabled}): {said}' if said else None


def _unnoticed(call: pytest.CallInfo[None]) -> str:
    """Say why a call is no notice, empty where it is one."""
    found = call.excinfo
    if found is None:
        return 'the test passed'
    if not isinstance(found.value, AssertionError):
        return f'the test failed by an error: {found.typename}: {found.value}'
    last = found.traceback[-1].name
    if last in WAITS:
        return f'the test failed by a wait that ran out of time: {found.value}'
    return ''
