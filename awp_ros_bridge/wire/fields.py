"""
Owns the vocabulary that messages and the manifest share: the types of common.schema.json.

The types accept what the schema accepts and nothing else: no booleans as numbers, no numbers in
strings, no null for a field that was left out. An integral float such as 5.0 counts as an
integer, as it does to JSON Schema.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema

from awp_ros_bridge.wire.codec import MAX_SAFE_INT

Json = dict[str, Any]
# The largest array or object of a message that the protocol itself reads; no robot has so many
# channels, joints or modalities.
MAX_ENTRIES = 1000

T = TypeVar('T')
H = TypeVar('H', bound=Hashable)


class Received(BaseModel):
    """Part of a message from a peer: strict in what it knows, blind to what it does not."""

    # AWP-VER-003: unknown fields are ignored
    model_config = ConfigDict(strict=True, frozen=True, extra='ignore', allow_inf_nan=False)


class Declared(BaseModel):
    """Part of a manifest: strict in what it knows, and keeps what it does not."""

    model_config = ConfigDict(strict=True, frozen=True, extra='allow', allow_inf_nan=False)


class _NeverNull:
    """Makes None mean that the field was left out: null itself is refused."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        if schema['type'] != 'nullable':
            raise TypeError(f'{source} cannot be left out: it does not include None')
        inner: CoreSchema = schema['schema']
        return inner


def _integral(value: Any) -> Any:
    if type(value) is float and value.is_integer():
        return int(value)
    return value


def _bounded(value: Any, noun: str) -> None:
    """Refuse early what is so long that telling what is wrong with each entry takes seconds."""
    if len(value) > MAX_ENTRIES:
        raise ValueError(f'must have at most {MAX_ENTRIES} {noun}')


def _tuple(value: Any) -> Any:
    if type(value) is list or type(value) is tuple:
        _bounded(value, 'items')
        return tuple(value)
    raise ValueError('must be an array')


def _small_object(value: Any) -> Any:
    if type(value) is dict:
        _bounded(value, 'members')
    return value


def _unique(values: tuple[H, ...]) -> tuple[H, ...]:
    if len(set(values)) != len(values):
        raise ValueError('must not name anything twice')
    return values


_INTEGRAL = BeforeValidator(_integral)

Maybe = Annotated[T | None, _NeverNull()]

# AWP-CTL-009: 64-bit values carried as JSON integers
U53 = Annotated[int, Field(ge=0, le=MAX_SAFE_INT), _INTEGRAL]
I53 = Annotated[int, Field(ge=-MAX_SAFE_INT, le=MAX_SAFE_INT), _INTEGRAL]
Count = Annotated[int, Field(ge=1), _INTEGRAL]
TransferMs = Annotated[int, Field(ge=1000), _INTEGRAL]
Positive = Annotated[float, Field(gt=0)]

Text = Annotated[str, StringConstraints(min_length=1)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Identifier = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128, pattern=r'^[A-Za-z_][A-Za-z0-9_.:-]*$'),
]
ProtocolVersion = Annotated[str, StringConstraints(pattern=r'^[0-9]+\.[0-9]+$')]  # AWP-VER-008
VendorKey = Annotated[str, StringConstraints(pattern=r'^x-[a-z0-9]+\.[A-Za-z0-9_.-]+$')]
ChannelKey = Annotated[str, StringConstraints(pattern=r'^[1-9][0-9]{0,4}$')]
Extensions = Annotated[dict[VendorKey, Any], BeforeValidator(_small_object)]  # AWP-VER-004

TimeModel = Literal['lockstep', 'streaming']
LossClass = Literal['reliable', 'latest-wins']
PreemptionPolicy = Literal['queue', 'replace', 'blend', 'reject']
AdminOperation = Literal['snapshot', 'restore', 'reset', 'tick']

# Arrays become tuples: nothing in a message changes after it was read.
_ARRAY = BeforeValidator(_tuple)
SMALL_OBJECT = BeforeValidator(_small_object)
_UNIQUE = AfterValidator(_unique)

Array = Annotated[tuple[T, ...], _ARRAY]
NonEmpty = Annotated[tuple[T, ...], Field(min_length=1), _ARRAY]
UniqueArray = Annotated[tuple[H, ...], _ARRAY, _UNIQUE]
UniqueNonEmpty = Annotated[tuple[H, ...], Field(min_length=1), _ARRAY, _UNIQUE]
UniqueTwoOrMore = Annotated[tuple[H, ...], Field(min_length=2), _ARRAY, _UNIQUE]
