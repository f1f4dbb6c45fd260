"""Owns the safety input that most tests of safety configure: a button that says a Bool."""

from typing import Any


def e_stop(stale_after_ms: int, **more: Any) -> dict[str, Any]:
    """Return the configuration of an e-stop, with other keys where they are given."""
    return {
        'name': 'e_stop',
        'topic': 'safety/e_stop',
        'type': 'std_msgs/msg/Bool',
        'field': 'data',
        'unsafe_when': True,
        'means': 'e_stop',
        'freshness': {'by': 'message'},
        'stale_after_ms': stale_after_ms,
        **more,
    }
