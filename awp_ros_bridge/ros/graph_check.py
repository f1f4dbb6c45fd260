"""Owns the comparison of what a configuration needs with the graph that runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, qos_check_compatible, QoSCompatibility, QoSProfile

from awp_ros_bridge.config.problems import Finding, Severity
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface
from awp_ros_bridge.ros.names import action_part
from awp_ros_bridge.ros.needs import Kind, Need

SEND_GOAL = '_SendGoal'
STATIC = '/tf_static'
_ZEROS = QoSProfile(depth=1)  # reliable and volatile, as zeros are sent


def compare(node: Node, needs: Iterable[Need]) -> list[Finding]:
    """
    Return what is missing or of another kind, as the graph is now.

    :param node: resolves names, with the namespace and the remappings of the bridge.
    """
    servers = _servers(node)
    found: list[Finding] = []
    for need in needs:
        missing = _type_here(need)
        if missing is not None:
            found.append(missing)
        elif need.kind in (Kind.PUBLISHER, Kind.LATCHED):
            found += _publisher(node, need)
        elif need.kind is Kind.LISTENER:
            found += _listener(node, need)
        else:
            found += _server(node, servers, need)
    return found


def _type_here(need: Need) -> Finding | None:
    if need.type is None:
        return None
    try:
        load_interface(need.type)
    except InterfaceMissing as error:
        return Finding(need.path, f'{need.use}: {error}', 'the bridge needs it too')
    return None


def _publisher(node: Node, need: Need) -> Iterator[Finding]:
    topic = node.resolve_topic_name(need.name)
    offers = node.get_publishers_info_by_topic(topic)
    if need.name == '/tf':  # frames that never move are told on the other one alone
        offers = [*offers, *node.get_publishers_info_by_topic(node.resolve_topic_name(STATIC))]
    if not offers:
        yield _absent(need, f'nobody publishes {topic}')
        return
    fitting = [offer for offer in offers if need.type in (None, offer.topic_type)]
    if not fitting:
        yield _other_type(need, topic, {offer.topic_type for offer in offers})
        return
    volatile = [o for o in fitting if o.qos_profile.durability is DurabilityPolicy.VOLATILE]
    if need.kind is Kind.LATCHED and volatile:
        who = ', '.join(sorted(f'{o.node_namespace.rstrip("/")}/{o.node_name}' for o in volatile))
        yield Finding(
            need.path,
            f'{need.use}: {who} publishes {topic} volatile, so what it said before the bridge '
            f'starts is not heard',
            'let it publish transient local, or repeat it',
            Severity.WARNING,
        )


def _listener(node: Node, need: Need) -> Iterator[Finding]:
    topic = node.resolve_topic_name(need.name)
    listeners = node.get_subscriptions_info_by_topic(topic)
    if not listeners:
        yield _absent(need, f'nobody listens on {topic}')
        return
    fitting = [each for each in listeners if each.topic_type == need.type]
    if not fitting:
        yield _other_type(need, topic, {each.topic_type for each in listeners})
        return
    reasons = [_why_deaf(each.qos_profile) for each in fitting]
    if all(reasons):
        yield Finding(
            need.path,
            f'{need.use}: who listens on {topic} does not hear what is published reliable and '
            f'volatile: {reasons[0]}',
            'let it ask for volatile samples',
        )


def _why_deaf(wanted: Any) -> str:
    verdict, reason = qos_check_compatible(_ZEROS, wanted)
    return reason if verdict is QoSCompatibility.ERROR else ''


def _server(node: Node, servers: dict[str, set[str]], need: Need) -> Iterator[Finding]:
    ending = ''
    if need.kind is Kind.ACTION:
        name, ending = action_part(node, need.name, 'send_goal'), SEND_GOAL
    else:
        name = node.resolve_service_name(need.name)
    types = {kind.removesuffix(ending) for kind in servers.get(name, ())}
    shown = name.removesuffix('/_action/send_goal')
    if not types:
        yield _absent(need, f'there is no {need.kind.value} {shown}')
    elif need.type is not None and need.type not in types:
        yield _other_type(need, shown, types)


def _servers(node: Node) -> dict[str, set[str]]:
    """Return the types of every service that a node really serves; clients do not count."""
    found: dict[str, set[str]] = {}
    for name, namespace in node.get_node_names_and_namespaces():
        try:
            services = node.get_service_names_and_types_by_node(name, namespace)
        except Exception:  # noqa: BLE001 a node that has just gone is none to ask
            continue
        for service, types in services:
            found.setdefault(service, set()).update(types)
    return found


def _absent(need: Need, what: str) -> Finding:
    todo = 'start it, or check the name, the namespace and the remappings'
    return Finding(need.path, f'{need.use}: {what}', todo)


def _other_type(need: Need, name: str, types: set[str]) -> Finding:
    found = ', '.join(sorted(types))
    what = f'{need.use}: {name} is of type {found}, not {need.type}'
    return Finding(need.path, what, 'write that type, or name another one')
