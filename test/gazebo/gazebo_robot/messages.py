"""Owns the messages of Gazebo and of Ignition: classes made from what set-up wrote."""

from functools import cache
import os
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, message_factory


def gazebo_folder() -> Path:
    """
    Give the folder that ``scripts/lib/gazebo_setup.sh`` made.

    :raises RuntimeError: nothing names it
    """
    named = os.environ.get('AWP_BRIDGE_GAZEBO_DIR', '')
    if not named:
        raise RuntimeError('AWP_BRIDGE_GAZEBO_DIR is not set; run ./scripts/gazebo')
    return Path(named)


@cache
def _classes() -> dict[str, Any]:
    described = descriptor_pb2.FileDescriptorSet()
    described.ParseFromString((gazebo_folder() / 'messages.desc').read_bytes())
    return dict(message_factory.GetMessages(list(described.file)))


def message_class(name: str) -> Any:
    """Give the class of a message by its full name, as ``gazebo.msgs.Packet``."""
    return _classes()[name]
