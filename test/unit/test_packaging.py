"""The files that describe the package agree with each other and with what the code imports."""

import ast
from pathlib import Path
import re
import sys
from xml.etree import ElementTree

import pytest

import awp_ros_bridge

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / 'awp_ros_bridge'
ROSDEP_KEYS = {
    'jsonschema': 'python3-jsonschema',
    'numpy': 'python3-numpy',
    'orjson': 'python3-orjson',
    'pinocchio': 'pinocchio',
    'pydantic': 'python3-pydantic',
    'pydantic_core': 'python3-pydantic',
    'annotated_types': 'python3-pydantic',  # pydantic brings it along
    'websockets': 'python3-websockets',
    'yaml': 'python3-yaml',
}
# Come with rclpy, whose own package.xml declares them.
WITH_RCLPY = {'ament_index_python'}


def requirements(path: Path) -> set[str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    return {line for line in lines if line and not line.startswith('#')}


def declared(*tags: str) -> set[str]:
    root = ElementTree.parse(REPOSITORY / 'package.xml').getroot()
    return {element.text or '' for tag in tags for element in root.iter(tag)}


def imported_distributions() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(PACKAGE.rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                found.setdefault(name.partition('.')[0], path)
    return {
        name: path for name, path in found.items()
        if name not in sys.stdlib_module_names and name != 'awp_ros_bridge'
    }


def test_the_version_is_the_same_everywhere() -> None:
    root = ElementTree.parse(REPOSITORY / 'package.xml').getroot()
    in_setup = re.search(r"version='([^']+)'", (REPOSITORY / 'setup.py').read_text())
    assert in_setup is not None
    assert root.findtext('version') == in_setup[1] == awp_ros_bridge.__version__


def test_pip_and_the_scripts_install_the_same_libraries() -> None:
    text = (REPOSITORY / 'setup.py').read_text()
    block = re.search(r'install_requires=\[(.*?)\]', text, re.DOTALL)
    assert block is not None
    listed = requirements(REPOSITORY / 'scripts' / 'requirements' / 'runtime.txt')
    assert set(re.findall(r"'([^']+)'", block[1])) == listed


def test_package_xml_declares_every_import() -> None:
    keys = declared('depend', 'exec_depend')
    undeclared = {
        f'{name} ({path.relative_to(REPOSITORY)})'
        for name, path in imported_distributions().items()
        if name not in WITH_RCLPY and ROSDEP_KEYS.get(name, name) not in keys
    }
    assert not undeclared


@pytest.mark.parametrize('distro', ['jazzy', 'kilted'])
def test_stand_in_interfaces_list_all_their_files(distro: str) -> None:
    folder = REPOSITORY / 'test' / 'ros_interfaces' / distro
    packages = sorted(path.parent for path in folder.glob('*/package.xml'))
    assert {path.name for path in packages} <= declared('exec_depend')
    for package in packages:
        text = (package / 'CMakeLists.txt').read_text()
        files = {
            str(path.relative_to(package))
            for kind in ('action', 'msg', 'srv') for path in package.glob(f'{kind}/*')
        }
        assert set(re.findall(r'(?:action|msg|srv)/\w+\.(?:action|msg|srv)', text)) == files


def test_an_ordinary_colcon_build_passes_the_stand_ins_by() -> None:
    assert (REPOSITORY / 'test' / 'ros_interfaces' / 'COLCON_IGNORE').exists()


@pytest.mark.parametrize(('executable', 'longest_s'), [('bridge', 4.0), ('guardian', 8.0)])
def test_a_launch_gives_each_process_the_time_that_it_needs_to_stop_the_robot(
    executable: str, longest_s: float
) -> None:
    """By itself ``ros2 launch`` goes from SIGINT to SIGTERM after 5 s, to SIGKILL after 10 s."""
    tree = ast.parse((REPOSITORY / 'launch' / 'bridge.launch.py').read_text('utf-8'))
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    words = [
        {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
        for call in calls
    ]
    (found,) = [each for each in words if each.get('executable') == executable]
    assert float(found['sigterm_timeout']) > longest_s
    assert float(found['sigkill_timeout']) > 1.0
