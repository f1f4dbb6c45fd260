"""The shipped configurations serve while their robots are absent, and say what is missing."""

from __future__ import annotations

from pathlib import Path
import time

from agent import Agent
from patience import run
from processes import REPOSITORY, start_bridge
import pytest
import yaml

_WAIT_S = 10.0


@pytest.mark.parametrize(
    ('name', 'missing'),
    [
        ('gazebo_arm', 'arm_controller/follow_joint_trajectory'),
        ('ur', 'scaled_joint_trajectory_controller/follow_joint_trajectory'),
        ('franka', 'fr3_arm_controller/follow_joint_trajectory'),
    ],
)
def test_a_configuration_serves_without_its_robot_and_names_what_is_missing(
    ros_domain_id: int, tmp_path: Path, name: str, missing: str
) -> None:
    config = REPOSITORY / 'config' / f'{name}.yaml'
    actions = yaml.safe_load(config.read_text(encoding='utf-8'))['actions']
    joints = actions['follow_joint_trajectory']['options']['joints']
    bridge = start_bridge(tmp_path, config=config)
    try:

        async def play() -> None:
            async with await Agent.connect(bridge.url, bridge.token, name='tester') as agent:
                assert 'arm_01' in [each['id'] for each in agent.manifest['embodiments']]
                await agent.open('arm_01')
                point = {'positions_rad': [0.0] * len(joints), 'time_from_start_ms': 1000}
                refused = await agent.refusal(
                    'action.submit',
                    action_id='go',
                    type='follow_joint_trajectory',
                    params={'joint_names': joints, 'points': [point]},
                )
                assert (refused.code, refused.is_retryable) == (2001, True), refused
                await agent.close()

        run(play())
        end_s = time.monotonic() + _WAIT_S
        while f'action server {missing} is not available' not in bridge.output:
            assert time.monotonic() < end_s, bridge.output
            time.sleep(0.05)
    finally:
        bridge.stop(8.0)
    assert bridge.exit_status == 0
