"""Browser pages that fail the test on console errors, and checks over a whole page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

AXE = Path(__file__).parents[3] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
TIMEOUT_MS = 120_000
"""Every wait follows a condition; this only bounds a failing test, also on a busy machine."""
POLL_MS = 50
expect.set_options(timeout=TIMEOUT_MS)

IS_IDLE = """() => document.querySelector(".busy.shown, .old, .stale") === null
    && document.getAnimations().every((each) => each.effect?.getTiming().iterations === Infinity
        || each.playState !== "running")"""

IS_CONTIGUOUS = """(list) => {
    const boxes = [...list.querySelectorAll("[role=listitem]")]
        .map((row) => row.getBoundingClientRect())
        .sort((one, other) => one.top - other.top);
    return boxes.slice(1).every((box, before) => Math.abs(box.top - boxes[before].bottom) < 1);
}"""

Theme = Literal["dark", "light"]
THEMES: tuple[Theme, ...] = ("dark", "light")


@contextmanager
def open_page(
    browser: Browser,
    url: str,
    *,
    width: int = 1280,
    height: int = 800,
    theme: Theme = "dark",
    allowed: tuple[str, ...] = (),
) -> Iterator[Page]:
    """Open a page in a fresh browser context at `url`.

    Fails at the end if a script threw, a request went to another server, or the console has an
    error or warning that contains none of the `allowed` words.
    """
    problems: list[str] = []
    context = browser.new_context(
        base_url=url,
        color_scheme=theme,
        viewport={"width": width, "height": height},
        timezone_id="UTC",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(w in message.text for w in allowed):
            problems.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        if not request.url.startswith((url, "data:", "blob:")):
            problems.append(f"request to another server: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: problems.append(f"uncaught: {error}"))
    page.on("request", on_request)
    try:
        yield page
    finally:
        context.close()
    assert not problems, "\n".join(problems)


def eventually(page: Page, holds: Callable[[], object]) -> None:
    """Wait until a condition holds that no locator can express, such as canvas pixels."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while not holds():
        assert time.monotonic() < deadline, "the condition never held"
        page.wait_for_timeout(POLL_MS)


def is_contiguous(rows: Locator) -> bool:
    """Return whether each row of a list begins where the row above it ends."""
    return bool(rows.evaluate(IS_CONTIGUOUS))


def accessibility_violations(page: Page) -> list[str]:
    """Return axe's violations once the page is idle: stale results are dimmed until then."""
    page.wait_for_function(IS_IDLE)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    report: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:300]}"
        for rule in report["violations"]
        for node in rule["nodes"]
    ]
