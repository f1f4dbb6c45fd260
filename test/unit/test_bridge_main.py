"""The command line, the library check and the names of the bridge process."""

from __future__ import annotations

from pathlib import Path

import pytest

from awp_ros_bridge.bridge.ids import SecretIds
from awp_ros_bridge.bridge.main import parse
from awp_ros_bridge.process import versions
from awp_ros_bridge.ros.goal_marks import BRIDGE


def test_own_arguments_win_over_ros_arguments() -> None:
    own = ['--config', 'a.yaml', '--log-level', 'debug']
    options = parse([*own, '--ros-args', '-p', 'config:=b'])
    assert options.config == Path('a.yaml')
    assert options.log_level == 'debug'
    assert options.ros_args == ['--ros-args', '-p', 'config:=b']


@pytest.mark.parametrize(
    ('level', 'expected'), [('warn', 'warning'), ('FATAL', 'error'), ('debug', 'debug')]
)
def test_ros_log_level_counts_where_no_own_is_given(level: str, expected: str) -> None:
    options = parse(['--ros-args', '--log-level', level, '-p', 'config:=/x/b.yaml'])
    assert options.log_level == expected
    assert options.config == Path('/x/b.yaml')


def test_log_level_of_another_logger_is_not_ours() -> None:
    assert parse(['--ros-args', '--log-level', 'rcl:=debug']).log_level == 'info'


def test_old_and_missing_libraries_are_named_with_what_was_found() -> None:
    found = versions.problems({'websockets': '10.4', 'pydantic': '2.7.0', 'jsonschema': None})
    assert len(found) == 2
    assert 'websockets 10.4 was found, 14.1 or newer' in found[0]
    assert 'jsonschema is not installed' in found[1]


def test_libraries_of_this_environment_are_new_enough() -> None:
    assert versions.problems() == []


def test_names_are_unguessable_and_goals_carry_the_prefix() -> None:
    ids = SecretIds()
    assert ids.goal_id().startswith(BRIDGE)
    assert len(ids.goal_id()) == 32
    assert ids.token('st') != ids.token('st')
    assert len(ids.session_id()) == len('sess_') + 32
