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

from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_JOINTS,
    GRIPPER_HOME_M,
    GRIPPER_JOINT,
    GRIPPER_MIRROR_JOINT,
    load_urdf,
    TIP_FRAME,
)
from awp_ros_bridge.sim_robot.node import SimRobot
from awp_ros_bridge.sim_robot.rate import Rate
from gazebo_robot.drives import DriveModel
from gazebo_robot.force_sensor import ForceSensor
from gazebo_robot.hardware import GazeboJoints, Measured
from gazebo_robot.motion import PhysicalMotion

_PUSH_LASTS_S = 1.0
_MOST_PUSHED_MS = 20.0
_RESET_LATE_NS = 500_000_000
_ARM = len(ARM_JOINTS)
_CLOCK_HZ = 100.0


class GazeboRobot(SimRobot):
    """The arm with its gripper, in a world of its own."""

    TURN_HZ = 200.0

    def __init__(self, folder: Path) -> None:
        """
        Start Gazebo, open everything and let the world run.

        :param folder: for the world and the log of Gazebo
        """
        urdf = load_urdf()
        home = dict(zip(ARM_JOINTS, ARM_HOME_RAD, strict=True))
        home |= {GRIPPER_JOINT: GRIPPER_HOME_M, GRIPPER_MIRROR_JOINT: GRIPPER_HOME_M}
        self._drives = DriveModel(urdf, home)
        self.joints = GazeboJoints(urdf, home, self._drives.gains(), folder)
        self._measured = Measured(0, tuple(home.values()), (0.0,) * len(home))
        self._is_new = False
        self._is_lost = False
        self._reset_since_ns: int | None = None
        self._push = Wrench()
        self._push_ends_s = 0.0
        self._force = ForceSensor(urdf, tuple(home), TIP_FRAME)
        self._clock_rate = Rate(_CLOCK_HZ)
        super().__init__(PhysicalMotion)
        self._clock_topic = self.create_publisher(Clock, '/clock', 1)
        self._force_topic = self.create_publisher(WrenchStamped, 'ft_sensor/wrench', 10)
        self.create_service(SetBool, 'sim/pause', self._on_pause)
        self.create_subscription(Wrench, 'sim/push', self._on_push, 10)
        self._command()
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
        elapsed_s = max(0.0, (measured.sim_ns - self._measured.sim_ns) * 1e-9)
        self._measured = measured
        rows = ((0, _ARM), (_ARM, _ARM + 1))
        for motion, (first, end) in zip(self.motions, rows, strict=True):
            assert isinstance(motion, PhysicalMotion)
            motion.plant.measure(measured.positions[first:end], measured.velocities[first:end])
            motion.advance(measured.sim_ns)
        self._command()
        self._keep_pushing(elapsed_s)
        if self._clock_rate.is_due(now_ns):
            self._tell_time()
            self._tell_force()
        return elapsed_s

    def reset_joints(self) -> None:
        """Bring the joints home at once, and the world to its beginning."""
        super().reset_joints()
        self._push_ends_s = 0.0
        self._command()
        self._reset_since_ns = self._measured.sim_ns
        self.joints.reset()

    def close(self) -> None:
        """Close the node and end the world."""
        super().close()
        self.joints.close()

    def _command(self) -> None:
        positions: list[float] = []
        velocities: list[float] = []
        for motion in self.motions:
            assert isinstance(motion, PhysicalMotion)
            positions += motion.reference.positions_rad
            velocities += motion.reference.velocities_radps
        positions.append(positions[-1])  # the second finger mirrors the first
        velocities.append(velocities[-1])
        loads = self._drives.loads(self._measured.positions, velocities)
        self.joints.command(positions, velocities, loads)

    def _tell_time(self) -> None:
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = divmod(self._measured.sim_ns, 1_000_000_000)
        self._clock_topic.publish(clock)

    def _tell_force(self) -> None:
        wrench = self._force.wrench(self.joints.force, self._measured.positions)
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
        steps = min(_MOST_PUSHED_MS, elapsed_s * 1e3)
        rows = (self._push.force, self._push.torque)
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
