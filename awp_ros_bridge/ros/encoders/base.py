"""Owns what an encoder is: from the serialized messages of one channel to AWP payloads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import orjson
from rclpy.serialization import deserialize_message

from awp_ros_bridge.config import ChannelFault, TopicChannel
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]
Encoded = tuple[bytes, int | None]

JSON_MODALITIES = ('proprio/json', 'text/event+json')
STREAM_DEFAULT_BYTES = 16 * 1024 * 1024


class NoEncoder(ValueError):
    """A channel that nothing can encode, with what to change."""


class BadMessage(ValueError):
    """
    A message that is not sent, because of what it holds.

    :ivar field: path of the field that is wrong
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f'{path} {what}')
        self.field = path


@dataclass(frozen=True, slots=True)
class EncoderContext:
    """
    What an encoder knows of the world around its channel.

    :param frames: AWP frame name by tf frame.
    :param max_payload_bytes: a larger payload is not sent (AWP-TRN-011).
    """

    frames: Mapping[str, str] = field(default_factory=dict)
    max_payload_bytes: int = STREAM_DEFAULT_BYTES


class Encoder(ABC):
    """
    Turns serialized messages of one channel into payloads; belongs to one thread.

    :cvar types: ROS types that it encodes, the names as in the configuration.
    :cvar modalities: AWP modalities that it can write; the first is the usual one.
    :cvar keys: keys of the channel that it uses beside those that every channel has.
    :cvar needs_frame: the channel has to name the AWP frame, since a message cannot.
    :ivar most_kept: most messages that the middleware may keep for it; large ones are few.
    :cvar summary: what becomes of a message, one sentence for the documents.
    """

    types: ClassVar[tuple[str, ...]] = ()
    modalities: ClassVar[tuple[str, ...]] = JSON_MODALITIES
    keys: ClassVar[frozenset[str]] = frozenset()
    most_kept: int = 200
    summary: ClassVar[str] = ''
    instead: ClassVar[Mapping[str, str]] = {}
    """Modality that it cannot write to what to do about it."""

    @classmethod
    @abstractmethod
    def make(cls, channel: TopicChannel, context: EncoderContext) -> Self:
        """
        Make the encoder of a channel.

        :raises NoEncoder: the channel's settings do not suit it
        """

    @classmethod
    @abstractmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the ``schema`` of the channel's declaration (AWP-DAT-002)."""

    @classmethod
    def faults(cls, channel: TopicChannel) -> Iterator[ChannelFault]:
        """Yield what is wrong with the channel's settings."""
        yield from ()

    @classmethod
    def largest_bytes(cls, channel: TopicChannel) -> int | None:
        """Return the size of the largest payload, None where the messages decide."""
        return None

    @abstractmethod
    def encode(self, raw: bytes) -> Encoded:
        """
        Return the payload and the message's stamp in ns, None where it has none.

        :raises BadMessage: the message is not sent
        """


class MessageEncoder(Encoder):
    """An encoder that looks at the deserialized message."""

    def __init__(self, channel: TopicChannel, context: EncoderContext) -> None:
        self._channel = channel
        self._frames = context.frames
        self._max_bytes = context.max_payload_bytes
        self._type = load_interface(channel.type)
        self._has_header = has_header(self._type)

    @classmethod
    def make(cls, channel: TopicChannel, context: EncoderContext) -> Self:
        """Make the encoder of a channel."""
        return cls(channel, context)

    @abstractmethod
    def payload(self, message: Any) -> bytes:
        """
        Return the payload of a message.

        :raises BadMessage: the message is not sent
        """

    def encode(self, raw: bytes) -> Encoded:
        """Return the payload and the stamp in ns."""
        message = deserialize_message(raw, self._type)
        payload = self.payload(message)
        if len(payload) > self._max_bytes:
            raise BadMessage(
                'payload',
                f'has {len(payload)} bytes, the most is {self._max_bytes}; raise '
                'server.max_frame_bytes, or publish less',
            )
        if not self._has_header:
            return payload, None
        stamp = message.header.stamp
        return payload, stamp.sec * 1_000_000_000 + stamp.nanosec

    def frame_of(self, frame_id: str, path: str = 'header.frame_id') -> str:
        """
        Return the AWP frame that a message names (AWP-UNI-003).

        :raises BadMessage: it is no frame of the tree, or not that of the channel
        """
        tf_frame = frame_id.removeprefix('/')
        wanted = self._channel.frame if path == 'header.frame_id' else None
        if not tf_frame:
            if wanted is None:
                raise BadMessage(path, 'is empty; let the publisher name its frame')
            return wanted
        name = self._frames.get(tf_frame)
        if name is None:
            raise BadMessage(
                path, f'is {frame_id!r}, no frame of the tree; add it to frames.include'
            )
        if wanted is not None and name != wanted:
            raise BadMessage(
                path, f'is {frame_id!r}, the AWP frame {name!r}; the channel is of {wanted!r}'
            )
        return name


class JsonEncoder(MessageEncoder):
    """An encoder of JSON; numpy arrays and numbers are written as short as they can be."""

    @abstractmethod
    def body(self, message: Any) -> Json:
        """
        Return what the payload holds.

        :raises BadMessage: the message is not sent
        """

    def payload(self, message: Any) -> bytes:
        """Return the payload of a message."""
        return orjson.dumps(self.body(message), option=orjson.OPT_SERIALIZE_NUMPY)


def has_header(message_type: Any) -> bool:
    """Tell whether a message begins with a std_msgs/msg/Header."""
    fields = message_type.get_fields_and_field_types()
    return bool(fields.get('header') == 'std_msgs/Header')
