"""The example of docs/fleet.md: two robots, two bridges, a proxy and the router before them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
import secrets
import shutil
import socket
import sys
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    AWAY_M,
    completed,
    HOME_M,
    may_move,
    open_when_free,
    patient_config,
    under_way,
)
from patience import run, WAIT_S
from processes import BridgeProcess, REPOSITORY, start_sim_robot, StartedProcess
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

Json = dict[str, Any]

HAPROXY = shutil.which('haproxy') or shutil.which('haproxy', path='/usr/sbin:/usr/local/sbin')
EXAMPLE = REPOSITORY / 'examples' / 'fleet'
CELLS = ('cell_a', 'cell_b')
GATEWAY_GONE = {1006, 1014}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        HAPROXY is None, reason='haproxy is not installed: apt-get install haproxy'
    ),
]


def free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        socks = [held.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.bind(('127.0.0.1', 0))
        return [sock.getsockname()[1] for sock in socks]


@dataclass
class Fleet:
    """
    The running example.

    :ivar door: the one address that agents know.
    """

    folder: Path
    door: str
    token: str
    ports: dict[str, int]
    configs: dict[str, Path]
    bridges: dict[str, BridgeProcess]
    router: StartedProcess

    def start(self, name: str) -> None:
        """Start a bridge on its port, in the ROS namespace of its robot."""
        self.bridges[name] = BridgeProcess(
            self.folder,
            name,
            self.configs[name],
            ros_arguments=['-r', f'__ns:=/{name}'],
            port=self.ports[name],
            token=self.token,
        )

    async def agent(self, path: str = '', name: str = 'tester') -> Agent:
        """Connect through the door as soon as it lets one in."""
        ends_s = time.monotonic() + 30.0
        while True:
            try:
                return await Agent.connect(self.door + path, self.token, name=name)
            except (InvalidStatus, OSError) as error:
                is_down = not isinstance(error, InvalidStatus) or (
                    error.response.status_code == 503
                )
                if not is_down or time.monotonic() > ends_s:
                    raise
            await asyncio.sleep(0.05)

    async def open_up(self) -> None:
        """Return when every way through the door leads somewhere."""
        for path in ('', *(f'/{name}' for name in CELLS)):
            await (await self.agent(path)).drop()

    async def where(self, session_id: str) -> dict[str, str]:
        """Ask each bridge itself where a session stands, as the router does."""
        found = {}
        for name, bridge in self.bridges.items():
            async with await Agent.connect(bridge.url, self.token) as asker:
                found[name] = await asker.where(session_id)
        return found


@pytest.fixture(scope='module')
def fleet(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp('fleet')
    names = (*CELLS, 'door', 'router')
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    door = f'ws://127.0.0.1:{ports["door"]}'
    configs = {
        name: patient_config(
            folder, {'server': {'public_url': f'{door}/{name}'}, 'world': {'name': name}}, name
        )
        for name in CELLS
    }
    with ExitStack() as stack:

        def kept(process: StartedProcess) -> StartedProcess:
            stack.callback(lambda: _stop(process))
            return process

        command = [sys.executable, str(EXAMPLE / 'router.py'), '--port', str(ports['router'])]
        command += [f'{name}=ws://127.0.0.1:{ports[name]}' for name in CELLS]
        router = kept(StartedProcess(command, folder, 'router'))
        addresses = {
            'FLEET_BIND': f'127.0.0.1:{ports["door"]}',
            'ROUTER': f'127.0.0.1:{ports["router"]}',
            **{name.upper(): f'127.0.0.1:{ports[name]}' for name in CELLS},
        }
        assert HAPROXY is not None
        proxy = [HAPROXY, '-db', '-f', str(EXAMPLE / 'haproxy.cfg')]
        kept(StartedProcess(proxy, folder, 'haproxy', addresses))
        made = Fleet(folder, door, secrets.token_urlsafe(24), ports, configs, {}, router)
        stack.callback(lambda: [_stop(bridge) for bridge in made.bridges.values()])
        for name in CELLS:
            made.start(name)
        for name in CELLS:
            kept(start_sim_robot(folder, name=f'robot_{name}', namespace=f'/{name}'))
        for bridge in made.bridges.values():
            bridge.wait_ready()
        run(made.open_up())
        yield made


def _stop(process: StartedProcess) -> None:
    with suppress(RuntimeError):
        process.stop()


async def at_work(fleet: Fleet, path: str = '', name: str = 'tester') -> Agent:
    """Return an agent whose session holds an arm that may move."""
    agent = await fleet.agent(path, name)
    await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
    agent.beat(0.2)
    await may_move(agent)
    return agent


def test_each_path_leads_to_its_own_robot_and_streams_follow(fleet: Fleet) -> None:
    async def play() -> None:
        for name in CELLS:
            agent = await at_work(fleet, f'/{name}')
            assert agent.manifest['world']['name'] == name
            endpoints = {e['binding']: e for e in agent.ready['stream_endpoints']}
            assert endpoints['ws']['url'] == f'{fleet.door}/{name}/stream'
            async with connect(
                endpoints['ws']['url'],
                subprotocols=['awp'],  # type: ignore[list-item]
                additional_headers={'Authorization': f'Bearer {agent.ready["session_token"]}'},
                compression=None,
            ) as stream:
                frame = await asyncio.wait_for(stream.recv(), WAIT_S)
            assert isinstance(frame, bytes)
            await completed(agent, 'home', 'move_to_pose', to_pose(*HOME_M), 20)
            await agent.close()
            await agent.drop()

    run(play(), 100.0)


def test_the_door_passes_refusals_on(fleet: Fleet) -> None:
    async def play() -> None:
        for path in ('', '/cell_a', '/cell_b'):
            with pytest.raises(InvalidStatus) as refused:
                await Agent.connect(fleet.door + path, 'not the token of anybody')
            assert refused.value.response.status_code == 401
        with pytest.raises(InvalidStatus) as refused:
            await connect(fleet.door, additional_headers={'Host': 'evil.example'})
        assert refused.value.response.status_code in (400, 403)

    run(play())


def test_a_session_is_found_again_wherever_it_is(fleet: Fleet) -> None:
    """Agents are placed in turn; a lost one comes back through the router to its own bridge."""

    async def play() -> None:
        one, two = await at_work(fleet, name='one'), await at_work(fleet, name='two')
        worlds = {str(a.manifest['world']['name']) for a in (one, two)}
        assert worlds == set(CELLS)
        for agent in (one, two):
            session_id, home = str(agent.ready['session_id']), agent.manifest['world']['name']
            params = to_pose(*AWAY_M, max_velocity_mps=0.1)
            go = await under_way(agent, 'go', 'move_to_pose', params, 0.02)
            await agent.reset()
            back = await fleet.agent()
            for _ in range(5):
                if back.manifest['world']['name'] != home:  # it shall have a way to go
                    break
                await back.drop()
                back = await fleet.agent()
            assert back.manifest['world']['name'] != home
            ready = await back.resume(agent)
            assert ready['session_id'] == session_id
            assert ready['stream_endpoints'][-1]['url'] == f'{fleet.door}/{home}/stream'
            back.beat(0.2)
            assert (await back.status(go))['state'] in ('completed', 'failed')
            found = await fleet.where(session_id)
            assert found == {name: 'idle' if name == home else 'unknown' for name in CELLS}
            await back.close()
            assert set((await fleet.where(session_id)).values()) == {'unknown'}
            await back.drop()

    run(play(), 150.0)


def test_an_unknown_token_is_refused_by_a_bridge(fleet: Fleet) -> None:
    async def play() -> None:
        async with await fleet.agent() as agent:
            refused = await agent.refusal(
                'session.resume', session_token='st_of_nobody', last_status_seq=0
            )
            assert refused.code == 2005

    run(play())


def test_one_bridge_dies_and_comes_back(fleet: Fleet) -> None:
    """What its agent sees; the other one sees nothing."""

    async def play() -> None:
        one, two = await at_work(fleet, name='one'), await at_work(fleet, name='two')
        name = str(one.manifest['world']['name'])
        lost_id = str(one.ready['session_id'])
        fleet.bridges[name].kill()
        code, _ = await one.ended()
        assert code in GATEWAY_GONE
        # The session may still be there, for all that the others can tell.
        back = await fleet.agent()
        refused = await back.refusal(
            'session.resume', session_token=one.ready['session_token'], last_status_seq=0
        )
        assert refused.is_retryable
        assert back.manifest['world']['name'] != name
        with pytest.raises(InvalidStatus) as down:
            await Agent.connect(f'{fleet.door}/{name}', fleet.token)
        assert down.value.response.status_code == 503
        await completed(two, 'on', 'move_to_pose', to_pose(*AWAY_M), 20)
        # Back, and it remembers nothing: now everybody says so, and the agent begins anew.
        fleet.start(name)
        await asyncio.to_thread(fleet.bridges[name].wait_ready)
        assert set((await fleet.where(lost_id)).values()) == {'unknown'}
        refused = await back.refusal(
            'session.resume', session_token=one.ready['session_token'], last_status_seq=0
        )
        assert refused.code == 2005
        await back.drop()
        again = await at_work(fleet, f'/{name}')
        await completed(again, 'again', 'move_to_pose', to_pose(*HOME_M), 20)
        for agent in (again, two):
            await agent.close()
        for agent in (again, two, one):
            with suppress(ConnectionClosed):
                await agent.drop()

    run(play(), 150.0)


def test_the_router_says_where_sessions_are_and_never_a_token(fleet: Fleet) -> None:
    output = fleet.router.output
    assert 'session sess_' in output
    assert fleet.token not in output
    assert 'Traceback' not in output
