"""Owns ``awp token list``: which tokens there are, without the tokens."""

from __future__ import annotations

import argparse
from typing import Any

from awp_ros_bridge.cli.token_place import (
    about,
    add_place,
    carry_out,
    entries_of,
    exit_codes,
    place_of,
)


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        'list',
        help='list the tokens by id, name and scopes',
        description='List the tokens of a file: id, name, what they may do, when they were made.',
        epilog=exit_codes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_place(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List the tokens."""
    return carry_out(args, lambda: _list(args))


def _list(args: argparse.Namespace) -> dict[str, Any]:
    path, _ = place_of(args)
    entries = entries_of(path)
    if not args.json:
        for each in entries:
            reach = 'all' if each.embodiments is None else ','.join(each.embodiments)
            print(f'{each.id}  {each.made}  {",".join(each.scopes)}  on {reach}  {each.name}')
        if not entries:
            print(f'{path}: no token; nobody can log in')
    return {'file': str(path), 'tokens': [about(each) for each in entries]}
