"""Owns the walk through the models: which keys may stand where, and where an error belongs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import types
from typing import Annotated, Any, get_args, get_origin, Literal, Union

from awp_ros_bridge.config.base import StrictModel
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Path

_ABSENT = object()


def data_path(loc: Sequence[str | int], data: Any, kind: str) -> Path:
    """
    Return the path in the file that a validation error points at.

    Marks that the validator adds for members of unions and for keys are left out.

    :param kind: type of the error; the last part of a missing key is not in the file.
    """
    path: list[str | int] = []
    parts = list(loc)
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        inner = _inside(data, part)
        if inner is _ABSENT and not (last and kind == 'missing'):
            continue
        data = inner
        path.append(part)
    return tuple(path)


def known_keys(
    path: Path, data: Any, unknown: str | int = '', root: type[StrictModel] = BridgeConfig
) -> list[str]:
    """
    Return the keys that may stand in the mapping at this path.

    :param unknown: a key that was refused there: members of a union that know it are not meant.
    :param root: the model of the whole.
    """
    found: set[str] = set()
    for model in _models_at(path, data, root):
        keys = {field.alias or name for name, field in model.model_fields.items()}
        if unknown not in keys:
            found |= keys
    return sorted(found)


def _models_at(path: Path, data: Any, root: type[StrictModel]) -> Iterator[type[StrictModel]]:
    kinds: list[Any] = [root]
    for part in path:
        kinds = [inner for kind in kinds for inner in _step(kind, part)]
        data = _inside(data, part)
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, StrictModel)]
    yield from _narrowed(models, data)


def _inside(data: Any, part: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(part, _ABSENT)
    if isinstance(data, list) and isinstance(part, int) and part < len(data):
        return data[part]
    return _ABSENT


def _narrowed(models: list[type[StrictModel]], data: Any) -> list[type[StrictModel]]:
    """
    Of the members of a union, keep those that the mapping is most like.

    One whose own word it holds, such as ``kind: bool``, is meant; else those that share most keys.
    """
    if len(models) < 2 or not isinstance(data, dict):
        return models
    models = [model for model in models if _has_its_words(model, data)] or models
    shared = [len(data.keys() & model.model_fields.keys()) for model in models]
    return [model for model, count in zip(models, shared, strict=True) if count == max(shared)]


def _has_its_words(model: type[StrictModel], data: dict[Any, Any]) -> bool:
    words = {
        name: get_args(field.annotation)
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is Literal and field.is_required()
    }
    return bool(words) and all(data.get(name) in allowed for name, allowed in words.items())


def _step(kind: Any, part: str | int) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, StrictModel):
        for name, field in kind.model_fields.items():
            if part in {name, field.alias}:
                return flatten(field.annotation)
        return []
    origin, inner = get_origin(kind), get_args(kind)
    if origin is dict:
        return flatten(inner[1])
    if origin is tuple:
        return flatten(inner[0])
    return []


def flatten(kind: Any) -> list[Any]:
    """Return the plain types that an annotation stands for."""
    if get_origin(kind) is Annotated:
        return flatten(get_args(kind)[0])
    if get_origin(kind) in {Union, types.UnionType}:
        return [inner for member in get_args(kind) for inner in flatten(member)]
    return [kind]
