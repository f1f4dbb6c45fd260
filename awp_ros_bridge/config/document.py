"""Owns the reading of YAML: plain values, the line of each, and duplicate keys as problems."""

from __future__ import annotations

from dataclasses import dataclass, field
import re
from typing import Any

import yaml

from awp_ros_bridge.config.problems import Finding, Path

_CORE = 'tag:yaml.org,2002:'
_MOST_VALUES = 20_000
_DEEPEST = 64

# The YAML 1.2 core schema: `off` and `yes` are words, 1e3 is a number, 12:30 is no number.
_RESOLVERS = (
    ('bool', r'true|True|TRUE|false|False|FALSE', 'tTfF'),
    ('int', r'[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+', '-+0123456789'),
    (
        'float',
        r'[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?'
        r'|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)',
        '-+0123456789.',
    ),
    ('null', r'~|null|Null|NULL|', '~nN\0'),
    ('merge', r'<<', '<'),
)


class _Composer(yaml.SafeLoader):
    """Makes nodes only; values are built here, where positions are kept."""


_Composer.yaml_implicit_resolvers = {}  # not those of YAML 1.1
for _name, _pattern, _first in _RESOLVERS:
    _Composer.add_implicit_resolver(
        _CORE + _name,
        re.compile(f'^(?:{_pattern})$'),
        ['' if c == '\0' else c for c in _first],
    )


@dataclass(slots=True)
class Document:
    """
    A YAML file as plain values.

    :param lines: line of each key and list item by its path; the root is line 1.
    :param findings: problems found while reading, with their lines.
    :param written: where each value was written; equal for the places that an alias repeats.
    """

    value: Any = None
    lines: dict[Path, int] = field(default_factory=lambda: {(): 1})
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    written: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def line_of(self, path: Path) -> int:
        """Return the line of a value, or of the nearest thing around it that has one."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]


def read(text: str) -> Document:
    """Read one YAML document; what is wrong with it is in ``findings``."""
    document = Document()
    loader: _Composer | None = None
    try:
        loader = _Composer(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or 'it is not YAML'
        line = mark.line + 1 if mark is not None else 1
        column = f' at column {mark.column + 1}' if mark is not None else ''
        finding = Finding((), f'YAML cannot be read{column}: {what}', 'correct the syntax')
        document.findings.append((line, finding))
        return document
    except (yaml.YAMLError, RecursionError) as error:
        what = 'it is nested too deeply' if isinstance(error, RecursionError) else str(error)
        what = ' '.join(what.split())
        document.findings.append((1, Finding((), f'YAML cannot be read: {what}', 'correct it')))
        return document
    finally:
        if loader is not None:
            loader.dispose()
    if node is not None:
        document.value = _Builder(document).build(node, ())
    return document


class _Builder:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._count = 0
        self._full = False

    def build(self, node: yaml.Node, path: Path) -> Any:
        self._count += 1
        self._document.written[path] = (node.start_mark.line, node.start_mark.column)
        if self._count > _MOST_VALUES or len(path) > _DEEPEST:
            self._too_much(node, path)
            return None
        match node:
            case yaml.MappingNode() if node.tag == _CORE + 'map':
                return self._mapping(node, path)
            case yaml.SequenceNode() if node.tag == _CORE + 'seq':
                return self._sequence(node, path)
            case yaml.ScalarNode():
                return self._scalar(node, path)
        self._find(node, path, f'the tag {node.tag!r} is not supported', 'remove it')
        return None

    def _find(self, node: yaml.Node, path: Path, what: str, todo: str) -> None:
        line = node.start_mark.line + 1
        self._document.findings.append((line, Finding(path, what, todo)))

    def _too_much(self, node: yaml.Node, path: Path) -> None:
        if not self._full:
            self._full = True
            self._find(
                node,
                path[:4],
                f'it is nested deeper than {_DEEPEST} levels or holds more than {_MOST_VALUES} '
                'values',
                'look for an alias (*name) that contains itself',
            )

    def _sequence(self, node: yaml.SequenceNode, path: Path) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            self._document.lines[(*path, index)] = item.start_mark.line + 1
            items.append(self.build(item, (*path, index)))
        return items

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _CORE + 'merge':
                merged.append(value_node)
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in values:
                first = self._document.lines[(*path, key)]
                self._find(
                    key_node, (*path, key), f'key {key!r} stands twice, first in line {first}',
                    'keep one of them',
                )  # fmt: skip
                continue
            self._document.lines[(*path, key)] = key_node.start_mark.line + 1
            values[key] = self.build(value_node, (*path, key))
        for value_node in merged:
            self._merge(value_node, path, values)
        return values

    def _merge(self, node: yaml.Node, path: Path, values: dict[str, Any]) -> None:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                self._find(part, path, '<< needs a mapping', 'write <<: *name of a mapping')
                continue
            for key_node, value_node in part.value:
                key = self._key(key_node, path)
                if key is not None and key not in values:
                    self._document.lines[(*path, key)] = key_node.start_mark.line + 1
                    values[key] = self.build(value_node, (*path, key))

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == _CORE + 'str':
            return str(node.value)
        written = node.value if isinstance(node, yaml.ScalarNode) else 'a list or mapping'
        self._find(node, path, f'a key must be a text, found {written}', 'put it in quotes')
        return None

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text = node.value
        match node.tag.removeprefix(_CORE):
            case 'str':
                return text
            case 'null':
                return None
            case 'bool':
                return text.lower() == 'true'
            case 'int' | 'float' as kind:
                return self._number(node, path, kind)
        self._find(node, path, f'the tag {node.tag!r} is not supported', 'remove it')
        return None

    def _number(self, node: yaml.ScalarNode, path: Path, kind: str) -> float | None:
        text = node.value.lower()
        try:
            if kind == 'float':
                return float(text.replace('.inf', 'inf').replace('.nan', 'nan'))
            return int(text, 0 if text.startswith(('0x', '0o')) else 10)
        except ValueError:
            self._find(node, path, f'{text[:40]!r} cannot be read as a number', 'correct it')
            return None
