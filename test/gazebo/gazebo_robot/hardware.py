"""Owns the joints in Gazebo as a robot's drives see them: measured states, commands, the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
import time

import zmq

from gazebo_robot.ignition import IgnitionNode
from gazebo_robot.messages import message_class
from gazebo_robot.server import GazeboServer
from gazebo_robot.transport import GazeboClient, TransportError
from gazebo_robot.world import MODEL, SENSED_JOINT, world_of

_LOAD_S = 30.0
_TRIES = 5
_SAME = 1e-7
_STRING = 4  # gazebo.msgs.Any.STRING
_TIME_ITEM = 'data://world/default?p=time/sim_time'
_COMMANDS = f'/{MODEL}/joint_cmd'
_CONTROL_TYPE = 'gazebo.msgs.WorldControl'


class HardwareError(RuntimeError):
    """Gazebo did not do something in time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """
    What the physics say of all joints at one moment.

    :ivar sim_ns: the time of the simulation
    """

    sim_ns: int
    positions: tuple[float, ...]
    velocities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Gains:
    """Of one drive: spring and damper between what is commanded and what is measured."""

    position: float
    velocity: float
    most: float


class GazeboJoints:
    """
    A running world with the robot in it, and its joints; one thread may use it.

    :ivar force: what the force sensor at the wrist says
    """

    def __init__(
        self, urdf: str, home: Mapping[str, float], gains: Sequence[Gains], folder: Path
    ) -> None:
        """
        Start the world and hold the joints at home; it stays paused.

        :param home: position of every moving joint by name, whose order is that of all rows
        :param folder: for the world and the log of Gazebo
        :raises HardwareError: the world did not load in time
        """
        self._names = tuple(home)
        self._home = tuple(home.values())
        world = folder / 'robot.world'
        world.write_text(world_of(urdf, home), encoding='utf-8')
        self.server = GazeboServer(world, folder / 'gzserver.log')
        self._joint_cmd = message_class('ignition.msgs.JointCmd')
        self._param_v = message_class('gazebo.msgs.Param_V')
        self._control_type = message_class('gazebo.msgs.WorldControl')
        self._wrench_type = message_class('gazebo.msgs.Wrench')
        self._ignition = IgnitionNode(self.server.partition)
        self._clients: list[GazeboClient] = []
        self._items: dict[str, tuple[str, int]] = {}
        self._told: dict[str, list[float]] = {}
        try:
            self._connect(gains)
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
        rows = zip(self._names, self._home, positions, velocities, efforts, strict=True)
        for name, home, *told in rows:
            if not _differs(told, self._told.get(name)):
                continue  # a drive keeps what it was told
            self._told[name] = told
            position, velocity, effort = told
            message = self._joint_cmd(name=f'{MODEL}::{name}')
            message.position.target_optional.data = position - home
            message.velocity.target_optional.data = velocity
            message.force_optional.data = effort
            self._ignition.publish(_COMMANDS, message)

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

    def _connect(self, gains: Sequence[Gains]) -> None:
        # The services exist once the world has loaded: only then may its master be touched.
        filters = self._ignition.find_service(lambda s: s.endswith('/filter_new'), _LOAD_S)
        self._ignition.find_service(lambda s: s == f'{_COMMANDS}_req', _LOAD_S)
        self._ignition.offer(_COMMANDS, 'ignition.msgs.JointCmd')
        self._set_gains(gains)
        self._open_control()
        self._states = self._ignition.subscribe(self._new_filter(filters))

    def _open_control(self) -> None:
        for left in reversed(range(_TRIES)):
            client = GazeboClient(self.server.port)
            self._clients.append(client)
            try:
                self._control = client.offer('/gazebo/default/world_control', _CONTROL_TYPE)
                topic = f'/gazebo/default/{MODEL}/link_6/wrench'
                self._push = client.offer(topic, 'gazebo.msgs.Wrench')
                topic = f'/gazebo/default/{MODEL}/{SENSED_JOINT}/ft/wrench'
                self.force = client.subscribe(topic, 'gazebo.msgs.WrenchStamped')
                return
            except TransportError:
                client.close()
                if not left:
                    raise

    def _set_gains(self, gains: Sequence[Gains]) -> None:
        for name, gain in zip(self._names, gains, strict=True):
            message = self._joint_cmd(name=f'{MODEL}::{name}')
            pairs = ((message.position, gain.position), (message.velocity, gain.velocity))
            for pid, proportional in pairs:
                pid.target_optional.data = 0.0
                pid.p_gain_optional.data = proportional
                pid.i_gain_optional.data = 0.0
                pid.d_gain_optional.data = 0.0
                pid.limit_optional.data = gain.most
            self._ignition.publish(_COMMANDS, message)

    def _new_filter(self, service: str) -> str:
        self._items = {_TIME_ITEM: ('time', 0)}
        for index, name in enumerate(self._names):
            for kind in ('position', 'velocity'):
                item = f'data://world/default/model/{MODEL}/joint/{name}?p=axis/0/double/{kind}'
                self._items[item] = (kind, index)
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
        rows = {kind: [0.0] * len(self._names) for kind in ('position', 'velocity')}
        for param in self._param_v.FromString(data).param:
            kind, index = self._items[param.name]
            if kind == 'time':
                stamp = param.value.time_value
                sim_ns = stamp.sec * 1_000_000_000 + stamp.nsec
            else:
                rows[kind][index] = param.value.double_value
        positions = (p + h for p, h in zip(rows['position'], self._home, strict=True))
        return Measured(sim_ns, tuple(positions), tuple(rows['velocity']))


def _differs(told: Sequence[float], before: Sequence[float] | None) -> bool:
    return before is None or any(abs(a - b) > _SAME for a, b in zip(told, before, strict=True))
