"""Owns the nodes: the lifecycle node that the world sees, and helpers that follow its names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import logging
from typing import Any

from rclpy.context import Context
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter

from awp_ros_bridge.ros.parameters import declare

RCLError = rclpy_implementation.RCLError

_LOG = logging.getLogger(__name__)

NAME = 'awp_ros_bridge'


class BridgeNode(LifecycleNode):
    """
    The one node that takes the global arguments: lifecycle, parameters, goals.

    Transitions block the executor, so they only tell; the stop that follows is reported later.

    :param on_active: told True on activation, False when the active state is left.
    :param shown: values of read-only parameters, see :mod:`awp_ros_bridge.ros.parameters`.
    """

    def __init__(
        self,
        context: Context,
        on_active: Callable[[bool], None],
        shown: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(NAME, context=context)
        self._on_active = on_active
        declare(self, shown or {})

    def _LifecycleNodeMixin__change_state(self, transition_id: int) -> TransitionCallbackReturn:
        """
        Refuse a transition that the state does not have.

        Overrides a private method: in some versions of rclpy it raises, out of a service of the
        node and through the executor, so that anybody's wrong call would end the bridge.
        """
        try:
            answer: TransitionCallbackReturn = super()._LifecycleNodeMixin__change_state(  # type: ignore[misc]
                transition_id
            )
        except RCLError as error:
            _LOG.warning('transition %d is refused: %s', transition_id, error)
            return TransitionCallbackReturn.ERROR
        return answer

    @property
    def autostart(self) -> bool:
        """Whether the node activates itself at start."""
        return bool(self.get_parameter('autostart').value)

    def destroy_node(self) -> None:
        """Withdraw the lifecycle services too, which rclpy leaves to the garbage collector."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the gate; goals are welcome."""
        self._on_active(True)
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Command the stop and return; rest is reported later."""
        self._on_active(False)
        return super().on_deactivate(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Command the stop, from whatever state."""
        self._on_active(False)
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Command the stop; the node can be configured again."""
        self._on_active(False)
        return super().on_error(state)


def helper_node(main: Node, suffix: str, ros_args: Sequence[str]) -> Node:
    """
    Make a node that resolves names exactly as the main node does.

    It takes no global arguments: ``__node:=x`` would give both nodes one name.
    """
    remaps = list(remap_rules(ros_args, {NAME, main.get_name()}))
    overrides: list[Parameter[Any]] = [Parameter('start_type_description_service', value=False)]
    if main.has_parameter('use_sim_time'):
        overrides.append(main.get_parameter('use_sim_time'))
    return Node(
        f'{main.get_name()}_{suffix}',
        context=main.context,
        namespace=main.get_namespace(),
        use_global_arguments=False,
        cli_args=['--ros-args', *(part for rule in remaps for part in ('-r', rule))],
        start_parameter_services=False,
        enable_rosout=False,
        parameter_overrides=overrides,
    )


def remap_rules(arguments: Sequence[str], main_names: set[str]) -> Iterator[str]:
    """Yield the remapping rules of topics and services that the main node follows."""
    inside = False
    words = iter(arguments)
    for word in words:
        if word == '--ros-args':
            inside = True
        elif word == '--':
            inside = False
        elif inside and word in {'-r', '--remap'}:
            rule = _rule(next(words, ''), main_names)
            if rule:
                yield rule


def _rule(rule: str, main_names: set[str]) -> str:
    source, found, target = rule.partition(':=')
    node, colon, name = source.partition(':')
    if colon and node not in {'rostopic', 'rosservice'}:
        if node not in main_names:
            return ''
        source = name
    if not found or source in {'__node', '__name', '__ns'}:
        return ''
    return f'{source}:={target}'
