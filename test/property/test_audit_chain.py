"""Whatever is recorded, the log is whole; whatever is changed in it, the change is seen."""

from pathlib import Path
import tempfile
from typing import Any

from hypothesis import given, HealthCheck, settings
from hypothesis import strategies as st

from awp_ros_bridge.audit import verify
from awp_ros_bridge.audit.record import Redactor, to_ascii
from awp_ros_bridge.audit.session_log import SessionLog

NAME = '20260101T000000.000Z_s1'


class PlainFile:
    """A file that does not wait for the disk."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open('xb', buffering=0)

    def append(self, data: bytes) -> None:
        self._stream.write(data)

    def sync(self) -> None:
        pass

    def cut(self, size: int) -> None:
        self._stream.truncate(size)

    def close(self) -> None:
        self._stream.close()


BODIES = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    ),
    max_size=3,
)


def write(folder: Path, bodies: list[Any], max_file_bytes: int) -> None:
    log = SessionLog(folder, NAME, 's1', max_file_bytes, PlainFile)
    log.add(0, 'world', 'session', to_ascii({'session_id': 's1'}))
    for n, body in enumerate(bodies):
        log.add(n, 'agent', 'message', to_ascii(Redactor().clean(body)))
        if n % 3 == 0:
            log.write()
    log.finish()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(BODIES, max_size=12), st.sampled_from([400, 900, 10_000]))
def test_what_is_written_is_whole(bodies: list[Any], max_file_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, bodies, max_file_bytes)
        report = verify(folder)
        assert report.ok, report.logs[0].faults
        assert report.logs[0].finished
        assert all(path.read_bytes().isascii() for path in folder.iterdir())


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 127))
def test_any_changed_byte_before_the_last_line_is_seen(where: int, line: int, by: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, [{'n': n} for n in range(6)], 700)
        paths = sorted(folder.iterdir())
        path = paths[line % len(paths)]
        data = bytearray(path.read_bytes())
        last = max(paths, key=lambda each: (len(each.name), each.name)) == path
        end = data.rstrip(b'\n').rfind(b'\n') if last else len(data)
        data[where % end] = data[where % end] ^ by
        path.write_bytes(data)
        report = verify(folder)
        assert not report.ok or report.logs[0].notes


@settings(max_examples=60, deadline=None)
@given(BODIES, st.text(alphabet='abcdefghij0123456789', min_size=12, max_size=40))
def test_a_secret_never_survives_under_a_secret_name(body: Any, secret: str) -> None:
    secret = 'Q' + secret  # no accident with other text
    body = {**body, 'session_token': secret, 'deep': [{'Authorization': f'Bearer {secret}'}]}
    assert secret.encode() not in to_ascii(Redactor().clean(body))


PARTS = (
    'token', 'ToKen', 'BEARER ', 'bearer', 'awp_', 'St_', 'tt_', 'Secret', 'pass', 'word', '=',
    'Authorization', '_', '-', ' ', '"', ':', '\\', 'a' * 32, '0', '\u212a', '\u017f', 'x',
)  # fmt: skip
WORDY = st.lists(st.sampled_from(PARTS), max_size=5).map(''.join)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(WORDY, WORDY | st.dictionaries(WORDY, WORDY, max_size=2), max_size=2))
def test_what_is_not_looked_at_word_by_word_holds_nothing_to_mask(body: Any) -> None:
    beside = {**body, 'x': 'a hint: token'}  # so that every word is looked at
    assert {**Redactor().clean(body), 'x': 'a hint: token'} == Redactor().clean(beside)
