"""Patient: settings, variables and a clock to run checks on, and to apply their fixes to."""

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
"""A user that owns nothing."""
RUN_SECONDS_MAX = 120


class Patient:
    """A node that is not started, in its own folder. Owned by one test."""

    def __init__(self, folder: Path, *settings: str, clock: Clock | None = None) -> None:
        """`settings` are lines of TOML, with full names."""
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
        """Set a line of the file; replaces one with the same name."""
        name = line.partition(" = ")[0]
        self._lines = [each for each in self._lines if each.partition(" = ")[0] != name]
        self._lines.append(line)
        self.file.write_text("\n".join(self._lines), encoding="utf-8")

    def check(self, check: Check) -> list[Finding]:
        """Run one check."""
        config = load(str(self.file), {})
        context = CheckContext(config=config, clock=self.clock, environment=self.environment)
        return list(findings_of(check, context))

    def mend(self, finding: Finding) -> None:
        """Apply a fix; it must not be a manual step."""
        assert finding.fix is not None
        if finding.fix.kind == "set":
            assert tomllib.loads(finding.fix.text)
            self.set(finding.fix.text)
        else:
            assert finding.fix.kind == "run", finding
            self.run(finding.fix)

    def run(self, fix: Fix) -> None:
        """Run a fix in a shell, and keep the changes to the variables."""
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
        """Install `frazil`, and a `sudo` that does nothing."""
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


def problem(findings: Sequence[Finding]) -> Finding:
    """Return the only finding that is not ok."""
    (found,) = [finding for finding in findings if finding.level != "ok"]
    return found


def all_ok(findings: Sequence[Finding]) -> bool:
    """Return whether there are findings, all ok."""
    return bool(findings) and all(finding.level == "ok" for finding in findings)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that every user can read."""
    with tempfile.TemporaryDirectory(prefix="frazil-doctor-") as name:
        Path(name).chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        yield Path(name)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop the privileges of this process to an unprivileged user."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def mounted(folder: Path, kind: str, options: str) -> Iterator[Path]:
    """Mount a file system on a new folder."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder.mkdir()
    command = ["mount", "-t", kind, "-o", options, kind, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount {kind}: {done.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
