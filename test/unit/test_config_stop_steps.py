"""Stop steps in the configuration: their shape, the behaviour they realise, their servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from config_sample import ADAPTERS, config, drop, loaded, put, said
import pytest

from awp_ros_bridge.config import CallService, Park, PublishZeros
from awp_ros_bridge.config.stop_steps import extra_ms, realises

Json = dict[str, Any]
STEPS = 'embodiments/arm_01/stop_steps'
HERE = 'embodiments.arm_01.stop_steps'
TWIST: Json = {'step': 'publish_zeros', 'topic': 'cmd_vel', 'type': 'geometry_msgs/msg/Twist'}
CALL: Json = {'step': 'call_service', 'service': 'driver/stop'}
PARK: Json = {'step': 'park', 'action': 'move', 'params': {'goal_rad': 0.5}}


def steps(*between: Any) -> Callable[[Json], object]:
    return put(STEPS, ['cancel_goals', *between, 'wait_at_rest'])


def both(*changes: Callable[[Json], object]) -> Callable[[Json], object]:
    def change(data: Json) -> None:
        for each in changes:
            each(data)

    return change


def test_steps_load_as_what_they_are() -> None:
    change = both(steps(TWIST, CALL, PARK), put('safety/behavior', 'park'))
    _, zeros, call, park, _ = config(change).embodiments['arm_01'].stop_steps
    assert isinstance(zeros, PublishZeros)
    assert (zeros.for_ms, zeros.rate_hz, zeros.label) == (500, 50.0, 'publish_zeros cmd_vel')
    assert isinstance(call, CallService)
    assert (call.type, call.timeout_ms) == ('std_srvs/srv/Trigger', 1000)
    assert isinstance(park, Park)
    assert park.params == {'goal_rad': 0.5}
    assert not loaded(change, ADAPTERS).problems


@pytest.mark.parametrize(
    ('step', 'problem'),
    [
        ('wait', '[1]: expected one of cancel_goals, stay_in_place, wait_at_rest, found the text'),
        ({'step': 'publish_zero'}, '[1]: there is no such step; write cancel_goals'),
        (7, '[1]: there is no such step'),
        ({**TWIST, 'rate': 5}, "[1].rate: unknown key 'rate'; did you mean 'rate_hz'?"),
        ({**TWIST, 'type': 'geometry_msgs/msg/Pose'}, '[1].type: expected one of'),
        ({**TWIST, 'size': 3}, '[1]: size and geometry_msgs/msg/Twist do not fit'),
        (
            {**TWIST, 'type': 'std_msgs/msg/Float64MultiArray'},
            '[1]: size and std_msgs/msg/Float64MultiArray do not fit',
        ),
        (
            {**TWIST, 'type': 'control_msgs/msg/JointJog'},
            '[1]: joints and control_msgs/msg/JointJog do not fit',
        ),
        ({**TWIST, 'frame_id': 'base'}, '[1]: geometry_msgs/msg/Twist has no header'),
        ({**TWIST, 'for_ms': 0}, '[1].for_ms: 0 ms is out of range, the least is 20 ms'),
        ({**CALL, 'data': True}, '[1]: data and std_srvs/srv/Trigger do not fit'),
        ({**CALL, 'type': 'std_srvs/srv/SetBool'}, '[1]: data and std_srvs/srv/SetBool do not'),
        ({'step': 'park'}, "[1].action: 'action' is missing; add it"),
    ],
)
def test_a_step_that_is_wrong_is_named(step: Any, problem: str) -> None:
    result = loaded(steps(step))
    assert result.config is None
    assert any(text.startswith(f'{HERE}{problem}') for text in said(result)), said(result)


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        (
            put(STEPS, ['wait_at_rest', 'cancel_goals']),
            f'{HERE}: cancel_goals is not the first step; begin with cancel_goals',
        ),
        (steps(TWIST, TWIST), f'{HERE}[2]: the step stands there already; remove one of them'),
        (
            both(steps(PARK, {**PARK, 'params': {}}), put('safety/behavior', 'park')),
            f'{HERE}[2]: a body parks at one place; keep one of the steps',
        ),
        (
            put('safety/behavior', 'park'),
            f"{HERE}: no step of it realises safety.behavior 'park'; add a step park, or "
            'stay_in_place where the body has nothing to do for it; or declare hold or safe_stop',
        ),
        (
            both(steps(TWIST), put('safety/behavior', 'park')),
            f"{HERE}: no step of it realises safety.behavior 'park'; add a step park",
        ),
        (
            put('safety/behavior', 'x-acme.tuck'),
            f"{HERE}: no step of it realises safety.behavior 'x-acme.tuck'; add a step "
            'publish_zeros, call_service or park',
        ),
        (
            steps(PARK),
            f"{HERE}[1]: safety.behavior 'safe_stop' moves nothing, this step does; declare park",
        ),
        (
            both(steps({**PARK, 'action': 'mov'}), put('safety/behavior', 'park')),
            f"{HERE}[1].action: arm_01 does not list the action 'mov'; add it to its actions; "
            "did you mean 'move'?",
        ),
        (
            both(steps({**PARK, 'action': 'stop'}), put('safety/behavior', 'park')),
            f"{HERE}[1].action: 'stop' sends no goal (adapter 'stopper'); name a type with an",
        ),
        (
            both(
                steps({**PARK, 'params': {'goal_rad': 'up', 'x': 1}}),
                put('safety/behavior', 'park'),
            ),
            f'{HERE}[1].params: params.goal_rad is "up": must be a number; correct it',
        ),
        (
            put('actions/stop/shared_server', False),
            'actions.stop.shared_server: the type has no action server whose goals could be',
        ),
        (
            put('actions/stop/downstream', ['arm/follow']),
            'actions.stop.downstream: the type has no action server whose goals could be',
        ),
        (
            put('actions/move/downstream', ['arm/move']),
            "actions.move.downstream: 'arm/move' is the server of the type itself; name what",
        ),
        (
            put('actions/move/downstream', ['a', 'a']),
            "actions.move.downstream: 'a' stands 2 times; keep one of them",
        ),
    ],
)
def test_rules_of_stopping(change: Callable[[Json], object], problem: str) -> None:
    result = loaded(change, ADAPTERS)
    assert result.config is None
    assert any(text.startswith(problem) for text in said(result)), said(result)


@pytest.mark.parametrize('behavior', ['park', 'x-acme.tuck'])
def test_a_body_that_has_nothing_to_do_says_so(behavior: str) -> None:
    change = both(steps('stay_in_place'), put('safety/behavior', behavior))
    assert not loaded(change, ADAPTERS).errors


def test_absolute_names_of_steps_are_warned_of() -> None:
    result = loaded(steps({**TWIST, 'topic': '/cmd_vel'}, {**CALL, 'service': '/stop'}))
    warned = [each.path for each in result.warnings]
    assert warned == [f'{HERE}[1].topic', f'{HERE}[2].service']
    result = loaded(put('actions/move/downstream', ['/arm/follow']))
    assert [each.path for each in result.warnings] == ['actions.move.downstream[0]']


def test_what_realises_a_behaviour() -> None:
    plain = ('cancel_goals', 'wait_at_rest')
    call = CallService(step='call_service', service='stop')
    park = Park(step='park', action='move')
    assert realises('hold', plain)
    assert realises('safe_stop', plain)
    assert not realises('park', (*plain, call))
    assert realises('park', (*plain, park))
    assert not realises('x-a.b', plain)
    assert realises('x-a.b', (*plain, call))


def test_time_beyond_the_abort() -> None:
    call = CallService(step='call_service', service='stop', timeout_ms=800)
    other = CallService(step='call_service', service='brake', timeout_ms=300)
    park = Park(step='park', action='move', timeout_ms=5000)
    assert extra_ms(('cancel_goals', 'wait_at_rest')) == 0
    assert extra_ms(('cancel_goals', call, other)) == 800
    assert extra_ms(('cancel_goals', call, park)) == 5800


def test_the_smallest_sample_needs_no_steps() -> None:
    assert config(drop('embodiments/arm_01/envelope')).embodiments['arm_01'].stop_steps == (
        'cancel_goals',
        'wait_at_rest',
    )
