"""Who may open a connection: the ordered checks of a handshake, without sockets."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from transport_rig import EVERYTHING, gate, RecordingHost, SESSION_TOKEN, TOKEN
from websockets.datastructures import Headers

from awp_ros_bridge.transport.access import Admission, Door, is_loopback, Refusal, Route

OK = HTTPStatus.SWITCHING_PROTOCOLS
BEARER = f'Bearer {TOKEN}'


def request(*extra: tuple[str, str], omit: tuple[str, ...] = ()) -> Headers:
    """Build the headers of a good request, less some, plus others."""
    base = [
        ('Host', '127.0.0.1:8710'),
        ('Sec-WebSocket-Protocol', 'awp'),
        ('Authorization', BEARER),
    ]
    return Headers([item for item in base if item[0] not in omit] + list(extra))


def door(host: RecordingHost | None = None, **options: Any) -> Door:
    """Build a door with one known token."""
    return Door(gate(TOKEN), host or RecordingHost(), **options)


def status(decision: Admission | Refusal) -> HTTPStatus:
    """Return the status that the answer will have."""
    return decision.status if isinstance(decision, Refusal) else OK


NO_AUTH = ('Authorization',)
NO_OFFER = ('Authorization', 'Sec-WebSocket-Protocol')


@pytest.mark.parametrize(
    ('target', 'headers', 'expected'),
    [
        ('/', request(), OK),
        ('/', request(('Authorization', f'bearer {TOKEN}'), omit=NO_AUTH), OK),
        ('/', request(('Authorization', f'Bearer   {TOKEN} '), omit=NO_AUTH), OK),
        ('/', request(('Sec-WebSocket-Protocol', f'awp, awp.bearer.{TOKEN}'), omit=NO_OFFER), OK),
        ('/', request(('Sec-WebSocket-Protocol', f'awp.bearer.{TOKEN},awp'), omit=NO_OFFER), OK),
        ('/', request(('Sec-WebSocket-Protocol', f'awp.bearer.{TOKEN}'), omit=NO_AUTH), OK),
        # the same credential twice is one credential
        ('/', request(('Sec-WebSocket-Protocol', f'awp.bearer.{TOKEN}')), OK),
        ('/', request(('Sec-WebSocket-Protocol', 'awp.bearer.another-token-0123')), 401),
        ('/', request(('Authorization', 'Bearer another-token-0123')), 401),
        ('/', request(omit=NO_AUTH), 401),
        ('/', request(('Authorization', 'Bearer'), omit=NO_AUTH), 401),
        ('/', request(('Authorization', 'Bearer '), omit=NO_AUTH), 401),
        ('/', request(('Authorization', f'Basic {TOKEN}'), omit=NO_AUTH), 401),
        ('/', request(('Authorization', TOKEN), omit=NO_AUTH), 401),
        ('/', request(('Authorization', f'{BEARER}x'), omit=NO_AUTH), 401),
        ('/', request(('Authorization', f'Bearer {TOKEN[:-1]}'), omit=NO_AUTH), 401),
        ('/', request(('Authorization', f'Bearer {TOKEN} {TOKEN}'), omit=NO_AUTH), 401),
        ('/', request(('Authorization', f'Bearer {SESSION_TOKEN}'), omit=NO_AUTH), 401),
        # AWP-SEC-004: only the session token opens a stream
        ('/stream', request(('Authorization', f'Bearer {SESSION_TOKEN}'), omit=NO_AUTH), OK),
        ('/stream', request(), 401),
        ('/stream', request(omit=NO_AUTH), 401),
        # AWP-SEC-006
        (f'/?token={TOKEN}', request(), 400),
        ('/?', request(), 400),
        (f'/stream?access_token={SESSION_TOKEN}', request(), 400),
        ('/nothing?x=1', request(), 400),
        ('/nothing', request(), 404),
        ('/stream/', request(), 404),
        ('//', request(), 404),
        ('', request(), 404),
        (f'/{TOKEN}', request(), 404),
        ('http://127.0.0.1/', request(), 404),
        # the subprotocol
        ('/', request(omit=('Sec-WebSocket-Protocol',)), 400),
        ('/', request(('Sec-WebSocket-Protocol', 'mqtt'), omit=('Sec-WebSocket-Protocol',)), 400),
        ('/', request(('Sec-WebSocket-Protocol', f'awp.bearer.{TOKEN} x')), 400),
        ('/', request(('Sec-WebSocket-Protocol', ',')), 400),
        # names that lead here
        ('/', request(('Host', 'localhost'), omit=('Host',)), OK),
        ('/', request(('Host', 'LocalHost:1'), omit=('Host',)), OK),
        ('/', request(('Host', '127.8.9.1:8710'), omit=('Host',)), OK),
        ('/', request(('Host', '[::1]:8710'), omit=('Host',)), OK),
        ('/', request(('Host', 'evil.example:8710'), omit=('Host',)), 403),
        ('/', request(('Host', 'localhost.evil.example'), omit=('Host',)), 403),
        ('/', request(('Host', 'evil.example@localhost'), omit=('Host',)), 403),
        ('/', request(('Host', '127.0.0.1.evil.example'), omit=('Host',)), 403),
        ('/', request(('Host', '0.0.0.0:8710'), omit=('Host',)), 403),
        ('/', request(('Host', '192.168.1.5'), omit=('Host',)), 403),
        ('/', request(('Host', '[::1'), omit=('Host',)), 403),
        ('/', request(('Host', ''), omit=('Host',)), 403),
        ('/', request(omit=('Host',)), 400),
        ('/', request(('Host', '127.0.0.1')), 400),
        # browsers
        ('/', request(('Origin', 'http://127.0.0.1:8710')), 403),
        ('/', request(('Origin', 'null')), 403),
        ('/', request(('Origin', '')), 403),
    ],
)
def test_the_matrix_of_handshakes(target: str, headers: Headers, expected: int) -> None:
    decision = door().check(target, headers, '127.0.0.1')
    assert status(decision) == expected
    assert TOKEN not in repr(decision)
    assert SESSION_TOKEN not in repr(decision)


def test_an_admission_knows_its_route_and_credential() -> None:
    assert door().check('/', request(), 'a') == Admission(
        Route.CONTROL, permissions=EVERYTHING
    )
    headers = request(('Authorization', f'Bearer {SESSION_TOKEN}'), omit=NO_AUTH)
    assert door().check('/stream', headers, 'a') == Admission(Route.STREAM, SESSION_TOKEN)


def test_a_missing_credential_is_asked_for() -> None:
    decision = door().check('/', request(omit=NO_AUTH), 'a')
    assert isinstance(decision, Refusal)
    assert dict(decision.headers)['WWW-Authenticate'] == 'Bearer'
    assert 'Authorization: Bearer <token>' in decision.text


def test_origins_are_compared_exactly() -> None:
    guarded = door(origins=['https://app.example'])
    for origin, expected in (
        ('https://app.example', OK),
        ('https://app.example:443', 403),
        ('https://app.example.evil', 403),
        ('http://app.example', 403),
    ):
        assert status(guarded.check('/', request(('Origin', origin)), 'a')) == expected
    both = request(('Origin', 'https://app.example'), ('Origin', 'https://evil.example'))
    assert status(guarded.check('/', both, 'a')) == 403
    assert status(guarded.check('/', request(), 'a')) == OK


def test_a_configured_host_name_is_served() -> None:
    guarded = door(host_names=['Robot.example'])
    headers = request(('Host', 'robot.EXAMPLE:443'), omit=('Host',))
    assert status(guarded.check('/', headers, 'a')) == OK


def test_an_inactive_bridge_answers_503_before_it_looks_at_credentials() -> None:
    host = RecordingHost()
    host.is_accepting = False
    guarded = door(host)
    assert status(guarded.check('/', request(), 'a')) == 503
    assert status(guarded.check('/', request(omit=NO_AUTH), 'a')) == 503
    assert status(guarded.check('/nothing', request(), 'a')) == 404


def test_failed_logins_are_limited_by_address_and_never_lock_out_a_right_token() -> None:
    host = RecordingHost()
    guarded = door(host, failed_logins_per_minute=3)
    wrong = request(('Authorization', 'Bearer not-the-right-token'), omit=NO_AUTH)
    assert [status(guarded.check('/', wrong, 'a')) for _ in range(5)] == [401] * 3 + [429] * 2
    assert status(guarded.check('/stream', wrong, 'a')) == 429
    assert status(guarded.check('/', wrong, 'b')) == 401
    assert status(guarded.check('/', request(), 'a')) == OK
    host.offset_ns = 61_000_000_000
    assert status(guarded.check('/', wrong, 'a')) == 401


def test_a_browser_page_does_not_count_as_a_failed_login() -> None:
    guarded = door(failed_logins_per_minute=1)
    page = request(('Origin', 'https://evil.example'), omit=NO_AUTH)
    for _ in range(10):
        assert status(guarded.check('/', page, 'a')) == 403
    assert status(guarded.check('/', request(omit=NO_AUTH), 'a')) == 401


def test_loopback_is_told_from_everything_else() -> None:
    assert all(is_loopback(name) for name in ('localhost', '127.0.0.1', '127.1.2.3', '::1'))
    assert not any(is_loopback(name) for name in ('0.0.0.0', '::', '10.0.0.1', 'robot', ''))
