"""The ROS side as a whole: what the contexts of its adapters tell of the simulated robot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes import eventually
import pytest
from ros_peer import RosPeer
from sim_robot_goals import HOME, send_trajectory, trajectory

from awp_ros_bridge.config import load
from awp_ros_bridge.ros.adapters.base import AdapterContext
from awp_ros_bridge.ros.adapters.registry import registry
from awp_ros_bridge.ros.side import RosSide
from awp_ros_bridge.sim_robot.description import ARM_JOINTS

CONFIG = Path(__file__).parents[2] / 'config' / 'sim_arm.yaml'


def side(fatal: list[str]) -> RosSide:
    config = load(CONFIG, registry().infos()).config
    assert config is not None
    posted: list[Any] = []
    return RosSide(config, registry(), posted.append, [], CONFIG.parent, fatal.append)


@pytest.fixture
def context(sim_robot: Any) -> Iterator[AdapterContext]:
    """Give the context of the arm's trajectory adapter, while the side runs."""
    fatal: list[str] = []
    running = side(fatal)
    running.start()
    try:
        context = running.adapters['arm_01', 'follow_joint_trajectory'].context
        eventually(context.joints, 'joint states')
        yield context
    finally:
        running.stop(2.0)
    assert not fatal


def test_each_context_asks_for_its_own_embodiment(monkeypatch: pytest.MonkeyPatch) -> None:
    built = side([])
    told = {name: {name: 0.5} for name in ('arm_01', 'gripper_01')}
    monkeypatch.setattr(built.gateway, 'joint_velocities', told.get)
    for (embodiment, _), adapter in built.adapters.items():
        assert adapter.context.joint_velocities() == {embodiment: 0.5}


def test_the_velocities_of_a_moving_arm_are_told(context: AdapterContext, peer: RosPeer) -> None:
    still = dict.fromkeys(ARM_JOINTS, 0.0)
    eventually(lambda: context.joint_velocities() == still, 'the arm rests')
    goal = send_trajectory(peer, trajectory([(1.5, [0.3, *HOME[1:]])]))
    fastest = 0.0

    def is_over() -> bool:
        nonlocal fastest
        velocities = context.joint_velocities()
        assert velocities is not None
        fastest = max(fastest, velocities['joint_1'])
        assert all(abs(velocities[name]) < 0.05 for name in ARM_JOINTS[1:])
        return goal.is_over

    peer.wait_until(is_over, 20.0, 'the end of the goal')
    assert 0.15 < fastest < 0.6
    eventually(lambda: context.joint_velocities() == still, 'the arm rests')
