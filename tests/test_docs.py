"""What the documents show works: their Python runs, their make targets and links exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from frazil import cli
from tests.clients.node import Node

ROOT = Path(__file__).parent.parent
PAGES = [
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if not {"node_modules", ".venv"} & set(path.parts)
]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_example_runs(tmp_path: Path) -> None:
    """A newcomer starts a node, sends the first request with curl, stops it, and flushes; then he
    can paste every Python example of the pages, one after the other, in the same folder, and finds
    what he has sent."""
    (example,) = [text for text in blocks(ROOT / "README.md", "sh") if text.startswith("curl")]
    with Node(tmp_path / "data") as node:
        command = example.replace("4318", str(node.http_port))
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
        assert done.stdout.startswith("HTTP/1.1 200 OK"), done.stdout + done.stderr
        assert node.stop() == 0
    flush = [sys.executable, "-m", "frazil", "flush", "--data", "data"]
    done = subprocess.run(flush, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "logs: 1 rows, 0 dead letters\n", done.stdout + done.stderr
    pages = ["README.md", "docs/sql.md", "docs/otlp.md", "docs/operating.md", "docs/following.md"]
    said = [run_python(text, tmp_path) for page in pages for text in blocks(ROOT / page, "python")]
    assert len(said) >= 9
    assert said[0].startswith("2026-09-21 14:13:20+00:00 INFO hello\n")
    assert any('string_value: "hello"' in text for text in said)
    assert said[-2:] == ["0 0 hello\n", "1 rows, then offset 1\n"]


def run_python(text: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, text + done.stderr
    return done.stdout


def test_every_flag_in_the_pages_exists() -> None:
    """Every `frazil …` line of a page is one that the command understands."""
    lines = [
        shlex.split(line, comments=True)
        for page in PAGES
        for line in "\n".join(blocks(page, "sh")).splitlines()
        if line.startswith("frazil ")
    ]
    assert len(lines) >= 3
    for line in lines:
        assert cli.parser().parse_args(line[1:]).run


def test_every_make_target_exists() -> None:
    """Every `make …` a document names is a target."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"^\s*make ([a-z]+)", "\n".join(blocks(page, "sh")), re.M):
            assert target in targets, f"{page.name} names make {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """A relative link names a file that is there."""
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"
