"""A page that is watched: whatever the browser complains about fails the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
TIMEOUT_MS = 20_000
"""For whatever is waited for, also on a machine that is busy otherwise."""
POLL_MS = 50
expect.set_options(timeout=TIMEOUT_MS)

CALM = """() => document.querySelector(".busy.shown, .old, .stale") === null
    && document.getAnimations().every((each) => each.effect?.getTiming().iterations === Infinity
        || each.playState !== "running")"""

SEAMLESS = """(list) => {
    const boxes = [...list.querySelectorAll("[role=listitem]")]
        .map((row) => row.getBoundingClientRect())
        .sort((one, other) => one.top - other.top);
    return boxes.slice(1).every((box, before) => Math.abs(box.top - boxes[before].bottom) < 1);
}"""

Theme = Literal["dark", "light"]
THEMES: tuple[Theme, ...] = ("dark", "light")


@contextmanager
def watched(
    browser: Browser,
    url: str,
    *,
    width: int = 1280,
    height: int = 800,
    theme: Theme = "dark",
    allowed: tuple[str, ...] = (),
) -> Iterator[Page]:
    """A page of its own at `url`, which may ask that node and nobody else.

    Fails in the end if a script threw, the console has an error or a warning without one of the
    `allowed` words in it, or anything was asked of another server.
    """
    complaints: list[str] = []
    context = browser.new_context(
        base_url=url,
        color_scheme=theme,
        viewport={"width": width, "height": height},
        timezone_id="UTC",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(w in message.text for w in allowed):
            complaints.append(f"console: {message.text}")

    def see(request: Request) -> None:
        if not request.url.startswith((url, "data:", "blob:")):
            complaints.append(f"asked elsewhere: {request.url}")

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(f"thrown: {error}"))
    page.on("request", see)
    try:
        yield page
    finally:
        context.close()
    assert not complaints, "\n".join(complaints)


def eventually(page: Page, holds: Callable[[], object]) -> None:
    """Wait for something that no locator can say: what is drawn, or true of many parts at once."""
    until = time.monotonic() + TIMEOUT_MS / 1000
    while not holds():
        assert time.monotonic() < until, "it never held"
        page.wait_for_timeout(POLL_MS)


def is_seamless(rows: Locator) -> bool:
    """Does each row of a list begin where the one above it ends?"""
    return bool(rows.evaluate(SEAMLESS))


def violations(page: Page) -> list[str]:
    """What axe has to say against the page, once nothing is awaited: old answers are shown dim."""
    page.wait_for_function(CALM)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['help']}: {node['html'][:300]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
