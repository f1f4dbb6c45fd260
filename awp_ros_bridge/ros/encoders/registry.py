"""
Owns which encoders there are: the bridge's own, those of other packages, one for every other type.

Another package offers one through an entry point of the group ``awp_ros_bridge.encoders``; its
value is a class derived from :class:`awp_ros_bridge.ros.encoders.base.Encoder`, which tells the
types it encodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points, EntryPoint
from typing import Any

from awp_ros_bridge.config import ChannelFault, TopicChannel
from awp_ros_bridge.config.base import VENDOR_KEY
from awp_ros_bridge.ros.encoders.base import (
    Encoder,
    EncoderContext,
    JSON_MODALITIES,
    NoEncoder,
)
from awp_ros_bridge.ros.encoders.by_fields import FieldsEncoder
from awp_ros_bridge.ros.offers import load_offer

Json = dict[str, Any]

GROUP = 'awp_ros_bridge.encoders'

_OWN = {
    'joint_state': 'JointStateEncoder',
    'odometry': 'OdometryEncoder',
    'pose': 'PoseEncoder',
    'imu': 'ImuEncoder',
    'laser_scan': 'LaserScanEncoder',
    'wrench': 'WrenchEncoder',
    'battery': 'BatteryEncoder',
    'image': 'ImageEncoder',
    'compressed_image': 'CompressedImageEncoder',
    'point_cloud': 'PointCloudEncoder',
    'diagnostics': 'DiagnosticsEncoder',
}
_KEYS = ('frame', 'image', 'fields', 'prismatic')


@dataclass(frozen=True, slots=True)
class EncoderRegistry:
    """
    The encoders found at one moment.

    :param encoders: by the ROS type that they encode.
    :param problems: what kept an offered encoder out, by its name.
    """

    encoders: Mapping[str, type[Encoder]]
    problems: Mapping[str, str]

    def of(self, message_type: str) -> type[Encoder]:
        """Return the encoder of a type; what none knows is encoded by its fields."""
        return self.encoders.get(message_type, FieldsEncoder)

    def faults(self, channel: TopicChannel) -> Iterator[ChannelFault]:
        """Yield what is wrong with the settings of a channel, given its type."""
        encoder = self.of(channel.type)
        name = channel.type.rpartition('/')[2]
        if not _writes(encoder, channel.modality):
            known = ' or '.join(encoder.modalities)
            yield ChannelFault(
                ('modality',),
                f'the bridge cannot send {name} as {channel.modality}',
                encoder.instead.get(channel.modality, f'write {known}'),
            )
        for key in _KEYS:
            if getattr(channel, key) and key not in encoder.keys:
                yield ChannelFault((key,), f'{name} has no use for {key}', 'remove it')
        yield from encoder.faults(channel)

    def schema(self, channel: TopicChannel) -> Json:
        """Return the ``schema`` of a channel's declaration (AWP-DAT-002)."""
        return self.of(channel.type).schema(channel)

    def largest_bytes(self, channel: TopicChannel) -> int | None:
        """Return the size of the largest payload, None where the messages decide."""
        return self.of(channel.type).largest_bytes(channel)

    def make(self, channel: TopicChannel, context: EncoderContext) -> Encoder:
        """
        Make the encoder of a channel.

        :raises NoEncoder: its settings do not suit its type
        :raises InterfaceMissing: the type is not installed
        """
        fault = next((f for f in self.faults(channel) if not f.is_warning), None)
        if fault is not None:
            raise NoEncoder(f'no encoder for {channel.type}: {fault.what}; {fault.todo}')
        return self.of(channel.type).make(channel, context)


def discover(offers: Iterable[EntryPoint]) -> EncoderRegistry:
    """Load the bridge's own encoders and the offered ones; a broken offer harms only itself."""
    encoders: dict[str, type[Encoder]] = {}
    problems: dict[str, str] = {}
    for module, name in _OWN.items():
        encoder = getattr(import_module(f'{__package__}.{module}'), name)
        encoders |= dict.fromkeys(encoder.types, encoder)
    for offer in offers:
        found = _load(offer)
        if isinstance(found, str):
            problems[offer.name] = found
            continue
        taken = sorted(set(found.types) & set(encoders))
        if taken:
            problems[offer.name] = f'{offer.value}: {", ".join(taken)} has an encoder already'
            continue
        encoders |= dict.fromkeys(found.types, found)
    return EncoderRegistry(encoders, problems)


@cache
def registry() -> EncoderRegistry:
    """Return the encoders of this installation, found once."""
    return discover(entry_points(group=GROUP))


def make_encoder(channel: TopicChannel, context: EncoderContext | None = None) -> Encoder:
    """Make the encoder of a channel; see :meth:`EncoderRegistry.make`."""
    return registry().make(channel, context or EncoderContext())


def _writes(encoder: type[Encoder], modality: str) -> bool:
    if modality in encoder.modalities:
        return True
    is_json = set(encoder.modalities) <= set(JSON_MODALITIES) and len(encoder.modalities) > 1
    return is_json and VENDOR_KEY.match(modality) is not None  # AWP-MOD-002


def _load(offer: EntryPoint) -> type[Encoder] | str:
    found = load_offer(offer, Encoder)  # type: ignore[type-abstract]
    if isinstance(found, str) or found.types:
        return found
    return f'{offer.value} names no types'
