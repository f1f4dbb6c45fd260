"""
Owns the bench of the engine by itself: no ROS node, no socket, and a clock that it sets itself.

The world is that of the bench configuration. Messages are decoded and encoded as the bridge does.
"""

from __future__ import annotations

from collections.abc import Iterable
import time
from typing import Any

from pydantic_core import to_json

from awp_ros_bridge.bridge.ids import SecretIds
from awp_ros_bridge.config import load
from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.permissions import ALL_SCOPES, Permissions
from awp_ros_bridge.manifest import build, declare, policy
from awp_ros_bridge.ros.adapters.registry import registry
from awp_ros_bridge.transport.framing import encode_frame
from awp_ros_bridge.wire import codec
from bench.processes import CONFIG
from bench.worker import serve

_CONN = 1
_START_NS = 5_000_000_000
_STEP_NS = 1_000_000
_JOINTS = [f'joint_{number}' for number in range(1, 8)]
_ROW = [0.123456789] * len(_JOINTS)
_PAYLOAD = to_json({'name': _JOINTS, 'q_rad': _ROW, 'dq_radps': _ROW, 'tau_nm': _ROW})


class EngineAlone:
    """An engine with one session; goals are accepted and succeed at once."""

    def __init__(self) -> None:
        found = registry()
        config = load(CONFIG, found.infos()).config
        assert config is not None
        declarations = declare(config, found.infos())
        settings = policy(
            config,
            build(config, declarations),
            declarations,
            stream_url=lambda: None,
            anchor=lambda age_ns: '2025-01-01T00:00:00.000000Z',
        )
        self._engine = Engine(settings, None, SecretIds())
        self._now_ns = _START_NS
        self._completed = 0
        self._frames = 0
        self._tell(facts.ConnectionOpened(_CONN, 'bench', Permissions('bench', ALL_SCOPES)))
        self._say(
            1,
            'initialize',
            protocol_versions=['0.1'],
            agent={'name': 'bench', 'version': '1', 'vendor': 'bench'},
            consumes_modalities=['proprio/json'],
        )
        self._say(
            2,
            'session.open',
            mode='streaming',
            embodiment='arm_01',
            subscribe=[{'channel': 'joints'}],
        )

    def _say(self, number: int, method: str, **params: Any) -> None:
        self._tell(facts.TextReceived(_CONN, _request(number, method, params), self._now_ns))

    def _tell(self, fact: facts.Input) -> None:
        pending: list[facts.Input] = [fact]
        while pending:
            effects = self._engine.handle(pending.pop(0), self._now_ns)
            pending += self._carry_out(effects)

    def _carry_out(self, effects: Iterable[fx.Effect]) -> list[facts.Input]:
        answers: list[facts.Input] = []
        for effect in effects:
            match effect:
                case fx.SendMessage():
                    text = codec.encode(effect.message)
                    self._completed += '"completed"' in text
                case fx.StartGoal(goal_id):
                    answers.append(facts.GoalAccepted(goal_id))
                    answers.append(facts.GoalEnded(goal_id, facts.GoalOutcome.SUCCEEDED))
                case fx.SendFrame():
                    encode_frame(effect, self._now_ns)
                    self._engine.frame_sent(effect, self._now_ns)
                    self._frames += 1
        return answers

    def submissions(self, count: int) -> float:
        """Submit actions that succeed, and return how many passed per second."""
        point = {'positions_rad': _ROW, 'time_from_start_ms': 0}
        texts = []
        for number in range(count):
            action = {
                'action_id': f'a{time.monotonic_ns()}-{number}',
                'type': 'follow_joint_trajectory',
                'params': {'joint_names': _JOINTS, 'points': [point]},
            }
            texts.append(_request(number, 'action.submit', action))
        before, began_ns = self._completed, time.perf_counter_ns()
        for text in texts:
            self._now_ns += _STEP_NS
            self._tell(facts.TextReceived(_CONN, text, self._now_ns))
        took_ns = time.perf_counter_ns() - began_ns
        assert self._completed - before == count, (self._completed - before, count)
        return count * 1e9 / took_ns

    def frames(self, count: int) -> float:
        """Capture samples and return how many became frames per second."""
        before, began_ns = self._frames, time.perf_counter_ns()
        for number in range(count):
            self._now_ns += _STEP_NS
            if number % 1000 == 0:  # the agent is there: no watchdog
                self._say(number, 'ping', origin_ns=number)
            self._tell(facts.ObservationCaptured('joints', _PAYLOAD, self._now_ns))
        took_ns = time.perf_counter_ns() - began_ns
        assert self._frames - before == count, (self._frames - before, count)
        return count * 1e9 / took_ns


def _request(number: int, method: str, params: Any) -> str:
    return codec.encode(codec.request(number, method, params))


def main() -> None:
    """Run until the bench closes the pipe."""
    alone = EngineAlone()
    serve({'submissions': alone.submissions, 'frames': alone.frames})


if __name__ == '__main__':
    main()
