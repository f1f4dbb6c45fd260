"""Owns where the static bearer tokens of the control connection come from (AWP-SEC-002)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
import stat

import yaml

from awp_ros_bridge.config import ServerConfig
from awp_ros_bridge.transport.access import TokenGate


class TokenError(ValueError):
    """No usable token; the text says which source was read and what to do, never the token."""


def load_tokens(server: ServerConfig, folder: Path, environment: Mapping[str, str]) -> TokenGate:
    """
    Return the gate that knows the tokens of control connections.

    :param folder: where relative paths of the configuration begin.
    :raises TokenError: there is none, or one could not be presented in a header.
    """
    if server.tokens_file is not None:
        path = folder / Path(server.tokens_file).expanduser()
        tokens = _from_file(path)
        source = f'server.tokens_file {path}'
    else:
        name = server.token_env
        tokens = [t for t in [environment.get(name, '')] if t]
        source = f'environment variable {name}'
    if not tokens:
        raise TokenError(f'{source} holds no token; make one: openssl rand -hex 24')
    try:
        return TokenGate(tokens)
    except ValueError as error:
        raise TokenError(f'{source}: {error}') from None


def _from_file(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding='utf-8')
        mode = path.stat().st_mode
    except OSError as error:
        raise TokenError(f'server.tokens_file {path}: {error.strerror}') from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise TokenError(
            f'server.tokens_file {path} is readable by others (mode {stat.S_IMODE(mode):o}); '
            f'chmod 600 {path}'
        )
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        raise TokenError(f'server.tokens_file {path} is not YAML') from None
    tokens = found.get('tokens') if isinstance(found, dict) else found
    if not isinstance(tokens, list) or not all(isinstance(t, str) for t in tokens):
        raise TokenError(f'server.tokens_file {path}: write "tokens:" and a list of strings')
    return tokens
