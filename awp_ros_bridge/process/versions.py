"""Owns the check of library versions at start: distributions ship some that are too old."""

from __future__ import annotations

from importlib import metadata

NEEDED = {'websockets': (14, 1), 'pydantic': (2, 7), 'jsonschema': (4, 10)}


def problems(installed: dict[str, str | None] | None = None) -> list[str]:
    """
    Return what is missing or too old, each with what was found and what to do.

    :param installed: versions by name, None for a missing one; read from this Python by default.
    """
    found = installed if installed is not None else {name: _version(name) for name in NEEDED}
    out = []
    for name, needed in NEEDED.items():
        wanted = '.'.join(str(n) for n in needed)
        version = found.get(name)
        if version is None:
            out.append(f'{name} is not installed; {wanted} or newer is needed: pip install {name}')
        elif _numbers(version) < needed:
            out.append(
                f'{name} {version} was found, {wanted} or newer is needed: install it in a venv '
                'made with --system-site-packages (README, Connect your robot)'
            )
    return out


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    parts = []
    for part in version.split('.')[:2]:
        digits = ''.join(c for c in part if c.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)
