"""
Owns the load of the evidence: a stream of images in the same domain, and agents that watch.

The images are published by one process and heard by another: what nobody hears is not sent.
"""

from __future__ import annotations

from array import array
import asyncio
import contextlib
import sys
import threading
import time
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Image
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from bench.agent import Agent
from bench.worker import serve

TOPIC = 'camera/image_raw'
IMAGE_BYTES = 2_000_000
IMAGE_HZ = 20.0
AGENTS = 10
CHANNELS = ({'channel': 'proprio', 'rate_hz': 100}, {'channel': 'arm_state'})
_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_OPEN_S = 20.0


class Images:
    """One end of the image stream."""

    def __init__(self, name: str) -> None:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node(name)
        self._count = 0

    def publish(self) -> bool:
        """Begin to publish."""
        publisher = self._node.create_publisher(Image, TOPIC, _QOS)
        message = Image(height=1000, width=1000, encoding='16UC1', step=2000)
        message.data = array('B', bytes(IMAGE_BYTES))

        def turn() -> None:
            due_s = time.monotonic()
            while True:
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(
                    time.time_ns(), 1_000_000_000
                )
                publisher.publish(message)
                due_s = max(due_s + 1.0 / IMAGE_HZ, time.monotonic())
                time.sleep(max(0.0, due_s - time.monotonic()))

        threading.Thread(target=turn, daemon=True).start()
        return True

    def hear(self) -> bool:
        """Begin to hear."""
        self._node.create_subscription(Image, TOPIC, self._on_image, _QOS, raw=True)
        executor = SingleThreadedExecutor()
        executor.add_node(self._node)

        def turn() -> None:
            while True:
                executor.spin_once(timeout_sec=1.0)

        threading.Thread(target=turn, daemon=True).start()
        return True

    def heard(self) -> int:
        """Return how many images have arrived so far."""
        return self._count

    def _on_image(self, data: bytes) -> None:
        assert len(data) > IMAGE_BYTES
        self._count += 1


class Crowd:
    """Agents that observe, each on a connection of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._messages = 0
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def watch(self, url: str, token: str, count: int) -> int:
        """Connect that many observers and keep them reading."""
        future = asyncio.run_coroutine_threadsafe(self._watch(url, token, count), self._loop)
        return future.result(_OPEN_S)

    def heard(self) -> int:
        """Return how many messages all of them have heard."""
        return self._messages

    def leave(self) -> bool:
        """Disconnect them."""
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(_OPEN_S)
        return True

    async def _watch(self, url: str, token: str, count: int) -> int:
        for number in range(count):
            opened = self._loop.create_future()
            work = self._one(url, token, f'watcher-{number}', opened)
            self._tasks.append(self._loop.create_task(work))
            await opened
        return len(self._tasks)

    async def _one(self, url: str, token: str, name: str, opened: asyncio.Future[bool]) -> None:
        async with connect(
            url,
            subprotocols=[Subprotocol('awp')],
            additional_headers={'Authorization': f'Bearer {token}'},
            compression=None,
            ping_interval=None,
            max_size=None,
        ) as socket:
            agent = Agent(socket)
            await agent.call(
                'initialize',
                protocol_versions=['0.1'],
                agent={'name': name, 'version': '1', 'vendor': 'evidence'},
                consumes_modalities=['proprio/json', 'text/event+json'],
            )
            await agent.call('session.open', mode='streaming', subscribe=list(CHANNELS))
            opened.set_result(True)
            keeping = asyncio.create_task(agent.keep())
            try:
                with contextlib.suppress(ConnectionClosed):
                    while True:
                        await socket.recv(decode=False)
                        self._messages += 1
            finally:
                keeping.cancel()

    async def _leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def main() -> None:
    """Run one part of the load, named by the argument, until the pipe of the commands closes."""
    sys.setswitchinterval(0.0002)
    part = sys.argv[1]
    commands: dict[str, Any]
    if part == 'crowd':
        crowd = Crowd()
        commands = {'watch': crowd.watch, 'heard': crowd.heard, 'leave': crowd.leave}
    else:
        images = Images(f'evidence_{part}')
        commands = {'publish': images.publish, 'hear': images.hear, 'heard': images.heard}
    serve(commands)


if __name__ == '__main__':
    main()
