"""Tests the reading of YAML: YAML 1.2 scalars, positions, duplicate keys, hostile documents."""

import math
from typing import Any

import pytest

from awp_ros_bridge.config.document import read


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('off', 'off'),
        ('yes', 'yes'),
        ('true', True),
        ('False', False),
        ('12', 12),
        ('-3', -3),
        ('0x1F', 31),
        ('0o17', 15),
        ('017', 17),
        ('1e3', 1000.0),
        ('.5', 0.5),
        ('-1.', -1.0),
        ('12:30', '12:30'),
        ('2026-01-01', '2026-01-01'),
        ('~', None),
        ('null', None),
        ("'5'", '5'),
        ('1_000', '1_000'),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    document = read(f'key: {text}')
    assert document.findings == []
    assert document.value == {'key': value}
    assert type(document.value['key']) is type(value)


def test_infinite_and_nan_are_read_for_the_model_to_refuse() -> None:
    value = read('[.inf, -.INF, .nan]').value
    assert value[0] == math.inf
    assert value[1] == -math.inf
    assert math.isnan(value[2])


def test_an_empty_value_is_none() -> None:
    assert read('key:').value == {'key': None}


def test_every_key_and_item_knows_its_line() -> None:
    document = read('a:\n  b: 1\n  c:\n    - x\n    - {d: 2,\n       e: 3}\n')
    assert document.lines == {
        (): 1,
        ('a',): 1,
        ('a', 'b'): 2,
        ('a', 'c'): 3,
        ('a', 'c', 0): 4,
        ('a', 'c', 1): 5,
        ('a', 'c', 1, 'd'): 5,
        ('a', 'c', 1, 'e'): 6,
    }
    assert document.line_of(('a', 'c', 1, 'missing', 'deeper')) == 5


def test_a_duplicate_key_is_found_and_the_first_value_kept() -> None:
    document = read('a: 1\nb: 2\na: 3\n')
    assert document.value == {'a': 1, 'b': 2}
    ((line, finding),) = document.findings
    assert line == 3
    assert finding.path == ('a',)
    assert finding.what == "key 'a' stands twice, first in line 1"


def test_a_merge_keeps_what_is_written_and_points_at_the_source() -> None:
    document = read('base: &b\n  x: 1\n  y: 2\nnew:\n  <<: *b\n  x: 3\n')
    assert document.value['new'] == {'x': 3, 'y': 2}
    assert document.lines[('new', 'y')] == 3
    assert document.findings == []


def test_a_merge_of_several_prefers_the_first() -> None:
    document = read('a: &a {x: 1}\nb: &b {x: 2, y: 2}\nnew: {<<: [*a, *b]}\n')
    assert document.value['new'] == {'x': 1, 'y': 2}


@pytest.mark.parametrize(
    ('text', 'what'),
    [
        ('new: {<<: 5}', '<< needs a mapping'),
        ('5: a', 'a key must be a text, found 5'),
        ('? [a, b]\n: c', 'a key must be a text, found a list or mapping'),
        ('a: &a {1: 2}\nb: {<<: *a}', 'a key must be a text, found 1'),
        ('a: !!binary aGk=', "the tag 'tag:yaml.org,2002:binary' is not supported"),
        ('a: !!set {x}', "the tag 'tag:yaml.org,2002:set' is not supported"),
        ('a: !local [x]', "the tag '!local' is not supported"),
        ('a: !!python/name:os.system x', 'is not supported'),
        ('a: !!int word', "'word' cannot be read as a number"),
        ('a: !!float word', "'word' cannot be read as a number"),
    ],
)
def test_what_is_not_plain_is_a_finding(text: str, what: str) -> None:
    document = read(text)
    assert what in document.findings[0][1].what
    assert document.findings[0][0] >= 1


@pytest.mark.parametrize(
    ('text', 'line'),
    [
        ('a: [1, 2', 1),
        ('a: 1\n b: 2\n', 2),
        ('a: *nobody', 1),
        ('a: "open', 1),
        ('a: 1\n---\nb: 2\n', 2),
        ('\ta: 1', 1),
        ('a: 1\nb: 2\nc: @', 3),
    ],
)
def test_syntax_is_one_finding_with_its_line(text: str, line: int) -> None:
    document = read(text)
    assert len(document.findings) == 1
    assert document.findings[0][0] == line
    assert document.findings[0][1].path == ()
    assert 'YAML cannot be read' in document.findings[0][1].what


def test_control_characters_are_a_finding() -> None:
    document = read('a: \x00')
    assert 'YAML cannot be read' in document.findings[0][1].what


def test_an_alias_that_contains_itself_ends() -> None:
    document = read('a: &a\n  b: *a\n')
    assert [f.what for _, f in document.findings if 'nested deeper' in f.what]


def test_aliases_that_multiply_end() -> None:
    levels = [f'l{n}: &l{n} [{", ".join([f"*l{n - 1}"] * 10)}]' for n in range(1, 9)]
    document = read('\n'.join(['l0: &l0 [x]', *levels]))
    assert len(document.findings) == 1
    assert '20000 values' in document.findings[0][1].what


@pytest.mark.parametrize('text', ['[' * 800, 'a: ' + '{b: ' * 800])
def test_deep_nesting_is_a_finding(text: str) -> None:
    document = read(text)
    assert document.findings


def test_an_empty_file_has_no_value() -> None:
    document: Any = read('# nothing\n')
    assert document.value is None
    assert document.findings == []
