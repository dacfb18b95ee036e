"""The version of Frazil and of the system it runs on."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from pathlib import Path

import frazil

COMMIT_CHARS = 12


class Version(argparse.Action):
    """`--version`: computed only when used."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(version_text())
        parser.exit()


def version_text() -> str:
    """Return version, commit (in a working copy), Python and system, in one line."""
    head = commit()
    built = "" if head is None else f"commit {head}, "
    return (
        f"frazil {frazil.__version__} ({built}Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()})"
    )


def commit() -> str | None:
    """Return the commit of the working copy that contains this file, if any."""
    folder = Path(__file__).parents[3] / ".git"
    try:
        head = (folder / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name != head:
            head = (folder / name).read_text().strip()
    except OSError:
        return None  # installed as a package, or the ref is packed
    return head[:COMMIT_CHARS]
