"""
Owns the watch over the ROS clock: that it stands still, jumps, or was never heard is told.

Nothing that stops the robot depends on that clock: timers, deadlines and the watchdog run on the
steady one. What depends on it is what a person sees, and the stamps of simulated time.
"""

from __future__ import annotations

import logging

from awp_ros_bridge.ros.capture_time import Clocks
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread

_LOG = logging.getLogger(__name__)

LOOK_NS = 500 * MS
STANDS_NS = 1_000 * MS  # a slow simulator moves its clock more often than that
JUMP_NS = 2_000 * MS  # further from the steady clock within one look
FAST = 20  # times real time: quicker is taken for a jump


class ClockJudge:
    """
    What the readings of the ROS clock mean, without ROS.

    :ivar trouble: what is wrong with it now, None while it runs.
    """

    def __init__(self) -> None:
        self.trouble: str | None = None
        self._steady_ns: int | None = None
        self._ros_ns = 0
        self._moved_ns = 0

    def look(self, steady_ns: int, ros_ns: int) -> str | None:
        """Take a reading; return the text of a jump since the last one, else None."""
        before_ns, self._steady_ns = self._steady_ns, steady_ns
        moved_ns, self._ros_ns = ros_ns - self._ros_ns, ros_ns
        if before_ns is None:
            self._moved_ns = steady_ns
            return None
        if moved_ns != 0:
            was_zero = ros_ns == moved_ns
            self._moved_ns, self.trouble = steady_ns, None
            return None if was_zero else self._jump(moved_ns, steady_ns - before_ns)
        stood_ns = steady_ns - self._moved_ns
        if stood_ns >= STANDS_NS:
            where = f'stands at {ros_ns * 1e-9:.3f} s' if ros_ns else 'was not heard yet'
            self.trouble = f'the ROS clock {where} (for {stood_ns // MS} ms)'
        return None

    @staticmethod
    def _jump(moved_ns: int, passed_ns: int) -> str | None:
        if 0 < moved_ns <= FAST * passed_ns or abs(moved_ns - passed_ns) < JUMP_NS:
            return None
        return f'the ROS clock jumped by {moved_ns * 1e-9:+.3f} s within {passed_ns // MS} ms'


class ClockWatch:
    """Looks at the ROS clock twice a second and logs what is new about it."""

    def __init__(self, thread: RosThread, clocks: Clocks) -> None:
        self._thread = thread
        self._clocks = clocks
        self._judge = ClockJudge()

    @property
    def trouble(self) -> str | None:
        """What is wrong with the ROS clock now, None while it runs; any thread."""
        return self._judge.trouble

    def start(self) -> None:
        """Begin to look; before the thread starts."""
        self._thread.every(LOOK_NS, self._look)

    def _look(self) -> None:
        before = self._judge.trouble
        jump = self._judge.look(self._clocks.steady_ns(), self._clocks.ros_ns())
        after = self._judge.trouble
        if jump is not None:
            _LOG.warning('%s; timers and deadlines run on steady time', jump)
        if after is not None and before is None:
            _LOG.warning('%s; timers and deadlines run on steady time', after)
        elif after is None and before is not None:
            _LOG.info('the ROS clock runs again')
