"""Owns the params of the generic adapter: what the places that a param fills make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from awp_ros_bridge.config.problems import Finding, Path
from awp_ros_bridge.manifest.field_types import MessageType, said, ScalarType
from awp_ros_bridge.manifest.params import (
    NoShape,
    param_shape,
    POSE,
    POSE_STAMPED,
    QUATERNION,
)
from awp_ros_bridge.manifest.shapes import Frames, ListShape, ParamRefused, PoseShape, Shape
from awp_ros_bridge.ros.adapters.generic_options import ParamOptions
from awp_ros_bridge.ros.adapters.goal_places import Place
from awp_ros_bridge.ros.adapters.goal_template import Entry, PARTS, Problems, Reference

Json = dict[str, Any]

_PART_TYPES = {
    'pose': (POSE,),
    'q': (QUATERNION,),
    'p_m': ('geometry_msgs/msg/Point', 'geometry_msgs/msg/Vector3'),
}
_ANYTHING = ParamOptions()


@dataclass(frozen=True, slots=True)
class Params:
    """
    The params of an action type.

    :param shapes: by name; None for one whose field is not known here.
    :param settings: what the configuration says of each.
    """

    shapes: Mapping[str, Shape | None] = field(default_factory=dict)
    settings: Mapping[str, ParamOptions] = field(default_factory=dict)

    @property
    def defaults(self) -> Json:
        """The params that agents may leave out, with what stands in."""
        given = {name: self.settings.get(name, _ANYTHING).default for name in self.shapes}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def required(self) -> list[str]:
        """The params that agents must give."""
        return [name for name in self.shapes if name not in self.defaults]

    def schemas(self) -> Json:
        """Return the schema of each param."""
        return {name: self._schema(name, shape) for name, shape in self.shapes.items()}

    def _schema(self, name: str, shape: Shape | None) -> Json:
        found = {} if shape is None else shape.schema()
        settings = self.settings.get(name, _ANYTHING)
        if settings.default is not None:
            found['default'] = settings.default
        if settings.description is not None:
            found['description'] = settings.description
        return found

    def to_ros(self, params: Json, frames: Frames) -> Json:
        """
        Return what each param comes down to in the message.

        :raises ParamRefused: one does not fit, is missing, or is not known
        """
        for name in params:
            if name not in self.shapes:
                known = ', '.join(self.shapes) or 'none'
                raise ParamRefused(f'params.{name}', f'unknown; there are {known}')
        given = {**self.defaults, **params}
        found = {}
        for name, shape in self.shapes.items():
            if name not in given:
                raise ParamRefused(f'params.{name}', 'missing')
            if shape is not None:
                found[name] = shape.to_ros(given[name], f'params.{name}', frames)
        return found


def references(entries: Sequence[Entry]) -> dict[str, list[tuple[Entry, Reference]]]:
    """Return what each param fills, in the order of the template."""
    found: dict[str, list[tuple[Entry, Reference]]] = {}
    for entry in entries:
        if isinstance(entry.source, Reference):
            found.setdefault(entry.source.param, []).append((entry, entry.source))
    return found


def unknown_params(entries: Sequence[Entry], settings: Mapping[str, ParamOptions]) -> Params:
    """Return the params by name alone, where the type of the action is not installed."""
    return Params(dict.fromkeys(references(entries)), settings)


def unused_settings(entries: Sequence[Entry], settings: Mapping[str, ParamOptions]) -> Problems:
    """Refuse what is said of a param that fills nothing."""
    used = references(entries)
    return [
        Finding(('params', name), f'param {name!r} fills no field', 'use it in goal, or remove it')
        for name in settings
        if name not in used
    ]


def shaped_params(
    places: Sequence[Place], settings: Mapping[str, ParamOptions]
) -> tuple[Params, Problems]:
    """Return the shape of every param, made of all the fields that it fills."""
    by_entry = {id(place.entry): place for place in places}
    shapes: dict[str, Shape | None] = {}
    problems: Problems = []
    for name, uses in references([place.entry for place in places]).items():
        options = settings.get(name, _ANYTHING)
        try:
            shape = _shape(name, [(by_entry[id(entry)], ref) for entry, ref in uses], options)
        except NoShape as error:
            problems.append(_finding(name, uses[0][0], error, settings))
            continue
        shapes[name] = shape
        problems += _default_problems(name, shape, options)
    return Params(shapes, settings), problems


def _finding(
    name: str, entry: Entry, error: NoShape, settings: Mapping[str, ParamOptions]
) -> Finding:
    at: Path = entry.at
    if name in settings:
        said_here = settings[name].model_fields_set
        at = ('params', name, error.key) if error.key in said_here else ('params', name)  # type: ignore[assignment]
    return Finding(at, f'param {name!r} for {entry.path}: {error.what}', error.todo)


def _shape(name: str, uses: Sequence[tuple[Place, Reference]], options: ParamOptions) -> Shape:
    if options.form == 'pose' or any(ref.part for _, ref in uses):
        return _pose(uses)
    indexed = [(place, ref) for place, ref in uses if ref.index is not None]
    if indexed and len(indexed) < len(uses):
        raise NoShape('it is used as a whole and by its items', 'use one of the two')
    shapes = [
        param_shape(
            name, place.kind, place.holder, options.settings, is_scaled=ref.factor is not None
        )
        for place, ref in uses
    ]
    other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is not None:
        place = uses[other][0]
        raise NoShape(
            f'{place.entry.path} is {said(place.kind)} and needs another value',
            'give it a param of its own',
        )
    if not indexed:
        return shapes[0]
    return _by_items([ref.index for _, ref in indexed if ref.index is not None], shapes[0])


def _by_items(indices: Sequence[int], item: Shape) -> ListShape:
    most = max(indices)
    lacking = next((i for i in range(most) if i not in indices), None)
    if lacking is not None:
        raise NoShape(f'item {lacking} fills nothing', 'use the items from 0 on, without a gap')
    return ListShape(item, most + 1, most + 1)


def _pose(uses: Sequence[tuple[Place, Reference]]) -> PoseShape:
    has_frame = False
    for place, ref in uses:
        if ref.index is not None or ref.factor is not None:
            raise NoShape('a pose has no items and no factor', f'write name.{PARTS[1]}')
        if ref.part == 'frame':
            fits = isinstance(place.kind, ScalarType) and place.kind.kind == 'text'
            has_frame = True
        else:
            wanted = _PART_TYPES.get(ref.part, (POSE_STAMPED,))
            fits = isinstance(place.kind, MessageType) and place.kind.name in wanted
            has_frame |= not ref.part
        if not fits:
            raise NoShape(
                f'{place.entry.path} is {said(place.kind)}, which takes no '
                f'{ref.part or "whole pose"}',
                f'use the part that it takes: {", ".join(PARTS)}',
            )
    if not has_frame:
        raise NoShape(
            'its frame fills nothing, so an agent would be misunderstood',
            'give its frame to a header, as name.frame',
        )
    return PoseShape()


def _default_problems(name: str, shape: Shape, options: ParamOptions) -> Problems:
    if options.default is None:
        return []
    try:
        # Which frames there are stands elsewhere in the file; the adapter looks when it is made.
        shape.to_ros(options.default, 'default', lambda frame: frame)
    except ParamRefused as error:
        return [Finding(('params', name, 'default'), str(error), 'correct it')]
    return []
