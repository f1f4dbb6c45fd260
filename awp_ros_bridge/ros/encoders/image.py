"""Owns the encoding of sensor_msgs/msg/Image as image/raw: packed pixels of a declared format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from awp_ros_bridge.config import ChannelFault, TopicChannel
from awp_ros_bridge.ros.encoders.base import BadMessage, EncoderContext, MessageEncoder

Json = dict[str, Any]
Pixels = Any
"""An array of rows, columns and, where there are several, channels."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How an image topic packs its pixels."""

    channels: int
    dtype: str


_ENCODINGS = {
    'rgb8': Encoding(3, 'u1'),
    'bgr8': Encoding(3, 'u1'),
    'rgba8': Encoding(4, 'u1'),
    'bgra8': Encoding(4, 'u1'),
    'mono8': Encoding(1, 'u1'),
    'mono16': Encoding(1, 'u2'),
    '16UC1': Encoding(1, 'u2'),
    '32FC1': Encoding(1, 'f4'),
}


def _as_it_is(pixels: Pixels) -> Pixels:
    return pixels


def _picking(*order: int) -> Callable[[Pixels], Pixels]:
    """Return what takes channels in another order, one by one: rows are long, pixels are not."""

    def convert(pixels: Pixels) -> Pixels:
        found = np.empty((*pixels.shape[:2], len(order)), pixels.dtype)
        for at, channel in enumerate(order):
            found[..., at] = pixels[..., channel]
        return found

    return convert


_reversed = _picking(2, 1, 0)
_without_alpha = _picking(0, 1, 2)


def _grey(pixels: Pixels) -> Pixels:
    return np.repeat(pixels[..., np.newaxis], 3, axis=-1)


def _millimetres(pixels: Pixels) -> Pixels:
    """Turn a depth image in mm into metres; 0 says that nothing was measured (REP 118)."""
    depth = pixels.astype('<f4') / np.float32(1000)
    depth[pixels == 0] = np.nan
    return depth


#: What may become of which encoding, by declared format.
CONVERSIONS: dict[str, dict[str, Callable[[Pixels], Pixels]]] = {
    'rgb8': {
        'rgb8': _as_it_is,
        'bgr8': _reversed,
        'rgba8': _without_alpha,
        'bgra8': _reversed,
        'mono8': _grey,
    },
    'bgr8': {
        'bgr8': _as_it_is,
        'rgb8': _reversed,
        'bgra8': _without_alpha,
        'rgba8': _reversed,
        'mono8': _grey,
    },
    'mono16': {'mono16': _as_it_is},
    'depth32f': {'32FC1': _as_it_is, '16UC1': _millimetres},
}
_WRITTEN = {'rgb8': 'u1', 'bgr8': 'u1', 'mono16': '<u2', 'depth32f': '<f4'}
_PIXEL_BYTES = {'rgb8': 3, 'bgr8': 3, 'mono16': 2, 'depth32f': 4}


class ImageEncoder(MessageEncoder):
    """Packed pixels of the declared size and format, rows without padding, little-endian."""

    types = ('sensor_msgs/msg/Image',)
    modalities = ('image/raw',)
    keys = frozenset({'frame', 'image'})
    most_kept = 4
    summary = (
        'The channel declares `image: {width, height, format}`. Rows lose their padding, '
        'big-endian pixels are turned round; depth in mm (`16UC1`) becomes metres, its 0 NaN.'
    )
    instead: ClassVar[dict[str, str]] = {
        'image/jpeg': 'write image/raw, or let image_transport compress beside the camera '
        '(package compressed_image_transport) and take its topic <image topic>/compressed of '
        'type sensor_msgs/msg/CompressedImage',
    }

    def __init__(self, channel: TopicChannel, context: EncoderContext) -> None:
        super().__init__(channel, context)
        assert channel.image is not None
        self._image = channel.image
        self._format = channel.image.format or ''

    @classmethod
    def faults(cls, channel: TopicChannel) -> Iterator[ChannelFault]:
        """Require size and format."""
        if channel.image is None:
            yield ChannelFault(
                (),
                'image/raw declares the size and format of its images',
                f'add image: {{width: 640, height: 480, format: {" or ".join(_PIXEL_BYTES)}}}',
                ('image',),
            )
            return
        if channel.image.format is None:
            yield ChannelFault(
                ('image',),
                'image/raw declares the format of its pixels',
                f'add format: {" or ".join(_PIXEL_BYTES)}',
                ('image', 'format'),
            )
        if channel.image.color_space is not None:
            yield ChannelFault(
                ('image', 'color_space'), 'image/raw has none', 'remove it; format says all'
            )

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return what is declared of the images."""
        image = channel.image
        if image is None or image.format is None:
            return {}
        about: Json = {
            'width': image.width,
            'height': image.height,
            'format': image.format,
            'stride': image.width * _PIXEL_BYTES[image.format],
        }
        if _PIXEL_BYTES[image.format] != 3:
            about['byte_order'] = 'little'
        if image.format == 'depth32f':
            about['unit'] = 'm'
        return with_frame(about, channel)

    @classmethod
    def largest_bytes(cls, channel: TopicChannel) -> int | None:
        """Return the size of an image."""
        image = channel.image
        if image is None or image.format is None:
            return None
        return image.width * image.height * _PIXEL_BYTES[image.format]

    def payload(self, message: Any) -> bytes:
        """Return the pixels."""
        if self._channel.frame is not None:
            self.frame_of(message.header.frame_id)
        convert = CONVERSIONS[self._format].get(message.encoding)
        if convert is None:
            raise BadMessage('encoding', _cannot(message.encoding, self._format))
        check_size(message.width, message.height, self._channel)
        found = convert(_pixels(message, _ENCODINGS[message.encoding]))
        return bytes(np.ascontiguousarray(found, dtype=_WRITTEN[self._format]).data)


def check_size(width: int, height: int, channel: TopicChannel) -> None:
    """
    Compare the size of an image with what the manifest says.

    :raises BadMessage: it is another
    """
    image = channel.image
    if image is not None and (width, height) != (image.width, image.height):
        raise BadMessage(
            'width and height',
            f'are {width} x {height}, the channel declares {image.width} x {image.height}; '
            'change image, or what the camera sends',
        )


def with_frame(about: Json, channel: TopicChannel) -> Json:
    """Add the frame of a channel to its declaration."""
    return about if channel.frame is None else {**about, 'frame': channel.frame}


def _pixels(message: Any, encoding: Encoding) -> Pixels:
    """
    Return the pixels of a message as an array, without padding.

    :raises BadMessage: its numbers do not agree with its data
    """
    dtype = np.dtype(encoding.dtype).newbyteorder('>' if message.is_bigendian else '<')
    width, height, step = message.width, message.height, message.step
    row = width * encoding.channels * dtype.itemsize
    if step < row:
        raise BadMessage(
            'step', f'is {step} bytes; {width} pixels of {message.encoding} need {row}'
        )
    if len(message.data) != step * height:
        raise BadMessage(
            'data', f'has {len(message.data)} bytes; {height} rows of {step} are {step * height}'
        )
    rows = np.frombuffer(message.data, 'u1').reshape(height, step)[:, :row]
    if dtype.itemsize > 1:
        rows = np.ascontiguousarray(rows).view(dtype)
    if encoding.channels == 1:
        return rows
    return rows.reshape(height, width, encoding.channels)


def _cannot(encoding: str, wanted: str) -> str:
    known = ', '.join(CONVERSIONS[wanted])
    text = f'is {encoding!r}, which does not become {wanted}; {wanted} is made of {known}'
    if encoding.startswith('bayer'):
        return f'{text}; take the colour or mono topic of image_proc (image_proc::DebayerNode)'
    if encoding in ('16UC1', '32FC1'):
        return f'{text}; if it is a depth image, declare format: depth32f'
    return f'{text}; let the camera or image_proc publish one of them'
