"""Packaging for colcon (ament_python) and for pip alike."""

from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = 'awp_ros_bridge'


def shared(folder: str) -> list[tuple[str, list[str]]]:
    """
    List the files below a folder as data files of the package's share directory.

    :param folder: a folder of the repository, such as launch
    """
    files: dict[Path, list[str]] = {}
    for path in sorted(Path(folder).rglob('*')):
        if path.is_file() and '__pycache__' not in path.parts:
            files.setdefault(path.parent, []).append(str(path))
    return [(f'share/{PACKAGE}/{parent}', names) for parent, names in files.items()]


setup(
    name=PACKAGE,
    version='0.1.0',
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    package_data={'': ['py.typed', '**/*.json', '**/*.urdf', '**/*.yaml']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (f'share/{PACKAGE}', ['package.xml']),
        *shared('launch'),
        *shared('config'),
        *shared('urdf'),
        *shared('worlds'),
    ],
    python_requires='>=3.11',
    install_requires=[
        'jsonschema>=4.10',
        'numpy>=1.26',
        'orjson>=3.8',
        'pin>=3.0',
        'pydantic>=2.7',
        'pyyaml>=6.0',
        'websockets>=14.1',
    ],
    zip_safe=False,
    maintainer='awp_ros_bridge maintainers',
    maintainer_email='maintainers@awp-ros-bridge.org',
    description='Exposes a ROS 2 robot to AI agents through the Agent World Protocol.',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'awp = awp_ros_bridge.cli.main:main',
            'bridge = awp_ros_bridge.bridge.main:main',
            'guardian = awp_ros_bridge.guardian.main:main',
            'sim_robot = awp_ros_bridge.sim_robot.main:main',
        ],
        # Adapters, which turn an AWP action into a ROS goal. Another package extends the bridge by
        # an entry point of its own in this group: the name is what a configuration writes after
        # `adapter:`, the value is the adapter class.
        'awp_ros_bridge.adapters': [],
    },
)
