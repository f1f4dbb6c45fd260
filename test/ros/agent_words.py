"""Owns what agents of the tests say and how strictly they read what they hear."""

from __future__ import annotations

import base64
from dataclasses import dataclass
import json
from typing import Any

Json = dict[str, Any]

MODALITIES = ('proprio/json', 'text/event+json')
TERMINAL = frozenset({'completed', 'failed', 'cancelled', 'preempted', 'rejected'})
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class Refused(Exception):
    """An error reply to a request."""

    def __init__(self, error: Json) -> None:
        super().__init__(json.dumps(error))
        self.code: int = error['code']
        self.data: Json = error['data']
        self.detail: str = error['data']['detail']

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return bool(self.data['retryable'])


@dataclass(frozen=True, slots=True)
class Heard:
    """
    One message and when it was heard.

    :param at_ns: steady time.
    """

    at_ns: int
    body: Json

    @property
    def method(self) -> str:
        """Name what it tells."""
        return str(self.body.get('method'))

    @property
    def params(self) -> Json:
        """Give what it says."""
        params: Json = self.body.get('params', {})
        return params


def hello(name: str = 'tester') -> Json:
    """Return the params of initialize."""
    return {
        'protocol_versions': ['0.1'],
        'agent': {'name': name, 'version': '1', 'vendor': 'tests'},
        'consumes_modalities': list(MODALITIES),
    }


def to_pose(x: float, y: float, z: float, **more: Any) -> Json:
    """Return the params of a move of the tip to a place in ``base``."""
    pose = {'frame': 'base', 'p_m': [x, y, z], 'q': list(UPRIGHT)}
    return {'pose': pose, **more}


def strict_json(text: str) -> Json:
    """
    Decode an object as a strict parser does.

    :raises ValueError: a constant that JSON does not have, or a member that stands twice
    """

    def no_constant(word: str) -> Any:
        raise ValueError(f'{word} is not JSON')

    def no_twice(pairs: list[tuple[str, Any]]) -> Json:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise ValueError(f'a member stands twice in {[name for name, _ in pairs]}')
        return made

    body = json.loads(text, parse_constant=no_constant, object_pairs_hook=no_twice)
    assert isinstance(body, dict), 'a message is an object'
    return body


def judge_error(error: Json) -> None:
    """Check the form that every error has (AWP-ERR-001)."""
    assert isinstance(error['code'], int), error
    assert isinstance(error['message'], str), error
    data = error['data']
    assert isinstance(data['retryable'], bool), error
    assert isinstance(data['detail'], str), error
    assert data['detail'], error


def payload(frame: Heard) -> Json:
    """Decode what an inline frame carries."""
    return strict_json(base64.b64decode(frame.params['payload_b64']).decode())
