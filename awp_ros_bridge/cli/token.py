"""Owns ``awp token``: the verbs about bearer tokens."""

from __future__ import annotations

from typing import Any

from awp_ros_bridge.cli import token_list, token_make, token_revoke


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        'token',
        help='bearer tokens of agents',
        description='Make, list and revoke bearer tokens; a running bridge follows in a second.',
    )
    inner = parser.add_subparsers(title='verbs', metavar='VERB', required=True)
    for verb in (token_make, token_list, token_revoke):
        verb.add_parser(inner)
