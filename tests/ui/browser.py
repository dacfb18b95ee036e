"""Find or install Chromium. `python -m tests.ui.browser` installs it if it can."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

HEADLESS = "chromium-headless-shell"
"""Debian's build without windows; it starts faster and needs less CPU than `chromium`."""
NAMES = (HEADLESS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = (HEADLESS, "chromium")
"""Tried in this order: older releases of Debian lack the first."""
SKIPPED = "browser tests of the web page are skipped"


def browser_path() -> str | None:
    """Return the path of a browser. FRAZIL_CHROMIUM overrides the search."""
    override = os.environ.get("FRAZIL_CHROMIUM")
    return override or next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Launch a headless browser."""
    # Chromium's sandbox does not run as root, as in a container.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=flags)
        try:
            yield browser
        finally:
            browser.close()


def main() -> int:
    """Install a browser from Debian's packages. A failure is reported, but is no error."""
    if browser_path() is not None:
        return 0
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"no Chromium found, and this user cannot install it: {SKIPPED}", file=sys.stderr)
        return 0
    print("installing Chromium from Debian's packages", file=sys.stderr)
    install = ("install", "--yes", "--no-install-recommends")
    if not _apt_get("update") or not any(_apt_get(*install, name) for name in PACKAGES):
        print(f"Chromium could not be installed: {SKIPPED}", file=sys.stderr)
    return 0


def _apt_get(*arguments: str) -> bool:
    command = ["apt-get", "--quiet=2", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
