"""Owns the mapping onto any action type, by configuration alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from awp_ros_bridge.config.problems import dotted, Finding, Severity
from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.manifest.shapes import ParamRefused
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Outcome
from awp_ros_bridge.ros.adapters.feedback_progress import FeedbackProgress, progress_problems
from awp_ros_bridge.ros.adapters.generic_options import GenericOptions, read_options
from awp_ros_bridge.ros.adapters.generic_params import (
    Params,
    shaped_params,
    unknown_params,
    unused_settings,
)
from awp_ros_bridge.ros.adapters.goal_places import Place, render, resolve
from awp_ros_bridge.ros.adapters.goal_template import read_template
from awp_ros_bridge.ros.adapters.params import bad_params, unready
from awp_ros_bridge.ros.adapters.params import params as params_object
from awp_ros_bridge.ros.adapters.result_outcome import result_problems, ResultOutcome
from awp_ros_bridge.ros.goal_values import fill
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface, message_type

Json = dict[str, Any]


@dataclass(slots=True)
class _Mapping:
    """
    What the options come down to.

    :param missing: what to install where the type is not here, None where it is.
    """

    options: GenericOptions | None = None
    params: Params = field(default_factory=Params)
    places: Sequence[Place] = ()
    missing: str | None = None
    findings: list[Finding] = field(default_factory=list)


class GenericAdapter(Adapter):
    """
    Any action type: the goal by a template, params by its fields; nothing is evaluated.

    It knows nothing of what the goal means, so it proves no limit.
    """

    name: ClassVar[str] = 'generic'
    kind: ClassVar[str] = 'action'
    extended: ClassVar[bool] = True
    options: ClassVar[Mapping[str, str]] = {
        'type': 'the action type, such as `moveit_msgs/action/MoveGroup`; needed',
        'goal': 'what each field of the goal gets, by nested or dotted and indexed paths: a '
        'constant, `{param: name}`, `{constant: NAME}` or `{stamp: now}`; needed',
        'params': 'what is said of a param beyond what its field says: units, bounds, choices, '
        'form, default',
        'progress': 'how feedback tells what part is done; nothing by default',
        'result': 'what in the result says that the goal was reached; by default the status of '
        'the goal alone',
    }
    ros_type: ClassVar[str] = ''

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        found = _mapping(context.options)
        self._missing = found.missing
        errors = [each for each in found.findings if each.severity is Severity.ERROR]
        if found.options is None or errors:
            raise ValueError(_said(errors[0]))
        self._params = found.params
        self._places = found.places
        # The class serves any type; the instance knows which.
        self.ros_type = found.options.type  # type: ignore[misc]
        self._progress: FeedbackProgress | None = None
        self._outcome: ResultOutcome | None = None
        if found.missing is None:
            self._check_defaults()
            result = message_type(load_interface(self.ros_type).Result)
            self._outcome = ResultOutcome(found.options.result, result)
            if found.options.progress is not None:
                defaults = found.params.defaults
                self._progress = FeedbackProgress(found.options.progress, defaults)

    @classmethod
    def option_findings(cls, options: Json) -> Sequence[Finding]:
        return _mapping(options).findings

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        found = _mapping(options)
        errors = [each for each in found.findings if each.severity is Severity.ERROR]
        if errors:
            raise ValueError(_said(errors[0]))
        known = found.params
        title = found.missing or f'the params of a {options["type"]}'
        return params_object(known.schemas(), known.required, title)

    def check(self, params: Json) -> GoalRefusal | None:
        if self._missing is not None:
            return unready(self._missing)
        try:
            self._filled(params)
        except ValueError as error:
            return bad_params(str(error))
        return None

    def goal(self, params: Json) -> Any:
        if self._missing is not None:
            raise ValueError(self._missing)
        return self._filled(params)

    def begin(self, params: Json) -> Json:
        if self._progress is not None:
            self._progress.begin()
        return {}

    def progress(self, params: Json, feedback: Any) -> float | None:
        return None if self._progress is None else self._progress.fraction(params, feedback)

    def outcome(self, result: Any) -> Outcome:
        if self._outcome is None:
            raise ValueError(self._missing)
        return self._outcome.outcome(result)

    def _filled(self, params: Json) -> Any:
        """
        Make the goal.

        :raises ValueError: a param, or what it becomes in a field, does not fit
        """
        values = self._params.to_ros(params, self.context.ros_frame)
        tree = render(self._places, values, self.context.now_stamp)
        return fill(load_interface(self.ros_type).Goal(), tree)

    def _check_defaults(self) -> None:
        for name, value in self._params.defaults.items():
            shape = self._params.shapes[name]
            if shape is not None:
                try:
                    shape.to_ros(value, f'options.params.{name}.default', self.context.ros_frame)
                except ParamRefused as error:
                    raise ValueError(str(error)) from None


def _said(finding: Finding) -> str:
    return f'options.{dotted(finding.path)}: {finding.what}; {finding.todo}'


def _mapping(options: Json) -> _Mapping:
    """Read the options and compare them with the action type, as far as it is here."""
    written, findings = read_options(options)
    found = _Mapping(written, findings=findings)
    if written is None:
        return found
    entries, problems = read_template(written.goal)
    findings += problems
    findings += unused_settings(entries, written.params)
    found.params = unknown_params(entries, written.params)
    try:
        action = load_interface(written.type)
        goal, result, feedback = (
            message_type(each) for each in (action.Goal, action.Result, action.Feedback)
        )
    except InterfaceMissing as error:
        found.missing = str(error)
        findings.append(_missing(error))
        if written.progress is not None:
            findings += progress_problems(written.progress, None, found.params.shapes)
        return found
    found.places, problems = resolve(entries, goal)
    findings += problems
    found.params, problems = shaped_params(found.places, written.params)
    findings += problems
    findings += result_problems(written.result, result)
    if written.progress is not None:
        findings += progress_problems(written.progress, feedback, found.params.shapes)
    return found


def _missing(error: InterfaceMissing) -> Finding:
    what, _, todo = str(error).partition('; ')
    return Finding(
        ('type',),
        f'{what}; until then agents are told that the action is unavailable',
        todo or 'correct the type',
        Severity.WARNING,
    )
