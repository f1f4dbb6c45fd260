"""The registry of adapters: own ones, offered ones, broken ones; schemas; the goal check."""

from __future__ import annotations

from importlib.metadata import EntryPoint
import subprocess
import sys
import types
from typing import Any

from adapter_context import pose_params, Robot
from jsonschema import Draft202012Validator
import pytest

from awp_ros_bridge.engine.policy import RefusalKind
from awp_ros_bridge.ros.adapters import registry
from awp_ros_bridge.ros.adapters.checker import GoalCheck
from awp_ros_bridge.ros.adapters.stop import StopAdapter

OWN = {
    'follow_joint_trajectory',
    'generic',
    'gripper_command',
    'motion_primitive',
    'navigate_to_pose',
    'parallel_gripper',
    'stop',
    'trigger_service',
}


def offer(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, registry.GROUP)


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType('vendor_adapters')

    class Good(StopAdapter):
        """Stop, in the vendor's way."""

    class Unfinished(registry.Adapter):
        """Lacks everything."""

    module.Good, module.Unfinished, module.number = Good, Unfinished, 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, 'vendor_adapters', module)
    return module


def test_the_own_adapters_are_described() -> None:
    found = registry.discover([]).infos()
    assert set(found) == OWN
    assert found['follow_joint_trajectory'].native_replace
    assert not found['motion_primitive'].native_replace
    assert found['motion_primitive'].checkable_limits == {'spatial', 'max_velocity_mps'}
    assert not found['stop'].needs_motion
    assert not found['stop'].extended
    assert found['stop'].kind == 'builtin'
    assert all(info.summary for info in found.values())


def test_offered_adapters_join_and_broken_ones_are_told_by_name(vendor: Any) -> None:
    found = registry.discover(
        [
            offer('good', 'vendor_adapters:Good'),
            offer('absent', 'no_such_module:Adapter'),
            offer('nothing', 'vendor_adapters:Missing'),
            offer('number', 'vendor_adapters:number'),
            offer('unfinished', 'vendor_adapters:Unfinished'),
            offer('stop', 'vendor_adapters:Good'),
        ]
    )
    assert set(found.adapters) == OWN | {'good'}
    assert found.adapters['stop'] is StopAdapter
    assert 'no_such_module' in found.problems['absent']
    assert 'AttributeError' in found.problems['nothing']
    assert 'not a class' in found.problems['number']
    assert 'outcome' in found.problems['unfinished']
    assert 'taken' in found.problems['stop']
    with pytest.raises(registry.UnknownAdapter, match='no_such_module'):
        found.find('absent')
    assert found.build('good', Robot().context()).goal({}) is None


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(registry.UnknownAdapter, match="did you mean 'motion_primitive'"):
        registry.discover([]).find('motion_primitives')
    with pytest.raises(registry.UnknownAdapter, match='there are'):
        registry.discover([]).find('xyz')


@pytest.mark.parametrize('name', sorted(OWN))
@pytest.mark.parametrize(
    'options', [{}, {'joint': 'j', 'max_effort_n': 20.0, 'max_position_m': 0.04, 'joints': ['a']}]
)
def test_schemas_are_valid_and_closed(name: str, options: dict[str, Any]) -> None:
    # Another adapter's options are the loader's business; generic has no schema without a type.
    needed = {'generic': {'type': 'nav2_msgs/action/NavigateToPose', 'goal': {}}}
    schema = registry.infos()[name].params_schema({**needed.get(name, {}), **options})
    Draft202012Validator.check_schema(schema)
    assert schema['additionalProperties'] is False
    assert list(Draft202012Validator(schema).iter_errors({'no_such_field': 1}))


def test_the_installed_registry_is_found_once() -> None:
    assert registry.registry() is registry.registry()
    assert set(registry.infos()) >= OWN
    assert isinstance(registry.problems(), dict)
    assert registry.build('stop', Robot().context()).outcome(None).ok


def test_the_goal_check_asks_the_adapter_of_the_pair() -> None:
    adapter = registry.build('motion_primitive', Robot().context())
    check = GoalCheck({('arm_01', 'move_to_pose'): adapter})
    refusal = check.check('arm_01', 'move_to_pose', pose_params((0.9, 0.0, 0.4)))
    assert refusal is not None
    assert refusal.kind is RefusalKind.ENVELOPE
    assert check.check('arm_01', 'move_to_pose', pose_params()) is None
    assert check.check('arm_01', 'other', {}) is None


@pytest.mark.parametrize(
    ('name', 'options'),
    [
        ('motion_primitive', {'motion': 'circ'}),
        ('motion_primitive', {'ptp_target': 'tool'}),
        ('motion_primitive', {'default_velocity_mps': -1}),
        ('parallel_gripper', {'joint': 7}),
        ('gripper_command', {'max_effort_n': 0}),
        ('trigger_service', {'service_type': 'std_srvs/srv/Nope'}),
    ],
)
def test_a_bad_option_is_named(name: str, options: dict[str, Any]) -> None:
    key = next(iter(options))
    with pytest.raises(ValueError, match=f'option {key}'):
        registry.infos()[name].params_schema(options)


def test_adapters_are_described_without_ros() -> None:
    code = (
        'import sys\n'
        'for name in ("rclpy", "control_msgs", "trajectory_msgs", "std_srvs", "nav2_msgs"):\n'
        '    sys.modules[name] = None\n'
        'from awp_ros_bridge.ros.adapters import registry\n'
        'options = {"generic": {"type": "nav2_msgs/action/NavigateToPose", "goal": {}}}\n'
        'for info in registry.infos().values():\n'
        '    info.params_schema(options.get(info.name, {}))\n'
        'print(len(registry.infos()))\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len(OWN)
