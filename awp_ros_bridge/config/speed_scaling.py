"""Owns the settings of speed scaling: where the robot tells how fast it lets motions run."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Gt
from pydantic import Field

from awp_ros_bridge.config.base import FieldPath, MessageType, RosName, StrictModel


class SpeedScaling(StrictModel):
    """
    How fast the robot lets its motions run, such as the speed slider of a pendant.

    It stretches stall_after_ms and nothing else: no deadline, no max_duration_ms.
    """

    topic: RosName
    """Topic that tells it."""
    type: MessageType
    """Its type, such as std_msgs/msg/Float64."""
    field: FieldPath
    """The number that tells it."""
    full: Annotated[float, Gt(0)]
    """The number at full speed, 100.0 for percent. The value divided by it, 0 to 1, is the share
    of time that counts for stall_after_ms: at half speed a stall takes twice as long to be told,
    at 0 nothing is one. What is silent or no finite number counts as full speed."""
    latched: bool = False
    """True: the topic is latched and tells changes only; its last value counts while it has a
    publisher."""
    stale_after_ms: Annotated[int, Field(ge=20, le=60_000)] = 1000
    """Silence of a topic that is not latched after which all time counts again."""
