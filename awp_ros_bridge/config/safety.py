"""Owns the settings that stop a robot: behaviour, inputs of the whole world."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from awp_ros_bridge.config.base import (
    Items,
    refuse,
    StrictModel,
    VENDOR_KEY,
    Word,
)
from awp_ros_bridge.config.safety_inputs import AnyInput

BEHAVIORS = ('hold', 'safe_stop', 'park')


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
    inputs: Items[AnyInput] = ()
    """Topics that can forbid the motion of every embodiment. All must permit it."""
    lease_ms: Annotated[int, Field(ge=250, le=2000)] = 300
    """Silence of the bridge process after which the guardian stops the robot; the bridge beats
    every 50 ms."""
    foreign_goals: Literal['block', 'allow'] = 'block'
    """Active goals of others on the servers of an embodiment: block new actions until they have
    ended, or allow them. Goals that an earlier run of a bridge left are cancelled either way."""
