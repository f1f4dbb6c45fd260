"""Owns the whole configuration: one file, one :class:`BridgeConfig`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from awp_ros_bridge import __version__
from awp_ros_bridge.config.actions import ActionConfig
from awp_ros_bridge.config.base import (
    Identifier,
    Items,
    JsonPointer,
    RosName,
    ServiceType,
    StrictModel,
    Text,
)
from awp_ros_bridge.config.channels import Channel, FramesConfig
from awp_ros_bridge.config.embodiments import Embodiment
from awp_ros_bridge.config.safety import SafetyConfig
from awp_ros_bridge.config.server import ServerConfig, SessionConfig


class WorldConfig(StrictModel):
    """How the world introduces itself to agents."""

    name: Text
    """Name of the world, such as demo-cell."""
    vendor: Text
    """Who is responsible for it."""
    version: Text = __version__
    """Version of the world; absent: the version of the bridge."""


class AuditConfig(StrictModel):
    """The record of every session on disk (AWP-AUD-001)."""

    directory: Text = '~/.ros/awp_audit'
    """Folder of the log files; made when absent. ~ is the home of the bridge's user."""
    max_file_mb: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Size at which a session's log continues in a next part."""
    quota_mb: Annotated[int, Field(ge=2, le=10_000_000)] = 2000
    """Size of the folder above which the oldest closed logs are deleted; open ones never."""
    required: Literal['refuse', 'stop', 'off'] = 'refuse'
    """While the log cannot be written: refuse new actions, stop the robot too, or go on (off)."""
    redact_paths: Items[JsonPointer] = ()
    """JSON pointers, from params or result, to values the log must not hold (AWP-AUD-006)."""


class ResetService(StrictModel):
    """The simulator's service that puts it into an initial state."""

    service: RosName
    """Name of the service, such as sim/reset."""
    type: ServiceType = 'simulation_interfaces/srv/ResetSimulation'
    """Its type."""


class SimulationConfig(StrictModel):
    """Says that the robot is simulated. Absent on hardware: world.reset is then never granted."""

    initial_states: Annotated[dict[Identifier, ResetService], Field(min_length=1)]
    """Named initial states for world.reset, each with its service (AWP-SIM-001)."""


class BridgeConfig(StrictModel):
    """Everything one bridge must know of its robot and its agents."""

    world: WorldConfig
    """How the world introduces itself to agents."""
    server: ServerConfig = ServerConfig()
    """Where agents connect, and the limits on what they may take."""
    session: SessionConfig = SessionConfig()
    """How long a silent or absent agent keeps its session."""
    safety: SafetyConfig = SafetyConfig()
    """When the world goes to its safe state by itself, and what it then does."""
    guardian: Literal['required', 'off'] = 'required'
    """The separate process that stops the robot when the bridge dies. required: without it
    nothing moves. off: a goal outlives a bridge process that is killed."""
    audit: AuditConfig = AuditConfig()
    """The record of every session on disk."""
    frames: FramesConfig = FramesConfig()
    """The frame tree that agents see, cut out of tf."""
    simulation: SimulationConfig | None = None
    """Only for simulated robots: initial states that agents may reset to."""
    embodiments: Annotated[dict[Identifier, Embodiment], Field(min_length=1)]
    """Bodies that agents bind, by name."""
    channels: dict[Identifier, Channel] = Field(default_factory=dict)
    """Observation channels, by name."""
    actions: Annotated[dict[Identifier, ActionConfig], Field(min_length=1)]
    """Action types, by name."""
