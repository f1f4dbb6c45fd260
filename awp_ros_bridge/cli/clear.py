"""Owns ``awp clear``: taking an operator's stop away, from a shell."""

from __future__ import annotations

import argparse
from typing import Any

from awp_ros_bridge.cli.operator import add_embodiment, ask
from awp_ros_bridge.cli.ros_verb import add_verb, carry_out


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        'clear',
        'take away the stop of an operator, and what is latched',
        'Take away the stop of an operator, and inputs that are latched until one clears them. '
        'The hardware must be clear by itself; nothing resumes.',
        'nothing was engaged, or something still forbids motion; it is printed',
    )
    add_embodiment(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Clear."""
    return carry_out(
        args, lambda visitor: ask(args, visitor, [visitor.the_bridge(args.bridge)], 'clear')
    )
