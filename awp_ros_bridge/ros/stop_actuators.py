"""
Owns everything on one node that can stop robots: zeros, stop services, cancels.

All publishers and clients are made at the start, so that they are matched before they are needed.
Nothing here knows of sessions, actions or the gate: the bridge's safety thread and the guardian
use it alike, each with a node and a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import logging

from rclpy.node import Node

from awp_ros_bridge.config import CallService, PublishZeros
from awp_ros_bridge.ros.cancel_clients import ANSWER_NS, CancelClients
from awp_ros_bridge.ros.names import action_part
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop_plan import cancelled_servers, StopPlan
from awp_ros_bridge.ros.stop_services import StopService
from awp_ros_bridge.ros.zeros import ZeroTopic

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepReport:
    """
    How one step of a stop went.

    :param step: its name and what it acted on, such as ``publish_zeros cmd_vel``.
    """

    step: str
    ok: bool
    detail: str

    def __str__(self) -> str:
        return f'{self.step}: {self.detail}'


Reported = Callable[[StepReport], None]


class _Unusable:
    """A step whose message or service type is not installed."""

    def __init__(self, why: str) -> None:
        self._why = why

    def begin(self, on_end: Callable[[bool, str], None]) -> None:
        on_end(False, self._why)

    def missing(self) -> str | None:
        return self._why


_Step = ZeroTopic | StopService | _Unusable


class StopActuators:
    """
    Carries the immediate steps out, those that only stop and wait for nothing.

    Everything but :meth:`missing` is called on the thread only.

    :param names: the node whose names and remappings count, the node itself where absent.
    :ivar cancels: cancels goals by id, or all goals of a server.
    """

    def __init__(
        self,
        node: Node,
        thread: RosThread,
        plans: Mapping[str, StopPlan],
        names: Node | None = None,
        answer_ns: int = ANSWER_NS,
    ) -> None:
        self._node = node
        self._thread = thread
        servers = cancelled_servers(plans.values())
        services = {s: action_part(names or node, s, 'cancel_goal') for s in servers}
        self.cancels = CancelClients(node, thread, services, answer_ns)
        made: dict[PublishZeros | CallService, _Step] = {}
        self._steps: dict[str, list[tuple[str, _Step]]] = {}
        for name, plan in plans.items():
            steps = self._steps[name] = []
            wanted: list[PublishZeros | CallService] = [*plan.zeros, *plan.calls]
            for step in wanted:
                if step not in made:
                    made[step] = self._make(step)
                steps.append((step.label, made[step]))

    def begin(self, embodiment: str, on_report: Reported) -> list[str]:
        """
        Send the first zero on every topic and call every service, now.

        :param on_report: takes one report per step, when that step is over; each is bounded.
        :return: the labels of the steps that will report.
        """
        steps = self._steps[embodiment]
        for label, step in steps:
            step.begin(_reporter(label, on_report))
        return [label for label, _ in steps]

    def missing(self, embodiment: str) -> list[str]:
        """Return what keeps the steps of an embodiment from having an effect; any thread."""
        found = (step.missing() for _, step in self._steps[embodiment])
        return [why for why in found if why is not None]

    def _make(self, step: PublishZeros | CallService) -> _Step:
        try:
            if isinstance(step, PublishZeros):
                return ZeroTopic(self._node, self._thread, step)
            return StopService(self._node, self._thread, step)
        except ValueError as error:  # the type is not installed: that step alone has no effect
            _LOG.error('%s: %s', step.label, error)
            return _Unusable(str(error))


def _reporter(label: str, on_report: Reported) -> Callable[[bool, str], None]:
    def report(ok: bool, detail: str) -> None:
        on_report(StepReport(label, ok, detail))

    return report
