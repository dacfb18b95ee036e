"""The client programs: installs or builds what each needs, once, and starts it.

Downloads and builds are in `.cache/clients`, which may be removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "clients"
NODE_JS = (20, 6)
"""As in `js/package.json`."""
GO = (1, 25)
"""As in `go/go.mod`."""
INSTALL_SECONDS_MAX = 600
RUN_SECONDS_MAX = 120

Sent = dict[str, dict[str, tuple[str, str]]]
"""By signal and `chk.id`: trace and span, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A client program."""

    command: Sequence[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)

    def send(self, *arguments: str, environment: Mapping[str, str]) -> Sent:
        """Run it to its end. Returns what it reports as sent."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        process = subprocess.run(
            [*self.command, *arguments],
            env={**inherited, "no_proxy": "127.0.0.1", **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
        )
        assert process.returncode == 0, process.stderr
        sent = json.loads(process.stdout)
        return {s: {i: (ids[0], ids[1]) for i, ids in sent[s].items()} for s in sent}


def python() -> Program:
    """The Python SDK, from our own environment."""
    return Program(command=[sys.executable, HERE / "send.py"])


def javascript() -> Program:
    """The JavaScript SDK; its packages are those of the lock, by hash. Skips without Node.js."""
    require("Node.js", ["node", "--version"], NODE_JS)
    require("npm", ["npm", "--version"], (7,))
    sources = [HERE / "js" / name for name in ("package.json", "package-lock.json")]

    def install(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        run_step(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)

    modules = built_once("js", sources, install) / "node_modules"
    return Program(
        command=["node", HERE / "js" / "send.js"], environment={"NODE_PATH": str(modules)}
    )


def go() -> Program:
    """The Go SDK; its modules are those of `go.sum`, by hash. Skips without Go."""
    require("Go", ["go", "env", "GOVERSION"], GO)
    sources = [HERE / "go" / name for name in ("go.mod", "go.sum", "send.go")]

    def build(folder: Path) -> None:
        command: list[str | Path] = [
            "go",
            "build",
            "-mod=readonly",
            "-buildvcs=false",
            "-o",
            folder,
            ".",
        ]
        run_step(command, HERE / "go", {"CGO_ENABLED": "0"})  # needs no C compiler

    return Program(command=[built_once("go", sources, build) / "send"])


def require(name: str, command: list[str], version: tuple[int, ...]) -> None:
    """Skip the test where a tool is missing or too old."""
    required = ".".join(map(str, version))
    if shutil.which(command[0]) is None:
        pytest.skip(f"{name} is not installed: install {name} {required} or newer")
    output = run_step(command, HERE)
    found = tuple(int(digits) for digits in re.findall(r"\d+", output))
    if found < version:
        pytest.skip(f"{name} is too old ({output}): install {required} or newer")


def built_once(name: str, sources: list[Path], make: Callable[[Path], None]) -> Path:
    """Return a folder built from these sources by the first process that needs it; others wait."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    done = CACHE / f"{name}-{digest[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            for old in CACHE.glob(f"{name}-*"):
                shutil.rmtree(old)
            making = CACHE / f"{name}-making"
            making.mkdir()
            make(making)
            making.rename(done)
    return done


def run_step(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Run a step of a build. Returns its output."""
    process = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
    )
    assert process.returncode == 0, f"{command} failed:\n{process.stdout}{process.stderr}"
    return process.stdout.strip()
