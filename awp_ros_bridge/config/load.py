"""Owns loading: from a file to a configuration, or to every problem it has, with lines."""

from __future__ import annotations

import copy
from dataclasses import dataclass
import hashlib
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from awp_ros_bridge.config import schema
from awp_ros_bridge.config.actions import Adapters
from awp_ros_bridge.config.channels import Encoders
from awp_ros_bridge.config.checks import check
from awp_ros_bridge.config.document import Document, read
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import describe, dotted, Finding, Path, Problem, Severity

_MOST_BYTES = 4 * 1024 * 1024
_PRUNING_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class LoadResult:
    """
    What came of loading a file.

    :param config: None when the file has errors; warnings alone do not forbid it.
    :param problems: in the order of the file.
    :param digest: SHA-256 of the file's bytes, empty when it could not be read.
    :param adapters_checked: False where no adapters were at hand, so nothing was said of them.
    :param name: what problems call the file.
    :param document: the file with its lines, None where it could not be read.
    """

    config: BridgeConfig | None
    problems: tuple[Problem, ...]
    digest: str
    adapters_checked: bool
    name: str = ''
    document: Document | None = None

    def problem_at(
        self, path: Path, what: str, todo: str, severity: Severity = Severity.ERROR
    ) -> Problem:
        """Make a problem of a value that was found later, with its place in the file."""
        line = 0 if self.document is None else self.document.line_of(path)
        return Problem(self.name, line, dotted(path), what, todo, severity)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that forbid the configuration."""
        return tuple(p for p in self.problems if p.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that do not."""
        return tuple(p for p in self.problems if p.severity is Severity.WARNING)


def load(
    path: str | FilePath, adapters: Adapters | None = None, encoders: Encoders | None = None
) -> LoadResult:
    """
    Load a configuration file.

    :param adapters: what is known of adapters by name; None leaves adapter questions unchecked.
    :param encoders: what is known of message types; None leaves questions about them unchecked.
    """
    name = str(path)
    try:
        with open(FilePath(path).expanduser(), 'rb') as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        return _unread(name, f'cannot be read: {reason}', 'check the path', adapters)
    if len(data) > _MOST_BYTES:
        return _unread(
            name, f'is larger than {_MOST_BYTES} bytes', 'this is no configuration', adapters
        )
    try:
        text = data.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b'\n') + 1
        problem = Problem(name, line, '', 'the file is not UTF-8', 'save it as UTF-8')
        return LoadResult(None, (problem,), hashlib.sha256(data).hexdigest(), adapters is not None)
    digest = hashlib.sha256(data).hexdigest()
    return load_text(text, name, adapters, digest, encoders)


def load_text(
    text: str,
    name: str = '<text>',
    adapters: Adapters | None = None,
    digest: str | None = None,
    encoders: Encoders | None = None,
) -> LoadResult:
    """
    Load a configuration from text.

    :param name: what problems call the file.
    """
    if digest is None:
        digest = hashlib.sha256(text.encode()).hexdigest()
    document = read(text)
    found = list(document.findings)
    config = None
    if not any(finding.path == () for _, finding in found):
        config, findings = _evaluate(document, adapters, encoders)
        found += [(document.line_of(finding.path), finding) for finding in findings]
    problems = tuple(_problem(name, line, finding) for line, finding in _in_order(document, found))
    if any(problem.severity is Severity.ERROR for problem in problems):
        config = None
    return LoadResult(config, problems, digest, adapters is not None, name, document)


def directory_of(path: str | FilePath) -> FilePath:
    """Return the folder that relative paths inside a configuration file start from."""
    return FilePath(path).expanduser().absolute().parent


def _unread(name: str, what: str, todo: str, adapters: Adapters | None) -> LoadResult:
    return LoadResult(None, (Problem(name, 0, '', what, todo),), '', adapters is not None)


def _problem(name: str, line: int, finding: Finding) -> Problem:
    return Problem(name, line, dotted(finding.path), finding.what, finding.todo, finding.severity)


def _in_order(
    document: Document, found: list[tuple[int, Finding]]
) -> list[tuple[int, Finding]]:
    """Sort by line; a fault that aliases repeat was written once and is told once."""
    unique: dict[Any, tuple[int, str, Finding]] = {}
    for line, each in found:
        path = each.path
        rest: Path = ()
        while path and path not in document.written:
            path, rest = path[:-1], (path[-1], *rest)
        place = document.written.get(path, ())
        unique.setdefault((line, place, rest, each.what), (line, dotted(each.path), each))
    rows = sorted(unique.values(), key=lambda row: (row[0], row[1], row[2].what))
    return [(line, each) for line, _, each in rows]


def _evaluate(
    document: Document, adapters: Adapters | None, encoders: Encoders | None
) -> tuple[BridgeConfig | None, list[Finding]]:
    data = document.value
    if data is None:
        return None, [Finding((), 'the file is empty', 'begin with config/sim_arm.yaml')]
    findings, removed = _validate(data)
    if not findings:
        config = BridgeConfig.model_validate(data)
        return config, list(check(config, adapters, encoders))
    provisional = _provisional(data, removed)
    if provisional is not None:
        config, gone = provisional
        found = check(config, adapters, encoders)
        findings += [each for each in found if not _follows_from(each, gone)]
    return None, findings


def _validate(data: Any) -> tuple[list[Finding], list[Path]]:
    """Return what is wrong with each value, and the values to leave out for further checks."""
    try:
        BridgeConfig.model_validate(data)
    except ValidationError as error:
        findings: list[Finding] = []
        removed: list[Path] = []
        for each in error.errors(include_url=False):
            path = schema.data_path(each['loc'], data, each['type'])
            known = schema.known_keys(path[:-1], data, path[-1]) if path else ()
            what, todo = describe(each, path, known)
            findings.append(Finding(path, what, todo))
            removed.append(path[:-1] if each['type'] == 'missing' else path)
        return findings, removed
    return [], []


def _provisional(data: Any, removed: list[Path]) -> tuple[BridgeConfig, list[Path]] | None:
    """
    Return the configuration without its wrong values, to look at the rest in the same run.

    :returns: None where too little is left.
    """
    rest = copy.deepcopy(data)
    gone: list[Path] = []
    for _ in range(_PRUNING_ROUNDS):
        gone += removed
        if () in removed or not isinstance(rest, dict):
            return None
        for path in sorted(set(removed), key=len, reverse=True):
            _remove(rest, path)
        _, removed = _validate(rest)
        if not removed:
            return BridgeConfig.model_validate(rest), gone
    return None


def _remove(data: Any, path: Path) -> None:
    for part in path[:-1]:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(data, dict):
        data.pop(path[-1], None)
    elif isinstance(data, list):
        data.clear()  # keeps the indices of other problems true: none are left


def _follows_from(finding: Finding, gone: list[Path]) -> bool:
    """Tell whether a finding may only be there because a wrong value was left out."""
    places = [finding.path] if finding.refers is None else [finding.path, finding.refers]
    return any(
        _within(place, path) or _within(path, place) or place[:-1] == path[:-1]
        for path in gone
        for place in places
    )


def _within(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer
