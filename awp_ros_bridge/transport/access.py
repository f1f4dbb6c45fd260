"""
Owns who may open a connection: credential, path, host, origin (AWP-SEC-002, SEC-004 to 006).

Nothing here logs, and no text it returns repeats what the peer sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from ipaddress import ip_address
import re
from typing import Protocol

from awp_ros_bridge.engine.permissions import NOTHING, Permissions
from awp_ros_bridge.transport.credentials import TokenGate
from awp_ros_bridge.transport.limits import MinuteCounter
from awp_ros_bridge.transport.port import Host

SUBPROTOCOL = 'awp'
_BEARER_PREFIX = 'awp.bearer.'
# The token of RFC 7230, to which RFC 6455 restricts subprotocols (AWP-SEC-005).
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HOST = re.compile(r'(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]*)?')


class Route(StrEnum):
    """The paths of the server, and what a connection on each of them is."""

    CONTROL = '/'
    STREAM = '/stream'


@dataclass(frozen=True, slots=True)
class Refusal:
    """
    Why a handshake ends without a connection.

    :param text: body of the answer, one sentence for the person at the other end.
    """

    status: HTTPStatus
    text: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """
    A handshake that may go on.

    :param token: the session token that opens a stream, never to be shown; empty elsewhere.
    :param permissions: what the credential of a control connection allows.
    """

    route: Route
    token: str = field(repr=False, default='')
    permissions: Permissions = NOTHING


class HeaderView(Protocol):
    """The one thing asked of request headers."""

    def get_all(self, key: str, /) -> list[str]:
        """Return all values of a header, whatever its case; an empty list if there is none."""
        ...


class Door:
    """
    The ordered checks of a handshake.

    Everything but the credential is checked first, so that a page in a browser neither counts as
    a failed login nor learns whether a token is right. A right token always passes: the limit on
    failed logins changes the answer to wrong ones only, because one misconfigured client behind
    the same address must not lock out the agent that drives the robot. Guessing is kept out of
    reach by the length of the tokens.

    :param gate: credentials of control connections.
    :param host: answers for stream tokens, readiness and time.
    :param origins: values of ``Origin`` that are welcome, compared exactly; none by default, which
        refuses every browser.
    :param host_names: names by which the server is reached, beside ``localhost`` and loopback
        addresses. Without this check a page could reach the server through a name of its own that
        resolves to loopback.
    :param failed_logins_per_minute: wrong credentials from one address that are answered 401.
    """

    def __init__(
        self,
        gate: TokenGate,
        host: Host,
        *,
        origins: Iterable[str] = (),
        host_names: Iterable[str] = (),
        failed_logins_per_minute: int = 10,
    ) -> None:
        self._gate = gate
        self._host = host
        self._origins = frozenset(origins)
        self._host_names = frozenset(name.lower() for name in host_names)
        self._failed_limit = failed_logins_per_minute
        self._failed = MinuteCounter()

    def check(self, target: str, headers: HeaderView, address: str) -> Admission | Refusal:
        """
        Decide on one handshake.

        :param target: path and query of the request.
        :param address: address of the peer without its port, for the count of failed logins.
        """
        route = _route(target)
        if isinstance(route, Refusal):
            return route
        refusal = self._check_source(headers)
        if refusal is not None:
            return refusal
        if not self._host.accepting():
            return Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                'The bridge is not active; try again later.',
                (('Retry-After', '1'),),
            )
        if route is Route.CONTROL and not self._gate.is_usable:
            return Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                'Credentials cannot be checked now; the log of the bridge says why.',
                (('Retry-After', '1'),),
            )
        offered = _offered_subprotocols(headers)
        if SUBPROTOCOL not in offered:  # AWP-TRN-001, TRN-013
            return Refusal(
                HTTPStatus.BAD_REQUEST,
                "This is an Agent World Protocol endpoint: offer the WebSocket subprotocol 'awp'.",
            )
        presented = _presented_tokens(headers, offered)
        if len(presented) == 1:
            (token,) = presented
            admission = self._admission(route, token)
            if admission is not None:
                return admission
        return self._unauthorized(route, len(presented), address)

    def _check_source(self, headers: HeaderView) -> Refusal | None:
        names = headers.get_all('Host')
        if len(names) != 1:
            return Refusal(HTTPStatus.BAD_REQUEST, 'Send exactly one Host header.')
        if not self._is_own_name(names[0]):
            return Refusal(
                HTTPStatus.FORBIDDEN,
                'This Host is not served: use a loopback address or a configured host name.',
            )
        if any(origin not in self._origins for origin in headers.get_all('Origin')):
            return Refusal(HTTPStatus.FORBIDDEN, 'This Origin is not on the list of allowed ones.')
        return None

    def _is_own_name(self, value: str) -> bool:
        match = _HOST.fullmatch(value.strip())
        if match is None:
            return False
        name = (match['v6'] or match['name']).lower()
        return name in self._host_names or is_loopback(name)

    def _admission(self, route: Route, token: str) -> Admission | None:
        if route is Route.STREAM:  # AWP-SEC-004: the session token, no other
            return Admission(route, token) if self._host.stream_allowed(token) else None
        permissions = self._gate.find(token)
        return None if permissions is None else Admission(route, permissions=permissions)

    def still_admits(self, admission: Admission) -> bool:
        """Tell whether a credential still counts after the handshake; the engine knows streams."""
        is_stream = admission.route is Route.STREAM
        return is_stream or self._gate.still_gives(admission.permissions)

    def _unauthorized(self, route: Route, presented: int, address: str) -> Refusal:
        if self._failed.add(address, self._host.now_ns()) > self._failed_limit:
            return Refusal(
                HTTPStatus.TOO_MANY_REQUESTS,
                'Too many failed logins from this address.',
                (('Retry-After', '60'),),
            )
        wanted = 'session token' if route is Route.STREAM else 'token'
        match presented:
            case 0:
                text = (
                    f"A {wanted} is needed: send 'Authorization: Bearer <token>', or offer the"
                    " subprotocol 'awp.bearer.<token>' beside 'awp'."
                )
            case 1:
                text = f'This is not a valid {wanted} here.'
            case _:
                text = 'Present one credential, not several.'
        return Refusal(HTTPStatus.UNAUTHORIZED, text, (('WWW-Authenticate', 'Bearer'),))


def is_loopback(name: str) -> bool:
    """Say whether a host name or address stands for this machine and nothing else."""
    if name.lower() == 'localhost':
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _route(target: str) -> Route | Refusal:
    if '?' in target:  # AWP-SEC-006
        return Refusal(
            HTTPStatus.BAD_REQUEST,
            'A URL with a query is refused: credentials do not belong in URLs.',
        )
    try:
        return Route(target)
    except ValueError:
        return Refusal(
            HTTPStatus.NOT_FOUND,
            "Nothing is here: control connections use '/', streams '/stream'.",
        )


def _offered_subprotocols(headers: HeaderView) -> list[str]:
    """Split the offer; a malformed one counts as none, so that no library quotes it."""
    values = headers.get_all('Sec-WebSocket-Protocol')
    offered = [part.strip(' \t') for value in values for part in value.split(',')]
    if any(_TOKEN.fullmatch(name) is None for name in offered):
        return []
    return offered


def _presented_tokens(headers: HeaderView, offered: list[str]) -> set[str]:
    """Collect the distinct credentials of a request (AWP-SEC-005)."""
    bearers = [name for name in offered if name.startswith(_BEARER_PREFIX)]
    tokens = {name.removeprefix(_BEARER_PREFIX) for name in bearers}
    for value in headers.get_all('Authorization'):
        scheme, _, token = value.strip().partition(' ')
        tokens.add(token.strip() if scheme.lower() == 'bearer' else '')
    return tokens
