"""Owns the fixtures that tests with any robot share: a domain, rclpy, a peer to act with."""

from collections.abc import Iterator
import os

from lateness import Lateness
from processes import free_domain_id
import pytest
import rclpy
from rclpy.signals import SignalHandlerOptions
from ros_peer import RosPeer


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
def peer(ros: None) -> Iterator[RosPeer]:
    """Give a node with its executor, to act as the robot's other side."""
    with RosPeer('test_peer') as opened:
        yield opened


@pytest.fixture
def lateness() -> Iterator[Lateness]:
    """Tell what a busy machine takes from the test: what its limits on time do not count."""
    with Lateness() as opened:
        yield opened
