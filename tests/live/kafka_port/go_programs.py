"""franz-go and sarama: a small program each, built once."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.clients.programs import built_once, require, run_step

SOURCES = Path(__file__).parent / "go"
GO = (1, 26)
"""As in `go/go.mod`."""
CHECKS = ("produce", "codecs", "group", "transactions", "admin")
PROGRAMS = {"franz": (*CHECKS, "group-848"), "sarama": CHECKS}
"""What each can do without a login."""
RUN_SECONDS_MAX = 180


def program(name: str) -> Path:
    """Return a program; its modules are those of `go.sum`, by hash. Skips without Go."""
    require("Go", ["go", "env", "GOVERSION"], GO)
    sources = [SOURCES / "go.mod", SOURCES / "go.sum", *sorted(SOURCES.glob("*/main.go"))]

    def build(folder: Path) -> None:
        command: list[str | Path] = ["go", "build", "-mod=readonly", "-buildvcs=false"]
        packages = [f"./{each}" for each in PROGRAMS]
        run_step([*command, "-o", folder, *packages], SOURCES, {"CGO_ENABLED": "0"})

    return built_once("kafka-go", sources, build) / name


def run_checks(
    name: str, address: str, *checks: str, environment: Mapping[str, str] | None = None
) -> str:
    """Run checks of a program; all must pass. Returns the version of the library."""
    command = [str(program(name)), address, *checks]
    done = subprocess.run(
        command,
        env=dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout.strip()
