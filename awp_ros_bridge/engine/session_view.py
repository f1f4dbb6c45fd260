"""
Owns what a person at the robot sees of sessions and channels: read without touching, no secret.

A session id names a session and opens nothing (AWP-SES-009); tokens are not shown, and neither is
what an agent sent, but for the name that it gave itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel
    from awp_ros_bridge.engine.sessions import Session

MS = 1_000_000
SHOWN_CHARS = 128


@dataclass(frozen=True, slots=True)
class SessionView:
    """
    One session.

    :param agent: the name that the agent gave itself, in one line.
    :param peer: address and port, empty while nobody is attached.
    :param credential: id of the credential that it was opened or resumed with.
    :param embodiments: those it holds; none for an observer.
    :param actions: those that have not ended: id, type and state.
    :param channels: names of the channels that it reads.
    :param age_ms: since it was opened.
    :param silent_ms: since the agent originated a message, which the watchdog measures.
    :param closing: why it is being closed, empty where it is not.
    """

    session_id: str
    state: str
    agent: str
    peer: str
    credential: str
    embodiments: tuple[str, ...]
    actions: tuple[str, ...]
    channels: tuple[str, ...]
    age_ms: int
    silent_ms: int
    closing: str
    watchdog_tripped: bool


@dataclass(frozen=True, slots=True)
class ChannelView:
    """
    Who reads a channel.

    :param readers: sessions that are subscribed.
    :param rate_hz: the highest rate that one of them was granted, 0 where there is none.
    """

    readers: int
    rate_hz: float


def session_views(kernel: Kernel, now_ns: int) -> tuple[SessionView, ...]:
    """Return the sessions that are not closed, in order of opening."""
    return tuple(_view(session, now_ns) for session in kernel.live_sessions())


def channel_views(kernel: Kernel) -> dict[str, ChannelView]:
    """Return who reads each channel of the world."""
    rates: dict[str, list[float]] = {name: [] for name in kernel.policy.channels}
    for session in kernel.live_sessions():
        for name, subscription in session.subscriptions.items():
            rates.setdefault(name, []).append(subscription.rate_hz)
    return {n: ChannelView(len(found), max(found, default=0.0)) for n, found in rates.items()}


def one_line(text: Any) -> str:
    """Return what an agent chose as it can be shown: printable, bounded, one line."""
    whole = str(text)
    cut = whole if len(whole) <= SHOWN_CHARS else f'{whole[: SHOWN_CHARS - 3]}...'
    return cut if cut.isprintable() else ascii(cut)


def _view(session: Session, now_ns: int) -> SessionView:
    conn = session.conn
    return SessionView(
        session_id=session.id,
        state=session.state.value,
        agent=one_line((session.agent or {}).get('name', '')),
        peer='' if conn is None else conn.peer,
        credential=session.credential,
        embodiments=session.embodiments,
        actions=tuple(
            f'{one_line(a.id)} {a.policy.type} {a.state.value}' for a in session.live_actions()
        ),
        channels=tuple(session.subscriptions),
        age_ms=(now_ns - session.opened_ns) // MS,
        silent_ms=(now_ns - session.agent_ns) // MS,
        closing='' if session.closing is None else session.closing.reason,
        watchdog_tripped=session.watchdog_tripped,
    )
