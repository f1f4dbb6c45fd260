"""The driver of the base without a world: ramps, silence, what is not a number, odometry."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

MS = 1_000_000
URDF = Path(__file__).parent / 'gazebo_robot' / 'base.urdf'

try:
    from gazebo_robot.base_drive import (
        BaseDrive,
        COMMAND_LASTS_NS,
        MAX_LINEAR_MPS,
        TRACK_M,
        WHEEL_RADIUS_M,
    )
except ImportError:
    pytest.skip('Gazebo is not entered: ./scripts/test gazebo enters it', allow_module_level=True)


def speeds(drive: BaseDrive, milliseconds: int, from_ns: int = 0) -> list[tuple[float, float]]:
    """Turn for a while, 5 ms at a time; give linear and angular speed as told to the wheels."""
    out = []
    for step in range(milliseconds // 5):
        left, right = drive.wheels_radps(0.005, from_ns + step * 5 * MS)
        out.append(
            ((left + right) / 2 * WHEEL_RADIUS_M, (right - left) * WHEEL_RADIUS_M / TRACK_M)
        )
    return out


def test_the_sizes_are_those_of_the_description() -> None:
    root = ElementTree.parse(URDF).getroot()
    wheels = [j for j in root.iter('joint') if j.get('type') == 'continuous']
    assert [j.get('name') for j in wheels] == ['left_wheel_joint', 'right_wheel_joint']
    sides = []
    for joint in wheels:
        origin = joint.find('origin')
        assert origin is not None
        sides.append([float(v) for v in (origin.get('xyz') or '').split()])
    assert sides[0][1] - sides[1][1] == pytest.approx(TRACK_M)
    assert [side[2] for side in sides] == [WHEEL_RADIUS_M] * 2
    radii = [float(s.get('radius', 'nan')) for s in root.iter('sphere')]
    assert radii[:2] == [WHEEL_RADIUS_M] * 2


def test_speed_changes_at_a_bounded_rate() -> None:
    drive = BaseDrive()
    drive.command(0.4, 0.9, 0)
    told = speeds(drive, 400)
    assert told[9][0] == pytest.approx(0.8 * 0.05)
    assert told[9][1] == pytest.approx(3.0 * 0.05)
    assert told[-1] == pytest.approx((0.32, 0.9))


def test_a_command_lasts_half_a_second_and_silence_brakes() -> None:
    drive = BaseDrive()
    drive.command(0.2, 0.0, 0)
    before = speeds(drive, 500)
    assert before[-1][0] == pytest.approx(0.2)
    after = speeds(drive, 300, COMMAND_LASTS_NS)
    assert after[0][0] == pytest.approx(0.2 - 0.004)
    assert after[-1] == pytest.approx((0.0, 0.0))


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_stops(value: float) -> None:
    drive = BaseDrive()
    drive.command(0.2, 0.0, 0)
    speeds(drive, 300)
    drive.command(0.2, value, 300 * MS)
    assert speeds(drive, 300, 300 * MS)[-1] == pytest.approx((0.0, 0.0))


def test_no_command_exceeds_what_the_base_can_do() -> None:
    drive = BaseDrive()
    drive.command(9.0, -9.0, 0)
    assert speeds(drive, 499)[-1][0] <= MAX_LINEAR_MPS
    drive.command(9.0, -9.0, 499 * MS)
    assert speeds(drive, 400, 499 * MS)[-1] == pytest.approx((MAX_LINEAR_MPS, -1.5))


def test_braking_outlasts_a_command_that_is_still_valid() -> None:
    drive = BaseDrive()
    drive.command(0.2, 0.0, 0)
    speeds(drive, 300)
    drive.brake()
    assert speeds(drive, 100, 300 * MS)[-1][0] == pytest.approx(0.2 - 0.08)


def test_odometry_follows_the_wheels_along_an_arc() -> None:
    drive = BaseDrive()
    # A quarter of a circle of 1 m to the left, in a thousand steps.
    inner, outer = (math.pi / 2 * (1.0 + side * TRACK_M / 2) / WHEEL_RADIUS_M for side in (-1, 1))
    for step in range(1001):
        share = step / 1000
        drive.measure((3.0 + inner * share, -2.0 + outer * share), (5.0, 6.0))
    place = drive.place
    assert (place.x_m, place.y_m) == pytest.approx((1.0, 1.0), abs=1e-4)
    assert place.yaw_rad == pytest.approx(math.pi / 2)
    assert drive.linear_mps == pytest.approx(5.5 * WHEEL_RADIUS_M)
    assert drive.angular_radps == pytest.approx(WHEEL_RADIUS_M / TRACK_M)
    drive.restart()
    drive.measure((100.0, 200.0), (0.0, 0.0))
    assert (drive.place.x_m, drive.place.y_m, drive.place.yaw_rad) == (0.0, 0.0, 0.0)
