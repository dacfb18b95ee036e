"""Environments of their own for packages that few commands need, made on first use in `.cache`."""

from __future__ import annotations

import logging
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

CACHE = Path(__file__).parents[2] / ".cache"


def python_with(name: str, packages: Sequence[str]) -> Path:
    """Return the interpreter of an environment that has these packages."""
    folder = CACHE / name
    python, done = folder / "bin" / "python", folder / "packages"
    wanted = "\n".join(packages)
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        logger.warning("installing %s into %s", ", ".join(packages), folder)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        done.write_text(wanted, encoding="utf-8")
    return python
