"""Saved views and queries: files on the node, shared by all browsers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page

ERRORS = "/logs?is=severity%3DERROR&columns=time&columns=body&from=3h"


@pytest.fixture(autouse=True)
def no_saved_files(node: Node) -> Iterator[None]:
    """Delete all saved files after each test."""
    yield
    for folder in ("views", "queries"):
        for path in (node.folder / folder).glob("*"):
            path.unlink()


def file_of(node: Node, path: str) -> Any:
    return json.loads((node.folder / path).read_text())


def find(page: Page, typed: str, kind: str) -> None:
    """Open a result of the palette."""
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill(typed)
    expect(page.get_by_role("option").first).to_contain_text(kind)
    page.keyboard.press("Enter")


def test_a_view_is_shared_renamed_linked_and_deleted(browser: Browser, node: Node) -> None:
    """With the keyboard where it is natural; another browser sees each change."""
    with (
        open_page(browser, node.url) as page,
        open_page(browser, node.url, allowed=("409",)) as other,
    ):
        page.goto(ERRORS)
        views = page.get_by_role("button", name="Views")
        views.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_label("View name")).to_be_focused()
        page.keyboard.type("What fails")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="What fails")).to_be_visible()
        assert file_of(node, "views/what-fails.json") == {
            "format": 1,
            "title": "What fails",
            "screen": "logs",
            "params": {"is": ["severity=ERROR"], "columns": ["time", "body"], "from": ["3h"]},
        }
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        expect(views).to_be_focused()

        other.goto("/services?from=2d")
        find(other, "what fails", "Saved view")
        expect(other).to_have_url(re.compile(r"/logs\?from=3h.*is=severity%3DERROR"))
        other.get_by_role("button", name="Views").click()
        other.get_by_role("button", name="Rename What fails").click()
        other.get_by_label("New name").fill("Errors")
        other.keyboard.press("Enter")
        expect(other.get_by_role("link", name="Errors")).to_be_visible()
        assert file_of(node, "views/what-fails.json")["title"] == "Errors"

        page.goto("/traces?errors=1")
        page.get_by_role("button", name="Views").click()
        expect(page.get_by_role("link", name="Errors")).to_have_attribute(
            "href", re.compile("/view/what-fails")
        )
        page.get_by_label("View name").fill("Errors")
        page.get_by_role("button", name="Replace").click()
        expect(page.get_by_role("dialog").get_by_text("Traces · from 1h")).to_be_visible()
        page.goto("/view/what-fails")
        expect(page).to_have_url(re.compile(r"/traces\?.*errors=1"))

        page.get_by_role("button", name="Views").click()
        page.get_by_role("button", name="Delete Errors").click()
        expect(page.get_by_text("Deleted Errors.")).to_be_visible()
        assert not (node.folder / "views/what-fails.json").exists()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("link", name="Errors")).to_be_visible()
        # The other browser has an old version: its change is refused, and shown what is there.
        other.get_by_role("button", name="Delete Errors").click()
        expect(other.get_by_role("alert")).to_contain_text("changed in the meantime")
        expect(other.get_by_text("Traces · from 1h")).to_be_visible()


def test_a_broken_view_file_breaks_nothing(browser: Browser, node: Node) -> None:
    folder = node.folder / "views"
    folder.mkdir(exist_ok=True)
    (folder / "broken.json").write_text('{"format": 1, "title": "x", "screen": "nowhere"}')
    right = {"format": 1, "title": "By hand", "screen": "logs", "params": {"q": ["cart"]}}
    (folder / "by-hand.json").write_text(json.dumps(right))
    with open_page(browser, node.url, allowed=("404",)) as page:
        page.goto("/logs")
        page.get_by_role("button", name="Views").click()
        dialog = page.get_by_role("dialog", name="Saved views")
        expect(dialog.get_by_text("views/broken.json")).to_contain_text("$.screen")
        dialog.get_by_role("link", name="By hand").click()
        expect(page).to_have_url(re.compile(r"/logs\?q=cart$"))
        page.goto("/view/broken")
        expect(page.get_by_role("alert")).to_contain_text("views/broken.json")
        page.goto("/view/nosuch")
        expect(page.get_by_role("alert")).to_contain_text("there is no view nosuch")


def test_a_query_is_shared_linked_and_found(browser: Browser, node: Node) -> None:
    text = "SELECT 40 + 2 AS answer_of_all"
    with open_page(browser, node.url) as page, open_page(browser, node.url) as other:
        page.goto("/sql")
        page.get_by_role("textbox").first.fill(text)
        page.get_by_role("button", name="History", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Query name").fill("The answer")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("link", name="The answer")).to_be_visible()
        saved = {"format": 1, "title": "The answer", "sql": text}
        assert file_of(node, "queries/the-answer.json") == saved

        other.goto("/logs")
        find(other, "the answer", "Saved query")
        expect(other.get_by_role("columnheader", name="answer_of_all")).to_be_visible()
        expect(other).to_have_url(re.compile("saved=the-answer"))
        # Longer than an address may be.
        long = text + " -- " + "x" * 9000
        (node.folder / "queries/the-answer.json").write_text(json.dumps({**saved, "sql": long}))
        other.goto("/sql?saved=the-answer")
        expect(other.get_by_role("columnheader", name="answer_of_all")).to_be_visible()
        other.get_by_role("button", name="History", exact=True).click()
        expect(other.get_by_label("Query name")).to_have_value("The answer")
        other.get_by_role("button", name="Delete The answer").click()
        expect(other.get_by_text("Deleted The answer.")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_saved_views_fit_a_phone_and_are_accessible(
    browser: Browser, node: Node, theme: Theme
) -> None:
    with open_page(browser, node.url, width=390, height=740, theme=theme) as page:
        page.goto(ERRORS)
        page.get_by_role("button", name="Views").click()
        page.get_by_label("View name").fill("A name that is much longer than the screen is wide")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("link", name="A name that")).to_be_in_viewport(ratio=1)
        page.get_by_role("button", name="Rename").click()
        expect(page.get_by_role("button", name="Cancel")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert accessibility_violations(page) == []
