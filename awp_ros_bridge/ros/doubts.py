"""Owns the doubt about servers that were lost: they count as missing until they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from awp_ros_bridge.ros.action_link import ActionLink, Pending


class Doubts:
    """
    Asks servers that did not answer a question that a live one answers at once; goals thread.

    The ROS graph goes on showing a killed process for tens of seconds.

    :param links: the conversation with each server, by its name.
    :param on_change: called when a doubt begins or ends.
    """

    def __init__(self, links: Mapping[str, ActionLink], on_change: Callable[[], None]) -> None:
        self._links = links
        self._on_change = on_change
        self._reasons: dict[str, str] = {}
        self._questions: dict[str, Pending] = {}

    def begin(self, server: str, why: str) -> None:
        """Doubt a server from now on, and ask it."""
        if server in self._links:
            is_new = server not in self._reasons
            self._reasons[server] = why
            self._ask(server)
            if is_new:
                self._on_change()

    def ask_again(self, server: str) -> str | None:
        """Return why a server is doubted, None where it is not; ask it anew, it may be back."""
        if server in self._reasons:
            self._ask(server)
        return self._reasons.get(server)

    def _ask(self, server: str) -> None:
        self._forget_question(server)
        self._questions[server] = self._links[server].probe(partial(self._answered, server))

    def _answered(self, server: str) -> None:
        self._forget_question(server)
        if self._reasons.pop(server, None) is not None:
            self._on_change()

    def _forget_question(self, server: str) -> None:
        question = self._questions.pop(server, None)
        if question is not None:
            question.drop()
