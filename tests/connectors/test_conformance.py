"""The suite that strangers run: the example passes it, and connectors that break the contract do
not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.connectors.installing import install

EXAMPLE = Path(__file__).parents[2] / "examples" / "connector" / "numbers_connector.py"
CODE_LINES_MAX = 60
MUTANTS = {
    "ignores positions": ("self.done = int(each.position)", "pass"),
    "is ahead of its position": ('position=b"%d" % end)', 'position=b"%d" % (end - 1))'),
}


def conformance(folder: Path, module: Path, *more: str) -> tuple[int, str]:
    path = install(folder / "site", module, {"numbers": "NUMBERS"})
    command = [sys.executable, "-m", "frazil.connectors.conformance", "numbers", "LAST=60", *more]
    ended = subprocess.run(
        [*command, "--folder", str(folder / "runs"), "--quiet-ms", "700", "--lives", "6"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_the_example_is_short_and_passes(tmp_path: Path) -> None:
    assert len(EXAMPLE.read_text().splitlines()) < CODE_LINES_MAX
    code, output = conformance(tmp_path, EXAMPLE)
    assert code == 0, output
    assert "killed at every step: every record once, in order" in output


@pytest.mark.parametrize("name", ["ignores positions", "is ahead of its position"])
def test_one_that_breaks_the_contract_fails(name: str, tmp_path: Path) -> None:
    before, after = MUTANTS[name]
    text = EXAMPLE.read_text()
    assert before in text
    module = tmp_path / "numbers_connector.py"
    module.write_text(text.replace(before, after))
    code, output = conformance(tmp_path, module)
    assert code == 1, output
    assert "FAIL" in output
