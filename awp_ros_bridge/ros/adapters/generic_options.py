"""Owns the options of the generic adapter, as the configuration may write them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator, ValidationError

from awp_ros_bridge.config import schema
from awp_ros_bridge.config.base import ActionType, FieldPath, Items, refuse, StrictModel, Text
from awp_ros_bridge.config.problems import describe, Finding
from awp_ros_bridge.manifest.params import ParamSettings

Json = dict[str, Any]
ParamName = Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*$', max_length=64)]
Value = bool | int | float | Text


class ParamOptions(StrictModel):
    """What is said of a param beyond what its field says."""

    description: Text | None = None
    unitless: bool = False
    units: dict[str, str] = Field(default_factory=dict)
    form: Literal['pose', 'frame'] | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: Items[Text] = ()
    max_items: Annotated[int, Field(ge=1, le=10_000)] = 1000
    default: Any = None

    @property
    def settings(self) -> ParamSettings:
        """What shapes the param."""
        return ParamSettings(
            unitless=self.unitless,
            units=self.units,
            minimum=self.minimum,
            maximum=self.maximum,
            choices=self.choices,
            is_frame=self.form == 'frame',
            max_items=self.max_items,
        )


class ParamOf(StrictModel):
    """The whole is a param of the goal."""

    param: ParamName


class FieldOf(StrictModel):
    """The whole is told by the feedback too."""

    field: FieldPath


class ProgressOptions(StrictModel):
    """How feedback tells what part of the goal is done."""

    measure: Literal['fraction', 'percent', 'remaining', 'done', 'count']
    field: FieldPath
    of: float | ParamOf | FieldOf | None = None

    @model_validator(mode='after')
    def _has_its_whole(self) -> ProgressOptions:
        needs = self.measure in {'done', 'count'}
        if needs and self.of is None:
            raise refuse(
                f'{self.measure} is a part of something that is not named',
                'add of: a number, {param: name} or {field: path}',
            )
        if not needs and self.of is not None:
            raise refuse(f'{self.measure} has no use for of', 'remove it')
        if isinstance(self.of, float) and not self.of > 0:
            raise refuse(f'nothing is a part of {self.of:g}', 'write a positive number')
        return self


class ResultOptions(StrictModel):
    """What in the result says that the goal was reached."""

    field: FieldPath | None = None
    succeeded: Items[Value] = ()
    at_least: float | None = None
    at_most: float | None = None
    text: FieldPath | None = None

    @model_validator(mode='after')
    def _has_a_rule(self) -> ResultOptions:
        rules = bool(self.succeeded), self.at_least is not None or self.at_most is not None
        if self.field is None and any(rules):
            raise refuse('nothing says which field is meant', 'add field')
        if self.field is not None and sum(rules) != 1:
            raise refuse(
                'a field alone does not say what success is',
                'add succeeded: a list of values or names of constants, or at_least, at_most',
            )
        return self


class GenericOptions(StrictModel):
    """Everything the adapter is told."""

    type: ActionType
    goal: Json
    params: dict[ParamName, ParamOptions] = Field(default_factory=dict)
    progress: ProgressOptions | None = None
    result: ResultOptions = ResultOptions()


def read_options(options: Json) -> tuple[GenericOptions | None, list[Finding]]:
    """Return the options, or everything that is wrong with their form but keys not known here."""
    # The loader knows the options of every adapter, and says which one has none of a name.
    options = {key: value for key, value in options.items() if key in GenericOptions.model_fields}
    try:
        return GenericOptions.model_validate(options), []
    except ValidationError as error:
        findings = []
        for each in error.errors(include_url=False):
            path = schema.data_path(each['loc'], options, each['type'])
            known = schema.known_keys(path[:-1], options, path[-1], GenericOptions) if path else ()
            what, todo = describe(each, path, known)
            findings.append(Finding(path, what, todo))
        return None, findings
