"""Owns the settings of an embodiment: what it may do, what stops it, how it is measured."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from awp_ros_bridge.config.base import Identifier, Items, RosName, StrictModel, Text
from awp_ros_bridge.config.envelope import Envelope
from awp_ros_bridge.config.rest import AtRest
from awp_ros_bridge.config.safety_inputs import AnyInput
from awp_ros_bridge.config.speed_scaling import SpeedScaling
from awp_ros_bridge.config.stop_steps import StopStep


class UrdfTopic(StrictModel):
    """The robot description comes from a latched topic."""

    topic: RosName
    """Latched std_msgs/msg/String topic with the URDF, usually robot_description."""


class DescriptionUnread(ValueError):
    """A robot description that cannot be read."""


class UrdfFile(StrictModel):
    """The robot description comes from a file."""

    file: Text
    """URDF file, relative to this configuration; xacro is not expanded."""

    def read(self, folder: FilePath) -> str:
        """
        Return the description.

        :param folder: where relative paths of the configuration begin.
        :raises DescriptionUnread: it cannot be read; the text names the path and why
        """
        path = folder / FilePath(self.file).expanduser()
        try:
            return path.read_text(encoding='utf-8')
        except OSError as error:
            raise DescriptionUnread(f'{path}: {error.strerror}') from error
        except UnicodeDecodeError as error:
            raise DescriptionUnread(f'{path}: is no text') from error


def _urdf_tag(value: Any) -> str:
    if isinstance(value, UrdfFile) or (isinstance(value, dict) and 'file' in value):
        return 'urdf file'
    return 'urdf topic'


Urdf = Annotated[
    Annotated[UrdfTopic, Tag('urdf topic')] | Annotated[UrdfFile, Tag('urdf file')],
    Discriminator(_urdf_tag),
]


class Kinematics(StrictModel):
    """The chain that turns joint goals into tip positions, for spatial and velocity limits."""

    urdf: Urdf
    """Where the robot description comes from: {topic: robot_description} or {file: path}."""
    base_frame: Text
    """Link at which the chain begins."""
    tip_frame: Text
    """Link at which the chain ends; limits apply to its origin."""


class Embodiment(StrictModel):
    """One body that an agent binds: its actions, channels, safety inputs, limits and stop."""

    kind: Text
    """Class of the body for agents, such as manipulator, gripper, mobile_base."""
    description: Text | None = None
    """One sentence for agents, shown in the manifest."""
    actions: Annotated[Items[Identifier], Field(min_length=1)]
    """Action types it offers, keys of actions."""
    channels: Items[Identifier] = ()
    """Observation channels it offers, keys of channels; awp.tf is added by the bridge."""
    multi_bind_group: Identifier | None = None
    """Embodiments of one group can be bound together by one session (AWP-MAN-007)."""
    stop_steps: Annotated[Items[StopStep], Field(min_length=1)] = ('cancel_goals', 'wait_at_rest')
    """Steps that realise the safe-state behaviour: cancel_goals first, wait_at_rest last, between
    them mappings with step: publish_zeros, call_service or park. Cancels, zeros and service calls
    begin at once and together; park follows measured rest. stay_in_place says that this body has
    nothing to do for a world that parks."""
    at_rest: AtRest
    """How rest is measured: by joint states {topic, joints, max_velocity_radps, ...}, by
    {odometry: odom, ...}, by {tf: {frame, reference}, ...}, or say
    {unmeasured: true, settle_ms: ...}."""
    speed_scaling: SpeedScaling | None = None
    """Where the robot tells how fast it lets motions run, for stall_after_ms of its actions.
    Absent: always at full speed."""
    kinematics: Kinematics | None = None
    """Kinematic chain; needed where limits are checked on joint goals."""
    safety_inputs: Items[AnyInput] = ()
    """Topics that can forbid motion, besides safety.inputs. All must permit it."""
    envelope: Envelope | None = None
    """Limits of the embodiment. Absent: none are declared."""
