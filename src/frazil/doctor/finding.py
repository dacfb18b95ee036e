"""Finding: the result of a check, and the one line that fixes it."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "note", "warning", "failure"]
Kind = Literal["run", "set", "do"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One line to copy: a command, a setting, or a manual step."""

    kind: Kind
    text: str
    flag: str = ""
    """The same setting as a command-line flag."""

    def __post_init__(self) -> None:
        assert self.text.isprintable() and self.text, f"a fix is one line: {self.text!r}"


def run(command: str) -> Fix:
    """Return a shell command."""
    return Fix(kind="run", text=command)


def run_as_root(command: str) -> Fix:
    """Return a shell command that needs root. Without sudo if already root, as in containers."""
    return run(command if os.geteuid() == 0 else f"sudo {command}")


def set_to(name: str, value: str | float, flag: str = "") -> Fix:
    """Return a setting as TOML that is valid at the top of a settings file."""
    text = json.dumps(value)
    plain = value if isinstance(value, str) else text
    return Fix(
        kind="set", text=f"{name} = {text}", flag=flag or f"--set {shlex.quote(f'{name}={plain}')}"
    )


def do(text: str) -> Fix:
    """Return a manual step."""
    return Fix(kind="do", text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check. Every finding but `ok` has a fix."""

    check: str
    level: Level
    found: str
    fix: Fix | None = None

    def __post_init__(self) -> None:
        assert (self.level == "ok") == (self.fix is None), f"{self.check}: {self.level} and a fix"

    def to_dict(self) -> dict[str, Any]:
        fix = None if self.fix is None else asdict(self.fix)
        return {"check": self.check, "level": self.level, "found": self.found, "fix": fix}


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, level="ok", found=found)


def note(check: str, found: str, fix: Fix) -> Finding:
    """Return something worth knowing."""
    return Finding(check=check, level="note", found=found, fix=fix)


def warning(check: str, found: str, fix: Fix) -> Finding:
    """Return a problem that does not keep a node from starting."""
    return Finding(check=check, level="warning", found=found, fix=fix)


def failure(check: str, found: str, fix: Fix) -> Finding:
    """Return a problem that keeps a node, or a part of it, from working."""
    return Finding(check=check, level="failure", found=found, fix=fix)
