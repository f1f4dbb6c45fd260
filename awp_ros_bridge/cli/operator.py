"""Owns what ``awp stop`` and ``awp clear`` have in common: which services are called, and how."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
import time
from typing import TYPE_CHECKING

from awp_ros_bridge.cli.ros_verb import Json, NO, OK, UNUSABLE

if TYPE_CHECKING:
    from awp_ros_bridge.ros.visitor import Visitor


_SERVICES_S = 1.5  # who told one of its services tells the others soon


def add_embodiment(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names one embodiment."""
    parser.add_argument(
        'embodiment', metavar='EMBODIMENT', nargs='?', help='only this one; default: all'
    )


def ask(
    args: argparse.Namespace, visitor: Visitor, bridges: Iterable[str], word: str
) -> tuple[int, Json]:
    """
    Call a service of each bridge as it is found.

    :param word: last part of the service's name.
    """
    answers: list[Json] = []
    known: list[str] = []
    for bridge in bridges:
        place = bridge
        if args.embodiment is not None:
            token = _token(args.embodiment)
            offered = _offered(visitor, bridge, word, token)
            if token not in offered:
                known += [f'{name} of {bridge}' for name in offered]
                continue
            place = f'{bridge}/{token}'
        ok, message = visitor.call(f'{place}/{word}')
        answers.append({'bridge': bridge, 'ok': ok, 'message': message})
        if not args.json:
            print(f'{bridge}: {message}')
    if not answers:
        text = f'no embodiment {args.embodiment!r}; there are: {", ".join(known) or "none"}'
        if not args.json:
            print(text)
        return UNUSABLE, {'error': text, 'answers': answers}
    return OK if all(a['ok'] for a in answers) else NO, {'answers': answers}


def _offered(visitor: Visitor, bridge: str, word: str, token: str) -> list[str]:
    """Wait until an embodiment offers a service, or others do and it does not; return which do."""
    heard_s: float | None = None

    def is_known() -> bool:
        nonlocal heard_s
        offered, now_s = visitor.triggers(bridge, word), time.monotonic()
        if offered and heard_s is None:
            heard_s = now_s
        return token in offered or (heard_s is not None and now_s - heard_s >= _SERVICES_S)

    visitor.wait(is_known)
    return visitor.triggers(bridge, word)


def _token(name: str) -> str:
    from awp_ros_bridge.ros.names import topic_token

    return topic_token(name)
