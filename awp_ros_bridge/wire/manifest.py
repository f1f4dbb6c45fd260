"""Owns the world manifest as the models of world-manifest.schema.json and what it refers to."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from jsonschema import Draft202012Validator, SchemaError
from pydantic import AfterValidator, Field, model_validator, StringConstraints

from awp_ros_bridge.wire.fields import (
    Array,
    Count,
    Declared,
    Extensions,
    Identifier,
    LossClass,
    Maybe,
    NonEmpty,
    Positive,
    PreemptionPolicy,
    ProtocolVersion,
    Text,
    TimeModel,
    UniqueArray,
    UniqueNonEmpty,
    VendorKey,
)

Json = dict[str, Any]

Modality = Literal[
    'image/jpeg',
    'image/raw',
    'audio/pcm',
    'text/event+json',
    'proprio/json',
    'servo/json',
    'pointcloud/xyz32',
    'tensor/raw',
]
JsonPointer = Annotated[str, StringConstraints(pattern='^/')]


def _json_schema(value: Json | bool) -> Json | bool:
    try:
        Draft202012Validator.check_schema(value)  # AWP-MAN-002
    except SchemaError as error:
        raise ValueError(f'not JSON Schema 2020-12: {error.json_path}: {error.message}') from None
    return value


Vec3 = tuple[float, float, float]


class Spatial(Declared):
    """
    The box that the embodiment must not leave.

    :param aabb_m: lowest and highest corner.
    """

    frame: Identifier
    aabb_m: Array[Array[float]]

    @model_validator(mode='after')
    def _check_corners(self) -> Self:
        if [len(corner) for corner in self.aabb_m] != [3, 3]:
            raise ValueError("'aabb_m' needs two corners of three numbers each")
        return self


class Envelope(Declared):
    """The limits of one embodiment (AWP-ENV-001, AWP-ENV-005)."""

    embodiment: Identifier
    on_violation: Literal['clamp', 'reject']
    spatial: Maybe[Spatial] = None
    max_velocity_mps: Maybe[Positive] = None
    max_force_n: Maybe[Positive] = None
    max_action_rate_hz: Maybe[Positive] = None
    enforcement: Literal['command_check', 'measured', 'both'] = 'command_check'


class SafeState(Declared):
    """What the world does when the agent goes silent (AWP-SAF-003)."""

    behavior: Literal['hold', 'safe_stop', 'park'] | VendorKey
    watchdog_ms: Count


class Audit(Declared):
    """
    What the audit log leaves out (AWP-AUD-006).

    :param redact_paths: JSON pointers, relative to params or result.
    """

    redact_paths: Maybe[Array[JsonPointer]] = None


class SafetyPolicy(Declared):
    """Limits, safe state and approval of the world."""

    envelopes: Array[Envelope]
    safe_state: Maybe[SafeState] = None
    max_basis_age_ms: Maybe[Count] = None
    approval_timeout_ms: Count = 60_000
    standing_approvals: bool = False
    approval_channel: Maybe[str] = None
    audit: Maybe[Audit] = None


class ActionSchema(Declared):
    """One action type."""

    type: Identifier
    params_schema: Annotated[Json | bool, AfterValidator(_json_schema)]
    duration: Literal['instant', 'extended', 'streaming']
    preemption: PreemptionPolicy | UniqueNonEmpty[PreemptionPolicy]
    concurrency_group: Maybe[Identifier] = None
    max_queue: Maybe[Count] = None
    requires_approval: bool = False
    command_channel: Maybe[Identifier] = None
    watchdog_ms: Maybe[Count] = None
    max_abort_ms: Maybe[Count] = None
    max_duration_ms: Maybe[Count] = None
    description: Maybe[str] = None

    @model_validator(mode='after')
    def _check_stream(self) -> Self:
        is_stream = self.duration == 'streaming'
        for name in ('command_channel', 'watchdog_ms'):  # AWP-CMD-002, AWP-CMD-005
            if (getattr(self, name) is not None) != is_stream:
                need = 'needs' if is_stream else 'excludes'
                raise ValueError(f'duration {self.duration} {need} {name!r}')
        return self


class Channel(Declared):
    """One observation or command channel (AWP-DAT-002)."""

    id: Identifier
    modality: Modality | VendorKey
    rate_hz: Positive | None
    loss_class: LossClass
    schema_: Json = Field(alias='schema')
    keyframe_interval: Maybe[Count] = None
    stale_after_ms: Maybe[Count] = None


class Embodiment(Declared):
    """One embodiment (AWP-EMB-001, AWP-MAN-007)."""

    id: Identifier
    kind: Text
    action_types: UniqueArray[Identifier]
    channels: UniqueArray[Identifier]
    shared_control: bool = False
    arbitration: Maybe[str] = None
    multi_bind_group: Maybe[Identifier] = None
    description: Maybe[str] = None

    @model_validator(mode='after')
    def _check_arbitration(self) -> Self:
        if self.shared_control and self.arbitration is None:  # AWP-MA-003
            raise ValueError("'shared_control' needs 'arbitration'")
        return self


class WorldInfo(Declared):
    """Who answers."""

    name: Text
    version: Text
    vendor: Text


class Capabilities(Declared):
    """An open map of optional features (AWP-MAN-004)."""

    seed: Maybe[bool] = None
    snapshot: Maybe[bool] = None
    replay: Maybe[bool] = None
    command_channels: Maybe[bool] = None
    task: Maybe[bool] = None


class WorldManifest(Declared):
    """What a world is and offers: the result of ``initialize`` and ``world.manifest``."""

    protocol_version: ProtocolVersion
    world: WorldInfo
    time_models: UniqueNonEmpty[TimeModel]
    embodiments: NonEmpty[Embodiment]
    observation_channels: NonEmpty[Channel]
    action_schemas: NonEmpty[ActionSchema]
    safety_policy: SafetyPolicy
    tick_policy: Maybe[Literal['on_tick']] = None
    tick_authority: Maybe[Literal['any_session', 'barrier']] = None
    capabilities: Maybe[Capabilities] = None
    initial_states: Maybe[NonEmpty[Identifier]] = None
    command_channels: Maybe[Array[Channel]] = None
    defs: Maybe[Json] = Field(default=None, alias='$defs')
    extensions: Maybe[Extensions] = None

    @model_validator(mode='after')
    def _check_time_models(self) -> Self:
        # AWP-MAN-006
        if 'lockstep' in self.time_models and None in (self.tick_policy, self.tick_authority):
            raise ValueError("lockstep needs 'tick_policy' and 'tick_authority'")
        if 'streaming' in self.time_models and self.safety_policy.safe_state is None:
            raise ValueError("streaming needs 'safety_policy.safe_state'")  # AWP-TIM-007
        return self

    @model_validator(mode='after')
    def _check_command_channels(self) -> Self:
        is_capable = self.capabilities is not None and self.capabilities.command_channels
        if self.command_channels is not None and not is_capable:  # AWP-MAN-005
            raise ValueError("'command_channels' needs the capability of that name")
        return self
