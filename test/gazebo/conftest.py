"""Owns the fixtures of the tests in Gazebo: the cell of test/ros, with physics behind."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
import os
from pathlib import Path
import sys
import warnings

import pytest

_ROS_TESTS = Path(__file__).parents[1] / 'ros'
sys.path.append(str(_ROS_TESTS))

if find_spec('rclpy') is None:
    collect_ignore_glob = ['test_*.py']
else:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        import rosidl_generator_py  # noqa: F401  # imported late by rclpy, with a warning

    from bridge_cell import Cell
    from fixtures import lateness, peer, ros, ros_domain_id  # noqa: F401
    from gazebo_cell import Cells


_FIGURES: list[str] = []


@pytest.fixture
def figure(record_testsuite_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Keep a measured number: in the report of the suite, and in the summary at its end."""

    def keep(name: str, value: float, unit: str) -> None:
        record_testsuite_property(f'gazebo_{name}_{unit}', round(value, 3))
        _FIGURES.append(f'{name.replace("_", " ")}: {value:.4g} {unit}')

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    if _FIGURES:
        terminalreporter.section('measured in Gazebo')
        for line in _FIGURES:
            terminalreporter.write_line(line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the modules of one configuration after each other: starting a cell takes ten seconds."""
    for item in items:
        item.add_marker(pytest.mark.timeout(180))  # of a hang; a cell may start within it
    items.sort(key=lambda item: str(getattr(getattr(item, 'module', None), 'CONFIG', '')))


@pytest.fixture(scope='session')
def gazebo() -> None:
    """Tell whether Gazebo is there; the tests are skipped where it is not."""
    if 'AWP_BRIDGE_GAZEBO_DIR' not in os.environ:
        pytest.skip('Gazebo is not entered: ./scripts/test gazebo sets it up and enters it')


@pytest.fixture(scope='session')
def cells(
    gazebo: None,
    ros: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> 'Iterator[Cells]':
    """Give the cells that tests run in, one at a time."""
    opened = Cells(lambda: tmp_path_factory.mktemp('gazebo_cell'))
    yield opened
    opened.close()


@pytest.fixture(scope='module')
def cell(cells: 'Cells', request: pytest.FixtureRequest) -> 'Cell':
    """Run both robots, with the embedded robot's configuration where the module names no other."""
    return cells.get(getattr(request.module, 'CONFIG', None))
