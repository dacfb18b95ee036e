"""Finding: what one look has found, and the one line that mends it."""

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
    """One line to copy: a command to run, a line for the settings, or a thing to do by hand."""

    kind: Kind
    text: str
    flag: str = ""
    """The same as a setting, for a command line."""

    def __post_init__(self) -> None:
        assert self.text.isprintable() and self.text, f"a fix is one line: {self.text!r}"


def run(command: str) -> Fix:
    """A command for the shell."""
    return Fix(kind="run", text=command)


def run_as_root(command: str) -> Fix:
    """A command that needs the rights of root, whoever looks. In containers there is no sudo."""
    return run(command if os.geteuid() == 0 else f"sudo {command}")


def set_to(name: str, value: str | float, flag: str = "") -> Fix:
    """A line of TOML, good at the top of any file of settings."""
    text = json.dumps(value)
    plain = value if isinstance(value, str) else text
    return Fix(
        kind="set", text=f"{name} = {text}", flag=flag or f"--set {shlex.quote(f'{name}={plain}')}"
    )


def do(text: str) -> Fix:
    """What no command can do."""
    return Fix(kind="do", text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. All but what is well can be mended, by one line."""

    check: str
    level: Level
    found: str
    fix: Fix | None = None

    def __post_init__(self) -> None:
        assert (self.level == "ok") == (self.fix is None), f"{self.check}: {self.level} and a fix"

    def to_dict(self) -> dict[str, Any]:
        fix = None if self.fix is None else asdict(self.fix)
        return {"check": self.check, "level": self.level, "found": self.found, "fix": fix}


def well(check: str, found: str) -> Finding:
    return Finding(check=check, level="ok", found=found)


def note(check: str, found: str, fix: Fix) -> Finding:
    """Worth knowing."""
    return Finding(check=check, level="note", found=found, fix=fix)


def warning(check: str, found: str, fix: Fix) -> Finding:
    """A node starts, and something about it will be a trouble."""
    return Finding(check=check, level="warning", found=found, fix=fix)


def failure(check: str, found: str, fix: Fix) -> Finding:
    """A node, or a part of it, does not work like this."""
    return Finding(check=check, level="failure", found=found, fix=fix)
