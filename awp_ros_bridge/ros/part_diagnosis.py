"""Owns what is said of one part: a safety input, a server, a channel, the sessions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.engine.session_view import ChannelView, SessionView
from awp_ros_bridge.ros.diagnosis import Diagnosis, Level
from awp_ros_bridge.ros.plan import MS

if TYPE_CHECKING:
    from awp_ros_bridge.ros.goal_desk import ServerState
    from awp_ros_bridge.ros.observations import ChannelState
    from awp_ros_bridge.ros.safety_inputs import WatchedInput


def input_diagnosis(watched: WatchedInput) -> Diagnosis:
    """Say what a safety input says, and how old that is."""
    now_ns = time.monotonic_ns()
    spec, judge = watched.spec, watched.judge
    verdict, stale, heard_ns = judge.tripped(), judge.stale(now_ns), judge.heard_ns
    latched = watched.latched()
    values = {
        'topic': spec.topic,
        'type': spec.type,
        'means': spec.means.value,
        'age_ms': 'never heard' if heard_ns is None else str((now_ns - heard_ns) // MS),
        'stale_after_ms': str(spec.stale_after_ms),
        'latched': ', '.join(latched),
    }
    against = verdict or next(iter(latched.values()), None)
    is_mild = (against.means if against else spec.means) is Meaning.DEGRADED
    level = Level.WARN if is_mild else Level.ERROR
    if verdict is not None:
        return Diagnosis(level, verdict.text, values)
    if stale is not None:
        return Diagnosis(level, stale, values)
    if against is not None:
        text = f'{against.text} (latched until an operator clears it: {values["latched"]})'
        return Diagnosis(level, text, values)
    return Diagnosis(Level.OK, f'{spec.topic} permits motion', values)


def server_diagnosis(server: ServerState) -> Diagnosis:
    """Say whether a server is there, and for what."""
    values = {'type': server.ros_type, 'serves': ', '.join(server.serves)}
    if server.missing is not None:
        return Diagnosis(Level.ERROR, server.missing, values)
    return Diagnosis(Level.OK, 'available', values)


def channel_diagnosis(state: ChannelState, view: ChannelView) -> Diagnosis:
    """Say how fast a topic is, who reads the channel, and what keeps it from delivering."""
    values = {
        'topic': state.topic,
        'rate_hz': f'{state.rate_hz:.1f}',
        'readers': str(view.readers),
        'granted_hz': f'{view.rate_hz:g}',
    }
    if state.note:
        level = Level.WARN if state.is_delivering else Level.ERROR
        return Diagnosis(level, state.note, values)
    more = ' or more: it is not followed while nobody reads it' if state.is_counted_short else ''
    return Diagnosis(Level.OK, f'{state.rate_hz:.1f} Hz{more}', values)


def sessions_diagnosis(sessions: tuple[SessionView, ...]) -> Diagnosis:
    """Say how many sessions there are, and which of them are not well."""
    values = {each.session_id: session_line(each) for each in sessions}
    unwell = [each for each in sessions if not is_well(each)]
    message = f'{len(sessions)} session{"" if len(sessions) == 1 else "s"}'
    if unwell:
        told = '; '.join(f'{each.session_id} {session_line(each)}' for each in unwell)
        return Diagnosis(Level.WARN, f'{message}, of which: {told}', values)
    return Diagnosis(Level.OK, message, values)


def is_well(session: SessionView) -> bool:
    """Tell whether an agent is attached, not being closed, and heard often enough."""
    return bool(session.peer) and not session.closing and not session.watchdog_tripped


def session_line(session: SessionView) -> str:
    """Say in a line who a session is, what it holds and what is the matter with it."""
    held = ', '.join(session.embodiments) or 'nothing'
    parts = [f'{session.state}, {session.agent or "an agent"} holds {held}']
    if session.actions:
        parts.append(f'{len(session.actions)} action{"" if len(session.actions) == 1 else "s"}')
    if session.closing:
        parts.append(f'closing ({session.closing})')
    if session.watchdog_tripped:
        parts.append('the watchdog has tripped')
    return ', '.join(parts)


def session_values(session: SessionView) -> dict[str, str]:
    """Return what ``~/sessions`` tells of a session, by name."""
    return {
        'state': session.state,
        'agent': session.agent,
        'peer': session.peer,
        'credential': session.credential,
        'embodiments': ', '.join(session.embodiments),
        'actions': ', '.join(session.actions),
        'channels': ', '.join(session.channels),
        'age_ms': str(session.age_ms),
        'silent_ms': str(session.silent_ms),
        'closing': session.closing,
        'watchdog_tripped': 'true' if session.watchdog_tripped else 'false',
    }
