"""Owns the ordered checks between a submission and an action (AWP-ACT, AWP-ENV)."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from awp_ros_bridge.engine.actions import Action
from awp_ros_bridge.engine.embodiments import Embodiment
from awp_ros_bridge.engine.params_check import compile_schema, narrow
from awp_ros_bridge.engine.params_faults import describe
from awp_ros_bridge.engine.policy import ActionPolicy, RefusalKind
from awp_ros_bridge.engine.sessions import Session
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.messages import ActionSubmitParams, same_content, SUBMIT_FIELDS

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]

_REFUSALS = {
    RefusalKind.PARAMS: (ErrorCode.PARAMS_INVALID, False),
    RefusalKind.ENVELOPE: (ErrorCode.ENVELOPE_EXCEEDED, False),
    RefusalKind.UNREADY: (ErrorCode.EMBODIMENT_UNAVAILABLE, True),
}


class Admission:
    """Admits submissions or says why not; a refused one leaves no trace (AWP-ACT-010)."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._checks = {
            t: compile_schema(p.params_schema) for t, p in kernel.policy.actions.items()
        }

    def submit(
        self, session: Session, raw: Json, params: ActionSubmitParams, received_ns: int
    ) -> Action:
        """
        Return the action: a new one, or the known one of an identical resubmission.

        :raises WireFault: the submission is refused; nothing has changed.
        """
        content = {k: raw[k] for k in SUBMIT_FIELDS if k in raw}
        known = session.actions.get(params.action_id)
        if known is not None:  # AWP-ACT-001
            if same_content(known.content, content):
                return known
            raise WireFault(
                ErrorCode.ACTION_ID_CONFLICT,
                f'action_id {params.action_id!r} was admitted with other content; use a new one',
            )
        self._prune(session)
        embodiment = self._embodiment(session, params)
        policy = self._granted(session, embodiment, params.type)
        self._check_params(policy, params.params)
        preempt = self._policy_of(policy, params.preempt)
        action = Action(
            session, params.action_id, policy, embodiment.id, content, received_ns, preempt
        )
        self._check_intent(action)
        self._check_ready(embodiment, policy)
        self._check_rate(embodiment)
        self._check_limits(action)
        self._kernel.execution.place(action)
        embodiment.last_admission_ns = self._kernel.now_ns
        self._arm_deadline(action, params.deadline_ms)
        return action

    # ------------------------------------------------------------ who and what

    def _embodiment(self, session: Session, params: ActionSubmitParams) -> Embodiment:
        asked = params.embodiment_id
        if not session.embodiments:  # AWP-EMB-004
            raise WireFault(ErrorCode.FORBIDDEN, 'this session observes; it holds no embodiment')
        if asked is None:
            if session.multi_bind:  # AWP-EMB-005
                raise WireFault(
                    ErrorCode.INVALID_PARAMS,
                    'embodiment_id: required, this session holds '
                    f'{", ".join(session.embodiments)}',
                )
            asked = session.embodiments[0]
        if asked not in session.embodiments:  # AWP-ACT-003
            held = ', '.join(session.embodiments)
            raise WireFault(
                ErrorCode.FORBIDDEN, f'embodiment {asked!r} is not held; this session holds {held}'
            )
        return self._kernel.embodiments[asked]

    def _granted(self, session: Session, embodiment: Embodiment, name: str) -> ActionPolicy:
        if session.is_expired:  # AWP-PRM-003
            raise WireFault(ErrorCode.FORBIDDEN, 'the grants of this session expired')
        if name not in session.granted_actions or name not in embodiment.policy.actions:
            granted = ', '.join(sorted(session.granted_actions & embodiment.policy.actions))
            detail = f'action type {name!r} is not granted on {embodiment.id}; granted: {granted}'
            raise WireFault(ErrorCode.FORBIDDEN, detail)
        return self._kernel.policy.actions[name]

    def _check_params(self, policy: ActionPolicy, params: Json) -> None:
        """Refuse params that fail the type's schema, by path (AWP-ACT-002)."""
        check = self._checks[policy.type]
        if check is not None and check(params):
            return
        path: list[str | int] = []
        schema, value = policy.params_schema, params
        if check is not None:
            path, schema, value = narrow(schema, params)
        error = best_match(Draft202012Validator(schema).iter_errors(value))
        if error is not None:
            error.path.extendleft(reversed(path))
            raise WireFault(ErrorCode.PARAMS_INVALID, describe(error))
        if check is not None:
            raise WireFault(ErrorCode.PARAMS_INVALID, 'params do not fit the schema of the type')

    @staticmethod
    def _policy_of(policy: ActionPolicy, asked: str | None) -> str:
        if asked is None:
            return policy.preemption[0]  # AWP-PRE-001
        if asked not in policy.preemption:  # AWP-ACT-005
            declared = ', '.join(policy.preemption)
            detail = f'preempt: {asked!r} is not declared by {policy.type}; declared: {declared}'
            raise WireFault(ErrorCode.PARAMS_INVALID, detail)
        return asked

    # ------------------------------------------------------------ may it, now

    def _check_intent(self, action: Action) -> None:
        """Refuse intents that rest on old observations or came too late (AWP-SAF-013)."""
        policy = self._kernel.policy
        received = action.session.clock.session_ns(action.received_ns)
        basis, until = action.basis_ns, action.valid_until_ns
        if basis is None and policy.require_basis:  # AWP-ROB-005
            raise WireFault(ErrorCode.STALE_INTENT, 'basis_ts_mono_ns: required by this world')
        if basis is not None:
            age = received - basis
            if age < 0:
                detail = f'basis_ts_mono_ns lies {-age} ns in the future; copy it from a frame'
                raise WireFault(ErrorCode.STALE_INTENT, detail)
            limit = policy.max_basis_age_ns
            if limit is not None and age > limit:
                detail = (
                    f'basis_ts_mono_ns is {age // 1_000_000} ms old, max_basis_age_ms is '
                    f'{limit // 1_000_000}; decide again on a newer observation'
                )
                raise WireFault(ErrorCode.STALE_INTENT, detail)
        if until is not None and until < received:
            detail = f'valid_until_ns passed {(received - until) // 1_000_000} ms ago'
            raise WireFault(ErrorCode.STALE_INTENT, detail)

    def _check_ready(self, embodiment: Embodiment, policy: ActionPolicy) -> None:
        unavailable = ErrorCode.EMBODIMENT_UNAVAILABLE
        if embodiment.e_stop_active:  # AWP-EVT-002
            stop = embodiment.stopped_by()
            why = f'{stop.meaning}: {stop.input_name}' if stop else 'goals are still active'
            raise WireFault(ErrorCode.ESTOP_ACTIVE, f'{embodiment.id} is stopped: {why}')
        blocked = embodiment.blocked_by()
        if blocked is not None and policy.needs_motion:
            detail = f'{blocked.meaning}: {blocked.input_name}: {blocked.detail}'
            raise WireFault(unavailable, f'{embodiment.id} must not move: {detail}')
        if embodiment.rest_owed is not None and policy.needs_motion:
            raise WireFault(
                unavailable,
                f'{embodiment.id} has not been measured at rest since: {embodiment.rest_owed}',
            )
        missing = embodiment.missing.get(policy.type)
        if missing is not None:
            raise WireFault(unavailable, f'{policy.type} cannot run: {missing}')
        if self._kernel.audit_problem is not None and self._kernel.policy.audit_required:
            detail = f'the audit log cannot be written: {self._kernel.audit_problem}'
            raise WireFault(unavailable, detail)
        if self._kernel.closer.is_resetting:
            raise WireFault(unavailable, 'the world is being reset')
        session = embodiment.session
        if session is not None and session.is_handing_over(embodiment.id):
            raise WireFault(unavailable, f'{embodiment.id} is changing hands')

    def _check_rate(self, embodiment: Embodiment) -> None:
        """Refuse submissions above ``max_action_rate_hz`` (AWP-ENV-004)."""
        rate, last = embodiment.policy.max_action_rate_hz, embodiment.last_admission_ns
        if rate is None or last is None:
            return
        wait = last + int(1e9 / rate) - self._kernel.now_ns
        if wait > 0:
            raise WireFault(
                ErrorCode.ENVELOPE_EXCEEDED,
                f'max_action_rate_hz of {embodiment.id} is {rate:g}',
                retryable=True,
                retry_after_ms=-(-wait // 1_000_000),
            )

    def _check_limits(self, action: Action) -> None:
        """Refuse params that leave the declared envelope (AWP-ENV-001, AWP-ENV-002)."""
        refusal = self._kernel.checker.check(action.embodiment, action.policy.type, action.params)
        if refusal is not None:
            code, retryable = _REFUSALS[refusal.kind]
            raise WireFault(code, refusal.detail, retryable=retryable)

    # ------------------------------------------------------------ afterwards

    def _arm_deadline(self, action: Action, deadline_ms: int | None) -> None:
        """Bound the action by its own deadline and its type's (AWP-ACT-004, AWP-ACT-008)."""
        bounds = [b for b in (action.policy.max_duration_ns,) if b is not None]
        if deadline_ms is not None:
            bounds.append(deadline_ms * 1_000_000)
        if bounds:
            limit = min(bounds)
            self._kernel.deadlines.set(
                ('deadline', action),
                action.received_ns + limit,
                lambda: self._kernel.closer.deadline(action, limit),
            )

    def _prune(self, session: Session) -> None:
        """Forget actions whose retention is over (AWP-ACT-006)."""
        limit = self._kernel.now_ns - self._kernel.policy.reconnect_window_ns
        while session.ended and (session.ended[0].ended_at_ns or 0) < limit:
            old = session.ended.popleft()
            session.actions.pop(old.id, None)
            if old.goal is not None and old.goal.ended is not None:
                old.goal = None  # both name each other: only a full collection would free them
