"""
Owns the robot in Gazebo: the interfaces of sim_robot, with physics instead of its own motion.

It tells nobody that it is simulated except by the services under ``sim/``. Joint states and tf are
published when physics gave new ones: in a paused world they fall silent, as those of a robot whose
driver hangs. Goals and /clock live in the time of the simulation, safety topics in that of the
machine.
"""

from __future__ import annotations

from pathlib import Path
import time

from geometry_msgs.msg import Wrench, WrenchStamped
from rosgraph_msgs.msg import Clock
from std_srvs.srv import SetBool

from awp_ros_bridge.sim_robot.description import ARM_JOINTS, load_urdf, TIP_FRAME
from awp_ros_bridge.sim_robot.node import SimRobot
from awp_ros_bridge.sim_robot.rate import Rate
from gazebo_robot.base import MobileBase
from gazebo_robot.drives import DriveModel
from gazebo_robot.force_sensor import ForceSensor
from gazebo_robot.hardware import Measured, Placed
from gazebo_robot.motion import PhysicalMotion
from gazebo_robot.robots import ARM_HOME, start_world

# What is commanded goes on by no more than this in one turn: a loop that a busy machine keeps
# waiting delays the motion, and the drives are not told to jump.
_MOST_TURN_NS = 12_000_000
_MOST_BASE_TURN_NS = 100_000_000  # its wheels are told speeds, which it would follow too slowly
_PUSH_LASTS_S = 1.0
_MOST_IMPULSE_N_S = 18.0  # in one step; more would tear joints apart
_RESET_LATE_NS = 500_000_000
_ARM, _ARM_AND_GRIPPER = len(ARM_JOINTS), len(ARM_HOME)
_STILL = (0.0, 0.0)
_CLOCK_HZ = 100.0


class GazeboRobot(SimRobot):
    """The arm with its gripper, and a mobile base, in a world of their own."""

    TURN_HZ = 200.0

    def __init__(self, folder: Path) -> None:
        """
        Start Gazebo, open everything and let the world run.

        :param folder: for the world and the log of Gazebo
        """
        urdf = load_urdf()
        self._drives = DriveModel(urdf, ARM_HOME)
        self.joints = start_world(urdf, self._drives, folder)
        positions = (*ARM_HOME.values(), *_STILL)
        self._measured = Measured(0, positions, (0.0,) * len(positions), Placed())
        self._motion_ns = 0
        self._is_new = False
        self._is_lost = False
        self._reset_since_ns: int | None = None
        self._push = Wrench()
        self._push_ends_s = 0.0
        self._force = ForceSensor(urdf, tuple(ARM_HOME), TIP_FRAME)
        self._clock_rate = Rate(_CLOCK_HZ)
        super().__init__(PhysicalMotion)
        self._clock_topic = self.create_publisher(Clock, '/clock', 1)
        self._force_topic = self.create_publisher(WrenchStamped, 'ft_sensor/wrench', 100)
        self.create_service(SetBool, 'sim/pause', self._on_pause)
        self.create_subscription(Wrench, 'sim/push', self._on_push, 10)
        self._base = MobileBase(self, self._engaged, self._faults, self._delays)
        self._command(_STILL)
        self.joints.pause(False)

    @property
    def has_new_states(self) -> bool:
        """Tell whether physics went on since the last turn."""
        return self._is_new

    def advance_joints(self, now_ns: int) -> float:
        """
        Take what was measured and move what the drives are told by as much time.

        :param now_ns: paces what is told; the joints' time is that of the simulation
        """
        measured = self.joints.read()
        self._is_new = measured is not None
        if measured is None:
            self._notice_loss()
            return 0.0
        self._ask_again_for_reset(measured.sim_ns)
        if measured.sim_ns < self._measured.sim_ns:
            self._base.restart()
        elapsed_ns = max(0, measured.sim_ns - self._measured.sim_ns)
        turn_ns = min(elapsed_ns, _MOST_TURN_NS)
        self._motion_ns += turn_ns
        self._measured = measured
        rows = ((0, _ARM), (_ARM, _ARM + 1))
        for motion, (first, end) in zip(self.motions, rows, strict=True):
            assert isinstance(motion, PhysicalMotion)
            motion.plant.measure(measured.positions[first:end], measured.velocities[first:end])
            motion.advance(self._motion_ns)
        turned = (row[_ARM_AND_GRIPPER:] for row in (measured.positions, measured.velocities))
        base_s = min(elapsed_ns, _MOST_BASE_TURN_NS) * 1e-9
        wheels = self._base.advance(now_ns, base_s, *turned, measured.base)
        self._command(wheels)
        self._keep_pushing(elapsed_ns * 1e-9)
        if self._clock_rate.is_due(now_ns):
            self._tell_time()
            self._tell_force()
        return elapsed_ns * 1e-9

    def reset_joints(self) -> None:
        """Bring the joints home at once, and the world to its beginning."""
        super().reset_joints()
        self._push_ends_s = 0.0
        self._base.brake()
        self._command(_STILL)
        self._reset_since_ns = self._measured.sim_ns
        self.joints.reset()

    def abort_goals(self, why: str) -> None:
        """End every running goal, of the arm and of the base."""
        super().abort_goals(why)
        self._base.navigation.abort(why)

    @property
    def has_results_to_send(self) -> bool:
        """Tell whether a goal that was ended still owes its result."""
        return super().has_results_to_send or self._base.navigation.server.has_open_goals

    def close(self) -> None:
        """Close the node and end the world."""
        self._base.navigation.destroy()
        super().close()
        self.joints.close()

    def _turn(self) -> None:
        super()._turn()
        self._base.navigation.turn(time.monotonic_ns())

    def _brake(self) -> None:
        self._base.brake()
        super()._brake()

    def _engaged(self) -> str:
        return self._stops.engaged

    def _command(self, wheels_radps: tuple[float, float]) -> None:
        positions: list[float] = []
        velocities: list[float] = []
        for motion in self.motions:
            assert isinstance(motion, PhysicalMotion)
            positions += motion.reference.positions_rad
            velocities += motion.reference.velocities_radps
        positions.append(positions[-1])  # the second finger mirrors the first
        velocities.append(velocities[-1])
        loads = self._drives.loads(self._measured.positions[:_ARM_AND_GRIPPER], velocities)
        # Wheels hold no angle and bear no load.
        self.joints.command(
            [*positions, *_STILL], [*velocities, *wheels_radps], [*loads, *_STILL]
        )

    def _tell_time(self) -> None:
        if not self._clock_topic.get_subscription_count():
            return
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = divmod(self._measured.sim_ns, 1_000_000_000)
        self._clock_topic.publish(clock)

    def _tell_force(self) -> None:
        if not self._force_topic.get_subscription_count():
            self.joints.force.take()
            return
        wrench = self._force.wrench(
            self.joints.force, self._measured.positions[:_ARM_AND_GRIPPER]
        )
        if wrench is None:
            return
        message = WrenchStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = TIP_FRAME
        for vector, values in zip(
            (message.wrench.force, message.wrench.torque), wrench, strict=True
        ):
            vector.x, vector.y, vector.z = values
        self._force_topic.publish(message)

    def _keep_pushing(self, elapsed_s: float) -> None:
        """Give the last link the impulse of a steady push, since Gazebo takes forces by step."""
        if time.monotonic() >= self._push_ends_s:
            return
        rows = (self._push.force, self._push.torque)
        greatest = max(1e-9, *(abs(value) for v in rows for value in (v.x, v.y, v.z)))
        steps = min(_MOST_IMPULSE_N_S / greatest, elapsed_s) * 1e3
        self.joints.push(*((v.x * steps, v.y * steps, v.z * steps) for v in rows))

    def _ask_again_for_reset(self, sim_ns: int) -> None:
        """Send a reset again that Gazebo has not heard: its time would have gone back."""
        since_ns = self._reset_since_ns
        if since_ns is None:
            return
        if sim_ns < since_ns:
            self._reset_since_ns = None
        elif sim_ns - since_ns > _RESET_LATE_NS:
            self.get_logger().warning('Gazebo did not hear the reset: sent again')
            self._reset_since_ns = sim_ns
            self.joints.reset()

    def _notice_loss(self) -> None:
        status = self.joints.server.exit_status
        if status is not None and not self._is_lost:
            self._is_lost = True
            self.get_logger().error(f'Gazebo ended with {status}: {self.joints.server.output}')

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self.joints.pause(request.data)
        response.success = True
        response.message = 'paused' if request.data else 'running'
        return response

    def _on_push(self, message: Wrench) -> None:
        self._push = message
        self._push_ends_s = time.monotonic() + _PUSH_LASTS_S
