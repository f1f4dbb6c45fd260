"""An agent of the engine's tests: it says what the test wants and remembers what came back."""

from __future__ import annotations

from collections import Counter
import json
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts

if TYPE_CHECKING:
    from engine_world import World

Json = dict[str, Any]


class Agent:
    """One agent on one connection; replies are found by id."""

    def __init__(self, world: World, conn: int) -> None:
        self.world = world
        self.conn = conn
        self.stream: int | None = None
        self.inbox: list[Json] = []
        self.frames: list[fx.SendFrame] = []
        self.closed: tuple[int, str] | None = None
        self.stream_closed: tuple[int, str] | None = None
        self.is_stalled = False
        self.missed: Counter[tuple[int, int]] = Counter()
        self.ready: Json = {}
        self._ids = 0
        self._actions = 0

    # ------------------------------------------------------------ sending

    def call_later(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._ids += 1
        message = {'jsonrpc': '2.0', 'id': self._ids, 'method': method, 'params': params}
        self.text(json.dumps(message))
        return self._ids

    def text(self, text: str | bytes) -> None:
        """Send one text message as it is."""
        self.world.judge.sent(self.conn, text)
        self.world.tell(facts.TextReceived(self.conn, text, self.world.now_ns))

    def reply(self, request_id: int) -> Json:
        """Return the reply to a request, {} while there is none."""
        return next((m for m in self.inbox if m.get('id') == request_id and 'method' not in m), {})

    def call(self, method: str, **params: Any) -> Json:
        """Send a request and return its reply."""
        return self.reply(self.call_later(method, **params))

    def refusal(self, method: str, **params: Any) -> int:
        """Send a request that is refused and return the code."""
        reply = self.call(method, **params)
        assert 'error' in reply, reply
        return int(reply['error']['code'])

    def submit(self, kind: str = 'move', action_id: str | None = None, **fields: Any) -> Json:
        """Submit an action and let 50 ms pass."""
        reply = self.submit_now(kind, action_id, **fields)
        self.world.pass_ms(50)
        return reply

    def submit_now(self, kind: str = 'move', action_id: str | None = None, **fields: Any) -> Json:
        """Submit an action."""
        self._actions += 1
        action_id = action_id or f'c{self.conn}-a{self._actions}'
        fields.setdefault('params', {'x_m': 0.5} if kind != 'stop' else {})
        reply = self.call('action.submit', action_id=action_id, type=kind, **fields)
        reply.setdefault('action_id', action_id)
        return reply

    def ping(self) -> Json:
        """Show that the agent is there, and acknowledge everything."""
        return self.call('ping', origin_ns=1, last_status_seq=self.highest())

    def drop(self) -> None:
        """Lose the connection."""
        self.world.agents.pop(self.conn, None)
        self.world.judge.left(self.conn)
        self.world.tell(facts.ConnectionLost(self.conn, 'test'))

    def catch_up(self) -> None:
        """Receive again after a stall; the outbox gave up what waited on reliable channels."""
        self.is_stalled = False
        for (conn, channel_id), count in self.missed.items():
            if count:
                self.world.tell(facts.FramesDropped(conn, channel_id, count))
        self.missed.clear()

    def open_stream(self, token: str | None = None) -> None:
        """Open a stream connection with the session's token."""
        token = token or self.ready['session_token']
        self.stream = self.world.number()
        self.world.judge.stream_opened(self.conn)
        self.world.tell(facts.StreamOpened(self.stream, token))

    def lose_stream(self) -> None:
        """Lose the stream connection."""
        stream, self.stream = self.stream, None
        assert stream is not None
        self.world.tell(facts.StreamLost(stream))

    # ------------------------------------------------------------ what arrived

    def notes(self, method: str) -> list[Json]:
        """Return the params of the notifications of a method, in order."""
        return [m['params'] for m in self.inbox if m.get('method') == method and 'id' not in m]

    def highest(self) -> int:
        """Return the highest ``status_seq`` that arrived."""
        bodies = [m.get('params') or m.get('result') or {} for m in self.inbox]
        return max((b.get('status_seq', 0) for b in bodies), default=0)

    def states(self, action_id: str) -> list[str]:
        """Return the states an action went through, by notifications and results, in order."""
        rows: dict[int, str] = {}
        for message in self.inbox:
            body = message.get('params') or message.get('result') or {}
            if body.get('action_id') == action_id and 'status_seq' in body:
                rows[body['status_seq']] = body['state']
        out: list[str] = []
        for _, state in sorted(rows.items()):
            if not out or out[-1] != state:
                out.append(state)
        return out

    def last(self, action_id: str) -> Json:
        """Return the newest status of an action that was notified."""
        return [p for p in self.notes('action.status') if p['action_id'] == action_id][-1]

    def end(self, action_id: str) -> tuple[str, str | None]:
        """Return state and reason of the newest status of an action, {} included."""
        told = [p for p in self.notes('action.status') if p['action_id'] == action_id]
        results = [m.get('result') or {} for m in self.inbox]
        told += [r for r in results if r.get('action_id') == action_id and 'status_seq' in r]
        newest = max(told, key=lambda p: p['status_seq'])
        return newest['state'], newest.get('reason')

    def events(self) -> list[str]:
        """Return the names of the world events, in order."""
        return [p['event'] for p in self.notes('world.event')]

    def session_states(self) -> list[str]:
        """Return the session states, in order."""
        return [p['state'] for p in self.notes('session.state')]
