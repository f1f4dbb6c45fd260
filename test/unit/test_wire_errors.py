"""Error codes and the error object, against the canonical schema."""

import pytest

from awp_ros_bridge.wire.errors import ErrorCode, WireFault

RETRYABLE = {'EMBODIMENT_UNAVAILABLE', 'BUSY', 'QUEUE_FULL', 'ESTOP_ACTIVE', 'STALE_INTENT'}


@pytest.mark.parametrize('code', ErrorCode)
def test_every_code_gives_a_canonical_error_object(code: ErrorCode) -> None:
    spec = pytest.importorskip('awp_conformance.spec')
    error = WireFault(code, 'why', retry_after_ms=5).error_object()
    assert spec.schema_errors('error', error, sender=True) == []
    assert error['data'] == {
        'retryable': code.name in RETRYABLE,
        'detail': 'why',
        'retry_after_ms': 5,
    }
    assert type(error['code']) is int


@pytest.mark.parametrize(
    ('code', 'number', 'message'),
    [
        (ErrorCode.PARSE_ERROR, -32700, 'Parse error'),
        (ErrorCode.INVALID_REQUEST, -32600, 'Invalid request'),
        (ErrorCode.METHOD_NOT_FOUND, -32601, 'Method not found'),
        (ErrorCode.INVALID_PARAMS, -32602, 'Invalid params'),
        (ErrorCode.INTERNAL_ERROR, -32603, 'Internal error'),
        (ErrorCode.RESOURCE_NOT_FOUND, -32002, 'Resource not found'),
        (ErrorCode.INTEGER_RANGE, 2006, 'AWP_INTEGER_RANGE'),
        (ErrorCode.TICK_MISMATCH, 3009, 'AWP_TICK_MISMATCH'),
        (ErrorCode.APPROVAL_TIMEOUT, 4004, 'AWP_APPROVAL_TIMEOUT'),
    ],
)
def test_code_and_message(code: ErrorCode, number: int, message: str) -> None:
    assert (code, code.message) == (number, message)


def test_a_fault_may_overrule_the_default() -> None:
    assert not WireFault(ErrorCode.BUSY, 'for good', retryable=False).retryable
    fault = WireFault(ErrorCode.FORBIDDEN, 'for now', retryable=True)
    assert fault.error_object()['data'] == {'retryable': True, 'detail': 'for now'}
    assert str(fault) == 'AWP_FORBIDDEN: for now'
