"""The sabotage table fits the code, its page is current, and its judge is strict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import sys
from types import SimpleNamespace
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / 'scripts' / 'lib'))
sys.path.insert(0, str(REPOSITORY / 'test' / 'sabotage'))

import mechanisms  # noqa: E402
import sabotage  # noqa: E402
import saboteur  # noqa: E402


@pytest.mark.parametrize('row', mechanisms.MECHANISMS, ids=lambda row: row.name)
def test_every_switch_replaces_something_that_is_there(row: mechanisms.Mechanism) -> None:
    owner, name = mechanisms.place(row)
    assert name in owner.__dict__
    assert (REPOSITORY / row.test.partition('::')[0]).exists()


def test_every_test_stands_in_one_row() -> None:
    assert len(mechanisms.by_test()) == len(mechanisms.MECHANISMS)


def test_the_page_is_current() -> None:
    kept = sabotage.PAGE.read_text(encoding='utf-8')
    assert kept == sabotage.page(), 'draw it again: scripts/sabotage table'


def passes() -> None:
    pass


def notices() -> None:
    assert [1] == [2]


def breaks() -> None:
    raise KeyError('error')


def until() -> None:
    raise AssertionError('something did not come true within 10 s')


@pytest.mark.parametrize(
    ('test', 'said'),
    [
        (passes, 'the test passed'),
        (notices, ''),
        (breaks, 'the test failed by an error: KeyError'),
        (until, 'the test failed by a wait that ran out of time'),
        (lambda: pytest.skip('not here'), 'the test failed by an error: Skipped'),
    ],
)
def test_only_an_assertion_about_a_value_is_a_notice(test: Callable[[], None], said: str) -> None:
    found: Any = None
    try:
        test()
    except BaseException as error:  # noqa: BLE001 a skip is none of the ordinary ones
        found = pytest.ExceptionInfo.from_exception(error)
    text = saboteur._unnoticed(SimpleNamespace(excinfo=found))  # type: ignore[arg-type]
    assert text.startswith(said)
    assert bool(text) is bool(said)
