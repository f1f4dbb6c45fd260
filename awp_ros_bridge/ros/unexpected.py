"""Owns the notice of motion that nobody asked the bridge for, once a body was at rest."""

from __future__ import annotations

from collections.abc import Callable
import logging

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.stop import LocalStop

_LOG = logging.getLogger(__name__)

NAME = 'unexpected_motion'


class UnexpectedMotion:
    """
    Looks at one embodiment; safety thread.

    :param is_commanded: tells whether an action or a safe-state step moves it.
    :param means: degraded to report only, fault to forbid motion until it rests again.
    :param after_ns: how long it must move.
    """

    def __init__(
        self,
        embodiment: str,
        stop: LocalStop,
        is_commanded: Callable[[], bool],
        means: Meaning,
        after_ns: int,
    ) -> None:
        self._embodiment = embodiment
        self._stop = stop
        self._is_commanded = is_commanded
        self._means = means
        self._after_ns = after_ns
        self._was_at_rest = False
        self._moving_ns: int | None = None
        self.detail: str | None = None

    def look(self, now_ns: int, rests: bool | None, what: str) -> None:
        """
        Take the newest judgement.

        :param rests: None while it is not known.
        :param what: what moves, for the report.
        """
        if self._is_commanded():
            # the body may coast after that; only from its next rest on is motion unexpected
            self._was_at_rest, self._moving_ns = False, None
            self._end('an action moves it')
        elif rests:
            self._was_at_rest, self._moving_ns = True, None
            self._end('at rest again')
        elif rests is None or not what:
            self._moving_ns = None
        elif self._was_at_rest:
            if self._moving_ns is None:
                self._moving_ns = now_ns
            moved_ns = now_ns - self._moving_ns
            if moved_ns >= self._after_ns and self.detail is None:
                self._begin(f'{what}, for {moved_ns // MS} ms while no action runs')

    def _begin(self, detail: str) -> None:
        self.detail = detail
        _LOG.warning('%s moves unexpectedly: %s', self._embodiment, detail)
        self._stop.engage(self._embodiment, NAME, self._means, detail)

    def _end(self, why: str) -> None:
        if self.detail is not None:
            self.detail = None
            self._stop.release(self._embodiment, NAME, self._means, why)
