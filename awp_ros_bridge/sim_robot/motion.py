"""
Owns the motion of one group of joints: what is commanded, and how the plant follows in time.

Pure: the caller brings the time. Three modes: holding a position, following a trajectory, and
braking, which turns into holding where the joints came to rest.
"""

from collections.abc import Sequence
from enum import StrEnum

from awp_ros_bridge.kinematics import JointSample, Trajectory
from awp_ros_bridge.sim_robot.plant import JointLimits, JointPlant

REST_SPEED_RADPS = 1e-4
_SETTLED_RAD = 5e-6
_STEP_NS = 4_000_000
_MAX_CATCH_UP_NS = 500_000_000
# A change of speed scaling is itself a ramp: from standstill to full in 0.4 s.
_SCALE_RATE_PER_S = 2.5
_PUSH_RADPS = 0.5


class MotionMode(StrEnum):
    """What the joints are doing."""

    HOLDING = 'holding'
    FOLLOWING = 'following'
    BRAKING = 'braking'


class JointMotion:
    """
    The joints of one device in motion.

    :ivar mode: what they are doing
    :ivar scaling: wanted speed of a trajectory's time, 0 to 1
    :ivar is_stalled: while True a trajectory's time stands still, whatever the scaling
    :ivar brake_share: part of the deceleration limit that braking uses
    :ivar overshoot: how many times as far from its start as commanded a trajectory leads
    """

    def __init__(self, limits: JointLimits, home_rad: Sequence[float]) -> None:
        """Begin at rest at the home configuration."""
        self.plant = JointPlant(limits, home_rad)
        self.mode = MotionMode.HOLDING
        self.scaling = 1.0
        self.is_stalled = False
        self.brake_share = 1.0
        self.overshoot = 1.0
        self._push_rad = 0.0
        self.trajectory: Trajectory | None = None
        self.trajectory_time_s = 0.0
        self._scale = 1.0
        self._home_rad = tuple(home_rad)
        zeros = (0.0,) * len(self._home_rad)
        self.commanded = JointSample(self._home_rad, zeros, zeros)
        self._now_ns: int | None = None

    @property
    def positions_rad(self) -> tuple[float, ...]:
        """Give the positions of the joints."""
        return tuple(self.plant.positions_rad)

    @property
    def velocities_radps(self) -> tuple[float, ...]:
        """Give the velocities of the joints."""
        return tuple(self.plant.velocities_radps)

    @property
    def is_at_rest(self) -> bool:
        """Tell whether no joint moves."""
        return self.plant.max_speed_radps < REST_SPEED_RADPS

    @property
    def is_trajectory_over(self) -> bool:
        """Tell whether the trajectory's time has passed its last waypoint."""
        trajectory = self.trajectory
        return trajectory is None or self.trajectory_time_s >= trajectory.duration_s

    def follow(self, trajectory: Trajectory, at_time_s: float = 0.0) -> None:
        """
        Follow a trajectory from now on, in place of whatever was commanded.

        :param at_time_s: the trajectory's time now
        """
        self.trajectory = trajectory
        self.trajectory_time_s = at_time_s
        self._scale = 0.0 if self.is_stalled else self.scaling
        self.commanded = trajectory.sample(at_time_s)
        self.mode = MotionMode.FOLLOWING

    def stop(self) -> None:
        """Brake, then hold where the joints come to rest."""
        self.trajectory = None
        self.mode = MotionMode.BRAKING

    def push(self, amount_rad: float) -> None:
        """Turn the first joint from outside, slowly, whenever the joints are held."""
        self._push_rad = amount_rad
        if self.mode is MotionMode.HOLDING:
            self._hold()  # whatever pushed before has let go

    def reset(self) -> None:
        """Be at home, at rest, at once."""
        self._push_rad = 0.0
        self.plant.place(self._home_rad)
        self._hold()

    def advance(self, now_ns: int) -> None:
        """
        Integrate up to a time.

        :param now_ns: steady clock; must not go back
        """
        last_ns = self._now_ns
        if last_ns is None or now_ns - last_ns > _MAX_CATCH_UP_NS:
            last_ns = now_ns - _STEP_NS
        if self.mode is MotionMode.HOLDING and not self._push_rad:
            last_ns = now_ns  # held joints stand still
        while last_ns < now_ns:
            step_ns = min(_STEP_NS, now_ns - last_ns)
            self._step(step_ns * 1e-9)
            last_ns += step_ns
        self._now_ns = now_ns

    def _step(self, dt_s: float) -> None:
        if self.mode is MotionMode.FOLLOWING:
            self._follow_step(dt_s)
        elif self.mode is MotionMode.BRAKING:
            self.plant.brake(dt_s, self.brake_share)
            if self.is_at_rest:
                self._hold()
        elif self._push_rad:
            self._push_step(dt_s)

    def _push_step(self, dt_s: float) -> None:
        step_rad = min(self._push_rad, _PUSH_RADPS * dt_s)
        self._push_rad -= step_rad
        positions = self.positions_rad
        self.plant.place((positions[0] + step_rad, *positions[1:]))
        self._hold()
        if self._push_rad:
            self.plant.velocities_radps[0] = _PUSH_RADPS

    def _follow_step(self, dt_s: float) -> None:
        trajectory = self.trajectory
        if trajectory is None:  # following always has one; reset may have come between
            self._hold()
            return
        wanted = 0.0 if self.is_stalled else self.scaling
        most = _SCALE_RATE_PER_S * dt_s
        self._scale += max(-most, min(most, wanted - self._scale))
        self.trajectory_time_s += self._scale * dt_s
        state = trajectory.sample(self.trajectory_time_s)
        scaled = tuple(v * self._scale * self.overshoot for v in state.velocities_radps)
        start = trajectory.waypoints[0].positions_rad
        rows = zip(start, state.positions_rad, strict=True)
        positions = tuple(a + self.overshoot * (b - a) for a, b in rows)
        self.commanded = JointSample(positions, scaled, state.accelerations_radps2)
        self.plant.follow(dt_s, positions, scaled)
        if self.trajectory_time_s >= trajectory.duration_s and self._is_settled():
            self._hold()

    def _is_settled(self) -> bool:
        pairs = zip(self.plant.positions_rad, self.commanded.positions_rad, strict=True)
        return self.is_at_rest and all(abs(a - b) < _SETTLED_RAD for a, b in pairs)

    def _hold(self) -> None:
        zeros = (0.0,) * len(self.plant.positions_rad)
        self.plant.velocities_radps = list(zeros)
        self.trajectory = None
        self.commanded = JointSample(self.positions_rad, zeros, zeros)
        self.mode = MotionMode.HOLDING
