"""Owns the rules between channels, the types that they carry and the frames that they name."""

from __future__ import annotations

from collections.abc import Iterator

from awp_ros_bridge.config.channels import Encoders, TopicChannel
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Finding, nearest, Severity
from awp_ros_bridge.engine.channels import FRAME_OVERHEAD

Findings = Iterator[Finding]


def _topics(config: BridgeConfig) -> Iterator[tuple[str, TopicChannel]]:
    for name, channel in config.channels.items():
        if isinstance(channel, TopicChannel):
            yield name, channel


def frames_of_channels_exist(config: BridgeConfig) -> Findings:
    """Refuse the frame of a channel that nobody declares (AWP-UNI-003)."""
    known = config.frames.tf_frames
    for name, channel in _topics(config):
        if channel.frame is not None and channel.frame not in known:
            yield Finding(
                ('channels', name, 'frame'),
                f'frame {channel.frame!r} is not declared',
                f'add it to frames.include; {nearest(channel.frame, known)}',
                refers=('frames', 'include', channel.frame),
            )


def channels_can_be_encoded(config: BridgeConfig, encoders: Encoders) -> Findings:
    """Require what the type of a channel needs: modality, units of its numbers, image, frame."""
    for name, channel in _topics(config):
        here = ('channels', name)
        for fault in encoders.faults(channel):
            yield Finding(
                (*here, *fault.path),
                fault.what,
                fault.todo,
                Severity.WARNING if fault.is_warning else Severity.ERROR,
                refers=None if fault.refers is None else (*here, *fault.refers),
            )


def images_fit_a_frame(config: BridgeConfig, encoders: Encoders) -> Findings:
    """Refuse images that are larger than a frame may be (AWP-TRN-011)."""
    most = config.server.max_frame_bytes - FRAME_OVERHEAD
    for name, channel in _topics(config):
        size = encoders.largest_bytes(channel)
        if size is not None and size > most:
            yield Finding(
                ('channels', name, 'image'),
                f'an image has {size} bytes, the most that server.max_frame_bytes lets pass is '
                f'{most}',
                'raise server.max_frame_bytes, or let the camera send smaller images',
                refers=('server', 'max_frame_bytes'),
            )


CHANNEL_RULES = (frames_of_channels_exist,)
ENCODER_RULES = (channels_can_be_encoded, images_fit_a_frame)
