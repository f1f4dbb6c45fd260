"""Owns the cell of the bridge's tests: robot, bridge, a tap on what the robot does, a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
import socket
import threading
import time
from typing import Any, Self, TypeVar

from action_msgs.msg import GoalStatus, GoalStatusArray
from agent import Agent
from agent_words import payload, Refused, TERMINAL, to_pose
from patience import until, WAIT_S
from processes import (
    BridgeProcess,
    GuardianProcess,
    SIM_ARM,
    start_sim_robot,
    StartedProcess,
)
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_peer import RosPeer, stamp_ns
from sensor_msgs.msg import JointState
from sim_robot_goals import GRIPPER, PRIMITIVE, reset, TRAJECTORY
from sim_robot_goals import HOME as HOME_RAD
import yaml

Json = dict[str, Any]
T = TypeVar('T')

HOME_M = (0.0, 0.0, 0.4)
AWAY_M = (0.3, 0.2, 0.5)
HOME = to_pose(*HOME_M)
STATE_CHANNELS = {'arm_01': 'arm_state', 'gripper_01': 'gripper_state'}
MOVING_RADPS = 0.05
AT_SPEED_RADPS = 0.2
CREEPING_RADPS = 0.03
REST_RADPS = 0.01
# A busy machine keeps processes waiting for longer than a robot should be silent: only tests of
# silence take the short times of config/sim_arm.yaml.
PATIENT_MS = 2000
# A move that is under way until somebody ends it: 3.7 s from home to AWAY_M.
SLOW_MPS = 0.1
SLOWLY = {'max_velocity_mps': SLOW_MPS}

_TRIES = 5
_REST_SAMPLES = 5
_TOLD_SAMPLES = 3
_REST_RADPS = 1e-3
_HOME_RAD = 0.01
_LATCHED = QoSProfile(
    depth=10,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
_RUNNING = {
    GoalStatus.STATUS_ACCEPTED,
    GoalStatus.STATUS_EXECUTING,
    GoalStatus.STATUS_CANCELING,
}
_CANCELLED = {GoalStatus.STATUS_CANCELING, GoalStatus.STATUS_CANCELED}


# Why a first move may fail: what is started is not discovered, or stops while it is.
_NOT_YET = {
    'x-ros2.server_unavailable', 'x-ros2.safety_input', 'safe_state', 'connection_lost',
}  # fmt: skip


def config_with(
    folder: Path,
    sections: Mapping[str, Mapping[str, Any]],
    name: str = 'changed',
    guardian: str = 'off',
    source: Path = SIM_ARM,
) -> Path:
    """
    Write the configuration of the simulated arm, or another one, with some keys changed.

    :param sections: new values by section, a nested one as ``actions.stop``.
    """
    body = yaml.safe_load(source.read_text(encoding='utf-8'))
    body['guardian'] = guardian
    for section, values in sections.items():
        inner = body
        for key in section.split('.'):
            inner = inner[key]
        inner.update(values)
    path = folder / f'{name}.yaml'
    path.write_text(yaml.safe_dump(body, sort_keys=False), encoding='utf-8')
    return path


def patient_config(
    folder: Path,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    name: str = 'patient',
    guardian: str = 'off',
    source: Path = SIM_ARM,
) -> Path:
    """Write the same for tests that are not about silence: it takes longer to count as such."""
    path = config_with(folder, sections or {}, name, guardian, source)
    body = yaml.safe_load(path.read_text(encoding='utf-8'))
    body.setdefault('safety', {}).setdefault('lease_ms', PATIENT_MS)
    if 'max_basis_age_ms' not in (sections or {}).get('safety', {}):
        body['safety']['max_basis_age_ms'] = PATIENT_MS
    if 'reconnect_window_ms' not in (sections or {}).get('session', {}):
        # Who was left behind by a test that failed shall not be in the way of the next one.
        body.setdefault('session', {})['reconnect_window_ms'] = 8000
        if 'watchdog_ms' not in (sections or {}).get('safety', {}):
            body['safety']['watchdog_ms'] = 5000
    for embodiment in body['embodiments'].values():
        measured = embodiment.get('envelope', {}).get('measured')
        at_rest, inputs = embodiment.get('at_rest'), embodiment.get('safety_inputs', ())
        for each in (at_rest, measured, *inputs):
            if each is not None:
                each['stale_after_ms'] = max(PATIENT_MS, each.get('stale_after_ms', 0))
    path.write_text(yaml.safe_dump(body, sort_keys=False), encoding='utf-8')
    return path


@dataclass(frozen=True, slots=True)
class JointSample:
    """
    What the arm did at a moment.

    :param at_ns: steady time of arrival.
    :param speed_radps: of the fastest joint of the arm.
    :param stamp_ns: when the robot says that it was, in system time.
    """

    at_ns: int
    positions: tuple[float, ...]
    speed_radps: float
    velocities: tuple[float, ...] = ()
    stamp_ns: int = 0


class RobotTap:
    """
    Hears what the robot does, on a thread of its own, without the bridge.

    :ivar samples: what the joints of the arm did.
    :ivar goals: every goal that a server of the robot took since, with its newest status.
    :ivar cancels: when each goal was first said to be cancelled, steady time.
    :ivar most_running: most goals of one server that ran at once.
    """

    def __init__(self, namespace: str = '') -> None:
        """Open a node and begin to listen."""
        self.samples: list[JointSample] = []
        self.goals: dict[bytes, int] = {}
        self.servers: dict[bytes, str] = {}
        self.cancels: dict[bytes, int] = {}
        self.most_running: dict[str, int] = {}
        self._node = rclpy.create_node('robot_tap', namespace=namespace or None)
        self._node.create_subscription(JointState, 'joint_states', self._on_joints, 100)
        for server in (TRAJECTORY, PRIMITIVE, GRIPPER):
            self._node.create_subscription(
                GoalStatusArray,
                f'{server}/_action/status',
                lambda message, name=server: self._on_goals(name, message),
                _LATCHED,
            )
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._begun_ns = time.time_ns()
        self._is_closing = False
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self._is_closing = True
        self._thread.join(2.0)
        self._executor.shutdown(1.0)
        self._node.destroy_node()

    @property
    def rests_at_home(self) -> bool:
        """Tell whether the newest samples are of an arm that rests at its home."""
        newest = self.samples[-_REST_SAMPLES:]
        return len(newest) == _REST_SAMPLES and all(
            each.speed_radps < _REST_RADPS
            and max(abs(a - b) for a, b in zip(each.positions, HOME_RAD, strict=True)) < _HOME_RAD
            for each in newest
        )

    @property
    def node(self) -> Any:
        """The node, to add subscriptions to before anything is awaited."""
        return self._node

    @property
    def speed_radps(self) -> float:
        """Speed of the fastest joint in the newest sample, 0 where there is none."""
        return self.samples[-1].speed_radps if self.samples else 0.0

    @property
    def is_moving(self) -> bool:
        """Tell whether the arm moves."""
        return self.speed_radps > MOVING_RADPS

    @property
    def is_at_rest(self) -> bool:
        """Tell whether the last three samples are of an arm at rest."""
        last = self.samples[-_TOLD_SAMPLES:]
        return len(last) == _TOLD_SAMPLES and all(s.speed_radps < REST_RADPS for s in last)

    async def caught_up(self) -> None:
        """Return when it has heard how the robot is now, for asking it what it heard."""
        now_ns = time.time_ns()

        def has_heard() -> bool:
            newest = self.samples[-_TOLD_SAMPLES:]
            return len(newest) == _TOLD_SAMPLES and newest[0].stamp_ns >= now_ns

        await until(has_heard, what='what the robot tells of itself')

    def running(self, server: str) -> int:
        """Count the goals of a server that run now."""
        return sum(
            status in _RUNNING and self.servers[goal] == server
            for goal, status in list(self.goals.items())
        )

    def taken(self, server: str | None = None) -> int:
        """Count the goals that the robot, or one server of it, ever took."""
        return sum(server in (None, name) for name in list(self.servers.values()))

    def rested_ns(self, since_ns: int) -> int | None:
        """Return when the arm was first at rest after a time and stayed so, None while not."""
        rested = None
        for sample in self.samples:
            if sample.at_ns >= since_ns:
                is_slow = sample.speed_radps < REST_RADPS
                rested = (rested or sample.at_ns) if is_slow else None
        return rested

    def _spin(self) -> None:
        while not self._is_closing:
            self._executor.spin_once(0.1)

    def _on_joints(self, message: Any) -> None:
        velocities = tuple(message.velocity[:6])
        speed = max(abs(v) for v in velocities)
        positions = tuple(message.position[:6])
        stamp = stamp_ns(message.header.stamp)
        sample = JointSample(time.monotonic_ns(), positions, speed, velocities, stamp)
        self.samples.append(sample)

    def _on_goals(self, server: str, message: Any) -> None:
        running = 0
        for status in message.status_list:
            if stamp_ns(status.goal_info.stamp) < self._begun_ns:
                continue  # latched, of somebody before
            goal = bytes(status.goal_info.goal_id.uuid)
            self.goals[goal] = status.status
            self.servers[goal] = server
            if status.status in _CANCELLED:
                self.cancels.setdefault(goal, time.monotonic_ns())
            running += status.status in _RUNNING
        self.most_running[server] = max(self.most_running.get(server, 0), running)


@dataclass
class Cell:
    """A robot and a bridge as two processes; either may be replaced by a test."""

    robot: StartedProcess
    bridge: BridgeProcess
    folder: Path
    guardian: GuardianProcess | None = None

    async def agent(self, name: str = 'tester', **options: Any) -> Agent:
        """Connect and initialize."""
        return await Agent.connect(self.bridge.url, self.bridge.token, name=name, **options)

    @asynccontextmanager
    async def holding(
        self, embodiment: str = 'arm_01', *, subscribe: Sequence[Json] = (), **more: Any
    ) -> AsyncIterator[Agent]:
        """Hold an embodiment that may move, with heartbeats; close the session at the end."""
        channels = [{'channel': STATE_CHANNELS[embodiment]}, *subscribe]
        async with await self.agent() as agent:
            await open_when_free(agent, embodiment, subscribe=channels, **more)
            agent.beat(0.2)
            try:
                await may_move(agent)
                yield agent
            finally:
                await agent.close()

    @asynccontextmanager
    async def watching(self, *channels: str, rate_hz: float | None = None) -> AsyncIterator[Agent]:
        """Observe some channels, with heartbeats."""
        rate = {} if rate_hz is None else {'rate_hz': rate_hz}
        async with await self.agent('watcher') as agent:
            await agent.open(None, subscribe=[{'channel': c, **rate} for c in channels])
            agent.beat(0.2)
            yield agent

    async def warm_up(self) -> None:
        """Move home as soon as servers, description and limits are known."""
        async with self.holding() as agent:
            await completed(agent, 'warm', 'move_to_pose', HOME, 20)


async def as_soon_as_possible(ask: Callable[[], Awaitable[T]], timeout_s: float = 30.0) -> T:
    """
    Ask again while the answer is that it may succeed later.

    :raises Refused: it may not, or not in time
    """
    ends_s = time.monotonic() + timeout_s
    while True:
        try:
            return await ask()
        except Refused as refused:
            if not refused.is_retryable or time.monotonic() > ends_s:
                raise
        await asyncio.sleep(0.05)


async def open_when_free(agent: Agent, embodiment: str, **more: Any) -> None:
    """Open a session as soon as the embodiment is available."""
    await as_soon_as_possible(lambda: agent.open(embodiment, **more))


async def completed(
    agent: Agent,
    action_id: str,
    kind: str,
    params: Json,
    tries: int = _TRIES,
    spoiled: Collection[str] = _NOT_YET,
) -> None:
    """
    Have an action completed that is not what is tested, which a busy machine may spoil at first.

    :param spoiled: the reasons with which it may fail then.
    :raises AssertionError: it failed for another reason, or again and again
    """
    said: Json = {}
    for number in range(tries):
        name = f'{action_id}-{number}'
        await as_soon_as_possible(partial(agent.submit, name, kind, params))
        said = await agent.status(name)
        if said['state'] == 'completed':
            return
        assert said['reason'] in spoiled, said
    raise AssertionError(said)


async def under_way(
    agent: Agent, action_id: str, kind: str, params: Json, at_least: float = 0.05
) -> str:
    """
    Have an action that is on its way, which a busy machine may spoil at first; return its id.

    :raises AssertionError: it ended again and again
    """
    said = None
    for number in range(_TRIES):
        name = f'{action_id}-{number}'
        await as_soon_as_possible(partial(agent.submit, name, kind, params))
        said = await agent.hear(
            lambda h, name=name: h.method == 'action.status'  # type: ignore[misc]
            and h.params['action_id'] == name
            and (h.params.get('progress', -1.0) >= at_least or h.params['state'] in TERMINAL),
            what=f'{name} on its way',
        )
        if said.params['state'] not in TERMINAL:
            return name
    raise AssertionError(said)


async def set_moving(
    agent: Agent,
    tap: RobotTap,
    action_id: str = 'go',
    *,
    max_velocity_mps: float = SLOW_MPS,
    at_speed: bool = False,
) -> str:
    """
    Have a move to AWAY_M that moves the arm, slowly until somebody ends it; return its id.

    :param at_speed: so fast that stopping takes a while; it is soon there.
    :raises AssertionError: it ended again and again, or nothing moved
    """
    at_radps = AT_SPEED_RADPS if at_speed else CREEPING_RADPS
    params = to_pose(*AWAY_M, max_velocity_mps=0.25 if at_speed else max_velocity_mps)
    for number in range(_TRIES):
        name = f'{action_id}-{number}' if number else action_id
        await as_soon_as_possible(partial(agent.submit, name, 'move_to_pose', params))
        await until(
            lambda name=name: agent.has_ended(name)  # type: ignore[misc]
            or (tap.speed_radps > at_radps and tap.running(PRIMITIVE)),
            what=f'the arm moving by {name}',
        )
        if not agent.has_ended(name):
            return name
        # A busy machine: the dead-man timer may have struck.
    raise AssertionError(agent.notifications[-3:])


def channel_id(agent: Agent, channel: str) -> int:
    """Return the number of a granted channel."""
    rows = agent.ready['granted']['channels']
    return next(int(row['channel_id']) for row in rows if row['channel'] == channel)


def newest(agent: Agent, channel: str) -> dict[str, Any] | None:
    """Return what the newest frame of a channel says, None while there is none."""
    number = channel_id(agent, channel)
    frames = (f for f in reversed(agent.frames) if f.params['channel_id'] == number)
    found = next(frames, None)
    return None if found is None else payload(found)


async def may_move(agent: Agent, timeout_s: float = 30.0) -> None:
    """Wait until the embodiment that an agent holds is permitted to move."""
    rows = agent.ready['granted']['channels']
    channel = next(r['channel'] for r in rows if r['channel'] in STATE_CHANNELS.values())

    def is_permitted() -> bool:
        state = newest(agent, channel)
        return state is not None and bool(state['motion_permitted'])

    await until(is_permitted, timeout_s, 'permission to move')


@contextmanager
def tapped(peer: RosPeer, namespace: str = '') -> Iterator[RobotTap]:
    """Listen to a robot, in the namespace of the peer, that is put back home before and after."""
    reset(peer)
    with RobotTap(namespace) as opened:
        # A robot in physics is put back a moment after it said so, and swings for another.
        peer.wait_until(lambda: opened.rests_at_home, WAIT_S, 'joint states, at rest at home')
        yield opened
    reset(peer)


@contextmanager
def running_cell(
    folder: Path,
    config: Path | None = None,
    robot_parameters: Mapping[str, object] | None = None,
    **options: Any,
) -> Iterator[Cell]:
    """
    Start a bridge and a robot at once, with a guardian if required, and stop them at the end.

    :param config: by default that of the simulated arm with a guardian, and patient.
    :param options: of :class:`BridgeProcess`.
    """
    if config is None:
        config = patient_config(folder, guardian='required')
    bridge = BridgeProcess(folder, 'bridge', config, **options)
    is_guarded = yaml.safe_load(config.read_text(encoding='utf-8'))['guardian'] == 'required'
    ros_arguments = options.get('ros_arguments', ())
    guardian = None
    if is_guarded:
        guardian = GuardianProcess(folder, config, ros_arguments=ros_arguments)
    cell = None
    try:
        robot = start_sim_robot(folder, robot_parameters)
        cell = Cell(robot, bridge, folder, guardian)
        bridge.wait_ready()
        yield cell
    finally:
        processes = [bridge] if cell is None else [cell.bridge, cell.robot]
        for process in processes:
            with suppress(RuntimeError):
                process.stop()
        if guardian is not None:
            guardian.end()


class TcpProxy:
    """
    Forwards one TCP port, until it is told to swallow everything.

    :ivar is_dark: while True nothing is forwarded in either direction, and nobody is told.
    """

    def __init__(self, url: str) -> None:
        """Forward to the port of a URL."""
        self._target = int(url.rsplit(':', 1)[1])
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._light = asyncio.Event()
        self._light.set()

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._connected, '127.0.0.1', 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cut everything."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f'ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}'

    def darken(self) -> None:
        """Forward nothing any more, and tell nobody."""
        self._light.clear()

    def cut(self) -> None:
        """Reset both sides of every connection."""
        for writer in self._writers:
            sock = writer.get_extra_info('socket')
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\x01' + b'\x00' * 7)
            writer.transport.abort()

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        onward = await asyncio.open_connection('127.0.0.1', self._target)
        self._writers |= {writer, onward[1]}
        for source, sink in ((reader, onward[1]), (onward[0], writer)):
            task = asyncio.create_task(self._forward(source, sink))
            self._tasks.add(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._light.wait()
                writer.write(data)
                await writer.drain()
            writer.close()

