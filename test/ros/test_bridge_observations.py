"""Every modality through real publishers, a bridge process and both bindings of frames."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
import json
from pathlib import Path
import threading
import time
from typing import Any

from agent import Agent
from agent_words import hello, strict_json
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from encoder_rig import CONFIG, kind_of, SETTINGS, stamped
from geometry_msgs.msg import PoseStamped, WrenchStamped
from jsonschema import Draft202012Validator
from lateness import Lateness
from nav_msgs.msg import Odometry
import numpy as np
from patience import run, until, WAIT_S
from processes import BridgeProcess, start_bridge
import pytest
import rclpy
from sensor_msgs.msg import (
    BatteryState,
    CompressedImage,
    Image,
    Imu,
    JointState,
    LaserScan,
    PointCloud2,
    PointField,
    Temperature,
)
from test_ros_encoders_binary import cloud, compressed, image, jpeg
from websockets.asyncio.client import connect

from awp_ros_bridge.ros.encoders.registry import registry
from awp_ros_bridge.wire.frames import decode_binary

Json = dict[str, Any]

MODALITIES = [
    'proprio/json', 'text/event+json', 'image/raw', 'image/jpeg', 'pointcloud/xyz32',
]  # fmt: skip
PIXELS = np.arange(2 * 3 * 3, dtype='u1').reshape(2, 3, 3)
BIG = np.random.default_rng(7).integers(0, 255, (700, 1000, 3), 'u1')  # 2.1 MB
SIZE = {'width': 3, 'height': 2}


def joint_state() -> JointState:
    return stamped(JointState(name=['a'], position=[0.5]))


def odometry() -> Odometry:
    return stamped(Odometry(child_frame_id='rig/base'), 'odom')


def scan() -> LaserScan:
    ranges = [1.0, float('inf'), float('nan')]
    return stamped(LaserScan(angle_max=0.2, angle_increment=0.1, range_max=9.0, ranges=ranges))


def diagnostics() -> DiagnosticArray:
    return stamped(DiagnosticArray(status=[DiagnosticStatus(name='arm', level=b'\x02')]), '')


def points() -> PointCloud2:
    return cloud(np.array([[1, 2, 3], [np.nan, 0, 0], [4, 5, 6]], 'f8'))


#: Channel: a message, settings of the channel beside its type, and what arrives (JSON: a part).
CASES: dict[str, tuple[Callable[[], Any], Json, Any]] = {
    'joints': (joint_state, {}, {'name': ['a'], 'q_rad': [0.5]}),
    'odometry': (odometry, {}, {'frame': 'odom', 'child_frame': 'base', 'q': [0.0, 0.0, 0.0, 1]}),
    'pose': (lambda: stamped(PoseStamped()), {}, {'frame': 'laser', 'p_m': [0.0, 0.0, 0.0]}),
    'imu': (lambda: stamped(Imu()), {}, {'frame': 'laser', 'w_radps': [0.0, 0.0, 0.0]}),
    'scan': (scan, {}, {'ranges_m': [1.0, 'Infinity', None]}),
    'wrench': (lambda: stamped(WrenchStamped()), {}, {'force_n': [0.0, 0.0, 0.0]}),
    'battery': (
        lambda: stamped(BatteryState(percentage=0.5, voltage=24.0), ''),
        {'modality': 'text/event+json'},
        {'state_of_charge': 0.5, 'voltage_v': 24.0},
    ),
    'diagnostics': (
        diagnostics,
        {'modality': 'text/event+json', 'loss_class': 'reliable'},
        {'status': [
            {'name': 'arm', 'level': 'error', 'message': '', 'hardware_id': '', 'values': []}
        ]},
    ),
    'temperature': (
        lambda: stamped(Temperature(temperature=20.0), ''),
        {'fields': {'temperature': 'degc', 'variance': 'none'}},
        {'temperature_k': 293.15, 'variance': 0.0},
    ),
    'raw': (
        lambda: image('bgr8', PIXELS, padding=5),
        {'modality': 'image/raw', 'image': {**SIZE, 'format': 'rgb8'}},
        PIXELS[..., ::-1].tobytes(),
    ),
    'jpeg': (
        lambda: compressed(jpeg()),
        {'modality': 'image/jpeg', 'image': SIZE},
        jpeg(),
    ),
    'cloud': (
        points,
        {'modality': 'pointcloud/xyz32', 'frame': 'laser'},
        np.array([[1, 2, 3], [4, 5, 6]], '<f4').tobytes(),
    ),
    'big': (
        lambda: image('rgb8', BIG),
        {'modality': 'image/raw', 'image': {'width': 1000, 'height': 700, 'format': 'rgb8'}},
        BIG.tobytes(),
    ),
}  # fmt: skip
SMALL = [name for name in CASES if name != 'big']


class Publishers:
    """One publisher for each channel, and a thread that repeats what they are told to say."""

    def __init__(self) -> None:
        self._node = rclpy.create_node('sensors')
        self._publishers: dict[str, Any] = {}
        self._said: dict[str, Any] = {}
        self._period_s = 0.05
        self._ended = threading.Event()
        for name, (make, _, _) in CASES.items():
            kind = type(make())
            self._publishers[name] = self._node.create_publisher(kind, f'seen/{name}', 5)
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._thread.start()

    @contextmanager
    def saying(self, hz: float = 20.0, **messages: Any) -> Iterator[None]:
        """Repeat messages by channel."""
        self._period_s = 1.0 / hz
        self._said = messages
        try:
            yield
        finally:
            self._said = {}

    def close(self) -> None:
        """Say nothing any more."""
        self._ended.set()
        self._thread.join()
        self._node.destroy_node()

    def _repeat(self) -> None:
        due_s = time.monotonic()
        while not self._ended.is_set():
            for name, message in list(self._said.items()):
                if hasattr(message, 'header'):
                    now = divmod(time.time_ns(), 10**9)
                    message.header.stamp.sec, message.header.stamp.nanosec = now
                self._publishers[name].publish(message)
            due_s = max(due_s + self._period_s, time.monotonic())
            self._ended.wait(max(0.0, due_s - time.monotonic()))


@pytest.fixture(scope='module')
def publishers(ros: None) -> Iterator[Publishers]:
    made = Publishers()
    yield made
    made.close()


@pytest.fixture(scope='module')
def bridge(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BridgeProcess]:
    folder: Path = tmp_path_factory.mktemp('observations')
    channels: Json = {}
    for name, (make, more, _) in CASES.items():
        settings = {**SETTINGS, 'modality': 'proprio/json', 'rate_hz': 20.0}
        channels[name] = {
            **settings, 'topic': f'seen/{name}', 'type': kind_of(make()), **more,
        }  # fmt: skip
    body = {**CONFIG, 'channels': channels}
    body['embodiments'] = {'arm_01': {**CONFIG['embodiments']['arm_01'], 'channels': [*channels]}}
    config = folder / 'sensors.yaml'
    config.write_text(json.dumps(body), encoding='utf-8')
    process = start_bridge(folder, config=config)
    yield process
    process.stop()


@asynccontextmanager
async def watching(bridge: BridgeProcess, *channels: str) -> AsyncIterator[Agent]:
    """Observe some channels inline."""
    async with await Agent.dial(bridge.url, bridge.token) as agent:
        said = {**hello('watcher'), 'consumes_modalities': MODALITIES}
        agent.manifest = await agent.call('initialize', **said)
        await agent.open(None, subscribe=[{'channel': name} for name in channels])
        agent.beat(0.2)
        yield agent
        await agent.close()


def numbers_of(agent: Agent) -> dict[str, int]:
    """Return the numbers of the granted channels by name."""
    rows = agent.ready['granted']['channels']
    return {row['channel']: int(row['channel_id']) for row in rows}


def payloads(agent: Agent, channel: str) -> list[bytes]:
    """Return what the inline frames of a channel carry."""
    number = numbers_of(agent)[channel]
    return [
        base64.b64decode(frame.params['payload_b64'])
        for frame in agent.frames
        if frame.params['channel_id'] == number
    ]


def judge(name: str, declared: Json, payload: bytes) -> None:
    """Compare a payload with its case and its declaration (AWP-MOD-001)."""
    wanted = CASES[name][2]
    if isinstance(wanted, bytes):
        assert payload == wanted, name
        if 'stride' in declared['schema']:
            about = declared['schema']
            assert len(payload) == about['stride'] * about['height']
        return
    body = strict_json(payload.decode())
    Draft202012Validator(declared['schema']).validate(body)
    assert {key: body[key] for key in wanted} == wanted, name


def test_every_modality_arrives_as_declared(
    bridge: BridgeProcess, publishers: Publishers
) -> None:
    async def play() -> None:
        async with watching(bridge, *SMALL) as agent:
            declared = {c['id']: c for c in agent.manifest['observation_channels']}
            for name in SMALL:
                found = await until(lambda n=name: payloads(agent, n), what=name)  # type: ignore[misc]
                assert declared[name]['modality'] in MODALITIES
                judge(name, declared[name], found[-1])

    with publishers.saying(**{name: CASES[name][0]() for name in SMALL}):
        run(play())


def test_messages_that_are_wrong_give_one_line_and_no_frame_and_the_rest_goes_on(
    bridge: BridgeProcess, publishers: Publishers
) -> None:
    lost, odd, flat = odometry(), image('rgb8', PIXELS), points()
    lost.pose.pose.orientation.w = 0.5
    odd.step = 4
    flat.fields = [PointField(name='x', datatype=7, count=1)]
    wrong = {'odometry': lost, 'raw': odd, 'cloud': flat, 'jpeg': compressed(b'\x89PNG')}
    lines = {
        'odometry': 'channel=odometry /seen/odometry: not sent: pose.pose.orientation has norm',
        'raw': 'channel=raw /seen/raw: not sent: step is 4 bytes; 3 pixels of rgb8 need 9',
        'cloud': "channel=cloud /seen/cloud: not sent: fields have no 'y'; there are x",
        'jpeg': 'channel=jpeg /seen/jpeg: not sent: data of format',
    }

    async def play() -> None:
        async with watching(bridge, *wrong, 'joints') as agent:
            begun = len(bridge.output)
            await until(
                lambda: all(line in bridge.output[begun:] for line in lines.values()),
                what='a line for each',
            )
            heard = len(payloads(agent, 'joints'))
            sent = {name: len(payloads(agent, name)) for name in wrong}
            await until(lambda: len(payloads(agent, 'joints')) > heard + 20, what='the rest')
            for line in lines.values():  # a second of wrong messages later
                assert bridge.output[begun:].count(line) == 1, line
            assert sent == {name: len(payloads(agent, name)) for name in wrong}
            with publishers.saying(**{name: CASES[name][0]() for name in wrong}):
                for name in wrong:
                    await until(
                        lambda n=name: len(payloads(agent, n)) > sent[n] + 1,  # type: ignore[misc]
                        what=name,
                    )
                    judge(name, {'schema': {}}, payloads(agent, name)[-1])
        assert 'Traceback' not in bridge.output

    with publishers.saying(**wrong, joints=joint_state()):
        run(play())


def test_images_of_two_megabytes_delay_no_control_message(
    bridge: BridgeProcess, publishers: Publishers, lateness: Lateness
) -> None:
    """Inline and on a stream connection at 20 Hz, for those who read them and those who do not."""

    async def pings(agent: Agent, count: int = 60) -> list[float]:
        found = []
        for _ in range(count):
            begun_s = time.monotonic()
            await agent.call('ping', origin_ns=time.monotonic_ns())
            found.append(1000 * (time.monotonic() - begun_s))
            await asyncio.sleep(0.02)
        return sorted(found)

    async def play() -> None:
        async with watching(bridge, 'big') as agent, watching(bridge) as other:
            await until(lambda: payloads(agent, 'big'), what='an image')
            begun, begun_ns = len(agent.frames), time.monotonic_ns()
            inline, beside = await asyncio.gather(pings(agent), pings(other))
            await until(lambda: len(agent.frames) > begun + 5, what='images meanwhile')
            assert payloads(agent, 'big')[-1] == BIG.tobytes()
            url = {e['binding']: e for e in agent.ready['stream_endpoints']}['ws']['url']
            token = agent.ready['session_token']
            async with connect(
                url, subprotocols=['awp'], compression=None, max_size=None,
                additional_headers={'Authorization': f'Bearer {token}'},
            ) as stream:  # fmt: skip
                frame = decode_binary(await asyncio.wait_for(stream.recv(), WAIT_S))
                assert frame.payload == BIG.tobytes()
                # From here on nobody reads the stream: it stalls, and only it.
                stalled, free = await asyncio.gather(pings(agent), pings(other))
            lost_ms = lateness.since(begun_ns) * 1e-6
            for found in (inline, beside, stalled, free):
                assert found[len(found) // 2] < 40.0 + lost_ms / 10, (found, lost_ms)
                assert found[int(len(found) * 0.9)] < 150.0 + lost_ms, (found, lost_ms)

    with publishers.saying(big=CASES['big'][0]()):
        run(play())


def test_the_types_that_are_tried_are_all_the_bridge_knows() -> None:
    tried = {registry().of(kind_of(make())) for make, _, _ in CASES.values()}
    assert tried >= set(registry().encoders.values())
    assert CompressedImage is type(CASES['jpeg'][0]())
    assert Image is type(CASES['raw'][0]())
