"""The page's own checks: types, format, and the tests of its parts that need no browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ui import generate_types

UI = Path(__file__).parents[2] / "ui"


@pytest.mark.parametrize("script", ["check", "test"])
def test_npm_is_content(script: str) -> None:
    if shutil.which("npm") is None or not (UI / "node_modules").is_dir():
        pytest.skip("there is no Node.js: the page was not built, and its parts are not tested")
    done = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=UI,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_knows_the_answers_of_this_api() -> None:
    """`python ui/generate_types.py` was run after the last change of an endpoint."""
    assert generate_types.TARGET.read_text(encoding="utf-8") == generate_types.typescript()
