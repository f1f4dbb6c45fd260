"""Owns instant actions that are one call of a standard service: Trigger, SetBool, Empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Outcome
from awp_ros_bridge.ros.adapters.params import params
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]

_TYPES = ('std_srvs/srv/Trigger', 'std_srvs/srv/SetBool', 'std_srvs/srv/Empty')


class TriggerServiceAdapter(Adapter):
    """
    Call a service that takes nothing or one boolean; instant.

    It answers once, and nothing of it can be cancelled.
    """

    name: ClassVar[str] = 'trigger_service'
    kind: ClassVar[str] = 'service'
    extended: ClassVar[bool] = False
    options: ClassVar[Mapping[str, str]] = {
        'service_type': f'{", ".join(_TYPES)}; the first by default',
        'moves_robot': 'false: the service moves nothing, so that limits on motion hold whatever '
        'it does; true by default',
    }
    ros_type: ClassVar[str] = _TYPES[0]

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        # The instance knows which of the three it calls; the class names the usual one.
        self.ros_type = service_type(context.options)  # type: ignore[misc]

    @classmethod
    def limits_checked(cls, options: Json) -> frozenset[str]:
        moves = options.get('moves_robot', True)
        return frozenset() if moves else frozenset({'spatial', 'max_velocity_mps'})

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        if service_type(options) != 'std_srvs/srv/SetBool':
            return params({}, (), 'no params')
        data = {'type': 'boolean', 'description': 'what to set'}
        return params({'data': data}, ('data',), 'what to set')

    def check(self, params: Json) -> GoalRefusal | None:
        return None

    def goal(self, params: Json) -> Any:
        request = load_interface(self.ros_type).Request()
        if 'data' in params:
            request.data = params['data']
        return request

    def outcome(self, result: Any) -> Outcome:
        return Outcome(getattr(result, 'success', True), getattr(result, 'message', ''))


def service_type(options: Json) -> str:
    """
    Return the service type that the options choose.

    :raises ValueError: it is none of the three
    """
    chosen = options.get('service_type', _TYPES[0])
    if chosen not in _TYPES:
        raise ValueError(f'option service_type: {chosen!r} is none of {", ".join(_TYPES)}')
    return str(chosen)
