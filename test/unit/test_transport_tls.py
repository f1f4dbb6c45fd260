"""TLS of the listener: which files it refuses before it listens, and what it then serves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
import json
from pathlib import Path
import ssl
import time

from certificates import Authority
import pytest
from transport_rig import (
    agent,
    frame,
    message,
    received,
    RecordingHost,
    serving,
    SESSION_TOKEN,
    stats_of,
    stream,
    TOKEN,
)
from websockets.exceptions import InvalidMessage, InvalidStatus

from awp_ros_bridge.engine.inputs import ConnectionOpened, StreamOpened, TextReceived
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.transport.tls import prepare, TlsFault, TlsFiles

DAY_S = 86_400.0
CLIENT = 'extendedKeyUsage=clientAuth'


@pytest.fixture(scope='module')
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('tls')


@pytest.fixture(scope='module')
def authority(home: Path) -> Authority:
    return Authority(home, 'authority')


@pytest.fixture(scope='module')
def files(authority: Authority) -> TlsFiles:
    return TlsFiles(*authority.sign('server'))


@pytest.fixture
def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.cert))


def fault_of(files: TlsFiles) -> TlsFault:
    """Return why files cannot be served with."""
    with pytest.raises(TlsFault) as caught:
        prepare(files)
    return caught.value


def test_f106_each_file_that_is_wrong_is_named_with_what_is_wrong(
    home: Path, authority: Authority, files: TlsFiles
) -> None:
    other_cert, other_key = authority.sign('other')
    expired = TlsFiles(*authority.sign('expired', days=-1))
    client = TlsFiles(*authority.sign('client', extension=CLIENT))
    empty = home / 'empty.pem'
    empty.write_text('')
    broken = home / 'broken.pem'
    broken.write_text('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
    open_key = home / 'open.key'
    open_key.write_bytes(files.key.read_bytes())
    open_key.chmod(0o644)
    locked = home / 'locked.key'
    locked.write_text('-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n')
    locked.chmod(0o600)
    cases = [
        (replace(files, cert=home / 'nowhere.pem'), 'cert', 'No such file'),
        (replace(files, key=home / 'nowhere.key'), 'key', 'No such file'),
        (replace(files, cert=home), 'cert', 'directory'),
        (replace(files, cert=empty), 'cert', 'no certificate'),
        (replace(files, cert=broken), 'cert', 'cannot be used'),
        (replace(files, key=files.cert), 'key', 'open to others'),
        (replace(files, key=other_key), 'key', 'not the key of the certificate'),
        (replace(files, cert=other_cert), 'key', 'not the key of the certificate'),
        (replace(files, key=open_key), 'key', 'mode 644'),
        (replace(files, key=locked), 'key', 'encrypted'),
        (expired, 'cert', 'has expired'),
        (client, 'cert', 'not made for a server'),
        (replace(files, client_ca=home / 'nowhere.pem'), 'client_ca', 'No such file'),
        (replace(files, client_ca=empty), 'client_ca', 'no certificate'),
        (replace(files, client_ca=broken), 'client_ca', 'cannot be used'),
        (replace(files, client_ca=client.cert), 'client_ca', 'no certificate of an authority'),
    ]
    for wrong, key, what in cases:
        fault = fault_of(wrong)
        assert fault.key == key, (wrong, fault)
        assert what in fault.what, (wrong, fault)
        assert fault.todo


def test_what_will_expire_soon_is_said(files: TlsFiles) -> None:
    assert prepare(files).warning == ''
    ready = prepare(files, now=lambda: time.time() + 20 * DAY_S)
    assert ready.warning == 'cert: expires in 10.0 days'


def test_control_and_stream_are_served_over_tls(files: TlsFiles, trusting: ssl.SSLContext) -> None:
    async def run() -> None:
        ready = prepare(files)
        async with serving(tls=ready.context, host_names=['localhost']) as (host, transport, url):
            assert url.startswith('wss://localhost:')
            async with agent(url, ssl=trusting) as client:
                opened = await host.first(ConnectionOpened)
                await client.send('{"jsonrpc":"2.0"}')
                assert (await host.first(TextReceived)).conn == opened.conn
                transport.apply(message(opened.conn, 'hello'))
                assert 'hello' in str(await received(client))
                assert client.transport.get_extra_info('ssl_object').version() >= 'TLSv1.2'
                async with stream(url, ssl=trusting):
                    assert (await host.first(StreamOpened)).session_token == SESSION_TOKEN
            with pytest.raises(InvalidStatus):
                async with agent(url, token=None, ssl=trusting):
                    pass

    asyncio.run(run())


def test_f106_plaintext_gets_nothing_from_a_tls_port_and_sends_it_no_token(
    files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> RecordingHost:
        limits = Limits(open_timeout_s=2.0)
        async with serving(limits, tls=prepare(files).context) as (host, _, url):
            with pytest.raises((InvalidMessage, OSError, EOFError)):
                async with agent(url.replace('wss://', 'ws://')):
                    pass
            # who trusts another authority leaves before it says anything
            with pytest.raises(ssl.SSLCertVerificationError):
                async with agent(url, ssl=ssl.create_default_context()):
                    pass
        return host

    host = asyncio.run(run())
    assert host.inputs == []
    ours = [r for r in caplog.records if r.name.startswith('awp_ros_bridge')]
    assert not [r for r in ours if r.levelno >= 40 or TOKEN in r.getMessage()]


def test_mutual_tls_lets_in_who_has_a_certificate_and_a_token(
    home: Path, authority: Authority, files: TlsFiles, trusting: ssl.SSLContext
) -> None:
    clients = Authority(home, 'clients')
    strangers = Authority(home, 'strangers')
    known = clients.sign('agent', extension=CLIENT)
    stranger = strangers.sign('agent', extension=CLIENT)
    old = clients.sign('old', extension=CLIENT, days=-1)

    def context(pair: tuple[Path, Path] | None) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(authority.cert))
        if pair is not None:
            made.load_cert_chain(*pair)
        return made

    async def run() -> None:
        ready = prepare(replace(files, client_ca=clients.cert))
        async with serving(tls=ready.context, host_names=['localhost']) as (host, _, url):
            for pair in (None, stranger, old):
                with pytest.raises((OSError, EOFError, InvalidMessage)):
                    async with agent(url, ssl=context(pair)):
                        pass
            with pytest.raises(InvalidStatus):  # a certificate alone is not enough
                async with agent(url, token=None, ssl=context(known)):
                    pass
            assert not host.of(ConnectionOpened)
            async with agent(url, ssl=context(known)):
                await host.first(ConnectionOpened)

    asyncio.run(run())


def test_with_tls_an_address_beyond_loopback_is_served(files: TlsFiles) -> None:
    async def run() -> None:
        options = {'tls': prepare(files).context, 'host_names': ['robot.example']}
        async with serving(address='0.0.0.0', **options) as (_, _, url):
            assert url.startswith('wss://robot.example:')

    asyncio.run(run())


def test_half_open_tls_handshakes_are_cut_in_time(
    files: TlsFiles, trusting: ssl.SSLContext
) -> None:
    async def run() -> None:
        limits = Limits(open_timeout_s=1.0)
        options = {'tls': prepare(files).context, 'host_names': ['localhost']}
        async with serving(limits, **options) as (host, _, url):
            port = int(url.rpartition(':')[2])
            crowd = [await asyncio.open_connection('127.0.0.1', port) for _ in range(20)]
            for _, writer in crowd[:10]:
                writer.write(b'\x16\x03\x01\x02\x00\x01')  # the beginning of a client hello
            async with agent(url, ssl=trusting):
                await host.first(ConnectionOpened)
            for reader, writer in crowd:
                async with asyncio.timeout(5.0):
                    assert await reader.read() == b''
                writer.close()

    asyncio.run(run())


def test_a_tls_receiver_that_stalls_holds_up_nothing_and_gets_the_newest(
    files: TlsFiles, trusting: ssl.SSLContext
) -> None:
    async def run() -> None:
        options = {'tls': prepare(files).context, 'host_names': ['localhost']}
        async with (
            serving(**options) as (host, transport, url),
            agent(url, ssl=trusting, max_queue=1) as client,
        ):
            conn = (await host.first(ConnectionOpened)).conn
            client.transport.pause_reading()
            sent = 0
            while stats_of(transport, conn).outbox.frames.get(1) is None:
                sent += 1
                transport.apply(frame(conn, sent, inline=True, payload=b'x' * 60_000))
                await asyncio.sleep(0)
                assert sent < 500, 'the socket takes everything'
            for _ in range(50):
                sent += 1
                transport.apply(frame(conn, sent, inline=True, payload=b'x' * 60_000))
            assert stats_of(transport, conn).outbox.frames[1] == 1  # the newest only
            transport.apply(message(conn, 'first'))
            client.transport.resume_reading()
            seen = []
            while not seen or seen[-1] != sent:
                body = json.loads(await received(client))
                seen.append(body['params']['seq'] if 'params' in body else 'first')
            assert seen[-2] == 'first'
            assert len(seen) < sent

    asyncio.run(run())
