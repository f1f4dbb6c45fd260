"""Every test that the table of field cases names exists, and every numbered test stands in it."""

from __future__ import annotations

from pathlib import Path
import re

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / 'docs' / 'field-cases.md'
NAMED = re.compile(r'`(\w+\.py)::(\w+)`')
NUMBERED = re.compile(r'^(?:async )?def (test_f\d+\w*)', re.MULTILINE)
CASE = re.compile(r'_f(\d+)(?=_)')


def _numbers_of(test: str) -> list[str]:
    return CASE.findall(test.removeprefix('test').replace('_and', ''))


def names_in(file: str) -> set[str]:
    (path,) = (REPOSITORY / 'test').glob(f'*/{file}')
    return set(re.findall(r'^(?:async )?def (test_\w+)', path.read_text('utf-8'), re.MULTILINE))


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall(PAGE.read_text('utf-8'))
    assert len(named) > 50
    missing = [f'{file}::{test}' for file, test in named if test not in names_in(file)]
    assert not missing


def test_every_test_with_a_number_stands_in_the_row_of_its_case() -> None:
    rows: dict[str, str] = {}
    for line in PAGE.read_text('utf-8').splitlines():
        if line.startswith('| F'):
            number = line.split('|')[1].strip().removeprefix('F')
            assert number not in rows, f'F{number} has two rows'
            rows[number] = line
    lost = []
    for path in sorted((REPOSITORY / 'test' / 'ros').glob('test_*.py')):
        for test in NUMBERED.findall(path.read_text('utf-8')):
            numbers = _numbers_of(test)
            lost += [f'F{n}: {path.name}::{test}' for n in numbers if test not in rows.get(n, '')]
    assert not lost


STOPPING = (
    'Goals, cancels and their endings',
    'Servers that die, restart or are not there',
    'Clocks',
    'Reconnection',
    'Safety signals',
)


def test_every_case_of_stopping_has_a_test_of_its_number() -> None:
    chapters = PAGE.read_text('utf-8').split('\n## ')
    rows = [
        row
        for chapter in chapters
        if chapter.startswith(STOPPING)
        for row in chapter.splitlines()
        if row.startswith('| F')
    ]
    assert len(rows) > 35
    lost = []
    for row in rows:
        number = row.split('|')[1].strip().removeprefix('F')
        numbers = [n for _, test in NAMED.findall(row) for n in _numbers_of(test)]
        lost += [] if number in numbers else [f'F{number}']
    assert not lost


def test_every_row_names_a_test() -> None:
    rows = [r for r in PAGE.read_text('utf-8').splitlines() if r.startswith('| F')]
    assert [r for r in rows if not NAMED.search(r)] == []
