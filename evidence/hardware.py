"""
Owns the safety hardware of the evidence: topics that beat at 10 Hz and say an edge at once.

``floor/e_stop`` is the topic of the floor: the same message on the same terms, but what hears it
is a plain node that sends one cancel.
"""

from __future__ import annotations

import sys
import threading
import time

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Bool

from awp_ros_bridge.sim_robot.stops import LATCHED
from bench.worker import serve

TOPICS = {
    'e_stop': 'safety/e_stop',
    'protective_stop': 'safety/protective_stop',
    'floor': 'floor/e_stop',
}
BEAT_S = 0.1


class Hardware:
    """The publishers and what they say."""

    def __init__(self) -> None:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        node = Node('evidence_hardware')
        self._lock = threading.Lock()
        self._said = dict.fromkeys(TOPICS, False)
        self._publishers = {
            name: node.create_publisher(Bool, topic, LATCHED) for name, topic in TOPICS.items()
        }
        threading.Thread(target=self._beat, daemon=True).start()

    def say(self, name: str, engaged: bool) -> int:
        """Say an edge; return the steady ns right before its publication."""
        message = Bool(data=engaged)
        with self._lock:
            self._said[name] = engaged
            now_ns = time.monotonic_ns()
            self._publishers[name].publish(message)
        return now_ns

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            with self._lock:
                for name, publisher in self._publishers.items():
                    publisher.publish(Bool(data=self._said[name]))


def main() -> None:
    """Run until the pipe of the commands closes."""
    sys.setswitchinterval(0.0002)
    serve({'say': Hardware().say})


if __name__ == '__main__':
    main()
