"""Walks from the start page to the cause of the shop's failures."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

PRESSES_MAX = 80


def tab_to(page: Page, name: str) -> None:
    """Press Tab until an element with that name has the focus."""
    seen = []
    for _ in range(PRESSES_MAX):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        text = focused.inner_text() or focused.get_attribute("aria-label") or ""
        seen.append(text)
        if re.match(name, text):
            return
    raise AssertionError(f"{name} never got the focus; seen: {seen}")


def test_the_keyboard_leads_from_the_start_page_to_the_logs_of_a_failed_span(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Open trace").first).to_be_visible()
    tab_to(page, "Open trace")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/trace/[0-9a-f]{32}"))
    rows = page.get_by_role("treegrid")
    expect(rows.get_by_role("row").first).to_be_visible()
    for _ in range(PRESSES_MAX):  # until a failed span has logs
        page.keyboard.press("e")
        expect(page).to_have_url(re.compile("span=[0-9a-f]{16}"))
        page.keyboard.press("Enter")
        panel = page.get_by_role("region", name="Span", exact=True)
        expect(panel).to_contain_text("ERROR")
        tab_to(page, r"Logs( \d+)?$")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("show=logs"))
        if panel.get_by_label("Span logs").count():
            break
        page.keyboard.press("Escape")
    expect(panel.get_by_label("Span logs")).to_contain_text(re.compile("ERROR|WARN"))


def test_three_clicks_lead_from_the_start_page_to_the_cause(page: Page) -> None:
    """docs/page.md describes these steps."""
    page.goto("/")
    why = page.get_by_role("row").filter(has_text="no answer within 1500 ms").first
    why.get_by_role("link", name="Open trace").click()
    views = page.get_by_role("navigation", name="Trace views")
    views.get_by_role("link", name="Logs").click()
    line = page.locator("#screen").get_by_text("timed out").or_(page.get_by_text("no answer"))
    expect(line.first).to_be_visible()
    line.first.click()
    expect(page.get_by_role("region", name="Span", exact=True)).to_contain_text("payment")
