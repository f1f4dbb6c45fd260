"""Owns where the engine's unguessable names come from (AWP-SEC-003)."""

from __future__ import annotations

import secrets

GOAL_PREFIX = '61777062'  # 'awpb': a restarted bridge tells its own goals from foreign ones


class SecretIds:
    """Names of 128 random bits or more, from the operating system."""

    def session_id(self) -> str:
        """Return a session identifier; it is no credential (AWP-SES-009)."""
        return f'sess_{secrets.token_hex(16)}'

    def token(self, prefix: str) -> str:
        """Return a credential of RFC 6455 token characters (AWP-SEC-005)."""
        return f'{prefix}_{secrets.token_urlsafe(24)}'

    def goal_id(self) -> str:
        """Return a goal UUID as 32 hex digits that begins with the bridge's prefix."""
        return GOAL_PREFIX + secrets.token_hex(12)
