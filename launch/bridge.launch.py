"""Start the bridge with a configuration file, and its guardian."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import EqualsSubstitution, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

RESPAWN_S = 2.0
RESPAWNS = 20  # a configuration that cannot work must not start for ever


def generate_launch_description() -> LaunchDescription:
    respawn = EqualsSubstitution(LaunchConfiguration('respawn'), 'true')
    return LaunchDescription([
        DeclareLaunchArgument(
            'config',
            default_value=PathJoinSubstitution(
                [FindPackageShare('awp_ros_bridge'), 'config', 'sim_arm.yaml']),
            description='Configuration file of the bridge (YAML).',
        ),
        DeclareLaunchArgument(
            'namespace',
            default_value='',
            description='Namespace of the node; relative names in the configuration follow it.',
        ),
        DeclareLaunchArgument(
            'use_sim_time',
            default_value='false',
            choices=['true', 'false'],
            description='Whether stamps are of simulated time, from /clock. Nothing that stops '
            'the robot depends on it.',
        ),
        DeclareLaunchArgument(
            'log_level',
            default_value='info',
            choices=['debug', 'info', 'warn', 'error', 'fatal'],
            description='Least severe message that the node logs.',
        ),
        DeclareLaunchArgument(
            'guardian',
            default_value='required',
            choices=['required', 'off'],
            description='required: start a guardian, without which the bridge lets nothing move. '
            'off: nothing stops the robot if the bridge is killed. Overrides the configuration.',
        ),
        DeclareLaunchArgument(
            'respawn',
            default_value='false',
            choices=['true', 'false'],
            description=f'Whether bridge and guardian are started again {RESPAWN_S:g} s after '
            f'they ended by themselves, at most {RESPAWNS} times. A bridge that starts again '
            'cancels the goals that the earlier one left; its sessions are gone.',
        ),
        Node(
            package='awp_ros_bridge',
            executable='guardian',
            namespace=LaunchConfiguration('namespace'),
            arguments=['--config', LaunchConfiguration('config')],
            ros_arguments=['--log-level', LaunchConfiguration('log_level')],
            output='screen',
            condition=IfCondition(EqualsSubstitution(LaunchConfiguration('guardian'), 'required')),
            respawn=respawn,
            respawn_delay=RESPAWN_S,
            respawn_max_retries=RESPAWNS,
            # It ends after the bridge, at most 8 s after the interrupt.
            sigterm_timeout='9',
            sigkill_timeout='2',
        ),
        Node(
            package='awp_ros_bridge',
            executable='bridge',
            namespace=LaunchConfiguration('namespace'),
            arguments=[
                '--config', LaunchConfiguration('config'),
                '--guardian', LaunchConfiguration('guardian'),
            ],
            ros_arguments=[
                '--log-level', LaunchConfiguration('log_level'),
                '-p', ['use_sim_time:=', LaunchConfiguration('use_sim_time')],
            ],
            output='screen',
            respawn=respawn,
            respawn_delay=RESPAWN_S,
            respawn_max_retries=RESPAWNS,
            # The bridge stops the robot and closes its sessions within 4 s of the interrupt.
            sigterm_timeout='6',
            sigkill_timeout='2',
        ),
    ])
