"""Owns messages of every method with parts that do not belong there, and bytes that are none."""

from __future__ import annotations

from copy import deepcopy
import json
import struct
from typing import Any

from agent_words import hello
from bad_messages import POSE, TRAJECTORY
from hypothesis import strategies as st
from rude_clients import frame

Json = dict[str, Any]

# Every method with params that are right; nothing here holds the arm.
METHODS: dict[str, Json] = {
    'initialize': hello('hostile'),
    'ping': {'origin_ns': 1, 'last_status_seq': 1},
    'world.manifest': {},
    'world.reset': {'initial_state': 'home'},
    'session.open': {
        'mode': 'streaming',
        'subscribe': [{'channel': 'proprio', 'rate_hz': 5}],
        'action_types': ['move_to_pose'],
        'extensions': {},
        'task': {'content': [{'type': 'text', 'text': 'x'}]},
    },
    'session.resume': {'session_token': 'nobody', 'last_status_seq': 0},
    'session.close': {},
    'session.transfer': {'expires_in_ms': 1000},
    'session/status': {'sessionId': 'nobody', '_meta': {}},
    'obs.subscribe': {'channels': [{'channel': 'proprio', 'rate_hz': 5}]},
    'obs.unsubscribe': {'channels': ['proprio']},
    'obs.report': {
        'window_ms': 5000,
        'sync': {'offset_ns': 1, 'rtt_ns': 1, 'samples': 3},
        'channels': {'1': {'frames': 1, 'gaps': 0}},
    },
    'action.submit': {'action_id': 'a', 'type': 'move_to_pose', 'params': POSE},
    'action.cancel': {'action_id': 'a'},
    'action.status': {'action_id': 'a'},
    'no.such': {},
}
SUBMISSIONS: dict[str, Json] = {'move_to_pose': POSE, 'follow_joint_trajectory': TRAJECTORY}

_SAFE = 2**53 - 1  # beyond it the connection ends with 1002, as another test holds
_WORDS = [
    '', ' ', 'a', 'a' * 129, '€' * 128, 'a/b', '/', '..', '0.1', 'x-acme.foo', 'streaming',
    'lockstep', 'base', 'world', 'joint_1', 'proprio', 'gripper_state', 'replace', 'queue',
    'null', 'NaN', '\x00', '\x1b[2J', '\r\n', '{}', '%s', '$(x)', '\U0001f916', 'x' * 70_000,
]  # fmt: skip
_SMALL: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 0.5, -0.0, 1e-300, 1e300, _SAFE, -_SAFE, [], {}, *_WORDS]
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SMALL | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(_WORDS[:14]), inner, max_size=4),
    max_leaves=8,
)


def _containers(node: Any) -> list[Any]:
    below = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    found = [inner for value in below for inner in _containers(value)]
    return [node, *found] if below else found


@st.composite
def mutated(draw: st.DrawFn, document: Json) -> Json:
    """Give a document in which one to three places are not what they were."""
    made = deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = _containers(made)
        if not places:
            return {draw(st.sampled_from(_WORDS)): draw(_VALUES)}
        node = draw(st.sampled_from(places))
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        match draw(st.sampled_from(['set', 'set', 'remove', 'add'])):
            case 'set':
                node[key] = draw(_VALUES)
            case 'remove':
                del node[key]
            case _ if isinstance(node, dict):
                node[draw(st.sampled_from(_WORDS))] = draw(_VALUES)
            case _:
                node.append(draw(_VALUES))
    return made


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, Any]:
    """Give a method and params for it, or something in their place."""
    method = draw(st.sampled_from(sorted(METHODS)))
    params = draw(mutated(METHODS[method]) | _VALUES | st.just(METHODS[method]))
    return method, params


@st.composite
def submissions(draw: st.DrawFn) -> tuple[str, Json]:
    """Give an action type and params of it that are wrong somewhere, or only look so."""
    kind = draw(st.sampled_from(sorted(SUBMISSIONS)))
    return kind, draw(mutated(SUBMISSIONS[kind]))


# What follows a handshake, cut into frames or not.
_HEADS = st.builds(
    lambda first, size, masked: bytes([first, size | masked]),
    st.integers(0, 255),
    st.integers(0, 127),
    st.sampled_from([0, 0x80]),
)
_HUGE = st.builds(
    lambda first, size: bytes([first, 0xFF]) + struct.pack('!Q', size) + b'mask',
    st.sampled_from([0x81, 0x82, 0x01]),
    st.sampled_from([2**20 + 1, 2**31, 2**62, 2**64 - 1]),
)
_TEXTS = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=20).map(str.encode),
    requests().map(
        lambda r: json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': r[0], 'params': r[1]}).encode()
    ),
)
_FRAMES = st.builds(
    lambda payload, opcode, fin: frame(payload, opcode, fin=fin),
    _TEXTS,
    st.sampled_from([0, 1, 1, 1, 2, 3, 7, 8, 9, 10, 11, 15]),
    st.booleans(),
)
BYTES = st.lists(st.one_of(_FRAMES, _HEADS, _HUGE, st.binary(max_size=100)), min_size=1).map(
    b''.join
)
