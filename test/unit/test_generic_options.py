"""Options of the generic adapter against descriptions made by hand, and a type that is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from adapter_context import Robot
import field_samples as s
import pytest

from awp_ros_bridge.config import load_text
from awp_ros_bridge.config.problems import dotted, Finding, Severity
from awp_ros_bridge.engine.policy import RefusalKind
from awp_ros_bridge.manifest.field_types import ListType
from awp_ros_bridge.manifest.shapes import (
    IntegerShape,
    ListShape,
    NumberShape,
    ParamRefused,
    PoseShape,
)
from awp_ros_bridge.ros.adapters import registry
from awp_ros_bridge.ros.adapters.feedback_progress import (
    FeedbackProgress,
    progress_problems,
    Remaining,
)
from awp_ros_bridge.ros.adapters.generic_options import (
    ParamOptions,
    ProgressOptions,
    read_options,
    ResultOptions,
)
from awp_ros_bridge.ros.adapters.generic_params import Params, shaped_params, unused_settings
from awp_ros_bridge.ros.adapters.goal_places import render, resolve
from awp_ros_bridge.ros.adapters.goal_template import read_template
from awp_ros_bridge.ros.adapters.result_outcome import result_problems, ResultOutcome

ABSENT = 'no_such_msgs/action/Do'
FRAMES = {'base': 'robot/base'}.get


def told(findings: list[Finding]) -> list[str]:
    return [f'{dotted(f.path)}: {f.what}; {f.todo}' for f in findings]


def mapped(goal: Any, **params: Any) -> tuple[list[Any], Params, list[Finding]]:
    """Compare a template and what is said of its params with the sample goal."""
    settings = {name: ParamOptions.model_validate(value) for name, value in params.items()}
    entries, problems = read_template(goal)
    problems += unused_settings(entries, settings)
    places, more = resolve(entries, s.GOAL)
    shaped, last = shaped_params(places, settings)
    return places, shaped, problems + more + last


def filled(goal: Any, values: Any, **params: Any) -> Any:
    places, shaped, problems = mapped(goal, **params)
    assert told(problems) == []
    stamp = SimpleNamespace(sec=7, nanosec=8)
    return render(places, shaped.to_ros(values, FRAMES), lambda: stamp)


def problem(goal: Any, **params: Any) -> str:
    (text,) = told(mapped(goal, **params)[2])
    return text


# ---------------------------------------------------------------- the goal


def test_nested_dotted_and_indexed_paths_are_the_same() -> None:
    nested = {'joints': [{'name': 'a', 'position': 1.0}, {'name': 'b', 'position': 2.0}]}
    dotted_paths = {
        'joints[1].position': 2.0,
        'joints[1].name': 'b',
        'joints[0]': {'position': 1.0},
        'joints[0].name': 'a',
    }
    expected = {'joints': [{'name': 'a', 'position': 1.0}, {'name': 'b', 'position': 2.0}]}
    assert filled(nested, {}) == expected
    assert filled(dotted_paths, {}) == expected


def test_every_source_of_a_field() -> None:
    goal = {
        'mode': {'constant': 'MODE_FAST'},
        'label': 'abc',
        'is_dry': False,
        'weights': [1, 2.5],
        'few': [],
        'stamp': {'stamp': 'now'},
        'header.stamp': {'stamp': 'now'},
        'ratio': {'param': 'wait_ms', 'factor': 0.001},
        'count': {'param': 'count'},
        'corners': [{'param': 'sides_m[0]'}, 0.5, {'param': 'sides_m[1]'}],
        'timeout': {'param': 'limit_ms'},
    }
    values = {'wait_ms': 1500, 'count': 3, 'sides_m': [1, 2], 'limit_ms': 250}
    assert filled(goal, values) == {
        'mode': 2,
        'label': 'abc',
        'is_dry': False,
        'weights': [1, 2.5],
        'few': [],
        'stamp': {'sec': 7, 'nanosec': 8},
        'header': {'stamp': {'sec': 7, 'nanosec': 8}},
        'ratio': 1.5,
        'count': 3,
        'corners': [1.0, 0.5, 2.0],
        'timeout': {'sec': 0, 'nanosec': 250_000_000},
    }


def test_a_pose_may_be_given_whole_or_by_its_parts() -> None:
    pose = {'frame': 'base', 'p_m': [1, 2, 3], 'q': [0, 0, 1, 0]}
    point = {'x': 1.0, 'y': 2.0, 'z': 3.0}
    turn = {'x': 0.0, 'y': 0.0, 'z': 1.0, 'w': 0.0}
    assert filled({'target': {'param': 'to'}}, {'to': pose}) == {
        'target': {
            'header': {'frame_id': 'robot/base'},
            'pose': {'position': point, 'orientation': turn},
        }
    }
    parts = {
        'header.frame_id': {'param': 'to.frame'},
        'offset': {'param': 'to.p_m'},
        'point': {'param': 'to.p_m'},
        'turn': {'param': 'to.q'},
        'pose': {'param': 'to.pose'},
    }
    assert filled(parts, {'to': pose}, to={'form': 'pose'}) == {
        'header': {'frame_id': 'robot/base'},
        'offset': point,
        'point': point,
        'turn': turn,
        'pose': {'position': point, 'orientation': turn},
    }


def test_choices_defaults_and_frames() -> None:
    goal = {
        'mode': {'param': 'mode'},
        'header.frame_id': {'param': 'where'},
        'speed': {'param': 'speed'},
    }
    params: Any = {
        'mode': {'choices': ['MODE_*'], 'default': 'MODE_SLOW', 'description': 'how to go'},
        'where': {'form': 'frame'},
        'speed': {'units': {'linear': 'mps', 'angular': 'radps'}},
    }
    _, shaped, problems = mapped(goal, **params)
    assert problems == []
    assert shaped.required == ['where', 'speed']
    assert shaped.schemas()['mode'] == {
        'enum': ['MODE_SLOW', 'MODE_FAST'],
        'default': 'MODE_SLOW',
        'description': 'how to go',
    }
    zero = {f'{axis}_mps': 0.0 for axis in 'xyz'}
    speed = {'linear': zero, 'angular': {f'{axis}_radps': 0.5 for axis in 'xyz'}}
    tree = filled(goal, {'where': 'base', 'speed': speed}, **params)
    assert tree['mode'] == 1
    assert tree['header'] == {'frame_id': 'robot/base'}
    assert tree['speed']['angular'] == {'x': 0.5, 'y': 0.5, 'z': 0.5}
    for values, text in (
        ({'speed': speed}, 'params.where: missing'),
        ({'where': 'map', 'speed': speed}, "params.where: unknown frame 'map'"),
        ({'where': 'base', 'speed': speed, 'sped': 1}, 'params.sped: unknown; there are mode, wh'),
        (
            {'where': 'base', 'speed': {**speed, 'linear': {}}},
            'params.speed.linear.x_mps: missing',
        ),
    ):
        with pytest.raises(ParamRefused, match=text):
            shaped.to_ros(values, FRAMES)


def test_a_param_may_fill_several_fields_that_take_the_same() -> None:
    both = {'joints': [{'position': {'param': 'a_rad'}}, {'position': {'param': 'a_rad'}}]}
    assert filled(both, {'a_rad': 0.5}) == {'joints': [{'position': 0.5}, {'position': 0.5}]}


def test_items_of_a_param_may_go_to_several_messages() -> None:
    goal = {'joints': [{'position': {'param': f'q_rad[{i}]'}} for i in range(3)]}
    _, shaped, problems = mapped(goal, q_rad={'maximum': 3.0})
    assert problems == []
    assert shaped.shapes['q_rad'] == ListShape(NumberShape(high=3.0), 3, 3)
    tree = filled(goal, {'q_rad': [1, 2, 3]}, q_rad={'maximum': 3.0})
    assert [joint['position'] for joint in tree['joints']] == [1.0, 2.0, 3.0]
    with pytest.raises(ParamRefused, match=r'params.q_rad\[1\]: 4 is outside'):
        shaped.to_ros({'q_rad': [1, 4, 3]}, FRAMES)


@pytest.mark.parametrize(
    ('goal', 'text'),
    [
        ({'moed': 1}, "goal.moed: moed: maker_msgs/action/Work_Goal has no field 'moed'; did"),
        ({'joints': [{'nmae': 'a'}]}, 'goal.joints[0].nmae: joints[0].nmae: maker_msgs/msg/Jo'),
        ({'mode': 300}, 'goal.mode: mode: 300 is outside the range 0 to 255; correct'),
        ({'mode': 1.5}, 'mode: an integer is needed, not 1.5'),
        ({'mode': True}, 'mode: an integer is needed, not true'),
        ({'ratio': 1e39}, 'ratio: 1e+39 is outside the range'),
        ({'label': 'abcde'}, 'label: 4 bytes at most, not 5'),
        ({'is_dry': 1}, 'is_dry: true or false is needed, not 1'),
        ({'few': [1, 2, 3]}, 'few: 0 to 2 items are needed, not 3'),
        ({'corners': [1, 2]}, 'corners: 3 items are needed, not 2'),
        ({'weights': ['a']}, "weights[0]: a number is needed, not 'a'"),
        ({'target': 3}, 'target: 3 is no value of geometry_msgs/msg/PoseStamped; write'),
        ({'joints': 3}, 'joints: 3 is no value of a list of maker_msgs/msg/JointTarget; wr'),
        ({'mode': None}, 'goal.mode: nothing is no value of ROS; write a value'),
        ({'mode': {'constant': 'MODE_FSAT'}}, "constant 'MODE_FSAT'; did you mean 'MODE_FAST'?"),
        ({'mode': {'constant': 'OTHER'}}, 'goal.mode.constant: OTHER is no value of mode, which'),
        ({'mode': {'stamp': 'now'}}, 'mode is uint8, no builtin_interfaces/msg/Time'),
        ({'stamp': {'stamp': 'later'}}, 'goal.stamp.stamp: only one stamp is known; write now'),
        ({'Mode': 1}, "goal.Mode: 'Mode' is not a field path; write names divided by dots"),
        ({'joints[name=a].position': 1.0}, 'searches for an item; write its index'),
        ({'weights[1000]': 1.0}, 'has too great an index'),
        ({'joints[1].position': 1.0}, 'joints has an item 1 and no item 0; fill the items from 0'),
        ({'pair': [{'position': 1.0}]}, 'pair has 2 items, 1 are filled; fill every item'),
        ({'corners[3]': 1.0, 'corners[0]': 1.0, 'corners[1]': 1.0, 'corners[2]': 1.0}, '3 items'),
        ({'pose.position.x': 1.0, 'pose': {'position.x': 2.0}}, 'fill the same field'),
        ({'target.pose': {'param': 'a'}, 'target': {'param': 'b'}}, 'fill the same field'),
        ({'mode': {'param': 'a', 'constant': 'b'}}, 'param, constant do not go together; write {'),
        ({'mode': {'param': 'a', 'unit': 'm'}}, 'param, unit do not go together'),
        ({'mode': {'constant': 'a', 'factor': 2}}, 'constant, factor do not go together'),
        ({'mode': {'param': 'A'}}, "goal.mode.param: 'A' names no param; write a name in small"),
        ({'mode': {'param': 'a.x'}}, "'a.x' names no param"),
        ({'mode': {'param': 'a[1000]'}}, 'too great an index; count from 0'),
        ({'ratio': {'param': 'a_ms', 'factor': 0}}, 'goal.ratio.factor: 0 is no factor; write a'),
        ({'ratio': {'param': 'a_ms', 'factor': 'x'}}, "'x' is no factor"),
        ({'ratio': {'param': 'a_ms', 'factor': True}}, 'True is no factor'),
        ({'mode': {'param': 'a', 'factor': 2}}, 'a factor needs a floating point number, the fie'),
        ({'ratio': {'param': 'a'}}, "param 'a' for ratio: 'a' says no unit of the number it is"),
        ({'speed': {'param': 'a'}}, "param 'a' for speed: nothing says the unit of linear.x"),
        (
            {'mode': {'param': 'a'}, 'count': {'param': 'a'}},
            'count is int64 and needs another value; give it a param of its own',
        ),
        (
            {'weights': {'param': 'a_m'}, 'corners[0]': {'param': 'a_m[0]'}, 'corners[1]': 0.0,
             'corners[2]': 0.0},
            'it is used as a whole and by its items; use one of the two',
        ),
        ({'ratio': {'param': 'a_m[1]'}}, 'item 0 fills nothing; use the items from 0 on'),
        ({'pose': {'param': 'a.pose'}}, 'its frame fills nothing, so an agent would be misun'),
        ({'mode': {'param': 'a.q'}}, 'mode is uint8, which takes no q; use the part that it'),
        ({'mode': {'param': 'a.frame'}}, 'mode is uint8, which takes no frame'),
        ({'target': {'param': 'a[0].frame'}}, 'a pose has no items and no factor'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_template_is_told_with_its_place(goal: Any, text: str) -> None:
    said = problem(goal)
    assert text in said
    assert said.startswith('goal.')


@pytest.mark.parametrize(
    ('params', 'text'),
    [
        ({'b': {}}, "params.b: param 'b' fills no field; use it in goal, or remove it"),
        ({'a': {'maximum': 300}}, "params.a.maximum: param 'a' for mode: the bounds are wider"),
        ({'a': {'default': 300}}, 'params.a.default: default: 300 is outside the range 0 to 255'),
        (
            {'a': {'choices': ['X']}},
            "params.a.choices: param 'a' for mode: maker_msgs/action/",
        ),
        (
            {'a': {'form': 'pose'}},
            "params.a: param 'a' for mode: mode is uint8, which takes no",
        ),
    ],
)
def test_what_is_wrong_with_a_param_is_told_with_its_place(params: Any, text: str) -> None:
    assert text in problem({'mode': {'param': 'a'}}, **params)


def test_a_field_named_like_a_source_is_written_with_its_path() -> None:
    kind = s.message('maker_msgs/msg/Odd', param=s.UINT8, constant=s.UINT8)
    entries, problems = read_template({'tool.param': 3, 'tool.constant': {'param': 'c'}})
    assert problems == []
    places, problems = resolve(entries, s.message('maker_msgs/action/Odd_Goal', tool=kind))
    assert problems == []
    assert shaped_params(places, {})[0].shapes == {'c': IntegerShape(0, 255)}
    assert render(places, {'c': 4}, lambda: None) == {'tool': {'param': 3, 'constant': 4}}


def test_a_whole_pose_shapes_the_param() -> None:
    _, shaped, _ = mapped({'target': {'param': 'to'}}, to={'form': 'pose'})
    assert shaped.shapes == {'to': PoseShape()}


# ---------------------------------------------------------------- progress


def progress(**options: Any) -> FeedbackProgress:
    return FeedbackProgress(ProgressOptions.model_validate(options), {'whole': 8})


@pytest.mark.parametrize(
    ('options', 'feedback', 'expected'),
    [
        ({'measure': 'fraction', 'field': 'a'}, {'a': 0.25}, 0.25),
        ({'measure': 'fraction', 'field': 'a'}, {'a': 1.5}, 1.0),
        ({'measure': 'fraction', 'field': 'a'}, {'a': -1}, 0.0),
        ({'measure': 'fraction', 'field': 'a'}, {'a': float('nan')}, None),
        ({'measure': 'percent', 'field': 'a'}, {'a': 40}, 0.4),
        ({'measure': 'done', 'field': 'a', 'of': 4.0}, {'a': 1}, 0.25),
        ({'measure': 'done', 'field': 'a', 'of': {'field': 'b'}}, {'a': 1, 'b': 5}, 0.2),
        ({'measure': 'done', 'field': 'a', 'of': {'field': 'b'}}, {'a': 1, 'b': 0}, None),
        ({'measure': 'done', 'field': 'a', 'of': {'param': 'given'}}, {'a': 1}, 0.5),
        ({'measure': 'done', 'field': 'a', 'of': {'param': 'whole'}}, {'a': 2}, 0.25),
        ({'measure': 'count', 'field': 'a', 'of': {'param': 'given'}}, {'a': [7]}, 0.5),
        ({'measure': 'fraction', 'field': 'a[1]'}, {'a': [0.5]}, None),
        ({'measure': 'fraction', 'field': 'a[0]'}, {'a': [0.5]}, 0.5),
    ],
)
def test_progress_is_read_by_its_measure(
    options: Any, feedback: Any, expected: float | None
) -> None:
    found = progress(**options).fraction({'given': 2}, SimpleNamespace(**feedback))
    assert found == (None if expected is None else pytest.approx(expected))


def test_what_remains_is_measured_from_the_greatest_that_was_told() -> None:
    reader = progress(measure='remaining', field='left')
    told_m = [0.0, 4.0, 3.0, 5.0, 1.0, float('inf'), 0.0]
    found = [reader.fraction({}, SimpleNamespace(left=left)) for left in told_m]
    assert found == [None, 0.0, 0.25, 0.0, 0.8, None, 1.0]
    reader.begin()
    assert reader.fraction({}, SimpleNamespace(left=0.0)) is None
    assert Remaining().fraction(float('nan')) is None


FEEDBACK = s.message(
    'maker_msgs/action/Work_Feedback', part=s.DOUBLE, names=ListType(s.TEXT), text=s.TEXT
)


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        (
            {'measure': 'fraction', 'field': 'prat'},
            'progress.field: prat: maker_msgs/action/',
        ),
        ({'measure': 'fraction', 'field': 'text'}, 'text is string, a number is needed; name ano'),
        ({'measure': 'count', 'field': 'part', 'of': 3.0}, 'part is double, a list is needed'),
        (
            {'measure': 'done', 'field': 'part', 'of': {'field': 'names'}},
            'progress.of.field: names is a list of string, a number is needed',
        ),
        (
            {'measure': 'done', 'field': 'part', 'of': {'param': 'n'}},
            "progress.of.param: there is no param 'n'; did you mean 'nn'?",
        ),
        (
            {'measure': 'done', 'field': 'part', 'of': {'param': 'to'}},
            "param 'to' is no number; name one that is",
        ),
    ],
)
def test_what_is_wrong_with_progress_is_told(options: Any, text: str) -> None:
    shapes = {'nn': IntegerShape(0, 9), 'to': PoseShape()}
    asked = ProgressOptions.model_validate(options)
    (said,) = told(progress_problems(asked, FEEDBACK, shapes))
    assert text in said
    unknown = progress_problems(asked, None, dict.fromkeys(shapes))
    assert bool(unknown) == ('no param' in text)


# ---------------------------------------------------------------- outcome


RESULT = s.message(
    'maker_msgs/action/Work_Result',
    {'OK': 0, 'BAD': -3, 'WORSE': -4, 'ALSO_WORSE': -4},
    code=s.INT32,
    score=s.DOUBLE,
    is_done=s.BOOL,
    words=s.TEXT,
    marks=ListType(s.INT32),
)


def outcome(result: Any, **options: Any) -> tuple[bool, str]:
    rule = ResultOptions.model_validate(options)
    assert result_problems(rule, RESULT) == []
    found = ResultOutcome(rule, RESULT).outcome(SimpleNamespace(**result))
    return found.ok, found.detail


@pytest.mark.parametrize(
    ('options', 'result', 'expected'),
    [
        ({}, {}, (True, '')),
        ({'text': 'words'}, {'words': 'well'}, (True, 'well')),
        ({'field': 'code', 'succeeded': ['OK']}, {'code': 0}, (True, '')),
        ({'field': 'code', 'succeeded': ['OK', 7]}, {'code': 7}, (True, '')),
        ({'field': 'code', 'succeeded': ['OK']}, {'code': -3}, (False, 'BAD (-3)')),
        ({'field': 'code', 'succeeded': ['OK']}, {'code': -4}, (False, 'code is -4')),
        (
            {'field': 'code', 'succeeded': ['OK'], 'text': 'words'},
            {'code': -3, 'words': 'no joint'},
            (False, 'BAD (-3): no joint'),
        ),
        ({'field': 'is_done', 'succeeded': [True]}, {'is_done': True}, (True, '')),
        (
            {'field': 'is_done', 'succeeded': [True]},
            {'is_done': False},
            (False, 'is_done is False'),
        ),
        ({'field': 'is_done', 'succeeded': [False]}, {'is_done': 0}, (False, 'is_done is 0')),
        ({'field': 'score', 'at_least': 0.5}, {'score': 0.5}, (True, '')),
        ({'field': 'score', 'at_least': 0.5}, {'score': 0.4}, (False, 'score is 0.4')),
        ({'field': 'score', 'at_least': 0.5}, {'score': float('nan')}, (False, 'score is nan')),
        ({'field': 'score', 'at_most': 1.0}, {'score': 2.0}, (False, 'score is 2.0')),
        ({'field': 'score', 'at_least': 0.5, 'at_most': 1.0}, {'score': 0.7}, (True, '')),
        ({'field': 'score', 'succeeded': [1]}, {'score': 1.0}, (True, '')),
        ({'field': 'marks[0]', 'succeeded': ['OK']}, {'marks': [0]}, (True, '')),
    ],
)
def test_the_outcome_is_read_by_its_rule(
    options: Any, result: Any, expected: tuple[bool, str]
) -> None:
    assert outcome(result, **options) == expected


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        ({'text': 'code'}, 'result.text: code is int32, a text is needed'),
        ({'field': 'cdoe', 'succeeded': [0]}, "has no field 'cdoe'; did you mean 'code'?"),
        ({'field': 'marks', 'succeeded': [0]}, 'marks is a list of int32, a value is needed'),
        ({'field': 'words', 'at_least': 1.0}, 'words is string, a number is needed'),
        ({'field': 'code', 'succeeded': ['KO']}, 'result.succeeded[0]: maker_msgs/action/Work_Re'),
        ({'field': 'code', 'succeeded': ['OK', 1.5]}, 'result.succeeded[1]: 1.5 is no int32'),
        ({'field': 'is_done', 'succeeded': ['OK']}, "result.succeeded[0]: 'OK' is no boolean"),
    ],
)
def test_what_is_wrong_with_a_result_is_told(options: Any, text: str) -> None:
    (said,) = told(result_problems(ResultOptions.model_validate(options), RESULT))
    assert text in said


def test_a_result_without_constants_wants_the_value() -> None:
    rule = ResultOptions.model_validate({'field': 'code', 'succeeded': ['OK']})
    (said,) = told(result_problems(rule, s.message('m/action/R', code=s.INT32)))
    assert said.endswith("has no constant 'OK'; write the value itself")


# ---------------------------------------------------------------- the options as written


PERCENT = {'measure': 'percent', 'field': 'a'}


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        ({'type': ABSENT}, "goal: 'goal' is missing; add it"),
        ({'goal': {}}, "type: 'type' is missing; add it"),
        (
            {'type': 'a/msg/B', 'goal': {}},
            "type: 'a/msg/B' does not name a ROS interface of",
        ),
        ({'type': ABSENT, 'goal': []}, 'goal: expected a mapping, found a list'),
        (
            {'type': ABSENT, 'goal': {}, 'params': {'a': {'minimun': 1}}},
            "params.a.minimun: unknown key 'minimun'; did you mean 'minimum'?",
        ),
        (
            {'type': ABSENT, 'goal': {}, 'params': {'a': {'form': 'pos'}}},
            'params.a.form: expected one of pose, frame',
        ),
        (
            {'type': ABSENT, 'goal': {}, 'params': {'a': {'maximum': float('inf')}}},
            'params.a.maximum: inf is not a finite number',
        ),
        (
            {'type': ABSENT, 'goal': {}, 'progress': {'measure': 'done', 'field': 'a'}},
            'progress: done is a part of something that is not named; add of',
        ),
        (
            {
                'type': ABSENT,
                'goal': {},
                'progress': {'measure': 'percent', 'field': 'a', 'of': 1},
            },
            'progress: percent has no use for of; remove it',
        ),
        (
            {'type': ABSENT, 'goal': {}, 'progress': {'measure': 'done', 'field': 'a', 'of': 0}},
            'progress: nothing is a part of 0; write a positive number',
        ),
        ({'type': ABSENT, 'goal': {}, 'result': {'field': 'a'}}, 'result: a field alone does not'),
        ({'type': ABSENT, 'goal': {}, 'result': {'at_least': 1}}, 'result: nothing says which fi'),
    ],
)
def test_the_form_of_the_options_is_checked(options: Any, text: str) -> None:
    written, findings = read_options(options)
    assert written is None
    assert any(said.startswith(text) for said in told(findings)), told(findings)
    info = registry.infos()['generic']
    with pytest.raises(ValueError, match='options'):
        info.params_schema(options)
    with pytest.raises(ValueError, match='options'):
        registry.build('generic', Robot().context(**options))


# ---------------------------------------------------------------- a type that is not here


MISSING = {
    'type': ABSENT,
    'params': {'speed': {'unitless': True, 'default': 1.0}},
    'goal': {'a': {'param': 'width_m'}, 'b': {'param': 'speed'}, 'c[0].d': 3},
    'progress': {'measure': 'done', 'field': 'x', 'of': {'param': 'width_m'}},
}


def test_a_type_that_is_missing_affects_only_its_own_action() -> None:
    info = registry.infos()['generic']
    (finding,) = info.option_findings(MISSING)
    assert finding.severity is Severity.WARNING
    assert finding.path == ('type',)
    assert "package 'no_such_msgs' is neither installed nor sourced" in finding.what
    assert finding.todo.startswith('install ros-')
    assert 'no-such-msgs, or source the workspace that has it' in finding.todo
    schema = info.params_schema(MISSING)
    assert schema['properties'] == {'width_m': {}, 'speed': {'default': 1.0}}
    assert schema['required'] == ['width_m']
    assert schema['additionalProperties'] is False
    adapter: Any = registry.build('generic', Robot().context(**MISSING))
    assert adapter.ros_type == ABSENT
    refusal = adapter.check({'width_m': 1.0})
    assert refusal is not None
    assert refusal.kind is RefusalKind.UNREADY
    assert 'no_such_msgs' in refusal.detail
    assert adapter.begin({}) == {}
    assert adapter.progress({}, None) is None
    for use in (adapter.goal, adapter.outcome):
        with pytest.raises(ValueError, match='no_such_msgs'):
            use({})


def test_what_can_be_known_of_a_missing_type_is_still_checked() -> None:
    options = {**MISSING, 'goal': {'a': {'param': 'width_m'}, 'a.b': 1, 'c[1]': 2}}
    texts = told(list(registry.infos()['generic'].option_findings(options)))
    assert any('goal.a.b: a.b and a fill the same field' in text for text in texts)
    assert any('c has an item 1 and no item 0' in text for text in texts)
    assert any("param 'speed' fills no field" in text for text in texts)
    options = {**MISSING, 'progress': {'measure': 'done', 'field': 'x', 'of': {'param': 'w'}}}
    texts = told(list(registry.infos()['generic'].option_findings(options)))
    assert any("there is no param 'w'" in text for text in texts)


CONFIG = """\
world: {name: cell, vendor: maker}
guardian: 'off'
frames: {root: world}
embodiments:
  arm_01:
    kind: manipulator
    actions: [work]
    at_rest: {topic: joint_states, max_velocity_radps: 0.01}
    safety_inputs: [{kind: bool, topic: e_stop}]
actions:
  work:
    adapter: generic
    ros_action: work
    max_duration_ms: 1000
    options:
      type: no_such_msgs/action/Do
      goal:
        a: {param: width_m}
        b: {param: Width}
      parms: {}
"""


def test_problems_of_options_have_the_line_where_they_are_written() -> None:
    result = load_text(CONFIG, 'robot.yaml', registry.infos())
    texts = [str(each) for each in result.problems]
    assert len(texts) == 3, texts
    assert texts[0].startswith('robot.yaml:16: actions.work.options.type: warning: no_such_msgs/')
    assert texts[1].startswith(
        "robot.yaml:19: actions.work.options.goal.b.param: 'Width' names no param; write"
    )
    assert texts[2] == (
        "robot.yaml:20: actions.work.options.parms: adapter 'generic' has no option 'parms'; "
        "did you mean 'params'?"
    )
    assert result.config is None


def test_no_limit_is_proved_so_only_measured_ones_may_be_declared() -> None:
    text = CONFIG.replace('        b: {param: Width}\n      parms: {}\n', '')
    envelope = '    envelope: {max_velocity_mps: 0.5, enforcement: ENFORCED}\nactions:\n'
    text = text.replace('actions:\n  work', f'{envelope}  work')
    for enforcement in ('command_check', 'both, measured: {source: odometry}'):
        result = load_text(text.replace('ENFORCED', enforcement), 'f', registry.infos())
        assert result.config is None
        assert any(
            "max_velocity_mps cannot be checked on 'work' (adapter 'generic')" in str(each)
            for each in result.errors
        )
    measured = text.replace('ENFORCED', 'measured, measured: {source: odometry}')
    assert load_text(measured, 'f', registry.infos()).config is not None
