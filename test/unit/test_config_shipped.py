"""Tests what ships: the default configuration and the reference."""

from pathlib import Path

from config_sample import FakeAdapter
import pytest

from awp_ros_bridge.config import BridgeConfig, load, load_text
from awp_ros_bridge.config.reference import reference, smallest_file
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.adapters.registry import infos

ROOT = Path(__file__).resolve().parents[2]
SIM_ARM = ROOT / 'config' / 'sim_arm.yaml'


@pytest.fixture(scope='module')
def sim_arm() -> BridgeConfig:
    result = load(SIM_ARM)
    assert result.problems == ()
    assert result.config is not None
    return result.config


def test_the_arm_is_what_the_test_agent_expects(sim_arm: BridgeConfig) -> None:
    arm = sim_arm.embodiments['arm_01']
    assert arm.actions == ('move_to_pose', 'follow_joint_trajectory', 'stop')
    assert {'proprio', 'arm_state'} <= set(arm.channels)
    assert 'base' in sim_arm.frames.tf_frames
    assert sim_arm.simulation is not None
    assert list(sim_arm.simulation.initial_states) == ['home']


def test_everything_of_the_arm_shares_a_group_and_the_gripper_has_its_own(
    sim_arm: BridgeConfig,
) -> None:  # AWP-PRE-006
    groups = {
        name: {sim_arm.actions[action].concurrency_group for action in each.actions}
        for name, each in sim_arm.embodiments.items()
    }
    assert groups == {'arm_01': {'arm_motion'}, 'gripper_01': {'gripper'}}


def test_the_arm_state_is_reliable_at_10_hz(sim_arm: BridgeConfig) -> None:  # AWP-TRN-008
    channel = sim_arm.channels['arm_state']
    assert (channel.loss_class, channel.rate_hz) == ('reliable', 10.0)


def test_both_bodies_stop_on_both_inputs(sim_arm: BridgeConfig) -> None:
    for embodiment in sim_arm.embodiments.values():
        meanings = [each.means for each in embodiment.safety_inputs]
        assert meanings == [Meaning.E_STOP, Meaning.PROTECTIVE_STOP]


@pytest.mark.parametrize(
    'name', ['ur', 'franka', 'ros2_control_arm', 'nav2_base', 'mobile_manipulator', 'moveit']
)
def test_the_configuration_of_a_robot_loads_without_a_word(name: str) -> None:
    result = load(ROOT / 'config' / f'{name}.yaml', infos())
    # That a package is not installed here is for the person who starts the bridge.
    said = [p for p in result.problems if 'is neither installed nor sourced' not in p.what]
    assert said == []
    assert result.config is not None


def test_every_configuration_is_in_the_documents_with_its_commands() -> None:
    written = (ROOT / 'docs' / 'robots.md').read_text(encoding='utf-8')
    for path in (ROOT / 'config').glob('*.yaml'):
        assert f'`config/{path.name}`' in written
        text = path.read_text(encoding='utf-8')
        assert path.stem in ('sim_arm', 'gazebo_arm') or '#   ros2 launch ' in text


def test_the_two_bodies_of_a_mobile_manipulator_share_nothing_that_stops_them() -> None:
    config = load(ROOT / 'config' / 'mobile_manipulator.yaml').config
    assert config is not None
    base, arm = config.embodiments['base_01'], config.embodiments['arm_01']
    assert not set(base.actions) & set(arm.actions)
    groups = [
        {config.actions[action].concurrency_group for action in each.actions}
        for each in (base, arm)
    ]
    assert groups == [{'base_motion'}, {'arm_motion'}]
    assert not set(base.channels) & set(arm.channels)
    assert not {i.topic for i in base.safety_inputs} & {i.topic for i in arm.safety_inputs}
    assert base.multi_bind_group == arm.multi_bind_group == 'robot'
    (e_stop,) = config.safety.inputs
    assert e_stop.means is Meaning.E_STOP


def test_planners_have_measured_limits_and_what_they_drive_is_named() -> None:
    for name, embodiment, action in (
        ('nav2_base', 'base_01', 'navigate_to_pose'),
        ('mobile_manipulator', 'base_01', 'navigate_to_pose'),
        ('moveit', 'arm_01', 'move_joints'),
        ('moveit', 'arm_01', 'move_to_pose'),
    ):
        config = load(ROOT / 'config' / f'{name}.yaml').config
        assert config is not None
        envelope = config.embodiments[embodiment].envelope
        assert envelope is not None
        assert envelope.enforcement == 'measured'
        assert envelope.measured is not None
        assert config.actions[action].downstream


@pytest.mark.parametrize('mode', range(-1, 20))
def test_only_named_modes_of_a_universal_robot_permit_motion(mode: int) -> None:
    config = load(ROOT / 'config' / 'ur.yaml').config
    assert config is not None
    inputs = config.embodiments['arm_01'].safety_inputs
    engaged = {
        topic: {i.means for i in inputs if i.topic.endswith(topic) and i.unsafe_when.holds(mode)}
        for topic in ('safety_mode', 'robot_mode')
    }
    assert (not engaged['robot_mode']) == (mode == 7)
    assert (not engaged['safety_mode']) == (mode in (1, 2))
    assert (Meaning.E_STOP in engaged['safety_mode']) == (mode in (6, 7))


@pytest.mark.parametrize('mode', range(20))
def test_only_idle_and_move_of_a_franka_permit_motion(mode: int) -> None:
    config = load(ROOT / 'config' / 'franka.yaml').config
    assert config is not None
    for embodiment in config.embodiments.values():
        engaged = {i.means for i in embodiment.safety_inputs if i.unsafe_when.holds(mode)}
        assert (not engaged) == (mode in (1, 2))
        assert (Meaning.E_STOP in engaged) == (mode == 5)


def test_the_arm_in_gazebo_loads_and_warns_only_of_its_missing_inputs() -> None:
    result = load(ROOT / 'config' / 'gazebo_arm.yaml')
    assert result.config is not None
    assert not result.errors
    assert all('safety_inputs' in str(problem) for problem in result.problems)


def test_every_name_is_relative(sim_arm: BridgeConfig) -> None:
    assert ': /' not in SIM_ARM.read_text(encoding='utf-8')


def test_the_reference_in_the_documents_is_current() -> None:
    written = (ROOT / 'docs' / 'configuration.md').read_text(encoding='utf-8')
    assert written == reference(), (
        'run: python -m awp_ros_bridge.config.reference > docs/configuration.md'
    )


def test_every_key_is_described() -> None:
    rows = [line for line in reference().splitlines() if line.startswith('| `')]
    assert len(rows) > 80
    assert [row for row in rows if row.split(' | ')[-1].strip(' |') == ''] == []


def test_the_smallest_file_of_the_reference_loads() -> None:
    adapters = {
        'follow_joint_trajectory': FakeAdapter('follow_joint_trajectory'),
        'stop': FakeAdapter('stop', 'builtin', extended=False),
    }
    result = load_text(smallest_file(), adapters=adapters)
    assert result.problems == ()
