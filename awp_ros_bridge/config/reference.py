"""
Owns the reference of the configuration, written from the models.

``python -m awp_ros_bridge.config.reference > docs/configuration.md`` makes the document anew; a
test compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
import sys
import types
from typing import Annotated, Any, get_args, get_origin, Literal, Union

from pydantic.fields import FieldInfo

from awp_ros_bridge import __version__
from awp_ros_bridge.config.base import StrictModel, Word
from awp_ros_bridge.config.channel_checks import ENCODER_RULES
from awp_ros_bridge.config.checks import EVERY_ADAPTER_RULE, EVERY_RULE
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import unit_of
from awp_ros_bridge.config.schema import flatten

_INTRO = """\
# Configuration

<!-- Written by `python -m awp_ros_bridge.config.reference`; edit the models, not this file. -->

One YAML file tells the bridge everything about one robot. `config/sim_arm.yaml` is a complete one
for the simulated robot; begin with it. `awp check FILE` finds every problem in one run:

    robot.yaml:12: embodiments.arm_01.at_rest.for_ms: 5 ms is out of range, the least is 10 ms; \
raise it

Exit status 2 says that there are errors; warnings alone do not keep the bridge from starting.

- Unknown keys, keys that stand twice, wrong types and numbers out of range are errors. Nothing is
  converted: `'500'` is a text, not a number, and `.inf` or `.nan` is never accepted.
- Keys carry their unit: `_ms`, `_s`, `_hz`, `_m`, `_mps` (m/s), `_radps` (rad/s), `_mb`.
- YAML 1.2 rules apply: only `true` and `false` are truth values (`off`, `on`, `yes`, `no` are
  words), and anchors (`&name`, `*name`, `<<:`) work.
- Limits on age, such as `stale_after_ms`, cannot be switched off.
- Paths to files are relative to the configuration file. Names of topics, actions and services
  should be relative, so that a namespace moves them all.
- `awp.tf`, the channel of dynamic frames, is declared by the bridge for every embodiment whenever
  `frames.include` names a frame. No other channel may begin with `awp.`.

In the tables, a key without a default must be written; *absent* means that leaving it out is a
choice of its own, which the text explains.

## The smallest file

```yaml
world: {name: my-cell, vendor: my-company}
guardian: off
embodiments:
  arm_01:
    kind: manipulator
    actions: [follow_joint_trajectory, stop]
    channels: [proprio]
    at_rest: {topic: joint_states, max_velocity_radps: 0.01}
    safety_inputs:
      - topic: safety/e_stop
        type: std_msgs/msg/Bool
        field: data
        unsafe_when: true
        means: e_stop
        freshness: {by: message}
        stale_after_ms: 500
channels:
  proprio:
    topic: joint_states
    type: sensor_msgs/msg/JointState
    modality: proprio/json
    rate_hz: 100
    loss_class: latest-wins
actions:
  follow_joint_trajectory:
    adapter: follow_joint_trajectory
    ros_action: arm_controller/follow_joint_trajectory
    concurrency_group: arm_motion
    preemption: [replace, reject]
    max_duration_ms: 60000
  stop: {adapter: stop, concurrency_group: arm_motion}
```
"""
_WORDS = {
    str: 'text',
    int: 'whole number',
    float: 'number',
    bool: 'true or false',
    Any: 'anything',
}


def reference() -> str:
    """Return the whole document."""
    parts = [_INTRO]
    for model, paths in _models().items():
        parts.append(_section(model, paths))
    parts.append(_rules())
    return '\n'.join(parts)


def smallest_file() -> str:
    """Return the YAML of the smallest file, as the document shows it."""
    return _INTRO.partition('```yaml\n')[2].partition('```')[0]


def _models() -> dict[type[StrictModel], list[str]]:
    """Return every model once, in the order of the file, with the places where it stands."""
    found: dict[type[StrictModel], list[str]] = {}
    waiting: list[tuple[type[StrictModel], str]] = [(BridgeConfig, '')]
    while waiting:
        model, path = waiting.pop(0)
        places = found.setdefault(model, [])
        if path in places:
            continue
        places.append(path)
        inner = []
        for name, field in model.model_fields.items():
            here = f'{path}.{field.alias or name}' if path else field.alias or name
            inner += [(each, where) for each, where in _inside(field.annotation, here)]
        waiting = inner + waiting
    return found


def _inside(annotation: Any, path: str) -> Iterator[tuple[type[StrictModel], str]]:
    for kind in flatten(annotation):
        origin = get_origin(kind)
        if isinstance(kind, type) and issubclass(kind, StrictModel):
            yield kind, path
        elif origin is dict:
            yield from _inside(get_args(kind)[1], f'{path}.<name>')
        elif origin is tuple:
            yield from _inside(get_args(kind)[0], f'{path}[]')


def _section(model: type[StrictModel], paths: list[str]) -> str:
    title = 'The file' if model is BridgeConfig else _title(model)
    where = '' if model is BridgeConfig else ', '.join(f'`{path}`' for path in paths) + ': '
    lines = [f'## {title}', '', where + ' '.join((model.__doc__ or '').split()), '']
    lines += ['| key | value | default | meaning |', '| --- | --- | --- | --- |']
    for name, field in model.model_fields.items():
        key = field.alias or name
        meaning = ' '.join((field.description or '').split())
        cells = (f'`{key}`', _value(key, field), _default(field), meaning)
        lines.append('| ' + ' | '.join(map(_escaped, cells)) + ' |')
    return '\n'.join([*lines, ''])


def _escaped(cell: str) -> str:
    return cell.replace('|', '\\|').replace('<', '&lt;')


def _title(model: type[StrictModel]) -> str:
    name = model.__name__.removesuffix('Config')
    return ''.join(f' {c.lower()}' if c.isupper() and i else c for i, c in enumerate(name))


def _link(model: type[StrictModel]) -> str:
    title = _title(model)
    return f'[{title.lower()}](#{title.lower().replace(" ", "-")})'


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ''
    if field.default_factory is not None:
        return '`{}`'
    value = field.default
    if value is None:
        return 'absent'
    if isinstance(value, StrictModel):
        return 'its defaults'
    if value == __version__:
        return 'of the bridge'
    if isinstance(value, tuple):
        return f'`[{", ".join(map(str, value))}]`'
    if isinstance(value, bool):
        return f'`{str(value).lower()}`'
    return f'`{value:g}`' if isinstance(value, float) else f'`{value}`'


def _value(key: str, field: FieldInfo) -> str:
    return _words(field.annotation, field.metadata, unit_of((key,)))


def _words(annotation: Any, metadata: Iterable[Any], unit: str) -> str:
    notes = list(_flat(metadata))
    word = next((note.word for note in notes if isinstance(note, Word)), None)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words(inner[0], [*inner[1:], *notes], unit)
    if word is not None:
        return word
    if origin in {Union, types.UnionType}:
        members = [_words(each, notes, unit) for each in inner if each is not type(None)]
        return ' or '.join(dict.fromkeys(members))
    if origin is not None:
        return _compound(origin, inner, unit) + _bounds(notes, '')
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        return _link(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation] + _bounds(notes, unit)
    return ', '.join(f'`{member}`' for member in annotation)  # an enumeration


def _compound(origin: Any, inner: tuple[Any, ...], unit: str) -> str:
    if origin is Literal:
        return ' or '.join(f'`{_literal(each)}`' for each in inner)
    if origin is dict:
        return f'mapping of {_words(inner[0], (), "")} to {_words(inner[1], (), unit)}'
    if Ellipsis in inner:
        return f'list of {_words(inner[0], (), unit)}'
    return f'list of {len(inner)}: each {_words(inner[0], (), unit)}'


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for note in metadata:
        if isinstance(note, FieldInfo):
            yield from note.metadata
        else:
            yield note


def _bounds(notes: list[Any], unit: str) -> str:
    found = {}
    for note in notes:
        for key in ('ge', 'gt', 'le', 'lt', 'min_length'):
            if hasattr(note, key):
                found[key] = getattr(note, key)
    low = f'{found["ge"]:g}' if 'ge' in found else f'more than {found.get("gt", 0):g}'
    if 'min_length' in found:
        return f', {found["min_length"]} or more'
    if 'le' in found:
        most = found['le']
        return f', {low} to {most if isinstance(most, int) else f"{most:g}"}{unit}'
    return unit and f' of{unit}'


def _rules() -> str:
    lines = ['## Rules between values', '', 'The loader applies these to the file as a whole.', '']
    lines += [f'- {_first_line(rule)}' for rule in EVERY_RULE]
    lines += ['', 'And these where the adapters are installed:', '']
    lines += [f'- {_first_line(rule)}' for rule in EVERY_ADAPTER_RULE]
    lines += ['', 'And these where the message types of channels are installed:', '']
    lines += [f'- {_first_line(rule)}' for rule in ENCODER_RULES]
    return '\n'.join([*lines, ''])


def _first_line(rule: Callable[..., Any]) -> str:
    return (rule.__doc__ or '').strip().splitlines()[0]


if __name__ == '__main__':
    sys.stdout.write(reference())
