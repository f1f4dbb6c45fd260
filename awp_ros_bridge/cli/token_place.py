"""Owns what the verbs about bearer tokens have in common: the file, the answers, the codes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
import json
from pathlib import Path
import sys
from typing import Any

from awp_ros_bridge.bridge.tokens import tokens_path
from awp_ros_bridge.config import directory_of, load, read_tokens, TokenEntry

OK = 0
NOT_FOUND = 1
UNUSABLE = 2


class TokenFault(Exception):
    """What keeps a verb from its work, with its exit code."""

    def __init__(self, text: str, code: int = UNUSABLE) -> None:
        super().__init__(text)
        self.code = code


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which file of tokens is meant."""
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument('--file', type=Path, metavar='FILE', help='file of tokens')
    place.add_argument(
        '--config', type=Path, metavar='FILE', help='configuration whose server.tokens_file is it'
    )
    parser.add_argument('--json', action='store_true', help='print one JSON object')


def place_of(args: argparse.Namespace) -> tuple[Path, frozenset[str] | None]:
    """
    Return the file of tokens, and the embodiments where they are known.

    :raises TokenFault: the configuration names none, or cannot be read
    """
    if args.file is not None:
        return Path(args.file).expanduser(), None
    result = load(args.config)
    if result.config is None:
        raise TokenFault('\n'.join(str(problem) for problem in result.errors))
    path = tokens_path(result.config.server, directory_of(args.config))
    if path is None:
        raise TokenFault(f'{args.config}: server.tokens_file is not set; set it, or use --file')
    return path, frozenset(result.config.embodiments)


def entries_of(path: Path, *, may_be_missing: bool = False) -> tuple[TokenEntry, ...]:
    """
    Return what stands in a file of tokens.

    :raises TokenFault: it cannot be used as it is
    """
    if may_be_missing and not path.exists():
        return ()
    found = read_tokens(path)
    if found.problems:
        raise TokenFault('\n'.join(map(str, found.problems)))
    return found.entries


def carry_out(args: argparse.Namespace, work: Callable[[], dict[str, Any]]) -> int:
    """Do the work of a verb; print its result as JSON if that was asked, and what kept it."""
    try:
        result = work()
    except (TokenFault, OSError) as error:
        text = str(error)
        if isinstance(error, OSError):
            text = f'{error.filename or "file of tokens"}: {error.strerror}'
        if args.json:
            print(json.dumps({'ok': False, 'error': text}))
        else:
            print(text, file=sys.stderr)
        return error.code if isinstance(error, TokenFault) else UNUSABLE
    if args.json:
        print(json.dumps({'ok': True, **result}, indent=2))
    return OK


def about(entry: TokenEntry) -> dict[str, Any]:
    """Return what may be shown of a token, which is not its hash."""
    return {
        'id': entry.id,
        'name': entry.name,
        'scopes': list(entry.scopes),
        'embodiments': None if entry.embodiments is None else list(entry.embodiments),
        'made': entry.made,
    }


def exit_codes(not_found: str = '') -> str:
    """Return the epilog of a verb's help."""
    lines = [f'  {OK}  done']
    if not_found:
        lines.append(f'  {NOT_FOUND}  {not_found}')
    lines.append(f'  {UNUSABLE}  arguments, or the file cannot be read or written')
    return '\n'.join(['exit codes:', *lines]) + '\n'
