"""Params of every method: accepted exactly as by the canonical schemas, refused with reasons."""

from copy import deepcopy
import time
from typing import Any

from pydantic import ValidationError
import pytest

from awp_ros_bridge.wire.codec import MAX_SAFE_INT
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.messages import (
    ActionRefParams,
    ActionSubmitParams,
    ContentBlock,
    PARAMS,
    parse_as,
    parse_params,
    PingParams,
    same_content,
    SessionOpenParams,
    SessionTransferParams,
    SUBMIT_FIELDS,
)

Json = dict[str, Any]

AGENT = {'name': 'a', 'version': '1', 'vendor': 'v'}
INITIALIZE = {
    'protocol_versions': ['0.1'],
    'agent': AGENT,
    'consumes_modalities': ['proprio/json'],
}
OPEN = {'mode': 'streaming'}
SUBMIT = {'action_id': 'a-1', 'type': 'move', 'params': {}}
SYNC = {'offset_ns': -5, 'rtt_ns': 5}
REPORT: Json = {'window_ms': 5000, 'sync': SYNC, 'channels': {'1': {'frames': 3, 'gaps': 0}}}
STATS = {'count': 1, 'p50': 2, 'p95': 3}
BIG = MAX_SAFE_INT

# Method, a valid base, and changes that stay valid.
GOOD: list[tuple[str, Json, list[Json]]] = [
    (
        'initialize',
        INITIALIZE,
        [
            {},
            {'time_models': ['lockstep'], 'max_obs_rate_hz': 1, 'extensions': {'x-a.b': None}},
            {'protocol_versions': ['0.1', '10.20'], 'max_obs_rate_hz': 0.5, 'extensions': {}},
            {'agent': {**AGENT, 'more': 1}, 'x-acme.thing': 1, 'unknown': [1]},
        ],
    ),
    ('world.manifest', {}, [{}, {'any': 1}]),
    ('session.close', {}, [{}, {'x-acme.a': None}]),
    ('ping', {'origin_ns': 0}, [{}, {'origin_ns': BIG}, {'origin_ns': 1.0, 'last_status_seq': 0}]),
    (
        'session.open',
        OPEN,
        [
            {},
            {'mode': 'lockstep', 'embodiment': 'arm_01', 'seed': 0},
            {'embodiments': ['a', 'b'], 'action_types': [], 'admin': ['reset', 'tick']},
            {'subscribe': [], 'takeover': False, 'transfer_token': 't'},
            {'subscribe': [{'channel': 'a', 'rate_hz': 1}, {'channel': 'a', 'other': 1}]},
            {'task': {'content': [{'type': 'text', 'text': ''}, {'type': 'image', 'text': 1}]}},
            {'embodiment': '_' + 'a' * 127, 'transfer_token': 't'},
        ],
    ),
    (
        'session.resume',
        {'session_token': 't', 'last_status_seq': 0},
        [{}, {'session_token': '\u20ac' * 500, 'last_status_seq': 2.0}],
    ),
    ('session.transfer', {}, [{}, {'expires_in_ms': 1000}, {'expires_in_ms': 2**60}]),
    (
        'obs.subscribe',
        {'channels': [{'channel': 'a'}]},
        [{}, {'channels': [{'channel': 'a', 'rate_hz': 1e-9}, {'channel': 'a'}]}],
    ),
    ('obs.unsubscribe', {'channels': ['a']}, [{}, {'channels': ['a', 'a.b:c-d']}]),
    (
        'obs.report',
        REPORT,
        [
            {},
            {'window_ms': 1.0, 'channels': {}, 'decision_latency_ns': {**STATS, 'max': 4}},
            {'sync': {'offset_ns': -BIG, 'rtt_ns': BIG, 'samples': 0}},
            {
                'channels': {
                    '99999': {'frames': 0, 'gaps': 0, 'jitter_ns': 1, 'staleness_ns': STATS}
                }
            },
        ],
    ),
    (
        'action.submit',
        SUBMIT,
        [
            {},
            {'action_id': '\u20ac' * 128, 'params': {'a': [None, {}]}, 'preempt': 'blend'},
            {'embodiment_id': 'a', 'deadline_ms': 1, 'basis_ts_mono_ns': 0, 'valid_until_ns': BIG},
            {'deadline_ms': 1e300},
        ],
    ),
    ('action.cancel', {'action_id': 'a'}, [{}]),
    ('action.status', {'action_id': 'a'}, [{'action_id': ' '}]),
    ('world.reset', {}, [{}, {'initial_state': 'home', 'seed': 0}]),
]

GONE = object()  # the field is taken away

# Method, field path, values that must be refused there.
BAD: list[tuple[str, str, list[Any]]] = [
    (
        'initialize',
        'protocol_versions',
        [GONE, None, [], '0.1', ['0.1', '0.1'], ['1'], ['v0.1'], [0.1], ['0.1.2'], ['\u0661.1']],
    ),
    ('initialize', 'agent', [GONE, None, [], {}, {**AGENT, 'name': ''}, {**AGENT, 'vendor': 1}]),
    ('initialize', 'consumes_modalities', [GONE, [], [''], ['a', 'a'], [None], 'a', {'a': 1}]),
    ('initialize', 'time_models', [None, [], ['warp'], ['lockstep', 'lockstep'], 'lockstep']),
    ('initialize', 'max_obs_rate_hz', [None, 0, -0.0, -1, True, '5', []]),
    ('initialize', 'extensions', [None, [], {'a': 1}, {'x-A.b': 1}, {'x-a.': 1}, {'x-a.b c': 1}]),
    ('ping', 'origin_ns', [GONE, None, -1, 0.5, True, '1', BIG + 1, 1e16, []]),
    ('ping', 'last_status_seq', [None, -1, False, '0', 1.5]),
    ('session.open', 'mode', [GONE, None, '', 'Streaming', 1, ['streaming']]),
    ('session.open', 'embodiment', [None, '', '1a', 'a/b', 'a' * 129, 'a b', 'ä', 1, ['a'], {}]),
    ('session.open', 'embodiments', [None, [], ['a'], ['a', 'a'], 'ab', ['a', 1], ['a', '/']]),
    (
        'session.open',
        'subscribe',
        [
            None,
            {},
            ['a'],
            [{}],
            [{'channel': '1'}],
            [{'channel': 'a', 'rate_hz': 0}],
            [{'channel': 'a', 'rate_hz': None}],
            [{'channel': 'a', 'rate_hz': True}],
        ],
    ),
    ('session.open', 'action_types', [None, 'a', ['a', 'a'], [1], {}]),
    ('session.open', 'admin', [None, ['sudo'], ['reset', 'reset'], 'reset', [1]]),
    ('session.open', 'seed', [None, -1, 0.5, True, '1', BIG + 1]),
    ('session.open', 'takeover', [None, True, False, 1, 'true']),
    ('session.open', 'transfer_token', [None, '', 1, []]),
    (
        'session.open',
        'task',
        [
            None,
            {},
            [],
            {'content': []},
            {'content': [{}]},
            {'content': ['a']},
            {'content': [{'type': ''}]},
            {'content': [{'type': 'text'}]},
            {'content': [{'type': 'text', 'text': None}]},
        ],
    ),
    ('session.open', 'extensions', [None, {'y-a.b': 1}, 'a']),
    ('session.resume', 'session_token', [GONE, None, '', 1]),
    ('session.resume', 'last_status_seq', [GONE, None, -1, 0.5, True, '0', BIG + 1]),
    ('session.transfer', 'expires_in_ms', [None, 999, 999.0, 1000.5, '1000', True]),
    ('obs.subscribe', 'channels', [GONE, None, [], {}, 'a', ['a'], [{}], [{'channel': None}]]),
    ('obs.unsubscribe', 'channels', [GONE, None, [], 'a', ['a', 'a'], [{'channel': 'a'}], ['']]),
    ('obs.report', 'window_ms', [GONE, None, 0, 0.5, True, '1']),
    ('obs.report', 'sync', [GONE, None, {}, [], {'offset_ns': 1}, {**SYNC, 'rtt_ns': -1}]),
    ('obs.report', 'sync', [{**SYNC, 'samples': None}, {**SYNC, 'offset_ns': -BIG - 1}]),
    (
        'obs.report',
        'channels',
        [GONE, None, [], {'0': {}}, {'1': {}}, {'01': {'frames': 1, 'gaps': 0}}],
    ),
    (
        'obs.report',
        'channels',
        [
            {'100000': {'frames': 1, 'gaps': 0}},
            {'1': {'frames': 1, 'gaps': 0, 'jitter_ns': None}},
            {'1': {'frames': 1, 'gaps': 0, 'staleness_ns': {'count': 1}}},
            {'1': {'frames': 1.5, 'gaps': 0}},
        ],
    ),
    (
        'obs.report',
        'decision_latency_ns',
        [None, {}, {**STATS, 'p95': -1}, {**STATS, 'max': None}],
    ),
    ('action.submit', 'action_id', [GONE, None, '', 'a' * 129, 1]),
    ('action.submit', 'type', [GONE, None, '', 'a b', '9', 1]),
    ('action.submit', 'params', [GONE, None, [], 'a', 1]),
    ('action.submit', 'embodiment_id', [None, '', 'a/b', 1]),
    ('action.submit', 'preempt', [None, '', 'Replace', 1, ['replace']]),
    ('action.submit', 'deadline_ms', [None, 0, -1, 0.5, True, '1']),
    ('action.submit', 'basis_ts_mono_ns', [None, -1, 0.5, True, BIG + 1]),
    ('action.submit', 'valid_until_ns', [None, -1, 0.5, '1', BIG + 1]),
    ('action.cancel', 'action_id', [GONE, None, '', 'a' * 129, 1]),
    ('action.status', 'action_id', [GONE, None, '', 'a' * 129, 1]),
    ('world.reset', 'initial_state', [None, '', '1', 1]),
    ('world.reset', 'seed', [None, -1, True, 0.5]),
]

BASES = {method: base for method, base, _ in GOOD}
GOOD_CASES = [(method, {**base, **change}) for method, base, cs in GOOD for change in cs]
BAD_CASES = [
    (method, {**{k: v for k, v in BASES[method].items() if k != field}, **change})
    for method, field, values in BAD
    for value in values
    for change in ({} if value is GONE else {field: value},)
]


def canonical(method: str, params: Json) -> bool:
    spec = pytest.importorskip('awp_conformance.spec')
    sides = spec.METHODS[method]
    return not spec.schema_errors(sides.get('params') or sides['notification'], params)


def refusal(method: str, params: Json) -> WireFault:
    with pytest.raises(WireFault) as caught:
        parse_params(method, params)
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    return caught.value


@pytest.mark.parametrize(('method', 'params'), GOOD_CASES)
def test_accepted(method: str, params: Json) -> None:
    before = deepcopy(params)
    assert isinstance(parse_params(method, params), PARAMS[method])
    assert params == before
    assert canonical(method, params)


@pytest.mark.parametrize(('method', 'params'), BAD_CASES)
def test_refused(method: str, params: Json) -> None:
    refusal(method, params)
    assert not canonical(method, params)


@pytest.mark.parametrize(
    'change',
    [
        {'embodiment': 'a', 'embodiments': ['b', 'c']},
        {'takeover': True},
        {'takeover': False, 'embodiment': 'a'},
    ],
)
def test_fields_of_session_open_that_need_each_other(change: Json) -> None:
    params = {**OPEN, **change}
    refusal('session.open', params)
    assert not canonical('session.open', params)


def test_every_method_of_an_agent_is_there() -> None:
    assert set(PARAMS) == {*BASES, 'session/status'}


def test_a_newline_does_not_end_a_name() -> None:
    # Python's own regular expressions let '$' match before it; those of JSON Schema do not.
    refusal('action.submit', {**SUBMIT, 'type': 'move\n'})


def test_defaults() -> None:
    assert parse_params('initialize', INITIALIZE).time_models == ('lockstep', 'streaming')
    assert parse_params('session.transfer', {}).expires_in_ms == 30_000
    submit = parse_params('action.submit', SUBMIT)
    assert submit.preempt is submit.deadline_ms is submit.embodiment_id is None


def test_values_have_one_type() -> None:
    ping = parse_as(PingParams, {'origin_ns': 5.0})
    assert type(ping.origin_ns) is int
    opened = parse_as(SessionOpenParams, {**OPEN, 'subscribe': [{'channel': 'a', 'rate_hz': 5}]})
    assert opened.subscribe is not None
    assert type(opened.subscribe) is tuple
    assert type(opened.subscribe[0].rate_hz) is float
    assert type(parse_as(SessionTransferParams, {'expires_in_ms': 1e3}).expires_in_ms) is int


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError, match='frozen'):
        parse_as(ActionRefParams, {'action_id': 'a'}).action_id = 'b'  # type: ignore[misc]


def test_blocks_keep_what_their_type_carries() -> None:
    block = parse_as(ContentBlock, {'type': 'image', 'url': 'u'})
    assert block.model_dump() == {'type': 'image', 'text': None, 'url': 'u'}


def test_session_status_query() -> None:
    assert parse_params('session/status', {'sessionId': 's'}).session_id == 's'
    assert parse_params('session/status', {'sessionId': 's', '_meta': {'a': 1}}).meta == {'a': 1}
    assert parse_params('session/status', {'sessionId': 's', '_meta': None}).meta is None
    assert refusal('session/status', {}).detail == 'sessionId is missing'
    wrong = refusal('session/status', {'sessionId': 7, '_meta': []}).detail
    assert wrong == 'sessionId is 7: must be a string; _meta is []: must be an object'


def test_unknown_method() -> None:
    with pytest.raises(WireFault, match='no method "toString"') as caught:
        parse_params('toString', {})
    assert caught.value.code is ErrorCode.METHOD_NOT_FOUND


# ---------------------------------------------------------------- what a refusal says


@pytest.mark.parametrize(
    ('method', 'change', 'detail'),
    [
        (
            'action.submit',
            {'deadline_ms': 0},
            'deadline_ms is 0: must be greater than or equal to 1',
        ),
        ('action.submit', {'params': [1]}, 'params is [1]: must be an object'),
        ('action.submit', {'type': True}, 'type is true: must be a string'),
        ('session.open', {'subscribe': {}}, 'subscribe is an object: must be an array'),
        ('session.open', {'subscribe': [{}]}, 'subscribe[0].channel is missing'),
        (
            'session.open',
            {'subscribe': [{'channel': 'a'}, {'channel': 'b', 'rate_hz': 'fast'}]},
            'subscribe[1].rate_hz is "fast": must be a number',
        ),
        ('session.open', {'takeover': True}, "'takeover' needs 'transfer_token'"),
        ('obs.unsubscribe', {'channels': ['a', 'a']}, 'channels is ["a", "a"]: must not name '),
        ('obs.unsubscribe', {'channels': []}, 'channels is []: must have at least 1 item, not 0'),
        ('obs.report', {'channels': {'07': {}}}, 'channels."07" is "07": must match pattern'),
        ('obs.report', {'channels': {'1': {'frames': 0}}}, 'channels."1".gaps is missing'),
        ('initialize', {'agent': {}}, 'agent.name is missing; agent.version is missing; agent.'),
    ],
)
def test_detail(method: str, change: Json, detail: str) -> None:
    assert refusal(method, {**BASES[method], **change}).detail.startswith(detail)


def test_long_values_and_names_are_cut() -> None:
    detail = refusal('action.submit', {**SUBMIT, 'type': '!' * 10_000}).detail
    assert '"' + '!' * 76 + '...:' in detail
    assert len(refusal('obs.report', {**REPORT, 'channels': {'x' * 10_000: {}}}).detail) < 500


@pytest.mark.parametrize('entry', [1, 'a', None, {}])
@pytest.mark.parametrize(
    ('method', 'field'),
    [
        ('initialize', 'consumes_modalities'),
        ('obs.subscribe', 'channels'),
        ('obs.unsubscribe', 'channels'),
        ('session.open', 'subscribe'),
    ],
)
def test_a_hundred_thousand_wrong_entries_are_refused_at_once(
    method: str, field: str, entry: Any
) -> None:
    params = {**BASES[method], field: [entry] * 100_000}
    start = time.thread_time()
    detail = refusal(method, params).detail
    assert time.thread_time() - start < 0.1
    assert detail == f'{field} is an array of 100000 items: must have at most 1000 items'


@pytest.mark.parametrize(('method', 'field'), [('session.open', 'extensions')])
def test_an_object_of_many_members_is_refused_at_once(method: str, field: str) -> None:
    params = {**BASES[method], field: {f'k{n}': n for n in range(100_000)}}
    start = time.thread_time()
    assert 'must have at most 1000 members' in refusal(method, params).detail
    assert time.thread_time() - start < 0.1


def test_many_problems_are_counted() -> None:
    bad = dict.fromkeys(SessionOpenParams.model_fields)
    assert refusal('session.open', bad).detail.endswith('; and 8 more')


def test_tokens_are_never_repeated() -> None:
    cases: list[tuple[str, Json]] = [
        ('session.resume', {'session_token': ['s3cret'], 'last_status_seq': -1}),
        ('session.open', {**OPEN, 'transfer_token': {'a': 's3cret'}}),
        ('session.open', {**OPEN, 'transfer_token': 's3cret', 'embodiments': {'a': 's3cret'}}),
        ('session.resume', {'session_token': 's3cret'}),
    ]
    for method, params in cases:
        assert 's3cret' not in refusal(method, params).detail


# ---------------------------------------------------------------- identical content


def test_the_fields_that_count() -> None:
    spec = pytest.importorskip('awp_conformance.spec')
    assert spec.SUBMIT_FIELDS == SUBMIT_FIELDS
    assert set(SUBMIT_FIELDS) < set(ActionSubmitParams.model_fields)


@pytest.mark.parametrize(
    ('a', 'b', 'verdict'),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (2**53 - 1, float(2**53 - 1), True),
        (1, True, False),
        (0, False, False),
        (0.0, False, False),
        (True, True, True),
        (None, False, False),
        (None, 0, False),
        ('1', 1, False),
        ('a', 'a', True),
        ('\u00e9', 'e\u0301', False),
        ([], {}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([True], [1], False),
        ({'a': 1, 'b': 2}, {'b': 2.0, 'a': 1}, True),
        ({'a': None}, {}, False),
        ({'a': {'b': [0]}}, {'a': {'b': [False]}}, False),
    ],
)
def test_equal_values(a: Any, b: Any, verdict: bool) -> None:
    for left, right in ((a, b), (b, a)):
        assert same_content({'params': {'x': left}}, {'params': {'x': right}}) is verdict


@pytest.mark.parametrize('field', SUBMIT_FIELDS)
def test_presence_matters(field: str) -> None:
    full = {**SUBMIT, 'embodiment_id': 'a', 'preempt': 'queue', 'deadline_ms': 1}
    full |= {'basis_ts_mono_ns': 1, 'valid_until_ns': 1}
    without = {name: value for name, value in full.items() if name != field}
    assert same_content(full, deepcopy(full))
    assert not same_content(full, without)
    assert not same_content(without, full)
    assert not same_content(without, {**without, field: None})


def test_other_fields_do_not_count() -> None:
    assert same_content(SUBMIT, {**SUBMIT, 'action_id': 'b', 'x-acme.note': 1})
