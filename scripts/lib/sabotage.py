"""Owns the runs of the sabotage table, and the page that is drawn from it."""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / 'test' / 'sabotage'
PAGE = REPOSITORY / 'docs' / 'safety' / 'sabotage.md'
sys.path.insert(0, str(FOLDER))

from mechanisms import Mechanism, MECHANISMS  # noqa: E402

HEAD = """\
# Sabotage

<!-- Drawn by scripts/sabotage table from test/sabotage/mechanisms.py. -->

A safety mechanism whose loss no test would notice is not tested. `./scripts/sabotage` disables
each of these for the time of one test, by replacing one attribute of the code, and requires that
this test fails: by an assertion about a value, not by an error and not by a wait that runs out of
time. The bridge itself has no way to switch any of them off. `./scripts/test unit` runs the
table.

| mechanism | without it | disabled by replacing | the test that notices |
| --- | --- | --- | --- |
"""


def page() -> str:
    """Return the page."""
    rows = []
    for m in MECHANISMS:
        module, _, attribute = m.switch.partition(':')
        file, _, test = m.test.partition('::')
        switch = f'`{attribute}` of `{module.removeprefix("awp_ros_bridge.")}`: {m.disabled}'
        rows.append(f'| {m.name} | {m.keeps} | {switch} | `{file}` `{test}` |')
    return HEAD + '\n'.join(rows) + '\n'


def play(rows: list[Mechanism]) -> int:
    """Run the tests of these rows, each with its mechanism disabled."""
    command = [sys.executable, '-m', 'pytest', '-p', 'saboteur', '-q', '-p', 'no:cacheprovider']
    command += ['-p', 'no:xdist', '-p', 'no:rerunfailures', '--no-header']
    paths = (str(FOLDER), os.environ.get('PYTHONPATH', ''))
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(p for p in paths if p)}
    tests = [m.test for m in rows]
    done = subprocess.run([*command, *tests], cwd=REPOSITORY, env=environment, check=False)
    verdict = 'noticed' if done.returncode == 0 else 'NOT all noticed'
    print(f'[sabotage] {len(rows)} mechanisms disabled one by one: {verdict}')
    return done.returncode


def main() -> int:
    """Play the rows that the arguments choose, or draw the page."""
    words = sys.argv[1:]
    if words == ['table']:
        PAGE.write_text(page(), encoding='utf-8')
        return 0
    rows = list(MECHANISMS)
    if words:
        rows = [m for m in rows if any(word in m.name for word in words)]
    if not rows:
        known = ', '.join(m.name for m in MECHANISMS)
        print(f'[sabotage] no mechanism is called like that; there are {known}')
        return 2
    return play(rows)


if __name__ == '__main__':
    sys.exit(main())
