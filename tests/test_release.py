"""What a release relies on: version, changelog, index of decisions."""

from __future__ import annotations

import re
from pathlib import Path

from frazil import __version__

ROOT = Path(__file__).parents[1]


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
