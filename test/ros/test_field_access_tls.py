"""Field cases of TLS: what is half configured, and an arm that is driven over wss."""

from __future__ import annotations

from pathlib import Path
import ssl
import sys

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    HOME_M,
    may_move,
    open_when_free,
    patient_config,
    running_cell,
)
from patience import run
from processes import BridgeProcess, REPOSITORY
import pytest
from ros_peer import RosPeer
from websockets.exceptions import InvalidHandshake

sys.path.append(str(REPOSITORY / 'test' / 'unit'))

from certificates import Authority


@pytest.fixture(scope='module')
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp('certificates'), 'authority')


def tls_config(folder: Path, **tls: Path) -> Path:
    """Write a configuration that serves wss."""
    words = {key: str(path) for key, path in tls.items()}
    return patient_config(folder, {'server': {'tls': words, 'host_names': ['localhost']}})


def test_f106_a_key_that_is_missing_another_s_or_expired_ends_the_start_with_2_and_a_line(
    authority: Authority, tmp_path: Path, ros_domain_id: int
) -> None:
    cert, _ = authority.sign('server')
    _, other = authority.sign('other')
    old_cert, old_key = authority.sign('old', days=-1)
    cases: list[tuple[dict[str, Path], str]] = [
        ({'cert': cert, 'key': tmp_path / 'nowhere.key'}, 'server.tls.key: '),
        ({'cert': cert, 'key': other}, 'server.tls.key: this is not the key of the certificate'),
        ({'cert': old_cert, 'key': old_key}, 'server.tls.cert: the certificate has expired'),
        ({'cert': cert}, "server.tls.key: 'key' is missing"),
    ]
    started = []
    for number, (tls, says) in enumerate(cases):
        folder = tmp_path / f'{number}'
        folder.mkdir()
        config = tls_config(folder, **tls)
        started.append((config, says, BridgeProcess(folder, f'bridge-{number}', config)))
    for config, says, bridge in started:
        with pytest.raises(RuntimeError, match='ended with 2'):
            bridge.wait_ready()
        (line,) = [row for row in bridge.output.splitlines() if 'server.tls' in row]
        place, _, rest = line.partition(': ')
        assert place.startswith(f'{config}:'), line
        assert place.rpartition(':')[2].isdigit()
        assert rest.startswith(says), line


def test_f106_the_arm_is_driven_over_wss_and_plaintext_gets_nothing(
    ros: None, authority: Authority, peer: RosPeer, tmp_path: Path
) -> None:
    cert, key = authority.sign('arm')
    trusting = ssl.create_default_context(cafile=str(authority.cert))
    with running_cell(tmp_path, tls_config(tmp_path, cert=cert, key=key)) as cell:
        url, token = cell.bridge.url, cell.bridge.token
        assert url.startswith('wss://localhost:')

        async def play() -> None:
            with pytest.raises((InvalidHandshake, OSError, EOFError)):
                await Agent.dial(url.replace('wss://', 'ws://'), token)
            async with await Agent.connect(url, token, tls=trusting) as agent:
                await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
                agent.beat(0.2)
                endpoints = {e['binding']: e for e in agent.ready['stream_endpoints']}
                assert endpoints['ws']['url'] == f'{url}/stream'
                await may_move(agent)
                await as_soon_as_possible(
                    lambda: agent.submit('go', 'move_to_pose', to_pose(*HOME_M))
                )
                assert (await agent.status('go'))['state'] == 'completed'
                await agent.close()

        run(play())
