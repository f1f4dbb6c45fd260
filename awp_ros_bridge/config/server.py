"""Owns the settings of the session endpoint: address, credentials, limits, sessions."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from awp_ros_bridge.config.base import Items, refuse, StrictModel, Text, Word

DEFAULT_TOKEN_ENV = 'AWP_BRIDGE_TOKEN'
_URL = re.compile(r'^wss?://[^/?#\s]+(/[^?#\s]*)?$')
_ENV_NAME = re.compile(r'^[A-Za-z_][A-Za-z0-9_]*$')
_ORIGIN = re.compile(r'^https?://[^/?#\s@]+$')
_HOST_NAME = re.compile(r'^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+)$')


def _url(text: str) -> str:
    if not _URL.match(text):
        raise refuse(
            f'{text!r} is not a WebSocket address', 'write ws://host:port or wss://host, no query'
        )
    return text


def _env_name(text: str) -> str:
    if not _ENV_NAME.match(text):
        raise refuse(f'{text!r} is not the name of an environment variable', 'use A-Z, 0-9 and _')
    return text


def _origin(text: str) -> str:
    if not _ORIGIN.match(text) or text != text.lower():
        raise refuse(
            f'{text!r} is not an origin as browsers send it',
            'write https://host or https://host:port in small letters, no path and no *',
        )
    return text


def _host_name(text: str) -> str:
    if not _HOST_NAME.match(text):
        raise refuse(
            f'{text!r} is not the name of a host',
            'write the name or address alone, without scheme, port, brackets or *',
        )
    return text


Origin = Annotated[str, AfterValidator(_origin), Word('origin')]
HostName = Annotated[str, AfterValidator(_host_name), Word('host name')]
Url = Annotated[str, AfterValidator(_url), Word('WebSocket address')]
EnvName = Annotated[str, AfterValidator(_env_name), Word('name of a variable')]


class TlsConfig(StrictModel):
    """How to serve ``wss://``. All files are PEM; each is tried before anything listens."""

    cert: Text
    """Certificate of the server, followed by those between it and its authority."""
    key: Text
    """Its private key, without a passphrase, not readable by others (chmod 600)."""
    client_ca: Text | None = None
    """Authorities of client certificates. Present: a client must present one (mutual TLS) as well
    as its token."""


class ServerConfig(StrictModel):
    """Where agents connect, with which token, and how much of the machine they may take."""

    host: Text = '127.0.0.1'
    """Address to listen on. Beyond loopback needs tls."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8710
    """TCP port to listen on; 0 takes a free one and says which."""
    tokens_file: Text | None = None
    """File of tokens, made by `awp token make` and followed while the bridge runs."""
    token_env: Annotated[str, AfterValidator(_env_name), Word('name of a variable')] = (
        DEFAULT_TOKEN_ENV
    )
    """Environment variable with one token for everything, used when there is no tokens_file."""
    tls: TlsConfig | None = None
    """Certificate and key; absent: plaintext, on loopback only."""
    host_names: Items[HostName] = ()
    """Names by which agents call the bridge, compared with Host. Always known: loopback names,
    the address in host, the name in public_url. With tls the first stands in stream endpoints."""
    origins: Items[Origin] = ()
    """Values of Origin that are welcome, such as https://console.example; none: no browser."""
    public_url: Url | None = None
    """Address of the bridge behind a proxy; the stream endpoints that agents get start with it."""
    max_connections: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Most connections at once, control and stream together; one more is answered 503."""
    max_message_bytes: Annotated[int, Field(ge=1024, le=67_108_864)] = 1_048_576
    """Longest message an agent may send, in bytes; a longer one closes its connection (1009)."""
    max_message_rate_hz: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Messages per second from one connection above which reading pauses; 4 KiB count as one."""
    max_failed_logins_per_minute: Annotated[int, Field(ge=1, le=1000)] = 10
    """Wrong tokens from one address that are answered 401; more are answered 429."""
    idle_timeout_s: Annotated[float, Field(ge=15, le=3600)] = 30.0
    """A connection without a session is closed after this silence; sessions have heartbeats."""
    max_frame_bytes: Annotated[int, Field(ge=1024, le=268_435_456)] = 16_777_216
    """Largest frame payload in either direction, in bytes; a larger observation is not sent."""


class SessionConfig(StrictModel):
    """How long a silent or absent agent keeps its session."""

    heartbeat_interval_ms: Annotated[int, Field(ge=100, le=60_000)] = 5000
    """Longest pause between pings; after three a connection counts as lost (AWP-SAF-001)."""
    reconnect_window_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 30_000
    """How long a session can be resumed after its connection is lost (AWP-SAF-007)."""
    grant_ttl_s: Annotated[float, Field(gt=0, le=31_536_000)] | None = None
    """Life of a session's grants; afterwards submissions are forbidden. Absent: no expiry."""
    max_sessions: Annotated[int, Field(ge=1, le=4096)] = 64
    """Most sessions that exist at once, suspended ones and observers included."""
    status_query: bool = True
    """Answer session/status, which asks whether a session is here; false: an unknown method."""
