"""promtool and Alertmanager, built from their Go modules into `.cache/rules`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).parents[3] / ".cache" / "rules"
GO = {"GOWORK": "off", "GOFLAGS": "-mod=mod"}
BUILD = ("go", "build", "-p=1", "-tags=remove_all_sd")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoProgram:
    """A program of a module. `missing`: files that the module does not contain, and its build
    wants: those of web pages."""

    module: str
    package: str
    missing: tuple[str, ...] = ()


PROMTOOL = GoProgram(module="github.com/prometheus/prometheus@v0.315.0", package="./cmd/promtool")
ALERTMANAGER = GoProgram(
    module="github.com/prometheus/alertmanager@v0.34.0",
    package="./cmd/alertmanager",
    missing=("ui/app/dist/index.html",),
)


def built(program: GoProgram) -> Path:
    """Return the path of a program. Building it takes minutes, once."""
    target = CACHE / Path(program.package).name
    if not target.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **GO}
        found = subprocess.run(
            ["go", "mod", "download", "-json", program.module],
            cwd=CACHE,
            env=environment,
            capture_output=True,
            check=True,
        )
        folder = _sources(program, Path(json.loads(found.stdout)["Dir"]))
        command = [*BUILD, "-o", str(target), program.package]
        subprocess.run(command, cwd=folder, env=environment, check=True)
    return target


def _sources(program: GoProgram, module: Path) -> Path:
    """Return the folder to build in: that of the module, which is read-only, or a copy with what
    is missing."""
    if not program.missing:
        return module
    copy = CACHE / module.name
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(module, copy, copy_function=shutil.copyfile)
    for folder in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
        folder.chmod(0o755)
    for path in program.missing:
        (copy / path).parent.mkdir(parents=True)
        (copy / path).write_text("<!doctype html>\n")
    return copy
