"""Owns the latency samples of one session and their window (AWP-TIM-006)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

MAX_SAMPLES = 4096


def latency_stats(samples: list[int]) -> Json:
    """Summarise nanoseconds as ``{count, p50, p95, max}``; the list must not be empty."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    return {
        'count': len(ordered),
        'p50': ordered[last // 2],
        'p95': ordered[min(last, (last * 95 + 99) // 100)],
        'max': ordered[last],
    }


@dataclass(slots=True)
class Telemetry:
    """
    Samples since the last report, each in nanoseconds on the session clock.

    A window keeps at most ``MAX_SAMPLES`` per quantity; the count then says how many were kept.
    """

    since_ns: int = 0
    frames: dict[int, list[int]] = field(default_factory=dict)
    admissions: list[int] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)

    def frame(self, channel_id: int, latency_ns: int) -> None:
        """Record ``ts_send_ns - ts_mono_ns`` of a frame that left."""
        samples = self.frames.setdefault(channel_id, [])
        if len(samples) < MAX_SAMPLES:
            samples.append(max(0, latency_ns))

    def admission(self, latency_ns: int) -> None:
        """Record receipt of a submission to transmission of its answer."""
        if len(self.admissions) < MAX_SAMPLES:
            self.admissions.append(max(0, latency_ns))

    def basis(self, latency_ns: int) -> None:
        """Record capture of the basis observation to receipt of the submission."""
        if len(self.bases) < MAX_SAMPLES:
            self.bases.append(max(0, latency_ns))

    def report(self, now_ns: int) -> Json:
        """Return the params of ``session.telemetry`` and begin the next window."""
        out: Json = {'window_ms': max(1, (now_ns - self.since_ns) // 1_000_000)}
        everything = [s for samples in self.frames.values() for s in samples]
        if everything:
            out['observation_latency_ns'] = latency_stats(everything)
            out['channels'] = {str(c): latency_stats(s) for c, s in self.frames.items() if s}
        if self.admissions:
            out['admission_latency_ns'] = latency_stats(self.admissions)
        if self.bases:
            out['observation_to_action_ns'] = latency_stats(self.bases)
        self.since_ns = now_ns
        self.frames = {}
        self.admissions = []
        self.bases = []
        return out
