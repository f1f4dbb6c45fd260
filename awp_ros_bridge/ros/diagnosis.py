"""Owns the diagnosis as a value: how well something is, in words and figures; and as a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from awp_ros_bridge.engine.session_view import ChannelView, SessionView


class Level(IntEnum):
    """How well something is; the numbers of diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How well something is, what is the matter with it, and figures by name."""

    level: Level
    message: str
    values: Mapping[str, str] = field(default_factory=dict)

    def to_message(self, name: str, hardware_id: str) -> Any:
        """Return it as a DiagnosticStatus."""
        return DiagnosticStatus(
            level=bytes([self.level]),
            name=name,
            message=self.message,
            hardware_id=hardware_id,
            values=[KeyValue(key=key, value=value) for key, value in self.values.items()],
        )


def unproven(what: str) -> Diagnosis:
    """Return the diagnosis of what has not been shown to work yet."""
    return Diagnosis(Level.ERROR, f'not proven yet: {what}')


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """
    What the bridge's loop says about its own side, for ROS; it holds no secret.

    :param channels: who reads each channel of the world.
    """

    server: Diagnosis
    audit: Diagnosis
    sessions: tuple[SessionView, ...]
    channels: Mapping[str, ChannelView]
