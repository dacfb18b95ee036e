"""Patient: settings, variables and a clock; what the doctor says of them, and his advice taken."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from frazil.config import load
from frazil.doctor import CheckContext, Finding, Fix, findings_of
from frazil.doctor.context import Check
from frazil.model import Clock, SystemClock

NOBODY = 65534
"""A user who owns nothing."""
RUN_SECONDS_MAX = 120


class Patient:
    """A node to be, in a folder of its own. Owned by one test."""

    def __init__(self, folder: Path, *settings: str, clock: Clock | None = None) -> None:
        """`settings` are lines of TOML, each with the whole name."""
        self.folder = folder
        self.data = folder / "data"
        self.clock = clock or SystemClock()
        self.environment = {name: value for name, value in os.environ.items() if _is_kept(name)}
        self.file = folder / "frazil.toml"
        self._lines: list[str] = []
        for line in (f"data = '{self.data}'", *settings):
            self.set(line)
        self._programs()

    def set(self, line: str) -> None:
        """Put a line into the file, in place of one with the same name."""
        name = line.partition(" = ")[0]
        self._lines = [each for each in self._lines if each.partition(" = ")[0] != name]
        self._lines.append(line)
        self.file.write_text("\n".join(self._lines), encoding="utf-8")

    def look(self, check: Check) -> list[Finding]:
        """What one check says."""
        config = load(str(self.file), {})
        case = CheckContext(config=config, clock=self.clock, environment=self.environment)
        return list(findings_of(check, case))

    def mend(self, finding: Finding) -> None:
        """Do what a fix line says, unless only a human can."""
        assert finding.fix is not None
        if finding.fix.kind == "set":
            assert tomllib.loads(finding.fix.text)
            self.set(finding.fix.text)
        else:
            assert finding.fix.kind == "run", finding
            self.run(finding.fix)

    def run(self, fix: Fix) -> None:
        """Run a fix in a shell; what that does to the variables stays."""
        done = subprocess.run(
            ["sh", "-c", f"set -e\n{fix.text}\nenv -0 > variables"],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
        )
        assert done.returncode == 0, fix.text + done.stdout + done.stderr
        pairs = (self.folder / "variables").read_text().rstrip("\0").split("\0")
        self.environment = dict(pair.split("=", 1) for pair in pairs)

    def _programs(self) -> None:
        """`frazil` as it is when it is installed, and a `sudo` for who is root."""
        programs = self.folder / "programs"
        programs.mkdir()
        for name, command in {
            "frazil": f"{sys.executable} -m frazil",
            "sudo": "env",
        }.items():
            path = programs / name
            path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            path.chmod(0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"


def _is_kept(name: str) -> bool:
    return not name.startswith(("OTEL_", "FRAZIL_", "JAVA_HOME"))


def trouble(findings: Sequence[Finding]) -> Finding:
    """The one finding that is not well."""
    (found,) = [finding for finding in findings if finding.level != "ok"]
    return found


def is_well(findings: Sequence[Finding]) -> bool:
    """Was something looked at, and is all of it well?"""
    return bool(findings) and all(finding.level == "ok" for finding in findings)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that every user can look into."""
    with tempfile.TemporaryDirectory(prefix="frazil-doctor-") as name:
        Path(name).chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        yield Path(name)


@contextmanager
def as_nobody() -> Iterator[None]:
    """This process with the rights of a user who has none."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def mounted(folder: Path, kind: str, options: str) -> Iterator[Path]:
    """A file system of some kind, at a folder that is made for it."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder.mkdir()
    command = ["mount", "-t", kind, "-o", options, kind, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a {kind} cannot be mounted here: {done.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
