"""Owns the settings of observation channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from annotated_types import Gt, Le
from pydantic import Discriminator, Field, Tag

from awp_ros_bridge.config.base import (
    FieldPath,
    Identifier,
    Items,
    MessageType,
    Modality,
    RosName,
    StrictModel,
    Text,
    TfFrame,
)
from awp_ros_bridge.config.problems import Path

TF_CHANNEL = 'awp.tf'  # AWP-UNI-004, declared by the bridge itself whenever frames are configured
LossClass = Literal['reliable', 'latest-wins']
Rate = Annotated[float, Gt(0), Le(10_000)]
UnitSuffix = Literal[
    'm', 'rad', 's', 'ms', 'ns', 'mps', 'radps', 'mps2', 'radps2', 'n', 'nm', 'kg', 'hz',
    'pa', 'k', 'v', 'a', 'c', 't', 'j', 'w', 'none',
    'deg', 'degps', 'rpm', 'mm', 'degc', 'bar', 'mv', 'ma', 'percent',
]  # fmt: skip


class ImageConfig(StrictModel):
    """What an image channel declares of its images; others than these are not sent."""

    width: Annotated[int, Field(ge=1, le=65_535)]
    """Pixels of a row."""
    height: Annotated[int, Field(ge=1, le=65_535)]
    """Rows."""
    format: Literal['rgb8', 'bgr8', 'mono16', 'depth32f'] | None = None
    """image/raw only: how pixels are packed; that of the camera costs least. depth32f is in m."""
    color_space: Literal['srgb', 'gray'] | None = None
    """image/jpeg only. Absent: srgb."""


class TopicChannel(StrictModel):
    """A channel that carries a ROS topic."""

    topic: RosName
    """Topic to subscribe to; its quality of service is matched to what publishers offer."""
    type: MessageType
    """Its message type, such as sensor_msgs/msg/JointState."""
    modality: Modality
    """AWP modality of the frames, such as proprio/json (AWP-MOD-002)."""
    rate_hz: Rate
    """Nominal and highest rate of frames; faster topics are thinned out, never slowed down."""
    loss_class: LossClass
    """reliable: no frame is lost; latest-wins: a slow agent sees the newest only (AWP-DAT-002)."""
    stale_after_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None
    """Age from which frames are stale (AWP-SAF-009). Absent: twice the period."""
    frame: Identifier | None = None
    """AWP frame of what is observed; needed where messages do not name it. Only messages of this
    frame, or of none, are sent. Absent: the frame that each message names, if the tree has it."""
    image: ImageConfig | None = None
    """Size and format of images, needed for image/raw and image/jpeg."""
    prismatic: Items[Text] = ()
    """JointState only: names of the joints that slide; they are reported in m, m/s and N."""
    fields: dict[FieldPath, UnitSuffix] | None = None
    """Unit of each number of a type without an encoder of its own, such as voltage: v
    (docs/observations.md); a path stands for all below it, items of lists need no brackets."""


class EmbodimentStateChannel(StrictModel):
    """A channel on which the bridge itself tells what an embodiment is doing and what stops it."""

    source: Literal['embodiment_state']
    """embodiment_state: motion permitted, safe state, rest, running action, reasons."""
    embodiment: Identifier | None = None
    """Embodiment it tells of; absent: the one that lists the channel."""
    modality: Literal['text/event+json'] = 'text/event+json'
    """AWP modality of the frames; always text/event+json."""
    rate_hz: Rate = 10.0
    """Frames per second; a change is sent at once."""
    loss_class: LossClass = 'reliable'
    """reliable: no frame is lost; latest-wins: a slow agent sees the newest only (AWP-DAT-002)."""
    stale_after_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None
    """Age from which frames are stale (AWP-SAF-009). Absent: twice the period."""


def _channel_tag(value: Any) -> str:
    if isinstance(value, EmbodimentStateChannel) or (
        isinstance(value, dict) and 'source' in value
    ):
        return 'embodiment state channel'
    return 'topic channel'


Channel = Annotated[
    Annotated[TopicChannel, Tag('topic channel')]
    | Annotated[EmbodimentStateChannel, Tag('embodiment state channel')],
    Discriminator(_channel_tag),
]


@dataclass(frozen=True, slots=True)
class ChannelFault:
    """
    What is wrong with the settings of a channel, given its type.

    :param path: keys below the channel; empty for the channel itself.
    :param refers: key that would mend it, where that is not ``path``.
    """

    path: Path
    what: str
    todo: str
    refers: Path | None = None
    is_warning: bool = False


class Encoders(Protocol):
    """What is known of the types that channels can carry."""

    def faults(self, channel: TopicChannel) -> Iterable[ChannelFault]:
        """Give what is wrong with the settings of a channel."""
        ...

    def schema(self, channel: TopicChannel) -> dict[str, Any]:
        """Give the schema of its declaration (AWP-DAT-002)."""
        ...

    def largest_bytes(self, channel: TopicChannel) -> int | None:
        """Give the size of its largest payload, None where messages decide."""
        ...


class FramesConfig(StrictModel):
    """The frame tree that agents see, cut out of tf (AWP-UNI-003)."""

    root: Identifier = 'world'
    """AWP name of the root frame; its tf frame has the same name unless include says another."""
    include: dict[Identifier, TfFrame] = Field(default_factory=dict)
    """AWP frame name to tf frame. AWP names have no slash, tf frames may have."""
    tf_rate_hz: Annotated[float, Field(gt=0, le=100)] = 10.0
    """Rate of the channel awp.tf, which the bridge declares for every embodiment by itself."""

    @property
    def tf_frames(self) -> dict[str, str]:
        """AWP frame name to tf frame, the root first."""
        return {self.root: self.include.get(self.root, self.root), **self.include}
