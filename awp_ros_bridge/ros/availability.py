"""Owns the watch over servers being there: every change is told, and once at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from awp_ros_bridge.engine.inputs import AvailabilityChanged, Input
from awp_ros_bridge.ros.plan import Key, MS
from awp_ros_bridge.ros.runtime import RosThread

PERIOD_NS = 500 * MS

Missing = Callable[[], str | None]  # what is missing, None when the server is there


class Availability:
    """
    Looks for each action type's server twice a second; goals thread.

    :param checks: one per embodiment and action type.
    """

    def __init__(
        self, thread: RosThread, post: Callable[[Input], None], checks: Mapping[Key, Missing]
    ) -> None:
        self._post = post
        self._checks = checks
        self._known: dict[Key, str | None] = {}
        thread.every(PERIOD_NS, self.look)

    def look(self) -> None:
        """Look now; servers shared by several types are asked once."""
        asked: dict[Missing, str | None] = {}
        for key, check in self._checks.items():
            if check not in asked:
                asked[check] = check()
            missing = asked[check]
            if key not in self._known or self._known[key] != missing:
                self._known[key] = missing
                self._post(AvailabilityChanged(*key, missing is None, missing or ''))

    def why_missing(self, key: Key) -> str | None:
        """Return why the server of an action type is missing, as of the last look; any thread."""
        return self._known.get(key, 'not looked for yet')

    def missing(self) -> list[str]:
        """Return what is missing now, as of the last look; any thread."""
        return sorted(
            f'{key[0]}.{key[1]}' for key, why in list(self._known.items()) if why is not None
        )
