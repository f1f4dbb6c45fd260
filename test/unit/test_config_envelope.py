"""The rules between limits and what they are measured with, and what the manifest says of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from config_sample import ADAPTERS, config, drop, FakeAdapter, loaded, put, said
import pytest

from awp_ros_bridge.config import MeasuredByJoints, MeasuredByOdometry, MeasuredByTf
from awp_ros_bridge.manifest.build import envelope_entry

Json = dict[str, Any]

ENVELOPE = 'embodiments/arm_01/envelope'
CHAIN = {'urdf': {'topic': 'robot_description'}, 'base_frame': 'base', 'tip_frame': 'tool0'}
SOURCES = (
    'add measured: {source: joint_states}, {source: odometry, topic: odom} or '
    '{source: tf, tip: tool0}, or write command_check (AWP-ENV-005)'
)


def all_of(*changes: Callable[[Json], object]) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        for each in changes:
            each(data)

    return change


def measured(how: str = 'both', source: Json | None = None) -> Callable[[Json], None]:
    """Return a change that measures the sample's limits."""
    return all_of(
        put('embodiments/arm_01/kinematics', CHAIN),
        put(f'{ENVELOPE}/enforcement', how),
        put(f'{ENVELOPE}/measured', source or {'source': 'joint_states'}),
    )


ERRORS = [
    (
        put(f'{ENVELOPE}/on_violation', 'clamp'),
        'on_violation: clamp would send another motion than the agent asked for; this version '
        'does not; write reject (AWP-ENV-002)',
    ),
    (
        put(f'{ENVELOPE}/enforcement', 'both'),
        'enforcement: both needs something to measure spatial and max_velocity_mps with; '
        + SOURCES,
    ),
    (
        all_of(put(f'{ENVELOPE}/enforcement', 'measured'), drop(f'{ENVELOPE}/spatial')),
        'enforcement: measured needs something to measure max_velocity_mps with; ' + SOURCES,
    ),
    (
        put(ENVELOPE, {'max_action_rate_hz': 5.0, 'enforcement': 'both'}),
        'enforcement: both has no limit to measure; add spatial, max_velocity_mps or '
        'max_force_n, or write command_check',
    ),
    (
        all_of(measured(), put(f'{ENVELOPE}/enforcement', 'command_check')),
        'measured: it measures nothing: enforcement is command_check; '
        'write enforcement: both and a limit, or remove it (AWP-ENV-005)',
    ),
    (
        all_of(
            put(ENVELOPE, {'max_force_n': 50.0, 'enforcement': 'both', 'force': {'topic': 'ft'}}),
            put('embodiments/arm_01/kinematics', CHAIN),
            put(f'{ENVELOPE}/measured', {'source': 'joint_states'}),
        ),
        'measured: it measures nothing: no limit of motion; '
        'write enforcement: both and a limit, or remove it (AWP-ENV-005)',
    ),
    (
        all_of(measured(), drop('embodiments/arm_01/kinematics')),
        'measured: joint states say where the tip is only through kinematics, which is missing; '
        'add kinematics: {urdf: ..., base_frame: ..., tip_frame: ...}',
    ),
    (
        measured('both', {'source': 'tf', 'tip': 'tool1'}),
        "measured.tip: frame 'tool1' is not declared; "
        "add it to frames.include; did you mean 'tool0'?",
    ),
    (
        all_of(measured(), put(f'{ENVELOPE}/max_force_n', 50.0)),
        'max_force_n: nothing measures max_force_n; '
        'add force: {topic: ...} (a WrenchStamped), or remove max_force_n (AWP-ENV-001)',
    ),
    (
        all_of(put(f'{ENVELOPE}/max_force_n', 50.0), put(f'{ENVELOPE}/force', {'topic': 'ft'})),
        'max_force_n: max_force_n cannot be checked on commands, and enforcement is '
        'command_check; write enforcement: both, or remove max_force_n (AWP-ENV-005)',
    ),
    (
        all_of(measured(), put(f'{ENVELOPE}/force', {'topic': 'ft'})),
        'force: it measures nothing: there is no max_force_n; add max_force_n, or remove it',
    ),
]


@pytest.mark.parametrize(('change', 'problem'), ERRORS)
def test_a_limit_and_its_source_belong_together(change: Any, problem: str) -> None:
    result = loaded(change)
    assert result.config is None
    assert said(result) == [f'embodiments.arm_01.envelope.{problem}']
    assert all(each.line > 0 for each in result.problems)


@pytest.mark.parametrize(
    ('source', 'kind'),
    [
        ({'source': 'joint_states', 'spatial_margin_m': 0.02}, MeasuredByJoints),
        ({'source': 'odometry', 'topic': 'base/odom', 'velocity_margin': 0.2}, MeasuredByOdometry),
        ({'source': 'tf', 'tip': 'tool0', 'rate_hz': 50.0}, MeasuredByTf),
    ],
)
@pytest.mark.parametrize('how', ['measured', 'both'])
def test_three_sources_measure_motion(source: Json, kind: type, how: str) -> None:
    found = config(measured(how, source)).embodiments['arm_01'].envelope
    assert found is not None
    assert isinstance(found.measured, kind)
    assert found.is_measured
    assert found.is_command_checked == (how == 'both')


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('spatial_margin_m', -0.01),
        ('velocity_margin', 1.5),
        ('rate_hz', 1000.0),
        ('stale_after_ms', 0),
    ],
)
def test_margins_rates_and_ages_have_bounds(key: str, value: float) -> None:
    assert loaded(measured('both', {'source': 'joint_states', key: value})).config is None


def test_absolute_topics_of_sources_are_doubted() -> None:
    change = all_of(
        measured('both', {'source': 'joint_states', 'topic': '/joint_states'}),
        put(f'{ENVELOPE}/max_force_n', 50.0),
        put(f'{ENVELOPE}/force', {'topic': '/ft'}),
    )
    found = [each.path for each in loaded(change).problems]
    assert found == [
        'embodiments.arm_01.envelope.measured.topic',
        'embodiments.arm_01.envelope.force.topic',
    ]


def test_a_type_that_cannot_be_checked_may_be_measured_alone() -> None:
    """AWP-ENV-005: the manifest says measured, and both would be a lie."""
    adapters = {**ADAPTERS, 'mover': FakeAdapter('mover', limits=frozenset())}
    assert loaded(measured('measured'), adapters).problems == ()
    assert len(loaded(measured('both'), adapters).errors) == 2


# ---------------------------------------------------------------- the manifest


def entry(change: Callable[[Json], object]) -> Json:
    envelope = config(change).embodiments['arm_01'].envelope
    assert envelope is not None
    return envelope_entry('arm_01', envelope)


@pytest.mark.parametrize('how', ['measured', 'both'])
def test_the_manifest_says_how_limits_are_enforced_and_what_is_tolerated(how: str) -> None:
    change = all_of(
        measured(how),
        put(f'{ENVELOPE}/max_force_n', 50.0),
        put(f'{ENVELOPE}/force', {'topic': 'ft', 'force_margin': 0.2}),
    )
    found = entry(change)
    assert found['enforcement'] == how
    assert found['max_force_n'] == 50.0
    assert found['x-ros2.measured_tolerances'] == {
        'spatial_m': 0.01,
        'velocity_mps': 0.05,
        'force_n': 10.0,
    }


def test_without_measuring_no_tolerance_is_told() -> None:
    found = entry(lambda data: None)
    assert found['enforcement'] == 'command_check'
    assert 'x-ros2.measured_tolerances' not in found
