"""The page below a path prefix, and on a node that requires a token."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.clients.node import Node
from tests.ui.helpers.page import open_page
from tests.ui.helpers.proxy import below_a_path

TOKEN = "a-secret-of-some-length"


def test_the_page_works_below_a_path_prefix(browser: Browser, node: Node) -> None:
    with below_a_path(node.api_port) as url, open_page(browser, url, allowed=("404",)) as page:
        page.goto(f"{url}/logs?from=1h")
        screens = page.get_by_role("navigation", name="Screens")
        screens.get_by_role("link", name="Pipeline").click()
        expect(page).to_have_url(re.compile(f"^{re.escape(url)}/pipeline"))
        page.reload()
        expect(page.get_by_role("heading", name="Pipeline", level=1)).to_be_visible()
        page.goto(f"{url}/trace/{'ab' * 16}?span=1")  # deeper, and reloaded
        expect(page.get_by_role("heading", name="Trace", level=1)).to_be_visible()
        screens.get_by_role("link", name="SQL").click()
        expect(page).to_have_url(re.compile(f"^{re.escape(url)}/sql"))


def test_the_page_asks_for_a_token_and_sends_it(browser: Browser, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    options = ("--set", "lake.enabled=false", "--set", f"serve.token_file={tokens}")
    with (
        Node(tmp_path / "data", *options) as closed,
        open_page(browser, closed.url, allowed=("401",)) as page,
    ):
        page.goto("/pipeline")
        dialog = page.get_by_role("dialog", name="Token")
        expect(dialog.get_by_role("alert")).to_be_hidden()
        dialog.get_by_label("Token").fill("a-wrong-token")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("Wrong token")
        dialog.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        page.reload()
        expect(page.get_by_role("heading", name="Pipeline", level=1)).to_be_visible()
        expect(dialog).to_be_hidden()
        _assert_sends(page, TOKEN)


def _assert_sends(page: Page, token: str) -> None:
    with page.expect_request("**/api/v1/status") as request:
        page.reload()
    assert request.value.headers["authorization"] == f"Bearer {token}"
