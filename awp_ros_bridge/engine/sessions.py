"""Owns the records of connections and sessions, and the tokens that name them."""

from __future__ import annotations

from collections import deque, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
import hashlib
from typing import Any, Protocol

from awp_ros_bridge.engine.actions import Action
from awp_ros_bridge.engine.permissions import Permissions
from awp_ros_bridge.engine.policy import ChannelPolicy
from awp_ros_bridge.engine.telemetry import Telemetry
from awp_ros_bridge.wire.clock import SessionClock
from awp_ros_bridge.wire.lifecycle import SessionState

Json = dict[str, Any]

REMEMBERED_TOKENS = 4096


class Ids(Protocol):
    """Where the engine's unguessable names come from; tests give predictable ones."""

    def session_id(self) -> str: ...

    def token(self, prefix: str) -> str: ...

    def goal_id(self) -> str: ...


@dataclass(eq=False, slots=True)
class Connection:
    """
    One control connection; it carries at most one session (AWP-CTL-007).

    :param opened_ns: steady time of its beginning, zero of its clock while it has no session.
    :param permissions: of its credential, none any more once that was revoked.
    :param early: messages that came before a session, for the audit log of the session to come.
    :param is_closing: True from the decision to close it: nothing is sent or heard any more.
    """

    id: int
    peer: str
    opened_ns: int
    permissions: Permissions
    agent: Json | None = None
    consumes: frozenset[str] = frozenset()
    max_obs_rate_hz: float | None = None
    session: Session | None = None
    pending_open: bool = False
    is_closing: bool = False
    early: deque[Json] = field(default_factory=lambda: deque(maxlen=8))


@dataclass(eq=False, slots=True)
class Subscription:
    """
    One granted channel of one session.

    :param seq: of the newest frame; a frame gets its number when it is handed to the outbox.
    :param is_fresh: the first frame of the subscription is owed, whatever the rate.
    :param resync: the next frame marks a known discontinuity (AWP-DAT-009).
    :param delivered_ns: steady time at which the newest frame left, for AWP-SAF-009.
    """

    policy: ChannelPolicy
    channel_id: int
    rate_hz: float
    seq: int = 0
    ts_mono_ns: int = 0
    allowance: float = 1.0
    refilled_ns: int = 0
    is_fresh: bool = True
    resync: bool = False
    delivered_ns: int = 0
    degraded: bool = False


@dataclass(slots=True)
class Closing:
    """A close under way (AWP-SES-011): who waits for it, and what follows."""

    reason: str
    replies: list[tuple[int, int | str]] = field(default_factory=list)
    disconnect: tuple[int, str] | None = None
    waiting_for: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class Session:
    """
    One AWP session, across its connections (AWP-SES-001..012).

    :param embodiments: bound now; empty for an observer and for a previous holder.
    :param ever_subscribed: every channel it ever had: a channel keeps its number and counts on.
    :param actions: every action that is retained, by id; most of them have ended.
    :param live: those that have not ended, in order of admission.
    :param credential: of the connection that carries it, or carried it last.
    :param agent: what the agent said of itself when it opened or took up the session.
    :param told_safe: embodiments whose safe-state entry this session was told of.
    :param agent_ns: steady time of the newest message that the agent originated (AWP-SAF-003).
    :param heard_ns: steady time of any message, for loss of the connection (AWP-SAF-002).
    """

    id: str
    token: str
    clock: SessionClock
    opened_ns: int
    conn: Connection | None
    embodiments: tuple[str, ...]
    multi_bind: bool
    granted_actions: frozenset[str]
    admin: tuple[str, ...]
    expires_ns: int | None
    consumes: frozenset[str]
    max_obs_rate_hz: float | None
    readable: frozenset[str]
    credential: str
    agent: Json | None = None
    state: SessionState = SessionState.READY
    stream: int | None = None
    streamed: bool = False
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    ever_subscribed: dict[str, Subscription] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    live: dict[str, Action] = field(default_factory=dict)
    ended: deque[Action] = field(default_factory=deque)
    status_seq: int = 0
    acknowledged: int = 0
    log: deque[tuple[int, Json]] = field(default_factory=deque)
    agent_ns: int = 0
    heard_ns: int = 0
    watchdog_tripped: bool = False
    told_safe: set[str] = field(default_factory=set)
    closing: Closing | None = None
    transfer: Transfer | None = None
    telemetry: Telemetry = field(default_factory=Telemetry)
    pings: int = 0

    @property
    def is_closed(self) -> bool:
        return self.state is SessionState.CLOSED

    @property
    def is_expired(self) -> bool:
        """Return whether the grants ran out (AWP-PRM-003)."""
        return self.expires_ns is not None and self.expires_ns < 0

    def is_handing_over(self, embodiment: str) -> bool:
        """Return whether a takeover of the embodiment is under way."""
        return self.transfer is not None and self.transfer.embodiment == embodiment

    def live_actions(self) -> list[Action]:
        """Return the actions that have not reached a terminal state, in order of admission."""
        return list(self.live.values())


@dataclass(slots=True)
class Transfer:
    """
    A minted transfer token and the takeover that uses it (AWP-EMB-003).

    :param embodiment: what is changing hands, None until a takeover begins.
    :param cancel: ends a takeover under way, saying why; None until one begins.
    """

    digest: bytes
    expires_ns: int
    embodiment: str | None = None
    cancel: Callable[[str], None] | None = None


def digest(token: str) -> bytes:
    """Return the hash under which a token is kept; looking it up leaks no timing."""
    return hashlib.sha256(token.encode()).digest()


class Tokens:
    """
    Which session a token names, by hash (AWP-SEC-003).

    Hashes of sessions that are over are kept, bounded, to tell "expired" from "never issued".
    """

    def __init__(self) -> None:
        self._live: dict[bytes, Session] = {}
        self._over: OrderedDict[bytes, None] = OrderedDict()

    def add(self, session: Session) -> None:
        self._live[digest(session.token)] = session

    def retire(self, session: Session) -> None:
        key = digest(session.token)
        self._live.pop(key, None)
        self._over[key] = None
        while len(self._over) > REMEMBERED_TOKENS:
            self._over.popitem(last=False)

    def find(self, token: str) -> Session | None:
        return self._live.get(digest(token))

    def is_over(self, token: str) -> bool:
        return digest(token) in self._over
