"""
Owns the way from text to JSON-RPC messages and back (AWP-CTL-001).

Decoding is strict and its cost is linear in the size of the text: one pass of the parser, which
gives up at 200 levels, and one pass over what it made.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
import math
from typing import Any

from pydantic_core import from_json, to_json

from awp_ros_bridge.wire.errors import ErrorCode, WireFault

Json = dict[str, Any]

MAX_SAFE_INT = 2**53 - 1
MAX_CONTAINERS = 20_000  # objects and arrays of a message; a trajectory has some thousands

_MANY = 64  # values of one container from which asking for their types pays
_NUMBERS = frozenset({int, float})
_SCALARS = frozenset({int, float, str, bool, type(None)})
_NUMBER_TOO_LONG = 'out of range'  # the parser's words for a number of more than 4300 digits


@dataclass(frozen=True, slots=True)
class Request:
    """A call that wants an answer."""

    id: int | str
    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Notification:
    """A call that must not be answered."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Response:
    """
    The answer to a request of ours.

    :param id: of the request; None in an error about a message that the peer could not read.
    :param error: the error object, with an integer ``code`` and a string ``message``; None where
        the request succeeded.
    """

    id: int | str | None
    result: Any | None
    error: Json | None


Message = Request | Notification | Response


class DecodeFault(WireFault):
    """
    A text that is no message.

    :param request_id: id to answer with, None where none can be read.
    :param is_answerable: False for a notification or a response, which JSON-RPC forbids to answer.
    """

    def __init__(
        self,
        code: ErrorCode,
        detail: str,
        *,
        request_id: int | str | None = None,
        is_answerable: bool = True,
    ) -> None:
        super().__init__(code, detail)
        self.request_id = request_id
        self.is_answerable = is_answerable


def decode(text: str | bytes, *, max_depth: int = 64) -> Message:
    """
    Read one message.

    :param max_depth: levels of objects and arrays, the message itself included; more than 200 are
        refused in any case.
    :raises DecodeFault: with PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS or INTEGER_RANGE.
    """
    value = _parse(text)
    if isinstance(value, list):
        raise DecodeFault(ErrorCode.INVALID_REQUEST, 'batches are not used')  # AWP-CTL-006
    if not isinstance(value, dict):
        raise DecodeFault(
            ErrorCode.INVALID_REQUEST, f'a message is a JSON object, not {_kind(value)}'
        )
    problem = _content_problem(value, max_depth)
    message = problem or _message(value)
    if isinstance(message, Request | Notification | Response):
        return message
    code, detail = message
    raise DecodeFault(
        code,
        detail,
        request_id=_usable_id(value.get('id')),
        is_answerable=_is_answerable(value),
    )


def _parse(text: str | bytes) -> Any:
    try:
        data = text.encode() if isinstance(text, str) else text
        if data.count(b'[') + data.count(b'{') > MAX_CONTAINERS:  # making them takes long
            detail = f'more than {MAX_CONTAINERS} objects and arrays'
            raise DecodeFault(ErrorCode.PARSE_ERROR, detail)
        return from_json(data, allow_inf_nan=False)
    except UnicodeEncodeError:
        raise DecodeFault(ErrorCode.PARSE_ERROR, 'lone surrogate in the text') from None
    except ValueError as error:
        code = ErrorCode.PARSE_ERROR
        if _NUMBER_TOO_LONG in str(error):
            code = ErrorCode.INTEGER_RANGE  # AWP-CTL-009
        raise DecodeFault(code, f'not JSON: {error}') from None


_Problem = tuple[ErrorCode, str]


def _content_problem(message: Json, max_depth: int) -> _Problem | None:
    """Walk level by level and return what no part of any message may be."""
    level: list[Any] = [message]
    depth = 1
    while level:
        if depth > max_depth:
            return ErrorCode.PARSE_ERROR, f'nested deeper than {max_depth} levels'
        below: list[Any] = []
        for container in level:
            for value in _suspects(container):
                kind = type(value)
                if kind is int:
                    if not -MAX_SAFE_INT <= value <= MAX_SAFE_INT:  # AWP-CTL-009
                        return ErrorCode.INTEGER_RANGE, f'{_number(value)} is beyond ±(2^53-1)'
                elif kind is float:
                    if not math.isfinite(value):
                        return ErrorCode.PARSE_ERROR, 'number beyond the range of a double'
                elif kind is dict or kind is list:
                    below.append(value)
        level = below
        depth += 1
    return None


def _suspects(container: Json | list[Any]) -> Collection[Any]:
    """Return the values of a container, none where many were found good in one look."""
    values = container.values() if type(container) is dict else container
    return () if len(values) > _MANY and _all_usual(values) else values


def _all_usual(values: Collection[Any]) -> bool:
    """
    Tell whether values are scalars that any message may hold, in a fraction of a loop's time.

    False means that somebody must look at each of them.
    """
    kinds = set(map(type, values))
    if not kinds <= _SCALARS:
        return False
    if not kinds & {int, float}:
        return True
    numbers = values if kinds <= _NUMBERS else [v for v in values if type(v) in _NUMBERS]
    if not (max(numbers) <= MAX_SAFE_INT and min(numbers) >= -MAX_SAFE_INT):
        return False
    return float not in kinds or all(map(math.isfinite, numbers))


def _message(value: Json) -> Message | _Problem:
    if value.get('jsonrpc') != '2.0':
        return ErrorCode.INVALID_REQUEST, "'jsonrpc' must be '2.0'"
    if 'id' in value and _usable_id(value['id']) is None and not _is_error_without_id(value):
        kind = _kind(value['id'])
        return ErrorCode.INVALID_REQUEST, f"'id' must be a string or an integer, not {kind}"
    if 'method' not in value:
        return _response(value)
    method = value['method']
    if not isinstance(method, str):
        return ErrorCode.INVALID_REQUEST, f"'method' must be a string, not {_kind(method)}"
    params = value.get('params', {})
    if not isinstance(params, dict):
        return ErrorCode.INVALID_PARAMS, f"'params' must be an object, not {_kind(params)}"
    if 'id' in value:
        return Request(value['id'], method, params)
    return Notification(method, params)


def _response(value: Json) -> Response | _Problem:
    if 'result' not in value and 'error' not in value:
        return ErrorCode.INVALID_REQUEST, "neither 'method' nor 'result' nor 'error'"
    if 'id' not in value:
        return ErrorCode.INVALID_REQUEST, "a response without 'id'"
    if 'error' not in value:
        return Response(value['id'], value['result'], None)
    error = value['error']
    if 'result' in value or not _is_error_object(error):
        return (
            ErrorCode.INVALID_REQUEST,
            "a response has either 'result' or an 'error' with an integer code and a message",
        )
    return Response(value['id'], None, error)


def _is_error_object(error: Any) -> bool:
    return (
        isinstance(error, dict)
        and type(error.get('code')) is int
        and isinstance(error.get('message'), str)
    )


def _is_error_without_id(value: Json) -> bool:
    """Return whether the peer says that it could not read a message of ours."""
    return value['id'] is None and 'method' not in value and 'error' in value


def _is_answerable(value: Json) -> bool:
    if 'method' not in value:
        return 'result' not in value and 'error' not in value
    is_notification = (
        'id' not in value and isinstance(value['method'], str) and value.get('jsonrpc') == '2.0'
    )
    return not is_notification


def _usable_id(value: Any) -> int | str | None:
    if isinstance(value, str):
        return value
    if type(value) is int and -MAX_SAFE_INT <= value <= MAX_SAFE_INT:
        return value
    return None


def _number(value: int) -> str:
    bits = value.bit_length()
    return str(value) if bits <= 64 else f'an integer of {bits} bits'


_KINDS: dict[type, str] = {
    dict: 'an object',
    list: 'an array',
    str: 'a string',
    bool: 'a boolean',
    int: 'a number',
    float: 'a number',
}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), 'null')


def encode(message: Json) -> str:
    """
    Write one message as compact JSON.

    Integers are written as they are: that they stay within ±(2^53-1) is up to who counts them.

    :raises ValueError: a number that is not finite, a lone surrogate, or an object that JSON has
        no form for; the fault is ours.
    """
    data = to_json(message, inf_nan_mode='constants')
    if b'NaN' in data or b'Infinity' in data:
        _refuse_non_finite(message)  # the words may also stand in a string
    return data.decode()


def _refuse_non_finite(message: Json) -> None:
    rest: list[Any] = [message]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest.extend(value.values())
        elif isinstance(value, list | tuple):
            rest.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f'{value} has no form in JSON')


def request(id: int | str, method: str, params: Json) -> Json:  # noqa: A002
    """Build a request."""
    return {'jsonrpc': '2.0', 'id': id, 'method': method, 'params': params}


def notification(method: str, params: Json) -> Json:
    """Build a notification."""
    return {'jsonrpc': '2.0', 'method': method, 'params': params}


def result(id: int | str, result: Any) -> Json:  # noqa: A002
    """Build the answer to a request that succeeded."""
    return {'jsonrpc': '2.0', 'id': id, 'result': result}


def error(id: int | str | None, fault: WireFault) -> Json:  # noqa: A002
    """Build the answer to a request that failed; id is None where none could be read."""
    return {'jsonrpc': '2.0', 'id': id, 'error': fault.error_object()}
