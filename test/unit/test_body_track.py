"""The speed of a body from odometry and from tf: three slow samples rest, the rest does not."""

from __future__ import annotations

import math
import struct
from types import SimpleNamespace as Msg

import pytest

from awp_ros_bridge.config import FramePair, OdometryRest, TfRest
from awp_ros_bridge.ros.body_track import OdometrySpeed, TfSpeed
from awp_ros_bridge.ros.frame_graph import Edge, FrameGraph
from awp_ros_bridge.ros.joint_track import RestTrack

MS = 1_000_000
STALE = 500 * MS
PAIR = FramePair(frame='base', reference='odom')
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def twist(x: float = 0.0, turn: float = 0.0) -> Msg:
    def vector(x: float, z: float) -> Msg:
        return Msg(x=x, y=0.0, z=z)

    return Msg(twist=Msg(twist=Msg(linear=vector(x, 0.0), angular=vector(0.0, turn))))


@pytest.fixture
def odometry() -> OdometrySpeed:
    return OdometrySpeed(
        OdometryRest(odometry='odom', max_linear_mps=0.01, max_angular_radps=0.02)
    )


def test_odometry_rests_when_neither_part_of_its_twist_moves(odometry: OdometrySpeed) -> None:
    assert odometry.unsafe(0, STALE) == 'linear speed was not heard yet'
    for at in range(1, 4):
        odometry.take(at * 50 * MS, twist(0.01, -0.02))
    assert odometry.rests(0, 100 * MS)
    assert not odometry.rests(60 * MS, 100 * MS), 'samples before the question prove nothing'
    assert odometry.positions() is None
    assert odometry.velocities() == {}


@pytest.mark.parametrize('moving', [twist(0.011), twist(-0.3), twist(0.0, 0.021), twist(0, -1.0)])
def test_odometry_that_moves_does_not_rest(odometry: OdometrySpeed, moving: Msg) -> None:
    for at in range(1, 4):
        odometry.take(at * 50 * MS, twist())
    odometry.take(200 * MS, moving)
    assert not odometry.rests(0, 10 * MS)
    assert 'moves with' in odometry.fast()


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_odometry_that_is_no_number_is_unsafe(odometry: OdometrySpeed, value: float) -> None:
    odometry.take(1 * MS, twist(value))
    assert odometry.unsafe(2 * MS, STALE) == 'linear speed: not finite'


def test_odometry_ages(odometry: OdometrySpeed) -> None:
    odometry.take(1 * MS, twist())
    assert odometry.unsafe(400 * MS, STALE) is None
    assert odometry.unsafe(501 * MS, STALE) == 'linear speed silent for 500 ms (limit 500 ms)'


# ---------------------------------------------------------------- tf


class Tf:
    """A tree of tf and what looks at it."""

    def __init__(self) -> None:
        rest = TfRest(tf=PAIR, max_linear_mps=0.01, max_angular_radps=0.02)
        self.speed = TfSpeed(rest, PAIR)
        self.graph = FrameGraph({name: name for name in ('base', 'odom')}, 'base')

    def tell(
        self,
        at_ms: int,
        x: float = 0.0,
        yaw: float = 0.0,
        child: str = 'base',
        parent: str = 'odom',
        stamp: int | None = None,
        is_static: bool = False,
    ) -> None:
        turn = (0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2))
        raw = struct.pack('<7d', x, 0.0, 0.0, *turn)
        stamp_ns = at_ms * MS if stamp is None else stamp
        edge = Edge(parent, is_static, raw, 0, stamp_ns, at_ms * MS)
        self.graph.update(child, edge)
        self.speed.take(at_ms * MS, self.graph)


def test_tf_that_stands_still_rests() -> None:
    tf = Tf()
    assert tf.speed.unsafe(0, STALE) == 'linear speed was not heard yet'
    for at_ms in range(50, 300, 50):
        tf.tell(at_ms, 0.3, 1.0)
    assert tf.speed.rests(0, 100 * MS)
    assert tf.speed.unsafe(300 * MS, STALE) is None


@pytest.mark.parametrize(('mps', 'radps'), [(0.02, 0.0), (0.0, 0.05), (-1.0, 0.0)])
def test_tf_that_moves_has_the_speed_of_its_difference(mps: float, radps: float) -> None:
    tf = Tf()
    for at_ms in range(50, 300, 50):
        tf.tell(at_ms, mps * at_ms * 1e-3, radps * at_ms * 1e-3)
    assert tf.speed.linear.velocity == pytest.approx(abs(mps))
    assert tf.speed.angular.velocity == pytest.approx(abs(radps), abs=1e-9)
    assert not tf.speed.rests(0, 10 * MS)


def test_f56_a_transform_with_its_old_stamp_is_no_news() -> None:
    tf = Tf()
    for at_ms in range(50, 300, 50):
        tf.tell(at_ms)
    for at_ms in range(300, 900, 50):
        tf.tell(at_ms, stamp=250 * MS)
    assert 'silent for' in str(tf.speed.unsafe(850 * MS, STALE))


def test_each_transform_of_the_way_must_move_on() -> None:
    tf = Tf()
    tf.tell(10, child='base', parent='footprint')
    tf.tell(20, child='footprint', parent='odom')
    for at_ms in range(50, 900, 50):
        tf.tell(at_ms, child='base', parent='footprint')
    assert 'silent for' in str(tf.speed.unsafe(850 * MS, STALE))


def test_frames_that_are_fixed_to_each_other_measure_nothing() -> None:
    tf = Tf()
    tf.tell(10, is_static=True)
    assert tf.speed.unsafe(11 * MS, STALE) == 'linear speed: base is fixed in odom'


def test_frames_that_tf_does_not_relate_are_unknown() -> None:
    tf = Tf()
    tf.tell(10, child='base', parent='elsewhere')
    assert tf.speed.unsafe(11 * MS, STALE) == 'linear speed was not heard yet'


def test_a_transform_that_is_none_is_unsafe() -> None:
    tf = Tf()
    tf.tell(50)
    tf.tell(100, math.nan)
    assert tf.speed.unsafe(101 * MS, STALE) == 'linear speed: the transform is not one'


# ---------------------------------------------------------------- joints of a group


def test_joints_of_one_group_rest_alone() -> None:
    track = RestTrack(None, lambda joint: 0.01 if joint == 'turn' else 0.001)
    for at in range(1, 4):
        names, velocity = ['turn', 'slide'], [0.01, 0.005]
        track.take(at * 50 * MS, Msg(name=names, position=[0.0, 0.0], velocity=velocity))
    assert not track.rests(0, 100 * MS)
    assert track.rests(0, 100 * MS, ['turn'])
    assert not track.rests(0, 100 * MS, ['turn', 'never heard'])
    assert track.fast() == 'joint slide moves with 0.005 (limit 0.001)'
