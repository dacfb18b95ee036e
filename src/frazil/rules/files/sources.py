"""RuleFiles: the files of a node, and whether they have changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from frazil.errors import Malformed
from frazil.rules.files.model import RuleGroup
from frazil.rules.files.reader import CheckExpr, read_rule_file

FILE_BYTES_MAX = 10_000_000
FILES_MAX = 1000
PATTERN_SIGNS = frozenset("*?[")


class RuleFiles:
    """Files by patterns. Owned by the thread that evaluates."""

    def __init__(self, patterns: Sequence[str], check_expr: CheckExpr) -> None:
        self._patterns = patterns
        self._check_expr = check_expr
        self._digest: bytes | None = None

    def read_if_changed(self) -> tuple[RuleGroup, ...] | None:
        """Return all groups; None if nothing has changed since the last call. `Malformed` if a file
        is broken or cannot be read, once per change."""
        known, self._digest = self._digest, None
        texts = self._texts()
        digest = hashlib.sha256()
        for path, content in texts:
            digest.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
        self._digest = digest.digest()
        if self._digest == known:
            return None
        groups: list[RuleGroup] = []
        for path, content in texts:
            try:
                text = content.decode()
            except UnicodeDecodeError:
                raise Malformed(f"{path} is not UTF-8") from None
            groups += read_rule_file(path, text, self._check_expr).groups
        return tuple(groups)

    def _texts(self) -> list[tuple[str, bytes]]:
        paths: list[str] = []
        for pattern in self._patterns:
            found = _matching(pattern)
            paths += [path for path in found if path not in paths]
        if len(paths) > FILES_MAX:
            raise Malformed(f"rules.files finds {len(paths)} files; at most {FILES_MAX} are read")
        return [(path, _content(path)) for path in paths]


def _matching(pattern: str) -> list[str]:
    if not set(pattern) & PATTERN_SIGNS:
        if not Path(pattern).exists():
            raise Malformed(f"rules.files names {pattern}, which does not exist")
        return [pattern]
    path = Path(pattern)
    root = Path(path.anchor)
    relative = path.relative_to(path.anchor) if path.anchor else path
    return sorted(str(found) for found in root.glob(str(relative)) if found.is_file())


def _content(path: str) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise Malformed(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        raise Malformed(f"{path} has {len(content)} bytes; at most {FILE_BYTES_MAX} are read")
    return content
