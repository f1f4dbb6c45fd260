"""
Owns the params of every method that an agent sends, and what makes two submissions the same.

Each model accepts exactly what the canonical schema of the method accepts. An array becomes a
tuple, and None stands for a field that was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
import json
import re
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator, ValidationError
from pydantic_core import ErrorDetails

from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.fields import (
    AdminOperation,
    Array,
    ChannelKey,
    Count,
    Extensions,
    I53,
    Identifier,
    Maybe,
    NonEmpty,
    Positive,
    PreemptionPolicy,
    ProtocolVersion,
    Received,
    ShortText,
    SMALL_OBJECT,
    Text,
    TimeModel,
    TransferMs,
    U53,
    UniqueArray,
    UniqueNonEmpty,
    UniqueTwoOrMore,
)
from awp_ros_bridge.wire.manifest import WorldManifest

__all__ = [
    'PARAMS',
    'SUBMIT_FIELDS',
    'ActionRefParams',
    'ActionSubmitParams',
    'AgentInfo',
    'ChannelReport',
    'ClockSync',
    'ContentBlock',
    'EmptyParams',
    'InitializeParams',
    'LatencyStats',
    'ObsReportParams',
    'PingParams',
    'ResetParams',
    'SessionOpenParams',
    'SessionResumeParams',
    'SessionStatusParams',
    'SessionTransferParams',
    'SubscribeItem',
    'SubscribeParams',
    'Task',
    'UnsubscribeParams',
    'WorldManifest',
    'parse_as',
    'parse_params',
    'same_content',
]

Json = dict[str, Any]
M = TypeVar('M', bound=BaseModel)

_SHOWN_CHARS = 80
_SHOWN_PROBLEMS = 3


class EmptyParams(Received):
    """Params of ``world.manifest`` and ``session.close``: nothing."""


class AgentInfo(Received):
    """Who connects."""

    name: Text
    version: Text
    vendor: Text


class InitializeParams(Received):
    """The agent manifest (AWP-VER-002, AWP-AGM-001, AWP-AGM-002)."""

    protocol_versions: UniqueNonEmpty[ProtocolVersion]
    agent: AgentInfo
    consumes_modalities: UniqueNonEmpty[Text]
    time_models: UniqueNonEmpty[TimeModel] = ('lockstep', 'streaming')
    max_obs_rate_hz: Maybe[Positive] = None
    extensions: Maybe[Extensions] = None


class PingParams(Received):
    """
    A heartbeat (AWP-CLK-007).

    :param last_status_seq: highest ``status_seq`` the agent has processed (AWP-CTL-010).
    """

    origin_ns: U53
    last_status_seq: Maybe[U53] = None


class SubscribeItem(Received):
    """One channel that an agent wants, at most this fast."""

    channel: Identifier
    rate_hz: Maybe[Positive] = None


class ContentBlock(Received):
    """One block of a task (AWP-TSK-002); what a type other than ``text`` carries is kept."""

    model_config = ConfigDict(extra='allow')

    type: Text
    text: Any = None

    @model_validator(mode='after')
    def _check_text(self) -> Self:
        if self.type == 'text' and not isinstance(self.text, str):
            raise ValueError("a block of type 'text' needs a string 'text'")
        return self


class Task(Received):
    """What the session is for, in the agent's words."""

    content: NonEmpty[ContentBlock]


class SessionOpenParams(Received):
    """What an agent asks for when it opens a session; without embodiment it observes."""

    mode: TimeModel
    embodiment: Maybe[Identifier] = None
    embodiments: Maybe[UniqueTwoOrMore[Identifier]] = None
    subscribe: Maybe[Array[SubscribeItem]] = None
    action_types: Maybe[UniqueArray[Identifier]] = None
    admin: Maybe[UniqueArray[AdminOperation]] = None
    seed: Maybe[U53] = None
    takeover: Maybe[bool] = None
    transfer_token: Maybe[Text] = None
    task: Maybe[Task] = None
    extensions: Maybe[Extensions] = None

    @model_validator(mode='after')
    def _check_fields_together(self) -> Self:
        if self.embodiment is not None and self.embodiments is not None:  # AWP-EMB-005
            raise ValueError("'embodiment' and 'embodiments' exclude each other")
        if self.takeover is not None and self.transfer_token is None:  # AWP-EMB-003
            raise ValueError("'takeover' needs 'transfer_token'")
        return self


class SessionResumeParams(Received):
    """Takes up a suspended session (AWP-CTL-008)."""

    session_token: Text
    last_status_seq: U53


class SessionTransferParams(Received):
    """Mints a transfer token (AWP-EMB-003)."""

    expires_in_ms: TransferMs = 30_000


class SessionStatusParams(Received):
    """
    Asks about any session (the session status query, not part of AWP).

    :param meta: whatever the asker's protocol adds; nothing here reads it. Null is the same as
        leaving it out, as everywhere in that protocol.
    """

    session_id: str = Field(alias='sessionId')
    meta: Json | None = Field(default=None, alias='_meta')


class SubscribeParams(Received):
    """Adds or re-rates channels (AWP-NEG-004)."""

    channels: NonEmpty[SubscribeItem]


class UnsubscribeParams(Received):
    """Removes channels (AWP-NEG-004)."""

    channels: UniqueNonEmpty[Identifier]


class ClockSync(Received):
    """The agent's estimate of the clock offset (AWP-CLK-008)."""

    offset_ns: I53
    rtt_ns: U53
    samples: Maybe[U53] = None


class LatencyStats(Received):
    """Distribution of a latency over a window, in nanoseconds."""

    count: U53
    p50: U53
    p95: U53
    max: Maybe[U53] = None


class ChannelReport(Received):
    """What an agent received on one channel."""

    frames: U53
    gaps: U53
    jitter_ns: Maybe[U53] = None
    staleness_ns: Maybe[LatencyStats] = None


class ObsReportParams(Received):
    """
    A receiver report (AWP-OBS-007).

    :param channels: by the decimal ``channel_id``.
    """

    window_ms: Count
    sync: ClockSync
    channels: Annotated[dict[ChannelKey, ChannelReport], SMALL_OBJECT]
    decision_latency_ns: Maybe[LatencyStats] = None


class ActionSubmitParams(Received):
    """One submitted action; ``params`` is the type's own affair (AWP-ACT-002)."""

    action_id: ShortText
    type: Identifier
    params: Json
    embodiment_id: Maybe[Identifier] = None
    preempt: Maybe[PreemptionPolicy] = None
    deadline_ms: Maybe[Count] = None
    basis_ts_mono_ns: Maybe[U53] = None
    valid_until_ns: Maybe[U53] = None


class ActionRefParams(Received):
    """Params of ``action.cancel`` and the status pull ``action.status``."""

    action_id: ShortText


class ResetParams(Received):
    """Where to reset a simulated world to (AWP-SIM-001)."""

    initial_state: Maybe[Identifier] = None
    seed: Maybe[U53] = None


PARAMS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        'initialize': InitializeParams,
        'world.manifest': EmptyParams,
        'ping': PingParams,
        'session.open': SessionOpenParams,
        'session.resume': SessionResumeParams,
        'session.close': EmptyParams,
        'session.transfer': SessionTransferParams,
        'session/status': SessionStatusParams,
        'obs.subscribe': SubscribeParams,
        'obs.unsubscribe': UnsubscribeParams,
        'obs.report': ObsReportParams,
        'action.submit': ActionSubmitParams,
        'action.cancel': ActionRefParams,
        'action.status': ActionRefParams,
        'world.reset': ResetParams,
    }
)


def parse_params(method: str, params: Json) -> Any:
    """
    Read the params of a method.

    :return: an instance of ``PARAMS[method]``.
    :raises WireFault: METHOD_NOT_FOUND, or INVALID_PARAMS naming path, value and expectation.
    """
    model = PARAMS.get(method)
    if model is None:
        raise WireFault(ErrorCode.METHOD_NOT_FOUND, f'no method {_shown(method)}')  # AWP-CTL-002
    return parse_as(model, params)


def parse_as(model: type[M], params: Json) -> M:
    """
    Read params of a known shape.

    :raises WireFault: INVALID_PARAMS naming path, value and expectation.
    """
    try:
        return model.model_validate(params)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    texts = [_problem(problem) for problem in problems[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        texts.append(f'and {len(problems) - _SHOWN_PROBLEMS} more')
    raise WireFault(ErrorCode.INVALID_PARAMS, '; '.join(texts))


# What pydantic words in the terms of Python.
_EXPECTED = {
    'dict_type': 'must be an object',
    'model_type': 'must be an object',
    'string_type': 'must be a string',
    'int_type': 'must be an integer',
    'float_type': 'must be a number',
    'bool_type': 'must be true or false',
}
_SUBJECT = re.compile('^(Input|String|Tuple) should ')


def _problem(problem: ErrorDetails) -> str:
    path = _path(problem['loc'])
    if problem['type'] == 'missing':
        return f'{path} is missing'
    expected = _EXPECTED.get(problem['type'], problem['msg']).removeprefix('Value error, ')
    expected = _SUBJECT.sub('must ', expected).replace(' after validation', '')
    if not problem['loc']:
        return expected
    is_secret = any(isinstance(part, str) and 'token' in part for part in problem['loc'])
    value = 'refused' if is_secret else _shown(problem['input'])  # AWP-AUD-006
    return f'{path} is {value}: {expected}'


def _path(loc: tuple[int | str, ...]) -> str:
    path = ''
    for part in loc:
        if isinstance(part, int):
            path += f'[{part}]'
        elif part != '[key]':
            name = part if part.isidentifier() and len(part) <= 40 else _shown(part)
            path += f'.{name}' if path else name
    return path


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return 'an object'
    if isinstance(value, list | tuple) and len(value) > _SHOWN_CHARS:
        return f'an array of {len(value)} items'
    text = json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + '...'


# ---------------------------------------------------------------- identical content

# AWP-ACT-001: what a resubmission with the same action_id must repeat.
SUBMIT_FIELDS = (
    'type',
    'params',
    'embodiment_id',
    'preempt',
    'deadline_ms',
    'basis_ts_mono_ns',
    'valid_until_ns',
)


def same_content(a: Json, b: Json) -> bool:
    """Return whether two ``action.submit`` params, as received, are one submission."""
    # AWP-ACT-009: each field absent from both, or present in both with equal JSON values
    return all(
        (name in a) == (name in b) and _equal(a.get(name), b.get(name)) for name in SUBMIT_FIELDS
    )


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(value, b[name]) for name, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)
