"""Tests what a record may hold: redaction, ASCII on one line, nothing that cannot be written."""

import hashlib
import json
from typing import Any

import pytest

from awp_ros_bridge.audit.record import mask, Redactor, to_ascii, unchained

Json = dict[str, Any]


def masked(value: str) -> str:
    return f'[redacted:sha256:{hashlib.sha256(value.encode()).hexdigest()[:8]}]'


def clean(body: Any, *pointers: str) -> Any:
    return Redactor(pointers).clean(body)


@pytest.mark.parametrize(
    'key',
    [
        'session_token',
        'transfer_token',
        'snapshot_token',
        'Authorization',
        'authorization',
        'token',
        'access_token',
        'X-Auth-Token',
        'bearer',
        'password',
    ],
)
def test_secrets_are_replaced_by_a_part_of_their_hash(key: str) -> None:  # AWP-AUD-006
    deep = {'result': {'list': [{key: 'abc'}]}}
    assert clean(deep) == {'result': {'list': [{key: masked('abc')}]}}


def test_equal_secrets_can_be_correlated_and_stay_hidden() -> None:
    text = to_ascii(clean({'a': {'session_token': 'abc'}, 'b': {'session_token': 'abc'}}))
    assert text.count(masked('abc').encode()) == 2
    assert b'"abc"' not in text


def test_the_body_itself_is_left_alone() -> None:
    body = {'params': {'session_token': 'abc', 'note': 'n'}}
    clean(body, '/note')
    assert body == {'params': {'session_token': 'abc', 'note': 'n'}}


@pytest.mark.parametrize('value', [None, True, False, masked('x')])
def test_what_is_no_secret_stays(value: object) -> None:
    assert clean({'session_token': value}) == {'session_token': value}


@pytest.mark.parametrize('value', [5, ['a'], {'a': 'b'}])
def test_secrets_of_any_kind_are_replaced(value: object) -> None:
    assert clean({'session_token': value}) == {'session_token': mask(value)}


def test_similar_names_are_no_secrets() -> None:
    body = {'tokens': 3, 'token_count': 'x', 'tokenizer': 'y', 'detail': 'session_token: unknown'}
    assert clean(body) == body


@pytest.mark.parametrize(
    ('text', 'secret'),
    [
        ('awp.v1, awp.bearer.s3cret', 'awp.bearer.s3cret'),
        ('Authorization: Bearer s3cret', 's3cret'),
        ('{"session_token":"s3cret"}', 's3cret'),
        ('{"session_token" : "s3cret", "x": 1', 's3cret'),
        (r'{\"transfer_token\":\"s3cret\"}', 's3cret'),
        ('ws://robot/stream?token=s3cret&x=1', 's3cret'),
    ],
)
def test_secrets_inside_texts_are_replaced(text: str, secret: str) -> None:
    found = clean({'text': text})['text']
    assert 's3cret' not in found
    assert found == text.replace(secret, masked(secret))


@pytest.mark.parametrize('prefix', ['awp', 'st', 'tt'])
def test_a_token_that_the_bridge_made_is_known_wherever_it_stands(prefix: str) -> None:
    token = f'{prefix}_{"aB3-_" * 7}'
    found = clean({'params': {'note': f'use {token}, please', token: [token]}})
    assert found == {
        'params': {'note': f'use {masked(token)}, please', masked(token): [masked(token)]}
    }
    assert clean({'x': f'la{token}', 'y': 'awp_ros_bridge'})['y'] == 'awp_ros_bridge'


def test_secrets_in_keys_are_replaced() -> None:
    assert 's3cret' not in to_ascii(clean({'awp.bearer.s3cret': 1})).decode()


def test_text_that_was_masked_before_stays() -> None:
    once = clean({'text': '{"session_token":"abc"}'})
    assert clean(once) == once


@pytest.mark.parametrize(
    ('pointer', 'body', 'expected'),
    [
        ('/note', {'params': {'note': 'n'}}, {'params': {'note': masked('n')}}),
        ('/note', {'result': {'note': 'n'}}, {'result': {'note': masked('n')}}),
        ('/note', {'note': 'n'}, {'note': 'n'}),
        ('/a/1/b', {'params': {'a': [0, {'b': 'x'}]}}, {'params': {'a': [0, {'b': masked('x')}]}}),
        ('/a/7/b', {'params': {'a': [0]}}, {'params': {'a': [0]}}),
        ('/a/x', {'params': {'a': [0]}}, {'params': {'a': [0]}}),
        (
            '/a~1b/c~0d',
            {'params': {'a/b': {'c~d': 'x'}}},
            {'params': {'a/b': {'c~d': masked('x')}}},
        ),
        ('/a/b', {'params': 5}, {'params': 5}),
    ],
)
def test_pointers_lead_from_params_or_result(pointer: str, body: Json, expected: Json) -> None:
    assert clean(body, pointer) == expected


def test_a_redacted_value_that_is_no_text_is_hashed_as_json() -> None:
    found = clean({'params': {'note': {'a': 1}}}, '/note')
    assert found == {'params': {'note': masked('{"a":1}')}}


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        ({'a': 'ä\n'}, b'{"a":"\\u00e4\\n"}'),
        ({'a': '\ud800'}, b'{"a":"\\ud800"}'),
        ({'a': 2**70}, b'{"a":1180591620717411303424}'),
        ({'a': b'x'}, b'{"a":"b\'x\'"}'),
        ({'a': [1, 2.5, None, True]}, b'{"a":[1,2.5,null,true]}'),
    ],
)
def test_a_line_is_ascii_whatever_the_body_holds(value: Json, text: bytes) -> None:
    assert to_ascii(value) == text


def nested(depth: int) -> Json:
    body: Json = {}
    for _ in range(depth):
        body = {'a': body}
    return body


def test_what_is_nested_too_deeply_is_named() -> None:
    assert json.loads(to_ascii(nested(100_000))) == {'unrecordable': 'RecursionError'}
    assert clean(nested(100_000)) == {'unrecordable': 'RecursionError'}
    assert json.loads(to_ascii(nested(300))) == nested(300)


def test_a_circle_is_named() -> None:
    body: Json = {}
    body['a'] = body
    assert b'unrecordable' in to_ascii(body)


def test_keys_that_are_no_texts_become_texts() -> None:
    assert clean({1: 'a'}) == {'1': 'a'}


def test_a_masked_surrogate_does_not_raise() -> None:
    assert mask('\ud800').startswith('[redacted:sha256:')


def test_a_record_has_its_fields() -> None:
    line = unchained(5, 'agent', 'me"ssage', b'{"x":1}') + b'}'
    assert json.loads(line) == {
        'ts_mono_ns': 5,
        'direction': 'agent',
        'kind': 'me"ssage',
        'body': {'x': 1},
    }
