"""Owns the watch over what can stop a robot: where it is missing, the robot must not move."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop import LocalStop
from awp_ros_bridge.ros.stop_actuators import StopActuators

PERIOD_NS = 500 * MS
NAME = 'bridge:stop_steps'


class StopWatch:
    """
    Looks twice a second whether setpoint topics have listeners and stop services are there.

    :param embodiments: those with such steps; the others have nothing that could be missing.
    """

    def __init__(
        self,
        thread: RosThread,
        stop: LocalStop,
        actuators: Callable[[], StopActuators],
        embodiments: Iterable[str],
    ) -> None:
        self._thread = thread
        self._stop = stop
        self._actuators = actuators
        self._missing: dict[str, str] = dict.fromkeys(embodiments, 'not looked for yet')

    def start(self) -> None:
        """Forbid motion until everything is there; before the safety thread starts."""
        for embodiment, why in self._missing.items():
            self._stop.engage(embodiment, NAME, Meaning.NOT_READY, why)
        if self._missing:
            self._thread.every(PERIOD_NS, self._look)

    def _look(self) -> None:
        for embodiment, before in list(self._missing.items()):
            missing = '; '.join(self._actuators().missing(embodiment))
            if missing == before:
                continue
            self._missing[embodiment] = missing
            if missing:
                self._stop.engage(embodiment, NAME, Meaning.NOT_READY, missing)
            else:
                self._stop.release(embodiment, NAME, Meaning.NOT_READY, 'everything is there')
