"""That a cancel would arrive is proven by an answer, not by the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from action_msgs.srv import CancelGoal
import pytest

from awp_ros_bridge.ros.cancel_clients import CancelClients, MOST_PROOFS, PROVE_NS

SERVER = 'arm/move'


class Asked:
    """A request that the test answers, or not."""

    def __init__(self, request: Any) -> None:
        self.goal_id = bytes(request.goal_info.goal_id.uuid)
        self._response: Any = None
        self._on_done: Callable[[Any], None] = lambda future: None

    def result(self) -> Any:
        return self._response

    def add_done_callback(self, function: Callable[[Any], None]) -> None:
        self._on_done = function

    def answer(self) -> None:
        self._response = CancelGoal.Response()
        self._on_done(self)


class Server:
    """Stands for node, client and server: in the graph or not, and what it was asked."""

    def __init__(self) -> None:
        self.is_in_graph = True
        self.asked: list[Asked] = []
        self._pending_requests: dict[int, Asked] = {}

    def create_client(self, *_: object) -> Server:
        return self

    def service_is_ready(self) -> bool:
        return self.is_in_graph

    def call_async(self, request: Any) -> Asked:
        self.asked.append(Asked(request))
        self._pending_requests[id(self.asked[-1])] = self.asked[-1]
        return self.asked[-1]

    def remove_pending_request(self, future: Asked) -> None:
        self._pending_requests.pop(id(future), None)


class Turns:
    """A thread that only turns."""

    def __init__(self) -> None:
        self.period_ns = 0
        self.turn: Callable[[], None] = lambda: None

    def every(self, period_ns: int, function: Callable[[], None]) -> None:
        self.period_ns, self.turn = period_ns, function

    def guard(self, function: Callable[..., None]) -> Callable[..., None]:
        return function


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def clients(server: Server, turns: Turns) -> CancelClients:
    return CancelClients(server, turns, {SERVER: 'arm/move/_action/cancel_goal'})  # type: ignore[arg-type]


def test_a_server_in_the_graph_is_not_reached_before_it_answers(
    clients: CancelClients, server: Server, turns: Turns
) -> None:
    assert turns.period_ns == PROVE_NS
    turns.turn()
    assert clients.is_ready(SERVER) is False
    server.asked[0].answer()
    assert clients.is_ready(SERVER) is True
    turns.turn()
    assert len(server.asked) == 1  # asked once, for good


def test_what_proves_the_way_cancels_nothing(
    clients: CancelClients, server: Server, turns: Turns
) -> None:
    for _ in range(3):
        turns.turn()
    ids = {asked.goal_id for asked in server.asked}
    assert len(ids) == 3
    assert bytes(16) not in ids  # zeros mean every goal
    assert clients.outstanding == 0


@pytest.mark.parametrize('answered', [0, 1])
def test_a_lost_request_is_repeated_and_any_answer_proves_the_way(
    clients: CancelClients, server: Server, turns: Turns, answered: int
) -> None:
    turns.turn()
    turns.turn()
    assert len(server._pending_requests) == 2
    server.asked[answered].answer()
    assert clients.is_ready(SERVER) is True
    assert not server._pending_requests


def test_a_server_that_never_answers_is_asked_on_and_nothing_piles_up(
    clients: CancelClients, server: Server, turns: Turns
) -> None:
    for _ in range(2 * MOST_PROOFS):
        turns.turn()
    assert len(server.asked) == 2 * MOST_PROOFS
    assert len(server._pending_requests) == MOST_PROOFS
    server.asked[0].answer()  # given up long ago
    assert clients.is_ready(SERVER) is False
    server.asked[-1].answer()
    assert clients.is_ready(SERVER) is True


def test_a_server_that_comes_back_has_to_answer_again(
    clients: CancelClients, server: Server, turns: Turns
) -> None:
    turns.turn()
    server.asked[0].answer()
    server.is_in_graph = False
    assert clients.is_ready(SERVER) is False
    turns.turn()
    server.is_in_graph = True
    turns.turn()
    assert clients.is_ready(SERVER) is False
    server.asked[1].answer()
    assert clients.is_ready(SERVER) is True
    assert clients.is_ready('arm/other') is False
