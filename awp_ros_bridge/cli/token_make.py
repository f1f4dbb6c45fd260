"""Owns ``awp token make``: a new token, shown once."""

from __future__ import annotations

import argparse
from datetime import datetime, UTC
import secrets
from typing import Any, get_args

from awp_ros_bridge.cli.token_place import (
    about,
    add_place,
    carry_out,
    entries_of,
    exit_codes,
    place_of,
    TokenFault,
)
from awp_ros_bridge.config import changing, ScopeName, TokenEntry, write_tokens
from awp_ros_bridge.process.wall_time import utc_text
from awp_ros_bridge.transport.credentials import digest_of, new_token

SCOPES: tuple[ScopeName, ...] = get_args(ScopeName)


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        'make',
        help='make a token and show it once',
        description='Make a token and show it once; the file keeps its SHA-256 only.',
        epilog=exit_codes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_place(parser)
    parser.add_argument(
        '--scopes',
        required=True,
        type=_scopes,
        metavar='LIST',
        help=f'comma-separated: {", ".join(SCOPES)}; or all',
    )
    parser.add_argument('--name', default='agent', help='for people; default: agent')
    parser.add_argument(
        '--embodiments', type=_names, metavar='LIST', help='only these; default: all'
    )
    parser.set_defaults(run=run)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(',') if part.strip()))


def _scopes(text: str) -> tuple[ScopeName, ...]:
    names = _names(text)
    if names == ('all',):
        return SCOPES
    unknown = [name for name in names if name not in SCOPES]
    if unknown or not names:
        what = f'{unknown[0]!r} is no scope' if unknown else 'no scope is named'
        raise argparse.ArgumentTypeError(f'{what}; there are {", ".join(SCOPES)}, or all')
    return tuple(name for name in SCOPES if name in names)


def run(args: argparse.Namespace) -> int:
    """Make one token."""
    return carry_out(args, lambda: _make(args))


def _make(args: argparse.Namespace) -> dict[str, Any]:
    path, known = place_of(args)
    unknown = set(args.embodiments or ()) - (known or set(args.embodiments or ()))
    if unknown:
        raise TokenFault(
            f'--embodiments: {sorted(unknown)[0]!r} is not in {args.config}; there are '
            f'{", ".join(sorted(known or ()))}'
        )
    if not args.name.isprintable():
        raise TokenFault('--name holds a character that cannot be printed')
    token = new_token()
    with changing(path) as real:
        entries = entries_of(real, may_be_missing=True)
        entry = _entry(args, token)
        write_tokens(real, [*entries, entry])
    if not args.json:
        print(f'token   {token}')
        print(f'id      {entry.id}')
        print(f'may     {", ".join(entry.scopes)}; on {_reach(entry)}')
        print(f'in      {path}')
        print('The token is shown only now. Agents send it as "Authorization: Bearer <token>".')
    return {'token': token, 'file': str(path), **about(entry)}


def _entry(args: argparse.Namespace, token: str) -> TokenEntry:
    try:
        return TokenEntry(
            id=f'tok_{secrets.token_hex(6)}',
            name=args.name,
            sha256=digest_of(token).hex(),
            scopes=args.scopes,
            embodiments=args.embodiments or None,
            made=utc_text(datetime.now(UTC), 'seconds'),
        )
    except ValueError:
        raise TokenFault(
            '--name is empty, or --embodiments holds what is no AWP identifier'
        ) from None


def _reach(entry: TokenEntry) -> str:
    return 'all embodiments' if entry.embodiments is None else ', '.join(entry.embodiments)
