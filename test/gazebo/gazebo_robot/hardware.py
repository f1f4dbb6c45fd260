"""Owns the joints in Gazebo as a robot's drives see them: measured states, commands, the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
import time
from typing import Any

import zmq

from gazebo_robot.ignition import IgnitionNode
from gazebo_robot.messages import message_class
from gazebo_robot.server import GazeboServer
from gazebo_robot.transport import GazeboClient, TransportError
from gazebo_robot.world import ARM_MODEL, BASE_MODEL, SENSED_JOINT

_LOAD_S = 30.0
_TRIES = 5
_SAME = 1e-7
_STRING = 4  # gazebo.msgs.Any.STRING
_TIME_ITEM = 'data://world/default?p=time/sim_time'
_PLACE_ITEM = f'data://world/default/model/{BASE_MODEL}?p=pose3d/world_pose'
_CONTROL_TYPE = 'gazebo.msgs.WorldControl'


class HardwareError(RuntimeError):
    """Gazebo did not do something in time."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a body is in the world, and how it is turned."""

    position_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quaternion_xyzw: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """
    What the physics say of all joints at one moment.

    :ivar sim_ns: the time of the simulation
    :ivar base: where the base is in truth
    """

    sim_ns: int
    positions: tuple[float, ...]
    velocities: tuple[float, ...]
    base: Placed


@dataclass(frozen=True, slots=True)
class Gains:
    """Of one drive: spring and damper between what is commanded and what is measured."""

    position: float
    velocity: float
    most: float


@dataclass(frozen=True, slots=True)
class DrivenJoint:
    """
    A joint and its drive.

    :ivar home: position at the beginning of the world, from where Gazebo counts
    """

    model: str
    name: str
    home: float
    gains: Gains

    @property
    def commands(self) -> str:
        """Name the topic of its commands."""
        return f'/{self.model}/joint_cmd'


class GazeboJoints:
    """
    A running world with the robots in it, and their joints; one thread may use it.

    :ivar force: what the force sensor at the wrist says
    """

    def __init__(self, world: str, joints: Sequence[DrivenJoint], folder: Path) -> None:
        """
        Start the world and hold the joints at home; it stays paused.

        :param world: what Gazebo loads
        :param joints: all that move, whose order is that of all rows
        :param folder: for the world and the log of Gazebo
        :raises HardwareError: the world did not load in time
        """
        self._joints = tuple(joints)
        path = folder / 'robot.world'
        path.write_text(world, encoding='utf-8')
        self.server = GazeboServer(path, folder / 'gzserver.log')
        self._joint_cmd = message_class('ignition.msgs.JointCmd')
        self._param_v = message_class('gazebo.msgs.Param_V')
        self._control_type = message_class('gazebo.msgs.WorldControl')
        self._wrench_type = message_class('gazebo.msgs.Wrench')
        self._ignition = IgnitionNode(self.server.partition)
        self._clients: list[GazeboClient] = []
        self._items: dict[str, tuple[str, int]] = {}
        self._told: dict[int, list[float]] = {}
        try:
            self._connect()
        except (RuntimeError, OSError) as error:
            self.close()
            raise HardwareError(f'{error}; Gazebo printed:\n{self.server.output}') from error

    def close(self) -> None:
        """End the world."""
        self._ignition.close()
        for client in self._clients:
            client.close()
        self.server.stop()

    def read(self) -> Measured | None:
        """Give the newest state that was not given yet, None where there is none."""
        newest = None
        try:
            while True:
                newest = self._states.recv_multipart(zmq.NOBLOCK)[2]
        except zmq.Again:
            return None if newest is None else self._decode(newest)

    def command(
        self,
        positions: Sequence[float],
        velocities: Sequence[float],
        efforts: Sequence[float],
    ) -> None:
        """Tell the drives where to be, how fast to go there, and the effort to add."""
        rows = zip(self._joints, positions, velocities, efforts, strict=True)
        for index, (joint, *told) in enumerate(rows):
            if not _differs(told, self._told.get(index)):
                continue  # a drive keeps what it was told
            self._told[index] = told
            position, velocity, effort = told
            message = self._joint_cmd(name=f'{joint.model}::{joint.name}')
            message.position.target_optional.data = position - joint.home
            message.velocity.target_optional.data = velocity
            message.force_optional.data = effort
            self._ignition.publish(joint.commands, message)

    def pause(self, is_paused: bool) -> None:
        """Let the world stand still, or go on."""
        self._control.send(self._control_type(pause=is_paused))

    def reset(self) -> None:
        """Put everything back to where it began, at time zero; the world goes on."""
        self._told.clear()
        message = self._control_type()
        message.reset.all = True
        self._control.send(message)

    def push(self, force_n: Sequence[float], torque_nm: Sequence[float]) -> None:
        """Push the last link of the arm, in its own axes, for one step of 1 ms."""
        message = self._wrench_type()
        message.force.x, message.force.y, message.force.z = force_n
        message.torque.x, message.torque.y, message.torque.z = torque_nm
        self._push.send(message)

    def _connect(self) -> None:
        # The services exist once the world has loaded: only then may its master be touched.
        filters = self._ignition.find_service(lambda s: s.endswith('/filter_new'), _LOAD_S)
        for topic in dict.fromkeys(joint.commands for joint in self._joints):
            self._ignition.find_service(f'{topic}_req'.__eq__, _LOAD_S)
            self._ignition.offer(topic, 'ignition.msgs.JointCmd')
        self._set_gains()
        self._open_control()
        self._states = self._ignition.subscribe(self._new_filter(filters))

    def _open_control(self) -> None:
        for left in reversed(range(_TRIES)):
            client = GazeboClient(self.server.port)
            self._clients.append(client)
            try:
                self._control = client.offer('/gazebo/default/world_control', _CONTROL_TYPE)
                topic = f'/gazebo/default/{ARM_MODEL}/link_6/wrench'
                self._push = client.offer(topic, 'gazebo.msgs.Wrench')
                topic = f'/gazebo/default/{ARM_MODEL}/{SENSED_JOINT}/ft/wrench'
                self.force = client.subscribe(topic, 'gazebo.msgs.WrenchStamped')
                return
            except TransportError:
                client.close()
                if not left:
                    raise

    def _set_gains(self) -> None:
        for joint in self._joints:
            gain = joint.gains
            message = self._joint_cmd(name=f'{joint.model}::{joint.name}')
            pairs = ((message.position, gain.position), (message.velocity, gain.velocity))
            for pid, proportional in pairs:
                pid.target_optional.data = 0.0
                pid.p_gain_optional.data = proportional
                pid.i_gain_optional.data = 0.0
                pid.d_gain_optional.data = 0.0
                pid.limit_optional.data = gain.most
            self._ignition.publish(joint.commands, message)

    def _new_filter(self, service: str) -> str:
        self._items = {_TIME_ITEM: ('time', 0), _PLACE_ITEM: ('place', 0)}
        for index, joint in enumerate(self._joints):
            path = f'data://world/default/model/{joint.model}/joint/{joint.name}'
            for kind in ('position', 'velocity'):
                self._items[f'{path}?p=axis/0/double/{kind}'] = (kind, index)
        wanted = self._param_v()
        for item in self._items:
            row = wanted.param.add()
            row.name, row.value.type, row.value.string_value = 'item', _STRING, item
        end_s = time.monotonic() + 10.0
        while True:
            reply = self._ignition.request(service, wanted, 'gazebo.msgs.GzString')
            if reply.data:
                return service.removesuffix('filter_new') + f'filter/{reply.data}'
            if time.monotonic() > end_s:  # refused until the model's items are registered
                raise HardwareError('Gazebo does not tell the states of the joints')
            time.sleep(0.05)

    def _decode(self, data: bytes) -> Measured:
        sim_ns = 0
        base = Placed()
        rows = {kind: [0.0] * len(self._joints) for kind in ('position', 'velocity')}
        for param in self._param_v.FromString(data).param:
            kind, index = self._items[param.name]
            if kind == 'time':
                stamp = param.value.time_value
                sim_ns = stamp.sec * 1_000_000_000 + stamp.nsec
            elif kind == 'place':
                base = _placed(param.value.pose3d_value)
            else:
                rows[kind][index] = param.value.double_value
        positions = (p + j.home for p, j in zip(rows['position'], self._joints, strict=True))
        return Measured(sim_ns, tuple(positions), tuple(rows['velocity']), base)


def _placed(pose: Any) -> Placed:
    p, q = pose.position, pose.orientation
    return Placed((p.x, p.y, p.z), (q.x, q.y, q.z, q.w))


def _differs(told: Sequence[float], before: Sequence[float] | None) -> bool:
    return before is None or any(abs(a - b) > _SAME for a, b in zip(told, before, strict=True))
