"""
Owns reading an action server's status list from its bytes: which goals are active.

A server retains ended goals for minutes, and tells the whole list at every change. The states are
looked at in one go; only where one is active are ids read.
"""

from __future__ import annotations

from action_msgs.msg import GoalStatus

# An entry is id, stamp, state. A stamp is aligned, an id follows the state before it at once.
_FIRST_ID = 8  # behind the encapsulation and the length of the list
_FIRST_STATE = 32
_ENTRY = 28
_UUID = 16
_ACTIVE = {
    GoalStatus.STATUS_ACCEPTED,
    GoalStatus.STATUS_EXECUTING,
    GoalStatus.STATUS_CANCELING,
}
_IDLE = bytes(state for state in range(256) if state not in _ACTIVE)


def active_goals(data: bytes) -> list[bytes]:
    """Return the ids of the active goals of a serialized action_msgs/GoalStatusArray."""
    states = data[_FIRST_STATE::_ENTRY]
    if not states.translate(None, _IDLE):
        return []
    active = (number for number, state in enumerate(states) if state in _ACTIVE)
    return [data[start : start + _UUID] for start in map(_id_start, active)]


def _id_start(number: int) -> int:
    return _FIRST_STATE + _ENTRY * (number - 1) + 1 if number else _FIRST_ID
