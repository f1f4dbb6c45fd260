"""Owns what an embodiment's state is told as: its three values, its inputs, what is pending."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from awp_ros_bridge.engine.embodiments import Embodiment
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]


def account(kernel: Kernel, embodiment: Embodiment) -> Json:
    """
    Return the account that agents see, in event details and in the result of ``session.resume``.

    :return: the three values, each input that is engaged, whether the watchdog of the holder has
        tripped, the goals whose end is not known, why rest is owed.
    """
    session = embodiment.session
    goals = [g.action for g in kernel.goals.values() if g.action.embodiment == embodiment.id]
    return {
        'motion_permitted': embodiment.permits_motion,
        'in_safe_state': embodiment.in_safe_state,
        'at_rest': embodiment.at_rest,
        'inputs': [
            {'input': s.input_name, 'meaning': s.meaning.value, 'detail': s.detail}
            for s in embodiment.stops.values()
        ],
        'watchdog_tripped': session is not None and session.watchdog_tripped,
        'active_goals': [
            {'action_type': a.policy.type, 'server': a.policy.server} for a in goals
        ],
        'rest_owed': embodiment.rest_owed,
    }


def reasons(kernel: Kernel, embodiment: Embodiment) -> tuple[tuple[str, str], ...]:
    """Return what the engine itself has against motion: cause and text, for ROS."""
    return tuple(_reasons(kernel, embodiment))


def _reasons(kernel: Kernel, embodiment: Embodiment) -> Iterator[tuple[str, str]]:
    session = embodiment.session
    if session is not None and session.watchdog_tripped:
        limit_ms = kernel.policy.watchdog_ns // 1_000_000
        yield 'watchdog', f'the agent sent no message for {limit_ms} ms'
    if embodiment.e_stop_active and embodiment.stopped_by() is None:
        yield 'e_stop', 'the inputs are clear, goals or stop steps are still active'
    if embodiment.rest_owed is not None:
        yield 'rest', f'not measured at rest since: {embodiment.rest_owed}'
    for action_type, detail in embodiment.missing.items():
        yield f'missing:{action_type}', detail
    if kernel.audit_problem is not None and kernel.policy.audit_required:
        yield 'audit', f'the audit log cannot be written: {kernel.audit_problem}'
