"""Checks of the page's code that need no browser: types, format, unit tests, generated types."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ui import generate_types

UI = Path(__file__).parents[2] / "ui"


@pytest.mark.parametrize("script", ["check", "test"])
def test_npm_script_passes(script: str) -> None:
    """Without a timeout: both finish, but a busy machine takes minutes."""
    if shutil.which("npm") is None or not (UI / "node_modules").is_dir():
        pytest.skip("no Node.js: the page was not built, and its unit tests are skipped")
    command = ["npm", "run", "--silent", script]
    result = subprocess.run(command, cwd=UI, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_generated_types_match_the_api() -> None:
    """If this fails, run `python ui/generate_types.py`."""
    assert generate_types.TARGET.read_text(encoding="utf-8") == generate_types.typescript()
