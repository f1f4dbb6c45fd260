"""Owns the comparison of a configured field path with the description of its message."""

from __future__ import annotations

from typing import Literal

from awp_ros_bridge.config.field_path import field_steps
from awp_ros_bridge.config.problems import Finding, nearest, Path
from awp_ros_bridge.manifest.field_types import (
    FieldType,
    ListType,
    locate,
    MessageType,
    NoSuchField,
    said,
    ScalarType,
)

Wanted = Literal['value', 'number', 'text', 'list']

_KINDS = {'number': ('integer', 'float'), 'text': ('text',)}


def located(path: str, root: MessageType) -> tuple[FieldType, MessageType]:
    """
    Return the type of a field and the message that holds it.

    :raises NoSuchField: the path leads nowhere
    """
    return locate(root, [step for step in field_steps(path) if isinstance(step, str | int)])


def field_problems(path: str, root: MessageType, wanted: Wanted, at: Path) -> list[Finding]:
    """Say why a path does not lead to what is wanted; nothing where it does."""
    try:
        kind, _ = located(path, root)
    except NoSuchField as error:
        return [Finding(at, f'{error.at}: {error.what}', advice(error))]
    if _is(kind, wanted):
        return []
    return [Finding(at, f'{path} is {said(kind)}, a {wanted} is needed', 'name another field')]


def advice(error: NoSuchField) -> str:
    """Say what to do about a path that leads nowhere."""
    if error.known:
        return nearest(error.at.rsplit('.')[-1], error.known)
    return 'compare the path with the definition of the action'


def _is(kind: FieldType, wanted: Wanted) -> bool:
    if wanted == 'list':
        return isinstance(kind, ListType)
    if not isinstance(kind, ScalarType):
        return False
    return wanted == 'value' or kind.kind in _KINDS[wanted]
