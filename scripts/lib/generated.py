"""Owns the parts of the documents that are drawn from the code; ``--check`` says what is old."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
import sys
from typing import Any

from measured import inlined, reaction_table, soak_table
from observation_pages import conversion_table, encoder_pages, encoder_table, known_table

from awp_ros_bridge.engine.transitions import RULES
from awp_ros_bridge.ros.adapters.registry import AdapterInfo, infos
from awp_ros_bridge.wire.lifecycle import mermaid

REPOSITORY = Path(__file__).resolve().parents[2]


def adapter_table() -> str:
    """Return the table of adapters: what an action becomes on the ROS side."""
    rows = [
        '| adapter | ROS 2 interface | duration | params | limits checked | takes over |',
        '| --- | --- | --- | --- | --- | --- |',
    ]
    for name, info in sorted(infos().items()):
        schema = params_of(info)
        params = 'by its options'
        if schema is not None:
            needed = set(schema.get('required', []))
            fields = schema.get('properties', {})
            params = ', '.join(f'`{p}`' if p in needed else f'`{p}?`' for p in fields) or 'none'
        limits = ', '.join(sorted(info.checkable_limits)) or 'none'
        kind = f'`{info.ros_type}`' if info.ros_type else KINDS.get(info.kind, info.kind)
        rows.append(
            f'| `{name}` | {kind} | {"extended" if info.extended else "instant"} '
            f'| {params} | {limits} '
            f'| {"smoothly" if info.native_replace else "after a stop"} |'
        )
    return '\n'.join(rows)


KINDS = {'action': 'any action type'}


def params_of(info: AdapterInfo) -> dict[str, Any] | None:
    """Return the schema of an adapter's params without options, None where there is none."""
    return None if info.option_findings({}) else info.params_schema({})


def adapter_pages() -> str:
    """Return a chapter for each adapter: what it does, its params, its options."""
    chapters = []
    for name, info in sorted(infos().items()):
        key = {'action': 'ros_action', 'service': 'ros_service'}.get(info.kind)
        typed = f'of type `{info.ros_type}`' if info.ros_type else 'of the type in its options'
        served = f' `{key}` names its server, {typed}.' if key else ''
        rows = [f'## {name}', '', f'{info.summary}{served}', '']
        schema = params_of(info)
        fields = [] if schema is None else list(_fields(schema, ''))
        if schema is None:
            rows.append(f'Its params follow from its options: [{name}.md]({name}.md).')
        elif fields:
            rows += ['| param | value | what it is |', '| --- | --- | --- |', *fields]
        else:
            rows.append('It takes no params.')
        rows.append('')
        if info.options:
            rows += ['| option | what it does |', '| --- | --- |']
            rows += [f'| `{option}` | {text} |' for option, text in info.options.items()]
            rows.append('')
        chapters.append('\n'.join(rows))
    return '\n'.join(chapters).rstrip()


def _fields(schema: dict[str, Any], path: str) -> Iterator[str]:
    """Give a table row for each field, nested ones with their path."""
    needed = set(schema.get('required', ()))
    for name, field in schema.get('properties', {}).items():
        place = f'{path}{name}' + ('' if name in needed else '?')
        text = field.get('description', '')
        yield f'| `{place}` | {_value(field)} | {text} |'
        yield from _fields(field, f'{place}.')
        yield from _fields(field.get('items', {}), f'{place}[].')


def _value(field: dict[str, Any]) -> str:
    if 'enum' in field:
        return ', '.join(f'`{word}`' for word in field['enum'])
    kind = str(field.get('type', 'any'))
    if kind == 'array':
        least, most = field.get('minItems', 0), field.get('maxItems')
        count = str(least) if least == most else f'{least} to {most}'
        return f'list of {count} {field["items"].get("type", "value")}s'
    words = {
        'minimum': 'at least', 'maximum': 'at most',
        'exclusiveMinimum': 'more than', 'exclusiveMaximum': 'less than',
    }  # fmt: skip
    bounds = [f'{word} {field[key]}' for key, word in words.items() if key in field]
    return ', '.join([kind, *bounds])


def rules_table() -> str:
    """Return the table of what each cause does to an action, strongest first."""
    rows = [
        '| cause | before execution | `executing` | `cancelling` | waits for rest |',
        '| --- | --- | --- | --- | --- |',
    ]
    for cause, rule in sorted(RULES.items()):
        executing = rule.executing
        if executing is None and rule.cancelling is not None:
            via = f'`cancelling`, then {_end(rule.cancelling)}'
        else:
            via = _end(executing)
        under = 'goes on' if rule.cancelling is None else _end(rule.cancelling)
        if rule.cancelling is not None and rule.waits:
            under = 'goes on under this reason' if rule.relabels else 'goes on'
        rows.append(
            f'| {cause.name.lower().replace("_", " ")} | {_end(rule.pre)} | {via} | {under} '
            f'| {"yes" if rule.waits else "no"} |'
        )
    return '\n'.join(rows)


def _end(row: tuple[str, str | None] | None) -> str:
    if row is None:
        return 'no effect'
    state, reason = row
    return f'`{state}`' + (f' (`{reason}`)' if reason else '')


PARTS = {
    REPOSITORY / 'README.md': {'adapters': adapter_table, 'reactions': reaction_table},
    REPOSITORY / 'docs' / 'adapters.md': {'adapters': adapter_pages},
    REPOSITORY / 'docs' / 'observations.md': {
        'types': encoder_table,
        'encoders': encoder_pages,
        'conversions': conversion_table,
        'known': known_table,
    },
    REPOSITORY / 'docs' / 'lifecycle.md': {
        'diagram': lambda: f'```mermaid\n{mermaid()}\n```',
        'rules': rules_table,
    },
    REPOSITORY / 'docs' / 'performance.md': {'soak': soak_table},
    REPOSITORY / 'docs' / 'safety' / 'hazards.md': {},
}


def filled(text: str, parts: dict[str, object]) -> str:
    """Return a document with every generated part put between its markers."""
    for name, make in parts.items():
        begin, end = f'<!-- generated: {name} -->', f'<!-- end: {name} -->'
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f'no markers for {name!r}')
        text = f'{head}{begin}\n{make()}\n{end}{tail}'  # type: ignore[operator]
    return text


def main() -> int:
    """Write the documents, or say which are old."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--check', action='store_true', help='change nothing; exit 1 when old')
    check = parser.parse_args().check
    old = []
    for path, parts in PARTS.items():
        text = path.read_text(encoding='utf-8')
        new = inlined(filled(text, dict(parts)))
        if new != text:
            old.append(str(path.relative_to(REPOSITORY)))
            if not check:
                path.write_text(new, encoding='utf-8')
    for name in old:
        print(f'{name} {"is old: run scripts/lib/generated.py" if check else "written"}')
    return 1 if check and old else 0


if __name__ == '__main__':
    sys.exit(main())
