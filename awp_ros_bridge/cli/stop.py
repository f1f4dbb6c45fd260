"""Owns ``awp stop``: the operator's stop, from a shell."""

from __future__ import annotations

import argparse
from typing import Any

from awp_ros_bridge.cli.operator import add_embodiment, ask
from awp_ros_bridge.cli.ros_verb import add_verb, carry_out


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        'stop',
        'stop the robot, until it is cleared',
        'Forbid motion and cancel the goals of one embodiment, or of all. It holds until "awp '
        'clear". Where several bridges run and none is named, every one is stopped. This is no '
        'replacement for an e-stop button.',
        'a bridge said no; what was stopped is printed',
    )
    add_embodiment(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Stop."""
    return carry_out(
        args, lambda visitor: ask(args, visitor, visitor.bridges(args.bridge), 'stop')
    )
