"""
Owns what bridge and guardian say to each other: beats one way, answers the other.

Both are JSON in a std_msgs/String, written as CDR bytes by hand: twenty times a second a message
object would cost more than all the rest of an idle bridge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
import hashlib
from typing import Any

import orjson
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from awp_ros_bridge.ros.stop_report import as_text, StopReport

MS = 1_000_000

BEAT_TOPIC = 'guardian/beat'  # below the name of the bridge's node
NOTICE_TOPIC = 'guardian/notice'
ALIVE_TOPIC = 'guardian/alive'

BEAT_NS = 50 * MS
ALIVE_NS = 200 * MS
LOST_NS = 1_000 * MS  # without an answer the guardian counts as lost: four may be missed

# A beat is replaced by the next one, and acknowledging each costs both sides more than sending it.
BEAT_QOS = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE
)
# Which goal is about to be sent, and the goodbye, are said once. The newest few are kept, so a
# guardian that hangs holds nobody up.
NOTICE_QOS = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE
)
# An answer is replaced by the next one: what is lost need not be repeated.
ALIVE_QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE
)

_HEAD = b'\x00\x01\x00\x00'  # plain CDR, little-endian


class WordsUnreadable(ValueError):
    """Bytes that are none of our messages."""


class Kind(StrEnum):
    """What a message of the bridge means for the lease."""

    BEAT = 'beat'  # proves that loop, goals thread and safety thread turn: renews the lease
    GOALS = 'goals'  # says which goal is sent next, proves nothing
    GOODBYE = 'goodbye'  # the robot was stopped in order; there is nothing left to guard


@dataclass(frozen=True, slots=True)
class GuardedGoal:
    """
    A goal that must not outlive its bridge.

    :param goal_id: UUID as 32 hex digits.
    :param server: full name of the action, remapped.
    :param is_answered: False while the server has not answered the request.
    """

    goal_id: str
    server: str
    is_answered: bool


@dataclass(frozen=True, slots=True)
class Beat:
    """
    A message of the bridge: beats on one topic, what is said once on another.

    :param instance: name of this run of the bridge, 8 hex digits of its goal ids.
    :param seq: in the order of saying, over both topics.
    :param digest: of what both programs must agree on, see :func:`digest_of`.
    :param age_ms: how long ago the threads behind the beat were last seen to turn.
    :param streams: full names of the setpoint topics that are being published.
    """

    instance: str
    seq: int
    kind: Kind
    digest: str
    age_ms: int = 0
    goals: tuple[GuardedGoal, ...] = ()
    streams: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the message as it is published."""
        return _pack(
            {
                'instance': self.instance,
                'seq': self.seq,
                'kind': self.kind,
                'digest': self.digest,
                'age_ms': self.age_ms,
                'goals': [[g.goal_id, g.server, g.is_answered] for g in self.goals],
                'streams': self.streams,
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Beat:
        """
        Read a message.

        :raises WordsUnreadable: it is none
        """
        body = _unpack(data)
        try:
            return cls(
                as_text(body['instance']),
                int(body['seq']),
                Kind(body['kind']),
                as_text(body['digest']),
                max(0, int(body['age_ms'])),
                tuple(_goal(row) for row in body['goals']),
                tuple(as_text(topic) for topic in body['streams']),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WordsUnreadable(f'no beat of a bridge: {error}') from error


@dataclass(frozen=True, slots=True)
class Guarded:
    """
    What a guardian says of one bridge.

    :param seq: newest beat it heard.
    :param stops: how often it has stopped this bridge's robot.
    :param problem: why it cannot guard this bridge, empty where it does.
    """

    seq: int
    stops: int
    problem: str = ''


@dataclass(frozen=True, slots=True)
class Alive:
    """
    A message of the guardian.

    :param guardian: name of this run of the guardian.
    :param bridges: what it hears, by instance.
    :param is_ending: True in its last message.
    :param unreached: full names of the action servers that have not answered it yet, so that a
        cancel may not arrive there.
    :param stopped: its newest stops, the oldest first.
    """

    guardian: str
    bridges: dict[str, Guarded] = field(default_factory=dict)
    is_ending: bool = False
    unreached: frozenset[str] = frozenset()
    stopped: tuple[StopReport, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the message as it is published."""
        bridges = {name: [g.seq, g.stops, g.problem] for name, g in self.bridges.items()}
        return _pack(
            {
                'guardian': self.guardian,
                'bridges': bridges,
                'ending': self.is_ending,
                'unreached': sorted(self.unreached),
                'stopped': [report.to_row() for report in self.stopped],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Alive:
        """
        Read a message.

        :raises WordsUnreadable: it is none
        """
        body = _unpack(data)
        try:
            bridges = {
                as_text(name): Guarded(int(seq), int(stops), as_text(problem))
                for name, (seq, stops, problem) in body['bridges'].items()
            }
            unreached = frozenset(as_text(name) for name in body['unreached'])
            stopped = tuple(StopReport.from_row(row) for row in body['stopped'])
            is_ending = body['ending'] is True
            return cls(as_text(body['guardian']), bridges, is_ending, unreached, stopped)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise WordsUnreadable(f'no answer of a guardian: {error}') from error


def digest_of(servers: Iterable[str], lease_ms: int) -> str:
    """
    Return a word for what bridge and guardian must agree on; another one means another robot.

    :param servers: full names of the action servers, remapped.
    """
    text = '\n'.join([*sorted(set(servers)), str(lease_ms)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _goal(row: Any) -> GuardedGoal:
    goal_id, server, is_answered = row
    if len(bytes.fromhex(goal_id)) != 16:
        raise ValueError(f'{goal_id!r} is no goal id')
    return GuardedGoal(goal_id, as_text(server), is_answered is True)


def _pack(body: dict[str, Any]) -> bytes:
    text = orjson.dumps(body) + b'\x00'
    return _HEAD + len(text).to_bytes(4, 'little') + text


def _unpack(data: bytes) -> dict[str, Any]:
    order = 'little' if data[1:2] == b'\x01' else 'big'
    length = int.from_bytes(data[4:8], order)  # type: ignore[arg-type]
    try:
        body = orjson.loads(data[8 : 8 + length].rstrip(b'\x00'))
    except orjson.JSONDecodeError as error:
        raise WordsUnreadable(f'no JSON: {error}') from error
    if not isinstance(body, dict):
        raise WordsUnreadable('no JSON object')
    return body
