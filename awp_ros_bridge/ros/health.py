"""
Owns how well each part of the bridge's ROS side is: one diagnosis a part, ERROR until proven.

Every part is asked where it keeps what it knows; nothing is subscribed to or counted for this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from awp_ros_bridge.config import BridgeConfig, EmbodimentStateChannel, TF_CHANNEL
from awp_ros_bridge.engine.session_view import ChannelView
from awp_ros_bridge.ros.clock_watch import ClockWatch
from awp_ros_bridge.ros.diagnosis import Diagnosis, Level, ProcessReport, unproven
from awp_ros_bridge.ros.goal_desk import GoalDesk
from awp_ros_bridge.ros.guard import Guard
from awp_ros_bridge.ros.guardian_input import NAME as GUARDIAN
from awp_ros_bridge.ros.limit_watch import LimitWatch
from awp_ros_bridge.ros.observations import Observations
from awp_ros_bridge.ros.part_diagnosis import (
    channel_diagnosis,
    input_diagnosis,
    server_diagnosis,
    sessions_diagnosis,
)
from awp_ros_bridge.ros.safety_inputs import SafetyInputs
from awp_ros_bridge.ros.status import EmbodimentStatus
from awp_ros_bridge.ros.stop import StopGate

Named = Iterator[tuple[str, Diagnosis]]

_UNREAD = ChannelView(0, 0.0)


@dataclass(frozen=True, slots=True)
class Parts:
    """What is asked."""

    gate: StopGate
    guard: Guard
    inputs: SafetyInputs
    limits: LimitWatch
    status: EmbodimentStatus
    desk: GoalDesk
    observations: Observations
    clock: ClockWatch


class Health:
    """Gives a diagnosis for each part of a bridge; goals thread only."""

    def __init__(self, config: BridgeConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts

    def all(self, report: ProcessReport | None) -> Named:
        """
        Give every diagnosis with the name of its part.

        :param report: of the bridge's loop, None while there is none that counts.
        """
        yield from _process(report)
        yield from self._embodiments()
        for watched in self._parts.inputs.inputs:
            place = f'{watched.place}/' if watched.place else ''
            yield f'safety input {place}{watched.spec.label}', input_diagnosis(watched)
        yield 'guardian', self._guardian()
        for server in self._parts.desk.servers():
            yield f'{server.noun} {server.name}', server_diagnosis(server)
        yield from self._channels(report)
        yield 'clock', self._clock()

    def _embodiments(self) -> Named:
        for name in self._config.embodiments:
            found = self._parts.status.diagnosis(name)
            limits = self._parts.limits.report(name)
            values = {f'limit:{limit}': _limit(said) for limit, said in limits.items()}
            yield f'embodiment {name}', Diagnosis(
                found.level, found.message, {**found.values, **values}
            )

    def _guardian(self) -> Diagnosis:
        for name in self._config.embodiments:
            against = self._parts.gate.causes(name).get(GUARDIAN)
            if against is not None:
                return Diagnosis(Level.ERROR, against)
        return self._parts.guard.diagnosis()

    def _channels(self, report: ProcessReport | None) -> Named:
        states = self._parts.observations.states()
        readers = {} if report is None else report.channels
        for name, channel in self._config.channels.items():
            view = readers.get(name, _UNREAD)
            if isinstance(channel, EmbodimentStateChannel):
                yield f'channel {name}', _own_channel(report, view, channel.rate_hz)
            elif name in states:
                yield f'channel {name}', channel_diagnosis(states[name], view)
        view = readers.get(TF_CHANNEL, _UNREAD)
        yield f'channel {TF_CHANNEL}', channel_diagnosis(states[TF_CHANNEL], view)

    def _clock(self) -> Diagnosis:
        trouble = self._parts.clock.trouble
        if trouble is not None:
            return Diagnosis(Level.WARN, f'{trouble}; nothing that stops depends on it')
        return Diagnosis(Level.OK, 'the ROS clock runs')


def _process(report: ProcessReport | None) -> Named:
    if report is None:
        for name in ('server', 'sessions', 'audit'):
            yield name, unproven('the loop of the bridge does not answer')
        return
    yield 'server', report.server
    yield 'sessions', sessions_diagnosis(report.sessions)
    yield 'audit', report.audit


def _own_channel(report: ProcessReport | None, view: ChannelView, rate_hz: float) -> Diagnosis:
    values = {
        'source': 'embodiment_state',
        'rate_hz': f'{rate_hz:g}',
        'readers': str(view.readers),
        'granted_hz': f'{view.rate_hz:g}',
    }
    if report is None:
        found = unproven('the loop of the bridge does not answer')
        return Diagnosis(found.level, found.message, values)
    return Diagnosis(Level.OK, f'{rate_hz:g} Hz, told by the bridge itself', values)


def _limit(said: object) -> str:
    if not isinstance(said, Mapping):
        return str(said)
    state = ', violated' if said['violated'] else ''
    return f'{said["measured"]} of {said["allowed"]} allowed{state}'
