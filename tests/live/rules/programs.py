"""promtool and Alertmanager, built from their Go modules into `.cache/rules`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

CACHE = Path(__file__).parents[3] / ".cache" / "rules"
PROMTOOL = ("github.com/prometheus/prometheus@v0.315.0", "./cmd/promtool")
ALERTMANAGER = ("github.com/prometheus/alertmanager@v0.34.0", "./cmd/alertmanager")
GO = {"GOWORK": "off", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
FLAGS = ("-trimpath", "-ldflags=-s -w", "-tags=remove_all_sd,builtinassets")


def built(program: tuple[str, str]) -> Path:
    """Return the path of a program. Building it takes minutes, once."""
    module, package = program
    target = CACHE / Path(package).name
    if not target.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **GO}
        found = subprocess.run(
            ["go", "mod", "download", "-json", module],
            env=environment,
            capture_output=True,
            check=True,
        )
        # Its own folder is read-only, and has the go.sum that was tested.
        subprocess.run(
            ["go", "build", "-mod=readonly", *FLAGS, "-o", str(target), package],
            cwd=json.loads(found.stdout)["Dir"],
            env={**environment, "GOFLAGS": ""},
            check=True,
        )
    return target
