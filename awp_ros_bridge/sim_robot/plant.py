"""Owns the moved joints: positions that change only through bounded velocity and acceleration."""

from collections.abc import Sequence
from dataclasses import dataclass
import math

_Row = tuple[float, ...]

# A command this far off is approached at a speed proportional to the distance (1/s).
_POSITION_GAIN_PER_S = 40.0
# Part of the acceleration limit that a corrective move plans to brake with.
_BRAKE_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class JointLimits:
    """What the joints can do, one number per joint (metres for sliding joints)."""

    lower_rad: _Row
    upper_rad: _Row
    max_velocity_radps: _Row
    max_acceleration_radps2: _Row


class JointPlant:
    """Joints as their drives would move them."""

    def __init__(self, limits: JointLimits, home_rad: Sequence[float]) -> None:
        """Begin at rest at the home configuration."""
        self.limits = limits
        self.positions_rad = list(home_rad)
        self.velocities_radps = [0.0] * len(self.positions_rad)

    @property
    def max_speed_radps(self) -> float:
        """Give the speed of the fastest joint."""
        return max(abs(v) for v in self.velocities_radps)

    def place(self, positions_rad: Sequence[float]) -> None:
        """Set the joints at rest at a configuration, as only a simulator's reset can."""
        self.positions_rad = list(positions_rad)
        self.velocities_radps = [0.0] * len(self.positions_rad)

    def follow(
        self, dt_s: float, target_rad: Sequence[float], target_radps: Sequence[float]
    ) -> None:
        """Move for one step towards a commanded position and velocity."""
        limits = self.limits
        for i, v in enumerate(self.velocities_radps):
            accel = limits.max_acceleration_radps2[i]
            error = target_rad[i] - self.positions_rad[i]
            distance = abs(error)
            # Never faster than it could still brake before the commanded position.
            speed = min(
                _POSITION_GAIN_PER_S * distance, math.sqrt(2 * _BRAKE_SHARE * accel * distance)
            )
            cap = limits.max_velocity_radps[i]
            wanted = max(-cap, min(cap, target_radps[i] + math.copysign(speed, error)))
            change = max(-accel * dt_s, min(accel * dt_s, wanted - v))
            self._move(i, v, v + change, dt_s)

    def brake(self, dt_s: float, share: float = 1.0) -> None:
        """
        Slow down for one step, all joints in proportion, so that they stop together.

        :param share: part of the deceleration limit to use
        """
        rows = zip(self.velocities_radps, self.limits.max_acceleration_radps2, strict=True)
        remaining_s = max(abs(v) / (a * share) for v, a in rows)
        factor = max(0.0, 1.0 - dt_s / remaining_s) if remaining_s > 0.0 else 0.0
        for i, v in enumerate(self.velocities_radps):
            self._move(i, v, v * factor, dt_s)

    def _move(self, i: int, before: float, after: float, dt_s: float) -> None:
        position = self.positions_rad[i] + (before + after) / 2.0 * dt_s
        low, high = self.limits.lower_rad[i], self.limits.upper_rad[i]
        if low <= position <= high:
            self.positions_rad[i] = position
            self.velocities_radps[i] = after
        else:  # a hard stop
            self.positions_rad[i] = low if position < low else high
            self.velocities_radps[i] = 0.0
