"""Encoders of JSON on real serialized messages: exact values, gaps, what is not sent."""

from __future__ import annotations

import math
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from encoder_rig import body_of, refused, stamped
from geometry_msgs.msg import Pose, PoseStamped, PoseWithCovarianceStamped, WrenchStamped
from nav_msgs.msg import Odometry
import pytest
from sensor_msgs.msg import BatteryState, Imu, LaserScan

NAN, INF = math.nan, math.inf


def placed(pose: Any) -> Any:
    pose.position.x, pose.position.y, pose.position.z = 1.0, -2.0, 0.5
    pose.orientation.z, pose.orientation.w = math.sqrt(0.5), math.sqrt(0.5)
    return pose


PLACE = {'p_m': [1.0, -2.0, 0.5], 'q': [0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)]}


def odometry() -> Odometry:
    message = stamped(Odometry(child_frame_id='/rig/base'), 'odom')
    placed(message.pose.pose)
    message.twist.twist.linear.x = 0.25
    message.twist.twist.angular.z = -0.5
    return message


def test_odometry() -> None:
    message = odometry()
    message.pose.covariance[0] = 0.04
    message.pose.covariance[35] = 0.09
    message.twist.covariance[7] = -1.0
    message.twist.covariance[14] = INF
    message.twist.twist.linear.y = NAN
    assert body_of(message) == {
        'frame': 'odom',
        'child_frame': 'base',
        **PLACE,
        'v_mps': [0.25, None, 0.0],
        'w_radps': [0.0, 0.0, -0.5],
        'p_std_m': [0.2, 0.0, 0.0],
        'r_std_rad': [0.0, 0.0, 0.3],
        'v_std_mps': [0.0, None, None],
        'w_std_radps': None,
    }


def test_a_pose_that_is_none_is_not_sent() -> None:
    message = odometry()
    message.pose.pose.position.y = NAN
    refused(message, r'pose\.pose\.position is \[1\.0, nan, 0\.5\]; a position is finite')
    message = odometry()
    message.pose.pose.orientation.w = 0.0
    refused(message, r'pose\.pose\.orientation has norm 0\.7071; the quaternion of a rotation')
    message.pose.pose.orientation.w = NAN
    refused(message, 'orientation has norm nan')


@pytest.mark.parametrize(
    ('parent', 'child', 'because'),
    [
        ('', 'rig/base', 'header.frame_id is empty; let the publisher name its frame'),
        ('map', 'rig/base', "header.frame_id is 'map', no frame of the tree; add it to frames"),
        ('odom', 'base', "child_frame_id is 'base', no frame of the tree"),
        ('odom', '', 'child_frame_id is empty'),
    ],
)
def test_frames_that_the_tree_does_not_have_are_told(
    parent: str, child: str, because: str
) -> None:
    message = odometry()
    message.header.frame_id, message.child_frame_id = parent, child
    refused(message, because)


def test_poses_of_all_kinds() -> None:
    with_header = stamped(PoseStamped(), '/rig/base')
    placed(with_header.pose)
    assert body_of(with_header) == {'frame': 'base', **PLACE}
    assert body_of(placed(Pose()), frame='odom') == {'frame': 'odom', **PLACE}
    estimate = stamped(PoseWithCovarianceStamped(), 'odom')
    placed(estimate.pose.pose)
    assert body_of(estimate) == {'frame': 'odom', **PLACE, 'p_std_m': None, 'r_std_rad': None}
    estimate.pose.covariance[21] = 0.25
    assert body_of(estimate)['r_std_rad'] == [0.5, 0.0, 0.0]


def test_the_frame_of_a_channel_stands_in_for_none_and_keeps_others_out() -> None:
    message = stamped(PoseStamped(), '')
    assert body_of(message, frame='laser')['frame'] == 'laser'
    message.header.frame_id = 'rig/base'
    refused(message, "'rig/base', the AWP frame 'base'; the channel is of 'laser'", frame='laser')


def test_imu() -> None:
    message = stamped(Imu())
    placed_rotation = message.orientation
    placed_rotation.x, placed_rotation.w = 0.6, 0.8
    message.angular_velocity.z = 0.1
    message.linear_acceleration.z = 9.81
    message.angular_velocity_covariance[0] = 0.01
    message.linear_acceleration.x = INF
    assert body_of(message) == {
        'frame': 'laser',
        'q': [0.6, 0.0, 0.0, 0.8],
        'w_radps': [0.0, 0.0, 0.1],
        'a_mps2': [None, 0.0, 9.81],
        'r_std_rad': None,
        'w_std_radps': [0.1, 0.0, 0.0],
        'a_std_mps2': None,
    }


def test_what_an_imu_does_not_measure_is_null() -> None:
    message = stamped(Imu())
    message.orientation_covariance[0] = -1.0
    message.orientation.w = 7.0  # nobody looks at it
    message.angular_velocity_covariance[0] = -1.0
    message.linear_acceleration_covariance[0] = -1.0
    found = body_of(message)
    assert {key for key, value in found.items() if value is not None} == {'frame'}
    message = stamped(Imu())
    message.orientation.w = 0.0  # four zeros: never filled in
    assert body_of(message)['q'] is None
    message.orientation.w = 0.9
    refused(message, 'orientation has norm 0.9')


def test_wrench() -> None:
    message = stamped(WrenchStamped())
    message.wrench.force.x, message.wrench.force.y = -3.5, -INF
    message.wrench.torque.z = 0.25
    assert body_of(message) == {
        'frame': 'laser',
        'force_n': [-3.5, None, 0.0],
        'torque_nm': [0.0, 0.0, 0.25],
    }


def scan(**changes: Any) -> LaserScan:
    settings = {
        'angle_min': -0.2,
        'angle_max': 0.2,
        'angle_increment': 0.1,
        'range_min': 0.1,
        'range_max': 30.0,
        'scan_time': 0.1,
        'ranges': [0.3, NAN, INF, -INF, 1.25],
    }
    return stamped(LaserScan(**{**settings, **changes}))


def test_f44_a_scan_keeps_not_a_number_apart_from_infinity() -> None:
    assert body_of(scan()) == {
        'frame': 'laser',
        'angle_min_rad': -0.2,  # as short as a float32 is
        'angle_increment_rad': 0.1,
        'range_min_m': 0.1,
        'range_max_m': 30.0,
        'scan_time_s': 0.1,
        'time_increment_s': 0.0,
        'ranges_m': [0.3, None, 'Infinity', '-Infinity', 1.25],
        'intensities': None,
    }
    near = body_of(scan(ranges=[0.1, NAN, 0.3, 0.4, 0.5], intensities=[1.0] * 5, range_max=INF))
    assert near['ranges_m'] == [0.1, None, 0.3, 0.4, 0.5]
    assert near['intensities'] == [1.0] * 5
    assert near['range_max_m'] is None


@pytest.mark.parametrize(
    ('changes', 'because'),
    [
        ({'ranges': [1.0] * 7}, 'ranges has 7 values; from -0.2 to 0.2 rad in steps of 0.1'),
        ({'ranges': []}, 'ranges has 0 values'),
        ({'intensities': [1.0]}, 'intensities has 1 values beside 5 ranges'),
        ({'angle_increment': 0.0}, 'angle_increment is 0'),
        ({'angle_increment': NAN}, 'angle_increment is nan'),
        ({'angle_max': INF}, 'angle_max is inf'),
        ({'angle_increment': -0.1}, 'ranges has 5 values'),
    ],
)
def test_scans_whose_numbers_do_not_agree_are_not_sent(
    changes: dict[str, Any], because: str
) -> None:
    refused(scan(**changes), because)


@pytest.mark.parametrize('count', [4, 5, 6])
def test_a_driver_may_count_the_last_angle_or_not(count: int) -> None:
    assert len(body_of(scan(ranges=[1.0] * count))['ranges_m']) == count


def test_a_scan_may_turn_the_other_way() -> None:
    found = body_of(scan(angle_min=0.2, angle_max=-0.2, angle_increment=-0.1))
    assert found['angle_increment_rad'] == -0.1


def battery(**changes: Any) -> BatteryState:
    settings = {
        'voltage': 25.5,
        'current': -1.5,
        'charge': 2.0,
        'capacity': NAN,
        'design_capacity': 4.0,
        'temperature': 20.0,
        'percentage': 0.5,
        'power_supply_status': BatteryState.POWER_SUPPLY_STATUS_DISCHARGING,
        'power_supply_health': BatteryState.POWER_SUPPLY_HEALTH_GOOD,
        'power_supply_technology': BatteryState.POWER_SUPPLY_TECHNOLOGY_LION,
        'present': True,
        'cell_voltage': [4.25, NAN],
        'location': 'base',
        'serial_number': 'b-1',
    }
    message = stamped(BatteryState(**settings), '')
    for key, value in changes.items():
        setattr(message, key, value)
    return message


def test_battery() -> None:
    assert body_of(battery(), 'text/event+json') == {
        'present': True,
        'state_of_charge': 0.5,
        'voltage_v': 25.5,
        'current_a': -1.5,
        'charge_c': 7200.0,
        'capacity_c': None,
        'design_capacity_c': 14400.0,
        'temperature_k': 293.15,
        'status': 'discharging',
        'health': 'good',
        'technology': 'lion',
        'cell_voltages_v': [4.25, None],
        'cell_temperatures_k': [],
        'location': 'base',
        'serial_number': 'b-1',
    }
    odd = body_of(battery(percentage=NAN, power_supply_status=99, charge=3e38))
    assert (odd['state_of_charge'], odd['status'], odd['charge_c']) == (None, 'unknown', None)


@pytest.mark.parametrize('level', [87.0, -0.5, INF])
def test_a_percentage_in_percent_is_told(level: float) -> None:
    refused(battery(percentage=level), 'percentage is .*; in ROS it goes from 0 to 1')


def test_diagnostics() -> None:
    message = stamped(DiagnosticArray(), '')
    message.status = [
        DiagnosticStatus(
            level=DiagnosticStatus.WARN,
            name='arm: drive',
            message='hot',
            hardware_id='d1',
            values=[KeyValue(key='t', value='80'), KeyValue(key='t', value='81')],
        )
    ]
    pairs = [{'key': 't', 'value': '80'}, {'key': 't', 'value': '81'}]
    part = {'name': 'arm: drive', 'level': 'warn', 'message': 'hot', 'hardware_id': 'd1'}
    assert body_of(message, 'text/event+json') == {'status': [{**part, 'values': pairs}]}
    message.status[0].level = b'\x04'
    refused(message, r'status\[0\]\.level is 4; levels are 0 to 3')
    message.status = []
    assert body_of(message) == {'status': []}
