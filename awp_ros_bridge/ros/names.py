"""Owns the names of what belongs to an action server, remapped the same for every node."""

from __future__ import annotations

import re

from rclpy.node import Node


def action_part(node: Node, server: str, part: str) -> str:
    """
    Return the full name of a service or topic of an action server.

    The action's own name is remapped here: not every distribution does that for its parts.
    """
    return f'{node.resolve_topic_name(server)}/_action/{part}'


def topic_token(name: str) -> str:
    """Return an AWP identifier as a token of a ROS name."""
    token = re.sub(r'[^A-Za-z0-9_]', '_', name)
    token = re.sub(r'_+', '_', token)
    return token if token[:1].isalpha() or token[:1] == '_' else f'_{token}'
