"""Owns what the bridge's loop says of itself for ROS: server, audit log, sessions; no secret."""

from __future__ import annotations

from collections import Counter

from awp_ros_bridge.audit import AuditLog
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.kernel import Kernel
from awp_ros_bridge.engine.session_view import channel_views, session_views
from awp_ros_bridge.ros.diagnosis import Diagnosis, Level, ProcessReport, unproven
from awp_ros_bridge.transport.control import ControlLink
from awp_ros_bridge.transport.server import WebSocketTransport
from awp_ros_bridge.transport.stream import StreamLink

_MB = 1_000_000


def make_report(
    engine: Engine,
    transport: WebSocketTransport,
    audit: AuditLog,
    url: str | None,
    has_tokens: bool,
    now_ns: int,
) -> ProcessReport:
    """
    Report on the bridge's own side; on the thread of its loop.

    :param url: where it serves, None before it listens.
    :param has_tokens: False while the file of tokens cannot be used.
    """
    kernel = engine.kernel
    return ProcessReport(
        _server(engine, transport, url, has_tokens),
        _audit(kernel, audit),
        session_views(kernel, now_ns),
        channel_views(kernel),
    )


def _server(
    engine: Engine, transport: WebSocketTransport, url: str | None, has_tokens: bool
) -> Diagnosis:
    if url is None:
        return unproven('it does not listen yet')
    stats = transport.stats()
    kinds = Counter(each.kind for each in stats)
    values = {
        'url': url,
        'connections': str(kinds[ControlLink.kind]),
        'stream_connections': str(kinds[StreamLink.kind]),
        'stalled_connections': str(sum(each.is_paused for each in stats)),
    }
    if not has_tokens:
        text = 'no login: the file of tokens cannot be used; see the log'
        return Diagnosis(Level.ERROR, text, values)
    if not engine.is_accepting:
        text = 'connections are answered 503: the node is not active, or the bridge is ending'
        return Diagnosis(Level.WARN, text, values)
    return Diagnosis(Level.OK, f'serves {url}', values)


def _audit_required(kernel: Kernel) -> str:
    """Say it as ``audit.required`` of the configuration does."""
    if kernel.policy.audit_stop:
        return 'stop'
    return 'refuse' if kernel.policy.audit_required else 'off'


def _audit(kernel: Kernel, audit: AuditLog) -> Diagnosis:
    values = {
        'directory': str(audit.directory),
        'used_mb': f'{audit.used_bytes / _MB:.1f}',
        'required': _audit_required(kernel),
    }
    if kernel.audit_problem is not None or not audit.is_writable:
        text = f'cannot be written: {kernel.audit_problem or "see the log"}'
        return Diagnosis(Level.ERROR, text, values)
    if not audit.is_proven:
        found = unproven('the disk was not tried yet')
        return Diagnosis(found.level, found.message, values)
    return Diagnosis(Level.OK, f'written to {audit.directory}', values)
