"""The frame of every screen: navigation, time range, shortcuts, command palette, theme."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

import frazil
from tests.clients.node import Node
from tests.ui.helpers.page import IS_IDLE, THEMES, Theme, accessibility_violations, open_page


def test_links_and_browser_history_switch_screens(page: Page) -> None:
    page.goto("/logs")
    page.get_by_role("link", name="Traces").click()
    expect(page).to_have_url(re.compile("/traces"))
    page.get_by_role("link", name="SQL").click()
    expect(page.get_by_role("heading", name="SQL", level=1)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Traces", level=1)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Logs", level=1)).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Traces", level=1)).to_be_visible()


def test_the_time_range_is_kept_across_screens(page: Page) -> None:
    page.goto("/logs?from=3h")
    expect(page.get_by_role("button", name="Last 3 hours")).to_be_visible()
    page.get_by_role("link", name="Traces").click()
    expect(page.get_by_role("button", name="Last 3 hours")).to_be_visible()
    page.keyboard.press("T")
    page.get_by_role("button", name="Last 6 hours").click()
    expect(page).to_have_url(re.compile("from=6h"))
    page.go_back()
    expect(page.get_by_role("button", name="Last 3 hours")).to_be_visible()


def test_a_time_range_can_be_typed_and_is_validated(page: Page) -> None:
    page.goto("/logs")
    page.keyboard.press("T")
    page.get_by_label("From").fill("yesterday")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="how long ago")).to_be_visible()
    page.get_by_label("From").fill("2026-01-02 03:04")
    page.get_by_label("To", exact=True).fill("2026-01-02 04:04")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("from=2026-01-02T03%3A04%3A00.000Z"))
    expect(page.get_by_role("button", name="2026-01-02 03:04:00 to")).to_be_visible()


def test_shortcuts_switch_screens_and_are_listed(page: Page) -> None:
    page.goto("/logs")
    expect(page.get_by_role("heading", name="Logs", level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page).to_have_url(re.compile("/sql"))
    page.locator("#screen").focus()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("go to Logs")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_the_command_palette_runs_a_command(page: Page) -> None:
    page.goto("/logs")
    expect(page.get_by_role("heading", name="Logs", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill("theme light")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_an_unknown_address_shows_an_error(page: Page) -> None:
    page.goto("/no/such/page")
    expect(page.get_by_role("alert")).to_contain_text("Page not found")


def test_the_time_picker_works_with_the_keyboard(page: Page) -> None:
    """T opens it, Escape closes it and returns the focus, days are chosen with arrow keys."""
    page.goto("/logs?from=2026-03-10T00:00:00Z&to=2026-03-11T00:00:00Z")
    expect(page.get_by_role("heading", name="Logs", level=1)).to_be_visible()
    page.keyboard.press("T")
    dialog = page.get_by_role("dialog", name="Choose a time range")
    expect(page.get_by_label("From")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="2026-03-10 00:00:00 to")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_label("10 March 2026").focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("From")).to_have_value("2026-02-11 00:00:00")
    page.get_by_role("button", name="Apply").press("Enter")
    expect(page).to_have_url(re.compile("from=2026-02-11T00.*to=2026-02-19T00"))


def test_a_copied_link_has_an_absolute_range(page: Page) -> None:
    for path in ("/logs?from=3h", "/pipeline"):
        page.goto(path)
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        link = page.evaluate("() => navigator.clipboard.readText()")
        if "logs" in path:
            assert re.search(r"/logs\?from=\d{4}-.*&to=\d{4}-", link), link
        else:
            assert link.endswith("/pipeline")


def test_home_is_the_first_screen_of_the_navigation(page: Page) -> None:
    page.goto("/logs")
    links = page.get_by_role("navigation").get_by_role("listitem")
    expect(links.first).to_have_text("Home")


SCREENS = (
    "/",
    "/logs",
    "/traces",
    "/services",
    "/services?tab=map",
    "/services?tab=calls",
    "/explore?metric=http.server.request.duration",
    "/dashboards",
    "/topics",
    "/sql?q=SELECT+*+FROM+spans+LIMIT+5",
    "/pipeline",
    "/lake",
    "/volume",
    "/trace/{trace}",
)
OVERFLOW = """() => Math.max(...[document.documentElement, document.getElementById("screen")]
    .map((box) => box.scrollWidth - box.clientWidth))"""


@pytest.mark.parametrize("width", [1024, 390])
def test_no_screen_is_wider_than_the_window(browser: Browser, node: Node, width: int) -> None:
    found = frazil.connect(node.url).ask("SELECT min(trace_id) AS id FROM spans").to_pylist()
    with open_page(browser, node.url, width=width) as page:
        for path in SCREENS:
            page.goto(path.format(trace=found[0]["id"]))
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            page.wait_for_load_state("networkidle")
            page.wait_for_function(IS_IDLE)
            assert page.evaluate(OVERFLOW) <= 0, path


@pytest.mark.parametrize("theme", THEMES)
def test_dialogs_are_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with open_page(browser, node.url, theme=theme) as page:
        page.goto("/logs")
        expect(page.get_by_role("heading", name="Logs", level=1)).to_be_visible()
        page.keyboard.press("T")
        assert accessibility_violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        assert accessibility_violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        assert accessibility_violations(page) == []
