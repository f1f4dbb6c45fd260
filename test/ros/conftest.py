"""Owns the fixtures of the tests with ROS: a domain, a peer to act with, a robot."""

from collections.abc import Iterator
from importlib.util import find_spec
import os
from pathlib import Path
import sys
import warnings

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if find_spec('rclpy') is None:
    collect_ignore_glob = ['test_*.py']
else:
    # What rclpy imports late itself, with a deprecation warning that is not ours to mend.
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        import rosidl_generator_py  # noqa: F401

    from bridge_cell import Cell, running_cell
    from bridge_host import Host, hosted
    from patience import run
    import rclpy
    from rclpy.signals import SignalHandlerOptions
    from ros_peer import RosPeer

from processes import free_domain_id, start_sim_robot, StartedProcess


@pytest.fixture(scope='session')
def ros_domain_id() -> Iterator[int]:
    """Reserve a ROS domain for this test process and its children."""
    with free_domain_id() as domain_id:
        before = os.environ.get('ROS_DOMAIN_ID')
        os.environ['ROS_DOMAIN_ID'] = str(domain_id)
        os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        yield domain_id
        if before is None:
            del os.environ['ROS_DOMAIN_ID']
        else:
            os.environ['ROS_DOMAIN_ID'] = before


@pytest.fixture(scope='session')
def ros(ros_domain_id: int) -> Iterator[None]:
    """Start rclpy in this process."""
    rclpy.init(domain_id=ros_domain_id, signal_handler_options=SignalHandlerOptions.NO)
    yield
    rclpy.shutdown()


@pytest.fixture(scope='module')
def peer(ros: None) -> 'Iterator[RosPeer]':
    """Give a node with its executor, to act as the robot's other side."""
    with RosPeer('test_peer') as opened:
        yield opened


@pytest.fixture(scope='module')
def sim_robot(
    ros_domain_id: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartedProcess]:
    """Run a simulated robot for the tests of a module."""
    process = start_sim_robot(tmp_path_factory.mktemp('sim_robot'))
    yield process
    if process.exit_status is None:
        process.stop()


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> 'Iterator[Cell]':
    """Run a robot and a bridge for the tests of a module that leave both as they found them."""
    with running_cell(tmp_path_factory.mktemp('cell'), log_level='debug') as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def host(ros: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> 'Iterator[Host]':
    """Give the bridge's main function, to run in this process."""
    with hosted(tmp_path, monkeypatch) as given:
        yield given
