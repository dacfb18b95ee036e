"""promtool and Alertmanager, built from their Go modules into `.cache/rules`."""

from __future__ import annotations

import json
import os
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
    missing=("ui/app/dist/index.html", "ui/mantine-ui/dist/index.html"),
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
        # Its own folder is read-only, and has the go.sum that was tested.
        folder = Path(json.loads(found.stdout)["Dir"])
        overlay = CACHE / f"{target.name}-overlay.json"
        empty = CACHE / "empty.html"
        empty.write_text("<!doctype html>\n")
        files = {str(folder / path): str(empty) for path in program.missing}
        overlay.write_text(json.dumps({"Replace": files}))
        subprocess.run(
            [*BUILD, f"-overlay={overlay}", "-o", target, program.package],
            cwd=folder,
            env=environment,
            check=True,
        )
    return target
