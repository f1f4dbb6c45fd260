"""The shipped configurations serve while their robots are absent, and say what is missing."""

from __future__ import annotations

from pathlib import Path
import time
from typing import Any

from agent import Agent
from patience import run
from processes import REPOSITORY, start_bridge
import pytest
import yaml

_WAIT_S = 30.0

POSE = {'frame': 'map', 'p_m': [1.0, 0.0, 0.0], 'q': [0.0, 0.0, 0.0, 1.0]}
DRIVE = {'pose': POSE}


def follow(joints: list[str]) -> dict[str, Any]:
    """Return the params of a trajectory to zero."""
    point = {'positions_rad': [0.0] * len(joints), 'time_from_start_ms': 1000}
    return {'joint_names': joints, 'points': [point]}


def followed(name: str) -> dict[str, Any]:
    """Return the params of a trajectory for the joints of a configuration."""
    text = (REPOSITORY / 'config' / f'{name}.yaml').read_text(encoding='utf-8')
    action = yaml.safe_load(text)['actions']['follow_joint_trajectory']
    return follow(action['options']['joints'])


def server(name: str) -> str:
    return f'action server {name} is not available'


@pytest.mark.parametrize(
    ('name', 'embodiment', 'action', 'missing'),
    [
        (
            'gazebo_arm',
            'arm_01',
            'follow_joint_trajectory',
            [server('arm_controller/follow_joint_trajectory')],
        ),
        (
            'ur',
            'arm_01',
            'follow_joint_trajectory',
            [server('scaled_joint_trajectory_controller/follow_joint_trajectory')],
        ),
        (
            'franka',
            'arm_01',
            'follow_joint_trajectory',
            [server('fr3_arm_controller/follow_joint_trajectory')],
        ),
        (
            'ros2_control_arm',
            'arm_01',
            'follow_joint_trajectory',
            [
                server('joint_trajectory_controller/follow_joint_trajectory'),
                server('gripper_controller/gripper_cmd'),
                "package 'controller_manager_msgs' is neither installed nor sourced",
            ],
        ),
        (
            'moveit',
            'arm_01',
            'move_joints',
            [
                'config/moveit.yaml:86: actions.move_joints.options.type: warning: '
                'moveit_msgs/action/MoveGroup is not available',
                'install ros-',
                "package 'ur_dashboard_msgs' is neither installed nor sourced",
            ],
        ),
        ('nav2_base', 'base_01', 'navigate_to_pose', [server('navigate_to_pose')]),
        (
            'mobile_manipulator',
            'base_01',
            'navigate_to_pose',
            [
                server('navigate_to_pose'),
                server('joint_trajectory_controller/follow_joint_trajectory'),
            ],
        ),
    ],
)
def test_a_configuration_serves_without_its_robot_and_names_what_is_missing(
    ros_domain_id: int,
    tmp_path: Path,
    name: str,
    embodiment: str,
    action: str,
    missing: list[str],
) -> None:
    config = REPOSITORY / 'config' / f'{name}.yaml'
    params: dict[str, Any] = DRIVE
    if action == 'move_joints':
        params = {'positions_rad': [0.0] * 6}
    elif action == 'follow_joint_trajectory':
        params = followed(name)
    bridge = start_bridge(tmp_path, config=config)
    try:

        async def play() -> None:
            async with await Agent.connect(bridge.url, bridge.token, name='tester') as agent:
                assert embodiment in [each['id'] for each in agent.manifest['embodiments']]
                await agent.open(embodiment)
                refused = await agent.refusal(
                    'action.submit', action_id='go', type=action, params=params
                )
                assert (refused.code, refused.is_retryable) == (2001, True), refused
                await agent.close()

        run(play())
        end_s = time.monotonic() + _WAIT_S
        while not all(text in bridge.output for text in missing):
            assert time.monotonic() < end_s, bridge.output
            time.sleep(0.05)
    finally:
        bridge.stop()
    assert bridge.exit_status == 0
