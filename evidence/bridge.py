"""
Owns the bridge of the evidence: the real process, and two signals that it does not have.

SIGUSR1 blocks the one loop that owns the engine, for as long as a stall of the evidence lasts; the
threads of ROS go on. When its last beat was is written to a file. SIGUSR2 writes what the bridge
holds to the same file.
"""

from __future__ import annotations

import asyncio
from collections import Counter
import gc
import json
from pathlib import Path
import signal
import sys
import time
import types
from typing import Any

from awp_ros_bridge.bridge import main as bridge_main
from awp_ros_bridge.bridge import wiring
from awp_ros_bridge.ros.side import RosSide

STALL_S = 0.6


def _kind(thing: object) -> str:
    kind = type(thing)
    if kind is types.FunctionType:
        return f'function {thing.__module__}.{thing.__qualname__}'
    return f'{kind.__module__}.{kind.__qualname__}'


class Notes:
    """
    What the file says.

    :ivar world: the running bridge.
    """

    def __init__(self, path: Path) -> None:
        self.world: wiring.World | None = None
        self._path = path
        self._beat_ns = 0

    def beat(self, now_ns: int) -> None:
        """Keep when the loop beat."""
        self._beat_ns = now_ns

    def stall(self) -> None:
        """Block the calling thread, the loop's."""
        self._write({'last_beat_ns': self._beat_ns})
        time.sleep(STALL_S)

    def held(self) -> None:
        """Tell how much is kept on account of goals, and how many objects live."""
        assert self.world is not None
        gateway, kernel = self.world.ros.gateway, self.world.engine.kernel
        self._write({
            'held': gateway.health()['held'],
            'goals': len(gateway.goals),
            'cancels': sum(c.outstanding for c in gateway._stopping._cancellers.values()),
            'engine_goals': len(kernel.goals),
            'actions': sum(len(s.actions) for s in kernel.sessions.values()),
            'replay': sum(len(s.log) for s in kernel.sessions.values()),
            'types': Counter(_kind(each) for each in gc.get_objects()),
        })  # fmt: skip

    def _write(self, body: dict[str, Any]) -> None:
        draft = self._path.with_suffix('.draft')
        draft.write_text(json.dumps(body), encoding='ascii')
        draft.replace(self._path)


def _watched(notes: Notes) -> None:
    beat, build, serve = RosSide.beat, wiring.World.build, bridge_main._serve

    def noted_beat(side: RosSide, now_ns: int, /) -> None:
        notes.beat(now_ns)
        beat(side, now_ns)

    def noted_build(options: bridge_main.Options) -> wiring.World:
        notes.world = build(options)
        return notes.world

    async def noted_serve(*arguments: Any) -> int:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, notes.stall)
        loop.add_signal_handler(signal.SIGUSR2, notes.held)
        return await serve(*arguments)

    RosSide.beat = noted_beat  # type: ignore[method-assign]
    wiring.World.build = noted_build  # type: ignore[method-assign,assignment]
    bridge_main._serve = noted_serve


def main() -> int:
    """Run the bridge; the first argument names the file for the notes."""
    _watched(Notes(Path(sys.argv[1])))
    return bridge_main.main(sys.argv[2:])


if __name__ == '__main__':
    sys.exit(main())
