"""
Owns the conversation with one action server: goal and result requests, feedback, status.

It speaks to the action's services and topics directly. rclpy's ActionClient keeps a future of
every goal it ever sent and decodes the server's whole list of retained goals at each status.
"""

from __future__ import annotations

from collections.abc import Callable
import struct
from typing import Any
import uuid

from action_msgs.msg import GoalStatus, GoalStatusArray
from rclpy.client import Client
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default, QoSProfile
from rclpy.serialization import deserialize_message
from unique_identifier_msgs.msg import UUID

from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.names import action_part
from awp_ros_bridge.ros.runtime import NO_EVENTS, RosThread

ENDED = {
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
}

_CDR_HEADER = 4
_UUID_LENGTH = 16


class Pending:
    """An outstanding request; dropping it forgets the answer."""

    __slots__ = ('_client', '_future')

    def __init__(self, client: Client[Any, Any], future: Any) -> None:
        self._client = client
        self._future = future

    def drop(self) -> None:
        """Forget the request; harmless when it was answered."""
        self._client.remove_pending_request(self._future)


class ActionLink:
    """
    One action server, cached for the life of the process; used on its thread only.

    :param server: name in the configuration; relative names follow the node's namespace.
    :ivar on_status: told each serialized status list; must not raise.
    :raises ValueError: the action type is not installed
    """

    def __init__(self, node: Node, thread: RosThread, server: str, ros_type: str) -> None:
        self.server = server
        self._thread = thread
        self._type = load_interface(ros_type).Impl
        self._listeners: dict[bytes, Callable[[bytes], None]] = {}
        self._status = b''
        self.on_status: Callable[[bytes], None] = lambda data: None
        self._goal_client: Client[Any, Any] = node.create_client(
            self._type.SendGoalService, action_part(node, server, 'send_goal')
        )
        self._result_client: Client[Any, Any] = node.create_client(
            self._type.GetResultService, action_part(node, server, 'get_result')
        )
        node.create_subscription(
            self._type.FeedbackMessage,
            action_part(node, server, 'feedback'),
            thread.guard(self._on_feedback),
            QoSProfile(depth=10),
            event_callbacks=NO_EVENTS,
            raw=True,
        )
        node.create_subscription(
            GoalStatusArray,
            action_part(node, server, 'status'),
            thread.guard(self._on_status),
            qos_profile_action_status_default,
            event_callbacks=NO_EVENTS,
            raw=True,
        )

    @property
    def outstanding(self) -> int:
        """Number of requests without an answer, plus goals listened to; 0 when idle."""
        requests = len(self._goal_client._pending_requests)
        requests += len(self._result_client._pending_requests)
        return requests + len(self._listeners)

    def is_ready(self) -> bool:
        """Tell whether the graph shows the server."""
        return self._goal_client.service_is_ready() and self._result_client.service_is_ready()

    def send(self, goal_id: bytes, goal: Any, on_answer: Callable[[bool], None]) -> Pending:
        """
        Send a goal request.

        :raises TypeError: the message is not the goal of this action
        """
        request = self._type.SendGoalService.Request()
        request.goal_id = UUID(uuid=list(goal_id))
        request.goal = goal
        return self._call(self._goal_client, request, lambda answer: on_answer(answer.accepted))

    def request_result(self, goal_id: bytes, on_result: Callable[[int, Any], None]) -> Pending:
        """Ask for the result; the callback takes the status and the result message."""
        request = self._type.GetResultService.Request(goal_id=UUID(uuid=list(goal_id)))
        return self._call(
            self._result_client, request, lambda answer: on_result(answer.status, answer.result)
        )

    def probe(self, on_alive: Callable[[], None]) -> Pending:
        """Ask for the result of a goal that nobody sent: a live server answers at once."""
        request = self._type.GetResultService.Request(goal_id=UUID(uuid=list(uuid.uuid4().bytes)))
        return self._call(self._result_client, request, lambda _: on_alive())

    def listen(self, goal_id: bytes, on_feedback: Callable[[bytes], None]) -> None:
        """Hand the serialised feedback of a goal to a callback until :meth:`forget`."""
        self._listeners[goal_id] = on_feedback

    def forget(self, goal_id: bytes) -> None:
        """Drop feedback of a goal from now on."""
        self._listeners.pop(goal_id, None)

    def feedback(self, data: bytes) -> Any:
        """Decode what a listener was handed."""
        return deserialize_message(data, self._type.FeedbackMessage).feedback

    def status_of(self, goal_id: bytes) -> int | None:
        """
        Return the goal's status in the newest status message, None where it is not listed.

        Transitions in between are merged, so this reconciles, it does not count.
        """
        at = self._status.find(goal_id, _CDR_HEADER)
        if at < 0:
            return None
        # after the id: the acceptance stamp, aligned to 4 behind the header, then the status
        stamp = -(-(at - _CDR_HEADER + _UUID_LENGTH) // 4) * 4 + _CDR_HEADER
        try:
            return int(struct.unpack_from('<b', self._status, stamp + 8)[0])
        except struct.error:
            return None

    def _call(
        self, client: Client[Any, Any], request: Any, on_answer: Callable[[Any], None]
    ) -> Pending:
        future = client.call_async(request)

        def done(_: Any) -> None:
            answer = future.result()
            if answer is not None:
                on_answer(answer)

        future.add_done_callback(self._thread.guard(done))
        return Pending(client, future)

    def _on_feedback(self, data: bytes) -> None:
        listener = self._listeners.get(data[_CDR_HEADER : _CDR_HEADER + _UUID_LENGTH])
        if listener is not None:
            listener(data)

    def _on_status(self, data: bytes) -> None:
        self._status = data
        self.on_status(data)
