"""Owns what stands behind ``server``: TLS files and names, as the transport wants them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from awp_ros_bridge.config import LoadResult, Problem, ServerConfig
from awp_ros_bridge.transport.tls import prepare, TlsFault, TlsFiles, TlsReady

_ANY = ('0.0.0.0', '::')


def tls_of(server: ServerConfig, folder: Path) -> TlsReady | None:
    """
    Return the TLS context of a configuration, None where it wants none.

    :param folder: where relative paths of the configuration begin.
    :raises TlsFault: one of the files cannot be used
    """
    tls = server.tls
    if tls is None:
        return None
    client_ca = None if tls.client_ca is None else _path(folder, tls.client_ca)
    return prepare(TlsFiles(_path(folder, tls.cert), _path(folder, tls.key), client_ca))


def tls_problem(loaded: LoadResult, fault: TlsFault) -> Problem:
    """Return the fault with its place in the configuration file."""
    return loaded.problem_at(('server', 'tls', fault.key), fault.what, fault.todo)


def with_tls_tried(loaded: LoadResult, folder: Path) -> LoadResult:
    """Return what came of loading, with what is wrong with the files of TLS."""
    if loaded.config is None:
        return loaded
    try:
        tls_of(loaded.config.server, folder)
    except TlsFault as fault:
        return replace(
            loaded, config=None, problems=(*loaded.problems, tls_problem(loaded, fault))
        )
    return loaded


def names_of(server: ServerConfig) -> tuple[str, ...]:
    """Return the names by which a bridge is called, beside those of loopback."""
    names = list(server.host_names)
    if server.public_url is not None:
        names.append(urlsplit(server.public_url).hostname or '')
    if server.host not in _ANY:
        names.append(server.host)
    return tuple(dict.fromkeys(name for name in names if name))


def _path(folder: Path, text: str) -> Path:
    return folder / Path(text).expanduser()
