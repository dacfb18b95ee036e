"""Checks of the page's code that need no browser: types, format, unit tests, generated types, and
whether the build in git is the build of these sources."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ui import build, generate_types

UI = Path(__file__).parents[2] / "ui"


def require_npm() -> None:
    if shutil.which("npm") is None or not (UI / "node_modules").is_dir():
        pytest.skip("no Node.js, or no ui/node_modules: the page cannot be built or checked here")


@pytest.mark.parametrize("script", ["check", "test"])
def test_npm_script_passes(script: str) -> None:
    """Without a timeout: both finish, but a busy machine takes minutes."""
    require_npm()
    command = ["npm", "run", "--silent", script]
    result = subprocess.run(command, cwd=UI, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_page_in_git_is_built_from_these_sources() -> None:
    """Also without Node.js, which only the next test needs."""
    assert build.is_up_to_date(), "the page is older than ui/: run `make ui`, commit what it builds"


def test_a_build_gives_the_bytes_in_git(tmp_path: Path) -> None:
    """Nobody has edited them, and nothing of this machine is in them."""
    require_npm()
    build.build(tmp_path / "built")
    built = {path.name: path for path in build.BUILT.rglob("*") if path.is_file()}
    assert built.pop(".made-from").is_file()
    again = {path.name: path for path in (tmp_path / "built").rglob("*") if path.is_file()}
    assert built.keys() == again.keys()
    assert [name for name in built if built[name].read_bytes() != again[name].read_bytes()] == []


def test_generated_types_match_the_api() -> None:
    """If this fails, run `python ui/generate_types.py`."""
    assert generate_types.TARGET.read_text(encoding="utf-8") == generate_types.typescript()
