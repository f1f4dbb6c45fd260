"""What the sources of measured motion make of messages: places, speeds, doubts."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from awp_ros_bridge.config import Envelope
from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.limit_judge import FORCE, Reading, SPATIAL, VELOCITY
from awp_ros_bridge.ros.limit_sources import (
    Force,
    JointTip,
    motion_source,
    OdometryTip,
    Places,
    TfTip,
)
from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_JOINTS,
    load_arm_chain,
    load_urdf,
)

Json = dict[str, Any]
MS = 1_000_000
NOW_NS = 10**12
FRAMES = {'world': 'world', 'base': 'base', 'tool0': 'tool0', 'camera': 'rig/camera'}
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
BOX = {'frame': 'base', 'aabb_m': [[-0.5, -0.5, 0.0], [0.5, 0.5, 0.8]]}
CHAIN = load_arm_chain(load_urdf())
HOME = dict(zip(ARM_JOINTS, ARM_HOME_RAD, strict=True))


class Tray:
    """Stands in for the subscription: what lies in it is taken once."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def take(self) -> list[bytes]:
        found, self.messages = self.messages, []
        return found

    def put(self, *messages: Any) -> None:
        self.messages += [m if isinstance(m, bytes) else serialize_message(m) for m in messages]


class Tf:
    """What tf tells."""

    def __init__(self) -> None:
        self.poses: dict[tuple[str, str], Pose] = {}
        self.placed: tuple[Pose, int | None, int | None] | None = None

    @property
    def places(self) -> Places:
        return Places(
            FRAMES.get,
            lambda: list(FRAMES),
            lambda frame, reference: self.poses.get((frame, reference)),
            lambda frame, reference: self.placed,
        )


@pytest.fixture
def tf() -> Tf:
    return Tf()


@pytest.fixture
def tray() -> Tray:
    return Tray()


def source(config: Json, tf: Tf, **changes: Any) -> Any:
    """Return a source for both limits of motion, or those that are given."""
    limits: Json = {'spatial': BOX, 'max_velocity_mps': 0.5, **changes}
    envelope = Envelope.model_validate({'enforcement': 'both', 'measured': config, **limits})
    return motion_source('arm_01', envelope, 'world', tf.places)


def joint_tip(tf: Tf, tray: Tray, **changes: Any) -> JointTip:
    made: JointTip = source({'source': 'joint_states'}, tf, **changes)
    made._inbox = tray  # type: ignore[assignment]
    made.take_chain(load_arm_chain(load_urdf()))
    return made


def state(
    positions: Mapping[str, float] = HOME,
    speed_radps: float | None = 0.0,
    stamp_ms: int = 1,
    **arrays: Any,
) -> JointState:
    """Return a joint state whose first joint moves."""
    message = JointState(name=list(positions), position=list(positions.values()))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ms * MS, 10**9)
    if speed_radps is not None:
        message.velocity = [speed_radps, *[0.0] * (len(positions) - 1)]
    for name, value in arrays.items():
        setattr(message, name, value)
    return message


def reading(found: Any) -> Reading:
    assert isinstance(found, Reading), found
    return found


# ---------------------------------------------------------------- joint states


def test_nothing_is_measured_before_the_description_and_without_news(tf: Tf, tray: Tray) -> None:
    tip: JointTip = source({'source': 'joint_states'}, tf)
    tip._inbox = tray  # type: ignore[assignment]
    tray.put(state())
    assert tip.look(NOW_NS) == 'the robot description is not known yet'
    tip.take_chain(load_arm_chain(load_urdf()))
    assert tip.look(NOW_NS) is None


def test_place_and_speed_of_the_tip_come_through_the_chain(tf: Tf, tray: Tray) -> None:
    tip = joint_tip(tf, tray)
    place = {**HOME, 'joint_1': 0.6}
    tray.put(state(place, speed_radps=0.4))
    found = reading(tip.look(NOW_NS))
    expected = CHAIN.tip_position(list(place.values()))
    assert found.values[SPATIAL] == pytest.approx(expected[1] - 0.5)
    assert found.values[VELOCITY] == pytest.approx(
        CHAIN.tip_speed_mps(list(place.values()), [0.4, 0, 0, 0, 0, 0])
    )
    assert found.where.startswith('tip at (')
    assert found.where.endswith("m in frame 'base'")


def test_only_declared_limits_are_measured(tf: Tf, tray: Tray) -> None:
    tip = joint_tip(tf, tray, spatial=None)
    tray.put(state())
    assert set(reading(tip.look(NOW_NS)).values) == {VELOCITY}
    tip = joint_tip(tf, tray, max_velocity_mps=None)
    tray.put(state())
    assert set(reading(tip.look(NOW_NS)).values) == {SPATIAL}


def test_joints_of_other_bodies_and_another_order_make_no_difference(tf: Tf, tray: Tray) -> None:
    tip = joint_tip(tf, tray)
    mixed = {'gripper_joint': 0.04, **dict(reversed({**HOME, 'joint_1': 0.6}.items()))}
    tray.put(state(mixed), state({'gripper_joint': 0.04}))
    found = reading(tip.look(NOW_NS))
    expected = CHAIN.tip_position(list({**HOME, 'joint_1': 0.6}.values()))
    assert found.values[SPATIAL] == pytest.approx(expected[1] - 0.5)


def test_of_several_messages_the_newest_counts(tf: Tf, tray: Tray) -> None:
    tip = joint_tip(tf, tray)
    tray.put(state({**HOME, 'joint_1': 0.7}), state())
    assert reading(tip.look(NOW_NS)).values[SPATIAL] == 0.0


def test_joints_told_by_two_publishers_are_put_together(tf: Tf, tray: Tray) -> None:
    tip = joint_tip(tf, tray)
    first = {k: v for k, v in HOME.items() if k < 'joint_4'}
    second = {k: v for k, v in HOME.items() if k >= 'joint_4'}
    tray.put(state(first))
    assert tip.look(NOW_NS) == 'joint joint_4 was not heard yet'
    tray.put(state(second))
    assert reading(tip.look(NOW_NS + 100 * MS)).values[SPATIAL] == 0.0
    tray.put(state(second))
    assert tip.look(NOW_NS + 500 * MS) == 'joint joint_1 is silent (limit 500 ms)'


@pytest.mark.parametrize('bad', [math.nan, math.inf])
@pytest.mark.parametrize('row', ['position', 'velocity'])
def test_numbers_that_are_not_finite_are_named(tf: Tf, tray: Tray, row: str, bad: float) -> None:
    tip = joint_tip(tf, tray)
    tray.put(state(**{row: [0.0, bad, 0.0, 0.0, 0.0, 0.0]}))
    assert tip.look(NOW_NS) == 'joint joint_2: not finite'


def test_arrays_that_do_not_match_and_bytes_that_are_no_message_are_doubts(
    tf: Tf, tray: Tray
) -> None:
    tip = joint_tip(tf, tray)
    tray.put(state(speed_radps=None, position=[0.0]))
    assert tip.look(NOW_NS) == '6 names, 1 positions, 0 velocities'
    tray.put(b'\x00\x01\x00\x00 no message')
    assert str(tip.look(NOW_NS)).startswith('a message cannot be read')


def test_without_velocities_places_are_differenced_by_their_stamps(tf: Tf, tray: Tray) -> None:
    tip = joint_tip(tf, tray)
    for step in range(5):
        turned = {**HOME, 'joint_1': 0.005 * step}  # 0.5 rad/s
        tray.put(state(turned, speed_radps=None, stamp_ms=1 + 10 * step))
        assert tip.look(NOW_NS + step) == 'the speed is not known yet'
    tray.put(state({**HOME, 'joint_1': 0.025}, speed_radps=None, stamp_ms=51))
    expected = CHAIN.tip_speed_mps(list(HOME.values()), [0.5, 0, 0, 0, 0, 0])
    assert reading(tip.look(NOW_NS)).values[VELOCITY] == pytest.approx(expected, rel=0.01)


def test_without_velocities_and_stamps_there_is_no_speed(tf: Tf, tray: Tray) -> None:
    tip = joint_tip(tf, tray)
    tray.put(state(speed_radps=None, stamp_ms=0))
    assert tip.look(NOW_NS) == 'without velocities and stamps no speed can be measured'


def test_a_box_in_another_frame_waits_for_tf_and_follows_it(tf: Tf, tray: Tray) -> None:
    box = {'frame': 'camera', 'aabb_m': BOX['aabb_m']}
    tip = joint_tip(tf, tray, spatial=box)
    tray.put(state())
    assert "in frame 'camera'" in str(tip.look(NOW_NS))
    tf.poses['base', 'camera'] = Pose((0.6, 0.0, 0.0), UPRIGHT)
    tray.put(state())
    found = reading(tip.look(NOW_NS))
    assert found.values[SPATIAL] == pytest.approx(0.1, abs=1e-3)


# ---------------------------------------------------------------- odometry, tf, force


def odometry(frame: str, x_m: float, vx: float = 0.0, vy: float = 0.0) -> Odometry:
    message = Odometry()
    message.header.frame_id = frame
    message.pose.pose.position.x = x_m
    message.twist.twist.linear.x, message.twist.twist.linear.y = vx, vy
    return message


def odometry_tip(tf: Tf, tray: Tray, **changes: Any) -> OdometryTip:
    made: OdometryTip = source({'source': 'odometry'}, tf, **changes)
    made._inbox, made._type = tray, Odometry  # type: ignore[assignment]
    return made


def test_odometry_tells_place_and_speed(tf: Tf, tray: Tray) -> None:
    tip = odometry_tip(tf, tray)
    assert tip.look(NOW_NS) is None
    tray.put(odometry('base', 0.0), odometry('base', 0.75, 0.3, 0.4))
    found = reading(tip.look(NOW_NS))
    assert found.values == {SPATIAL: pytest.approx(0.25), VELOCITY: pytest.approx(0.5)}


def test_odometry_in_another_frame_is_moved_by_tf(tf: Tf, tray: Tray) -> None:
    tip = odometry_tip(tf, tray)
    tray.put(odometry('nowhere', 0.0))
    assert tip.look(NOW_NS) == (
        "it is told in frame 'nowhere', which frames.include does not name"
    )
    tray.put(odometry('/rig/camera', 0.0))
    assert tip.look(NOW_NS) == (
        "tf does not relate 'camera' to 'base', the frame of the limits"
    )
    tf.poses['camera', 'base'] = Pose((0.0, 0.6, 0.0), UPRIGHT)
    tray.put(odometry('rig/camera', 0.0))
    assert reading(tip.look(NOW_NS)).values[SPATIAL] == pytest.approx(0.1)


@pytest.mark.parametrize('frame', ['base', 'rig/camera'])
def test_odometry_that_is_not_finite_is_a_doubt(tf: Tf, tray: Tray, frame: str) -> None:
    tip = odometry_tip(tf, tray)
    tf.poses['camera', 'base'] = Pose((0.0, 0.0, 0.0), UPRIGHT)
    tray.put(odometry(frame, math.nan))
    assert tip.look(NOW_NS) == 'the position is not finite'
    tray.put(odometry(frame, 0.0, math.inf))
    assert tip.look(NOW_NS) == 'the speed is not finite'


def test_tf_tells_place_and_speed_once_per_news(tf: Tf) -> None:
    tip: TfTip = source({'source': 'tf', 'tip': 'tool0'}, tf)
    assert tip.look(NOW_NS) == "tf does not relate 'tool0' to 'base'"
    tf.placed = (Pose((0.0, 0.0, 0.4), UPRIGHT), None, None)
    assert tip.look(NOW_NS) == "nothing moves between 'tool0' and 'base' in tf"
    tf.placed = (Pose((0.0, 0.0, 0.4), UPRIGHT), 0, 1)
    assert tip.look(NOW_NS) == 'the speed is not known yet'
    tf.placed = (Pose((0.6, 0.0, 0.4), UPRIGHT), 100 * MS, 2)
    found = reading(tip.look(NOW_NS))
    assert found.values == {SPATIAL: pytest.approx(0.1), VELOCITY: pytest.approx(6.0)}
    assert tip.look(NOW_NS) is None, 'nothing arrived since'


def wrench(x: float, y: float = 0.0, z: float = 0.0, frame: str = 'tool0') -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = frame
    message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = x, y, z
    message.wrench.torque.x = 99.0
    return message


@pytest.mark.parametrize('frame', ['', 'a', 'tool', 'tool0', 'ft_sensor_link'])
def test_the_greatest_force_since_the_last_look_counts(tray: Tray, frame: str) -> None:
    sensor = force(tray)
    assert sensor.look(NOW_NS) is None
    tray.put(wrench(1.0, frame=frame), wrench(2.0, 3.0, 6.0, frame), wrench(0.0, frame=frame))
    assert reading(sensor.look(NOW_NS)).values == {FORCE: pytest.approx(7.0)}


def test_a_force_that_is_no_number_or_no_message_is_a_doubt(tray: Tray) -> None:
    sensor = force(tray)
    tray.put(wrench(1.0), wrench(math.nan), wrench(1.0))
    assert sensor.look(NOW_NS) == 'the force is not finite'
    tray.put(b'\x00\x01\x00\x00\x01')
    assert str(sensor.look(NOW_NS)).startswith('a message cannot be read')


def force(tray: Tray) -> Force:
    envelope = Envelope.model_validate(
        {'max_force_n': 50.0, 'enforcement': 'measured', 'force': {'topic': 'ft'}}
    )
    assert envelope.force is not None
    made = Force(envelope.force)
    made._inbox, made._type = tray, WrenchStamped  # type: ignore[assignment]
    return made
