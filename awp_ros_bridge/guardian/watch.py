"""Owns the node of the guardian: beats in, answers out, and the stop at the end of a lease."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import logging
import secrets
import time
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.guardian.stops import ANSWER_NS, Stops
from awp_ros_bridge.guardian.wards import Ward, Wards
from awp_ros_bridge.ros.guardian_words import (
    Alive,
    ALIVE_NS,
    ALIVE_QOS,
    ALIVE_TOPIC,
    Beat,
    BEAT_QOS,
    BEAT_TOPIC,
    digest_of,
    Kind,
    MS,
    NOTICE_QOS,
    NOTICE_TOPIC,
    WordsUnreadable,
)
from awp_ros_bridge.ros.runtime import Deadline, NO_EVENTS, RosThread
from awp_ros_bridge.ros.stop_actuators import StopActuators
from awp_ros_bridge.ros.stop_plan import stop_plans

_LOG = logging.getLogger('awp_ros_bridge.guardian')

NAME = 'awp_ros_guardian'
OWN_DELAY_NS = 50 * MS  # later than this to its own look, the guardian blames itself first
MOST_WAIT_NS = 8_000 * MS  # how long it outlives a request to end


class Watch:
    """
    Guards every bridge whose beats it hears, on a thread of its own.

    :param bridge: name of the bridge's node, below which the topics lie.
    :param on_over: called once, on any thread, when the guardian may end.
    """

    def __init__(
        self,
        config: BridgeConfig,
        bridge: str,
        ros_args: Sequence[str],
        on_over: Callable[[], None],
    ) -> None:
        """
        Create everything.

        :raises RCLError: a ROS argument is wrong, or the middleware cannot start
        """
        self.name = secrets.token_hex(4)
        self._on_over = on_over
        self._is_asked = False
        self._is_over = False
        self._look: Deadline | None = None
        self.failure: str | None = None
        self._context = Context()
        rclpy.init(
            args=list(ros_args),
            context=self._context,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self._node = Node(
            NAME,
            context=self._context,
            start_parameter_services=False,
            enable_rosout=False,
            parameter_overrides=[Parameter('start_type_description_service', value=False)],
        )
        self._thread = RosThread('guardian', self._on_fatal)
        plans = stop_plans(config)
        resolve = self._node.resolve_topic_name
        names = {resolve(s): s for plan in plans.values() for s in plan.all_servers}
        self.servers = sorted({resolve(s) for plan in plans.values() for s in plan.servers})
        lease_ns = config.safety.lease_ms * MS
        self._wards = Wards(digest_of(self.servers, config.safety.lease_ms), lease_ns)
        actuators = StopActuators(self._node, self._thread, plans, answer_ns=ANSWER_NS)
        self._stops = Stops(self._thread, actuators, plans, names)
        self._stops.on_idle = self._end_if_asked
        self._stops.records.on_over = self._answer
        self._publisher = self._node.create_publisher(String, f'{bridge}/{ALIVE_TOPIC}', ALIVE_QOS)
        self._subscription = self._listen(f'{bridge}/{BEAT_TOPIC}', BEAT_QOS)
        self._listen(f'{bridge}/{NOTICE_TOPIC}', NOTICE_QOS)

    @property
    def topic(self) -> str:
        """Full name of the topic that it listens to."""
        return str(self._subscription.topic_name)

    @property
    def failed_stops(self) -> int:
        """Number of goals that could not be cancelled."""
        return self._stops.failed

    def start(self) -> None:
        """Begin."""
        self._thread.every(ALIVE_NS, self._answer)
        self._thread.start(self._node)

    def ask_to_end(self) -> None:
        """End as soon as no bridge is left to guard, at the latest after the limit; any thread."""
        if not self._is_asked:
            self._is_asked = True
            self._thread.post(self._begin_ending)

    def stop(self, timeout_s: float) -> None:
        """Say that it ends, and close everything; for the main thread."""
        self._is_over = True
        self._publisher.publish(Alive(self.name, is_ending=True).to_bytes())
        if self._thread.stop(timeout_s):
            self._thread.close()
            self._node.destroy_node()
        self._context.try_shutdown()

    # ------------------------------------------------------------ beats

    def _listen(self, topic: str, qos: QoSProfile) -> Any:
        callback = self._thread.guard(self._on_beat)
        return self._node.create_subscription(
            String, topic, callback, qos, event_callbacks=NO_EVENTS, raw=True
        )

    def _on_beat(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        try:
            beat = Beat.from_bytes(data)
        except WordsUnreadable as error:
            _LOG.debug('a beat cannot be understood: %s', error)
            return
        begun = self._wards.take(beat, now_ns)
        if begun is not None:
            self._say_begun(begun)
        if begun is not None or beat.kind is Kind.GOODBYE:
            self._answer()
        self._arm(now_ns)
        self._end_if_asked()

    def _say_begun(self, ward: Ward) -> None:
        again = ' again' if ward.stops else ''
        problem = self._wards.problem_of(ward)
        if problem:
            _LOG.error('bridge=%s %s', ward.instance, problem)
        else:
            _LOG.info('bridge=%s is guarded%s', ward.instance, again)

    def _answer(self) -> None:
        if self._is_over:
            return  # the last word was said
        alive = Alive(
            self.name,
            self._wards.answers(),
            unreached=self._stops.unreached(),
            stopped=self._stops.records.reports(),
        )
        self._publisher.publish(alive.to_bytes())

    # ------------------------------------------------------------ leases

    def _arm(self, now_ns: int) -> None:
        if self._look is None or self._look.is_cancelled:
            due_ns = self._wards.next_ns()
            if due_ns is not None:
                self._look = self._thread.call_at(max(due_ns, now_ns), self._on_due)

    def _on_due(self) -> None:
        now_ns = time.monotonic_ns()
        late_ns = now_ns - (self._look.at_ns if self._look is not None else now_ns)
        self._look = None
        if late_ns > OWN_DELAY_NS:
            # this process itself was stopped, and the beats meanwhile wait to be read: once
            self._look = self._thread.call_later(OWN_DELAY_NS, self._expire)
        else:
            self._expire()

    def _expire(self) -> None:
        now_ns = time.monotonic_ns()
        self._look = None
        for ward in self._wards.expire(now_ns):
            self._stop(ward, now_ns)
        self._arm(now_ns)
        self._end_if_asked()

    def _stop(self, ward: Ward, now_ns: int) -> None:
        silent_ms = (now_ns - ward.heard_ns) // MS
        if not ward.is_idle:
            self._stops.stop(ward.instance, silent_ms, ward.goals.values())  # first of all
        self._answer()
        if ward.is_idle:
            _LOG.warning('bridge=%s is silent for %d ms, it was idle', ward.instance, silent_ms)
            return
        _LOG.error(
            'bridge=%s is silent for %d ms: cancelling %d goals',
            ward.instance, silent_ms, len(ward.goals),
        )  # fmt: skip

    # ------------------------------------------------------------ the end

    def _begin_ending(self) -> None:
        guarded = [ward.instance for ward in self._wards.guarded]
        if guarded:
            _LOG.info(
                'asked to end: waiting for the goodbye of %s, at most %d ms',
                ', '.join(guarded), MOST_WAIT_NS // MS,
            )  # fmt: skip
        self._thread.call_later(MOST_WAIT_NS, self._on_over)
        self._end_if_asked()

    def _end_if_asked(self) -> None:
        if self._is_asked and not self._wards.guarded and self._stops.is_idle:
            self._on_over()

    def _on_fatal(self, detail: str) -> None:
        self.failure = detail
        self._on_over()
