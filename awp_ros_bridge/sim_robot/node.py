"""Owns the robot as a whole: its parts, its parameters and services, and one turn of its loop."""

from collections.abc import Callable, Sequence
import os
import time

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from simulation_interfaces.srv import ResetSimulation
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from awp_ros_bridge.kinematics import Chain
from awp_ros_bridge.sim_robot.arm import Device
from awp_ros_bridge.sim_robot.delays import Delays
from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_MAX_ACCELERATION_RADPS2,
    GRIPPER_HOME_M,
    GRIPPER_MAX_ACCELERATION_MPS2,
    load_arm_chain,
    load_gripper_chain,
    load_urdf,
)
from awp_ros_bridge.sim_robot.faults import FaultError, FAULTS, Faults, parse_faults
from awp_ros_bridge.sim_robot.gripper_forms import LegacyForm, ParallelForm
from awp_ros_bridge.sim_robot.gripper_server import GripperServer
from awp_ros_bridge.sim_robot.motion import JointMotion
from awp_ros_bridge.sim_robot.parameters import declare_number, declare_switch
from awp_ros_bridge.sim_robot.plant import JointLimits
from awp_ros_bridge.sim_robot.primitive_server import PrimitiveServer
from awp_ros_bridge.sim_robot.rate import Rate
from awp_ros_bridge.sim_robot.state_topics import StateTopics
from awp_ros_bridge.sim_robot.stops import Stops
from awp_ros_bridge.sim_robot.trajectory_server import TrajectoryServer

MotionMaker = Callable[[JointLimits, Sequence[float]], JointMotion]

_TF_HZ = 50.0
_HEARTBEAT_HZ = 10.0


class SimRobot(Node):
    """
    An arm with a gripper.

    What moves the joints can be another: see ``make_motion``, :meth:`advance_joints` and
    :meth:`reset_joints`.

    :cvar TURN_HZ: least rate of its loop
    """

    TURN_HZ = 100.0

    def __init__(self, make_motion: MotionMaker = JointMotion) -> None:
        """
        Open everything and start to turn.

        :param make_motion: makes the joints of the arm and of the gripper
        """
        super().__init__('sim_robot')
        self._faults = Faults()
        self._delays = Delays()
        urdf = load_urdf()
        chain = load_arm_chain(urdf)
        arm = make_motion(_limits(chain, ARM_MAX_ACCELERATION_RADPS2), ARM_HOME_RAD)
        grip = make_motion(
            _limits(load_gripper_chain(urdf), (GRIPPER_MAX_ACCELERATION_MPS2,)), (GRIPPER_HOME_M,)
        )
        self.motions = (arm, grip)
        self._stops = Stops(self, self._faults, self._on_trip)
        self._wanted_stops: list[tuple[str, bool]] = []
        self._device = Device(arm, self._stops)
        gripper = Device(grip, self._stops)
        self._trajectories = TrajectoryServer(self, self._device, self._faults, self._delays)
        self._primitives = PrimitiveServer(
            self, self._device, chain, load_arm_chain(urdf), self._faults, self._delays
        )
        forms: list[ParallelForm | LegacyForm] = [ParallelForm()]
        if declare_switch(self, 'legacy_gripper', False, 'serve the older gripper action too'):
            forms.append(LegacyForm())
        self._grippers = [
            GripperServer(self, gripper, form, self._faults, self._delays) for form in forms
        ]
        self._topics = StateTopics(self, urdf, arm, grip, self._faults)
        self.create_service(ResetSimulation, 'sim/reset', self._on_reset)
        self.create_service(Trigger, 'sim/stop', self._on_stop)
        self.create_subscription(Float64, 'sim/set_speed_scaling', self._on_scaling, 1)
        joint_state_hz = self._declare()
        self._joint_states = Rate(joint_state_hz)
        self._is_every_turn = joint_state_hz >= self.TURN_HZ
        self._tf = Rate(_TF_HZ)
        self._heartbeat = Rate(_HEARTBEAT_HZ)
        self._last_ns: int | None = None
        period_s = 1.0 / max(self.TURN_HZ, joint_state_hz)
        clock = Clock(clock_type=ClockType.STEADY_TIME)  # turns even where /clock stands still
        self.create_timer(period_s, self._turn, clock=clock)

    def want_stop(self, name: str, is_engaged: bool) -> None:
        """Trip or clear a stop in the next turn; a signal handler may call this."""
        self._wanted_stops.append((name, is_engaged))

    def abort_goals(self, why: str) -> None:
        """End every running goal."""
        self._trajectories.abort(f'Aborted: {why}')
        self._primitives.abort(why)
        for gripper in self._grippers:
            gripper.abort(why)

    @property
    def has_results_to_send(self) -> bool:
        """Tell whether a goal that was ended still owes its result."""
        servers = [self._trajectories.server, self._primitives.server]
        servers += [gripper.server for gripper in self._grippers]
        return any(server.has_open_goals for server in servers)

    def close(self) -> None:
        """Close the action servers and the node."""
        self._trajectories.destroy()
        self._primitives.destroy()
        for gripper in self._grippers:
            gripper.destroy()
        self.destroy_node()

    @property
    def has_new_states(self) -> bool:
        """Tell whether the joints were measured since the last turn."""
        return True

    def advance_joints(self, now_ns: int) -> float:
        """
        Move the joints up to a time, of the steady clock.

        :return: for how long they moved since the last time, in seconds
        """
        last_ns = now_ns if self._last_ns is None else self._last_ns
        self._last_ns = now_ns
        for motion in self.motions:
            motion.advance(now_ns)
        return (now_ns - last_ns) * 1e-9

    def reset_joints(self) -> None:
        """Bring the joints home at once."""
        for motion in self.motions:
            motion.reset()

    def _turn(self) -> None:
        """Do what is due: stops first, then motion, goals and topics."""
        now_ns = time.monotonic_ns()
        while self._wanted_stops:
            self._stops.set(*self._wanted_stops.pop(0))
        elapsed_s = self.advance_joints(now_ns)
        self._delays.run_due(now_ns)
        self._trajectories.turn(now_ns, elapsed_s)
        self._primitives.turn(now_ns)
        for gripper in self._grippers:
            gripper.turn(now_ns, elapsed_s)
        if self.has_new_states:
            if self._is_every_turn or self._joint_states.is_due(now_ns):
                self._topics.publish_joint_states()
            if self._tf.is_due(now_ns):
                self._topics.publish_tf()
        if self._heartbeat.is_due(now_ns):
            self._stops.publish()
            self._topics.publish_scaling()

    def _on_trip(self, name: str) -> None:
        self._brake()
        self.abort_goals(f'{name} engaged')

    def _on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Brake and end every goal, as the stop service of a driver does."""
        self._brake()
        self.abort_goals('stopped by service')
        response.success, response.message = True, 'braking'
        return response

    def _brake(self) -> None:
        self.advance_joints(time.monotonic_ns())
        for motion in self.motions:
            motion.stop()

    def _on_reset(
        self, _: ResetSimulation.Request, response: ResetSimulation.Response
    ) -> ResetSimulation.Response:
        self.abort_goals('the simulation was reset')
        self.reset_joints()
        response.result.result = type(response.result).RESULT_OK
        return response

    def _on_scaling(self, message: Float64) -> None:
        if 0.0 <= message.data <= 1.0:
            self.set_parameters([Parameter('speed_scaling', value=message.data)])
        else:
            self.get_logger().warning(f'speed scaling {message.data} is outside [0, 1]')

    def _declare(self) -> float:
        """Declare the parameters that belong to no part; return the joint state rate."""
        rate_hz = declare_number(
            self, 'joint_state_rate_hz', 100.0, 1.0, 1000.0, 'rate of joint_states'
        )
        self.add_on_set_parameters_callback(self._on_parameters)
        self.declare_parameter(
            'fault',
            '',
            ParameterDescriptor(
                description='; '.join(f'{name}: {kind.effect}' for name, kind in FAULTS.items())
            ),
        )
        declare_number(
            self, 'speed_scaling', 1.0, 0.0, 1.0, 'speed of running moves', read_only=False
        )
        declare_number(
            self, 'gripper_object_m', 0.0, 0.0, 0.04,
            'finger position at which closing meets an object; 0: no object', read_only=False,
        )
        return rate_hz

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == 'fault':
                try:
                    parse_faults(str(parameter.value))
                except FaultError as error:
                    return SetParametersResult(successful=False, reason=str(error))
        for parameter in parameters:
            self._apply(parameter)
        return SetParametersResult(successful=True)

    def _apply(self, parameter: Parameter) -> None:
        if parameter.name == 'fault':
            self._faults.set_text(str(parameter.value))
            if 'die' in self._faults:
                os._exit(1)
            for motion in self.motions:
                motion.is_stalled = 'stall' in self._faults
                motion.brake_share = 1.0 / max(1.0, self._faults.number('slow_stop', 1.0))
            self.motions[0].overshoot = self._faults.number('overshoot', 1.0)
            self.motions[0].push(self._faults.number('push'))
        elif parameter.name == 'speed_scaling':
            self.motions[0].scaling = float(parameter.value)
            self._topics.publish_scaling()
        elif parameter.name == 'gripper_object_m':
            for gripper in self._grippers:
                gripper.object_m = float(parameter.value)


def _limits(chain: Chain, max_acceleration: tuple[float, ...]) -> JointLimits:
    return JointLimits(
        lower_rad=tuple(chain.lower_rad.tolist()),
        upper_rad=tuple(chain.upper_rad.tolist()),
        max_velocity_radps=tuple(chain.max_velocity_radps.tolist()),
        max_acceleration_radps2=max_acceleration,
    )
