"""Owns a fake robot: an action server, joint states and safety topics, all with knobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
import threading
import time
from typing import Any, ClassVar, Self

from patience import WAIT_S
import rclpy
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from test_msgs.action import Fibonacci

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Limits, Outcome

Json = dict[str, Any]
HELD_S = 15.0  # how long a callback may keep the robot's thread at most
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


def eventually(
    condition: Callable[[], Any], what: str = 'a condition', timeout_s: float = WAIT_S
) -> Any:
    """Wait until a condition is true and return its value."""
    ends_s = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > ends_s:
            raise AssertionError(f'{what} did not come true within {timeout_s} s')
        time.sleep(0.001)
    return value


class FibonacciAdapter(Adapter):
    """Maps params {order} onto the Fibonacci action of test_msgs."""

    name: ClassVar[str] = 'fibonacci'
    kind: ClassVar[str] = 'action'
    extended: ClassVar[bool] = True
    ros_type: ClassVar[str] = 'test_msgs/action/Fibonacci'

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        return {'type': 'object'}

    def check(self, params: Json) -> GoalRefusal | None:
        return None

    def goal(self, params: Json) -> Any:
        if 'order' not in params:
            raise ValueError('params.order is missing')
        return Fibonacci.Goal(order=params['order'])

    def progress(self, params: Json, feedback: Any) -> float | None:
        return len(feedback.sequence) / 10 if feedback.sequence else None

    def outcome(self, result: Any) -> Outcome:
        ok = list(result.sequence) != [-1]
        return Outcome(ok, f'sequence of {len(result.sequence)}' if ok else 'error code -1')


class MeasuredAdapter(FibonacciAdapter):
    """Measures progress, as adapters do whose server tells none."""

    measured: ClassVar[float] = 0.25

    def progress(self, params: Json, feedback: Any) -> float | None:
        return None

    def begin(self, params: Json) -> Json:
        return {'from': 0.0}

    def measured_progress(self, params: Json, start: Json) -> float | None:
        return float(start['from']) + self.measured


def context(embodiment: str = 'arm', action_type: str = 'move') -> AdapterContext:
    """Return a context that offers nothing."""
    return AdapterContext(
        embodiment=embodiment,
        action_type=action_type,
        limits=Limits(),
        joints=lambda: None,
        chain=lambda: None,
        ros_frame=lambda frame: frame,
        frames=lambda: (),
        now_stamp=lambda: None,
    )


@dataclass(slots=True)
class Knobs:
    """
    How the fake server misbehaves.

    :param accept_s: time the goal callback takes.
    :param decides: what the goal callback waits for.
    :param cancel_s: time the cancel callback takes.
    :param obeys_cancel: False leaves a cancelled goal running.
    """

    accepts: bool = True
    accept_s: float = 0.0
    decides: threading.Event | None = None
    accepts_cancel: bool = True
    cancel_s: float = 0.0
    obeys_cancel: bool = True
    early_feedback: bool = False
    ends_at_once: bool = False


@dataclass(slots=True)
class Seen:
    """
    What reached the server, with steady times.

    :param arrivals: when goal requests were looked at.
    :param requests: accepted goals.
    """

    arrivals: list[int] = field(default_factory=list)
    requests: list[tuple[bytes, int]] = field(default_factory=list)
    cancels: list[tuple[bytes, int]] = field(default_factory=list)

    def cancelled(self, goal_id: str) -> int:
        """Count the cancels of a goal."""
        return sum(uuid == bytes.fromhex(goal_id) for uuid, _ in self.cancels)

    def requested(self, goal_id: str) -> int:
        """Count the requests of a goal."""
        return sum(uuid == bytes.fromhex(goal_id) for uuid, _ in self.requests)


class FakeRobot:
    """One node with everything a robot has, on a thread of its own; also a node of its own."""

    def __init__(
        self,
        domain_id: int,
        action: str = 'arm/move',
        namespace: str = '',
        result_timeout: int = 10,
    ) -> None:
        self.knobs = Knobs()
        self.seen = Seen()
        self.handles: dict[bytes, Any] = {}
        self._context = Context()
        rclpy.init(
            context=self._context,
            domain_id=domain_id,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self.node = rclpy.create_node(
            'fake_robot', context=self._context, namespace=namespace or None
        )
        self.result_timeout = result_timeout
        self.action = action
        self.server: ActionServer[Any, Any, Any] | None = None
        self.start_server()
        self.joints = self.node.create_publisher(JointState, 'joint_states', 10)
        self.velocity: float | None = 0.0
        self.position = 0.0
        self.service_calls = 0
        self._answers = threading.Event()
        self._answers.set()
        self.node.create_service(Trigger, 'arm/trigger', self._on_trigger)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._running = threading.Event()
        self._running.set()
        self._stopping = False
        self._joints_s = 0.0
        self._thread = threading.Thread(target=self._spin, name='fake-robot', daemon=True)
        self._thread.start()
        self._pacer: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._joints_s = 0.0
        if self._pacer is not None:
            self._pacer.join()
        self._stopping = True
        self._running.set()
        self.release()
        self._executor.wake()
        self._thread.join(5.0)
        for _ in range(10):  # a goal that has just begun is a coroutine that wants to be run
            self._executor.spin_once(timeout_sec=0.0)
        if self.server is not None:
            self.server.destroy()
        self._executor.shutdown(1.0)
        self.node.destroy_node()
        self._context.try_shutdown()

    # ------------------------------------------------------------ knobs

    def answer_services(self, answers: bool) -> None:
        """Answer what was and is asked, or keep it waiting."""
        if answers:
            self._answers.set()
        else:
            self._answers.clear()

    def release(self) -> None:
        """Let every callback that a test keeps waiting go on."""
        self._answers.set()
        if self.knobs.decides is not None:
            self.knobs.decides.set()

    def start_server(self) -> None:
        """Offer the action."""
        self.server = ActionServer(
            self.node,
            Fibonacci,
            self.action,
            execute_callback=lambda handle: Fibonacci.Result(),
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
            result_timeout=self.result_timeout,
        )

    def stop_server(self) -> None:
        """Withdraw the action, as an orderly shutdown does."""
        server, self.server = self.server, None
        if server is not None:
            self.run(server.destroy)

    def freeze(self) -> None:
        """Fall silent at once and stay in the graph, as a killed process does."""
        self._running.clear()

    def thaw(self) -> None:
        """Go on."""
        self._running.set()

    def publish_joints(self, rate_hz: float) -> None:
        """Publish joint states with the current velocity until the rate is 0."""
        self._joints_s = 0.0 if rate_hz == 0 else 1 / rate_hz
        if rate_hz and (self._pacer is None or not self._pacer.is_alive()):
            self._pacer = threading.Thread(target=self._pace, daemon=True)
            self._pacer.start()

    def publish_joint_sample(self, **arrays: Any) -> None:
        """Publish one joint state."""
        message = JointState(name=['j1', 'j2'], position=[self.position, 0.0])
        message.header.stamp = self.node.get_clock().now().to_msg()
        if self.velocity is not None:
            message.velocity = [self.velocity, 0.0]
        for name, value in arrays.items():
            setattr(message, name, value)
        self.joints.publish(message)

    def feedback(self, goal_id: str, length: int) -> None:
        """Publish feedback of a goal, progress length/10."""
        message = Fibonacci.Feedback(sequence=[0] * length)
        self.run(lambda: self.handles[bytes.fromhex(goal_id)].publish_feedback(message))

    def late_feedback(self, handle: Any) -> None:
        """Publish feedback of a goal that has ended, which a server of rclpy refuses to do."""
        message = Fibonacci.Impl.FeedbackMessage(goal_id=handle.goal_id)
        assert self.server is not None
        self.server._handle.publish_feedback(message)

    def end(self, goal_id: str, how: str, sequence: tuple[int, ...] = (0, 1)) -> None:
        """End a goal: succeed, abort or canceled."""
        self.run(lambda: self._end(bytes.fromhex(goal_id), how, sequence))

    def run(self, function: Callable[[], Any]) -> None:
        """Run on the robot's thread, and wait unless it is frozen."""
        done = threading.Event()

        def work() -> None:
            function()
            done.set()

        self._executor.create_task(work)
        if self._running.is_set():
            assert done.wait(10.0), 'the fake robot did not answer'

    # ------------------------------------------------------------ inside

    def _spin(self) -> None:
        while not self._stopping:
            self._running.wait()
            self._executor.spin_once(timeout_sec=0.05)

    def _pace(self) -> None:
        while self._joints_s:
            if self._running.is_set():
                self.publish_joint_sample()
            time.sleep(self._joints_s)

    def _on_goal(self, request: Any) -> GoalResponse:
        self.seen.arrivals.append(time.monotonic_ns())
        if self.knobs.accept_s:
            time.sleep(self.knobs.accept_s)
        if self.knobs.decides is not None:
            self.knobs.decides.wait(HELD_S)
        return GoalResponse.ACCEPT if self.knobs.accepts else GoalResponse.REJECT

    def _on_accepted(self, handle: Any) -> None:
        uuid = bytes(handle.goal_id.uuid)
        self.handles[uuid] = handle  # first: who sees the request may look for it
        self.seen.requests.append((uuid, time.monotonic_ns()))
        if self.knobs.early_feedback:
            handle.publish_feedback(Fibonacci.Feedback(sequence=[0] * 5))
        if self.knobs.ends_at_once:
            self._end(uuid, 'succeed', (0, 1))

    def _on_cancel(self, handle: Any) -> CancelResponse:
        uuid = bytes(handle.goal_id.uuid)
        self.seen.cancels.append((uuid, time.monotonic_ns()))
        if self.knobs.cancel_s:
            time.sleep(self.knobs.cancel_s)
        if not self.knobs.accepts_cancel:
            return CancelResponse.REJECT
        if self.knobs.obeys_cancel:
            self._executor.create_task(self._end, uuid, 'canceled', ())
        return CancelResponse.ACCEPT

    def _end(self, uuid: bytes, how: str, sequence: tuple[int, ...]) -> None:
        def execute(handle: Any) -> Any:
            getattr(handle, how)()
            return Fibonacci.Result(sequence=list(sequence))

        handle = self.handles.pop(uuid, None)  # cancelled and ended at once: the first counts
        if handle is not None:
            handle.execute(execute)

    def _on_trigger(self, request: Any, response: Any) -> Any:
        self.service_calls += 1
        self._answers.wait(HELD_S)
        response.success = True
        response.message = 'done'
        return response
