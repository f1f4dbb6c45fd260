"""Any handshake: nobody gets in without the one right credential, and nothing is a traceback."""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus
import logging

from hypothesis import given
from hypothesis import strategies as st
import pytest
from transport_rig import (
    agent,
    EVERYTHING,
    gate,
    RawClient,
    RecordingHost,
    serving,
    SESSION_TOKEN,
    TOKEN,
)

from awp_ros_bridge.engine.inputs import ConnectionOpened, HandshakeRefused
from awp_ros_bridge.transport.access import Admission, Door, Route
from awp_ros_bridge.transport.limits import Limits

WORDS = st.sampled_from(
    [
        'awp',
        f'awp.bearer.{TOKEN}',
        f'awp.bearer.{SESSION_TOKEN}',
        'awp.bearer.',
        f'Bearer {TOKEN}',
        f'bearer {SESSION_TOKEN}',
        f'Basic {TOKEN}',
        TOKEN,
        '127.0.0.1',
        'localhost:8710',
        'evil.example',
        'null',
        ',',
        '',
    ]
)
TEXTS = st.one_of(WORDS, st.text(max_size=20), st.lists(WORDS, max_size=3).map(', '.join))
NAMES = st.sampled_from(['Host', 'Origin', 'Authorization', 'Sec-WebSocket-Protocol', 'X-Other'])
HEADERS = st.lists(st.tuples(NAMES, TEXTS), max_size=6)
TARGETS = st.one_of(
    st.sampled_from(['/', '/stream', '/?', f'/?token={TOKEN}', '', '//', f'/{TOKEN}']),
    st.text(max_size=10),
)


class View:
    """Headers with any value, also such that no library hands over."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        self._rows = rows

    def get_all(self, key: str) -> list[str]:
        return [value for name, value in self._rows if name == key]


@given(TARGETS, HEADERS, st.booleans())
def test_a_door_opens_to_one_right_credential_only(
    target: str, rows: list[tuple[str, str]], usable: bool
) -> None:
    known = gate(TOKEN)
    known.is_usable = usable
    headers = View(rows)
    decision = Door(known, RecordingHost()).check(target, headers, 'a')
    if isinstance(decision, Admission):
        right = SESSION_TOKEN if decision.route is Route.STREAM else TOKEN
        said = [v.strip() for v in headers.get_all('Authorization')]
        offered = ','.join(headers.get_all('Sec-WebSocket-Protocol'))
        words = [word.strip() for word in offered.split(',')]
        assert target == decision.route.value
        assert usable or decision.route is Route.STREAM
        assert any(v.lower().startswith('bearer') and v.endswith(right) for v in said) or (
            f'awp.bearer.{right}' in words
        )
        assert not headers.get_all('Origin')
        assert len(headers.get_all('Host')) == 1
        assert 'evil' not in headers.get_all('Host')[0]
        if decision.route is Route.CONTROL:
            assert decision.permissions == EVERYTHING
    else:
        assert decision.status >= HTTPStatus.BAD_REQUEST
        assert TOKEN not in decision.text
        assert SESSION_TOKEN not in decision.text


LINES = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.sampled_from(
            [
                b'GET / HTTP/1.1',
                b'GET /stream HTTP/1.1',
                b'Host: 127.0.0.1',
                b'Upgrade: websocket',
                b'Connection: Upgrade',
                b'Sec-WebSocket-Version: 13',
                b'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
                b'Sec-WebSocket-Protocol: awp',
                b'Authorization: Bearer wrong',
                b'',
            ]
        ),
    ),
    max_size=12,
)


def test_no_bytes_in_place_of_a_handshake_open_anything_or_leave_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def one(url: str, data: bytes) -> None:
        raw = RawClient.unopened()
        await raw.connect_only(url)
        with contextlib.suppress(ConnectionError):  # refused before all of it was sent
            await raw.send_bytes(data)
        raw.close()

    async def run(many: list[bytes]) -> None:
        async with serving(Limits(open_timeout_s=1.0)) as (host, transport, url):
            for data in many:
                await one(url, data)
            assert transport.stats() == []
            async with agent(url):
                await host.first(ConnectionOpened)
            others = [i for i in host.inputs if not isinstance(i, HandshakeRefused)]
            assert isinstance(others[0], ConnectionOpened)
            assert len(host.of(ConnectionOpened)) == 1

    many: list[bytes] = []

    @given(LINES, st.binary(max_size=100))
    def collect(lines: list[bytes], rest: bytes) -> None:
        many.append(b'\r\n'.join(lines) + b'\r\n\r\n' + rest)

    collect()
    asyncio.run(run(many))
    assert len(many) > 20
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
