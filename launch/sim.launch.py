"""Start the simulated robot, the bridge that serves it, and the guardian of both."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare('awp_ros_bridge')
    return LaunchDescription([
        DeclareLaunchArgument(
            'config',
            default_value=PathJoinSubstitution([share, 'config', 'sim_arm.yaml']),
            description='Configuration file of the bridge (YAML).',
        ),
        DeclareLaunchArgument(
            'namespace',
            default_value='',
            description='Namespace of the robot and of the bridge.',
        ),
        DeclareLaunchArgument(
            'log_level',
            default_value='info',
            choices=['debug', 'info', 'warn', 'error', 'fatal'],
            description='Least severe message that the nodes log.',
        ),
        DeclareLaunchArgument(
            'guardian',
            default_value='required',
            choices=['required', 'off'],
            description='Whether a guardian is started, which the bridge then requires.',
        ),
        DeclareLaunchArgument(
            'respawn',
            default_value='false',
            choices=['true', 'false'],
            description='Whether bridge and guardian are started again when they end.',
        ),
        Node(
            package='awp_ros_bridge',
            executable='sim_robot',
            namespace=LaunchConfiguration('namespace'),
            ros_arguments=['--log-level', LaunchConfiguration('log_level')],
            output='screen',
        ),
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(
                PathJoinSubstitution([share, 'launch', 'bridge.launch.py'])),
            launch_arguments={
                'config': LaunchConfiguration('config'),
                'namespace': LaunchConfiguration('namespace'),
                'log_level': LaunchConfiguration('log_level'),
                'guardian': LaunchConfiguration('guardian'),
                'respawn': LaunchConfiguration('respawn'),
            }.items(),
        ),
    ])
