"""Owns what the programs share of their command lines: the part of ROS, levels, signals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
import signal

LEVELS = ('debug', 'info', 'warning', 'error')
ROS_LEVELS = {**dict(zip(LEVELS, LEVELS, strict=True)), 'warn': 'warning', 'fatal': 'error'}

EXIT_OK = 0
EXIT_FAULT = 1
EXIT_USAGE = 2  # arguments, configuration, credentials or library versions


def cut(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into our words and those of ROS, which begin at ``--ros-args``."""
    at = list(words).index('--ros-args') if '--ros-args' in words else len(words)
    return list(words[:at]), list(words[at:])


def ros_options(words: Sequence[str], node: str) -> dict[str, str]:
    """
    Return the parameter ``config`` and the log level that stand among the ROS arguments.

    :param node: name of the program's node, which may stand before a parameter
    """
    found: dict[str, str] = {}
    for flag, value in pairwise(words):
        name, _, text = value.rpartition(':=')
        if flag in ('-p', '--param') and name in ('config', f'{node}:config'):
            found['config'] = text
        elif flag == '--log-level' and name in ('', node):
            found['level'] = ROS_LEVELS.get(text.lower(), 'info')
    return found


def ending_signals() -> list[signal.Signals]:
    """
    Return the signals that ask for the end.

    A process under ``nohup`` outlives its terminal. SIGINT always asks: shells have background
    jobs of scripts ignore it, but ``ros2 launch`` ends with it whatever it starts.
    """
    asked = [signal.SIGINT, signal.SIGTERM]
    is_kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return asked if is_kept else [*asked, signal.SIGHUP]
