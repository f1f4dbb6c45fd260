"""Owns the encoding of sensor_msgs/msg/CompressedImage as image/jpeg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from awp_ros_bridge.config import ChannelFault, TopicChannel
from awp_ros_bridge.ros.encoders.base import BadMessage, MessageEncoder
from awp_ros_bridge.ros.encoders.image import check_size, with_frame
from awp_ros_bridge.ros.encoders.jpeg import NotJpeg, size_of, whole

Json = dict[str, Any]

_COMPONENTS = {'srgb': 3, 'gray': 1}


class CompressedImageEncoder(MessageEncoder):
    """The JPEG as the camera made it, once its header says what the manifest does."""

    types = ('sensor_msgs/msg/CompressedImage',)
    modalities = ('image/jpeg',)
    keys = frozenset({'frame', 'image'})
    most_kept = 4
    summary = (
        'The channel declares `image: {width, height}`. Nothing is decoded: the header is '
        'compared with the size and the colour space; PNG and compressed depth are not sent.'
    )
    instead: ClassVar[dict[str, str]] = {
        'image/raw': 'write image/jpeg, or take the topic of the uncompressed images of type '
        'sensor_msgs/msg/Image',
    }

    @classmethod
    def faults(cls, channel: TopicChannel) -> Iterator[ChannelFault]:
        """Require the size."""
        if channel.image is None:
            yield ChannelFault(
                (),
                'image/jpeg declares the size of its images',
                'add image: {width: 640, height: 480}',
                ('image',),
            )
        elif channel.image.format is not None:
            yield ChannelFault(('image', 'format'), 'a JPEG has none', 'remove it')

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return what is declared of the images."""
        image = channel.image
        if image is None:
            return {}
        about = {
            'width': image.width,
            'height': image.height,
            'color_space': image.color_space or 'srgb',
        }
        return with_frame(about, channel)

    def payload(self, message: Any) -> bytes:
        """Return the JPEG."""
        if self._channel.frame is not None:
            self.frame_of(message.header.frame_id)
        try:
            jpeg = whole(bytes(message.data))
            size = size_of(jpeg)
        except NotJpeg as error:
            raise BadMessage(
                'data',
                f'of format {message.format!r} {error}; let the camera compress to jpeg '
                '(parameter format of compressed_image_transport)',
            ) from None
        check_size(size.width, size.height, self._channel)
        image = self._channel.image
        declared = 'srgb' if image is None or image.color_space is None else image.color_space
        if size.components != _COMPONENTS[declared]:
            raise BadMessage(
                'data',
                f'has {size.components} colour components, {declared} has '
                f'{_COMPONENTS[declared]}; change image.color_space',
            )
        return jpeg
