"""Encoders of pixels and points: exact bytes, padding, byte order, what is not sent."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from encoder_rig import encoded, kind_of, refused, stamped, topic
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage, Image, PointCloud2, PointField

from awp_ros_bridge.ros.encoders.base import BadMessage, EncoderContext
from awp_ros_bridge.ros.encoders.jpeg import NotJpeg, size_of, whole
from awp_ros_bridge.ros.encoders.registry import make_encoder, registry

Json = dict[str, Any]

SIZE = {'width': 3, 'height': 2}
COLOURS = np.arange(18, dtype='u1').reshape(2, 3, 3)
RAW = 'image/raw'


def image(encoding: str, pixels: Any, padding: int = 0, is_bigendian: bool = False) -> Image:
    """Make an image message of an array of rows, columns (and channels)."""
    height, width = pixels.shape[:2]
    rows = np.frombuffer(pixels.tobytes(), 'u1').reshape(height, -1)
    rows = np.pad(rows, ((0, 0), (0, padding)), constant_values=0xEE)
    message = Image(
        height=height, width=width, encoding=encoding, step=rows.shape[1],
        is_bigendian=int(is_bigendian),
    )  # fmt: skip
    message.data.frombytes(rows.tobytes())
    return stamped(message)


def pixels_of(message: Image, wanted: str, **more: Any) -> bytes:
    channel = topic(kind_of(message), RAW, image={**SIZE, 'format': wanted}, **more)
    payload = encoded(message, channel)
    assert len(payload) == registry().largest_bytes(channel)
    return payload


ALPHA = np.concatenate([COLOURS, np.full((2, 3, 1), 0xFF, 'u1')], axis=2)


@pytest.mark.parametrize('padding', [0, 5])
@pytest.mark.parametrize(
    ('encoding', 'given_pixels', 'wanted', 'result'),
    [
        ('rgb8', COLOURS, 'rgb8', COLOURS),
        ('bgr8', COLOURS, 'bgr8', COLOURS),
        ('bgr8', COLOURS, 'rgb8', COLOURS[..., ::-1]),
        ('rgb8', COLOURS, 'bgr8', COLOURS[..., ::-1]),
        ('rgba8', ALPHA, 'rgb8', COLOURS),
        ('bgra8', ALPHA, 'rgb8', COLOURS[..., ::-1]),
        ('bgra8', ALPHA, 'bgr8', COLOURS),
        ('rgba8', ALPHA, 'bgr8', COLOURS[..., ::-1]),
        ('mono8', COLOURS[..., 0], 'rgb8', np.stack([COLOURS[..., 0]] * 3, axis=2)),
    ],
)
def test_colours_are_packed_as_declared(
    encoding: str, given_pixels: Any, wanted: str, result: Any, padding: int
) -> None:
    assert pixels_of(image(encoding, given_pixels, padding), wanted) == result.tobytes()


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize('padding', [0, 3])
def test_wide_pixels_become_little_endian(order: str, padding: int) -> None:
    grey = np.array([[1, 256, 65535], [0, 2, 3]], 'u2')
    message = image('mono16', grey.astype(f'{order}u2'), padding, order == '>')
    assert pixels_of(message, 'mono16') == grey.astype('<u2').tobytes()
    depth = np.array([[1.5, np.nan, np.inf], [0.0, 2.25, -1.0]], 'f4')
    message = image('32FC1', depth.astype(f'{order}f4'), padding, order == '>')
    assert pixels_of(message, 'depth32f') == depth.astype('<f4').tobytes()
    millimetres = np.array([[1500, 0, 250], [65535, 1, 0]], f'{order}u2')
    found = np.frombuffer(
        pixels_of(image('16UC1', millimetres, padding, order == '>'), 'depth32f'), '<f4'
    )
    np.testing.assert_array_equal(
        found, np.array([1.5, np.nan, 0.25, 65.535, 0.001, np.nan], '<f4')
    )


@pytest.mark.parametrize(
    ('encoding', 'wanted', 'because'),
    [
        ('bayer_rggb8', 'rgb8', "'bayer_rggb8', which does not become rgb8; .*DebayerNode"),
        ('yuv422', 'rgb8', 'rgb8 is made of rgb8, bgr8, rgba8, bgra8, mono8; let the camera'),
        ('16UC1', 'mono16', 'if it is a depth image, declare format: depth32f'),
        ('', 'bgr8', "encoding is '', which does not become bgr8"),
        ('mono16', 'depth32f', 'depth32f is made of 32FC1, 16UC1'),
    ],
)
def test_encodings_that_do_not_become_the_format_are_told(
    encoding: str, wanted: str, because: str
) -> None:
    message = image(encoding, COLOURS)
    refused(message, because, RAW, image={**SIZE, 'format': wanted})


def test_images_whose_numbers_do_not_agree_are_not_sent() -> None:
    declared = {**SIZE, 'format': 'rgb8'}
    larger = image('rgb8', np.zeros((4, 3, 3), 'u1'))
    refused(larger, 'are 3 x 4, the channel declares 3 x 2; change image', RAW, image=declared)
    short = image('rgb8', COLOURS)
    short.step = 8
    refused(short, 'step is 8 bytes; 3 pixels of rgb8 need 9', RAW, image=declared)
    cut = image('rgb8', COLOURS)
    cut.data.pop()
    refused(cut, 'data has 17 bytes; 2 rows of 9 are 18', RAW, image=declared)
    cut.data.extend([0, 0])
    refused(cut, 'data has 19 bytes', RAW, image=declared)
    huge = image('rgb8', COLOURS)
    huge.step = 2**32 - 1
    refused(huge, 'data has 18 bytes; 2 rows of 4294967295', RAW, image=declared)


def test_the_frame_of_a_camera_is_declared_and_compared() -> None:
    message = image('rgb8', COLOURS)
    assert pixels_of(message, 'rgb8', frame='laser') == COLOURS.tobytes()
    message.header.frame_id = 'somewhere'
    assert pixels_of(message, 'rgb8') == COLOURS.tobytes()  # it says nothing of a frame
    declared = {**SIZE, 'format': 'rgb8'}
    refused(message, "'somewhere', no frame of the tree", RAW, image=declared, frame='laser')


def test_what_image_channels_declare() -> None:
    raw = topic('sensor_msgs/msg/Image', RAW, image={**SIZE, 'format': 'depth32f'}, frame='laser')
    assert registry().schema(raw) == {
        'width': 3, 'height': 2, 'format': 'depth32f', 'stride': 12, 'byte_order': 'little',
        'unit': 'm', 'frame': 'laser',
    }  # fmt: skip
    jpeg = topic('sensor_msgs/msg/CompressedImage', 'image/jpeg', image=SIZE)
    assert registry().schema(jpeg) == {'width': 3, 'height': 2, 'color_space': 'srgb'}


# ---------------------------------------------------------------- JPEG


def jpeg(width: int = 3, height: int = 2, components: int = 3) -> bytes:
    """Write the markers of a JPEG with the size in its frame header, and little else."""
    app = b'\xff\xe0\x00\x04\xff\xd9'  # a segment that holds what looks like the end
    frame = bytes([8, height >> 8, height & 255, width >> 8, width & 255, components])
    frame += bytes(3 * components)
    start = b'\xff\xc0' + (len(frame) + 2).to_bytes(2, 'big') + frame
    scan = b'\xff\xda\x00\x02\x12\x34'
    return b'\xff\xd8' + app + b'\xff' + start + scan + b'\xff\xd9'


def compressed(data: bytes, kind: str = 'jpeg') -> CompressedImage:
    message = CompressedImage(format=kind)
    message.data.frombytes(data)
    return stamped(message)


def test_a_jpeg_is_sent_as_it_came() -> None:
    channel = topic('sensor_msgs/msg/CompressedImage', 'image/jpeg', image=SIZE)
    for kind in ('', 'jpeg', 'rgb8; jpeg compressed bgr8'):
        assert encoded(compressed(jpeg(), kind), channel) == jpeg()
    assert encoded(compressed(jpeg() + b'\0' * 7), channel) == jpeg()
    grey = topic(channel.type, 'image/jpeg', image={**SIZE, 'color_space': 'gray'})
    assert encoded(compressed(jpeg(components=1)), grey) == jpeg(components=1)


@pytest.mark.parametrize(
    ('data', 'because'),
    [
        (jpeg(4, 2), 'are 4 x 2, the channel declares 3 x 2'),
        (jpeg(components=1), 'data has 1 colour components, srgb has 3; change image.color_space'),
        (jpeg(components=4), 'data has 4 colour components'),
        (b'', "data of format 'jpeg' begins with nothing, a JPEG with ff d8"),
        (b'\x89PNG\r\n', 'begins with 89 50 4e 47, .*let the camera compress to jpeg'),
        (jpeg()[:-1], 'ends before the end of the image'),
        (b'\xff\xd8\xff\xd9', 'does not say its size'),
        (b'\xff\xd8\xff\xda\x00\x02\xff\xd9', 'does not say its size'),
        (b'\xff\xd8\xff\xe0\x00\x00\xff\xd9', 'has a segment of 0 bytes at byte 2'),
        (b'\xff\xd8\x00\xe0\x00\x00\xff\xd9', 'has no marker at byte 2'),
    ],
)
def test_what_is_no_jpeg_of_the_declared_size_is_not_sent(data: bytes, because: str) -> None:
    refused(compressed(data), because, 'image/jpeg', image=SIZE)


@given(st.binary(max_size=200), st.integers(0, 40))
def test_no_bytes_make_the_header_reader_fail_otherwise(noise: bytes, cut: int) -> None:
    for data in (noise, b'\xff\xd8' + noise + b'\xff\xd9', jpeg()[:cut] + noise + b'\xff\xd9'):
        try:
            size = size_of(whole(data))
        except NotJpeg:
            continue
        assert size.width >= 0


# ---------------------------------------------------------------- points

CLOUD = 'pointcloud/xyz32'
FLOAT32, FLOAT64 = PointField.FLOAT32, PointField.FLOAT64


def cloud(
    points: Any,
    *,
    offsets: tuple[int, int, int] = (0, 4, 8),
    point_step: int = 16,
    height: int = 1,
    padding: int = 0,
    datatype: int = FLOAT32,
    order: str = '<',
) -> PointCloud2:
    """Make a cloud of points, with something in between and behind each row."""
    width = len(points) // height
    code = 'f4' if datatype == FLOAT32 else 'f8'
    layout = np.dtype(
        {'names': ['x', 'y', 'z'], 'formats': [order + code] * 3, 'offsets': list(offsets),
         'itemsize': point_step}
    )  # fmt: skip
    packed = np.zeros(len(points), layout)
    for column, axis in enumerate('xyz'):
        packed[axis] = np.asarray(points)[:, column]
    rows = np.frombuffer(packed.tobytes(), 'u1').reshape(height, width * point_step)
    rows = np.pad(rows, ((0, 0), (0, padding)), constant_values=0x7F)
    message = PointCloud2(
        height=height, width=width, point_step=point_step, row_step=rows.shape[1],
        is_bigendian=order == '>', is_dense=False,
    )  # fmt: skip
    message.fields = [
        PointField(name=axis, offset=offset, datatype=datatype, count=1)
        for axis, offset in zip('xyz', offsets, strict=True)
    ]
    message.data.frombytes(rows.tobytes())
    return stamped(message)


POINTS = np.array([[1, 2, 3], [-1.5, 0.25, 8], [0, 0, 0], [4, 5, 6]], 'f8')


def points_of(message: PointCloud2) -> Any:
    payload = encoded(message, topic('sensor_msgs/msg/PointCloud2', CLOUD, frame='laser'))
    return np.frombuffer(payload, '<f4').reshape(-1, 3)


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize('padding', [0, 8])
@pytest.mark.parametrize('height', [1, 2])
def test_points_are_packed_whatever_the_layout(order: str, padding: int, height: int) -> None:
    layout: Json = {'order': order, 'padding': padding, 'height': height}
    np.testing.assert_array_equal(points_of(cloud(POINTS, **layout)), POINTS)
    turned = cloud(POINTS, offsets=(20, 4, 12), point_step=24, **layout)
    np.testing.assert_array_equal(points_of(turned), POINTS)
    doubled = cloud(POINTS, offsets=(0, 8, 16), point_step=24, datatype=FLOAT64, **layout)
    np.testing.assert_array_equal(points_of(doubled), POINTS)


def test_points_that_are_not_finite_are_left_out() -> None:
    points = POINTS.copy()
    points[0, 1], points[2, 2] = np.nan, -np.inf
    np.testing.assert_array_equal(points_of(cloud(points)), POINTS[[1, 3]])
    far = POINTS.copy()
    far[1, 0] = 1e300  # of a float64 that no float32 holds
    message = cloud(far, offsets=(0, 8, 16), point_step=24, datatype=FLOAT64)
    np.testing.assert_array_equal(points_of(message), POINTS[[0, 2, 3]])


def test_a_cloud_without_points_is_an_empty_payload() -> None:
    empty = cloud(np.empty((0, 3)))
    channel = topic('sensor_msgs/msg/PointCloud2', CLOUD, frame='laser')
    assert encoded(empty, channel) == b''
    empty.point_step = 2**32 - 1
    assert encoded(empty, channel) == b''


def changed(**changes: Any) -> PointCloud2:
    message = cloud(POINTS, height=2)
    for name, value in changes.items():
        setattr(message, name, value)
    return message


def field(name: str, **changes: Any) -> PointField:
    return PointField(**{'name': name, 'datatype': FLOAT32, 'count': 1, 'offset': 0, **changes})


@pytest.mark.parametrize(
    ('message', 'because'),
    [
        (changed(fields=[field('x'), field('z')]), "fields have no 'y'; there are x, z"),
        (changed(fields=[]), "fields have no 'x'; there are none"),
        (
            changed(fields=[field('x', datatype=PointField.INT16), field('y'), field('z')]),
            r'fields\[x\] has datatype 3, count 1; a coordinate is one FLOAT32',
        ),
        (changed(fields=[field('x', count=3), field('y'), field('z')]), 'datatype 7, count 3'),
        (
            changed(fields=[field('x'), field('y', offset=14), field('z')]),
            r'fields\[y\] begins at byte 14 of a point of 16 bytes',
        ),
        (changed(row_step=31), 'row_step is 31; 2 points of 16 bytes need more'),
        (changed(row_step=40), 'data has 64 bytes; 2 rows of 40 are 80'),
        (changed(height=3), 'data has 64 bytes; 3 rows of 32 are 96'),
        (changed(point_step=0), 'begins at byte 0 of a point of 0 bytes'),
    ],
)
def test_clouds_whose_numbers_do_not_agree_are_not_sent(
    message: PointCloud2, because: str
) -> None:
    refused(message, because, CLOUD, frame='laser')


def test_points_of_another_frame_are_not_sent() -> None:
    message = cloud(POINTS)
    message.header.frame_id = 'rig/base'
    refused(message, "the channel is of 'laser'", CLOUD, frame='laser')


def test_what_is_larger_than_a_frame_is_not_sent() -> None:
    channel = topic('sensor_msgs/msg/PointCloud2', CLOUD, frame='laser')
    assert len(encoded(cloud(POINTS), channel, max_bytes=48)) == 48
    with pytest.raises(BadMessage, match='payload has 48 bytes, the most is 47; raise server'):
        encoded(cloud(POINTS), channel, max_bytes=47)


# ---------------------------------------------------------------- whatever comes


@settings(max_examples=150)
@given(data=st.data())
def test_no_numbers_make_an_encoder_fail_otherwise(data: st.DataObject) -> None:
    """Headers that lie about their data end in BadMessage or a payload of the declared size."""
    small = st.integers(0, 40)
    message = Image(
        width=data.draw(st.sampled_from([0, 2, 3])),
        height=data.draw(st.sampled_from([0, 2, 3])),
        step=data.draw(st.one_of(small, st.integers(0, 2**32 - 1))),
        is_bigendian=data.draw(st.integers(0, 255)),
        encoding=data.draw(st.sampled_from(['rgb8', 'mono8', 'bgra8', '16UC1', 'x'])),
    )
    message.data.frombytes(bytes(data.draw(small)))
    channel = topic('sensor_msgs/msg/Image', RAW, image={**SIZE, 'format': 'rgb8'})
    with suppress(BadMessage):
        assert len(encoded(stamped(message), channel)) == 18
    points = PointCloud2(
        width=data.draw(small),
        height=data.draw(small),
        point_step=data.draw(st.one_of(small, st.integers(0, 2**32 - 1))),
        row_step=data.draw(st.one_of(small, st.integers(0, 2**32 - 1))),
        is_bigendian=data.draw(st.booleans()),
    )
    points.fields = [
        PointField(
            name=name,
            offset=data.draw(st.one_of(small, st.integers(0, 2**32 - 1))),
            datatype=data.draw(st.sampled_from([7, 8])),
            count=1,
        )
        for name in 'xyz'
    ]
    points.data.frombytes(bytes(data.draw(st.integers(0, 200))))
    channel = topic('sensor_msgs/msg/PointCloud2', CLOUD, frame='laser')
    with suppress(BadMessage):
        assert len(encoded(stamped(points), channel)) % 12 == 0


def test_bytes_of_the_middleware_that_are_cut_off_raise_and_harm_nothing_else() -> None:
    channel = topic('sensor_msgs/msg/PointCloud2', CLOUD, frame='laser')
    encoder = make_encoder(channel, EncoderContext({'rig/laser': 'laser'}))
    good = bytes(serialize_message(cloud(POINTS)))
    with pytest.raises(Exception, match='deserialize'):
        encoder.encode(good[:-30])
    assert len(encoder.encode(good)[0]) == 48
