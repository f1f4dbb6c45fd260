"""Owns the strict base of every configuration model, and the kinds of names a file may hold."""

from __future__ import annotations

from dataclasses import dataclass
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Strict
from pydantic_core import PydanticCustomError

from awp_ros_bridge.config.field_path import field_steps

T = TypeVar('T')

IDENTIFIER = re.compile(r'^[A-Za-z_][A-Za-z0-9_.:-]*$')
VENDOR_KEY = re.compile(r'^x-[a-z0-9]+\.[A-Za-z0-9_.-]+$')
MODALITIES = (
    'image/jpeg',
    'image/raw',
    'audio/pcm',
    'text/event+json',
    'proprio/json',
    'servo/json',
    'pointcloud/xyz32',
    'tensor/raw',
)

_ROS_NAME = re.compile(r'^(?:~/|/)?[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*$')
_INTERFACE = re.compile(r'^[a-z][a-z0-9_]*/(msg|srv|action)/[A-Z][A-Za-z0-9]*$')
_FIELD = re.compile(r'^[a-z][a-z0-9_]*(?:\[\d+\])?(?:\.[a-z][a-z0-9_]*(?:\[\d+\])?)*$')
_POINTER = re.compile(r'^/(?:[^~]|~[01])*$')
_LONGEST_NAME = 128


class StrictModel(BaseModel):
    """Refuses what it does not know, converts nothing, never changes (AWP names and SI units)."""

    model_config = ConfigDict(
        extra='forbid',
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


def refuse(what: str, todo: str) -> PydanticCustomError:
    """Make the error of a validator: what is wrong with the value, and what to do."""
    return PydanticCustomError('awp_refused', '{what}; {todo}', {'what': what, 'todo': todo})


def _identifier(text: str) -> str:
    if not IDENTIFIER.match(text) or len(text) > _LONGEST_NAME:
        raise refuse(
            f'{text!r} is not an AWP identifier',
            f'begin with a letter or _, then letters, digits, _ . : -, at most {_LONGEST_NAME}',
        )
    return text


def _modality(text: str) -> str:
    if text not in MODALITIES and not VENDOR_KEY.match(text):
        raise refuse(
            f'{text!r} is not a registered modality',
            f'use one of {", ".join(MODALITIES)}, or x-<vendor>.<name>',
        )
    return text


def _ros_name(text: str) -> str:
    if not _ROS_NAME.match(text) or '__' in text:
        raise refuse(
            f'{text!r} is not a ROS name',
            'use letters, digits and single _ in parts divided by /, no part beginning with a '
            'digit, such as arm_controller/follow_joint_trajectory',
        )
    return text


def _interface(kind: str) -> AfterValidator:
    def check(text: str) -> str:
        found = _INTERFACE.match(text)
        if found is None or found[1] != kind:
            raise refuse(
                f'{text!r} does not name a ROS interface of the {kind} kind',
                f'write package/{kind}/Name',
            )
        return text

    return AfterValidator(check)


def _field_path(text: str) -> str:
    if not _FIELD.match(text):
        raise refuse(
            f'{text!r} is not a field path', 'write names divided by dots, such as status[0].level'
        )
    return text


def _item_path(text: str) -> str:
    try:
        field_steps(text)
    except ValueError:
        raise refuse(
            f'{text!r} is not a field path',
            'write names divided by dots, a list item by its index or by a field of it, such as '
            'status[0].level or status[name=arm: drive].level',
        ) from None
    return text


def _tf_frame(text: str) -> str:
    if not text or text.startswith('/') or any(c.isspace() for c in text):
        raise refuse(f'{text!r} is not a tf frame', 'write its name without a leading /')
    return text


def _text(text: str) -> str:
    if not text.strip():
        raise refuse('the text is empty', 'write something that a person can read')
    return text


def _json_pointer(text: str) -> str:
    if not _POINTER.match(text):
        raise refuse(f'{text!r} is not a JSON pointer', 'begin with /, such as /params/note')
    return text


@dataclass(frozen=True, slots=True)
class Word:
    """What the reference calls a kind of value."""

    word: str


Text = Annotated[str, AfterValidator(_text), Word('text')]
JsonPointer = Annotated[str, AfterValidator(_json_pointer), Word('JSON pointer')]
Identifier = Annotated[str, AfterValidator(_identifier), Word('AWP identifier')]
Modality = Annotated[str, AfterValidator(_modality), Word('AWP modality')]
RosName = Annotated[str, AfterValidator(_ros_name), Word('ROS name')]
ActionType = Annotated[str, _interface('action'), Word('ROS action type')]
MessageType = Annotated[str, _interface('msg'), Word('ROS message type')]
ServiceType = Annotated[str, _interface('srv'), Word('ROS service type')]
FieldPath = Annotated[str, AfterValidator(_field_path), Word('field path')]
ItemPath = Annotated[str, AfterValidator(_item_path), Word('field path')]
TfFrame = Annotated[str, AfterValidator(_tf_frame), Word('tf frame')]
# No Field here: some versions of pydantic keep the default of one use in what is shared.
Items = Annotated[tuple[T, ...], Strict(False)]
