"""Owns ``awp token revoke``: a token that opens nothing any more."""

from __future__ import annotations

import argparse
from typing import Any

from awp_ros_bridge.cli.token_place import (
    about,
    add_place,
    carry_out,
    entries_of,
    exit_codes,
    NOT_FOUND,
    place_of,
    TokenFault,
)
from awp_ros_bridge.config import changing, TokenEntry, write_tokens


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        'revoke',
        help='revoke a token; its sessions end',
        description='Revoke a token: a running bridge closes its sessions, the robot comes to '
        'rest, and its connections end.',
        epilog=exit_codes('there is no such token, or its name is that of several'),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('which', metavar='ID', help='id of a token, or its name if it is alone')
    add_place(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Revoke one token."""
    return carry_out(args, lambda: _revoke(args))


def _revoke(args: argparse.Namespace) -> dict[str, Any]:
    path, _ = place_of(args)
    with changing(path) as real:
        entries = entries_of(real)
        entry = _find(entries, args.which)
        write_tokens(real, [each for each in entries if each is not entry])
    if not args.json:
        print(f'revoked {entry.id} ({entry.name})')
    return {'file': str(path), 'revoked': about(entry)}


def _find(entries: tuple[TokenEntry, ...], which: str) -> TokenEntry:
    by_id = [each for each in entries if each.id == which]
    found = by_id or [each for each in entries if each.name == which]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ', '.join(each.id for each in found)
        raise TokenFault(f'several tokens have that name: {ids}; give an id', NOT_FOUND)
    ids = ', '.join(each.id for each in entries) or 'none'
    raise TokenFault(f'there is no such token; there are: {ids}', NOT_FOUND)
