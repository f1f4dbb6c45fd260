"""Owns what the log says about sessions and actions; levels as docs/operating.md lists them."""

from __future__ import annotations

import logging
from typing import Any

from awp_ros_bridge.engine.effects import (
    BeginBehavior,
    Effect,
    OpenAudit,
    RecordAudit,
    SendFrame,
    SendMessage,
)
from awp_ros_bridge.engine.inputs import (
    AvailabilityChanged,
    BehaviorFinished,
    Input,
    ObservationCaptured,
    StreamOpened,
    StreamReceived,
    TextReceived,
)
from awp_ros_bridge.engine.session_view import one_line

log = logging.getLogger('awp_ros_bridge')

TERMINAL = frozenset({'completed', 'failed', 'cancelled', 'preempted', 'rejected'})

_UNSHOWN = (ObservationCaptured, StreamReceived)
_SECRET = (TextReceived, StreamOpened)


class Journal:
    """
    Writes one line per session change and terminal action at INFO, what is missing at WARNING.

    Changes of safety inputs are logged where they stop the robot. At DEBUG every fact (``>``) and
    effect (``<``) is named, except samples and frames; no line ever holds a message, so none can
    hold a token. What an agent chose itself, such as its name, is shown in one line.
    """

    def __init__(self) -> None:
        self._missing: set[tuple[str, str]] = set()

    def fact(self, fact: Input) -> None:
        """Note a fact on its way into the engine."""
        match fact:
            case AvailabilityChanged(embodiment, action_type, False, detail):
                self._missing.add((embodiment, action_type))
                log.warning('%s: %s cannot run: %s', embodiment, action_type, detail)
            case AvailabilityChanged(embodiment, action_type, True, _detail):
                if (embodiment, action_type) in self._missing:
                    self._missing.remove((embodiment, action_type))
                    log.info('%s: %s can run', embodiment, action_type)
            case BehaviorFinished(_ticket, False, detail):
                log.warning('safe state: not reached: %s', detail)
            case BehaviorFinished(_ticket, True, detail) if detail:
                log.info('safe state: reached: %s', detail)
            case _ if log.isEnabledFor(logging.DEBUG) and not isinstance(fact, _UNSHOWN):
                secret = isinstance(fact, _SECRET)
                log.debug('> %s', type(fact).__name__ if secret else fact)

    def effect(self, effect: Effect) -> None:
        """Note an effect on its way out."""
        match effect:
            case OpenAudit(session_id, _ts, header) if 'agent' not in header:
                log.debug('< OpenAudit %s', session_id)
            case OpenAudit(session_id, _ts, header):
                agent = header.get('agent') or {}
                log.info('session=%s opened by %s', session_id, one_line(agent.get('name')))
            case BeginBehavior(_ticket, embodiment, behavior, cause):
                log.info('safe state: %s begins %s: %s', embodiment, behavior, cause)
            case RecordAudit(session_id, _ts, 'world', 'message' | 'kept', body):
                self._notified(session_id, body)
            case SendFrame() | SendMessage() | RecordAudit():
                pass
            case _:
                log.debug('< %s', type(effect).__name__)

    @staticmethod
    def _notified(session_id: str, body: dict[str, Any]) -> None:
        params = body.get('params') or {}
        match body.get('method'):
            case 'action.status' if params.get('state') in TERMINAL:
                log.info(
                    'session=%s action=%s %s %s %s',
                    session_id,
                    one_line(params.get('action_id')),
                    params.get('state'),
                    params.get('reason', ''),
                    params.get('detail', ''),
                )
            case 'session.state':
                log.info(
                    'session=%s %s (%s)', session_id, params.get('state'), params.get('reason')
                )
            case 'world.event':
                log.info('session=%s event %s', session_id, params.get('event'))
