"""
Owns the agent of the bench: as little as possible between the socket and the numbers.

It takes the time of each message first and reads what it says when the measurement is over.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Callable, Coroutine
import contextlib
import gc
import struct
import time
from typing import Any

from pydantic_core import from_json, to_json
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from bench.worker import serve, tell, told

Json = dict[str, Any]
Heard = list[tuple[int, bytes]]

JOINTS = [f'joint_{number}' for number in range(1, 8)]
NUMBER_RAD = 1e-6
FEEDBACK_TOTAL_MS = 1000

_WAIT_S = 15.0
_KEEP_S = 1.0
_CLOCK_PINGS = 12
_ENDED = {'completed', 'failed', 'cancelled', 'rejected', 'preempted'}
_FRAME = struct.Struct('<4sBBHQQI')  # magic, version, flags, channel, seq, ts_mono_ns, size
_EXTENDED = 4


async def _dial(url: str, token: str) -> ClientConnection:
    return await connect(
        url,
        subprotocols=[Subprotocol('awp')],
        additional_headers={'Authorization': f'Bearer {token}'} if token else None,
        compression=None,
        ping_interval=None,
        max_size=None,
        max_queue=None,
    )


class Agent:
    """One control connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.ready: Json = {}
        self._ids = 0

    async def request(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._ids += 1
        message = {'jsonrpc': '2.0', 'id': self._ids, 'method': method, 'params': params}
        await self.socket.send(to_json(message), text=True)
        return self._ids

    async def next(self) -> tuple[int, Json]:
        """Return the next message and the steady ns of its receipt."""
        data = await self.socket.recv(decode=False)
        return time.monotonic_ns(), from_json(data)

    async def answer(self, number: int) -> tuple[int, Json]:
        """
        Return the answer to a request and its receipt; what comes before is passed over.

        :raises RuntimeError: it is refused
        """
        while True:
            at_ns, message = await self.next()
            if message.get('id') == number and 'method' not in message:
                if 'error' in message:
                    raise RuntimeError(f'refused: {message["error"]}')
                return at_ns, message['result']

    async def call(self, method: str, **params: Any) -> Json:
        """Send a request and return its result."""
        return (await self.answer(await self.request(method, **params)))[1]

    async def keep(self) -> None:
        """Keep the watchdog and the heartbeats content; answers are passed over."""
        while True:
            await asyncio.sleep(_KEEP_S)
            await self.request('ping', origin_ns=time.monotonic_ns())

    async def clock_zero_ns(self) -> int:
        """Return the steady time at which the session clock reads zero, by the quickest ping."""
        best, zero_ns = None, 0
        for _ in range(_CLOCK_PINGS):
            sent_ns = time.monotonic_ns()
            at_ns, said = await self.answer(await self.request('ping', origin_ns=sent_ns))
            if best is None or at_ns - sent_ns < best:
                best = at_ns - sent_ns
                middle_ns = (said['receive_ns'] + said['transmit_ns']) // 2
                zero_ns = (sent_ns + at_ns) // 2 - middle_ns
        return zero_ns


@contextlib.asynccontextmanager
async def _session(url: str, token: str, **params: Any) -> Any:
    socket = await _dial(url, token)
    async with socket:
        agent = Agent(socket)
        await agent.call(
            'initialize',
            protocol_versions=['0.1'],
            agent={'name': 'bench', 'version': '1', 'vendor': 'bench'},
            consumes_modalities=['proprio/json', 'text/event+json'],
        )
        agent.ready = await agent.call(
            'session.open', mode='streaming', embodiment='arm_01', **params
        )
        try:
            yield agent
        finally:  # else the next session finds the robot taken
            with contextlib.suppress(RuntimeError, ConnectionClosed):
                await agent.call('session.close')


def _bounded(work: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Turn a coroutine into a command that ends in time."""

    def command(**arguments: Any) -> Any:
        limit_s = _WAIT_S + float(arguments.get('seconds', 0)) + 1.0 * arguments.get('count', 0)

        async def bounded() -> Any:
            async with asyncio.timeout(limit_s):
                return await work(**arguments)

        # No collection falls into a measurement, in the agent as in no other process of ours.
        gc.disable()
        try:
            return asyncio.run(bounded())
        finally:
            gc.enable()
            gc.collect()

    return command


# ---------------------------------------------------------------- actions


def _params(kind: str, number: int, feedback: bool = False, points: int = 1) -> Json:
    if kind == 'follow_joint_trajectory':  # bench/peer.py
        position = [number * NUMBER_RAD] + [0.0] * (len(JOINTS) - 1)
        times_ms = [FEEDBACK_TOTAL_MS] if feedback else range(points)
        return {
            'joint_names': JOINTS,
            'points': [{'positions_rad': position, 'time_from_start_ms': t} for t in times_ms],
        }
    position = [0.0, 0.0, 0.4 + 0.001 * (number % 2)]  # move_to_pose of the reference world
    return {'pose': {'frame': 'base', 'p_m': position, 'q': [0.0, 0.0, 0.0, 1.0]}}


async def submit(
    url: str, token: str, kind: str, count: int, pause_s: float, points: int = 1
) -> list[list[int]]:
    """Submit actions one after the other: number, steady ns of sent, accepted, completed."""
    rows = []
    async with _session(url, token) as agent:
        await agent.clock_zero_ns()  # a warm connection, as the floor has
        for number in range(1, count + 1):
            params = _params(kind, number, points=points)
            action_id = f'a{number}'
            sent_ns = time.monotonic_ns()
            request = await agent.request(
                'action.submit', action_id=action_id, type=kind, params=params
            )
            accepted_ns, _ = await agent.answer(request)
            ended_ns = await _ended(agent, action_id)
            rows.append([number, sent_ns, accepted_ns, ended_ns])
            await asyncio.sleep(pause_s)
    return rows


async def _ended(agent: Agent, action_id: str) -> int:
    while True:
        at_ns, message = await agent.next()
        params = message.get('params') or {}
        if params.get('action_id') == action_id and params.get('state') in _ENDED:
            if params['state'] != 'completed':
                raise RuntimeError(f'an action did not complete: {params}')
            return at_ns


async def feedback(url: str, token: str, count: int) -> list[list[int]]:
    """Submit an action that gives feedback: progress in ms, steady ns of its receipt."""
    rows = []
    kind = 'follow_joint_trajectory'
    async with _session(url, token) as agent:
        params = _params(kind, count, feedback=True)
        await agent.call('action.submit', action_id='f', type=kind, params=params)
        keeping = asyncio.create_task(agent.keep())
        while True:
            at_ns, message = await agent.next()
            told = message.get('params') or {}
            if told.get('action_id') != 'f':
                continue
            if told.get('state') in _ENDED:
                break
            rows.append([round(told.get('progress', 0.0) * FEEDBACK_TOTAL_MS), at_ns])
        keeping.cancel()
    return rows


async def pings(url: str, token: str, count: int, pause_s: float, feedback_count: int) -> Json:
    """
    Ping while an action executes, and while others do what they do.

    :return: for each ping the steady ns of its sending and what it took; whether the bridge
        stopped the robot.
    """
    kind = 'follow_joint_trajectory'
    rows = []
    async with _session(url, token) as agent:
        params = _params(kind, feedback_count, feedback=True)
        await agent.call('action.submit', action_id='p', type=kind, params=params)
        tell('ready', agent.ready['session_id'])
        for _ in range(count):
            sent_ns = time.monotonic_ns()
            at_ns, _answer = await agent.answer(await agent.request('ping', origin_ns=sent_ns))
            rows.append([sent_ns, at_ns - sent_ns])
            await asyncio.sleep(pause_s)
        said = await agent.call('action.status', action_id='p')
        while said['state'] not in _ENDED:
            await asyncio.sleep(0.05)
            said = await agent.call('action.status', action_id='p')
    return {'rows': rows, 'stopped': int(_was_stopped(said))}


def _was_stopped(said: Json) -> bool:
    """
    Tell whether the bridge stopped the robot, as it does where the machine stalls it.

    :raises RuntimeError: the action ended in any other way than that or complete
    """
    if said['state'] == 'completed':
        return False
    if said.get('reason') != 'x-ros2.safety_input':
        raise RuntimeError(f'an action did not complete: {said}')
    return True


async def hold(url: str, token: str, feedback_count: int, seconds: float) -> int:
    """
    Hold the robot and let one action follow the other until told to end.

    :param seconds: the longest that may take.
    :return: how often the bridge stopped the robot.
    """
    kind = 'follow_joint_trajectory'
    params = _params(kind, feedback_count, feedback=True)
    stopped = number = 0
    async with _session(url, token) as agent:
        ending = asyncio.create_task(told())
        while not ending.done():
            number += 1
            action_id = f'h{number}'
            try:
                await agent.call('action.submit', action_id=action_id, type=kind, params=params)
            except RuntimeError:
                if not stopped:
                    raise
                await asyncio.sleep(0.05)  # the robot was stopped, and is not yet released
                continue
            if number == 1:
                tell('ready', agent.ready['session_id'])
            said = await agent.call('action.status', action_id=action_id)
            while said['state'] not in _ENDED:
                await asyncio.sleep(0.05)
                said = await agent.call('action.status', action_id=action_id)
            stopped += _was_stopped(said)
    return stopped


async def admitted(url: str, token: str, seconds: float) -> bool:
    """
    Wait until an action completes: the robot is found and may move.

    :raises RuntimeError: it does not in time; the text is the world's answer
    """
    end = time.monotonic() + seconds
    while True:
        try:
            await submit(url, token, 'follow_joint_trajectory', 1, 0.0)
        except RuntimeError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)
        else:
            return True


# ---------------------------------------------------------------- observations


async def _hear(socket: ClientConnection, heard: Heard, begun: asyncio.Event) -> None:
    receive, now_ns, note = socket.recv, time.monotonic_ns, heard.append
    while True:
        data = await receive(decode=False)
        note((now_ns(), data))
        if not begun.is_set():
            begun.set()


async def observe(
    url: str, token: str, channel: str, binding: str, rate_hz: float, seconds: float, run: int
) -> Json:
    """
    Listen to a channel for a while.

    :return: ``count`` and ``latency_us`` of the frames of a run of bench/peer.py, ``share`` of
        the numbers that arrived, and ``age_us`` from capture, both of all frames.
    """
    heard: Heard = []
    async with _session(url, token, subscribe=[{'channel': channel, 'rate_hz': rate_hz}]) as agent:
        zero_ns = await agent.clock_zero_ns()
        begun = asyncio.Event()
        if binding == 'ws':
            async with await _stream(agent) as stream:
                control = _hear(agent.socket, [], asyncio.Event())
                await _listen(seconds, begun, agent.keep(), control, _hear(stream, heard, begun))
        else:
            await _listen(seconds, begun, agent.keep(), _hear(agent.socket, heard, begun))
    read = _binary if binding == 'ws' else _inline
    frames = [(at_ns, *found) for at_ns, data in heard if (found := read(data)) is not None]
    if not frames:
        raise RuntimeError(f'no frame of {channel} arrived')
    return _summary(frames, run, zero_ns)


async def _listen(seconds: float, begun: asyncio.Event, *work: Coroutine[Any, Any, None]) -> None:
    """Do this work for so long from the first message on."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await begun.wait()
        tell('ready')
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()  # a lost connection is an error, not the end of a measurement
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _stream(agent: Agent) -> ClientConnection:
    endpoints = {e['binding']: e for e in agent.ready['stream_endpoints']}
    return await _dial(endpoints['ws']['url'], agent.ready['session_token'])


def _inline(data: bytes) -> tuple[int, int, bytes] | None:
    message = from_json(data)
    if message.get('method') != 'obs.frame':
        return None
    params = message['params']
    return params['seq'], params['ts_mono_ns'], binascii.a2b_base64(params['payload_b64'])


def _binary(data: bytes) -> tuple[int, int, bytes]:
    _, _, flags, _, seq, ts_mono_ns, size = _FRAME.unpack_from(data)
    assert flags & _EXTENDED or len(data) == _FRAME.size + size
    return seq, ts_mono_ns, data[len(data) - size :]


def _summary(frames: list[tuple[int, int, int, bytes]], run: int, zero_ns: int) -> Json:
    latencies: dict[int, int] = {}
    ages = []
    for at_ns, _, ts_mono_ns, payload in frames:
        ages.append((at_ns - zero_ns - ts_mono_ns) // 1000)
        efforts = from_json(payload).get('tau_nm')
        if efforts and int(efforts[2]) == run:
            latencies[int(efforts[0])] = (at_ns - int(efforts[1])) // 1000
    numbers = [seq for _, seq, _, _ in frames]
    return {
        'count': len(latencies),
        'latency_us': list(latencies.values()),
        'age_us': ages,
        'share': len(set(numbers)) / (max(numbers) - min(numbers) + 1),
        'rate_hz': (len(frames) - 1) * 1e9 / max(1, frames[-1][0] - frames[0][0]),
    }


# ---------------------------------------------------------------- the floor


async def echo(url: str, count: int, pause_s: float) -> list[int]:
    """Send texts of the size of a submission to the echo server: round trips in ns."""
    params = _params('follow_joint_trajectory', 1)
    text = to_json({'jsonrpc': '2.0', 'id': 1, 'method': 'action.submit', 'params': params})
    took = []
    async with await _dial(url, '') as socket:
        for _ in range(count):
            sent_ns = time.monotonic_ns()
            await socket.send(text, text=True)
            await socket.recv(decode=False)
            took.append(time.monotonic_ns() - sent_ns)
            await asyncio.sleep(pause_s)
    return took


def main() -> None:
    """Run until the bench closes the pipe."""
    commands = (admitted, submit, feedback, pings, hold, observe, echo)
    serve({command.__name__: _bounded(command) for command in commands})


if __name__ == '__main__':
    main()
