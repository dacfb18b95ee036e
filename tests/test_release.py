"""What a release relies on: version, changelog, index of decisions, readable pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil import __version__

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINE_MAX = 120
UNBREAKABLE = re.compile(r"\s*(\||!?\[|- \[|https?://|<)")
"""Lines of tables, and lines that begin with a link."""


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines outside code blocks and tables."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not UNBREAKABLE.match(line):
            yield number, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_pages_are_short(page: Path) -> None:
    long = [number for number, line in prose(page.read_text()) if len(line) > LINE_MAX]
    assert not long, f"{page.relative_to(ROOT)}: wrap lines {long} at {LINE_MAX} characters"


def test_the_newest_version_in_the_changelog_is_the_package_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "Unreleased"
    version, date = headings[1].split(" - ")
    assert version == __version__
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date)


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    pages = sorted(path.name for path in folder.glob("0*.md"))
    assert re.findall(r"\((0\d+-[\w-]+\.md)\)", index) == pages
