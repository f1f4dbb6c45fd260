"""
Owns the faults that can be put into the robot while it runs, through its parameter ``fault``.

The parameter is a comma-separated list of names, some with a number: ``stall``,
``slow_accept=800``, ``nan,feedback_silence``. An empty text is a healthy robot.
"""

from dataclasses import dataclass
import math


@dataclass(frozen=True, slots=True)
class FaultKind:
    """What a fault does, and its number where it takes one."""

    effect: str
    unit: str | None = None
    default: float = 0.0


FAULTS = {
    'stall': FaultKind('the arm and the gripper stop following; running goals never end'),
    'refuse': FaultKind('every goal is rejected'),
    'die': FaultKind('the process ends at once, without a word to anybody'),
    'nan': FaultKind('positions, velocities and efforts in joint_states are not numbers'),
    'frozen': FaultKind('joint_states repeat the values of the moment, with new stamps'),
    'silence': FaultKind('joint_states and tf are no longer published'),
    'feedback_silence': FaultKind('actions send no feedback'),
    'safety_silence': FaultKind('the safety topics are no longer published'),
    'slow_accept': FaultKind('goals are answered late', 'ms', 500.0),
    'slow_cancel': FaultKind('cancel requests are answered late', 'ms', 1000.0),
    'refuse_cancel': FaultKind('cancel requests are rejected and the motion goes on'),
    'ignore_cancel': FaultKind(
        'cancel requests are accepted, but the motion goes on and the goal never ends'
    ),
    'gripper_ignore_cancel': FaultKind('the same of the gripper alone; the arm obeys'),
    'succeed_while_cancelling': FaultKind(
        'cancel requests are accepted, the motion goes on to its end and the goal succeeds'
    ),
    'late_result': FaultKind('the result follows the final state late', 'ms', 1000.0),
    'no_result': FaultKind('the result never follows the final state'),
    'slow_stop': FaultKind('braking takes this many times as long', 'times', 5.0),
    'overshoot': FaultKind(
        'the arm moves this many times as far and as fast as commanded', 'times', 1.5
    ),
    'push': FaultKind(
        'a hand turns joint_1 of the resting arm by this much, once, at 0.5 rad/s', 'rad', 0.7
    ),
}


class FaultError(ValueError):
    """A text that names no fault."""


class Faults:
    """The faults that are active."""

    def __init__(self) -> None:
        """Begin healthy."""
        self._active: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        """Tell whether a fault is active."""
        return name in self._active

    def number(self, name: str, otherwise: float = 0.0) -> float:
        """Give the number of an active fault, another one where it is not active."""
        return self._active.get(name, otherwise)

    def set_text(self, text: str) -> None:
        """
        Replace the active faults.

        :raises FaultError: nothing is replaced then
        """
        self._active = parse_faults(text)


def parse_faults(text: str) -> dict[str, float]:
    """
    Read the value of the parameter ``fault``.

    :raises FaultError: an unknown name, or a number that is missing or out of range
    """
    active = {}
    for item in (part.strip() for part in text.split(',')):
        if not item or item == 'none':
            continue
        name, _, value = item.partition('=')
        kind = FAULTS.get(name)
        if kind is None:
            raise FaultError(f'no fault {name!r}; there are {", ".join(FAULTS)}')
        active[name] = _number(name, kind, value)
    return active


def _number(name: str, kind: FaultKind, value: str) -> float:
    if not value:
        return kind.default
    if kind.unit is None:
        raise FaultError(f'fault {name!r} takes no number, not {value!r}')
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0.0 < number <= 1e6:
        raise FaultError(f'fault {name!r} takes a number of {kind.unit} above 0, not {value!r}')
    return number
