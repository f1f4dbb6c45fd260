"""Owns subscriptions and frames: grants, rates, numbering, resync (AWP-OBS, AWP-TRN)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TYPE_CHECKING

from pydantic_core import to_json

from awp_ros_bridge.engine.effects import CloseConnection, DropFrames, SendFrame, SetChannelDemand
from awp_ros_bridge.engine.policy import ChannelPolicy
from awp_ros_bridge.engine.sessions import Connection, Session, Subscription
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.frames import decode_binary, FrameFault, KEYFRAME, RESYNC
from awp_ros_bridge.wire.lifecycle import SessionState

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel
    from awp_ros_bridge.wire.messages import SubscribeItem

Json = dict[str, Any]

BURST_S = 0.1  # samples that a stall held up for so long still go out, as ros/feed.py lets them

LOWEST_DEMAND_HZ = 0.001  # agents may ask for less; periods stay finite
FRAME_OVERHEAD = 28 + 2 + 10 + 10  # header, extension length, send time, simulated time


@dataclass(frozen=True, slots=True)
class Sample:
    """The newest sample of a channel."""

    payload: bytes
    captured_ns: int
    sim_ns: int | None


class Channels:
    """Turns samples into frames for those who subscribed, at the rates they were granted."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._listeners: dict[str, dict[Session, Subscription]] = {
            c: {} for c in kernel.policy.channels
        }
        self._demand: dict[str, float] = {}

    # ------------------------------------------------------------ grants

    def subscribe(self, session: Session, name: str, rate_hz: float | None) -> None:
        """Grant a channel, or change its rate; the caller has checked that it may be read."""
        policy = self._kernel.policy.channels[name]
        rate = min(
            r for r in (policy.rate_hz, rate_hz, session.max_obs_rate_hz) if r is not None
        )
        known = session.subscriptions.get(name)
        if known is not None:
            known.rate_hz = rate
            self._settle_demand(name, fresh=False)
            return
        known = session.ever_subscribed.get(name)
        if known is None:
            known = Subscription(policy, len(session.ever_subscribed) + 1, rate)
            session.ever_subscribed[name] = known
            known.resync = session.streamed  # AWP-TRN-012: the first frame on that connection
        else:  # its numbers go on where they ended
            known.rate_hz = rate
            known.resync = True
        session.subscriptions[name] = known
        self._listeners[name][session] = known
        self._restart(session, known)

    def unsubscribe(self, session: Session, name: str) -> None:
        """Take a channel away; frames that still wait for it are forgotten."""
        gone = session.subscriptions.pop(name, None)
        if gone is None:
            return
        self._listeners[name].pop(session, None)
        self._kernel.deadlines.clear(('stale', session, name))
        for conn in self._carriers(session):
            self._kernel.emit(DropFrames(conn, gone.channel_id))
        self._settle_demand(name, fresh=False)

    def readable(self, session: Session, name: str) -> WireFault | None:
        """Return why a session may not read a channel, or None (AWP-NEG-004)."""
        if name not in self._kernel.policy.channels:
            known = ', '.join(sorted(self._kernel.policy.channels))
            detail = f'channel {name!r} is not in the manifest; there are {known}'
            return WireFault(ErrorCode.CHANNEL_UNKNOWN, detail)
        if session.is_expired or name not in session.readable:
            detail = f'channel {name!r} belongs to no embodiment of this session'
            return WireFault(ErrorCode.FORBIDDEN, detail)
        if self._kernel.policy.channels[name].modality not in session.consumes:
            detail = f'modality of {name!r} is not in consumes_modalities'  # AWP-AGM-001
            return WireFault(ErrorCode.FORBIDDEN, detail)
        return None

    def resubscribe(self, session: Session, items: list[SubscribeItem]) -> None:
        """
        Add or re-rate channels, all or none (AWP-NEG-004).

        :raises WireFault: AWP_CHANNEL_UNKNOWN or AWP_FORBIDDEN.
        """
        for item in items:
            fault = self.readable(session, item.channel)
            if fault is not None:
                raise fault
        for item in items:
            self.subscribe(session, item.channel, item.rate_hz)

    def grants(self, session: Session) -> list[Json]:
        """Return the complete channel grant list of a session (AWP-NEG-001)."""
        return [
            {'channel': name, 'rate_hz': s.rate_hz, 'channel_id': s.channel_id}
            for name, s in session.subscriptions.items()
        ]

    def drop_all(self, session: Session) -> None:
        """Take every channel away: the session is over, or its grants are."""
        for name in list(session.subscriptions):
            self.unsubscribe(session, name)

    def adapt(self, session: Session, conn: Connection) -> None:
        """Keep to what the agent on a new connection consumes (AWP-AGM-001, AWP-AGM-002)."""
        session.consumes = conn.consumes
        session.max_obs_rate_hz = limit_hz = conn.max_obs_rate_hz
        for name, known in list(session.subscriptions.items()):
            if known.policy.modality not in conn.consumes:
                self.unsubscribe(session, name)
            elif limit_hz is not None:
                known.rate_hz = min(known.rate_hz, limit_hz)

    # ------------------------------------------------------------ demand

    def _restart(self, session: Session, known: Subscription) -> None:
        """Begin a channel: its newest sample is owed now, its outage counts from here."""
        known.is_fresh = True
        known.degraded = False
        known.delivered_ns = self._kernel.now_ns
        self._watch_staleness(session, known)
        self._kernel.later(lambda: self._ask_newest(known.policy, session))

    def _ask_newest(self, policy: ChannelPolicy, session: Session) -> None:
        """Ask for the newest sample, whatever the rate (AWP-OBS-005)."""
        if policy.id in session.subscriptions and session.conn is not None:
            self._settle_demand(policy.id, fresh=True)
            if policy.embodiment_state is not None:
                self._publish_state(policy)

    def _settle_demand(self, name: str, *, fresh: bool) -> None:
        listeners = self._listeners[name]
        rate = max((s.rate_hz for x, s in listeners.items() if x.conn is not None), default=0.0)
        before = self._demand.get(name, 0.0)
        self._demand[name] = rate
        policy = self._kernel.policy.channels[name]
        if policy.embodiment_state is not None:
            if rate > 0 and before == 0:
                self._kernel.deadlines.set(
                    ('state', name), self._kernel.now_ns, lambda: self._tick_state(policy)
                )
            elif rate == 0:
                self._kernel.deadlines.clear(('state', name))
        elif rate != before or fresh:
            wanted = max(rate, LOWEST_DEMAND_HZ) if rate else 0.0
            self._kernel.emit(SetChannelDemand(name, wanted, fresh))

    def attached(self, session: Session) -> None:
        """Resync: the session has a control connection again (AWP-TRN-008)."""
        session.stream = None
        session.streamed = False
        for known in session.subscriptions.values():
            known.resync = True
            self._restart(session, known)

    def detached(self, session: Session) -> None:
        """Drop the stream connection too: the control connection is lost (AWP-TRN-008)."""
        if session.stream is not None:
            self._kernel.emit(CloseConnection(session.stream, 1001, 'session suspended'))
            self._kernel.streams.pop(session.stream, None)
            session.stream = None
        for name in session.subscriptions:
            self._settle_demand(name, fresh=False)

    # ------------------------------------------------------------ stream connections

    def stream_opened(self, stream: int, session: Session | None) -> None:
        """Move every channel of the session to a stream connection (AWP-TRN-012)."""
        if session is None or session.conn is None:
            self._kernel.emit(CloseConnection(stream, 1008, 'no live session'))  # AWP-TRN-013
            return
        if session.stream is not None:
            self._kernel.streams.pop(session.stream, None)
            self._kernel.emit(CloseConnection(session.stream, 1000, 'replaced'))
        session.stream = stream
        session.streamed = True
        self._kernel.streams[stream] = session
        self._kernel.delivery.audit(session, 'agent', 'note', {'stream': 'opened'})
        for known in session.subscriptions.values():
            self._kernel.emit(DropFrames(session.conn.id, known.channel_id))
            known.resync = True
            known.is_fresh = True
            self._kernel.later(
                lambda p=known.policy: self._ask_newest(p, session)  # type: ignore[misc]
            )

    def stream_lost(self, stream: int) -> None:
        """Deliver nothing until the stream connection is made again (AWP-TRN-010)."""
        session = self._kernel.streams.pop(stream, None)
        if session is not None and session.stream == stream:
            session.stream = None
            self._kernel.delivery.audit(session, 'agent', 'note', {'stream': 'lost'})

    def stream_received(self, stream: int, data: str | bytes) -> None:
        """Check a message that goes nowhere: no command channel is granted."""
        if stream not in self._kernel.streams:
            return
        try:
            if isinstance(data, str):
                raise FrameFault('text on a stream connection')
            decode_binary(data)
        except FrameFault:
            self.stream_lost(stream)
            self._kernel.emit(CloseConnection(stream, 1002, 'AWP_MALFORMED'))  # AWP-TRN-013

    def _carriers(self, session: Session) -> list[int]:
        found = [session.stream] if session.stream is not None else []
        if session.conn is not None:
            found.append(session.conn.id)
        return found

    # ------------------------------------------------------------ frames

    def captured(self, name: str, sample: Sample) -> None:
        """Offer a new sample to every listener."""
        listeners = self._listeners.get(name)
        if listeners is None:
            return
        for session, known in listeners.items():
            self._offer(session, known, sample)

    def _offer(self, session: Session, known: Subscription, sample: Sample) -> None:
        conn = session.conn
        if conn is None:
            return
        if session.streamed and session.stream is None:
            return  # AWP-TRN-010
        if len(sample.payload) > self._kernel.policy.max_frame_bytes - FRAME_OVERHEAD:
            known.resync = True  # AWP-TRN-011: what is never sent leaves the channel stale
            return
        if not self._within_rate(known):
            return
        kernel = self._kernel
        if session.state is SessionState.READY:
            kernel.delivery.state(session, SessionState.ACTIVE, 'first_activity')
        now = session.clock.session_ns(kernel.now_ns)
        captured = session.clock.session_ns(sample.captured_ns)
        known.ts_mono_ns = min(max(captured, known.ts_mono_ns), now)  # AWP-CLK-001
        known.seq += 1
        flags = KEYFRAME | RESYNC if known.resync else KEYFRAME
        known.resync = False
        known.is_fresh = False
        kernel.emit(
            SendFrame(
                conn.id if session.stream is None else session.stream,
                session.stream is None,
                session.id,
                known.channel_id,
                known.seq,
                known.ts_mono_ns,
                flags,
                sample.payload,
                sample.sim_ns,
                known.policy.reliable,
                session.clock.zero_ns,
            )
        )

    def _within_rate(self, known: Subscription) -> bool:
        """Whether the granted rate leaves room for a frame now (AWP-DAT-003)."""
        now = self._kernel.now_ns
        burst = max(1.0, known.rate_hz * BURST_S)
        gained = (now - known.refilled_ns) * known.rate_hz * 1e-9
        known.allowance = min(burst, known.allowance + gained)
        known.refilled_ns = now
        if known.allowance < 0.9 and not known.is_fresh:
            return False
        known.allowance = max(known.allowance - 1.0, -1.0)
        return True

    def frame_sent(self, frame: SendFrame, sent_ns: int) -> None:
        """Count the latency of a frame that left, and its channel as delivered (AWP-TIM-006)."""
        session = self._kernel.sessions.get(frame.session_id)
        if session is None:
            return
        latency = sent_ns - frame.clock_zero_ns - frame.ts_mono_ns
        session.telemetry.frame(frame.channel_id, latency)
        if frame.reliable:
            for known in session.subscriptions.values():
                if known.channel_id == frame.channel_id:
                    known.delivered_ns = sent_ns
                    known.degraded = False
                    self._watch_staleness(session, known)

    def frames_dropped(self, conn: int, channel_id: int) -> None:
        """Mark the next frame of a channel whose frames the outbox gave up (AWP-DAT-009)."""
        found = self._kernel.streams.get(conn)
        control = self._kernel.connections.get(conn)
        session = found or (control.session if control else None)
        if session is None:
            return
        for known in session.subscriptions.values():
            if known.channel_id == channel_id:
                known.resync = True

    # ------------------------------------------------------------ degradation

    def _watch_staleness(self, session: Session, known: Subscription) -> None:
        if known.policy.reliable and not known.degraded:
            self._kernel.deadlines.set(
                ('stale', session, known.policy.id),
                known.delivered_ns + self._limit_ns(known),
                lambda: self._check_staleness(session, known),
            )

    @staticmethod
    def _limit_ns(known: Subscription) -> int:
        """Return the age from which a channel is stale; frames at a low rate are no outage."""
        return max(known.policy.stale_after_ns, int(2e9 / max(known.rate_hz, LOWEST_DEMAND_HZ)))

    def _check_staleness(self, session: Session, known: Subscription) -> None:
        """Report a reliable channel that could not be delivered for too long (AWP-SAF-009)."""
        limit_ns, age_ns = self._limit_ns(known), self._kernel.now_ns - known.delivered_ns
        if age_ns < limit_ns:  # a lower rate was granted meanwhile
            self._watch_staleness(session, known)
            return
        known.degraded = True
        known.resync = True
        detail = {
            'channel': known.policy.id,
            'age_ms': age_ns // 1_000_000,
            'stale_after_ms': limit_ns // 1_000_000,
        }
        self._kernel.delivery.event(session, 'channel_degraded', detail)

    # ------------------------------------------------------------ embodiment state

    def _tick_state(self, policy: ChannelPolicy) -> None:
        self._publish_state(policy)
        rate = self._demand.get(policy.id, 0.0)
        if rate > 0:
            self._kernel.deadlines.set(
                ('state', policy.id),
                self._kernel.now_ns + int(1e9 / policy.rate_hz),
                lambda: self._tick_state(policy),
            )

    def _publish_state(self, policy: ChannelPolicy) -> None:
        embodiment = self._kernel.embodiments[str(policy.embodiment_state)]
        running = next((g.running for g in embodiment.groups.values() if g.running), None)
        body: Json = {
            'embodiment': embodiment.id,
            'motion_permitted': embodiment.permits_motion,
            'in_safe_state': embodiment.in_safe_state,
            'at_rest': embodiment.at_rest,
            'action_id': running.id if running else None,
            'action_state': running.state.value if running else None,
            'progress': running.progress if running else None,
            'stops': [
                {'input': s.input_name, 'meaning': s.meaning.value, 'detail': s.detail}
                for s in embodiment.stops.values()
            ],
        }
        self.captured(policy.id, Sample(to_json(body), self._kernel.now_ns, None))
