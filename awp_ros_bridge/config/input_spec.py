"""Owns what every form of a safety input comes down to, and what the forms are made of."""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Annotated, Any, Literal, Protocol

from pydantic import Discriminator, Field, model_validator, Strict

from awp_ros_bridge.config.base import Items, refuse, RosName, StrictModel, Text
from awp_ros_bridge.engine.inputs import Meaning

Scalar = bool | int | float | str


class Condition(StrictModel):
    """Values of a safety input's field that forbid motion; what cannot be compared forbids it."""

    equals: Scalar | None = None
    """Unsafe when the field has exactly this value."""
    one_of: Annotated[Items[Scalar], Field(min_length=1)] | None = Field(default=None, alias='in')
    """Unsafe when the field has one of these values."""
    not_in: Annotated[Items[Scalar], Field(min_length=1)] | None = None
    """Unsafe unless the field has one of these values: what nobody thought of is unsafe."""
    above: float | None = None
    """Unsafe when the field is greater than this number. May stand together with below."""
    below: float | None = None
    """Unsafe when the field is less than this number. May stand together with above."""
    bit: Annotated[int, Field(ge=0, le=63)] | None = None
    """Unsafe when this bit of the field is set; bit 0 is the least significant."""

    @model_validator(mode='after')
    def _says_one_thing(self) -> Condition:
        said = {key for key, value in self if value is not None}
        if len(said) != 1 and said != {'above', 'below'}:
            raise refuse(
                f'a condition needs exactly one comparison, found {len(said)}',
                'write one of equals, in, not_in, above, below, bit (above and below may join)',
            )
        return self

    def holds(self, value: Any) -> bool:
        """
        Tell whether this value forbids motion.

        A value of another kind than the condition, or a number that is not finite, forbids it.
        """
        if self.equals is not None:
            return not _comparable(value, self.equals) or value == self.equals
        if self.one_of is not None:
            return any(not _comparable(value, each) or value == each for each in self.one_of)
        if self.not_in is not None:
            return not any(_comparable(value, each) and value == each for each in self.not_in)
        return self._beyond(value)

    def _beyond(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        if self.bit is not None:
            return not isinstance(value, int) or bool(value >> self.bit & 1)
        low = -math.inf if self.below is None else self.below
        high = math.inf if self.above is None else self.above
        return not (math.isfinite(value) and low <= value <= high)


def _comparable(value: Any, expected: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(expected, bool | str):
        return type(value) is type(expected)
    return isinstance(value, int | float) and math.isfinite(value)


def as_condition(value: Any) -> Any:
    """Take a plain value for ``equals``, as the file may be written."""
    return {'equals': value} if isinstance(value, bool | int | float | str) else value


def unless(*safe: Scalar) -> Condition:
    """Return the condition that is unsafe for all but these values."""
    return Condition.model_validate({'not_in': safe})


class ByMessage(StrictModel):
    """The topic is published periodically: each message renews it."""

    by: Literal['message']
    """message: the input is fresh while its own messages keep coming."""


class ByCompanion(StrictModel):
    """The topic is latched and speaks on change only: a periodic topic vouches for it."""

    by: Literal['companion']
    """companion: the last value stays valid while the companion topic keeps coming."""
    topic: RosName
    """Periodic topic of the same driver."""


Freshness = Annotated[ByMessage | ByCompanion, Discriminator('by')]
BY_MESSAGE = ByMessage(by='message')
BY_JOINT_STATES = ByCompanion(by='companion', topic='joint_states')

Means = Annotated[Meaning, Strict(False)]
JointField = Literal['position', 'velocity', 'effort']
Latch = Literal['until_clear', 'until_operator']
StaleMs = Annotated[int, Field(ge=20, le=60_000)]


# ---------------------------------------------------------------- what every form comes down to


@dataclass(frozen=True, slots=True)
class Rule:
    """Values that forbid motion, and what they then mean."""

    unsafe: Condition
    means: Meaning


@dataclass(frozen=True, slots=True)
class Part:
    """
    One value that an input judges, by rules of which the first that holds counts.

    :param name: tells the parts of one input apart; empty where there is one.
    :param may_lack: a message without the list item of the path says nothing about this part.
    """

    name: str
    path: str
    rules: tuple[Rule, ...]
    may_lack: bool = False


@dataclass(frozen=True, slots=True)
class JointParts:
    """
    The joints of a JointState whose numbers must be finite.

    :param joints: their names, None for every joint that the topic carries.
    """

    joints: tuple[str, ...] | None
    fields: tuple[JointField, ...]


@dataclass(frozen=True, slots=True)
class InputSpec:
    """
    A safety input, whatever form it was written in.

    :param means: what it is while it is engaged by a message that cannot be read.
    :param companion: the topic that vouches for it, None where its own messages do.
    """

    label: str
    topic: str
    type: str
    parts: tuple[Part, ...] | JointParts
    means: Meaning
    companion: str | None
    stale_after_ms: int
    latch: Latch


class Watched(StrictModel):
    """What all forms of a safety input have in common."""

    name: Text | None = None
    """Name in events, diagnostics and logs; the topic when absent. Unique per embodiment."""
    latch: Latch = 'until_clear'
    """until_clear: engaged while the hardware says so. until_operator: from then on engaged until
    an operator clears it (service ~/<embodiment>/clear); the hardware must be clear by then."""


class Form(Protocol):
    """What every form of a safety input offers to its spec."""

    @property
    def name(self) -> str | None: ...

    @property
    def topic(self) -> str: ...

    @property
    def stale_after_ms(self) -> int: ...

    @property
    def latch(self) -> Latch: ...


def spec_of(
    form: Form, type_: str, parts: tuple[Part, ...] | JointParts, means: Meaning
) -> InputSpec:
    """Return what a form comes down to; without a freshness its own messages renew it."""
    freshness = getattr(form, 'freshness', BY_MESSAGE)
    return InputSpec(
        label=form.name or form.topic,
        topic=form.topic,
        type=type_,
        parts=parts,
        means=means,
        companion=freshness.topic if isinstance(freshness, ByCompanion) else None,
        stale_after_ms=form.stale_after_ms,
        latch=form.latch,
    )
