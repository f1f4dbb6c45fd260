"""Owns the bridge's main function in the test's own process, and a visitor on another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import gc
import json
import os
from pathlib import Path
import secrets
import signal
import sys
import threading

from agent import Agent
from bridge_cell import may_move, open_when_free, patient_config, RobotTap, set_moving
from processes import SIM_ARM
import pytest
import secrets_written

from awp_ros_bridge.bridge import main as bridge_main
from awp_ros_bridge.bridge import wiring

TOKEN = secrets.token_urlsafe(24)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_S = 4.0

Visit = Callable[[str], None]


class Host:
    """
    Runs the main function, and a visitor on another thread once it serves.

    :param guardian: off, or required where a test starts one.
    :ivar world: what the main function built.
    :ivar left: the code that :func:`os._exit` was called with.
    """

    def __init__(self, folder: Path, guardian: str = 'off') -> None:
        self.world: wiring.World | None = None
        self.left: int | None = None
        self._ready = folder / 'ready.json'
        # A guardian guards who has its configuration, and its lease is what is tested then.
        config = patient_config(folder) if guardian == 'off' else SIM_ARM
        self._arguments = ['--config', str(config), '--port', '0', '--guardian', guardian]
        self._arguments += ['--audit-directory', str(folder / 'audit')]
        self._arguments += ['--ready-file', str(self._ready)]
        self._visitor_error: BaseException | None = None
        self._is_over = threading.Event()

    def run(self, visit: Visit, *more: str) -> int:
        """Run until the visitor ended the bridge, or ask it to end after the visit."""
        thread = threading.Thread(target=self._visit, args=(visit,), daemon=True)
        thread.start()
        try:
            code = bridge_main.main([*self._arguments, *more])
        finally:
            self._is_over.set()
        thread.join(10.0)
        if self._visitor_error is not None:
            raise self._visitor_error
        return code

    def _visit(self, visit: Visit) -> None:
        try:
            while not self._ready.exists():
                if self._is_over.wait(0.01):
                    return
            visit(json.loads(self._ready.read_text(encoding='utf-8'))['url'])
        except BaseException as error:  # noqa: BLE001 the test shall see it
            self._visitor_error = error
        finally:
            self._end_if_running()

    def _end_if_running(self) -> None:
        if not self._is_over.is_set() and self.world is not None and not self.world.fault:
            os.kill(os.getpid(), signal.SIGTERM)

    def leave(self, code: int) -> None:
        """Stand in for :func:`os._exit`."""
        self.left = code


@contextmanager
def hosted(
    folder: Path, patch: pytest.MonkeyPatch, guardian: str = 'off'
) -> Iterator[Host]:
    """Give a host, and put everything back that the main function changes in its process."""
    before = {number: signal.getsignal(number) for number in ENDING}
    interval_s = sys.getswitchinterval()
    made = Host(folder, guardian)
    build = wiring.World.build

    def remember(options: bridge_main.Options) -> wiring.World:
        made.world = build(options)
        return made.world

    secrets_written.note(TOKEN)
    secrets_written.watch(folder / 'audit')
    patch.setenv('AWP_BRIDGE_TOKEN', TOKEN)
    gc.unfreeze()  # what is frozen is then what the bridge froze
    patch.setattr(wiring.World, 'build', remember)
    patch.setattr(os, '_exit', made.leave)
    try:
        yield made
    finally:
        sys.setswitchinterval(interval_s)
        gc.unfreeze()
        for number, handler in before.items():
            signal.signal(number, handler)


def no_visit(url: str) -> None:
    raise AssertionError(f'it serves {url}')


async def holding(url: str) -> Agent:
    """Return an agent that may move the arm."""
    agent = await Agent.connect(url, TOKEN)
    await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
    agent.beat(0.2)
    await may_move(agent)
    return agent


async def moving(url: str, tap: RobotTap) -> Agent:
    """Return an agent whose action moves the arm at some speed."""
    agent = await holding(url)
    await set_moving(agent, tap, at_speed=True)
    return agent
