"""What a configuration needs of the graph: every topic, listener and server that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from awp_ros_bridge.config import load_text
from awp_ros_bridge.ros.adapters.registry import infos
from awp_ros_bridge.ros.needs import Kind, Need, needs_of

CONFIGS = Path(__file__).resolve().parents[2] / 'config'
SIM_ARM = (CONFIGS / 'sim_arm.yaml').read_text(encoding='utf-8')


def needs(text: str) -> list[Need]:
    known = infos()
    loaded = load_text(text, 'robot.yaml', known)
    assert loaded.config is not None, loaded.errors
    return list(needs_of(loaded.config, known))


def test_the_simulated_arm_needs_what_it_names() -> None:
    found = {(n.kind, n.name, n.type) for n in needs(SIM_ARM)}
    joints = 'sensor_msgs/msg/JointState'
    assert found == {
        (Kind.PUBLISHER, '/tf', 'tf2_msgs/msg/TFMessage'),
        (Kind.PUBLISHER, 'joint_states', joints),
        (Kind.PUBLISHER, 'safety/e_stop', 'std_msgs/msg/Bool'),
        (Kind.PUBLISHER, 'safety/protective_stop', 'std_msgs/msg/Bool'),
        (Kind.LATCHED, 'robot_description', 'std_msgs/msg/String'),
        (Kind.SERVICE, 'sim/reset', 'simulation_interfaces/srv/ResetSimulation'),
        (Kind.ACTION, 'arm_controller/follow_joint_trajectory',
         'control_msgs/action/FollowJointTrajectory'),
        (Kind.ACTION, 'motion_primitive_controller/motion_sequence',
         'control_msgs/action/ExecuteMotionPrimitiveSequence'),
        (Kind.ACTION, 'gripper_controller/gripper_cmd',
         'control_msgs/action/ParallelGripperCommand'),
    }  # fmt: skip


def test_every_path_leads_to_a_line() -> None:
    known = infos()
    loaded = load_text(SIM_ARM, 'robot.yaml', known)
    assert loaded.config is not None
    for need in needs_of(loaded.config, known):
        assert loaded.problem_at(need.path, need.use, '').line > 0, need


def changed(section: str, key: str, value: Any) -> str:
    body = yaml.safe_load(SIM_ARM)
    body['embodiments'][section][key] = value
    return yaml.safe_dump(body)


@pytest.mark.parametrize(
    ('key', 'value', 'wanted'),
    [
        (
            'stop_steps',
            ['cancel_goals',
             {'step': 'publish_zeros', 'topic': 'cmd_vel', 'type': 'geometry_msgs/msg/Twist'},
             {'step': 'call_service', 'service': 'halt'}, 'wait_at_rest'],
            [(Kind.LISTENER, 'cmd_vel', 'geometry_msgs/msg/Twist'),
             (Kind.SERVICE, 'halt', 'std_srvs/srv/Trigger')],
        ),
        (
            'at_rest',
            {'odometry': 'odom', 'max_linear_mps': 0.1, 'max_angular_radps': 0.1},
            [(Kind.PUBLISHER, 'odom', 'nav_msgs/msg/Odometry')],
        ),
        (
            'speed_scaling',
            {'topic': 'speed', 'type': 'std_msgs/msg/Float64', 'field': 'data', 'full': 100.0},
            [(Kind.PUBLISHER, 'speed', 'std_msgs/msg/Float64')],
        ),
        (
            'speed_scaling',
            {'topic': 'speed', 'type': 'std_msgs/msg/Float64', 'field': 'data', 'full': 1.0,
             'latched': True},
            [(Kind.LATCHED, 'speed', 'std_msgs/msg/Float64')],
        ),
        (
            'safety_inputs',
            [{'kind': 'bool', 'topic': 'mode',
              'freshness': {'by': 'companion', 'topic': 'alive'}}],
            [(Kind.LATCHED, 'mode', 'std_msgs/msg/Bool'), (Kind.PUBLISHER, 'alive', None)],
        ),
    ],
)  # fmt: skip
def test_what_else_an_embodiment_may_name(
    key: str, value: Any, wanted: list[tuple[Kind, str, str | None]]
) -> None:
    found = [(n.kind, n.name, n.type) for n in needs(changed('gripper_01', key, value))]
    for each in wanted:
        assert each in found


def test_every_shipped_configuration_needs_servers_of_a_known_type() -> None:
    for path in sorted(CONFIGS.glob('*.yaml')):
        found = needs(path.read_text(encoding='utf-8'))
        servers = [n for n in found if n.kind in (Kind.ACTION, Kind.SERVICE)]
        assert servers, path
        assert all(n.type for n in servers), path
        assert all(n.use for n in found)
