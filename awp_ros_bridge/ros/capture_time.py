"""Owns the time of capture: from the stamp of a message and its arrival to the steady clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

_LONGEST_AGE_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Clocks:
    """
    The clocks that observations are timed by; all callables are safe on any thread.

    :param steady_ns: the engine's clock.
    :param ros_ns: ROS time, simulated where ``uses_sim_time`` says so.
    :param uses_sim_time: asked once, when channels are made.
    """

    steady_ns: Callable[[], int]
    ros_ns: Callable[[], int]
    uses_sim_time: Callable[[], bool] = lambda: False


class Capture(NamedTuple):
    """
    When a sample was captured.

    :param captured_ns: steady time.
    :param sim_ns: simulated time, None on hardware (AWP-CLK-003).
    :param is_stamp_used: False where the stamp could not be believed or there is none.
    """

    captured_ns: int
    sim_ns: int | None
    is_stamp_used: bool


class CaptureClock:
    """Times the samples of one channel; never goes back, never into the future (AWP-OBS-006)."""

    def __init__(self, clocks: Clocks) -> None:
        self._is_simulated = clocks.uses_sim_time()
        self._last_ns = 0

    def capture(self, stamp_ns: int | None, arrival_ns: int, ros_arrival_ns: int) -> Capture:
        """
        Time one sample.

        :param stamp_ns: stamp in the message, None or 0 where there is none
        :param arrival_ns: steady time of arrival
        :param ros_arrival_ns: ROS time of arrival
        """
        if self._is_simulated:
            captured_ns = self._in_order(arrival_ns, arrival_ns)
            return Capture(captured_ns, stamp_ns or ros_arrival_ns, is_stamp_used=True)
        age_ns = ros_arrival_ns - stamp_ns if stamp_ns else -1
        is_believed = 0 <= age_ns <= _LONGEST_AGE_NS
        captured_ns = arrival_ns - age_ns if is_believed else arrival_ns
        return Capture(self._in_order(captured_ns, arrival_ns), None, is_believed or not stamp_ns)

    def _in_order(self, captured_ns: int, arrival_ns: int) -> int:
        self._last_ns = min(max(self._last_ns, captured_ns), arrival_ns)
        return self._last_ns
