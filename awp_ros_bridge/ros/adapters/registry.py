"""
Owns which adapters there are: the bridge's own and those that other packages offer.

Another package offers one through an entry point of the group ``awp_ros_bridge.adapters``; its
name is the word in the configuration, its value a class derived from
:class:`awp_ros_bridge.ros.adapters.base.Adapter`. Nothing here needs ROS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points, EntryPoint
from typing import Any

from awp_ros_bridge.config.problems import Finding
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext
from awp_ros_bridge.ros.offers import load_offer

Json = dict[str, Any]

GROUP = 'awp_ros_bridge.adapters'

_OWN = {
    'follow_joint_trajectory': 'follow_joint_trajectory:FollowJointTrajectoryAdapter',
    'motion_primitive': 'motion_primitive:MotionPrimitiveAdapter',
    'parallel_gripper': 'parallel_gripper:ParallelGripperAdapter',
    'gripper_command': 'gripper_command:GripperCommandAdapter',
    'navigate_to_pose': 'navigate_to_pose:NavigateToPoseAdapter',
    'generic': 'generic:GenericAdapter',
    'trigger_service': 'trigger_service:TriggerServiceAdapter',
    'stop': 'stop:StopAdapter',
}


class UnknownAdapter(ValueError):
    """A word in the configuration that names no usable adapter, with what could be meant."""


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """
    What is known of an adapter without ROS: for the loader, the manifest and the documents.

    :param params_schema: params schema for the action's options.
    :param limits_checked: limits that the adapter proves before a goal is sent, by options.
    :param option_findings: what is wrong with an action's options, with paths inside them.
    :param options: what each key of the action's options does.
    """

    name: str
    kind: str
    extended: bool
    native_replace: bool
    needs_motion: bool
    checkable_limits: frozenset[str]
    ros_type: str
    params_schema: Callable[[Json], Json]
    limits_checked: Callable[[Json], frozenset[str]]
    option_findings: Callable[[Json], Sequence[Finding]]
    options: Mapping[str, str] = field(default_factory=dict)
    summary: str = ''


@dataclass(frozen=True, slots=True)
class Registry:
    """
    The adapters found at one moment.

    :param problems: what kept an offered adapter out, by its name; the others are unaffected.
    """

    adapters: Mapping[str, type[Adapter]]
    problems: Mapping[str, str]

    def find(self, name: str) -> type[Adapter]:
        """
        Return the adapter of a name.

        :raises UnknownAdapter: there is none, or it could not be loaded
        """
        if name in self.adapters:
            return self.adapters[name]
        if name in self.problems:
            raise UnknownAdapter(f'adapter {name!r} cannot be used: {self.problems[name]}')
        near = get_close_matches(name, self.adapters, n=1)
        hint = f'; did you mean {near[0]!r}?' if near else ''
        known = ', '.join(sorted(self.adapters))
        raise UnknownAdapter(f'no adapter {name!r}; there are {known}{hint}')

    def build(self, name: str, context: AdapterContext) -> Adapter:
        """
        Make the adapter of one action type of one embodiment.

        :raises UnknownAdapter: there is none, or it could not be loaded
        :raises ValueError: the action's options do not suit the adapter
        """
        return self.find(name)(context)

    def infos(self) -> dict[str, AdapterInfo]:
        """Describe every usable adapter by its name."""
        return {name: _info(name, adapter) for name, adapter in self.adapters.items()}


def discover(offers: Iterable[EntryPoint]) -> Registry:
    """Load the bridge's own adapters and the offered ones; a broken offer harms only itself."""
    adapters: dict[str, type[Adapter]] = {}
    problems: dict[str, str] = {}
    for name, target in _OWN.items():
        module, _, attribute = target.partition(':')
        adapters[name] = getattr(import_module(f'{__package__}.{module}'), attribute)
    for offer in offers:
        if offer.name in adapters:
            problems[offer.name] = f'{offer.value} offers a name that is taken; rename it'
            continue
        found = load_offer(offer, Adapter)  # type: ignore[type-abstract]
        if isinstance(found, str):
            problems[offer.name] = found
        else:
            adapters[offer.name] = found
    return Registry(adapters, problems)


@cache
def registry() -> Registry:
    """Return the adapters of this installation, found once."""
    return discover(entry_points(group=GROUP))


def infos() -> dict[str, AdapterInfo]:
    """Describe every usable adapter of this installation by its name."""
    return registry().infos()


def problems() -> dict[str, str]:
    """Return why offered adapters of this installation are not usable, by name."""
    return dict(registry().problems)


def build(name: str, context: AdapterContext) -> Adapter:
    """Make an adapter of this installation; see :meth:`Registry.build`."""
    return registry().build(name, context)


def _info(name: str, adapter: type[Adapter]) -> AdapterInfo:
    lines = (adapter.__doc__ or '').strip().splitlines()
    return AdapterInfo(
        name=name,
        kind=adapter.kind,
        extended=adapter.extended,
        native_replace=adapter.native_replace,
        needs_motion=adapter.needs_motion,
        checkable_limits=adapter.checkable_limits,
        ros_type=adapter.ros_type,
        params_schema=adapter.params_schema,
        limits_checked=adapter.limits_checked,
        option_findings=adapter.option_findings,
        options=adapter.options,
        summary=lines[0] if lines else '',
    )
