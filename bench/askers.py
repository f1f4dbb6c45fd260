"""Owns who asks where a session stands: ten connections at a pace, or one after each answer."""

from __future__ import annotations

import asyncio
from collections import deque
import time
from typing import Any

from bench.raw_socket import RawSocket, request
from bench.websocket_words import frame, NO_MASK
from bench.worker import serve, tell, told

Json = dict[str, Any]

_TICK_S = 0.002
_MOST_DUE = 50  # answers that a connection waits for; then it leaves questions out
_LAST_S = 5.0  # for answers that are still due when the asking ends
_ANSWER_S = 5.0
_ALIKE = 12  # characters; a session may be idle or running


class Asker(RawSocket):
    """
    One connection that asks.

    :ivar asked: questions so far.
    :ivar took_ns: from each question to its answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.took_ns: list[int] = []
        self._sent_ns: deque[int] = deque()
        self._question = b''
        self._answered = asyncio.Event()

    async def begin(self, url: str, token: str, session_id: str, floor: bool) -> bytes:
        """
        Connect, initialize, ask once, and return the answer.

        :param floor: it is no bridge but bench/echo.py, which is told the answer first.
        """
        await self.dial(url, token)
        self._question = request('session/status', {'sessionId': session_id})
        if floor:
            await self.call(frame(_ANSWER))
        else:
            await self.hello()
        answer = await self.call(self._question)
        if b'"active"' not in answer:
            raise RuntimeError(f'no active session: {answer[:200]!r}')
        self.count()
        return answer

    def ask(self) -> None:
        """Ask once more, unless too many answers are due."""
        if len(self._sent_ns) >= _MOST_DUE:
            return
        self.asked += 1
        self._sent_ns.append(time.monotonic_ns())
        self.write(self._question)

    async def ask_and_wait(self) -> None:
        """Ask once and wait for the answer."""
        self._answered.clear()
        self.ask()
        async with asyncio.timeout(_ANSWER_S):
            await self._answered.wait()

    async def is_still_active(self) -> None:
        """
        Look at what an answer says.

        :raises RuntimeError: the session was gone before the last question
        """
        self.keep()
        await self.call(self._question, b'"active"')

    @property
    def is_waiting(self) -> bool:
        """Tell whether an answer is due."""
        return bool(self._sent_ns)

    def came(self) -> None:
        self.took_ns.append(time.monotonic_ns() - self._sent_ns.popleft())
        self._answered.set()


_ANSWER = (
    b'{"jsonrpc":"2.0","id":1,"result":{"status":"active","state":{"state":"running"},'
    b'"_meta":{"awp":{"session_state":"active","closing":false}}}}'
)


async def _storm(
    url: str,
    token: str,
    session_id: str,
    connections: int,
    rate_hz: float,
    seconds: float,
    floor: bool,
) -> Json:
    askers = [Asker() for _ in range(connections)]
    try:
        answers = await asyncio.gather(*(a.begin(url, token, session_id, floor) for a in askers))
        expected = len(frame(_ANSWER)) - len(NO_MASK)
        if any(abs(len(answer) - expected) > _ALIKE for answer in answers):
            raise RuntimeError(f'the floor has an answer of another length than {answers[0]!r}')
        tell('ready')
        began_ns = time.monotonic_ns()
        ending = asyncio.create_task(told())
        asked = await _pace(askers, rate_hz, seconds, ending)
        ended_ns = time.monotonic_ns()
        took = [t for a in askers for t in a.took_ns]  # what came while it was asked
        await _drain(askers)
        await ending
    finally:
        for asker in askers:
            asker.end()
    return {
        'asked_hz': asked * 1e9 / (ended_ns - began_ns),
        'answered_hz': len(took) * 1e9 / (ended_ns - began_ns),
        'took_us': [t // 1000 for t in took],
        'began_ns': began_ns,
        'ended_ns': ended_ns,
    }


async def _drain(askers: list[Asker]) -> None:
    """Wait for the answers that are due."""
    for _ in range(round(_LAST_S / _TICK_S)):
        lost = [a.loss for a in askers if a.loss]
        if lost:
            raise RuntimeError(f'a connection was lost: {lost[0]}')
        if not any(a.is_waiting for a in askers):
            return
        await asyncio.sleep(_TICK_S)
    due = sum(a.is_waiting for a in askers)
    raise RuntimeError(f'{due} connections had no answer {_LAST_S:g} s after the last question')


async def _pace(
    askers: list[Asker], rate_hz: float, seconds: float, ending: asyncio.Task[None]
) -> int:
    """
    Ask in turn at the rate until told to end, or until the time is over.

    What a late wake-up missed is asked at once, up to a tenth of a second.
    """
    began_s = time.monotonic()
    asked = 0
    while not ending.done() and (passed_s := time.monotonic() - began_s) < seconds:
        due = int(passed_s * rate_hz)
        asked = max(asked, due - int(0.1 * rate_hz))
        while asked < due:
            askers[asked % len(askers)].ask()
            asked += 1
        await asyncio.sleep(_TICK_S)
    return sum(a.asked for a in askers)


async def _questions(
    url: str, token: str, session_id: str, count: int, pause_s: float
) -> list[int]:
    asker = Asker()
    try:
        await asker.begin(url, token, session_id, floor=False)
        for _ in range(count):
            await asker.ask_and_wait()
            await asyncio.sleep(pause_s)
        await asker.is_still_active()
    finally:
        asker.end()
    return [t // 1000 for t in asker.took_ns]


def storm(
    url: str,
    token: str,
    session_id: str,
    connections: int,
    rate_hz: float,
    seconds: float,
    floor: bool = False,
) -> Json:
    """
    Ask about a session at a rate until told to end.

    :param seconds: the longest that it asks; then it waits to be told.
    :return: the rates reached, and the time of each answer in us.
    """
    return asyncio.run(
        _storm(url, token, session_id, connections, rate_hz, seconds, floor)
    )


def questions(url: str, token: str, session_id: str, count: int, pause_s: float) -> list[int]:
    """Ask about a session, one question after the other; return what each took in us."""
    return asyncio.run(_questions(url, token, session_id, count, pause_s))


def main() -> None:
    """Run until the bench closes the pipe."""
    serve({'storm': storm, 'questions': questions})


if __name__ == '__main__':
    main()
