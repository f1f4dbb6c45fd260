"""
Owns the answer to ``session/status``: where a session stands, read without touching it.

The question and its words come from the Agent Client Protocol; it is not part of AWP. What
``active`` means here is narrower than there, see docs/session_status.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from awp_ros_bridge.engine.sessions import Session
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.lifecycle import ActionState

Json = dict[str, Any]

_SHOWN_CHARS = 80


class SessionStatus(StrEnum):
    """How a session that is known can be reached."""

    ACTIVE = 'active'  # attached to a live connection; taking it over means replacing that one
    INACTIVE = 'inactive'  # suspended: session.resume takes it up


class Foreground(StrEnum):
    """What an active session is doing, in the words of the one who asks."""

    RUNNING = 'running'
    REQUIRES_ACTION = 'requires_action'
    IDLE = 'idle'


def session_status(session: Session | None, asked: str) -> Json:
    """
    Return the result of a status question.

    :param session: the session of that id, None where there is none.
    :param asked: the id as it was asked.
    :raises WireFault: RESOURCE_NOT_FOUND: the session cannot be resumed, now or later.
    """
    if session is None:
        raise _not_found(asked, 'never opened, closed, expired, or forgotten by a restart')
    if session.conn is None and session.closing is not None:
        # Nobody is attached and nobody can be (AWP-SES-011): for who asks it is over.
        raise _not_found(asked, f'it is closing ({session.closing.reason}), nobody is attached')
    if session.conn is None:
        return {'status': SessionStatus.INACTIVE.value}
    own: Json = {'session_state': session.state.value, 'closing': session.closing is not None}
    return {
        'status': SessionStatus.ACTIVE.value,
        'state': {'state': _foreground(session).value},
        '_meta': {'awp': own},
    }


def _foreground(session: Session) -> Foreground:
    """Look at the live actions only: hundreds that have ended may be retained beside them."""
    states = {action.state for action in session.live.values()}
    if session.closing is not None or states - {ActionState.PENDING_APPROVAL}:
        return Foreground.RUNNING
    return Foreground.REQUIRES_ACTION if states else Foreground.IDLE


def _not_found(asked: str, why: str) -> WireFault:
    shown = asked if len(asked) <= _SHOWN_CHARS else f'{asked[: _SHOWN_CHARS - 3]}...'
    detail = f'no session {shown!r} here: {why}; open a new one'
    return WireFault(ErrorCode.RESOURCE_NOT_FOUND, detail, sessionId=asked)
