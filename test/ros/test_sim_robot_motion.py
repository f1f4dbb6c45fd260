"""The simulated joints in time, without ROS: limits, braking, scaling, stalls."""

import pytest

pytest.importorskip('pinocchio')

from awp_ros_bridge.kinematics import Trajectory, Waypoint
from awp_ros_bridge.sim_robot.faults import FaultError, parse_faults
from awp_ros_bridge.sim_robot.motion import JointMotion, MotionMode
from awp_ros_bridge.sim_robot.plant import JointLimits
from awp_ros_bridge.sim_robot.rate import Rate

LIMITS = JointLimits((-3.0, -3.0), (3.0, 3.0), (1.2, 2.0), (1.8, 3.0))
TICK_NS = 10_000_000


class Clock:
    """Advances a motion tick by tick and watches the limits."""

    def __init__(self, motion: JointMotion) -> None:
        self.motion = motion
        self.now_ns = 0
        motion.advance(0)

    def tick(self) -> None:
        before = self.motion.velocities_radps
        positions = self.motion.positions_rad
        self.now_ns += TICK_NS
        self.motion.advance(self.now_ns)
        limits = self.motion.plant.limits
        for i, (u, v) in enumerate(zip(before, self.motion.velocities_radps, strict=True)):
            assert abs(v) <= limits.max_velocity_radps[i] + 1e-9
            assert abs(v - u) <= limits.max_acceleration_radps2[i] * TICK_NS * 1e-9 + 1e-4
            step = abs(self.motion.positions_rad[i] - positions[i])
            assert step <= limits.max_velocity_radps[i] * TICK_NS * 1e-9 + 1e-9

    def until_rest(self, limit_s: float = 20.0) -> float:
        start_ns = self.now_ns
        self.tick()
        while not (self.motion.is_at_rest and self.motion.is_trajectory_over):
            assert self.now_ns - start_ns < limit_s * 1e9
            self.tick()
        return (self.now_ns - start_ns) * 1e-9


@pytest.fixture
def clock() -> Clock:
    return Clock(JointMotion(LIMITS, (0.0, 0.0)))


def line(seconds: float, *end: float) -> Trajectory:
    return Trajectory([Waypoint(0.0, (0.0, 0.0)), Waypoint(seconds, end)])


def test_a_jump_is_moved_not_teleported(clock: Clock) -> None:
    clock.motion.follow(Trajectory([Waypoint(0.0, (1.0, -1.0))]))
    assert clock.until_rest() > 1.2
    assert clock.motion.positions_rad == pytest.approx((1.0, -1.0), abs=1e-3)


def test_full_speed_to_rest_takes_time_but_not_long(clock: Clock) -> None:
    clock.motion.follow(line(2.0, 2.4, -4.0))
    for _ in range(100):
        clock.tick()
    assert clock.motion.velocities_radps == pytest.approx((1.2, -2.0), rel=0.05)
    clock.motion.stop()
    assert 0.5 < clock.until_rest() <= 0.7
    assert clock.motion.mode is MotionMode.HOLDING


def test_braking_joints_stop_together_on_a_line(clock: Clock) -> None:
    clock.motion.follow(line(4.0, 2.0, 1.0))
    for _ in range(150):
        clock.tick()
    before = clock.motion.positions_rad
    clock.motion.stop()
    clock.until_rest()
    a, b = (y - x for x, y in zip(before, clock.motion.positions_rad, strict=True))
    assert a == pytest.approx(2.0 * b, rel=0.03)


def test_slow_stop_takes_longer(clock: Clock) -> None:
    clock.motion.follow(line(2.0, 2.0, 0.0))
    for _ in range(100):
        clock.tick()
    clock.motion.brake_share = 0.2
    clock.motion.stop()
    assert clock.until_rest() > 2.0


@pytest.mark.parametrize('scaling', [0.25, 0.5, 1.0])
def test_scaling_stretches_time(clock: Clock, scaling: float) -> None:
    clock.motion.scaling = scaling
    clock.motion.follow(line(2.0, 1.0, 1.0))
    assert 2.0 / scaling <= clock.until_rest() < 2.0 / scaling + 1.0
    assert clock.motion.positions_rad == pytest.approx((1.0, 1.0), abs=1e-3)


def test_a_stall_rests_on_the_way_and_goes_on_after(clock: Clock) -> None:
    clock.motion.follow(line(2.0, 1.0, 0.5))
    for _ in range(60):
        clock.tick()
    clock.motion.is_stalled = True
    for _ in range(200):
        clock.tick()
    assert clock.motion.is_at_rest
    assert not clock.motion.is_trajectory_over
    clock.motion.is_stalled = False
    clock.until_rest()
    assert clock.motion.positions_rad == pytest.approx((1.0, 0.5), abs=1e-3)


def test_overshoot_leads_farther_and_faster_than_commanded(clock: Clock) -> None:
    clock.motion.overshoot = 1.5
    clock.motion.follow(line(2.0, 0.8, -0.4))
    fastest = 0.0
    for _ in range(200):
        clock.tick()
        fastest = max(fastest, clock.motion.velocities_radps[0])
    clock.until_rest()
    assert clock.motion.positions_rad == pytest.approx((1.2, -0.6), abs=1e-3)
    plain = Clock(JointMotion(LIMITS, (0.0, 0.0)))
    plain.motion.follow(line(2.0, 0.8, -0.4))
    usual = 0.0
    for _ in range(200):
        plain.tick()
        usual = max(usual, plain.motion.velocities_radps[0])
    assert fastest > 1.3 * usual


def test_a_push_turns_the_first_joint_once_and_lets_go_when_it_is_told() -> None:
    motion = JointMotion(LIMITS, (0.0, 0.0))
    motion.advance(0)
    motion.push(0.2)
    motion.advance(100 * TICK_NS // 5)
    assert motion.velocities_radps[0] == pytest.approx(0.5)
    for number in range(20, 120):
        motion.advance(number * TICK_NS)
    assert motion.positions_rad == pytest.approx((0.2, 0.0))
    assert motion.is_at_rest
    motion.push(0.2)
    motion.advance(121 * TICK_NS)
    motion.push(0.0)
    motion.advance(122 * TICK_NS)
    assert motion.is_at_rest
    assert 0.2 < motion.positions_rad[0] < 0.22


def test_a_hard_stop(clock: Clock) -> None:
    clock.motion.follow(Trajectory([Waypoint(0.0, (9.0, 0.0))]))
    for _ in range(800):
        clock.now_ns += TICK_NS
        clock.motion.advance(clock.now_ns)
    assert clock.motion.positions_rad[0] == 3.0
    assert clock.motion.velocities_radps[0] == 0.0


def test_reset_is_at_once(clock: Clock) -> None:
    clock.motion.follow(line(2.0, 2.0, 0.0))
    for _ in range(100):
        clock.tick()
    clock.motion.reset()
    assert clock.motion.positions_rad == (0.0, 0.0)
    assert clock.motion.is_at_rest


def test_a_late_turn_is_caught_up(clock: Clock) -> None:
    clock.motion.follow(line(2.0, 1.0, 0.0))
    clock.motion.advance(300_000_000)
    assert clock.motion.trajectory_time_s == pytest.approx(0.3, abs=0.01)


def test_rate_is_due_once_a_period() -> None:
    rate = Rate(10.0)
    due = [rate.is_due(ms * 1_000_000) for ms in range(0, 1000, 7)]
    assert 9 <= sum(due) <= 11


@pytest.mark.parametrize(
    ('text', 'active'),
    [
        ('', {}),
        ('none', {}),
        ('stall', {'stall': 0.0}),
        (' nan , slow_accept=20', {'nan': 0.0, 'slow_accept': 20.0}),
        ('late_result', {'late_result': 1000.0}),
    ],
)
def test_fault_texts(text: str, active: dict[str, float]) -> None:
    assert parse_faults(text) == active


@pytest.mark.parametrize(
    'text', ['stal', 'stall=3', 'slow_accept=x', 'slow_accept=-1', 'slow_accept=nan']
)
def test_wrong_fault_texts(text: str) -> None:
    with pytest.raises(FaultError, match=r'fault'):
        parse_faults(text)
