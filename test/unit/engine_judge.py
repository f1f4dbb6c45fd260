"""
Judges what the engine sends with the public suite's own passive checks, where it is installed.

One tracker of the suite follows each session across its connections, as in a conformance run:
sequence and replay, lifecycle, frames, closing, and the canonical schemas in sender form.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from awp_ros_bridge.engine.effects import SendFrame

try:
    from awp_conformance import monitor, spec
    from awp_conformance.results import Results
except ImportError:  # pragma: no cover - the suite is a test dependency that may be missing
    monitor = None  # type: ignore[assignment]

Json = dict[str, Any]

# Whole numbers without another bound than these: of two messages that differ in nothing else, one
# is valid when the other is.
_COUNTS = frozenset(
    {
        'clamped_count', 'expires_at', 'expires_at_ns', 'frames_applied', 'last_seq',
        'last_status_seq', 'origin_ns', 'receive_ns', 'received_ts_mono_ns',
        'replay_to_status_seq', 'seq', 'status_seq', 'transmit_ns', 'ts_mono_ns', 'ts_send_ns',
        'ts_sim_ns',
    }
)  # fmt: skip
_VALID: set[tuple[str, str, str]] = set()


def _accept(method: str, part: str, instance: Any) -> bool:
    return True


def _alike(value: Any, name: str = '') -> Any:
    """Return a message with what cannot make it invalid made equal."""
    if isinstance(value, dict):
        return {key: _alike(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_alike(inner) for inner in value]
    if name in _COUNTS and type(value) is int and 0 < value <= spec.MAX_SAFE_INT:
        return 1
    if name == 'progress' and type(value) is float and 0 < value < 1:
        return 0.5
    return value


def _remembering(validate: Any) -> Any:
    """Return the tracker's validation, which costs most, with messages alike looked at once."""

    def check(method: str, part: str, instance: Any) -> bool:
        key = (method, part, json.dumps(_alike(instance), sort_keys=True))
        if key not in _VALID:
            if not validate(method, part, instance):
                return False
            _VALID.add(key)
        return True

    return check


class _Line:
    """One control connection as the judge sees it."""

    def __init__(self, tracker: Any) -> None:
        self.tracker = tracker
        self.pending: dict[int | str, tuple[str, Json, bool]] = {}
        self.consumes: set[str] | None = None


class Judge:
    """
    Listens in on every connection of a world.

    :param schemas: False leaves the schemas out, which cost most of the time.
    """

    def __init__(self, manifest: Json, *, schemas: bool = True) -> None:
        self._manifest = manifest
        self._schemas = schemas
        self._lines: dict[int, _Line] = {}
        self._trackers: list[Any] = []
        self._by_token: dict[str, Any] = {}
        self.notes: list[str] = []
        self.is_active = monitor is not None

    def _tracker(self) -> Any:
        tracker: Any = monitor.SessionTracker(Results(), 'unit', self._manifest, 'streaming')
        tracker.validate = _remembering(tracker.validate) if self._schemas else _accept
        self._trackers.append(tracker)
        return tracker

    def _line(self, conn: int) -> _Line:
        line = self._lines.get(conn)
        if line is None:
            line = self._lines[conn] = _Line(self._tracker())
        return line

    def problems(self) -> list[str]:
        """Return everything that was found wrong so far."""
        found = list(self.notes)
        for tracker in self._trackers:
            for requirement, details in tracker.violations.items():
                found += [f'{requirement}: {detail}' for detail in details]
        return found

    # ------------------------------------------------------------ what passes by

    def sent(self, conn: int, text: str | bytes) -> None:
        """Note what an agent sent."""
        if not self.is_active:
            return
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or 'method' not in message:
            return
        line = self._line(conn)
        params = message.get('params')
        params = params if isinstance(params, dict) else {}
        if isinstance(message.get('id'), (int, str)):
            was_closing = line.tracker.closing
            line.pending[message['id']] = (str(message['method']), params, was_closing)
            is_open = line.tracker.ready is not None and not line.tracker.closed_reported
            if message['method'] == 'session.close' and is_open:
                line.tracker.closing = True

    def received(self, conn: int, message: Json, now_ns: int) -> None:
        """Check one message of the engine."""
        if not self.is_active:
            return
        line = self._line(conn)
        if not -spec.MAX_SAFE_INT <= _largest(message) <= spec.MAX_SAFE_INT:
            self.notes.append(f'AWP-CTL-009: integer beyond 2^53-1 in {message}')
        if 'method' in message and 'id' in message:
            line.tracker.validate(message['method'], 'params', message.get('params') or {})
        elif 'method' in message:
            line.tracker.on_notification(message['method'], message.get('params') or {}, now_ns)
        elif message.get('id') is not None:
            self._response(line, message)
        elif self._schemas:
            for problem in spec.schema_errors('error', message['error'], sender=True):
                self.notes.append(f'AWP-ERR-001: {problem}')

    def _response(self, line: _Line, message: Json) -> None:
        pending = line.pending.pop(message['id'], None)
        if pending is None:
            self.notes.append(f'AWP-CTL-001: response to unknown request {message["id"]!r}')
            return
        method, params, closing = pending
        result = message.get('result')
        if result is not None and method == 'initialize':
            line.consumes = set(params['consumes_modalities'])
        if result is not None and method in ('session.open', 'session.resume'):
            if method == 'session.resume':
                line.tracker = self._by_token[params['session_token']]
            elif line.tracker.ready is not None:
                line.tracker = self._tracker()
            line.tracker.consumes = line.consumes
            self._by_token[result['session_token']] = line.tracker
        line.tracker.on_response(method, params, message, closing=closing)

    def left(self, conn: int) -> None:
        """Forget what a connection that is gone waited for; its session may go on elsewhere."""
        self._lines.pop(conn, None)

    def stream_opened(self, conn: int) -> None:
        """Expect the channels of a session on a new stream connection."""
        if self.is_active:
            for channel in self._line(conn).tracker.channels.values():
                channel.stream_since_ns = None

    def frame(self, conn: int, frame: SendFrame, sent_ns: int) -> None:
        """Check one frame; conn is the control connection of its session."""
        if not self.is_active:
            return
        params: Json = {
            'channel_id': frame.channel_id,
            'seq': frame.seq,
            'ts_mono_ns': frame.ts_mono_ns,
            'flags': frame.flags,
            'ts_send_ns': sent_ns - frame.clock_zero_ns,
            'payload_b64': base64.b64encode(frame.payload).decode(),
        }
        if frame.sim_ns is not None:
            params['ts_sim_ns'] = frame.sim_ns
        tracker = self._line(conn).tracker
        if frame.inline:
            tracker.on_notification('obs.frame', params, sent_ns)
        else:
            tracker.on_frame(params, binding='ws')


def _largest(value: Any) -> int:
    """Return the integer of greatest magnitude anywhere in a message."""
    if isinstance(value, dict):
        return max((_largest(v) for v in value.values()), key=abs, default=0)
    if isinstance(value, list):
        return max((_largest(v) for v in value), key=abs, default=0)
    return value if isinstance(value, int) else 0
