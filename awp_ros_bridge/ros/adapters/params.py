"""Owns the pieces that params schemas are made of: strict, closed, bounded, SI-suffixed."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

from awp_ros_bridge.engine.policy import GoalRefusal, RefusalKind

Json = dict[str, Any]

DIALECT = 'https://json-schema.org/draft/2020-12/schema'
IDENTIFIER = '^[A-Za-z_][A-Za-z0-9_.:-]*$'


def closed(properties: Json, required: Sequence[str], description: str = '') -> Json:
    """Return the schema of an object that has these fields and no other."""
    schema: Json = {
        'type': 'object',
        'properties': properties,
        'required': list(required),
        'additionalProperties': False,
    }
    return {**schema, 'description': description} if description else schema


def params(properties: Json, required: Sequence[str], description: str) -> Json:
    """Return the schema of a whole params object."""
    return {'$schema': DIALECT, **closed(properties, required, description)}


def number(description: str, **bounds: float) -> Json:
    """Return the schema of a number; bounds are keywords such as ``minimum``."""
    return {'type': 'number', **bounds, 'description': description}


def integer(description: str, **bounds: int) -> Json:
    """Return the schema of an integer; bounds are keywords such as ``minimum``."""
    return {'type': 'integer', **bounds, 'description': description}


def numbers(description: str, smallest: int, largest: int) -> Json:
    """Return the schema of an array of numbers."""
    return {
        'type': 'array',
        'items': {'type': 'number'},
        'minItems': smallest,
        'maxItems': largest,
        'description': description,
    }


def pose(description: str) -> Json:
    """Return the schema of a pose in a named frame (AWP-UNI-002, AWP-UNI-003)."""
    fields = {
        'frame': {
            'type': 'string',
            'minLength': 1,
            'maxLength': 128,
            'pattern': IDENTIFIER,
            'description': 'a frame of the frame tree',
        },
        'p_m': numbers('position, x, y, z', 3, 3),
        'q': numbers('orientation, unit quaternion x, y, z, w', 4, 4),
    }
    return closed(fields, ('frame', 'p_m', 'q'), description)


def bad_params(detail: str) -> GoalRefusal:
    """Return a refusal of params that no state of the robot could make right."""
    return GoalRefusal(RefusalKind.PARAMS, detail)


def outside_limits(detail: str) -> GoalRefusal:
    """Return a refusal because of a declared limit (AWP-ENV-001)."""
    return GoalRefusal(RefusalKind.ENVELOPE, detail)


def unready(detail: str) -> GoalRefusal:
    """Return a refusal because something needed for the check is not known yet."""
    return GoalRefusal(RefusalKind.UNREADY, detail)


def not_finite(values: Any, path: str) -> str | None:
    """Return the path of the first number that is not finite, looking into lists and objects."""
    if isinstance(values, float):
        return None if math.isfinite(values) else path
    if isinstance(values, dict):
        entries = [(value, f'{path}.{key}') for key, value in values.items()]
    elif isinstance(values, list | tuple):
        entries = [(value, f'{path}[{index}]') for index, value in enumerate(values)]
    else:
        return None
    return next((hit for value, at in entries if (hit := not_finite(value, at))), None)


def option_number(options: Json, key: str, default: float) -> float:
    """
    Return a positive number among the options of an action.

    :raises ValueError: it is no positive finite number
    """
    value = options.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f'option {key}: {value!r} is not a positive number')
    return float(value)
