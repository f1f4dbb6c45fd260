"""
Owns the values that encoders share: numbers that may be missing, vectors, rotations, deviations.

JSON knows neither NaN nor infinity. NaN is null; so is infinity, except in what may be infinite by
its meaning (:func:`extended`), where it is the text ``Infinity`` or ``-Infinity``.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

import numpy as np

from awp_ros_bridge.ros.encoders.base import BadMessage

Json = dict[str, Any]

INFINITIES = ('Infinity', '-Infinity')
_NORM_TOLERANCE = 1e-3
_NOT_MEASURED = -1.0
_LARGEST_32 = float(np.finfo(np.float32).max)

NUMBER: Json = {'type': 'number'}
NUMBER_OR_NULL: Json = {'type': ['number', 'null']}
EXTENDED: Json = {'anyOf': [NUMBER_OR_NULL, {'enum': list(INFINITIES)}]}
NAME: Json = {'type': 'string', 'minLength': 1}


def number(value: float) -> float | None:
    """Return a number, or None where it is not finite."""
    return value if math.isfinite(value) else None


def number32(value: float) -> Any:
    """Return what a float32 field says, as short as it is, or None where it is not finite."""
    return np.float32(value) if abs(value) <= _LARGEST_32 else None


def extended(value: float, is_single: bool = False) -> Any:
    """
    Return a number that may be infinite: NaN is None, infinity is a text.

    :param is_single: the value comes from a float32 field
    """
    if math.isfinite(value):
        return np.float32(value) if is_single else value
    if math.isnan(value):
        return None
    return INFINITIES[0] if value > 0 else INFINITIES[1]


def extended_list(values: Any) -> Any:
    """Return an array of numbers that may be infinite, as something that orjson writes."""
    found = np.asarray(values)
    if found.dtype.kind != 'f' or not np.isinf(found).any():
        return found  # orjson writes null for NaN
    words: list[Any] = list(found)
    for index in np.flatnonzero(np.isinf(found)):
        words[index] = INFINITIES[0] if found[index] > 0 else INFINITIES[1]
    return words


def vector(value: Any) -> list[float | None]:
    """Return x, y, z; what is not finite is None."""
    return [number(value.x), number(value.y), number(value.z)]


def position(value: Any, path: str) -> list[float]:
    """
    Return a position x, y, z.

    :raises BadMessage: it is not finite
    """
    found = [value.x, value.y, value.z]
    if not all(map(math.isfinite, found)):
        raise BadMessage(path, f'is {found}; a position is finite')
    return found


def rotation(value: Any, path: str) -> list[float]:
    """
    Return a rotation as quaternion x, y, z, w (AWP-UNI-002).

    :raises BadMessage: its norm is not 1
    """
    found = [value.x, value.y, value.z, value.w]
    square = sum(part * part for part in found)
    if not abs(square - 1.0) <= _NORM_TOLERANCE:
        norm = math.sqrt(square)
        raise BadMessage(path, f'has norm {norm:.4g}; the quaternion of a rotation has norm 1')
    return found


def deviations(covariance: Sequence[float], first: int, width: int) -> list[float | None] | None:
    """
    Return the standard deviations of three neighbours on the diagonal of a covariance.

    :param first: which row the first of them is in
    :param width: rows of the matrix
    :return: None where the covariance is unknown (all zero); a number that is negative or not
        finite is None
    """
    diagonal = [float(covariance[(first + i) * (width + 1)]) for i in range(3)]
    if not any(diagonal):
        return None
    return [math.sqrt(v) if 0 <= v < math.inf else None for v in diagonal]


def is_measured(covariance: Sequence[float]) -> bool:
    """Tell whether a sensor measures a quantity at all: -1 as the first entry says no."""
    return float(covariance[0]) != _NOT_MEASURED


# ---------------------------------------------------------------- schemas


def closed(properties: Json, description: str) -> Json:
    """Return the schema of an object that has these fields, all of them and no other."""
    return {
        'type': 'object',
        'description': description,
        'properties': properties,
        'required': list(properties),
        'additionalProperties': False,
    }


def about(schema: Json, description: str) -> Json:
    """Return a schema with a description."""
    return {**schema, 'description': description}


def triple(description: str, *, nullable: bool = False) -> Json:
    """
    Return the schema of x, y, z, each a number or null.

    :param nullable: null may stand for all three
    """
    return {
        'type': ['array', 'null'] if nullable else 'array',
        'items': NUMBER_OR_NULL,
        'minItems': 3,
        'maxItems': 3,
        'description': description,
    }


def numbers(count: int, description: str, *, nullable: bool = False) -> Json:
    """Return the schema of a list of so many numbers."""
    return {
        'type': ['array', 'null'] if nullable else 'array',
        'items': NUMBER,
        'minItems': count,
        'maxItems': count,
        'description': description,
    }


FRAME = about(NAME, 'frame of the tree that the values are in (AWP-UNI-003)')
POSITION = numbers(3, 'position x, y, z in the frame')
ROTATION = numbers(4, 'rotation as unit quaternion x, y, z, w (AWP-UNI-002)')
