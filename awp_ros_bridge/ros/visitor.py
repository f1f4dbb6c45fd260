"""
Owns how a program beside the bridge talks with it: find it, hear it, call it, all bounded.

ROS tells nobody when its graph changes, so what is waited for in the graph is looked at while the
node spins. A visitor belongs to one thread, which alone spins its node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import math
import os
import time
from typing import Any, Self

from diagnostic_msgs.msg import DiagnosticArray
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

LOOK_S = 0.05
OTHERS_S = 1.0  # after the first bridge was found: how long others are looked for

_ARRAY = 'diagnostic_msgs/msg/DiagnosticArray'
_TRIGGER = 'std_srvs/srv/Trigger'


class Unanswered(Exception):
    """Nobody answered within the limit; the text says what to look at."""


class Visitor:
    """
    A node of its own that lives as long as the program needs it.

    :param ros_args: command line for rclpy; its namespace and remappings hold for this node.
    :param timeout_s: longest wait for any one answer.
    :raises RuntimeError: a ROS argument is wrong, or the middleware cannot start
    """

    def __init__(self, ros_args: Sequence[str], timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._context = Context()
        rclpy.init(
            args=list(ros_args),
            context=self._context,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self.node = Node(
            f'awp_{os.getpid()}',
            context=self._context,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(timeout_sec=0)
        self.node.destroy_node()
        self._context.try_shutdown()

    # ------------------------------------------------------------ finding

    def bridges(self, wanted: str | None = None) -> Iterator[str]:
        """
        Yield the full names of running bridges, each as soon as it is found.

        :param wanted: full name of the only one that counts.
        :raises Unanswered: none, or not that one, was found within the limit
        """
        name = None if wanted is None else '/' + wanted.strip('/')
        known: list[str] = []
        ends_s = time.monotonic() + self.timeout_s
        while True:
            news = [each for each in self._seen() if each not in known]
            if not news and time.monotonic() >= ends_s:  # what was done with one may take long
                break
            for found in news:
                known.append(found)
                if name in (None, found):
                    yield found
                if name == found:
                    return
                if name is None and len(known) == 1:
                    ends_s = time.monotonic() + OTHERS_S
            self._turn(LOOK_S)
        if name is not None or not known:
            raise Unanswered(self._nobody(name, known))

    def the_bridge(self, wanted: str | None = None) -> str:
        """
        Return the full name of the one bridge that is meant.

        :raises Unanswered: there is none, or there are several and none was named
        """
        found = list(self.bridges(wanted))
        if len(found) > 1:
            raise Unanswered(f'there are {len(found)} bridges, name one: {_named(found)}')
        return found[0]

    def _seen(self) -> list[str]:
        ending = '/sessions'
        return sorted(
            topic.removesuffix(ending)
            for topic, types in self.node.get_topic_names_and_types()
            if topic.endswith(ending) and _ARRAY in types and self.node.count_publishers(topic)
        )

    def _nobody(self, name: str | None, known: list[str]) -> str:
        who = 'no bridge' if name is None else f'no bridge {name}'
        domain = os.environ.get('ROS_DOMAIN_ID', '0')
        reach = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
        text = f'{who} was found within {self.timeout_s:g} s'
        if known:
            return f'{text}; there are: {_named(known)}'
        return (
            f'{text}: is one running, and in the same ROS_DOMAIN_ID ({domain} here) and '
            f'ROS_AUTOMATIC_DISCOVERY_RANGE ({reach} here)? On a slow network raise --timeout-s'
        )

    # ------------------------------------------------------------ talking

    def hear(self, topic: str, is_it: Callable[[Any], bool] = lambda message: True) -> Any:
        """
        Wait for the next DiagnosticArray of a topic.

        :param is_it: picks among those that others publish there too.
        :raises Unanswered: none came within the limit
        """
        heard: list[Any] = []

        def take(message: Any) -> None:
            if is_it(message):
                heard.append(message)

        subscription = self.node.create_subscription(
            DiagnosticArray, topic, take, QoSProfile(depth=10)
        )
        try:
            if not self.wait(lambda: bool(heard)):
                raise Unanswered(
                    f'{topic} was silent for {self.timeout_s:g} s: the bridge hangs or has just '
                    f'ended; look at its process and its log'
                )
        finally:
            self.node.destroy_subscription(subscription)
        return heard[0]

    def triggers(self, bridge: str, word: str) -> list[str]:
        """Return the embodiments, as ROS writes them, that offer a service of this name."""
        head, tail = f'{bridge}/', f'/{word}'
        inner = (
            name.removeprefix(head).removesuffix(tail)
            for name, types in self.node.get_service_names_and_types()
            if _TRIGGER in types and name.startswith(head) and name.endswith(tail)
        )
        return sorted(name for name in inner if name != word and '/' not in name)

    def call(self, service: str) -> tuple[bool, str]:
        """
        Call a std_srvs/Trigger service and return success and message.

        :raises Unanswered: it is not there, or did not answer within the limit
        """
        client: Any = self.node.create_client(Trigger, service)
        try:
            if not self.wait(client.service_is_ready):
                raise Unanswered(f'service {service} is not there after {self.timeout_s:g} s')
            future = client.call_async(Trigger.Request())
            if not self.wait(future.done):
                raise Unanswered(
                    f'service {service} did not answer within {self.timeout_s:g} s; whether it '
                    f'did what was asked is not known'
                )
            answer = future.result()
        finally:
            self.node.destroy_client(client)
        return bool(answer.success), str(answer.message)

    def wait(self, condition: Callable[[], bool], most_s: float = math.inf) -> bool:
        """Spin until a condition is true; tell whether it was within the limit."""
        ends_s = time.monotonic() + min(self.timeout_s, most_s)
        while not condition():
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                return False
            self._turn(min(LOOK_S, left_s))
        return True

    def _turn(self, seconds: float) -> None:
        self._executor.spin_once(timeout_sec=seconds)


def _named(bridges: list[str]) -> str:
    return ', '.join(f'--bridge {name}' for name in sorted(bridges))
