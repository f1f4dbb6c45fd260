"""Owns the settings of rest: what measures that a body stands still, and what else moves it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Gt, Le
from pydantic import Discriminator, Field, model_validator, Tag

from awp_ros_bridge.config.base import (
    Identifier,
    Items,
    refuse,
    RosName,
    StrictModel,
    Text,
    TfFrame,
)
from awp_ros_bridge.config.ready_inputs import Joints

Velocity = Annotated[float, Gt(0), Le(100)]


class Rest(StrictModel):
    """What every measured rest has."""

    for_ms: Annotated[int, Field(ge=10, le=5000)] = 100
    """How long the body must be slow, over three samples or more, before it is at rest."""
    stale_after_ms: Annotated[int, Field(ge=20, le=10_000)] = 500
    """Silence after which rest is unknown and the embodiment unavailable. There is no off."""
    unexpected_motion: Literal['report', 'stop'] = 'report'
    """What motion means that no action and no stop asked for, after the body was at rest. report:
    a warning in log, diagnostics and event details. stop: a fault, until it rests again."""
    unexpected_after_ms: Annotated[int, Field(ge=50, le=60_000)] = 500
    """How long the body must be faster than its bounds before that counts as such motion."""


class MeasuredRest(Rest):
    """The robot says by its joint velocities that it stands still."""

    topic: RosName
    """Topic of type sensor_msgs/msg/JointState."""
    joints: Joints = 'all'
    """Joints that must rest: all, or a list of their names."""
    groups: dict[Identifier, Annotated[Items[Text], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Joints that a concurrency group moves, by group; the end of its actions waits for these
    alone. A group that is not named here moves all."""
    max_velocity_radps: Velocity | None = None
    """A revolute joint at or below this speed rests."""
    max_velocity_mps: Velocity | None = None
    """A prismatic joint at or below this speed rests."""
    prismatic: Items[Text] = ()
    """Names of the joints that slide; needed where both kinds of bound are given."""

    def bound_of(self, joint: str) -> float:
        """Return the velocity at or below which a joint rests, rad/s or m/s as the joint moves."""
        slides = joint in self.prismatic or self.max_velocity_radps is None
        bound = self.max_velocity_mps if slides else self.max_velocity_radps
        assert bound is not None  # by the validator below
        return bound

    @model_validator(mode='after')
    def _has_a_bound(self) -> MeasuredRest:
        if self.max_velocity_radps is None and self.max_velocity_mps is None:
            raise refuse(
                'rest has no velocity bound',
                'add max_velocity_radps for revolute joints, max_velocity_mps for prismatic ones',
            )
        both = self.max_velocity_radps is not None and self.max_velocity_mps is not None
        if both != bool(self.prismatic):
            raise refuse(
                'it is not clear which bound a joint has',
                'list the sliding joints in prismatic exactly when both bounds are given',
            )
        return self

    @model_validator(mode='after')
    def _knows_its_groups(self) -> MeasuredRest:
        if self.joints != 'all':
            for group, names in self.groups.items():
                left = [name for name in names if name not in self.joints]
                if left:
                    raise refuse(
                        f'group {group!r} moves {", ".join(left)}, which joints does not list',
                        'add them to joints',
                    )
        return self


class BodyRest(Rest):
    """What the rest of a whole body has."""

    max_linear_mps: Velocity
    """A body at or below this speed rests; its turning has a bound of its own."""
    max_angular_radps: Velocity
    """A body that turns no faster than this rests."""


class OdometryRest(BodyRest):
    """A mobile base says by the twist of its odometry that it stands still."""

    odometry: RosName
    """Topic of type nav_msgs/msg/Odometry."""


class FramePair(StrictModel):
    """Two tf frames that move against each other."""

    frame: TfFrame
    """The frame that moves with the body, such as base_link."""
    reference: TfFrame
    """The frame in which it moves, such as odom. One that jumps, as map does, is motion."""


class TfRest(BodyRest):
    """Nothing says a velocity: it is the difference of poses that tf tells."""

    tf: FramePair
    """The frames to look at: {frame: base_link, reference: odom}."""


class UnmeasuredRest(StrictModel):
    """Nothing measures rest: after a stop the bridge waits, and every ending says so."""

    unmeasured: Literal[True]
    """true: the robot offers no velocity; endings then carry 'rest not measured'."""
    settle_ms: Annotated[int, Field(ge=10, le=30_000)]
    """How long a stopped robot needs to stand still, at most."""


_BY_KEY = {
    'unmeasured': ('unmeasured rest', UnmeasuredRest),
    'odometry': ('odometry rest', OdometryRest),
    'tf': ('tf rest', TfRest),
}


def _rest_tag(value: Any) -> str:
    for key, (tag, model) in _BY_KEY.items():
        if isinstance(value, model) or (isinstance(value, dict) and key in value):
            return tag
    return 'measured rest'


AtRest = Annotated[
    Annotated[MeasuredRest, Tag('measured rest')]
    | Annotated[OdometryRest, Tag('odometry rest')]
    | Annotated[TfRest, Tag('tf rest')]
    | Annotated[UnmeasuredRest, Tag('unmeasured rest')],
    Discriminator(_rest_tag),
]
