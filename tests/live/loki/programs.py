"""Loki and logcli, built from the Go module. They run as processes of their own; nothing of them is
read or linked.

The module has `replace` directives, which `go install` refuses: so a module of ours repeats them.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.clients.programs import built_once

MODULE = "github.com/grafana/loki/v3"
VERSION = "v3.7.8"
BUILD_S = 3600
PROGRAMS = ("logcli", "loki")
HERE = Path(__file__).parent


def program(name: str) -> Path:
    """Return the path of `logcli` or `loki`, built on first use: this takes many minutes."""
    assert name in PROGRAMS
    folder = built_once(name, [HERE / "programs.py"], lambda out: _build(name, out))
    return folder / name


def _build(name: str, folder: Path) -> None:
    """Build a program into `folder`."""
    module = folder / "module"
    module.mkdir(parents=True)
    facts = json.loads(_go(module, "mod", "download", "-json", f"{MODULE}@{VERSION}"))
    text = Path(facts["GoMod"]).read_text(encoding="utf-8")
    replaces = re.findall(r"^\s*(?:replace\s+)?(\S+(?: \S+)? => \S+ v\S+)", text, re.MULTILINE)
    version = re.search(r"^go (\S+)", text, re.MULTILINE)
    assert version is not None
    lines = [
        "module built",
        f"go {version[1]}",
        f"require {MODULE} {VERSION}",
        *(f"replace {one}" for one in replaces),
    ]
    (module / "go.mod").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (module / "tools.go").write_text(
        f'//go:build tools\n\npackage built\n\nimport _ "{MODULE}/cmd/{name}"\n', encoding="utf-8"
    )
    _go(module, "mod", "tidy", "-e")
    _go(module, "build", "-mod=mod", "-o", str(folder / name), f"{MODULE}/cmd/{name}")


def _go(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["go", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
