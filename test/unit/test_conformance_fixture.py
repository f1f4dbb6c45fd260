"""The moves that the conformance suite is given can be made in the time that it gives them."""

from __future__ import annotations

from pathlib import Path
import sys
from typing import Any

import pytest
import yaml

from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_MAX_ACCELERATION_RADPS2,
    load_arm_chain,
    load_urdf,
)
from awp_ros_bridge.sim_robot.planner import MoveLimits, plan_ptp, solve_pose

pytest.importorskip('awp_conformance', reason='the suite is a test dependency; run scripts/setup')
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'scripts' / 'lib'))

import conformance

_TIP_ACCELERATION_MPS2 = 0.6
# The watchdog acts on a move under way, which began when its agent was last heard.
_LEAST_BEYOND_WATCHDOG_MS = 200
# In physics a move settles, the cores are shared, and a queued one begins where another ended.
_SHARE = 0.85


def durations_ms(moves: list[dict[str, Any]]) -> list[float]:
    """Plan every move from home and from every other one, as the robot does."""
    chain = load_arm_chain(load_urdf())
    fastest = tuple(chain.max_velocity_radps.tolist())

    def plan(start: tuple[float, ...], params: dict[str, Any]) -> tuple[tuple[float, ...], float]:
        pose, speed = params['pose'], params['max_velocity_mps']
        limits = MoveLimits(fastest, ARM_MAX_ACCELERATION_RADPS2, speed, _TIP_ACCELERATION_MPS2)
        end = solve_pose(chain, Pose(tuple(pose['p_m']), tuple(pose['q'])), start)
        return end, plan_ptp(chain, start, end, limits).duration_s * 1e3

    found = []
    for first in moves:
        there, took_ms = plan(ARM_HOME_RAD, first['params'])
        found.append(took_ms)
        found += (plan(there, next_['params'])[1] for next_ in moves if next_ is not first)
    return found


def test_in_gazebo_each_move_outlasts_the_watchdog_and_two_of_them_are_done_in_time() -> None:
    text = conformance.DEFAULT_CONFIG.read_text(encoding='utf-8')
    config = yaml.safe_load(conformance.config_for_gazebo(text))
    fixture = conformance.fixture_for('gazebo')
    limit_ms = config['actions']['move_to_pose']['max_duration_ms']
    took_ms = durations_ms(fixture['moves'])
    assert min(took_ms) > fixture['extended_min_ms']
    assert min(took_ms) > config['safety']['watchdog_ms'] + _LEAST_BEYOND_WATCHDOG_MS
    assert 2 * max(took_ms) < _SHARE * limit_ms  # both count from their submission
    slowest = [
        {'params': {**move['params'], **fixture['long_params']}} for move in fixture['moves']
    ]
    assert min(durations_ms(slowest)) > limit_ms


def test_the_robot_in_gazebo_gives_its_agent_more_time_and_is_else_configured_as_shipped() -> None:
    text = conformance.DEFAULT_CONFIG.read_text(encoding='utf-8')
    shipped, other = yaml.safe_load(text), yaml.safe_load(conformance.config_for_gazebo(text))
    assert other['safety'].pop('watchdog_ms') > shipped['safety'].pop('watchdog_ms')
    for config in (shipped, other):
        del config['actions']['move_to_pose']['max_duration_ms']
    assert other == shipped
