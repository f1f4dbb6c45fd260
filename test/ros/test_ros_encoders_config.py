"""What the loader says of channels when the message types are known, and what is declared."""

from __future__ import annotations

from importlib.metadata import EntryPoint
import json
from pathlib import Path
from typing import Any

from encoder_rig import checked, CONFIG, problems, SETTINGS, topic
from processes import REPOSITORY
import pytest
import yaml

from awp_ros_bridge.cli.main import main
from awp_ros_bridge.config import load_text, TopicChannel
from awp_ros_bridge.manifest.channels import declared_channels
from awp_ros_bridge.ros.encoders.base import Encoder, EncoderContext, JsonEncoder
from awp_ros_bridge.ros.encoders.registry import discover, make_encoder, registry

Json = dict[str, Any]

IMAGE = {'type': 'sensor_msgs/msg/Image', 'modality': 'image/raw'}
JPEG = {'type': 'sensor_msgs/msg/CompressedImage', 'modality': 'image/jpeg'}
CLOUD = {'type': 'sensor_msgs/msg/PointCloud2', 'modality': 'pointcloud/xyz32'}
SIZE = {'width': 640, 'height': 480}


@pytest.mark.parametrize(
    ('channel', 'place', 'told'),
    [
        (
            {'type': 'sensor_msgs/msg/JointState', 'modality': 'text/event+json'},
            'channels.seen.modality',
            'the bridge cannot send JointState as text/event+json; write proprio/json',
        ),
        (
            {**IMAGE, 'modality': 'image/jpeg', 'image': {**SIZE, 'format': 'rgb8'}},
            'channels.seen.modality',
            'the bridge cannot send Image as image/jpeg; write image/raw, or let image_transport '
            'compress beside the camera (package compressed_image_transport) and take its topic '
            '<image topic>/compressed of type sensor_msgs/msg/CompressedImage',
        ),
        (
            {**JPEG, 'modality': 'image/raw', 'image': SIZE},
            'channels.seen.modality',
            'the bridge cannot send CompressedImage as image/raw; write image/jpeg, or take the '
            'topic of the uncompressed images of type sensor_msgs/msg/Image',
        ),
        (
            {**CLOUD, 'modality': 'x-maker.cloud', 'frame': 'laser'},
            'channels.seen.modality',
            'the bridge cannot send PointCloud2 as x-maker.cloud; write pointcloud/xyz32',
        ),
        (
            IMAGE,
            'channels.seen',
            'image/raw declares the size and format of its images; add image: {width: 640, '
            'height: 480, format: rgb8 or bgr8 or mono16 or depth32f}',
        ),
        (
            {**IMAGE, 'image': SIZE},
            'channels.seen.image',
            'image/raw declares the format of its pixels; add format: rgb8 or bgr8 or mono16 or '
            'depth32f',
        ),
        (
            {**IMAGE, 'image': {**SIZE, 'format': 'rgb8', 'color_space': 'gray'}},
            'channels.seen.image.color_space',
            'image/raw has none; remove it; format says all',
        ),
        (
            JPEG,
            'channels.seen',
            'image/jpeg declares the size of its images; add image: {width: 640, height: 480}',
        ),
        (
            {**JPEG, 'image': {**SIZE, 'format': 'rgb8'}},
            'channels.seen.image.format',
            'a JPEG has none; remove it',
        ),
        (
            CLOUD,
            'channels.seen',
            'pointcloud/xyz32 declares the frame of its points; add frame: the AWP name that '
            'frames.include gives the frame of the sensor',
        ),
        (
            {**CLOUD, 'frame': 'lazer'},
            'channels.seen.frame',
            "frame 'lazer' is not declared; add it to frames.include; did you mean 'laser'?",
        ),
        (
            {'type': 'geometry_msgs/msg/Pose', 'modality': 'proprio/json'},
            'channels.seen',
            'a Pose without header does not say its frame (AWP-UNI-003); add frame: its AWP '
            'frame, or publish a PoseStamped',
        ),
        (
            {
                'type': 'sensor_msgs/msg/BatteryState',
                'modality': 'proprio/json',
                'fields': {'voltage': 'v'},
            },
            'channels.seen.fields',
            'BatteryState has no use for fields; remove it',
        ),
        (
            {'type': 'nav_msgs/msg/Odometry', 'modality': 'proprio/json', 'prismatic': ['a']},
            'channels.seen.prismatic',
            'Odometry has no use for prismatic; remove it',
        ),
        (
            {**IMAGE, 'image': {'width': 8000, 'height': 4000, 'format': 'depth32f'}},
            'channels.seen.image',
            'an image has 128000000 bytes, the most that server.max_frame_bytes lets pass is '
            '16777166; raise server.max_frame_bytes, or let the camera send smaller images',
        ),
    ],
)
def test_what_a_type_cannot_do_is_refused_with_its_line(
    channel: Json, place: str, told: str
) -> None:
    (found,) = problems(channel)
    name, line, text = found.split(':', 2)
    assert (name, int(line) > 1) == ('robot.yaml', True)
    assert text == f' {place}: {told}'


def test_channels_that_can_be_encoded_are_declared_with_their_schema() -> None:
    for channel in (
        {**IMAGE, 'image': {**SIZE, 'format': 'bgr8'}},
        {**JPEG, 'image': SIZE, 'frame': 'laser'},
        {**CLOUD, 'frame': 'laser'},
        {'type': 'nav_msgs/msg/Odometry', 'modality': 'proprio/json'},
        {'type': 'std_msgs/msg/String', 'modality': 'x-maker.words'},
    ):
        loaded = checked(channel)
        assert not loaded.problems
        assert loaded.config is not None
        declared = declared_channels(loaded.config, registry())['seen']
        assert declared['schema'] == registry().schema(loaded.config.channels['seen'])
        assert declared['schema']
    assert checked({**CLOUD, 'frame': 'laser'}, server={'max_frame_bytes': 4096}).config


def test_encoders_are_not_asked_where_ros_is_missing() -> None:
    data = {**CONFIG, 'channels': {'seen': {**SETTINGS, **IMAGE}}}
    assert load_text(json.dumps(data)).config is not None


def test_the_configuration_in_the_document_loads() -> None:
    text = (REPOSITORY / 'docs' / 'observations.md').read_text(encoding='utf-8')
    shown = yaml.safe_load(text.partition('```yaml\n')[2].partition('```')[0])
    arm = {**CONFIG['embodiments']['arm_01'], 'channels': list(shown['channels'])}
    data = {**CONFIG, **shown, 'embodiments': {'arm_01': arm}}
    assert load_text(json.dumps(data), encoders=registry()).problems == ()


def test_the_command_line_finds_them_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = {**SETTINGS, 'type': 'sensor_msgs/msg/Joy', 'modality': 'proprio/json'}
    file = tmp_path / 'robot.yaml'
    file.write_text(json.dumps({**CONFIG, 'channels': {'seen': channel}}, indent=1))
    assert main(['check', str(file)]) == 2
    out = capsys.readouterr().out
    assert f'{file}:' in out
    assert 'Joy has numbers without a unit: axes: <unit>, buttons: <unit>' in out
    assert '1 error' in out


class Whistle(JsonEncoder):
    """An encoder of another package."""

    types = ('std_msgs/msg/Empty',)

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return {'type': 'object'}

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        return {'whistle': True}


class Taken(Whistle):
    """An encoder of a type that has one."""

    types = ('nav_msgs/msg/Odometry',)


class Nothing(Whistle):
    """An encoder of nothing."""

    types = ()


def offer(name: str) -> EntryPoint:
    return EntryPoint(name, f'{__name__}:{name}', 'awp_ros_bridge.encoders')


def test_another_package_offers_encoders_and_broken_offers_harm_only_themselves() -> None:
    names = ('Whistle', 'Taken', 'Nothing', 'Encoder', 'offer', 'Missing')
    found = discover([offer(name) for name in names])
    encoder = found.make(topic('std_msgs/msg/Empty'), EncoderContext())
    assert isinstance(encoder, Whistle)
    assert set(found.problems) == set(names) - {'Whistle'}
    assert 'nav_msgs/msg/Odometry has an encoder already' in found.problems['Taken']
    assert 'names no types' in found.problems['Nothing']
    assert 'lacks encode, make, schema' in found.problems['Encoder']
    assert 'is not a class derived from' in found.problems['offer']
    assert 'does not load: AttributeError' in found.problems['Missing']


def test_every_own_encoder_has_what_the_documents_tell() -> None:
    for encoder in set(registry().encoders.values()):
        assert issubclass(encoder, Encoder)
        assert encoder.summary, encoder
        assert encoder.types, encoder


def test_large_messages_are_kept_few() -> None:
    cloud = topic(CLOUD['type'], CLOUD['modality'], frame='laser')
    assert make_encoder(cloud).most_kept == 4
    grid = topic('nav_msgs/msg/OccupancyGrid', fields={'info': 'm', 'data': 'none'})
    assert make_encoder(grid).most_kept == 8
    assert make_encoder(topic('std_msgs/msg/String')).most_kept == 200
    assert make_encoder(topic('sensor_msgs/msg/JointState')).most_kept == 200
