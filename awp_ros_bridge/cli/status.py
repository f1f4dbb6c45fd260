"""Owns ``awp status``: how every part of a running bridge is."""

from __future__ import annotations

import argparse
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.cli.ros_verb import add_verb, carry_out, Json, NO, OK

if TYPE_CHECKING:
    from awp_ros_bridge.ros.visitor import Visitor

_LEVELS = ('ok', 'warn', 'error', 'stale')


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        'status',
        'how every part of a running bridge is',
        'Show the diagnostics of a running bridge: server, sessions, embodiments, safety inputs, '
        'action servers, channels.',
        'a part is in error',
    )
    parser.add_argument('--values', action='store_true', help='show the figures of each part too')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show how the bridge is."""
    return carry_out(args, lambda visitor: _status(args, visitor))


def _status(args: argparse.Namespace, visitor: Visitor) -> tuple[int, Json]:
    bridge = visitor.the_bridge(args.bridge)
    prefix = f'{bridge.lstrip("/")}: '

    def is_ours(message: Any) -> bool:
        return any(status.name.startswith(prefix) for status in message.status)

    heard = visitor.hear('/diagnostics', is_ours)
    rows = [
        {
            'name': status.name.removeprefix(prefix),
            'level': _level(status.level),
            'message': status.message,
            'values': {pair.key: pair.value for pair in status.values},
        }
        for status in heard.status
        if status.name.startswith(prefix)
    ]
    if not args.json:
        _print(bridge, rows, with_values=args.values)
    is_well = all(row['level'] in _LEVELS[:2] for row in rows)
    return OK if is_well else NO, {'bridge': bridge, 'statuses': rows}


def _level(level: bytes) -> str:
    number = level[0]
    return _LEVELS[number] if number < len(_LEVELS) else str(number)


def _print(bridge: str, rows: list[Json], *, with_values: bool) -> None:
    print(bridge)
    width = max((len(row['name']) for row in rows), default=0)
    for row in rows:
        print(f'  {row["level"]:5}  {row["name"]:{width}}  {row["message"]}')
        if with_values:
            for key, value in row['values'].items():
                print(f'         {"":{width}}  {key}: {value}')
