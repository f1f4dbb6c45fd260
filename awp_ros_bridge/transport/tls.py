"""
Owns the TLS settings of the listener, and what is wrong with the files behind them (AWP-SEC-001).

Certificate and key are tried before anything listens: a handshake with themselves in memory, with
the certificate as its own authority. It fails where the key is another's, where the certificate
is not valid now, and where it is not made for a server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import os
from pathlib import Path
import ssl
import stat
import time
from typing import Any

_MOST_BYTES = 1 << 20
_CERTIFICATE = '-----BEGIN CERTIFICATE-----'
_CERTIFICATE_END = '-----END CERTIFICATE-----'
_KEY_END = 'PRIVATE KEY-----'
_TURNS = 10  # a handshake takes two of them
_NOT_YET, _EXPIRED, _PURPOSE = 9, 10, 26  # X509_V_ERR_*
_DAY_S = 86_400.0
_SOON_S = 14 * _DAY_S


class TlsFault(ValueError):
    """
    A file that TLS cannot be served with.

    :ivar key: the setting that names it, below server.tls.
    """

    def __init__(self, key: str, what: str, todo: str) -> None:
        super().__init__(f'{key}: {what}; {todo}')
        self.key = key
        self.what = what
        self.todo = todo


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """
    The files of a listener.

    :param cert: certificate of the server, then those between it and its authority, PEM.
    :param key: private key of the first certificate, PEM, without a passphrase.
    :param client_ca: authorities of the certificates that clients must present; None asks none.
    """

    cert: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class TlsReady:
    """
    A context that works.

    :param warning: what will soon be wrong, empty where nothing will.
    """

    context: ssl.SSLContext
    warning: str = ''


def prepare(files: TlsFiles, now: Callable[[], float] = time.time) -> TlsReady:
    """
    Make the context of a listener.

    :param now: wall time in seconds.
    :raises TlsFault: one of the files is missing, another's, not valid now, or not what it should
        be
    """
    cert = _read('cert', files.cert)
    key = _read('key', files.key, is_secret=True)
    _check_form(cert, key)
    context = _context(files)
    ends_s = _try_out(context, cert)
    if files.client_ca is not None:
        _require_clients(context, files.client_ca, now())
    left_s = ends_s - now()
    warning = f'cert: expires in {left_s / _DAY_S:.1f} days' if left_s < _SOON_S else ''
    return TlsReady(context, warning)


def _read(key: str, path: Path, *, is_secret: bool = False) -> str:
    try:
        with path.open('rb') as stream:
            mode = os.fstat(stream.fileno()).st_mode
            data = stream.read(_MOST_BYTES)
    except OSError as error:
        what = f'{str(path)!r} cannot be read: {error.strerror}'
        raise TlsFault(key, what, 'check the path and who may read it') from None
    if is_secret and mode & (stat.S_IRWXO | stat.S_IWGRP | stat.S_IXGRP):
        what = f'{str(path)!r} is open to others (mode {stat.S_IMODE(mode):o})'
        raise TlsFault(key, what, f'chmod 600 {path}')
    return data.decode('ascii', 'replace')


def _check_form(cert: str, key: str) -> None:
    if _CERTIFICATE not in cert:
        raise TlsFault('cert', 'the file holds no certificate', 'give a PEM certificate')
    if _KEY_END not in key:
        raise TlsFault('key', 'the file holds no private key', 'give a PEM private key')
    if 'ENCRYPTED' in key:
        what = 'the private key is encrypted, and nobody is there to type a passphrase'
        raise TlsFault('key', what, 'give it without a passphrase, readable by the bridge only')


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    try:
        context.load_cert_chain(files.cert, files.key, password=lambda: '')
    except ssl.SSLError as error:
        if error.reason == 'KEY_VALUES_MISMATCH':
            what = 'this is not the key of the certificate'
            raise TlsFault('key', what, 'give the two that belong together') from None
        what = f'certificate and key cannot be used: {error.reason or error}'
        raise TlsFault('cert', what, 'give PEM files that openssl can read') from None
    return context


def _try_out(context: ssl.SSLContext, cert: str) -> float:
    """Return when the certificate ends, in seconds since 1970; refuse one of another time."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    begin = cert.index(_CERTIFICATE)
    end = cert.index(_CERTIFICATE_END, begin) + len(_CERTIFICATE_END)
    client.load_verify_locations(cadata=cert[begin:end])
    try:
        about = _handshake(context, client)
    except ssl.SSLCertVerificationError as error:
        raise _not_valid('cert', error) from None
    except ssl.SSLError as error:
        what = f'no handshake succeeds with it: {error.reason or error}'
        raise TlsFault('cert', what, 'make the certificate anew') from None
    return ssl.cert_time_to_seconds(str(about['notAfter']))


def _not_valid(key: str, error: ssl.SSLCertVerificationError) -> TlsFault:
    what, todo = {
        _EXPIRED: ('the certificate has expired', 'renew it, or set the clock of the machine'),
        _NOT_YET: ('the certificate is not valid yet', 'set the clock of the machine'),
        _PURPOSE: ('the certificate is not made for a server', 'make one for serverAuth'),
    }.get(
        error.verify_code,
        (f'the certificate cannot be used: {error.verify_message}', 'make it anew'),
    )
    return TlsFault(key, what, todo)


def _handshake(server_context: ssl.SSLContext, client_context: ssl.SSLContext) -> dict[str, Any]:
    """Let both ends shake hands in memory; return what the client learned of the certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_TURNS):
        is_done = True
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                is_done = False
        if is_done:
            break
    else:
        raise ssl.SSLError('the handshake does not end')
    return client.getpeercert() or {}


def _require_clients(context: ssl.SSLContext, path: Path, now_s: float) -> None:
    """Let in only who presents a certificate of one of these authorities."""
    if _CERTIFICATE not in _read('client_ca', path):
        what = 'the file holds no certificate'
        raise TlsFault('client_ca', what, 'give the PEM certificates of the authorities')
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        what = f'the file cannot be used: {error.reason or error}'
        raise TlsFault('client_ca', what, 'give PEM files that openssl can read') from None
    authorities = context.get_ca_certs()
    if not authorities:
        what = 'the file holds no certificate of an authority (CA:TRUE)'
        raise TlsFault('client_ca', what, 'give the certificate that signs those of the clients')
    if all(ssl.cert_time_to_seconds(str(a['notAfter'])) < now_s for a in authorities):
        raise TlsFault('client_ca', 'every authority in it has expired', 'renew them')
    context.verify_mode = ssl.CERT_REQUIRED
