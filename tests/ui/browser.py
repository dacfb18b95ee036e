"""Chromium: is it here? `python -m tests.ui.browser` installs it, where it may."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "chromium"
SKIPPED = "the tests of the web page in a browser are skipped"


def found() -> str | None:
    """The path of a browser; FRAZIL_CHROMIUM names another."""
    named = os.environ.get("FRAZIL_CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    # As root, as in a container, it runs only without its sandbox.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found(), args=flags)
        try:
            yield browser
        finally:
            browser.close()


def main() -> int:
    """Install it from Debian's packages, if it is not here. It may fail: the tests then say so."""
    if found() is not None:
        return 0
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"there is no Chromium, and it cannot be installed here: {SKIPPED}", file=sys.stderr)
        return 0
    print("installing Chromium from Debian's packages", file=sys.stderr)
    steps = (["update"], ["install", "--yes", "--no-install-recommends", PACKAGE])
    for step in steps:
        command = ["apt-get", "--quiet=2", *step]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        if subprocess.run(command, env=environment, check=False).returncode != 0:
            print(f"`{' '.join(command)}` failed: {SKIPPED}", file=sys.stderr)
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
