"""Start modern Gazebo with the simulated arm under ros2_control, and the bridge that serves it."""

from importlib.resources import files

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    RegisterEventHandler,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import (
    Command,
    FindExecutable,
    IfElseSubstitution,
    LaunchConfiguration,
    PathJoinSubstitution,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

CONTROLLERS = ('joint_state_broadcaster', 'arm_controller', 'gripper_controller')


def arguments(share: FindPackageShare) -> list[DeclareLaunchArgument]:
    return [
        DeclareLaunchArgument(
            'headless',
            default_value='false',
            choices=['true', 'false'],
            description='Run the server alone, without a window and without rendering.',
        ),
        DeclareLaunchArgument(
            'world',
            default_value=PathJoinSubstitution([share, 'worlds', 'sim_arm.sdf']),
            description='World that Gazebo loads (SDF).',
        ),
        DeclareLaunchArgument(
            'bridge',
            default_value='true',
            choices=['true', 'false'],
            description='Start awp_ros_bridge beside the robot.',
        ),
        DeclareLaunchArgument(
            'config',
            default_value=PathJoinSubstitution([share, 'config', 'gazebo_arm.yaml']),
            description='Configuration file of awp_ros_bridge (YAML).',
        ),
        DeclareLaunchArgument(
            'log_level',
            default_value='info',
            choices=['debug', 'info', 'warn', 'error', 'fatal'],
            description='Least severe message that awp_ros_bridge logs.',
        ),
        DeclareLaunchArgument(
            'guardian',
            default_value='required',
            choices=['required', 'off'],
            description='Whether a guardian is started, which the bridge then requires.',
        ),
    ]


def robot_description(share: FindPackageShare) -> ParameterValue:
    return ParameterValue(
        Command([
            FindExecutable(name='xacro'), ' ',
            PathJoinSubstitution([share, 'urdf', 'sim_arm.urdf.xacro']),
            ' urdf:=', str(files('awp_ros_bridge.sim_robot') / 'arm.urdf'),
            ' controllers:=',
            PathJoinSubstitution([share, 'config', 'gazebo', 'controllers.yaml']),
        ]),
        value_type=str,
    )


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare('awp_ros_bridge')
    sim_time = {'use_sim_time': True}
    gazebo = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(
            PathJoinSubstitution([FindPackageShare('ros_gz_sim'), 'launch', 'gz_sim.launch.py'])),
        launch_arguments={
            'gz_args': [
                IfElseSubstitution(LaunchConfiguration('headless'), '-s -r ', '-r '),
                LaunchConfiguration('world'),
            ],
            'on_exit_shutdown': 'true',
        }.items(),
    )
    state_publisher = Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        parameters=[sim_time, {'robot_description': robot_description(share)}],
        output='screen',
    )
    spawn_robot = Node(
        package='ros_gz_sim',
        executable='create',
        arguments=['-topic', 'robot_description', '-name', 'sim_arm'],
        output='screen',
    )
    topics = Node(
        package='ros_gz_bridge',
        executable='parameter_bridge',
        parameters=[sim_time, {
            'config_file': PathJoinSubstitution([share, 'config', 'gazebo', 'ros_gz_bridge.yaml']),
        }],
        output='screen',
    )
    spawn_controllers = Node(
        package='controller_manager',
        executable='spawner',
        arguments=[*CONTROLLERS, '--controller-manager-timeout', '60'],
        output='screen',
    )
    bridge = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(
            PathJoinSubstitution([share, 'launch', 'bridge.launch.py'])),
        launch_arguments={
            'config': LaunchConfiguration('config'),
            'use_sim_time': 'true',
            'log_level': LaunchConfiguration('log_level'),
            'guardian': LaunchConfiguration('guardian'),
        }.items(),
        condition=IfCondition(LaunchConfiguration('bridge')),
    )
    return LaunchDescription([
        *arguments(share),
        gazebo,
        state_publisher,
        topics,
        spawn_robot,
        RegisterEventHandler(
            OnProcessExit(target_action=spawn_robot, on_exit=[spawn_controllers])),
        bridge,
    ])
