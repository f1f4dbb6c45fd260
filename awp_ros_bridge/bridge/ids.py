"""Owns where the engine's unguessable names come from (AWP-SEC-003)."""

from __future__ import annotations

import secrets

from awp_ros_bridge.ros.goal_marks import GoalMarks, new_instance


class SecretIds:
    """
    Names of 128 random bits or more, from the operating system.

    :param marks: what goal ids begin with; a restarted bridge tells its own goals by it.
    """

    def __init__(self, marks: GoalMarks | None = None) -> None:
        self._marks = marks or GoalMarks(new_instance())

    def session_id(self) -> str:
        """Return a session identifier; it is no credential (AWP-SES-009)."""
        return f'sess_{secrets.token_hex(16)}'

    def token(self, prefix: str) -> str:
        """Return a credential of RFC 6455 token characters (AWP-SEC-005)."""
        return f'{prefix}_{secrets.token_urlsafe(24)}'

    def goal_id(self) -> str:
        """Return a goal UUID as 32 hex digits that begins with the bridge's mark; no secret."""
        return self._marks.new_goal_id()
