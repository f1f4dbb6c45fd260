"""
Owns a thread that spins one node: its callbacks, work posted to it, and its deadlines.

An exception that escapes into the events executor ends the whole process, so nothing that this
thread runs may raise: callbacks go through :meth:`RosThread.guard`, posted work and deadlines are
guarded here. Deadlines live on the steady clock and need no timer of ROS.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import wraps
import heapq
import itertools
import logging
import threading
import time
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future

_LOG = logging.getLogger(__name__)

# rclpy's default callbacks warn through a deprecated call: with warnings as errors they raise
NO_EVENTS = SubscriptionEventCallbacks(use_default_callbacks=False)

LONGEST_WAIT_NS = 250_000_000  # the spin is bounded: an unbounded one of events spins idle


class Deadline:
    """A moment at which a thread runs a function; cancelled by the thread that owns it."""

    __slots__ = ('_function', 'at_ns')

    def __init__(self, at_ns: int, function: Callable[[], None]) -> None:
        self.at_ns = at_ns
        self._function: Callable[[], None] | None = function

    @property
    def is_cancelled(self) -> bool:
        return self._function is None

    def cancel(self) -> None:
        """Forget the function; harmless when it has run."""
        self._function = None

    def fire(self) -> None:
        """Run the function unless it was cancelled or ran before."""
        function, self._function = self._function, None
        if function is not None:
            function()


class RosThread:
    """
    Spins one node on a thread of its own.

    :param on_fatal: told once, on the failing thread, when something escaped or the spin ended.
    :ivar last_turn_ns: steady time at which the thread last came out of something it ran.
    """

    def __init__(self, name: str, on_fatal: Callable[[str], None]) -> None:
        self.name = name
        self.last_turn_ns = time.monotonic_ns()
        self._on_fatal = on_fatal
        self._executor: Executor | None = None
        self._queue: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._heap: list[tuple[int, int, Deadline]] = []
        self._count = itertools.count()
        self._turn: Future[None] = Future()
        self._turn_ends_ns = 0
        self._stopping = False
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._run, name=f'ros-{name}', daemon=True)

    @property
    def failure(self) -> str | None:
        """What went wrong on this thread, or None."""
        return self._failure

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def start(self, node: Node) -> None:
        """Begin to spin the node; called once."""
        self._executor = _executor(node)
        self._executor.add_node(node)
        self._thread.start()
        if self._queue:
            self._wake()

    def stop(self, timeout_s: float) -> bool:
        """Ask the spin to end and wait for it; tell whether it did in time."""
        self._stopping = True
        self._wake()
        if self._thread.is_alive() and not self.is_current:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Release the executor; only after :meth:`stop`."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(timeout_sec=0)

    def post(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run a function on this thread, in the order of posting; callable on any thread."""
        self._queue.append((function, arguments))
        self._wake()

    def call_at(self, at_ns: int, function: Callable[[], None]) -> Deadline:
        """Run a function at a steady time; only on this thread, or before it starts."""
        deadline = Deadline(at_ns, function)
        heapq.heappush(self._heap, (at_ns, next(self._count), deadline))
        if at_ns < self._turn_ends_ns:
            self._end_turn()
        return deadline

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> Deadline:
        """Run a function after a delay; only on this thread, or before it starts."""
        return self.call_at(time.monotonic_ns() + delay_ns, function)

    def every(self, period_ns: int, function: Callable[[], None]) -> None:
        """Run a function periodically until the thread stops; missed turns are skipped."""

        def turn() -> None:
            started_ns = time.monotonic_ns()
            self._heap_turn(started_ns + period_ns, turn)
            function()

        self.call_later(period_ns, turn)

    def guard(self, function: Callable[..., None]) -> Callable[..., None]:
        """Return the function as a callback that reports an exception instead of raising it."""

        @wraps(function)
        def guarded(*arguments: Any) -> None:
            self._call(function, *arguments)

        return guarded

    def _heap_turn(self, at_ns: int, turn: Callable[[], None]) -> None:
        if not self._stopping:
            self.call_at(at_ns, turn)

    def _wake(self) -> None:
        executor = self._executor
        if executor is not None:
            executor.create_task(self._drain)

    def _run(self) -> None:
        try:
            self._spin()
        except Exception as error:  # noqa: BLE001 a spin that ends is a reason to stop the robot
            self._fail(f'spin ended: {type(error).__name__}: {error}')
            _LOG.debug('thread=%s', self.name, exc_info=True)

    def _spin(self) -> None:
        # One call for many callbacks: returning to Python after each costs more than most of them.
        executor = self._executor
        assert executor is not None
        while not self._stopping:
            self._turn = Future()
            self._turn_ends_ns = self._next_look_ns()
            wait_s = (self._turn_ends_ns - time.monotonic_ns()) * 1e-9
            if wait_s > 0.0:
                executor.spin_until_future_complete(self._turn, wait_s)
            else:
                executor.spin_once(timeout_sec=0.0)
            self._turn_ends_ns = 0
            self.last_turn_ns = now_ns = time.monotonic_ns()
            if self._heap and self._heap[0][0] <= now_ns:
                self._run_due(now_ns)

    def _end_turn(self) -> None:
        """Come back from the executor after the callback that runs now."""
        if not self._turn.done():
            self._turn.set_result(None)

    def _next_look_ns(self) -> int:
        """Return when the spin has to come back: the next deadline, or the longest wait."""
        heap = self._heap
        while heap and heap[0][2].is_cancelled:
            heapq.heappop(heap)
        longest_ns = time.monotonic_ns() + LONGEST_WAIT_NS
        return min(heap[0][0], longest_ns) if heap else longest_ns

    def _run_due(self, now_ns: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            self._call(heapq.heappop(heap)[2].fire)

    def _drain(self) -> None:
        queue = self._queue
        for _ in range(len(queue)):
            if not queue:
                return
            function, arguments = queue.popleft()
            self._call(function, *arguments)
        if self._stopping:
            self._end_turn()

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:  # noqa: BLE001 it must not reach the executor
            _LOG.exception('thread=%s', self.name)
            self._fail(f'{type(error).__name__}: {error}')
        self.last_turn_ns = time.monotonic_ns()  # one spin runs many callbacks: each is a turn

    def _fail(self, detail: str) -> None:
        if self._failure is None and not self._stopping:
            self._failure = f'thread {self.name}: {detail}'
            _LOG.error('%s', self._failure)
            self._on_fatal(self._failure)


def _executor(node: Node) -> Executor:
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=node.context)
    executor: Executor = EventsExecutor(context=node.context)
    return executor
