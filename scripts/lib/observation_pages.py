"""Owns the tables of docs/observations.md: what becomes of which message, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from awp_ros_bridge.config import ImageConfig, TopicChannel
from awp_ros_bridge.config.units import CONVERSIONS, NO_UNIT
from awp_ros_bridge.ros.encoders.base import Encoder
from awp_ros_bridge.ros.encoders.by_fields import FieldsEncoder
from awp_ros_bridge.ros.encoders.field_plan import KNOWN_UNITS
from awp_ros_bridge.ros.encoders.image import CONVERSIONS as PIXELS
from awp_ros_bridge.ros.encoders.registry import registry

Json = dict[str, Any]

_FRAME = 'base'


def _encoders() -> list[type[Encoder]]:
    return list(dict.fromkeys(registry().encoders.values()))


def encoder_table() -> str:
    """Return the table of message types."""
    rows = [
        '| message type | modality | payload | keys of the channel |',
        '| --- | --- | --- | --- |',
    ]
    for encoder in _encoders():
        types = ', '.join(f'`{name}`' for name in encoder.types)
        rows.append(f'| {types} | {_modalities(encoder)} | {_doc(encoder)} | {_keys(encoder)} |')
    encoder = FieldsEncoder
    rows.append(
        f'| any other | {_modalities(encoder)}, `x-<vendor>.<name>` | {_doc(encoder)} '
        f'| {_keys(encoder)} |'
    )
    return '\n'.join(rows)


def encoder_pages() -> str:
    """Return a chapter for each message type: its payload, its fields."""
    chapters = []
    for encoder in _encoders():
        last = encoder.types[-1]
        title = ', '.join(name.rpartition('/')[2] for name in encoder.types)
        parts = [f'### {title}', '', f'{_doc(encoder)} {encoder.summary}', '']
        schema = encoder.schema(_channel(encoder, last))
        if 'properties' in schema:
            parts += ['| field | value | what it is |', '| --- | --- | --- |']
            parts += _rows(schema, '')
        elif 'format' in schema:
            parts += ['| `format` | made of the encodings |', '| --- | --- |']
            parts += [f'| `{name}` | {_quoted(list(known))} |' for name, known in PIXELS.items()]
        else:
            parts.append(f'The manifest declares {_quoted(list(schema))}.')
        chapters.append('\n'.join(parts))
    return '\n\n'.join(chapters)


def conversion_table() -> str:
    """Return the table of units that are not SI."""
    rows = ['| unit of the field | name ends in | value |', '| --- | --- | --- |']
    for unit, (suffix, factor, offset) in CONVERSIONS.items():
        plus = f' + {offset:g}' if offset else ''
        times = '' if factor == 1 else f' times {factor:.6g}'
        ending = 'nothing' if suffix == NO_UNIT else f'`_{suffix}`'
        rows.append(f'| `{unit}` | {ending} | as it is{times}{plus} |')
    return '\n'.join(rows).replace('as it is times', 'times').replace('as it is +', 'plus')


def known_table() -> str:
    """Return the table of types whose units are known."""
    rows = ['| type of the field | unit |', '| --- | --- |']
    for name, units in KNOWN_UNITS.items():
        words = [f'{field} `{unit}`'.strip() for field, unit in units.items()]
        rows.append(f'| `{name}` | {", ".join(words)} |')
    return '\n'.join(rows)


def _channel(encoder: type[Encoder], message_type: str) -> TopicChannel:
    """Make a channel that uses all that the encoder can use."""
    image = ImageConfig(width=640, height=480, format='rgb8') if 'image' in encoder.keys else None
    return TopicChannel(
        topic='topic',
        type=message_type,
        modality=encoder.modalities[0],
        rate_hz=10.0,
        loss_class='latest-wins',
        image=image,
        frame=_FRAME if 'frame' in encoder.keys else None,
        prismatic=('slide',) if 'prismatic' in encoder.keys else (),
    )


def _doc(encoder: type[Encoder]) -> str:
    return (encoder.__doc__ or '').strip().splitlines()[0]


def _quoted(names: list[str]) -> str:
    return ', '.join(f'`{name}`' for name in names)


def _modalities(encoder: type[Encoder]) -> str:
    return _quoted(list(encoder.modalities))


def _keys(encoder: type[Encoder]) -> str:
    return _quoted(sorted(encoder.keys)) or 'none'


def _rows(schema: Json, path: str) -> Iterator[str]:
    for name, field in schema['properties'].items():
        yield f'| `{path}{name}` | {_value(field)} | {field.get("description", "")} |'
        inner = field.get('items', {})
        if 'properties' in inner:
            yield from _rows(inner, f'{path}{name}[].')


def _value(field: Json) -> str:
    if 'enum' in field:
        return _quoted([str(word) for word in field['enum']])
    if 'anyOf' in field:
        return ' or '.join(_value(each) for each in field['anyOf'])
    kind = field.get('type', 'any')
    kinds = kind if isinstance(kind, list) else [kind]
    words = ['text' if each == 'string' else str(each) for each in kinds]
    if 'array' in kinds:
        count = f' of {field["minItems"]}' if 'minItems' in field else ''
        words[0] = f'list{count}, each {_value(field.get("items", {}))}'
        return '; or '.join(words)
    return ' or '.join(words)
