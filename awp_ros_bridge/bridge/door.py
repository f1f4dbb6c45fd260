"""Owns what stands behind ``server``: TLS files and names, as the transport wants them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from awp_ros_bridge.bridge.tokens import HOW, load_tokens, TokenError, tokens_path
from awp_ros_bridge.config import DescriptionUnread, LoadResult, Problem, ServerConfig, UrdfFile
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


def _with_tls_tried(loaded: LoadResult, folder: Path) -> LoadResult:
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


def with_files_tried(loaded: LoadResult, folder: Path) -> LoadResult:
    """Return the same, with what is wrong with any file that the configuration names."""
    tried = _with_tls_tried(loaded, folder)
    config = loaded.config
    if config is None:
        return tried
    found: list[Problem] = []
    path = tokens_path(config.server, folder)
    if path is not None:
        try:
            load_tokens(config.server, path, {})
        except TokenError as error:
            first = str(error).splitlines()[0].removeprefix('server.tokens_file ')
            what, _, todo = first.partition('; ')
            found.append(tried.problem_at(('server', 'tokens_file'), what, todo or HOW))
    for name, embodiment in config.embodiments.items():
        kinematics = embodiment.kinematics
        if kinematics is None or not isinstance(kinematics.urdf, UrdfFile):
            continue
        try:
            kinematics.urdf.read(folder)
        except DescriptionUnread as error:
            where = ('embodiments', name, 'kinematics', 'urdf', 'file')
            todo = 'without it nothing of this body may move; correct the path'
            found.append(tried.problem_at(where, str(error), todo))
    if not found:
        return tried
    return replace(tried, config=None, problems=(*tried.problems, *found))


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
