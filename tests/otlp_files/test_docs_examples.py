"""Every command of docs/demo.md and docs/export-import.md works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from frazil import cli
from tests.clients.node import Node

DOCS = Path(__file__).parents[2] / "docs"
ENDLESS = "frazil demo"
"""The only command that runs until Ctrl-C."""


def commands(page: str) -> list[str]:
    (block,) = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    return [line.partition(" #")[0].strip() for line in block.splitlines()]


def test_every_command_of_the_pages_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "frazil.toml").write_text("[lake]\nenabled = false\n")
    lines = [*commands("demo.md"), *commands("export-import.md")]
    assert lines.count(ENDLESS) == 1
    with Node(tmp_path / "data", "--config", str(tmp_path / "frazil.toml")) as node:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{node.http_port}")
        monkeypatch.setenv("FRAZIL_URL", node.url)
        for line in lines:
            if line != ENDLESS:
                assert cli.main(shlex.split(line)[1:]) == 0, line
        assert node.stop() == 0
    assert (tmp_path / "all.jsonl").stat().st_size > (tmp_path / "errors.jsonl").stat().st_size
