"""
Owns the requests that cancel goals, through service clients that were matched in advance.

A plain client of ``<action>/_action/cancel_goal`` reads no status array, so nothing delays it. It
knows nothing of who sent the goals: the bridge and the guardian use it alike.

That the graph shows a server does not mean that the server has met this client already: its first
requests may be lost, for a second and longer. So each server is asked to cancel a goal that nobody
sent, until it has answered: only then is the way to it proven.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
import uuid

from action_msgs.srv import CancelGoal
from rclpy.client import Client
from rclpy.node import Node
from unique_identifier_msgs.msg import UUID

from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import Deadline, RosThread

ANSWER_NS = 1_000 * MS  # then the wait is named; the answer still counts
FORGET_NS = 20_000 * MS
PROVE_NS = 200 * MS  # a server that has not proven the way to it is asked again this often
MOST_PROOFS = 50  # a server that answers within 10 s is reached

_EVERY_GOAL = bytes(16)  # with a zero stamp too: all goals of the server (action_msgs/CancelGoal)

Answered = Callable[[Any], None]
Late = Callable[[], None]


class CancelClients:
    """
    One client per action server, all on one node; used on its thread only.

    :param services: full name of the cancel service, by server.
    :param answer_ns: from the request to the moment at which the wait is named.
    """

    def __init__(
        self,
        node: Node,
        thread: RosThread,
        services: Mapping[str, str],
        answer_ns: int = ANSWER_NS,
    ) -> None:
        self._thread = thread
        self._answer_ns = answer_ns
        self._clients: dict[str, Client[Any, Any]] = {
            server: node.create_client(CancelGoal, name) for server, name in services.items()
        }
        self._proofs: dict[str, list[Any]] = {server: [] for server in services}
        self._proven: set[str] = set()
        thread.every(PROVE_NS, self._prove)

    @property
    def answer_ms(self) -> int:
        """The bound of the wait for an answer, ms."""
        return self._answer_ns // MS

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers that requests can go to."""
        return tuple(self._clients)

    @property
    def outstanding(self) -> int:
        """Number of requests without an answer, besides those that prove the way."""
        requests = sum(len(client._pending_requests) for client in self._clients.values())
        return max(0, requests - sum(map(len, self._proofs.values())))

    def is_ready(self, server: str) -> bool:
        """Tell whether a request would reach the server, since one did; any thread."""
        client = self._clients.get(server)
        return client is not None and server in self._proven and client.service_is_ready()

    def cancel(self, server: str, goal_id: bytes, on_answer: Answered, on_late: Late) -> bool:
        """
        Ask a server to cancel one goal; tell whether there is a client for it.

        :param on_answer: takes the response of type ``CancelGoal.Response``, also a late one.
        :param on_late: called once when the answer has not come in time.
        """
        return self._ask(server, goal_id, on_answer, on_late)

    def cancel_all(self, server: str, on_answer: Answered, on_late: Late) -> bool:
        """Ask a server to cancel every goal, whoever sent it; else as :meth:`cancel`."""
        return self._ask(server, _EVERY_GOAL, on_answer, on_late)

    def _prove(self) -> None:
        for server, client in self._clients.items():
            if not client.service_is_ready():
                self._proven.discard(server)  # another one may come, which has not met us
                self._drop_proofs(server)
            elif server not in self._proven:
                self._ask_nothing(server, client)

    def _ask_nothing(self, server: str, client: Client[Any, Any]) -> None:
        request = CancelGoal.Request()
        request.goal_info.goal_id = UUID(uuid=list(uuid.uuid4().bytes))
        future = client.call_async(request)
        proofs = self._proofs[server]
        proofs.append(future)
        if len(proofs) > MOST_PROOFS:
            client.remove_pending_request(proofs.pop(0))

        def done(_: Any) -> None:
            if future.result() is not None and future in proofs:  # a slow server's, too
                self._proven.add(server)
                self._drop_proofs(server)

        future.add_done_callback(self._thread.guard(done))

    def _drop_proofs(self, server: str) -> None:
        proofs = self._proofs[server]
        while proofs:
            self._clients[server].remove_pending_request(proofs.pop())

    def _ask(self, server: str, goal_id: bytes, on_answer: Answered, on_late: Late) -> bool:
        client = self._clients.get(server)
        if client is None:
            return False
        request = CancelGoal.Request()
        request.goal_info.goal_id = UUID(uuid=list(goal_id))
        future = client.call_async(request)
        box: list[Deadline] = []

        def late() -> None:
            box[0] = self._thread.call_later(FORGET_NS, forget)
            on_late()

        def forget() -> None:
            client.remove_pending_request(future)

        def done(_: Any) -> None:
            box[0].cancel()
            response = future.result()
            if response is not None:
                on_answer(response)

        box.append(self._thread.call_later(self._answer_ns, late))
        future.add_done_callback(self._thread.guard(done))
        return True


def cancelling(response: Any) -> int:
    """Return how many goals a server says that it is cancelling now."""
    if response.return_code != CancelGoal.Response.ERROR_NONE:
        return 0
    return len(response.goals_canceling)
