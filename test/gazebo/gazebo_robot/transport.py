"""
Owns a client of Gazebo's own TCP transport, for what only that offers: pause, reset, pushes.

The master must not be touched before the world has loaded, not even to see whether it is there:
it may then lose the world's own publishers.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any

from gazebo_robot.messages import message_class

_HOST = '127.0.0.1'
_LENGTH_DIGITS = 8


class TransportError(RuntimeError):
    """Nobody listened in time."""


class Publisher:
    """One topic that is offered, and who listens to it."""

    def __init__(self) -> None:
        """Begin without listeners."""
        self._listeners: list[socket.socket] = []
        self._has_listener = threading.Event()

    def add(self, listener: socket.socket) -> None:
        """Take a listener up."""
        self._listeners.append(listener)
        self._has_listener.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the first listener."""
        return self._has_listener.wait(timeout_s)

    def send(self, message: Any) -> None:
        """Send a message to whoever listens."""
        data = _framed(message.SerializeToString())
        for listener in list(self._listeners):
            try:
                listener.sendall(data)
            except OSError:
                self._listeners.remove(listener)


class GazeboClient:
    """A connection to the master, and what it offers."""

    def __init__(self, port: int) -> None:
        """Connect to the master of a world that has loaded."""
        self._packet = message_class('gazebo.msgs.Packet')
        self._subscribe = message_class('gazebo.msgs.Subscribe')
        self._publish = message_class('gazebo.msgs.Publish')
        self._topics: dict[str, Publisher] = {}
        self._listening = socket.create_server((_HOST, 0))
        self._master = socket.create_connection((_HOST, port), timeout=5.0)
        self._master.settimeout(None)
        self._master.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for work in (self._accept, self._drain):
            threading.Thread(target=work, name='gazebo', daemon=True).start()

    def close(self) -> None:
        """Disconnect."""
        for each in (self._listening, self._master):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def offer(self, topic: str, message_type: str, timeout_s: float = 1.0) -> Publisher:
        """
        Advertise a topic and wait for its listener.

        :raises TransportError: none in time
        """
        publisher = self._topics[topic] = Publisher()
        told = self._publish(
            topic=topic, msg_type=message_type, host=_HOST, port=self._listening.getsockname()[1]
        )
        packet = self._packet(type='advertise', serialized_data=told.SerializeToString())
        packet.stamp.sec, packet.stamp.nsec = int(time.time()), 0
        self._master.sendall(_framed(packet.SerializeToString()))
        if not publisher.wait(timeout_s):
            raise TransportError(f'nobody listens to {topic} within {timeout_s} s')
        return publisher

    def _drain(self) -> None:
        """Take what the master tells everybody; nothing of it is needed here."""
        with contextlib.suppress(OSError):
            while self._master.recv(65536):
                pass

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listening.accept()
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(
                    target=self._hear, args=(peer,), name='gazebo', daemon=True
                ).start()

    def _hear(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            while True:
                length = int(_exactly(peer, _LENGTH_DIGITS), 16)
                packet = self._packet.FromString(_exactly(peer, length))
                if packet.type == 'sub':
                    topic = self._subscribe.FromString(packet.serialized_data).topic
                    if topic in self._topics:
                        self._topics[topic].add(peer)


def _framed(data: bytes) -> bytes:
    return b'%08X' % len(data) + data


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = b''
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
