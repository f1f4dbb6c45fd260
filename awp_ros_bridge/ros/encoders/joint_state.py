"""Owns the encoding of sensor_msgs/msg/JointState, whose rate matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import orjson
from rclpy.serialization import deserialize_message

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.manifest.channels import JOINT_STATE, joint_state_schema
from awp_ros_bridge.ros.cdr import JointStateReader, NotPlainCdr, Numbers
from awp_ros_bridge.ros.encoders.base import Encoder, EncoderContext
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]

_TURNING = ('q_rad', 'dq_radps', 'tau_nm')
_SLIDING = ('q_m', 'dq_mps', 'f_n')


class JointStateEncoder(Encoder):
    """
    Positions, velocities and efforts of joints by name.

    All arrays are as long as the names; what is missing, not finite or of another unit is null.

    :param prismatic: joints that slide: their values go to the arrays in m, m/s and N
    """

    types = (JOINT_STATE,)
    modalities = ('proprio/json',)
    keys = frozenset({'prismatic'})
    summary = (
        'All arrays are as long as `name`; what is missing, not finite or of another unit is '
        'null. `prismatic` names the joints that slide; only then there are the last three arrays.'
    )

    def __init__(self, prismatic: Sequence[str] = ()) -> None:
        self._has_sliding = bool(prismatic)
        self._prismatic = frozenset(prismatic)
        self._reader = JointStateReader()
        self._names: tuple[str, ...] | None = None
        self._head = b''
        self._nulls: list[float | None] = []
        self._slides: tuple[int, ...] = ()

    @classmethod
    def make(cls, channel: TopicChannel, context: EncoderContext) -> Self:
        """Make the encoder of a channel."""
        return cls(channel.prismatic)

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return joint_state_schema(bool(channel.prismatic))

    def encode(self, raw: bytes) -> tuple[bytes, int | None]:
        """Return the payload and the stamp in ns."""
        try:
            stamp_ns, *rows = self._reader.read(raw)
            names = self._reader.names
        except NotPlainCdr:
            stamp_ns, names, rows = _deserialized(raw)
        if names != self._names:
            self._learn(names)
        size = len(names)
        # A row may be absent, or by mistake of another length than the names.
        values = [row if len(row) == size else self._fitted(row) for row in rows]
        if not self._has_sliding:
            body = dict(zip(_TURNING, values, strict=True))
        else:
            body = self._by_unit(values)
        # Numbers that are not finite become null here.
        return self._head + orjson.dumps(body)[1:], stamp_ns

    def _learn(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._nulls = [None] * len(names)
        self._slides = tuple(i for i, name in enumerate(names) if name in self._prismatic)
        self._head = b'{"name":' + orjson.dumps(names) + b','

    def _fitted(self, row: Sequence[float | None]) -> Sequence[float | None]:
        return [*row, *self._nulls][: len(self._nulls)]

    def _by_unit(self, rows: Sequence[Sequence[float | None]]) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for turning, sliding, row in zip(_TURNING, _SLIDING, rows, strict=True):
            body[turning] = turns = list(row)
            body[sliding] = slides = self._nulls.copy()
            for index in self._slides:
                slides[index], turns[index] = turns[index], None
        return body


def _deserialized(raw: bytes) -> tuple[int, tuple[str, ...], list[Numbers]]:
    message = deserialize_message(raw, load_interface(JOINT_STATE))
    stamp = message.header.stamp
    rows = [tuple(message.position), tuple(message.velocity), tuple(message.effort)]
    return stamp.sec * 1_000_000_000 + stamp.nanosec, tuple(message.name), rows
