"""The session clock."""

from awp_ros_bridge.wire.clock import SessionClock


def test_both_ways() -> None:
    clock = SessionClock(zero_ns=1_000)
    assert clock.session_ns(1_250) == 250
    assert clock.steady_ns(250) == 1_250


def test_never_negative() -> None:
    assert SessionClock(zero_ns=1_000).session_ns(999) == 0
    assert SessionClock(zero_ns=-1_000).session_ns(0) == 1_000
