"""The codec against arbitrary text, arbitrary JSON, and its own inverse."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

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
from awp_ros_bridge.wire.errors import ErrorCode
from awp_ros_bridge.wire.messages import same_content

SAFE = st.integers(-MAX_SAFE_INT, MAX_SAFE_INT)
LEAF = (
    st.none() | st.booleans() | SAFE | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON = st.recursive(
    LEAF, lambda kids: st.lists(kids, max_size=4) | st.dictionaries(st.text(), kids, max_size=4)
)
OBJECT = st.dictionaries(st.text(), JSON, max_size=5)
ID = SAFE | st.text()

# Anything that JSON can say, numbers beyond every bound included.
WILD = st.recursive(
    LEAF | st.integers() | st.sampled_from([2**53, -(2**53), 10**400]),
    lambda kids: st.lists(kids, max_size=4) | st.dictionaries(st.text(), kids, max_size=4),
)
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        'jsonrpc': st.sampled_from(['2.0', '1.0', 2, None]),
        'id': WILD,
        'method': WILD,
        'params': WILD,
        'result': WILD,
        'error': WILD | st.just({'code': 1, 'message': 'm'}),
        'other': WILD,
    },
)


def has_big_integer(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_big_integer, value.values()))
    if isinstance(value, list):
        return any(map(has_big_integer, value))
    return type(value) is int and abs(value) > MAX_SAFE_INT


def read(text: str | bytes) -> codec.Message | DecodeFault:
    try:
        return decode(text)
    except DecodeFault as fault:
        return fault


@given(st.text() | st.binary() | st.text(alphabet='[]{}",:0123456789eE+-.ntrufals\\'))
@example('{"a":1e400}')
@example('\ud800')
def test_any_text_is_a_message_or_a_fault(text: str | bytes) -> None:
    assert isinstance(read(text), codec.Message | DecodeFault)


@given(NEARLY | WILD)
def test_any_json_is_a_message_or_a_fault(value: Any) -> None:
    match read(json.dumps(value)):
        case DecodeFault() as fault:
            if isinstance(value, dict) and has_big_integer(value):
                assert fault.code is ErrorCode.INTEGER_RANGE
            if fault.request_id is not None:
                assert fault.request_id == value['id']
                assert type(fault.request_id) in (int, str)
            return
        case Request(id_, method, params):
            assert (id_, method, params) == (value['id'], value['method'], value.get('params', {}))
        case Notification(method, params):
            assert 'id' not in value
            assert (method, params) == (value['method'], value.get('params', {}))
        case Response(id_, result, error):
            assert 'method' not in value
            assert (id_, result, error) == (value['id'], value.get('result'), value.get('error'))
    assert value['jsonrpc'] == '2.0'
    assert not has_big_integer(value)


@given(
    WILD | st.floats(allow_nan=True),
    st.sampled_from([0, -1, 1.5, 'x', None, True, 2**53 - 1, []]),
    st.integers(0, 200),
)
@example(2**53, 1.5, 200)
@example(-(2**53), 0, 0)
@example(float('inf'), 0, 100)
def test_what_stands_among_many_is_judged_like_what_stands_alone(
    value: Any, filler: Any, where: int
) -> None:
    def said(values: list[Any]) -> list[ErrorCode | type]:
        told: list[ErrorCode | type] = []
        for params in ({'a': values}, {'a': dict(enumerate(values))}):
            found = read(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'm', 'params': params}))
            told.append(found.code if isinstance(found, DecodeFault) else type(found))
        return told

    many = [filler] * 200
    many.insert(where, value)
    assert said(many) == said([filler, value])


@given(ID, st.text(), OBJECT)
def test_requests_come_back(id_: int | str, method: str, params: dict[str, Any]) -> None:
    message = decode(encode(codec.request(id_, method, params)))
    assert message == Request(id_, method, params)
    assert same_content({'params': params}, {'params': message.params})


@given(ID, JSON)
def test_results_come_back(id_: int | str, result: Any) -> None:
    assert decode(encode(codec.result(id_, result))) == Response(id_, result, None)


@given(OBJECT)
def test_what_is_written_is_what_the_standard_library_reads(value: dict[str, Any]) -> None:
    assert json.loads(encode(value)) == value


@given(OBJECT, OBJECT)
def test_sameness_is_symmetric_and_reflexive(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert same_content({'params': a}, {'params': json.loads(json.dumps(a))})
    left = same_content({'params': a}, {'params': b})
    assert left == same_content({'params': b}, {'params': a})
