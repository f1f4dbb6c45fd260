"""The files of the launch file for modern Gazebo name what the robot's description has."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
URDF = REPOSITORY / 'awp_ros_bridge' / 'sim_robot' / 'arm.urdf'
XACRO = REPOSITORY / 'urdf' / 'sim_arm.urdf.xacro'
CONTROLLERS = REPOSITORY / 'config' / 'gazebo' / 'controllers.yaml'
ARM_JOINTS = [f'joint_{number}' for number in range(1, 7)]
HOME = [0.0, -0.01657571, 0.42794284, 0.0, 1.15942919, 0.0, 0.04]


def yaml_of(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding='utf-8'))


def xacro_joints() -> dict[str, float]:
    """Return the joints that the description gives a drive, with their initial values."""
    macro = '{http://www.ros.org/wiki/xacro}driven_joint'
    found = ElementTree.parse(XACRO).getroot().iter(macro)
    return {element.get('name', ''): float(element.get('home', 'nan')) for element in found}


def test_every_moving_joint_has_a_drive_or_mirrors_one() -> None:
    moving, mirrors = [], []
    for joint in ElementTree.parse(URDF).getroot().iter('joint'):
        if joint.get('type') != 'fixed':
            (moving if joint.find('mimic') is None else mirrors).append(joint.get('name'))
    assert list(xacro_joints()) == moving
    plain = ElementTree.parse(XACRO).getroot().iter('joint')
    assert {joint.get('name') for joint in plain} == {'${name}', *mirrors}


def test_the_arm_begins_at_home_as_the_embedded_one_does() -> None:
    description = pytest.importorskip('awp_ros_bridge.sim_robot.description')
    home = [*description.ARM_HOME_RAD, description.GRIPPER_HOME_M]
    assert list(xacro_joints().values()) == home == HOME


def test_the_controllers_are_those_that_the_bridge_sends_goals_to() -> None:
    controllers = yaml_of(CONTROLLERS)
    config = yaml_of(REPOSITORY / 'config' / 'gazebo_arm.yaml')
    named = {
        action['ros_action'].partition('/')[0]
        for action in config['actions'].values() if 'ros_action' in action
    }
    managed = controllers['controller_manager']['ros__parameters']
    assert named == {'arm_controller', 'gripper_controller'}
    assert named <= {name for name, value in managed.items() if isinstance(value, dict)}
    arm = controllers['arm_controller']['ros__parameters']
    assert arm['joints'] == ARM_JOINTS
    assert set(ARM_JOINTS) <= set(arm['constraints'])
    assert arm['joints'] == config['actions']['follow_joint_trajectory']['options']['joints']
    gripper = controllers['gripper_controller']['ros__parameters']
    assert gripper['joint'] == config['actions']['gripper_move']['options']['joint']
    # What the controller calls still must be at rest for the bridge too.
    still = config['embodiments']['gripper_01']['at_rest']['max_velocity_mps']
    assert gripper['stall_velocity_threshold'] <= still


def test_the_world_has_the_systems_that_a_spawned_robot_needs() -> None:
    world = ElementTree.parse(REPOSITORY / 'worlds' / 'sim_arm.sdf').getroot().find('world')
    assert world is not None
    names = {plugin.get('name', '').rpartition('::')[2] for plugin in world.iter('plugin')}
    assert {'Physics', 'UserCommands', 'SceneBroadcaster'} <= names
    physics = world.find('physics/max_step_size')
    assert physics is not None
    assert float(physics.text or 'nan') == 0.001


def test_only_the_clock_comes_over_the_gazebo_bridge() -> None:
    rows = yaml_of(REPOSITORY / 'config' / 'gazebo' / 'ros_gz_bridge.yaml')
    assert [(row['ros_topic_name'], row['direction']) for row in rows] == [('/clock', 'GZ_TO_ROS')]


def test_the_launch_file_names_files_that_are_shipped() -> None:
    text = (REPOSITORY / 'launch' / 'gazebo.launch.py').read_text(encoding='utf-8')
    for name in ('sim_arm.sdf', 'gazebo_arm.yaml', 'sim_arm.urdf.xacro', 'controllers.yaml',
                 'ros_gz_bridge.yaml', 'bridge.launch.py'):
        assert f"'{name}'" in text
        assert list(REPOSITORY.glob(f'[a-z]*/**/{name}')), name
