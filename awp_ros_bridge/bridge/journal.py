"""Owns what the log says about sessions and actions; levels as docs/operating.md lists them."""

from __future__ import annotations

import logging
from typing import Any

from awp_ros_bridge.engine.effects import (
    BeginBehavior,
    CloseAudit,
    Effect,
    OpenAudit,
    RecordAudit,
    SendFrame,
    SendMessage,
)
from awp_ros_bridge.engine.inputs import (
    Input,
    ObservationCaptured,
    SafetyChanged,
    StreamOpened,
    StreamReceived,
    TextReceived,
)

log = logging.getLogger('awp_ros_bridge')

TERMINAL = frozenset({'completed', 'failed', 'cancelled', 'preempted', 'rejected'})


class Journal:
    """
    Writes one line per session change, terminal action and safety change at INFO.

    At DEBUG every fact (``>``) and effect (``<``) is named, except samples and frames; no line
    ever holds a message, so none can hold a token.
    """

    def fact(self, fact: Input) -> None:
        """Note a fact on its way into the engine."""
        if isinstance(fact, SafetyChanged):
            verdict = 'engaged' if fact.engaged else 'clear'
            log.info(
                'safety: %s %s is %s (%s) %s',
                fact.embodiment,
                fact.input_name,
                verdict,
                fact.meaning,
                fact.detail,
            )
        elif log.isEnabledFor(logging.DEBUG) and not isinstance(fact, ObservationCaptured):
            secret = isinstance(fact, (TextReceived, StreamOpened, StreamReceived))
            log.debug('> %s', type(fact).__name__ if secret else fact)

    def effect(self, effect: Effect) -> None:
        """Note an effect on its way out."""
        match effect:
            case OpenAudit(session_id, _ts, header):
                agent = header.get('agent') or {}
                log.info('session=%s opened by %s', session_id, agent.get('name'))
            case CloseAudit(session_id):
                log.info('session=%s closed', session_id)
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
                    params.get('action_id'),
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
