"""Sources of others: fetched from a package registry, built once, kept in `.cache/judges`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CACHE = Path(__file__).parents[4] / ".cache" / "judges"
BUILD_SECONDS_MAX = 1800
OUTPUT_LINES_SHOWN = 30


def built(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that `make` has filled, now or in an earlier run."""
    folder = CACHE / name
    if not folder.exists():
        making = CACHE / f"{name}.making"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        make(making)
        making.rename(folder)
    return folder


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a step of a build. Returns its output."""
    if shutil.which(command[0]) is None and not command[0].startswith("."):
        raise SystemExit(f"{command[0]} is not installed: this judge needs it")
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_SHOWN:])
        raise SystemExit(f"{' '.join(command)} failed:\n{end}")
    return done.stdout
