"""Owns ``awp sessions``: who drives what, and who watches."""

from __future__ import annotations

import argparse
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.cli.ros_verb import add_verb, carry_out, Json, OK

if TYPE_CHECKING:
    from awp_ros_bridge.ros.visitor import Visitor


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        'sessions',
        'who drives what, and who watches',
        'List the sessions of a running bridge: agent, what it holds, what it does.',
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List the sessions."""
    return carry_out(args, lambda visitor: _sessions(args, visitor))


def _sessions(args: argparse.Namespace, visitor: Visitor) -> tuple[int, Json]:
    bridge = visitor.the_bridge(args.bridge)
    heard = visitor.hear(f'{bridge}/sessions')
    rows = [
        {
            'session': status.name,
            'summary': status.message,
            **{pair.key: pair.value for pair in status.values},
        }
        for status in heard.status
    ]
    if not args.json:
        _print(bridge, rows)
    return OK, {'bridge': bridge, 'sessions': rows}


def _print(bridge: str, rows: list[Json]) -> None:
    print(f'{bridge}: {len(rows)} session{"" if len(rows) == 1 else "s"}')
    for row in rows:
        print(f'  {row["session"]}  {row["summary"]}')
        said = {
            'from': row['peer'] or 'nobody attached',
            'credential': row['credential'],
            'doing': row['actions'],
            'reads': row['channels'],
        }
        told = '; '.join(f'{key} {value}' for key, value in said.items() if value)
        print(f'    {told}; open for {int(row["age_ms"]) / 1000:.0f} s')
