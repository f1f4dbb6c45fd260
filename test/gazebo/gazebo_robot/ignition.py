"""
Owns a node of ignition-transport 8: it finds topics and services, and speaks to them over ZeroMQ.

One thread of its own answers discovery. Everything else is for one other thread, which may differ
from that: a ZeroMQ socket belongs to whoever uses it.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import socket
import struct
import threading
import time
from typing import Any
from uuid import uuid4

import zmq

from gazebo_robot.messages import message_class

_GROUP = '224.0.0.7'
_HOST = '127.0.0.1'
_TOPIC_PORT, _SERVICE_PORT = 10317, 10318
_WIRE_VERSION = 10
_BEAT_S = 1.0
_ALL_SCOPES = 2
_UNTHROTTLED = 2**64 - 1
_MOST_BYTES = 65535


class IgnitionError(RuntimeError):
    """Nobody offered or answered something in time."""


class IgnitionNode:
    """A participant of one partition."""

    def __init__(self, partition: str) -> None:
        """Join discovery on the loopback interface."""
        self._partition = partition
        self._kinds = message_class('ignition.msgs.Discovery')
        self._process, self._node = str(uuid4()), str(uuid4())
        self._context = zmq.Context()
        self._publisher, self._address = self._bound(zmq.PUB)
        self._control, self._control_address = self._bound(zmq.DEALER)
        self._replies, self._reply_address = self._bound(zmq.ROUTER, str(uuid4()))
        self._offered: dict[str, str] = {}
        self._listened: set[str] = set()
        self._found: dict[tuple[int, str], Any] = {}
        self._news = threading.Condition()
        self._udp = {port: _multicast(port) for port in (_TOPIC_PORT, _SERVICE_PORT)}
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._discover, name='ignition', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave."""
        self._is_closing.set()
        self._thread.join(2.0)
        for each in self._udp.values():
            each.close()
        self._context.destroy(linger=0)

    def full(self, topic: str) -> str:
        """Give the name that a topic has on the wire."""
        return f'@/{self._partition}@{topic}'

    def find_service(self, matches: Callable[[str], bool], timeout_s: float) -> str:
        """
        Wait for a service and give its name.

        :raises IgnitionError: none in time
        """

        def look() -> str:
            for port, name in self._found:
                topic = name.rsplit('@', 1)[-1]
                if port == _SERVICE_PORT and name == self.full(topic) and matches(topic):
                    return topic
            return ''

        with self._news:
            found = self._news.wait_for(look, timeout_s)
        if not found:
            raise IgnitionError(f'no such service within {timeout_s} s')
        return str(found)

    def request(
        self, service: str, message: Any, reply_type: str, timeout_s: float = 5.0
    ) -> Any:
        """
        Call a service and give its reply.

        :raises IgnitionError: not offered, not answered in time, or answered with a failure
        """
        name = self.full(service)
        with self._news:
            if not self._news.wait_for(lambda: (_SERVICE_PORT, name) in self._found, timeout_s):
                raise IgnitionError(f'service {service} is not offered')
            offer = self._found[_SERVICE_PORT, name]
        caller = self._context.socket(zmq.ROUTER)
        caller.setsockopt(zmq.ROUTER_MANDATORY, 1)
        caller.connect(offer.address)
        ends_s = time.monotonic() + timeout_s
        question = str(uuid4())
        parts = [
            offer.srv_pub.socket_id, name, self._reply_address,
            self._replies.getsockopt_string(zmq.IDENTITY), self._node, question,
            message.SerializeToString(), message.DESCRIPTOR.full_name, reply_type,
        ]
        try:
            self._send_when_connected(caller, parts, ends_s)
            return self._reply_to(question, service, reply_type, ends_s)
        finally:
            caller.close(linger=0)

    def offer(self, topic: str, message_type: str, timeout_s: float = 5.0) -> None:
        """
        Advertise a topic and wait until somebody listens to it.

        :raises IgnitionError: nobody in time
        """
        name = self.full(topic)
        with self._news:
            self._offered[name] = message_type
            self._say(_TOPIC_PORT, self._advertisement(name, message_type))
            if not self._news.wait_for(lambda: name in self._listened, timeout_s):
                raise IgnitionError(f'nobody listens to {topic}')

    def publish(self, topic: str, message: Any) -> None:
        """Send a message on a topic that was offered."""
        parts = (self.full(topic), self._address, message.SerializeToString())
        self._publisher.send_multipart([*map(_bytes, parts), _bytes(message.DESCRIPTOR.full_name)])

    def subscribe(self, topic: str, timeout_s: float = 5.0) -> zmq.Socket[bytes]:
        """
        Give a socket from which to take the messages of a topic; the third part is the content.

        :raises IgnitionError: nobody publishes it in time
        """
        name = self.full(topic)
        ask = self._kinds(type=self._kinds.SUBSCRIBE)
        ask.sub.topic = name
        with self._news:
            self._say(_TOPIC_PORT, ask)
            if not self._news.wait_for(lambda: (_TOPIC_PORT, name) in self._found, timeout_s):
                raise IgnitionError(f'nobody publishes {topic}')
            offer = self._found[_TOPIC_PORT, name]
        taken = self._context.socket(zmq.SUB)
        taken.setsockopt(zmq.RCVHWM, 0)
        taken.connect(offer.address)
        taken.setsockopt_string(zmq.SUBSCRIBE, name)
        hello = self._context.socket(zmq.DEALER)
        hello.connect(offer.msg_pub.ctrl)
        kind = str(self._kinds.NEW_CONNECTION)
        words = (name, self._process, self._node, offer.msg_pub.msg_type, kind)
        hello.send_multipart([_bytes(w) for w in words])
        return taken

    def _bound(self, kind: int, identity: str = '') -> tuple[Any, str]:
        opened = self._context.socket(kind)
        if identity:
            opened.setsockopt_string(zmq.IDENTITY, identity)
        opened.bind(f'tcp://{_HOST}:*')
        return opened, opened.getsockopt_string(zmq.LAST_ENDPOINT)

    @staticmethod
    def _send_when_connected(caller: Any, parts: list[Any], ends_s: float) -> None:
        while True:
            try:
                caller.send_multipart([_bytes(p) for p in parts])
                return
            except zmq.ZMQError as error:  # unroutable until the connection stands
                if error.errno != zmq.EHOSTUNREACH or time.monotonic() > ends_s:
                    raise IgnitionError(f'service at {parts[2]}: {error}') from error
                time.sleep(0.005)

    def _reply_to(self, question: str, service: str, reply_type: str, ends_s: float) -> Any:
        while self._replies.poll(max(0.0, (ends_s - time.monotonic()) * 1e3)):
            parts = self._replies.recv_multipart()
            if parts[3].decode() != question:
                continue
            if parts[5] != b'1':
                raise IgnitionError(f'service {service} failed')
            return message_class(reply_type).FromString(parts[4])
        raise IgnitionError(f'service {service} did not answer in time')

    def _advertisement(self, name: str, message_type: str) -> Any:
        message = self._kinds(type=self._kinds.ADVERTISE)
        offer = message.pub
        offer.topic, offer.address, offer.scope = name, self._address, _ALL_SCOPES
        offer.process_uuid, offer.node_uuid = self._process, self._node
        offer.msg_pub.ctrl, offer.msg_pub.msg_type = self._control_address, message_type
        offer.msg_pub.msgs_per_sec = _UNTHROTTLED
        return message

    def _say(self, port: int, message: Any) -> None:
        message.version, message.process_uuid = _WIRE_VERSION, self._process
        body = message.SerializeToString()
        with contextlib.suppress(OSError):  # said again with the next beat
            self._udp[port].sendto(struct.pack('<H', len(body)) + body, (_GROUP, port))

    def _beat(self) -> None:
        for port in self._udp:
            self._say(port, self._kinds(type=self._kinds.HEARTBEAT))
        for name, message_type in self._offered.items():
            self._say(_TOPIC_PORT, self._advertisement(name, message_type))

    def _discover(self) -> None:
        poller = zmq.Poller()
        ports = {each.fileno(): port for port, each in self._udp.items()}
        for number in ports:
            poller.register(number, zmq.POLLIN)
        poller.register(self._control, zmq.POLLIN)
        next_s = 0.0
        while not self._is_closing.is_set():
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + _BEAT_S
                with self._news:
                    self._beat()
            for source, _ in poller.poll(200):
                with self._news:
                    if source is self._control:
                        self._on_control(self._control.recv_multipart())
                    else:
                        self._on_datagram(ports[source], self._udp[ports[source]])
                    self._news.notify_all()

    def _on_control(self, parts: list[bytes]) -> None:
        if parts[4].decode() == str(self._kinds.NEW_CONNECTION):
            self._listened.add(parts[0].decode())

    def _on_datagram(self, port: int, udp: socket.socket) -> None:
        data = udp.recv(_MOST_BYTES)
        length = struct.unpack('<H', data[:2])[0]
        message = self._kinds.FromString(data[2 : 2 + length])
        if message.process_uuid == self._process or message.version != _WIRE_VERSION:
            return
        if message.type == self._kinds.ADVERTISE:
            self._found[port, message.pub.topic] = message.pub
        elif message.type == self._kinds.SUBSCRIBE and message.sub.topic in self._offered:
            name = message.sub.topic
            self._say(_TOPIC_PORT, self._advertisement(name, self._offered[name]))


def _bytes(part: Any) -> bytes:
    return part if isinstance(part, bytes) else str(part).encode()


def _multicast(port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    opened.bind((_GROUP, port))
    here = socket.inet_aton(_HOST)
    group = socket.inet_aton(_GROUP) + here
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    return opened
