"""
Owns the error codes of the protocol and the exception that carries a peer's fault.

A :class:`WireFault` is always the peer's doing and ends as an error reply or a close; what this
side does wrong is an ordinary exception.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

Json = dict[str, Any]


class ErrorCode(IntEnum):
    """
    Error codes of JSON-RPC 2.0 and of the protocol (AWP-ERR-001).

    ``RESOURCE_NOT_FOUND`` belongs to the session status query, not to AWP.
    """

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    RESOURCE_NOT_FOUND = -32002

    VERSION_UNSUPPORTED = 1001
    MALFORMED = 1002

    EMBODIMENT_UNAVAILABLE = 2001
    TIME_MODEL_UNSUPPORTED = 2002
    SESSION_EXPIRED = 2003
    SESSION_EXISTS = 2004
    SESSION_UNKNOWN = 2005
    INTEGER_RANGE = 2006
    CHANNEL_UNKNOWN = 2007

    PARAMS_INVALID = 3001
    BUSY = 3002
    QUEUE_FULL = 3003
    ACTION_ID_CONFLICT = 3004
    ESTOP_ACTIVE = 3005
    TICK_NOT_AUTHORIZED = 3006
    STALE_INTENT = 3007
    ACTION_UNKNOWN = 3008
    TICK_MISMATCH = 3009

    FORBIDDEN = 4001
    ENVELOPE_EXCEEDED = 4002
    APPROVAL_DENIED = 4003
    APPROVAL_TIMEOUT = 4004

    @property
    def message(self) -> str:
        """The ``message`` of the error object: ``AWP_<NAME>``, or the text of JSON-RPC."""
        if self > 0:
            return f'AWP_{self.name}'
        return self.name.replace('_', ' ').capitalize()

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later, unless a fault says otherwise."""
        return self in _RETRYABLE


_RETRYABLE = frozenset(
    {
        ErrorCode.EMBODIMENT_UNAVAILABLE,
        ErrorCode.BUSY,
        ErrorCode.QUEUE_FULL,
        ErrorCode.ESTOP_ACTIVE,
        ErrorCode.STALE_INTENT,
    }
)


class WireFault(Exception):
    """
    A fault of the peer, which an error reply tells it about.

    :param code: what kind of fault.
    :param detail: what was refused, the value, the limit with its unit, what to do. Goes to the
        peer and into logs, so never a token.
    :param retryable: overrides the default of the code.
    :param data: further members of ``error.data``.
    """

    def __init__(
        self, code: ErrorCode, detail: str, *, retryable: bool | None = None, **data: Any
    ) -> None:
        super().__init__(f'{code.message}: {detail}')
        self.code = code
        self.detail = detail
        self.retryable = code.retryable if retryable is None else retryable
        self.data: Json = data

    def error_object(self) -> Json:
        """Return the ``error`` member of the reply."""
        data = {'retryable': self.retryable, 'detail': self.detail, **self.data}  # AWP-ERR-001
        return {'code': int(self.code), 'message': self.code.message, 'data': data}
