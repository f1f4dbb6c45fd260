"""Owns how the base drives: what its wheels are told, and where their turns say that it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

# As base.urdf has them; tests compare.
WHEEL_RADIUS_M = 0.08
TRACK_M = 0.36

MAX_LINEAR_MPS = 0.5
MAX_ANGULAR_RADPS = 1.5
_LINEAR_MPS2 = 0.8
_ANGULAR_RADPS2 = 3.0
COMMAND_LASTS_NS = 500_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where the base stands on the floor, and where it looks."""

    x_m: float = 0.0
    y_m: float = 0.0
    yaw_rad: float = 0.0


class BaseDrive:
    """
    The driver of the base. Pure: the caller brings the time.

    :ivar place: by odometry, from where it was switched on
    :ivar linear_mps: measured
    :ivar angular_radps: measured
    """

    def __init__(self) -> None:
        """Stand at the origin."""
        self.restart()

    def restart(self) -> None:
        """Stand at the origin, wherever that is, and forget what was commanded."""
        self.place = Place()
        self.linear_mps = self.angular_radps = 0.0
        self._wanted = (0.0, 0.0)
        self._told = (0.0, 0.0)
        self._ends_ns = 0
        self._turned: tuple[float, float] | None = None

    def command(self, linear_mps: float, angular_radps: float, now_ns: int) -> None:
        """Drive so for half a second; what is not a number stops."""
        if not (math.isfinite(linear_mps) and math.isfinite(angular_radps)):
            linear_mps = angular_radps = 0.0
        self._wanted = (
            _clamped(linear_mps, MAX_LINEAR_MPS),
            _clamped(angular_radps, MAX_ANGULAR_RADPS),
        )
        self._ends_ns = now_ns + COMMAND_LASTS_NS

    def brake(self) -> None:
        """Stop, as fast as it may."""
        self._wanted = (0.0, 0.0)

    def wheels_radps(self, elapsed_s: float, now_ns: int) -> tuple[float, float]:
        """Give the speeds that the wheels are to have, which change at a bounded rate."""
        wanted = self._wanted if now_ns < self._ends_ns else (0.0, 0.0)
        most = (_LINEAR_MPS2 * elapsed_s, _ANGULAR_RADPS2 * elapsed_s)
        linear, angular = (
            told + _clamped(want - told, change)
            for told, want, change in zip(self._told, wanted, most, strict=True)
        )
        self._told = (linear, angular)
        half = angular * TRACK_M / 2.0
        return (linear - half) / WHEEL_RADIUS_M, (linear + half) / WHEEL_RADIUS_M

    def measure(self, angles_rad: Sequence[float], speeds_radps: Sequence[float]) -> None:
        """Take the left and the right wheel, as measured, into the odometry."""
        left, right = angles_rad
        left_before, right_before = self._turned or (left, right)
        self._turned = (left, right)
        left_m = (left - left_before) * WHEEL_RADIUS_M
        right_m = (right - right_before) * WHEEL_RADIUS_M
        ahead_m, turn_rad = (left_m + right_m) / 2.0, (right_m - left_m) / TRACK_M
        middle = self.place.yaw_rad + turn_rad / 2.0
        self.place = Place(
            self.place.x_m + ahead_m * math.cos(middle),
            self.place.y_m + ahead_m * math.sin(middle),
            wrapped(self.place.yaw_rad + turn_rad),
        )
        left_mps, right_mps = (v * WHEEL_RADIUS_M for v in speeds_radps)
        self.linear_mps = (left_mps + right_mps) / 2.0
        self.angular_radps = (right_mps - left_mps) / TRACK_M


def wrapped(angle_rad: float) -> float:
    """Give the same angle between -pi and pi."""
    return math.remainder(angle_rad, math.tau)


def _clamped(value: float, most: float) -> float:
    return max(-most, min(most, value))
