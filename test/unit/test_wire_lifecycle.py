"""The transition table, against the one that the specification publishes."""

from importlib.resources import files
from itertools import product
import json
from typing import Any

import pytest

from awp_ros_bridge.wire import lifecycle
from awp_ros_bridge.wire.lifecycle import (
    ActionState,
    allowed,
    CLASS,
    mermaid,
    PRE_EXECUTION,
    Reason,
    SESSION_TRANSITIONS,
    SessionState,
    TERMINAL,
    TRANSITIONS,
)

S, R = ActionState, Reason


@pytest.fixture(scope='module')
def published() -> Any:
    pytest.importorskip('awp_conformance')
    return json.loads((files('awp_conformance') / '_spec' / 'lifecycle.json').read_text())


def test_states_are_the_published_ones(published: Any) -> None:
    assert {state.value: kind.value for state, kind in CLASS.items()} == published['states']


def test_transitions_are_the_published_ones(published: Any) -> None:
    theirs = {
        (row['from'], row['to']): frozenset(row['reasons']) if 'reasons' in row else None
        for row in published['transitions']
    }
    ours = {
        (source.value, target.value): None if reasons is None else frozenset(map(str, reasons))
        for (source, target), reasons in TRANSITIONS.items()
    }
    assert ours == theirs


def test_reasons_and_session_states_are_the_published_ones() -> None:
    spec = pytest.importorskip('awp_conformance.spec')
    defs = spec.SCHEMAS['common']['$defs']
    assert list(Reason) == defs['status_reason']['anyOf'][0]['enum']
    assert list(SessionState) == defs['session_state']['enum']


def test_every_state_has_a_class() -> None:
    assert set(CLASS) == set(ActionState)
    assert {S.REJECTED, S.COMPLETED, S.FAILED, S.PREEMPTED, S.CANCELLED} == TERMINAL
    assert {S.PENDING_APPROVAL, S.QUEUED, S.ACCEPTED} == PRE_EXECUTION


REASONS = [None, *Reason, 'x-ros2.safety_input', 'x-ros2', 'X-ros2.a', 'x-ros2.\n', 'other', '']


@pytest.mark.parametrize('source', ActionState)
def test_whatever_is_allowed_pleases_the_judge(source: ActionState) -> None:
    spec = pytest.importorskip('awp_conformance.spec')
    for target, reason in product(ActionState, REASONS):
        if allowed(source, target, reason) and source is not S.SUBMITTED:
            assert spec.transition_problem(source.value, target.value, reason) is None


@pytest.mark.parametrize('state', ActionState)
def test_only_progress_repeats_a_state(state: ActionState) -> None:
    assert allowed(state, state, None) == (state in {S.EXECUTING, S.CANCELLING})


@pytest.mark.parametrize('source', sorted(TERMINAL))
def test_nothing_leaves_a_terminal_state(source: ActionState) -> None:
    assert not any(allowed(source, target, why) for target in ActionState for why in REASONS)


@pytest.mark.parametrize(
    ('source', 'target', 'reason', 'verdict'),
    [
        (S.EXECUTING, S.FAILED, R.E_STOP, True),
        (S.EXECUTING, S.FAILED, 'e_stop', True),
        (S.EXECUTING, S.FAILED, R.SAFE_STATE, False),
        (S.EXECUTING, S.FAILED, None, False),
        (S.EXECUTING, S.FAILED, 'x-ros2.safety_input', True),
        (S.EXECUTING, S.FAILED, 'x-ros2.', False),
        (S.EXECUTING, S.PREEMPTED, None, True),
        (S.EXECUTING, S.PREEMPTED, R.TRANSFERRED, True),
        (S.EXECUTING, S.PREEMPTED, R.SUPERSEDED, False),
        (S.EXECUTING, S.CANCELLING, None, True),
        (S.EXECUTING, S.CANCELLING, R.WORLD_RESET, True),
        (S.EXECUTING, S.COMPLETED, None, True),
        (S.EXECUTING, S.COMPLETED, 'x-ros2.done', False),
        (S.EXECUTING, S.EXECUTING, 'x-ros2.slow', False),
        (S.CANCELLING, S.CANCELLING, R.SESSION_CLOSED, True),
        (S.CANCELLING, S.CANCELLING, R.E_STOP, False),
        (S.CANCELLING, S.COMPLETED, None, False),
        (S.CANCELLING, S.CANCELLED, None, False),
        (S.ACCEPTED, S.REJECTED, 'x-ros2.goal_refused', True),
        (S.ACCEPTED, S.EXECUTING, R.E_STOP, False),
        (S.QUEUED, S.CANCELLED, R.SUPERSEDED, True),
        (S.QUEUED, S.EXECUTING, None, False),
    ],
)
def test_allowed(source: ActionState, target: ActionState, reason: str, verdict: bool) -> None:
    assert allowed(source, target, reason) is verdict


def test_tables_cannot_be_written() -> None:
    for table in (CLASS, TRANSITIONS, SESSION_TRANSITIONS, lifecycle._REPEATS):
        with pytest.raises(TypeError, match='does not support item assignment'):
            table['x'] = None  # type: ignore[index]


def test_closed_is_the_end_of_a_session_and_in_reach_of_every_state() -> None:
    assert set(SESSION_TRANSITIONS) == set(SessionState)
    assert SESSION_TRANSITIONS[SessionState.CLOSED] == frozenset()
    for state in SessionState:
        if state is not SessionState.CLOSED:
            assert SessionState.CLOSED in SESSION_TRANSITIONS[state]
    assert SessionState.READY not in frozenset().union(*SESSION_TRANSITIONS.values())


def test_the_diagram_shows_the_table() -> None:
    lines = mermaid().splitlines()
    assert lines[:2] == ['stateDiagram-v2', '    [*] --> submitted']
    assert '    executing --> preempted : transferred' in lines
    assert '    accepted --> executing' in lines
    assert len(lines) == 2 + len(TRANSITIONS) + len(TERMINAL)
    assert all(f'    {state} --> [*]' in lines for state in TERMINAL)
