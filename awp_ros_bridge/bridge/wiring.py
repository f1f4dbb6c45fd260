"""Owns the wiring: from options and configuration to a world that serves, and back to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, UTC
import logging
import os
from pathlib import Path
import threading
from typing import TYPE_CHECKING

from rclpy.exceptions import ParameterException

from awp_ros_bridge.audit import AuditLog
from awp_ros_bridge.bridge.door import names_of, tls_of, tls_problem
from awp_ros_bridge.bridge.ids import SecretIds
from awp_ros_bridge.bridge.loop import BridgeLoop
from awp_ros_bridge.bridge.report import make_report
from awp_ros_bridge.bridge.tokens import (
    load_tokens,
    TokenError,
    TokenKeeper,
    tokens_path,
    TokenWatch,
)
from awp_ros_bridge.config import BridgeConfig, directory_of, load, TokensRead
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.inputs import AuditChanged, ShutdownRequested
from awp_ros_bridge.manifest import build, declare, manifest_hash, policy
from awp_ros_bridge.process.shipped import shipped_config
from awp_ros_bridge.process.wall_time import utc_text
from awp_ros_bridge.ros.adapters.registry import registry
from awp_ros_bridge.ros.diagnosis import ProcessReport
from awp_ros_bridge.ros.encoders.registry import registry as encoders
from awp_ros_bridge.ros.goal_marks import GoalMarks, new_instance
from awp_ros_bridge.ros.side import RosSide
from awp_ros_bridge.transport.credentials import TokenGate
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.transport.server import WebSocketTransport
from awp_ros_bridge.transport.tls import TlsFault, TlsReady

if TYPE_CHECKING:
    from awp_ros_bridge.bridge.main import Options

log = logging.getLogger('awp_ros_bridge')

STREAM_PATH = '/stream'
REST_BOUND_S = 3.0  # for goals to end after a fault; the engine waits for them itself otherwise
LEFT_BOUND_S = 0.5  # for goals that were given up already
CLOSE_BOUND_S = 1.0
FLUSH_BOUND_S = 1.0
TEARDOWN_S = 2.0
WIRING_S = 10.0


class Refused(Exception):
    """The bridge does not start; the text is for the person who started it."""


def default_config() -> Path:
    """Return the shipped configuration of the simulated arm, installed or in a checkout."""
    found = shipped_config()
    if found is None:
        raise Refused('no --config given, and the shipped one is not installed')
    return found


class World:
    """
    One bridge: engine, loop, transport, audit log and ROS side.

    :param fault: what failed inside the bridge, None while nothing did.
    """

    def __init__(
        self,
        config: BridgeConfig,
        folder: Path,
        digest: str,
        options: Options,
        tls: TlsReady | None = None,
    ) -> None:
        self.config = config
        self.fault: str | None = None
        self.ended = asyncio.Event()
        self._wired = threading.Event()
        self._is_finished = False
        self._url: str | None = None
        self._options = options
        self._digest = digest
        path = tokens_path(config.server, folder, options.tokens_file)
        gate = self._tokens = self._gate(path)
        self._keeper = TokenKeeper(gate)
        self._watch = None if path is None else TokenWatch(path, self._tokens_looked_at)
        marks = GoalMarks(new_instance())
        found = registry()
        for name, problem in found.problems.items():
            log.warning('adapter %s is not usable: %s', name, problem)
        for name, problem in encoders().problems.items():
            log.warning('encoder %s is not usable: %s', name, problem)
        try:
            declarations = declare(config, found.infos())
            self.ros = RosSide(
                config,
                found,
                self._post_from_thread,
                options.ros_args,
                folder,
                self._ros_failed,
                marks,
                self._asked_for_report,
                {'config': str(options.config), 'config_sha256': digest},
            )
        except ValueError as error:
            raise Refused(str(error)) from None
        self.manifest = build(config, declarations, encoders())
        settings = policy(
            config, self.manifest, declarations, stream_url=self._stream_url, anchor=_anchor
        )
        self.engine = Engine(settings, self.ros.checker, SecretIds(marks))
        directory = options.audit_directory or Path(config.audit.directory).expanduser()
        self.audit = AuditLog(
            directory,
            max_file_bytes=config.audit.max_file_mb * 1_000_000,
            quota_bytes=config.audit.quota_mb * 1_000_000,
            redact_paths=config.audit.redact_paths,
            on_change=self._audit_changed,
        )
        self.loop = BridgeLoop(
            self.engine,
            self.ros,
            self.audit,
            on_finish=self._finished,
            on_fault=self._engine_failed,
        )
        self.transport = WebSocketTransport(
            self.loop,
            gate,
            address=config.server.host,
            port=config.server.port if options.port is None else options.port,
            limits=_limits(config),
            origins=config.server.origins,
            host_names=names_of(config.server),
            tls=None if tls is None else tls.context,
        )
        self._asyncio: asyncio.AbstractEventLoop | None = None
        self._wired.set()

    @classmethod
    def build(cls, options: Options) -> World:
        """
        Load the configuration and wire everything; nothing runs yet.

        :raises Refused: the configuration, the credentials or an adapter's options are wrong
        """
        path = options.config or default_config()
        result = load(path, registry().infos(), encoders())
        for problem in result.warnings:
            log.warning('%s', problem)
        if result.config is None:
            raise Refused('\n'.join(str(p) for p in result.errors))
        config = result.config
        if options.guardian is not None:
            config = config.model_copy(update={'guardian': options.guardian})
        folder = directory_of(path)
        try:
            tls = tls_of(config.server, folder)
        except TlsFault as fault:
            raise Refused(str(tls_problem(result, fault))) from None
        if tls is not None and tls.warning:
            log.warning('server.tls.%s', tls.warning)
        options = replace(options, config=path.expanduser().absolute())
        return cls(config, folder, result.digest, options, tls)

    def _gate(self, path: Path | None) -> TokenGate:
        try:
            return load_tokens(self.config.server, path, os.environ)
        except TokenError as error:
            raise Refused(str(error)) from None

    # ------------------------------------------------------------ life

    async def start(self, loop: asyncio.AbstractEventLoop) -> str:
        """
        Start everything and return the URL of the control endpoint.

        :raises Refused: a ROS argument is wrong, or the address cannot be bound
        """
        self._asyncio = loop
        self.loop.start(loop, self.transport)
        try:
            self.ros.start()
        except (RuntimeError, ValueError, ParameterException) as error:
            raise Refused(f'ROS does not start, look at --ros-args: {error}') from None
        try:
            url = await self.transport.start()
        except OSError as error:
            raise Refused(f'cannot listen: {error}; choose another --port') from None
        self._url = self.config.server.public_url or url
        if self._watch is not None:
            self._watch.start()
        log.info('manifest %s, configuration %s', manifest_hash(self.manifest), self._digest)
        if self.config.guardian == 'off':
            log.warning('guardian: off: nothing stops the robot if this process is killed')
        return url

    def request_end(self, why: str) -> None:
        """Ask for the end: actions end as on close, sessions close, then :attr:`ended`."""
        log.info('%s: ending', why)
        self.loop.post(ShutdownRequested(why))

    async def stop(self) -> bool:
        """Stop everything, the robot first; bounded. Tell whether nothing was left running."""
        loop = asyncio.get_running_loop()
        bound_s = LEFT_BOUND_S if self._is_finished else REST_BOUND_S
        stopping = loop.run_in_executor(None, self.ros.stop, bound_s)
        await self.transport.stop(CLOSE_BOUND_S)
        try:
            if not await asyncio.wait_for(stopping, bound_s + TEARDOWN_S):
                log.error('a goal did not end within %g s', bound_s)
        except TimeoutError:
            log.error('the ROS side did not stop within %g s', bound_s + TEARDOWN_S)
            return False
        if self._watch is not None and not await loop.run_in_executor(None, self._watch.stop):
            log.error('the file of tokens is still being read')
            return False
        self.loop.stop()  # its beats end last, they keep the dead-man timer quiet
        if not await loop.run_in_executor(None, self.audit.stop, FLUSH_BOUND_S):
            log.error('the audit log was not written to its end within %g s', FLUSH_BOUND_S)
            return False
        return self.ros.is_stopped

    # ------------------------------------------------------------ from elsewhere

    def _post_from_thread(self, fact: object) -> None:
        self.loop.post_from_thread(fact)  # type: ignore[arg-type]

    def _stream_url(self) -> str | None:
        return None if self._url is None else self._url.rstrip('/') + STREAM_PATH

    def _audit_changed(self, writable: bool, detail: str) -> None:
        log.log(
            logging.INFO if writable else logging.ERROR,
            'audit log %s %s',
            'is writable again' if writable else 'cannot be written:',
            detail,
        )
        self._wired.wait(WIRING_S)  # the writer looks at its folder before the loop exists
        self.loop.post_from_thread(AuditChanged(writable, detail))

    def _asked_for_report(self, take: Callable[[ProcessReport], None]) -> None:
        """Make a report on the loop's thread and hand it over there; called on another one."""
        if self._asyncio is not None:
            try:
                self._asyncio.call_soon_threadsafe(self._tell, take)
            except RuntimeError:  # the loop is closed: the process is ending
                log.debug('a report was asked for after the loop had closed')

    def _tell(self, take: Callable[[ProcessReport], None]) -> None:
        take(
            make_report(
                self.engine,
                self.transport,
                self.audit,
                self._url,
                self._tokens.is_usable,
                self.loop.now_ns(),
            )
        )

    def _tokens_looked_at(self, found: TokensRead) -> None:
        """Hand over what the watch saw; called on its thread."""
        if self._asyncio is not None:
            try:
                self._asyncio.call_soon_threadsafe(self._take_tokens, found)
            except RuntimeError:  # the loop is closed: the process is ending
                log.debug('a look at the tokens came after the loop had closed')

    def _take_tokens(self, found: TokensRead) -> None:
        revoked = self._keeper.take(found, self.loop.now_ns())
        if revoked is not None:
            self.loop.post(revoked)

    def _finished(self) -> None:
        self._is_finished = True
        self.ended.set()

    def _engine_failed(self, detail: str) -> None:
        """End after a fault of the engine: without beats the safety thread stops the robot."""
        self.fault = detail
        self.ended.set()

    def _ros_failed(self, detail: str) -> None:
        """End after a ROS thread failed; called on that thread, the robot is stopped already."""
        self.fault = detail
        log.critical('%s', detail)
        if self._asyncio is not None:
            self._asyncio.call_soon_threadsafe(self.request_end, detail)


def _limits(config: BridgeConfig) -> Limits:
    server = config.server
    return Limits(
        max_connections=server.max_connections,
        max_message_bytes=server.max_message_bytes,
        message_rate_hz=float(server.max_message_rate_hz),
        message_burst=2 * server.max_message_rate_hz,
        idle_timeout_s=server.idle_timeout_s,
        failed_logins_per_minute=server.max_failed_logins_per_minute,
    )


def _anchor(age_ns: int) -> str:
    """Return the wall time of a moment so many nanoseconds ago, RFC 3339 in UTC (AWP-CLK-002)."""
    then = datetime.now(UTC) - timedelta(microseconds=age_ns // 1000)
    return utc_text(then, 'microseconds')
