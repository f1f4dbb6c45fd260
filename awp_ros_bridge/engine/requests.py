"""Owns the method table: which message goes where, and who may send it when (AWP-CTL-002)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action, Cause
from awp_ros_bridge.engine.admission import Admission
from awp_ros_bridge.engine.opening import Opener
from awp_ros_bridge.engine.session_status import session_status
from awp_ros_bridge.engine.sessions import Connection, Session
from awp_ros_bridge.engine.transitions import move
from awp_ros_bridge.wire import codec
from awp_ros_bridge.wire.codec import DecodeFault, Notification, Request, Response
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.lifecycle import ActionState, SessionState
from awp_ros_bridge.wire.messages import PARAMS, parse_params

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]

PROTOCOL_VERSION = '0.1'
EARLY_CHARS = 65_536  # of a message before the session, above which its content is not kept
REFUSED_WHILE_CLOSING = frozenset(
    {
        'action.submit',
        'action.cancel',
        'obs.subscribe',
        'obs.unsubscribe',
        'session.transfer',
        'world.reset',
    }
)
STATUS_QUERY = 'session/status'
BEFORE_INITIALIZE = frozenset({'initialize', 'ping'})
WITHOUT_SESSION = frozenset(
    {'initialize', 'ping', 'world.manifest', 'session.open', 'session.resume', STATUS_QUERY}
)

Handler = Callable[[Connection, Request, Any, int], None]


class Requests:
    """Decodes what agents send, guards it, and hands it to the part that owns it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._admission = Admission(kernel)
        self._opener = Opener(kernel)
        methods: dict[str, Handler] = {
            'initialize': self._initialize,
            'ping': self._ping,
            'world.manifest': self._manifest,
            'world.reset': self._reset,
            'session.open': self._open,
            'session.resume': self._resume,
            'session.close': self._close,
            'session.transfer': self._transfer,
            'obs.subscribe': self._subscribe,
            'obs.unsubscribe': self._unsubscribe,
            'action.submit': self._submit,
            'action.cancel': self._cancel,
            'action.status': self._status,
        }
        if kernel.policy.status_query:
            methods[STATUS_QUERY] = self._session_status
        self._methods: Mapping[str, Handler] = methods

    # ------------------------------------------------------------ entry

    def text(self, conn_id: int, text: str | bytes, received_ns: int) -> None:
        """Handle one text message of a control connection."""
        conn = self._heard(conn_id)
        if conn is None:
            return
        try:
            message = codec.decode(text)
        except DecodeFault as fault:
            self._undecodable(conn, fault)
            return
        session = conn.session
        if session is not None:
            if not isinstance(message, Response):
                self._kernel.liveness.originated(session)
            self._kernel.delivery.audit(session, 'agent', 'message', _body(message))
        elif not _is_status_query(message):  # which belongs to the log of no session to come
            conn.early.append(_early(message, len(text)))
        match message:
            case Request():
                self._request(conn, message, received_ns)
            case Notification():
                self._notification(conn, message)
            case Response():
                pass  # an answer to our ping: being heard is all it means here

    def binary(self, conn_id: int, size: int) -> None:
        """Refuse a binary message on a control connection; the next text message works."""
        conn = self._heard(conn_id)
        if conn is not None:
            detail = f'a binary message of {size} bytes; the control channel carries text'
            self._kernel.delivery.refuse(conn, None, WireFault(ErrorCode.MALFORMED, detail))

    def _heard(self, conn_id: int) -> Connection | None:
        """Return a connection that is still listened to; any message keeps it (AWP-SAF-002)."""
        conn = self._kernel.connections.get(conn_id)
        if conn is None or conn.is_closing:
            return None
        if conn.session is not None:
            self._kernel.liveness.heard(conn.session)
        return conn

    def _undecodable(self, conn: Connection, fault: DecodeFault) -> None:
        """Answer what is no message, where it may be answered; only a request is agent traffic."""
        kernel = self._kernel
        if fault.is_answerable:
            kernel.delivery.refuse(conn, fault.request_id, fault)
        session = conn.session
        if session is not None:
            if fault.request_id is not None and fault.is_answerable:
                kernel.liveness.originated(session)
            body = {'undecodable': fault.code.message, 'detail': fault.detail}
            kernel.delivery.audit(session, 'agent', 'note', body)
        if fault.code is ErrorCode.INTEGER_RANGE:  # AWP-CTL-009
            goodbye = (1002, 'AWP_INTEGER_RANGE')
            if session is None:
                kernel.close_connection(conn, *goodbye)
            else:
                kernel.closer.close(session, 'protocol_error', disconnect=goodbye)

    def _request(self, conn: Connection, request: Request, received_ns: int) -> None:
        answers = received_ns if request.method == 'action.submit' else None
        try:
            handler = self._methods.get(request.method)
            if handler is None:  # AWP-CTL-002, AWP-VER-007
                detail = f'method {request.method[:80]!r} is not known to this world'
                raise WireFault(ErrorCode.METHOD_NOT_FOUND, detail)
            self._guard(conn, request.method)
            params = parse_params(request.method, request.params)
            handler(conn, request, params, received_ns)
        except WireFault as fault:
            self._kernel.access.request_refused(conn, request.method, fault)
            self._kernel.delivery.refuse(conn, request.id, fault, answers_ns=answers)

    def _guard(self, conn: Connection, method: str) -> None:
        if conn.agent is None and method not in BEFORE_INITIALIZE:
            raise WireFault(ErrorCode.INVALID_REQUEST, f'{method} before initialize')
        session = conn.session
        if session is None and method not in WITHOUT_SESSION:
            detail = f'{method} needs a session; this connection carries none'
            raise WireFault(ErrorCode.SESSION_UNKNOWN, detail)
        if session is not None and session.closing and method in REFUSED_WHILE_CLOSING:
            raise WireFault(ErrorCode.SESSION_EXPIRED, 'the session is closing')  # AWP-SES-011
        self._kernel.access.check_method(conn, method)  # AWP-PRM-001

    def _notification(self, conn: Connection, message: Notification) -> None:
        """Receiver reports are kept by the audit log (AWP-OBS-007); others are ignored."""
        if conn.session is None or message.method not in PARAMS:
            return
        try:
            parse_params(message.method, message.params)
        except WireFault as fault:
            body = {'ignored': message.method, 'detail': fault.detail}
            self._kernel.delivery.audit(conn.session, 'agent', 'note', body)

    @staticmethod
    def _session(conn: Connection) -> Session:
        if conn.session is None:
            raise WireFault(ErrorCode.SESSION_UNKNOWN, 'this connection carries no session')
        return conn.session

    # ------------------------------------------------------------ discovery

    def _initialize(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        if conn.session is not None:
            raise WireFault(ErrorCode.INVALID_REQUEST, 'initialize while a session is open')
        if PROTOCOL_VERSION not in p.protocol_versions:  # AWP-VER-002
            detail = f'this world speaks {PROTOCOL_VERSION}'
            raise WireFault(ErrorCode.VERSION_UNSUPPORTED, detail, supported=[PROTOCOL_VERSION])
        conn.agent = request.params.get('agent', {})
        conn.consumes = frozenset(p.consumes_modalities)
        conn.max_obs_rate_hz = p.max_obs_rate_hz
        self._kernel.delivery.reply(conn, request.id, self._kernel.policy.manifest)

    def _manifest(self, conn: Connection, request: Request, _p: Any, _received: int) -> None:
        self._kernel.delivery.reply(conn, request.id, self._kernel.policy.manifest)

    def _ping(self, conn: Connection, request: Request, p: Any, received_ns: int) -> None:
        """Answer with our clock; outside a session it counts from the connection (AWP-SES-012)."""
        kernel = self._kernel
        session = conn.session
        if session is not None:
            if p.last_status_seq is not None:
                kernel.delivery.acknowledge(session, p.last_status_seq)
            received = session.clock.session_ns(received_ns)
            transmit = session.clock.session_ns(kernel.now_ns)
        else:
            transmit = kernel.now_ns - conn.opened_ns
            received = max(0, received_ns - conn.opened_ns)
        result = {
            'origin_ns': p.origin_ns,
            'receive_ns': received,
            'transmit_ns': transmit,
        }
        kernel.delivery.reply(conn, request.id, result)

    # ------------------------------------------------------------ sessions

    def _open(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        if not self._kernel.is_open:
            detail = 'the world is not active'
            raise WireFault(ErrorCode.EMBODIMENT_UNAVAILABLE, detail)
        self._opener.open(conn, request.id, p)

    def _resume(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        self._opener.resume(conn, request.id, p)

    def _close(self, conn: Connection, request: Request, _p: Any, _received: int) -> None:
        session = self._session(conn)
        self._kernel.closer.close(session, 'session_closed', reply=(conn.id, request.id))

    def _transfer(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        result = self._opener.mint(self._session(conn), p.expires_in_ms)
        self._kernel.delivery.reply(conn, request.id, result)

    def _session_status(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        """Answer about any session; only the asker's own one notices, as of any message."""
        found = session_status(self._kernel.sessions.get(p.session_id), p.session_id)
        self._kernel.delivery.reply(conn, request.id, found)

    def _reset(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        session = self._session(conn)
        if 'reset' not in session.admin:  # AWP-PRM-001
            raise WireFault(ErrorCode.FORBIDDEN, 'world.reset is not granted to this session')
        states = self._kernel.policy.reset_states
        state = p.initial_state or states[0]
        if state not in states:
            detail = f'initial_state: {state!r} is not declared; declared: {", ".join(states)}'
            raise WireFault(ErrorCode.INVALID_PARAMS, detail)
        if p.seed is not None:
            raise WireFault(ErrorCode.INVALID_PARAMS, 'seed: this world does not offer seeding')
        self._kernel.closer.reset(conn, request.id, state)

    # ------------------------------------------------------------ observations

    def _subscribe(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        session = self._session(conn)
        self._kernel.channels.resubscribe(session, p.channels)
        self._granted(conn, request, session)

    def _unsubscribe(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        session = self._session(conn)
        for name in p.channels:
            self._kernel.channels.unsubscribe(session, name)
        self._granted(conn, request, session)

    def _granted(self, conn: Connection, request: Request, session: Session) -> None:
        grants = self._kernel.channels.grants(session)
        self._kernel.delivery.reply(conn, request.id, {'granted': grants})

    # ------------------------------------------------------------ actions

    def _submit(self, conn: Connection, request: Request, p: Any, received_ns: int) -> None:
        session = self._session(conn)
        action = self._admission.submit(session, request.params, p, received_ns)
        result = self._kernel.delivery.admission(action)
        if p.basis_ts_mono_ns is not None:
            basis = session.clock.session_ns(received_ns) - p.basis_ts_mono_ns
            session.telemetry.basis(basis)
        self._kernel.delivery.reply(conn, request.id, result, answers_ns=received_ns)
        if session.state is SessionState.READY:
            self._kernel.delivery.state(session, SessionState.ACTIVE, 'first_activity')

    def _known(self, session: Session, action_id: str) -> Action:
        action = session.actions.get(action_id)
        if action is None:  # AWP-LIF-010
            detail = f'action_id {action_id!r} was never admitted, or its retention is over'
            raise WireFault(ErrorCode.ACTION_UNKNOWN, detail)
        return action

    def _cancel(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        """Cancel; the transition it causes is reported in the result (AWP-LIF-005)."""
        action = self._known(self._session(conn), p.action_id)
        self._kernel.endings.end(action, Cause.CANCEL, live=False)
        if action.state is ActionState.EXECUTING:  # a transfer, which outranks us, is ending it
            move(self._kernel, action, ActionState.EXECUTING, live=False)
        result: Json = {
            'action_id': action.id,
            'state': action.state.value,
            'status_seq': action.status_seq,
            'ts_mono_ns': action.changed_ns,
        }
        if action.reason is not None:
            result['reason'] = str(action.reason)
        self._kernel.delivery.reply(conn, request.id, result)

    def _status(self, conn: Connection, request: Request, p: Any, _received: int) -> None:
        action = self._known(self._session(conn), p.action_id)
        self._kernel.delivery.reply(
            conn, request.id, self._kernel.delivery.status_pull(action)
        )


def _is_status_query(message: Request | Notification | Response) -> bool:
    return isinstance(message, Request) and message.method == STATUS_QUERY


def _early(message: Request | Notification | Response, size: int) -> Json:
    """Return what is kept of a message until a session has a log; not what would fill memory."""
    body = _body(message)
    if size <= EARLY_CHARS:
        return body
    return {**{k: body[k] for k in ('id', 'method') if k in body}, 'omitted_chars': size}


def _body(message: Request | Notification | Response) -> Json:
    match message:
        case Request():
            return {'id': message.id, 'method': message.method, 'params': message.params}
        case Notification():
            return {'method': message.method, 'params': message.params}
        case Response():
            return {'id': message.id, 'result': message.result, 'error': message.error}
