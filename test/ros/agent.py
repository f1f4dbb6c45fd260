"""
Owns the agent of the tests: a plain WebSocket client that trusts nothing it hears.

Every message is decoded strictly and judged where no test needs to look: an answer belongs to a
question that was asked and comes once, sequenced notifications follow each other without a gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import contextlib
import itertools
import json
import socket
from ssl import SSLContext
import time
from typing import Any, Self

from agent_words import Heard, hello, judge_error, Refused, strict_json, TERMINAL
from patience import WAIT_S
import secrets_written
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Json = dict[str, Any]

HEARTBEAT_S = 0.5
_SEGMENT_BYTES = 1000


class Agent:
    """
    One control connection.

    :ivar notifications: every notification but frames, in order.
    :ivar frames: every inline frame, in order.
    :ivar strays: error replies without an id, to what could not be read.
    :ivar closed: close code and reason, None while the connection is open.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.ready: Json = {}
        self.manifest: Json = {}
        self.notifications: list[Heard] = []
        self.frames: list[Heard] = []
        self.strays: list[Json] = []
        self.closed: tuple[int, str] | None = None
        self.status_seq = 0
        self._connection = connection
        self._ids = itertools.count(1)
        self._asked: dict[int | str, asyncio.Future[Json]] = {}
        self._news = asyncio.Event()
        self._trouble: BaseException | None = None
        self._reading: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None

    # ------------------------------------------------------------ connection

    @classmethod
    async def dial(
        cls,
        url: str,
        token: str,
        *,
        receive_bytes: int | None = None,
        tls: SSLContext | None = None,
    ) -> Self:
        """
        Open a control connection and say nothing.

        :param receive_bytes: size of the socket's receive buffer, to stall early.
        :param tls: whom to trust, for wss.
        """
        secrets_written.note(token)
        options: Json = {} if tls is None else {'ssl': tls}
        if receive_bytes is not None:
            host, port = url.removeprefix('ws://').rsplit(':', 1)
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            # Segments of loopback are larger than such a buffer, which stalls TCP for good.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT_BYTES)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
            options['sock'] = sock
        connection = await connect(
            url,
            subprotocols=['awp'],  # type: ignore[list-item]
            additional_headers={'Authorization': f'Bearer {token}'},
            compression=None,
            ping_interval=None,
            open_timeout=WAIT_S,
            close_timeout=1.0,
            max_size=None,
            **options,
        )
        agent = cls(connection)
        agent.resume_reading()
        return agent

    @classmethod
    async def connect(
        cls, url: str, token: str, *, name: str = 'tester', **options: Any
    ) -> Self:
        """Open a control connection and initialize."""
        agent = await cls.dial(url, token, **options)
        agent.manifest = await agent.call('initialize', **hello(name))
        return agent

    async def open(self, embodiment: str | None = 'arm_01', **params: Any) -> Json:
        """Open a session, observing where no embodiment is named; return ``session.ready``."""
        if embodiment is not None:
            params['embodiment'] = embodiment
        self.status_seq = 0
        self.ready = await self.call('session.open', mode='streaming', **params)
        return self.ready

    async def resume(self, lost: Agent) -> Json:
        """Go on with the session of a connection that was lost; what it missed is replayed."""
        self.status_seq = lost.status_seq
        self.ready = await self.call(
            'session.resume',
            session_token=lost.ready['session_token'],
            last_status_seq=lost.status_seq,
        )
        return self.ready

    async def close(self) -> None:
        """Close the session if there still is one."""
        if self.closed is None:
            with contextlib.suppress(Refused):
                await self.call('session.close')

    async def submit(self, action_id: str, kind: str, params: Json, **more: Any) -> Json:
        """
        Submit an action and return the result of its admission.

        Where the dead-man timer of the bridge has struck on a busy machine, it is asked again.
        """
        content = {'action_id': action_id, 'type': kind, 'params': params, **more}
        ends_s = time.monotonic() + WAIT_S
        while True:
            try:
                return await self.call('action.submit', **content)
            except Refused as refused:
                if 'bridge:loop' not in refused.detail or time.monotonic() > ends_s:
                    raise
            await asyncio.sleep(0.05)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drop()

    async def drop(self) -> None:
        """End the connection with a close frame, and judge what was heard."""
        await self._stop_tasks()
        with contextlib.suppress(asyncio.TimeoutError):
            await self._connection.close()
        self._judge()

    async def reset(self) -> None:
        """End the connection without a word: the peer sees a reset."""
        await self._stop_tasks()
        linger = b'\x01\x00\x00\x00\x00\x00\x00\x00'
        sock = self._connection.transport.get_extra_info('socket')
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._connection.transport.abort()

    def beat(self, every_s: float = HEARTBEAT_S) -> None:
        """Begin to send heartbeats, which acknowledge what was heard so far."""
        self._beating = asyncio.create_task(self._beat(every_s))

    async def hush(self) -> None:
        """Send no more heartbeats."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None

    async def stop_reading(self) -> None:
        """Read nothing any more; the library's small queue fills and then the socket."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None

    def resume_reading(self) -> None:
        """Read on."""
        self._reading = asyncio.create_task(self._read())

    async def _stop_tasks(self) -> None:
        await self.hush()
        await self.stop_reading()

    async def _beat(self, every_s: float) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self.send(
                    jsonrpc='2.0',
                    id=f'beat-{next(self._ids)}',
                    method='ping',
                    params={'origin_ns': time.monotonic_ns()},
                )
                await asyncio.sleep(every_s)

    # ------------------------------------------------------------ saying

    async def raw(self, data: str | bytes) -> None:
        """Send text or bytes as they are."""
        await self._connection.send(data)

    async def send(self, **message: Any) -> None:
        """Send one message."""
        await self.raw(json.dumps(message, allow_nan=False))

    async def ask(self, method: str, params: Json) -> asyncio.Future[Json]:
        """Send a request; the future holds the whole answer."""
        number = next(self._ids)
        body = {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params}
        return await self.ask_raw(number, json.dumps(body))

    async def ask_raw(self, number: int | str, text: str) -> asyncio.Future[Json]:
        """Send text that holds a request of this id; the future holds the whole answer."""
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        await self.raw(text)
        return answer

    def forget(self, number: int | str) -> None:
        """Expect no answer to a request any more."""
        self._asked.pop(number, None)

    async def answer(
        self, question: asyncio.Future[Json], timeout_s: float = WAIT_S, what: str = 'a request'
    ) -> Json:
        """
        Wait for an answer and return its result.

        :raises Refused: it is an error
        """
        await self._wait(question.done, timeout_s, f'the answer to {what}')
        body = question.result()
        if 'error' in body:
            raise Refused(body['error'])
        result: Json = body['result']
        return result

    async def call(self, method: str, **params: Any) -> Json:
        """Send a request and return its result."""
        return await self.answer(await self.ask(method, params), what=method)

    async def refusal(self, method: str, **params: Any) -> Refused:
        """Send a request that must be refused and return how it was."""
        try:
            result = await self.call(method, **params)
        except Refused as refused:
            return refused
        raise AssertionError(f'{method} was not refused: {result}')

    async def where(self, session_id: str) -> str:
        """Return ``unknown``, ``inactive``, or what an active session does."""
        question = await self.ask('session/status', {'sessionId': session_id})
        await self._wait(question.done, WAIT_S, 'the answer to session/status')
        body = question.result()
        if 'error' in body:
            error = body['error']
            assert (error['code'], error['message']) == (-32002, 'Resource not found'), error
            assert error['data']['sessionId'] == session_id, error
            assert error['data']['retryable'] is False, error
            return 'unknown'
        status = str(body['result']['status'])
        return str(body['result']['state']['state']) if status == 'active' else status

    # ------------------------------------------------------------ hearing

    async def hear(
        self,
        condition: Callable[[Heard], bool],
        timeout_s: float = WAIT_S,
        what: str = 'a notification',
        since: int = 0,
    ) -> Heard:
        """Wait for a notification, or find it among those that came, and return it."""

        def found() -> Heard | None:
            return next((h for h in self.notifications[since:] if condition(h)), None)

        await self._wait(lambda: found() is not None, timeout_s, what)
        heard = found()
        assert heard is not None
        return heard

    async def status(self, action_id: str, *states: str, timeout_s: float = WAIT_S) -> Json:
        """Wait until an action reached one of these states, a terminal one by default."""
        wanted = states or tuple(TERMINAL)
        heard = await self.hear(
            lambda h: h.method == 'action.status'
            and h.params['action_id'] == action_id
            and h.params['state'] in wanted,
            timeout_s,
            f'{action_id} {"/".join(sorted(wanted))}',
        )
        return heard.params

    async def progress(self, action_id: str, at_least: float) -> Json:
        """Wait until a running action reported that much of its way."""
        heard = await self.hear(
            lambda h: h.method == 'action.status'
            and h.params['action_id'] == action_id
            and (h.params.get('progress', -1.0) >= at_least or h.params['state'] in TERMINAL),
            what=f'{action_id} at {at_least:g}',
        )
        assert heard.params.get('progress', -1.0) >= at_least, heard.params
        return heard.params

    async def event(self, name: str, timeout_s: float = WAIT_S, since: int = 0) -> Heard:
        """Wait for a world event."""
        return await self.hear(
            lambda h: h.method == 'world.event' and h.params['event'] == name,
            timeout_s,
            f'event {name}',
            since,
        )

    async def session_state(self, state: str, timeout_s: float = WAIT_S) -> Heard:
        """Wait until the session is reported in a state."""
        return await self.hear(
            lambda h: h.method == 'session.state' and h.params['state'] == state,
            timeout_s,
            f'session {state}',
        )

    async def ended(self, timeout_s: float = WAIT_S) -> tuple[int, str]:
        """Wait until the connection is closed and return code and reason."""
        await self._wait(lambda: self.closed is not None, timeout_s, 'the end of the connection')
        assert self.closed is not None
        return self.closed

    def states(self, action_id: str) -> list[str]:
        """Return the states that were reported of an action, repetitions left out."""
        told = [
            h.params['state']
            for h in self.notifications
            if h.method == 'action.status' and h.params['action_id'] == action_id
        ]
        return [state for state, _ in itertools.groupby(told)]

    def has_ended(self, action_id: str) -> bool:
        """Tell whether a terminal state was reported of an action."""
        return bool(TERMINAL.intersection(self.states(action_id)))

    def events(self) -> list[str]:
        """Return the world events that were heard, but for channels that a busy machine slowed."""
        told = [h.params['event'] for h in self.notifications if h.method == 'world.event']
        return [event for event in told if event != 'channel_degraded']

    async def settle(self) -> None:
        """Return when everything that the bridge sent so far was heard."""
        await self.call('ping', origin_ns=time.monotonic_ns())

    async def _wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._judge()
                    if self.closed is not None:
                        raise AssertionError(f'closed with {self.closed} before {what}')
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            last = [h.body for h in self.notifications[-5:]]
            raise AssertionError(f'{what} did not come within {timeout_s} s; {last}') from None

    def _judge(self) -> None:
        if self._trouble is not None:
            raise AssertionError(f'the bridge broke a rule: {self._trouble!r}')

    # ------------------------------------------------------------ reading

    async def _read(self) -> None:
        try:
            while True:
                data = await self._connection.recv()
                self._take(data, time.monotonic_ns())
                self._news.set()
        except ConnectionClosed as error:
            self.closed = (error.rcvd.code, error.rcvd.reason) if error.rcvd else (1006, '')
        except Exception as error:  # noqa: BLE001 whatever it is, the test fails with it
            self._trouble = error
        finally:
            self._news.set()

    def _take(self, data: str | bytes, at_ns: int) -> None:
        assert isinstance(data, str), 'binary on the control connection'
        body = strict_json(data)
        assert body['jsonrpc'] == '2.0', body
        if 'method' not in body:
            self._take_answer(body)
        elif 'id' in body:
            self._take_request(body)
        elif body['method'] == 'obs.frame':
            self.frames.append(Heard(at_ns, body))
        else:
            self._take_notification(Heard(at_ns, body))

    def _take_answer(self, body: Json) -> None:
        assert ('result' in body) != ('error' in body), body
        if 'error' in body:
            judge_error(body['error'])
            told = secrets_written.in_text(json.dumps(body['error']))
            assert not told, f'an error holds a secret: {told}'
        if body['id'] is None:
            self.strays.append(body)
        elif not str(body['id']).startswith('beat-'):
            answer = self._asked.pop(body['id'])  # KeyError: nobody asked, or it came twice
            result = body.get('result')
            for name in ('session_token', 'transfer_token'):
                if isinstance(result, dict) and name in result:
                    secrets_written.note(result[name])
            if isinstance(result, dict) and 'action_id' in result:
                self._count(result)
            answer.set_result(body)

    def _count(self, result: Json) -> None:
        """Count a transition that a result tells instead of a notification (AWP-LIF-005)."""
        seq = result['status_seq']
        assert seq <= self.status_seq + 1, f'status_seq {seq} in a result after {self.status_seq}'
        self.status_seq = max(self.status_seq, seq)

    def _take_request(self, body: Json) -> None:
        """Answer a heartbeat of the bridge; it asks nothing else."""
        assert body['method'] == 'ping', body
        origin_ns, now_ns = body['params']['origin_ns'], time.monotonic_ns()
        times = {'origin_ns': origin_ns, 'receive_ns': now_ns, 'transmit_ns': now_ns}
        reply = json.dumps({'jsonrpc': '2.0', 'id': body['id'], 'result': times})
        asyncio.get_running_loop().create_task(self._reply(reply))

    async def _reply(self, text: str) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send(text)

    def _take_notification(self, heard: Heard) -> None:
        seq = heard.params.get('status_seq')
        if seq is not None:
            assert seq == self.status_seq + 1, f'status_seq {seq} after {self.status_seq}'
            self.status_seq = seq
        self.notifications.append(heard)
