"""Owns the listener: handshakes, the register of connections, and the way effects reach them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from http import HTTPStatus
from itertools import count
import logging
from ssl import SSLContext
from typing import assert_never, cast

from websockets.asyncio.server import serve, Server, ServerConnection
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from awp_ros_bridge.engine.effects import (
    CloseConnection,
    DropFrames,
    SendFrame,
    SendMessage,
    TransportEffect,
)
from awp_ros_bridge.engine.inputs import HandshakeRefused
from awp_ros_bridge.transport.access import (
    Admission,
    Door,
    is_loopback,
    Refusal,
    Route,
    SUBPROTOCOL,
)
from awp_ros_bridge.transport.control import ControlLink
from awp_ros_bridge.transport.credentials import TokenGate
from awp_ros_bridge.transport.limits import Limits, MinuteCounter
from awp_ros_bridge.transport.port import Host
from awp_ros_bridge.transport.stream import StreamLink
from awp_ros_bridge.transport.websocket import Link, LinkStats, Socket

_log = logging.getLogger(__name__)

_GOING_AWAY = 1001
_LAST_CUT_S = 1.0
_POLICY_VIOLATION = 1008
_RECORDED = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)


class WebSocketTransport:
    """
    The WebSocket binding: control connections on ``/``, stream connections on ``/stream``.

    Everything runs on the asyncio loop that called :meth:`start`.

    :param host: the bridge.
    :param gate: credentials of control connections.
    :param address: address to bind; without TLS only a loopback one is taken (AWP-SEC-001).
    :param port: TCP port, 0 for any free one.
    :param origins: see :class:`Door`.
    :param host_names: see :class:`Door`; with TLS the first is the name in the URL.
    :param tls: how to speak TLS; None speaks plaintext.
    :raises ValueError: the address leaves this machine, and there is no TLS.
    """

    def __init__(
        self,
        host: Host,
        gate: TokenGate,
        *,
        address: str = '127.0.0.1',
        port: int = 0,
        limits: Limits | None = None,
        origins: Iterable[str] = (),
        host_names: Sequence[str] = (),
        tls: SSLContext | None = None,
    ) -> None:
        if tls is None and not is_loopback(address):
            raise ValueError(
                f'server address {address!r} is not a loopback address: without TLS only'
                ' 127.0.0.1, ::1 or localhost can be served; set server.tls'
            )
        self._host = host
        self._limits = limits or Limits()
        self._address = '127.0.0.1' if address.lower() == 'localhost' else address
        self._port = port
        self._tls = tls
        self._host_names = tuple(host_names)
        self._door = Door(
            gate,
            host,
            origins=origins,
            host_names=host_names,
            failed_logins_per_minute=self._limits.failed_logins_per_minute,
        )
        self._numbers = count(1)
        self._links: dict[int, Link] = {}
        self._sockets: set[Socket] = set()
        self._refused = MinuteCounter()
        self._server: Server | None = None
        self._is_stopping = False
        self._emptied = asyncio.Event()

    # ------------------------------------------------------------ what the bridge calls

    async def start(self) -> str:
        """
        Begin to listen.

        :return: the URL of control connections, with the port that was really bound.
        :raises OSError: the address cannot be bound.
        """
        limits = self._limits
        self._server = await serve(
            self._serve,
            self._address,
            self._port,
            select_subprotocol=_select_subprotocol,
            compression=None,
            process_request=self._process_request,
            server_header=None,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else limits.open_timeout_s,
            open_timeout=limits.open_timeout_s,
            ping_interval=None,  # AWP-CTL-004: heartbeats are the protocol's own
            close_timeout=limits.close_timeout_s,
            max_size=limits.max_message_bytes,
            # asyncio's TLS never resumes at 0; with 1 it pauses at the first byte that waits.
            write_limit=0 if self._tls is None else (1, 0),
            logger=_quiet_logger(),
            create_connection=cast(
                'type[ServerConnection]', partial(Socket, self, limits.close_timeout_s)
            ),
        )
        bound = next(iter(self._server.sockets)).getsockname()
        name = f'[{bound[0]}]' if ':' in bound[0] else bound[0]
        if self._tls is not None and self._host_names:
            name = self._host_names[0]
        url = f'{"ws" if self._tls is None else "wss"}://{name}:{bound[1]}'
        _log.info('listening on %s', url)
        return url

    def apply(self, effect: TransportEffect) -> None:
        """Carry out one effect without waiting; drop it when its connection is gone."""
        link = self._links.get(effect.conn)
        if link is None:
            return
        match effect:
            case SendFrame():
                link.send_frame(effect)
            case SendMessage():
                link.send_message(effect)
            case DropFrames():
                link.drop_frames(effect.channel_id)
            case CloseConnection():
                link.close(effect.code, effect.reason)
            case _:
                assert_never(effect)

    async def stop(self, timeout_s: float) -> None:
        """
        Stop listening and close every connection with 1001.

        :param timeout_s: after this time what is left is aborted.
        """
        if self._server is None:
            return
        self._is_stopping = True
        self._server.close(close_connections=False)
        for sock in self._sockets.copy():
            if sock.link is None:
                sock.abort()
        for link in list(self._links.values()):
            link.close(_GOING_AWAY, 'the bridge stops')
        try:
            async with asyncio.timeout(timeout_s):
                await self._wait_emptied()
        except TimeoutError:
            _log.warning('aborting %d connections that did not close in time', len(self._sockets))
        for sock in self._sockets.copy():
            sock.abort()
        try:
            async with asyncio.timeout(_LAST_CUT_S):
                await self._server.wait_closed()
        except TimeoutError:
            _log.error('the listener did not end within %g s of its last cut', _LAST_CUT_S)
        _log.info('stopped listening')

    def stats(self) -> list[LinkStats]:
        """Give the counters of every open connection, for diagnostics and measurements."""
        return [link.stats() for link in self._links.values()]

    # ------------------------------------------------------------ TCP connections

    def socket_opened(self, sock: Socket) -> None:
        """Note a new TCP connection, or cut it when too many wait for their handshake."""
        self._sockets.add(sock)
        self._emptied.clear()
        if len(self._sockets) - len(self._links) > self._limits.max_handshakes:
            sock.abort()

    def socket_lost(self, sock: Socket) -> None:
        """Note that a TCP connection is gone."""
        self._sockets.discard(sock)
        if not self._sockets:
            self._emptied.set()

    async def _wait_emptied(self) -> None:
        if self._sockets:
            await self._emptied.wait()

    # ------------------------------------------------------------ handshakes

    def _process_request(self, connection: ServerConnection, request: Request) -> Response | None:
        sock = cast(Socket, connection)
        address = _address(sock)
        decision = self._decide(request, address)
        if isinstance(decision, Admission):
            sock.admission = decision
            return None
        self._log_refusal(decision, address)
        response = connection.respond(decision.status, decision.text + '\n')
        for name, value in decision.headers:
            response.headers[name] = value
        return response

    def _decide(self, request: Request, address: str) -> Admission | Refusal:
        if self._is_stopping:
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, 'The bridge stops.')
        decision = self._door.check(request.path, request.headers, address)
        admitted = sum(sock.admission is not None for sock in self._sockets)
        if isinstance(decision, Admission) and admitted >= self._limits.max_connections:
            return Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f'All {self._limits.max_connections} connections are in use.',
                (('Retry-After', '1'),),
            )
        return decision

    def _log_refusal(self, refusal: Refusal, address: str) -> None:
        """Warn once a minute for each kind of refusal and address: a peer can cause many."""
        seen = self._refused.add((address, refusal.status), self._host.now_ns())
        _log.log(
            logging.WARNING if seen == 1 else logging.DEBUG,
            'handshake refused peer=%s status=%d: %s',
            address,
            refusal.status,
            refusal.text,
        )
        if seen == 1 and refusal.status in _RECORDED:
            self._host.post(HandshakeRefused(address, int(refusal.status), refusal.text))

    async def _serve(self, connection: ServerConnection) -> None:
        sock = cast(Socket, connection)
        admission = sock.admission
        if admission is None:
            raise RuntimeError('a connection was opened that no handshake admitted')
        if not self._door.still_admits(admission):
            await connection.close(_POLICY_VIOLATION, 'the credential was revoked')
            return
        link = self._link(sock, admission)
        sock.link = link
        self._links[link.number] = link
        _log.info('%s opened conn=%d peer=%s', link.kind, link.number, link.peer)
        try:
            await link.serve()
        finally:
            self._links.pop(link.number, None)

    def _link(self, sock: Socket, admission: Admission) -> Link:
        number = next(self._numbers)
        peer = _peer(sock)
        if admission.route is Route.STREAM:
            return StreamLink(number, peer, sock, self._host, self._limits, admission.token)
        return ControlLink(number, peer, sock, self._host, self._limits, admission.permissions)


def _select_subprotocol(
    connection: ServerConnection, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    """AWP-SEC-005: always ``awp``, so that no credential is ever echoed."""
    return Subprotocol(SUBPROTOCOL)


def _quiet_logger() -> logging.Logger:
    """
    Give the library a logger that says only what is our fault.

    Its debug lines hold request headers, and with them credentials; a broken handshake is the
    peer's doing and worth no traceback.
    """
    logger = logging.getLogger(f'{__name__}.websockets')
    logger.setLevel(logging.ERROR)
    logger.addFilter(_is_our_fault)
    return logger


def _is_our_fault(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith('opening handshake failed')


def _address(sock: Socket) -> str:
    remote = sock.remote_address
    return str(remote[0]) if remote else 'unknown'


def _peer(sock: Socket) -> str:
    remote = sock.remote_address
    if not remote:
        return 'unknown'
    address = f'[{remote[0]}]' if ':' in remote[0] else remote[0]
    return f'{address}:{remote[1]}'
