"""tf on real topics: the frame tree, awp.tf, poses for checks, late and old frames."""

from __future__ import annotations

import math
import time
from typing import Any

from geometry_msgs.msg import TransformStamped
from observation_world import RELIABLE, wait_for, World, world
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.config import FramesConfig, TF_CHANNEL

pytestmark = pytest.mark.usefixtures('ros_domain_id')

STATIC = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FRAMES = FramesConfig(root='world', include={'base': 'arm/base', 'tool0': 'arm/tool0'})


def transform(parent: str, child: str, z_m: float = 0.0) -> TransformStamped:
    message = TransformStamped()
    message.header.frame_id, message.child_frame_id = parent, child
    now_ns = time.time_ns()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(now_ns, 10**9)
    message.transform.translation.z = z_m
    message.transform.rotation.w = 1.0
    return message


def entry(made: World, frame: str) -> dict[str, Any]:
    return next(e for e in made.trees()[-1] if e['id'] == frame)


def publish_moving(made: World, condition: Any, what: str, burst: int = 1) -> Any:
    """Publish the arm's moving frames until a condition holds, some at once every 10 ms."""
    publisher = made.talker.create_publisher(TFMessage, '/tf', RELIABLE)

    def turn() -> Any:
        transforms = [
            transform('arm/base', 'arm/link', 0.4),
            transform('arm/link', 'arm/tool0', 0.1),
            transform('elsewhere', 'not/wanted'),
        ]
        for _ in range(burst):
            publisher.publish(TFMessage(transforms=transforms))
        time.sleep(0.01)
        return condition()

    return wait_for(turn, what)


def test_unknown_frames_are_dynamic_until_tf_tells_them() -> None:
    with world({}, FRAMES) as made:
        assert made.trees()[0] == (
            {'id': 'world', 'parent': None},
            {'id': 'base', 'parent': 'world', 'dynamic': True},
            {'id': 'tool0', 'parent': 'world', 'dynamic': True},
        )
        assert 'base (tf arm/base)' in made.note(TF_CHANNEL)
        static = made.talker.create_publisher(TFMessage, '/tf_static', STATIC)
        static.publish(TFMessage(transforms=[transform('world', 'arm/base', 0.6)]))
        publish_moving(
            made,
            lambda: (
                'transform' in entry(made, 'base') and entry(made, 'tool0')['parent'] == 'base'
            ),
            'the tree',
        )
        assert entry(made, 'base')['transform'] == {'p_m': [0, 0, 0.6], 'q': [0, 0, 0, 1]}
        assert entry(made, 'tool0') == {'id': 'tool0', 'parent': 'base', 'dynamic': True}
        assert not made.note(TF_CHANNEL)


@pytest.mark.parametrize('is_early', [True, False], ids=['before', 'after'])
def test_static_frames_told_one_by_one_are_all_kept(is_early: bool) -> None:
    names = [f'part_{i}' for i in range(20)]
    frames = FramesConfig(root='world', include={name: name for name in names})
    messages = [TFMessage(transforms=[transform('world', name, 0.1)]) for name in names]
    with world({}, frames) as made:
        if is_early:
            made.thread.post(made.observations.frames.close)
        static = made.talker.create_publisher(TFMessage, '/tf_static', STATIC)
        for message in messages:
            static.publish(message)
        if is_early:
            made.thread.post(lambda: setattr(made.observations.frames, '_is_closed', False))
            made.thread.post(made.observations.frames.start)
        wait_for(lambda: not made.note(TF_CHANNEL), 'all frames')
        wait_for(
            lambda: all('transform' in e for e in made.trees()[-1][1:]), 'all of them in the tree'
        )


def test_moving_frames_are_sampled_at_the_wanted_rate() -> None:
    with world({}, FRAMES) as made:
        made.observations.demand(TF_CHANNEL, 20.0, True)
        wait_for(lambda: made.payloads(TF_CHANNEL), 'the first sample')
        assert made.payloads(TF_CHANNEL)[0] == {'transforms': []}
        before_s = time.monotonic()
        found = publish_moving(
            made,
            lambda: len(made.samples(TF_CHANNEL)) > 12
            and made.payloads(TF_CHANNEL)[-1]['transforms'],
            'twelve samples, and a frame in the last',
        )
        assert 12 / (time.monotonic() - before_s) < 30.0
        assert [t['frame'] for t in found] == ['tool0']
        assert found[0]['parent'] == 'base'
        assert math.isclose(found[0]['p_m'][2], 0.5)
        assert math.isclose(math.hypot(*found[0]['q']), 1.0)


def test_poses_are_known_while_they_are_young() -> None:
    with world({}, FRAMES) as made:
        frames = made.observations.frames
        static = made.talker.create_publisher(TFMessage, '/tf_static', STATIC)
        static.publish(TFMessage(transforms=[transform('world', 'arm/base', 0.6)]))
        pose = publish_moving(made, lambda: frames.pose_in('tool0', 'world'), 'the pose')
        assert pose.position_m == pytest.approx((0.0, 0.0, 1.1))
        back = publish_moving(made, lambda: frames.pose_in('world', 'tool0'), 'the inverse')
        assert back.position_m == pytest.approx((0.0, 0.0, -1.1))
        assert frames.pose_in('nope', 'world') is None
        wait_for(lambda: frames.pose_in('tool0', 'world') is None, 'too old')
        assert frames.pose_in('base', 'world') is not None


def test_a_fast_tf_is_fetched_in_batches_and_slow_again_called_back() -> None:
    with world({}, FRAMES) as made:
        made.observations.demand(TF_CHANNEL, 10.0, True)
        publish_moving(
            made, lambda: not made.observations.frames._moving.is_dispatched, 'batches', burst=5
        )
        before = len(made.samples(TF_CHANNEL))
        publish_moving(
            made, lambda: len(made.samples(TF_CHANNEL)) > before + 3, 'more samples', burst=5
        )
        wait_for(lambda: made.observations.frames._moving.is_dispatched, 'called back again')


def test_bytes_that_are_no_tf_harm_nothing() -> None:
    with world({}, FRAMES) as made:
        made.thread.post(made.observations.frames._on_static, b'\x00\x01\x00\x00\xff\xff')
        wait_for(lambda: 'cannot be read' in made.note(TF_CHANNEL), 'the note')
