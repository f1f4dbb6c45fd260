"""What the log says: levels, one line each, never a message and never a token."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from awp_ros_bridge.bridge.journal import Journal
from awp_ros_bridge.engine.effects import (
    BeginBehavior,
    CancelGoal,
    CloseAudit,
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

TOKEN = 'st_0123456789abcdef'
TEXT = f'{{"params": {{"session_token": "{TOKEN}"}}}}'

Lines = list[tuple[int, str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.DEBUG, 'awp_ros_bridge')

    def read() -> Lines:
        found = [(r.levelno, r.getMessage()) for r in caplog.records]
        caplog.clear()
        return found

    return read


def status(state: str, **more: Any) -> Effect:
    params = {'action_id': 'a1', 'state': state, **more}
    return RecordAudit('s1', 1, 'world', 'message', {'method': 'action.status', 'params': params})


def test_messages_and_credentials_are_never_shown(lines: Any) -> None:
    journal = Journal()
    facts: list[Input] = [
        TextReceived(1, TEXT, 5),
        StreamOpened(2, TOKEN),
        StreamReceived(2, TEXT.encode()),
        ObservationCaptured('proprio', TEXT.encode(), 5),
    ]
    for fact in facts:
        journal.fact(fact)
    body = {'id': 1, 'result': {'session_token': TOKEN}}
    effects: list[Effect] = [
        SendMessage(1, body, 's1'),
        RecordAudit('s1', 1, 'world', 'message', body),
        RecordAudit('s1', 1, 'agent', 'message', {'method': 'session.resume', 'params': body}),
        SendFrame(1, True, 's1', 1, 1, 1, 0, TEXT.encode(), None, False, 0),
    ]
    for effect in effects:
        journal.effect(effect)
    said = lines()
    assert said == [(logging.DEBUG, '> TextReceived'), (logging.DEBUG, '> StreamOpened')]


def test_facts_and_effects_are_named_at_debug_only(
    lines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal()
    journal.fact(BehaviorFinished(3, True))
    journal.effect(CancelGoal('g', 'arm', 'move'))
    journal.effect(CloseAudit('s1'))
    assert lines() == [
        (logging.DEBUG, "> BehaviorFinished(ticket=3, ok=True, detail='')"),
        (logging.DEBUG, '< CancelGoal'),
        (logging.DEBUG, '< CloseAudit'),
    ]
    caplog.set_level(logging.INFO, 'awp_ros_bridge')
    journal.fact(BehaviorFinished(3, True))
    journal.effect(CancelGoal('g', 'arm', 'move'))
    assert not lines()


def test_what_is_missing_is_a_warning_and_its_return_is_told(lines: Any) -> None:
    journal = Journal()
    there = AvailabilityChanged('arm', 'move', True, '')
    journal.fact(there)
    assert not [line for level, line in lines() if level > logging.DEBUG]
    journal.fact(AvailabilityChanged('arm', 'move', False, 'action server x is not available'))
    journal.fact(there)
    assert lines() == [
        (logging.WARNING, 'arm: move cannot run: action server x is not available'),
        (logging.INFO, 'arm: move can run'),
    ]


def test_a_safe_state_that_was_not_reached_is_a_warning(lines: Any) -> None:
    journal = Journal()
    journal.effect(BeginBehavior(1, 'arm', 'safe_stop', 'watchdog', 5))
    journal.fact(BehaviorFinished(1, False, 'arm was not measured at rest'))
    assert lines() == [
        (logging.INFO, 'safe state: arm begins safe_stop: watchdog'),
        (logging.WARNING, 'safe state: not reached: arm was not measured at rest'),
    ]


def test_terminal_actions_sessions_and_events_are_told_at_info(lines: Any) -> None:
    journal = Journal()
    for state in ('accepted', 'executing', 'cancelling'):
        journal.effect(status(state))
    assert not lines()
    journal.effect(status('failed', reason='world_error', detail='no way'))
    journal.effect(
        RecordAudit(
            's1',
            1,
            'world',
            'kept',
            {'method': 'session.state', 'params': {'state': 'suspended', 'reason': 'lost'}},
        )
    )
    event = {'method': 'world.event', 'params': {'event': 'e_stop_engaged', 'detail': {}}}
    journal.effect(RecordAudit('s1', 1, 'world', 'message', event))
    journal.effect(RecordAudit('s1', 1, 'world', 'message', {'method': 'session.telemetry'}))
    assert lines() == [
        (logging.INFO, 'session=s1 action=a1 failed world_error no way'),
        (logging.INFO, 'session=s1 suspended (lost)'),
        (logging.INFO, 'session=s1 event e_stop_engaged'),
    ]


@pytest.mark.parametrize(
    ('name', 'shown'),
    [
        ('arm pilot', 'arm pilot'),
        ('Jürgen', 'Jürgen'),
        ('two\nlines', r"'two\nlines'"),
        ('\x1b[2Jred', r"'\x1b[2Jred'"),
        ('\u202eturned', r"'\u202eturned'"),
        ('n' * 500, 'n' * 125 + '...'),
        (None, 'None'),
    ],
)
def test_what_an_agent_chose_stands_in_one_short_line(lines: Any, name: Any, shown: str) -> None:
    journal = Journal()
    journal.effect(OpenAudit('s1', 1, {'agent': {'name': name}}))
    journal.effect(status('completed', action_id=name))
    opened, completed = lines()
    assert opened[1] == f'session=s1 opened by {shown}'
    assert completed[1].startswith(f'session=s1 action={shown} completed')


def test_a_session_of_nobody_is_told_too(lines: Any) -> None:
    Journal().effect(OpenAudit('s1', 1, {'agent': None}))
    assert lines() == [(logging.INFO, 'session=s1 opened by None')]
