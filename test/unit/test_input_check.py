"""What message types tell of safety inputs before anything runs."""

from __future__ import annotations

from typing import Any

from config_sample import SAMPLE
import pytest
import yaml

pytest.importorskip('rclpy', reason='message types come with ROS 2')

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.config.problems import Finding, Severity
from awp_ros_bridge.ros.input_check import input_findings

HERE = ('embodiments', 'arm_01', 'safety_inputs', 0)


def found(**changes: Any) -> list[Finding]:
    """Check the sample with another first input of the arm."""
    body = yaml.safe_load(SAMPLE)
    body['embodiments']['arm_01']['safety_inputs'][0].update(changes)
    return list(input_findings(BridgeConfig.model_validate(body)))


@pytest.mark.parametrize(
    ('kind', 'field'),
    [
        ('std_msgs/msg/Bool', 'data'),
        ('diagnostic_msgs/msg/DiagnosticArray', 'status[name=arm].level'),
        ('diagnostic_msgs/msg/DiagnosticArray', 'status[0].values[key=mode].value'),
        ('sensor_msgs/msg/JointState', 'effort[2]'),
        ('nav_msgs/msg/Odometry', 'twist.covariance[35]'),
    ],
)
def test_fields_that_are_there_are_no_problem(kind: str, field: str) -> None:
    assert found(type=kind, field=field) == []


@pytest.mark.parametrize(
    ('kind', 'field', 'what', 'todo'),
    [
        ('std_msgs/msg/Bool', 'dta', "has no field 'dta'", "did you mean 'data'?"),
        ('std_msgs/msg/Bool', 'xyz', "std_msgs/msg/Bool has no field 'xyz'", 'it has data'),
        ('std_msgs/msg/Bool', 'data[0]', 'no list stands before [', 'leave the brackets out'),
        ('std_msgs/msg/Bool', 'data.x', "'x' stands behind a single value", 'leave it out'),
        (
            'diagnostic_msgs/msg/DiagnosticArray',
            'status.level',
            "'level' stands behind a list",
            'choose an item by [0] or [name=...]',
        ),
        (
            'diagnostic_msgs/msg/DiagnosticArray',
            'status[nam=arm].level',
            "diagnostic_msgs/msg/DiagnosticStatus has no field 'nam'",
            "did you mean 'name'?",
        ),
        ('sensor_msgs/msg/JointState', 'header', 'is no single value', 'name the field of it'),
    ],
)
def test_a_field_that_is_not_there_is_an_error_with_the_nearest(
    kind: str, field: str, what: str, todo: str
) -> None:
    (problem,) = found(type=kind, field=field)
    assert problem.path == (*HERE, 'field')
    assert problem.severity is Severity.ERROR
    assert what in problem.what
    assert todo in problem.todo


def test_a_type_that_is_not_installed_is_a_warning_that_names_the_package() -> None:
    (problem,) = found(type='no_such_msgs/msg/Mode', field='mode')
    assert problem.path == (*HERE, 'type')
    assert problem.severity is Severity.WARNING
    assert "package 'no_such_msgs' is neither installed nor sourced" in problem.what
    assert 'forbids motion' in problem.todo


def of_scaling(kind: str, field: str) -> list[Finding]:
    """Check the sample with a speed scaling of the arm."""
    body = yaml.safe_load(SAMPLE)
    body['embodiments']['arm_01']['speed_scaling'] = {
        'topic': 'speed', 'type': kind, 'field': field, 'full': 100.0,
    }  # fmt: skip
    return list(input_findings(BridgeConfig.model_validate(body)))


@pytest.mark.parametrize(
    ('kind', 'field'),
    [
        ('std_msgs/msg/Float64', 'data'),
        ('std_msgs/msg/UInt8', 'data'),
        ('nav_msgs/msg/Odometry', 'twist.covariance[35]'),
        ('control_msgs/msg/JointTrajectoryControllerState', 'speed_scaling_factor'),
    ],
)
def test_a_speed_scaling_that_is_a_number_is_no_problem(kind: str, field: str) -> None:
    assert of_scaling(kind, field) == []


@pytest.mark.parametrize(
    ('kind', 'field', 'what', 'todo'),
    [
        ('std_msgs/msg/Float64', 'dta', "has no field 'dta'", "did you mean 'data'?"),
        ('std_msgs/msg/Bool', 'data', "'data' is boolean, no number", 'how fast motions run'),
        ('std_msgs/msg/String', 'data', "'data' is string, no number", 'how fast motions run'),
        ('sensor_msgs/msg/JointState', 'effort', 'is no single value', 'name the field of it'),
        ('nav_msgs/msg/Odometry', 'twist.covariance[36]', 'holds 36 items', 'how fast'),
    ],
)
def test_a_speed_scaling_that_is_no_number_is_an_error(
    kind: str, field: str, what: str, todo: str
) -> None:
    (problem,) = of_scaling(kind, field)
    assert problem.path == ('embodiments', 'arm_01', 'speed_scaling', 'field')
    assert problem.severity is Severity.ERROR
    assert what in problem.what
    assert todo in problem.todo


def test_a_speed_scaling_of_a_type_that_is_not_installed_is_a_warning() -> None:
    (problem,) = of_scaling('no_such_msgs/msg/Speed', 'data')
    assert problem.path == ('embodiments', 'arm_01', 'speed_scaling', 'type')
    assert problem.severity is Severity.WARNING
    assert "package 'no_such_msgs' is neither installed nor sourced" in problem.what
    assert 'all time counts' in problem.todo
