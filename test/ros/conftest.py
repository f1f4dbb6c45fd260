"""Owns the fixtures of the tests with the embedded robot."""

from collections.abc import Iterator
import gc
from importlib.util import find_spec
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
    from fixtures import lateness, peer, ros, ros_domain_id  # noqa: F401
    from patience import run

from processes import nothing_left, start_sim_robot, StartedProcess
import secrets_written


@pytest.fixture(scope='module', autouse=True)
def _ended() -> Iterator[None]:
    """End what the tests of a module have left running."""
    with nothing_left():
        yield


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect what a test let go of: contexts lie in cycles, and their participants talk on."""
    yield
    gc.collect()


@pytest.fixture(scope='session', autouse=True)
def no_secret_was_written() -> Iterator[None]:
    """Search what all bridges of this run wrote for all tokens of this run, at its end."""
    yield
    found = list(secrets_written.in_places())
    assert not found, '\n'.join(found)


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
def cell(
    ros: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> 'Iterator[Cell]':
    """Run a robot and a bridge for the tests of a module that leave both as they found them."""
    config = getattr(request.module, 'CONFIG', None)
    with running_cell(tmp_path_factory.mktemp('cell'), config, log_level='debug') as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def host(ros: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> 'Iterator[Host]':
    """Give the bridge's main function, to run in this process."""
    with hosted(tmp_path, monkeypatch) as given:
        yield given
