"""Owns the demonstration: an AWP agent drives the embedded robot through the bridge."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
from pathlib import Path
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from cell import Cell, CellError, running_cell
from websockets.asyncio.client import connect

WAIT_S = 30.0


def say(text: str) -> None:
    """Print a line of our own at once."""
    print(f'[demo] {text}', flush=True)


async def look(cell: Cell) -> tuple[dict[str, object], dict[str, object]]:
    """Return the world manifest and what an observer sees of arm_01 on arm_state."""
    headers = {'Authorization': f'Bearer {cell.token}'}
    async with connect(
        cell.url, subprotocols=['awp'], additional_headers=headers, ping_interval=None
    ) as ws:
        await ws.send(
            _request(
                1,
                'initialize',
                protocol_versions=['0.1'],
                agent={
                    'name': 'demo-check',
                    'version': '1',
                    'vendor': 'demo',
                },
                consumes_modalities=['text/event+json'],
            )
        )
        manifest = json.loads(await ws.recv())['result']
        await ws.send(
            _request(2, 'session.open', mode='streaming', subscribe=[{'channel': 'arm_state'}])
        )
        while True:
            message = json.loads(await asyncio.wait_for(ws.recv(), 5))
            if message.get('method') == 'obs.frame':
                break
        await ws.send(_request(3, 'session.close'))
        return manifest, json.loads(_payload(message))


def _request(number: int, method: str, **params: object) -> str:
    return json.dumps({'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params})


def _payload(message: dict[str, dict[str, str]]) -> bytes:
    return base64.b64decode(message['params']['payload_b64'])


def wait_for_robot(cell: Cell) -> None:
    """
    Wait until the bridge admits motion.

    :raises CellError: it does not in time; the text says what is missing
    """
    end = time.monotonic() + WAIT_S
    while True:
        _, state = asyncio.run(look(cell))
        if state['motion_permitted']:
            return
        why = state['stops']
        if time.monotonic() > end or cell.dead():
            raise CellError(cell.dead() or f'the robot may not move: {why}')
        time.sleep(0.1)


def _latencies(cell: Cell) -> None:
    """Print what the audit log of the session says about each action's times."""
    rows: dict[str, dict[str, int]] = {}
    for path in sorted(cell.audit.glob('*.jsonl')):
        for line in path.read_text(encoding='ascii').splitlines():
            body = json.loads(line)['body']
            params = body.get('params') or body.get('result') or {}
            if isinstance(params, dict) and 'action_id' in params and 'state' in params:
                row = rows.setdefault(params['action_id'], {})
                if 'received_ts_mono_ns' in params:
                    row['received'] = params['received_ts_mono_ns']
                row.setdefault(params['state'], params.get('ts_mono_ns', 0))
    say('times from the audit log (session clock):')
    say('  action                          receipt to executing   executing to end')
    for action, row in rows.items():
        if 'executing' in row and 'received' in row:
            begun = (row['executing'] - row['received']) / 1e6
            ends = [v for k, v in row.items() if k in ('completed', 'cancelled', 'failed')]
            took = (ends[-1] - row['executing']) / 1e9 if ends else float('nan')
            say(f'  {action[:30]:30}  {begun:15.2f} ms  {took:15.3f} s')


def play(cell: Cell) -> int:
    """Let the public agent drive the robot; return its exit status."""
    say(f'bridge at {cell.url}, robot process {cell.robot_pid}; waiting for the robot')
    wait_for_robot(cell)
    say('awp-demo drives arm_01:')
    agent = shutil.which('awp-demo') or str(Path(sys.executable).with_name('awp-demo'))
    status = subprocess.run(
        [agent, '--url', cell.url, '--token', cell.token], check=False, timeout=120
    ).returncode
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if status == 0:
        _latencies(cell)
    elif load > cores:
        say(f'this machine is busy (load {load:.1f} on {cores} cores), and the bridge stops the')
        say('robot where it is held up for longer than is safe: try again when it is quieter')
    return status


def serve(cell: Cell) -> int:
    """Keep serving until interrupted."""
    wait_for_robot(cell)
    say('serving; stop with Ctrl-C')
    say(f'  url    {cell.url}')
    say(f'  token  {cell.token}  (all scopes)')
    agent = Path(sys.executable).with_name('awp-demo')
    say(f'  try    {agent} --url {cell.url} --token {cell.token}')
    awp = Path(sys.executable).with_name('awp')
    domain = f'export ROS_DOMAIN_ID={os.environ.get("ROS_DOMAIN_ID", "0")}'
    say(f'  ros    {domain}; then {awp} status, sessions, stop, clear')
    say(f'  more   {awp} token make --file {cell.tokens} --scopes observe')
    say(f'         {awp} token list --file {cell.tokens}')
    say(f'  e-stop kill -USR1 {cell.robot_pid}   clear: kill -USR2 {cell.robot_pid}')
    stopping: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _frame: stopping.append(n))
    while not stopping:
        dead = cell.dead()
        if dead:
            raise CellError(dead)
        time.sleep(0.2)
    return 0


def main() -> int:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(prog='scripts/demo', description=__doc__)
    parser.add_argument('--serve', action='store_true', help='keep serving, print how to connect')
    parser.add_argument('--port', type=int, default=None, help='port of the endpoint')
    parser.add_argument('--keep', type=Path, help='keep logs and the audit log in this folder')
    args = parser.parse_args()
    port = args.port if args.port is not None else (8710 if args.serve else 0)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: robot stopped
    with tempfile.TemporaryDirectory(prefix='awp-demo-') as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        say('starting the robot, the guardian and the bridge as three processes')
        try:
            with running_cell(folder, port=port) as cell:
                status = serve(cell) if args.serve else play(cell)
        except CellError as error:
            say(str(error))
            return 1
        except KeyboardInterrupt:
            say('interrupted')
            return 130
        say('stopped the bridge, the guardian, then the robot')
    return status


if __name__ == '__main__':
    try:
        sys.exit(main())
    finally:
        if 'AWP_DEMO_SCRATCH' in os.environ:
            shutil.rmtree(os.environ['AWP_DEMO_SCRATCH'], ignore_errors=True)
