"""Owns the entry of the command line: verbs, help, exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import sys

from awp_ros_bridge import __version__
from awp_ros_bridge.cli import audit, check, clear, sessions, status, stop, token
from awp_ros_bridge.process.arguments import cut

VERBS = (check, status, sessions, stop, clear, token, audit)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all verbs."""
    parser = argparse.ArgumentParser(
        prog='awp', description='Tools for the AWP bridge. Exit codes stand in the help of each.'
    )
    parser.add_argument('--version', action='version', version=f'awp_ros_bridge {__version__}')
    verbs = parser.add_subparsers(title='verbs', metavar='VERB', required=True)
    for verb in VERBS:
        verb.add_parser(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    words, ros_words = cut(sys.argv[1:] if argv is None else argv)
    args = make_parser().parse_args(words)
    args.ros_args = ros_words
    try:
        code: int = args.run(args)
    except KeyboardInterrupt:
        return 130  # as shells say it
    except BrokenPipeError:  # the reader of a pipe went away; that is no fault
        sys.stderr.close()
        return 1
    return code


if __name__ == '__main__':
    sys.exit(main())
