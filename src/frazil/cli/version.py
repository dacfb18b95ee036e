"""Which Frazil this is: its version, and what it runs on."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from pathlib import Path

import frazil

COMMIT_CHARS = 12


class Version(argparse.Action):
    """`--version`: looked up only when somebody asks."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="which Frazil this is")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(version_text())
        parser.exit()


def version_text() -> str:
    """One line for a report: version, commit if it runs from a working copy, Python, system."""
    found = commit()
    built = "" if found is None else f"commit {found}, "
    return (
        f"frazil {frazil.__version__} ({built}Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()})"
    )


def commit() -> str | None:
    """The commit of the working copy that this file is in, if it is in one."""
    folder = Path(__file__).parents[3] / ".git"
    try:
        head = (folder / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name != head:
            head = (folder / name).read_text().strip()
    except OSError:
        return None  # installed, or the name is packed away
    return head[:COMMIT_CHARS]
