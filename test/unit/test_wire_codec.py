"""From text to message and back: every refusal, and what is spared."""

import json
import time
from typing import Any

import pytest

from awp_ros_bridge.wire import codec
from awp_ros_bridge.wire.codec import (
    decode,
    DecodeFault,
    encode,
    MAX_SAFE_INT,
    Notification,
    Request,
    Response,
)
from awp_ros_bridge.wire.errors import ErrorCode, WireFault

REQUEST = {'jsonrpc': '2.0', 'id': 1, 'method': 'ping', 'params': {}}


def request(**changes: Any) -> str:
    return json.dumps({**REQUEST, **changes})


def fault(text: str | bytes, **options: Any) -> DecodeFault:
    with pytest.raises(DecodeFault) as caught:
        decode(text, **options)
    return caught.value


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize('id_', [0, -1, MAX_SAFE_INT, -MAX_SAFE_INT, '', 'a', 'ä', '1'])
def test_request(id_: int | str) -> None:
    assert decode(request(id=id_)) == Request(id_, 'ping', {})


def test_bytes_are_read_like_text() -> None:
    assert decode(request().encode()) == decode(request())


def test_params_may_be_left_out() -> None:
    assert decode('{"jsonrpc":"2.0","id":1,"method":"m"}') == Request(1, 'm', {})
    assert decode('{"jsonrpc":"2.0","method":"m"}') == Notification('m', {})


def test_unknown_members_are_ignored() -> None:
    assert decode(request(extra={'a': [1]}, result=3)) == Request(1, 'ping', {})


def test_responses() -> None:
    assert decode('{"jsonrpc":"2.0","id":"w1","result":null}') == Response('w1', None, None)
    error = {'code': -32601, 'message': 'no'}
    text = json.dumps({'jsonrpc': '2.0', 'id': 7, 'error': error})
    assert decode(text) == Response(7, None, error)


def test_an_error_about_an_unreadable_message_has_no_id() -> None:
    error = {'code': -32700, 'message': 'Parse error'}
    text = json.dumps({'jsonrpc': '2.0', 'id': None, 'error': error})
    assert decode(text) == Response(None, None, error)


@pytest.mark.parametrize('number', ['1e308', '-1e308', '1e-400', '9007199254740991', '1e16'])
def test_finite_numbers_are_fine(number: str) -> None:
    message = decode(request(params={'x': 0}).replace('"x": 0', f'"x": {number}'))
    assert isinstance(message, Request)
    assert message.params['x'] == float(number)


def test_integers_stay_integers() -> None:
    message = decode(request(params={'x': [1, 1.0, True]}))
    assert isinstance(message, Request)
    assert list(map(type, message.params['x'])) == [int, float, bool]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    'text',
    [
        '',
        'x',
        '{',
        '{}x',
        "{'a':1}",
        '{"a":1,}',
        '// {}',
        '\ufeff{}',
        b'{"a":"\xff"}',
        b'\xff\xfe{\x00}\x00',
        '{"a":"\ud800"}',
        r'{"a":"\ud800"}',
        r'{"a":"\udc00\ud800"}',
        r'{"\udfff":1}',
        '{"a":"\n"}',
        '{"a":01}',
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":[-1e999]}',
    ],
)
def test_broken_json(text: str | bytes) -> None:
    broken = fault(text)
    assert broken.code is ErrorCode.PARSE_ERROR
    assert broken.request_id is None


@pytest.mark.parametrize('opening', ['{', '[', '{"a":', '[[{"a":', ' '])
def test_ten_megabytes_of_nothing_are_refused_quickly(opening: str) -> None:
    text = opening * (10_000_000 // len(opening))
    start = time.process_time()
    assert fault(text).code is ErrorCode.PARSE_ERROR
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize('entry', ['[]', '{}', '[[[[[[]]]]]]', '{"a":[]}'])
def test_a_megabyte_of_objects_and_arrays_is_refused_before_they_are_made(entry: str) -> None:
    entries = ','.join([entry] * (1_000_000 // (len(entry) + 1)))
    text = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":[{entries}]}}}}'
    start = time.thread_time()
    broken = fault(text)
    assert time.thread_time() - start < 0.05
    assert broken.code is ErrorCode.PARSE_ERROR
    assert '20000' in broken.detail


def test_a_trajectory_of_a_thousand_points_is_not_too_much() -> None:
    point = {'a': [0.1] * 7, 'b': [0.0] * 7, 'c': [0.0] * 7}
    message = decode(request(params={'points': [point] * 1000}))
    assert isinstance(message, Request)


@pytest.mark.parametrize('depth', [65, 199, 201, 10_000, 100_000])
def test_nesting_too_deep(depth: int) -> None:
    params = '{"a":' + '[' * (depth - 2) + ']' * (depth - 2) + '}'
    text = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}'
    assert fault(text).code is ErrorCode.PARSE_ERROR


def test_the_message_itself_is_the_first_level() -> None:
    text = request(params={'a': {}})
    assert isinstance(decode(text, max_depth=3), Request)
    deep = fault(text, max_depth=2)
    assert deep.detail == 'nested deeper than 2 levels'
    assert deep.request_id == 1


def test_as_deep_as_permitted() -> None:
    text = '{"jsonrpc":"2.0","method":"m","params":{"a":' + '[' * 62 + ']' * 62 + '}}'
    assert isinstance(decode(text), Notification)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('[]', 'batches'),
        (f'[{request()}]', 'batches'),
        ('1', 'a number'),
        ('"a"', 'a string'),
        ('true', 'a boolean'),
        ('null', 'null'),
        ('{}', "'jsonrpc'"),
        (request(jsonrpc='1.0'), "'jsonrpc'"),
        (request(jsonrpc=2.0), "'jsonrpc'"),
        (request(id=None), 'not null'),
        (request(id=True), 'not a boolean'),
        (request(id=1.0), 'not a number'),
        (request(id={}), 'not an object'),
        (request(id=[]), 'not an array'),
        (request(method=None), "'method' must be a string, not null"),
        (request(method=1), "'method' must be a string, not a number"),
        ('{"jsonrpc":"2.0","id":1}', 'neither'),
        ('{"jsonrpc":"2.0"}', 'neither'),
        ('{"jsonrpc":"2.0","result":1}', "without 'id'"),
        ('{"jsonrpc":"2.0","id":null,"result":1}', 'not null'),
        ('{"jsonrpc":"2.0","id":1.5,"result":1}', 'not a number'),
        ('{"jsonrpc":"2.0","id":1,"error":null}', 'either'),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":1}}', 'either'),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"m"}}', 'either'),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"result":1}', 'either'),
    ],
)
def test_no_message(text: str, words: str) -> None:
    invalid = fault(text)
    assert invalid.code is ErrorCode.INVALID_REQUEST
    assert words in invalid.detail


@pytest.mark.parametrize('params', [None, [], [1], 'a', 1, True])
def test_params_are_an_object(params: Any) -> None:
    invalid = fault(request(params=params))
    assert invalid.code is ErrorCode.INVALID_PARAMS
    assert invalid.request_id == 1


@pytest.mark.parametrize('number', [2**53, -(2**53), 2**60, 2**64, 2**70, 10**400, -(10**4000)])
@pytest.mark.parametrize(
    'where', ['"params":{"a":N}', '"params":{"a":[{"b":[1,N]}]}', '"other":N', '"params":[N]']
)
def test_integers_beyond_the_safe_range(number: int, where: str) -> None:
    text = '{"jsonrpc":"2.0","id":"i","method":"m",' + where.replace('N', str(number)) + '}'
    beyond = fault(text)
    assert beyond.code is ErrorCode.INTEGER_RANGE
    assert beyond.request_id == 'i'
    assert len(beyond.detail) < 80


def test_an_id_beyond_the_safe_range_is_not_echoed() -> None:
    beyond = fault(request(id=2**53))
    assert (beyond.code, beyond.request_id) == (ErrorCode.INTEGER_RANGE, None)


def test_an_integer_of_absurd_length() -> None:
    start = time.process_time()
    assert fault('{"a":' + '1' * 10_000_000 + '}').code is ErrorCode.INTEGER_RANGE
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ('text', 'id_', 'is_answerable'),
    [
        (request(id='a', params=[]), 'a', True),
        (request(id=True), None, True),
        (request(jsonrpc='1'), 1, True),
        ('{"jsonrpc":"2.0","method":"m","params":[]}', None, False),
        ('{"jsonrpc":"2.0","method":"m","params":{"a":9007199254740992}}', None, False),
        ('{"jsonrpc":"2.0","method":1}', None, True),
        ('{"method":"m"}', None, True),
        ('{"jsonrpc":"2.0","id":"w1","error":3}', 'w1', False),
        ('{"jsonrpc":"2.0","id":"w1","result":9007199254740992}', 'w1', False),
        ('{"jsonrpc":"2.0","id":"w1"}', 'w1', True),
        ('nonsense', None, True),
    ],
)
def test_whom_to_answer(text: str, id_: int | str | None, is_answerable: bool) -> None:
    broken = fault(text)
    assert (broken.request_id, broken.is_answerable) == (id_, is_answerable)


# ---------------------------------------------------------------- writing


def test_encode_is_compact_and_keeps_unicode() -> None:
    message = codec.request(1, 'm', {'a': [1, 2.5, None, True], 'ü': '€'})
    expected = '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,2.5,null,true],"ü":"€"}}'
    assert encode(message) == expected


@pytest.mark.parametrize('number', [float('nan'), float('inf'), -float('inf')])
def test_what_is_not_finite_is_our_fault(number: float) -> None:
    with pytest.raises(ValueError, match='no form in JSON'):
        encode({'a': [{'b': (1, number)}]})


def test_the_words_alone_are_harmless() -> None:
    message = {'a': ['NaN', {'Infinity': 1.5, 'b': ('-Infinity',)}]}
    assert json.loads(encode(message)) == {'a': ['NaN', {'Infinity': 1.5, 'b': ['-Infinity']}]}


@pytest.mark.parametrize('value', ['\ud800', object()])
def test_what_has_no_form_in_json_is_our_fault(value: object) -> None:
    with pytest.raises(ValueError, match=r'rror serializing|nable to serialize'):
        encode({'a': value})


def test_builders() -> None:
    failure = WireFault(ErrorCode.BUSY, 'wait')
    assert decode(encode(codec.request('a', 'm', {'x': 1}))) == Request('a', 'm', {'x': 1})
    assert decode(encode(codec.notification('m', {}))) == Notification('m', {})
    assert decode(encode(codec.result(3, {'x': 1}))) == Response(3, {'x': 1}, None)
    assert decode(encode(codec.error(3, failure))) == Response(3, None, failure.error_object())
    assert decode(encode(codec.error(None, failure))) == Response(
        None, None, failure.error_object()
    )
