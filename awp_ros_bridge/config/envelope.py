"""Owns the limits of an embodiment: the box, the speed, the force, and how they are watched."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, model_validator, Strict

from awp_ros_bridge.config.base import Identifier, refuse, RosName, StrictModel

Vector = Annotated[tuple[float, float, float], Strict(False)]
Stale = Annotated[int, Field(ge=20, le=10_000)]


class Spatial(StrictModel):
    """A box that the tip must not leave."""

    frame: Identifier
    """Frame of the box: the root or a key of frames.include."""
    aabb_m: Annotated[tuple[Vector, Vector], Strict(False)]
    """Lower and upper corner of the box, [[x, y, z], [x, y, z]]."""

    @model_validator(mode='after')
    def _is_a_box(self) -> Spatial:
        low, high = self.aabb_m
        for axis, least, most in zip('xyz', low, high, strict=True):
            if not least < most:
                raise refuse(
                    f'the box is empty along {axis}: {least} m to {most} m',
                    'write the lower corner first',
                )
        return self


class _Measured(StrictModel):
    """What every source of measured motion has."""

    spatial_margin_m: Annotated[float, Field(ge=0, le=1)] = 0.01
    """How far outside the box the tip is tolerated: what the controller strays from the commanded
    path. Beyond it the action fails."""
    velocity_margin: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Part of max_velocity_mps by which the measured speed may exceed it: overshoot and noise."""
    rate_hz: Annotated[float, Field(ge=10, le=500)] = 100.0
    """How often motion is judged while a goal runs or the body moves; 10 Hz at rest."""
    stale_after_ms: Stale = 500
    """Silence of the source after which motion is forbidden (not_ready). There is no off."""


class MeasuredByJoints(_Measured):
    """The tip is computed from joint states, through the embodiment's kinematics."""

    source: Literal['joint_states']
    """joint_states: positions through the chain, speed from joint velocities."""
    topic: RosName = 'joint_states'
    """Topic of type sensor_msgs/msg/JointState."""


class MeasuredByOdometry(_Measured):
    """The origin of a mobile base is the tip; its odometry tells where it is and how fast."""

    source: Literal['odometry']
    """odometry: position and linear speed of the base."""
    topic: RosName = 'odom'
    """Topic of type nav_msgs/msg/Odometry."""


class MeasuredByTf(_Measured):
    """The tip is a frame of tf; its speed is the difference of positions."""

    source: Literal['tf']
    """tf: the place of a frame, and how it changes from stamp to stamp."""
    tip: Identifier
    """Frame whose origin is watched, a key of frames.include."""


MeasuredMotion = Annotated[
    MeasuredByJoints | MeasuredByOdometry | MeasuredByTf, Discriminator('source')
]


class ForceSensor(StrictModel):
    """The sensor that max_force_n is measured with."""

    topic: RosName
    """Topic of type geometry_msgs/msg/WrenchStamped, free of the weight of the tool."""
    force_margin: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Part of max_force_n by which the measured force may exceed it: noise and inertia."""
    stale_after_ms: Stale = 500
    """Silence of the sensor after which motion is forbidden (not_ready). There is no off."""


class Envelope(StrictModel):
    """Limits that no agent can move beyond (AWP-ENV-001)."""

    spatial: Spatial | None = None
    """Box that the tip stays in."""
    max_velocity_mps: Annotated[float, Field(gt=0, le=100)] | None = None
    """Fastest speed of the tip."""
    max_force_n: Annotated[float, Field(gt=0, le=100_000)] | None = None
    """Greatest force that the force sensor may measure; only ever measured."""
    max_action_rate_hz: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """Most submissions per second to the embodiment (AWP-ENV-004)."""
    enforcement: Literal['command_check', 'measured', 'both'] = 'command_check'
    """Where limits are enforced: commands before they go out, executed motion, or both
    (AWP-ENV-005)."""
    measured: MeasuredMotion | None = None
    """What executed motion is measured with; needed for spatial and max_velocity_mps where
    enforcement is measured or both."""
    force: ForceSensor | None = None
    """What force is measured with; needed for max_force_n."""
    on_violation: Literal['clamp', 'reject'] = 'reject'
    """What happens to a command beyond a limit; this version rejects it (AWP-ENV-002). Measured
    motion beyond a limit fails the action in either case (AWP-ENV-003)."""

    @property
    def is_measured(self) -> bool:
        """Tell whether executed motion is watched."""
        return self.enforcement != 'command_check'

    @property
    def is_command_checked(self) -> bool:
        """Tell whether every command is promised to be checked before it goes out."""
        return self.enforcement != 'measured'

    @property
    def motion_limits(self) -> tuple[str, ...]:
        """List the declared limits of motion."""
        limits = {'spatial': self.spatial, 'max_velocity_mps': self.max_velocity_mps}
        return tuple(name for name, value in limits.items() if value is not None)
