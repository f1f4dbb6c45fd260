"""Which signals ask a process for its end."""

from __future__ import annotations

from collections.abc import Iterator
import signal

import pytest

from awp_ros_bridge.process.arguments import ending_signals

ALL = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ALL}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ignoring(*numbers: signal.Signals) -> set[signal.Signals]:
    for number in ALL:
        signal.signal(number, signal.SIG_IGN if number in numbers else signal.SIG_DFL)
    return set(ending_signals())


def test_every_signal_that_asks_for_the_end_is_heard() -> None:
    assert ignoring() == ALL


def test_under_nohup_the_end_of_the_terminal_is_none() -> None:
    assert ignoring(signal.SIGHUP) == ALL - {signal.SIGHUP}


def test_a_background_job_of_a_script_still_follows_what_a_launch_sends() -> None:
    assert ignoring(signal.SIGINT) == ALL
