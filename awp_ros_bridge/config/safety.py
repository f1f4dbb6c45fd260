"""Owns the settings that stop a robot: behaviour, safety inputs, measured rest, limits."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from annotated_types import Gt, Le
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    model_validator,
    Strict,
    Tag,
)

from awp_ros_bridge.config.base import (
    FieldPath,
    Identifier,
    Items,
    MessageType,
    refuse,
    RosName,
    StrictModel,
    Text,
    VENDOR_KEY,
    Word,
)
from awp_ros_bridge.engine.inputs import Meaning

BEHAVIORS = ('hold', 'safe_stop', 'park')
Scalar = bool | int | float | str
Velocity = Annotated[float, Gt(0), Le(100)]


def _behavior(text: str) -> str:
    if text not in BEHAVIORS and not VENDOR_KEY.match(text):
        raise refuse(
            f'{text!r} is not a safe-state behaviour',
            f'use one of {", ".join(BEHAVIORS)}, or x-<vendor>.<name>',
        )
    return text


class SafetyConfig(StrictModel):
    """When the world goes to its safe state by itself, and what it then does."""

    behavior: Annotated[str, AfterValidator(_behavior), Word('behaviour')] = 'safe_stop'
    """Safe-state behaviour of the world: hold, safe_stop, park or x-<vendor>.<name>
    (AWP-SAF-003)."""
    watchdog_ms: Annotated[int, Field(ge=100, le=5000)] = 2000
    """Silence of the agent after which its embodiments enter the safe state (AWP-SAF-004)."""
    max_basis_age_ms: Annotated[int, Field(ge=1, le=60_000)] = 500
    """Oldest observation an action may rest on when it starts; older is refused (AWP-SAF-013)."""
    require_basis: bool = False
    """True refuses actions that do not name the observation they rest on."""


class Condition(StrictModel):
    """Values of a safety input's field that forbid motion; what cannot be compared forbids it."""

    equals: Scalar | None = None
    """Unsafe when the field has exactly this value."""
    one_of: Annotated[Items[Scalar], Field(min_length=1)] | None = Field(default=None, alias='in')
    """Unsafe when the field has one of these values."""
    above: float | None = None
    """Unsafe when the field is greater than this number. May stand together with below."""
    below: float | None = None
    """Unsafe when the field is less than this number. May stand together with above."""
    bit: Annotated[int, Field(ge=0, le=63)] | None = None
    """Unsafe when this bit of the field is set; bit 0 is the least significant."""

    @model_validator(mode='after')
    def _says_one_thing(self) -> Condition:
        said = {key for key, value in self if value is not None}
        if len(said) != 1 and said != {'above', 'below'}:
            raise refuse(
                f'a condition needs exactly one comparison, found {len(said)}',
                'write one of equals, in, above, below, bit (above and below may join)',
            )
        return self

    def holds(self, value: Any) -> bool:
        """
        Tell whether this value forbids motion.

        A value of another kind than the condition, or a number that is not finite, forbids it.
        """
        if self.equals is not None:
            return not _comparable(value, self.equals) or value == self.equals
        if self.one_of is not None:
            return any(not _comparable(value, each) or value == each for each in self.one_of)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        if self.bit is not None:
            return not isinstance(value, int) or bool(value >> self.bit & 1)
        low = -math.inf if self.below is None else self.below
        high = math.inf if self.above is None else self.above
        return not (math.isfinite(value) and low <= value <= high)


def _comparable(value: Any, expected: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(expected, bool | str):
        return type(value) is type(expected)
    return isinstance(value, int | float) and math.isfinite(value)


def _as_condition(value: Any) -> Any:
    return {'equals': value} if isinstance(value, bool | int | float | str) else value


class ByMessage(StrictModel):
    """The topic is published periodically: each message renews it."""

    by: Literal['message']
    """message: the input is fresh while its own messages keep coming."""


class ByCompanion(StrictModel):
    """The topic is latched and speaks on change only: a periodic topic vouches for it."""

    by: Literal['companion']
    """companion: the last value stays valid while the companion topic keeps coming."""
    topic: RosName
    """Periodic topic of the same driver."""


Freshness = Annotated[ByMessage | ByCompanion, Discriminator('by')]


class SafetyInput(StrictModel):
    """One topic of the hardware that can forbid motion; silence forbids it too."""

    name: Text | None = None
    """Name in events, diagnostics and logs; the topic when absent. Unique per embodiment."""
    topic: RosName
    """Topic to listen to."""
    type: MessageType
    """Its message type, such as std_msgs/msg/Bool."""
    field: FieldPath
    """Path of the field that decides, such as data or status.level."""
    unsafe_when: Annotated[Condition, BeforeValidator(_as_condition)]
    """Value that forbids motion, or one of {equals, in, above, below, bit: ...}."""
    means: Annotated[Meaning, Strict(False)]
    """What an engaged input is: e_stop, protective_stop, fault, not_ready, manual_mode or
    degraded."""
    freshness: Freshness
    """What keeps the input valid: {by: message}, or {by: companion, topic: ...}."""
    stale_after_ms: Annotated[int, Field(ge=20, le=60_000)]
    """Silence after which the input counts as unknown and forbids motion. There is no off."""

    @property
    def label(self) -> str:
        """Name of the input towards people: the configured one, or its topic."""
        return self.name or self.topic


def _joints_tag(value: Any) -> str:
    return 'every joint' if isinstance(value, str) else 'listed joints'


Joints = Annotated[
    Annotated[Literal['all'], Tag('every joint')]
    | Annotated[Items[Text], Field(min_length=1), Tag('listed joints')],
    Discriminator(_joints_tag),
]


class MeasuredRest(StrictModel):
    """The robot says by its joint velocities that it stands still."""

    topic: RosName
    """Topic of type sensor_msgs/msg/JointState."""
    joints: Joints = 'all'
    """Joints that must rest: all, or a list of their names."""
    max_velocity_radps: Velocity | None = None
    """A revolute joint at or below this speed rests."""
    max_velocity_mps: Velocity | None = None
    """A prismatic joint at or below this speed rests."""
    prismatic: Items[Text] = ()
    """Names of the joints that slide; needed where both kinds of bound are given."""
    for_ms: Annotated[int, Field(ge=10, le=5000)] = 100
    """How long the joints must be slow, over three samples or more, before they are at rest."""
    stale_after_ms: Annotated[int, Field(ge=20, le=10_000)] = 500
    """Silence after which rest is unknown and the embodiment unavailable. There is no off."""

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


class UnmeasuredRest(StrictModel):
    """Nothing measures rest: after a stop the bridge waits, and every ending says so."""

    unmeasured: Literal[True]
    """true: the robot offers no velocity; endings then carry 'rest not measured'."""
    settle_ms: Annotated[int, Field(ge=10, le=30_000)]
    """How long a stopped robot needs to stand still, at most."""


def _rest_tag(value: Any) -> str:
    if isinstance(value, UnmeasuredRest) or (isinstance(value, dict) and 'unmeasured' in value):
        return 'unmeasured rest'
    return 'measured rest'


AtRest = Annotated[
    Annotated[MeasuredRest, Tag('measured rest')]
    | Annotated[UnmeasuredRest, Tag('unmeasured rest')],
    Discriminator(_rest_tag),
]

Vector = Annotated[tuple[float, float, float], Strict(False)]


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


class Envelope(StrictModel):
    """Limits that no agent can move beyond (AWP-ENV-001)."""

    spatial: Spatial | None = None
    """Box that the commanded tip stays in."""
    max_velocity_mps: Annotated[float, Field(gt=0, le=100)] | None = None
    """Fastest commanded speed of the tip."""
    max_action_rate_hz: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """Most submissions per second to the embodiment (AWP-ENV-004)."""
    enforcement: Literal['command_check', 'measured', 'both'] = 'command_check'
    """Where limits are enforced; this version checks commands before they go out (AWP-ENV-005)."""
    on_violation: Literal['clamp', 'reject'] = 'reject'
    """What happens to a command beyond a limit; this version rejects it (AWP-ENV-002)."""
