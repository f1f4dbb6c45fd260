"""
Owns a client of Gazebo's own TCP transport, for pause, reset, pushes and the force sensor.

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
_CHUNK_BYTES = 65536
_OFFERS = ('publisher_subscribe', 'publisher_add')


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


class Subscription:
    """One topic that is listened to; one thread may take what was said on it."""

    def __init__(self) -> None:
        """Begin with nobody who speaks."""
        self._speaker: socket.socket | None = None
        self._has_speaker = threading.Event()
        self._rest = b''

    def begin(self, speaker: socket.socket) -> None:
        """Take up who speaks; whatever is said waits in the socket."""
        speaker.setblocking(False)
        self._speaker = speaker
        self._has_speaker.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for who speaks."""
        return self._has_speaker.wait(timeout_s)

    def take(self) -> list[bytes]:
        """Give what was said since the last time, oldest first."""
        assert self._speaker is not None
        data = self._rest
        with contextlib.suppress(OSError):  # nothing more for now
            while part := self._speaker.recv(_CHUNK_BYTES):
                data += part
        taken, at = [], 0
        while (start := at + _LENGTH_DIGITS) <= len(data):
            end = start + int(data[at:start], 16)
            if end > len(data):
                break
            taken.append(data[start:end])
            at = end
        self._rest = data[at:]
        return taken

    def close(self) -> None:
        """Hear nothing more."""
        if self._speaker is not None:
            self._speaker.close()


class GazeboClient:
    """A connection to the master, and what it offers."""

    def __init__(self, port: int) -> None:
        """Connect to the master of a world that has loaded."""
        self._packet = message_class('gazebo.msgs.Packet')
        self._subscribe = message_class('gazebo.msgs.Subscribe')
        self._publish = message_class('gazebo.msgs.Publish')
        self._topics: dict[str, Publisher] = {}
        self._wanted: dict[str, Subscription] = {}
        self._heard: list[Subscription] = []
        self._listening = socket.create_server((_HOST, 0))
        self._master = socket.create_connection((_HOST, port), timeout=5.0)
        self._master.settimeout(None)
        self._master.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for work in (self._accept, self._follow_master):
            threading.Thread(target=work, name='gazebo', daemon=True).start()

    def close(self) -> None:
        """Disconnect."""
        for each in (self._listening, self._master):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for heard in self._heard:
            heard.close()

    def offer(self, topic: str, message_type: str, timeout_s: float = 1.0) -> Publisher:
        """
        Advertise a topic and wait for its listener.

        :raises TransportError: none in time
        """
        publisher = self._topics[topic] = Publisher()
        told = self._publish(
            topic=topic, msg_type=message_type, host=_HOST, port=self._listening.getsockname()[1]
        )
        self._tell(self._master, 'advertise', told)
        if not publisher.wait(timeout_s):
            raise TransportError(f'nobody listens to {topic} within {timeout_s} s')
        return publisher

    def subscribe(self, topic: str, message_type: str, timeout_s: float = 1.0) -> Subscription:
        """
        Listen to a topic and wait for who publishes it.

        :raises TransportError: nobody in time
        """
        heard = self._wanted[topic] = Subscription()
        self._heard.append(heard)
        self._tell(self._master, 'subscribe', self._wish(topic, message_type))
        if not heard.wait(timeout_s):
            raise TransportError(f'nobody publishes {topic} within {timeout_s} s')
        return heard

    def _wish(self, topic: str, message_type: str) -> Any:
        port = self._listening.getsockname()[1]
        return self._subscribe(
            topic=topic, host=_HOST, port=port, msg_type=message_type, latching=False
        )

    def _tell(self, to: socket.socket, kind: str, message: Any) -> None:
        packet = self._packet(type=kind, serialized_data=message.SerializeToString())
        packet.stamp.sec, packet.stamp.nsec = int(time.time()), 0
        to.sendall(_framed(packet.SerializeToString()))

    def _follow_master(self) -> None:
        """Take what the master tells everybody; only who publishes what is listened to counts."""
        with contextlib.suppress(OSError, EOFError, ValueError):
            while True:
                packet = self._packet.FromString(_framed_next(self._master))
                if packet.type not in _OFFERS:
                    continue
                offer = self._publish.FromString(packet.serialized_data)
                heard = self._wanted.pop(offer.topic, None)
                if heard is not None:
                    self._listen(heard, offer)

    def _listen(self, heard: Subscription, offer: Any) -> None:
        speaker = socket.create_connection((offer.host, offer.port), timeout=5.0)
        self._tell(speaker, 'sub', self._wish(offer.topic, offer.msg_type))
        heard.begin(speaker)

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
                packet = self._packet.FromString(_framed_next(peer))
                if packet.type == 'sub':
                    topic = self._subscribe.FromString(packet.serialized_data).topic
                    if topic in self._topics:
                        self._topics[topic].add(peer)


def _framed(data: bytes) -> bytes:
    return b'%08X' % len(data) + data


def _framed_next(peer: socket.socket) -> bytes:
    return _exactly(peer, int(_exactly(peer, _LENGTH_DIGITS), 16))


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = b''
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
