"""The volume screen: volume per service, growth and cost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, eventually, open_page
from tests.ui.helpers.responses import HOSTILE, alter_response, lake_status


def test_services_are_counted_by_signal(page: Page) -> None:
    """The table matches the API, with shares, growth and cardinality."""
    page.goto("/volume")
    volumes = page.request.get("/api/v1/volumes").json()["volumes"]
    logs = next(
        each["row_count"]
        for each in volumes
        if each["service"] == "gateway" and each["signal"] == "logs"
    )
    row = page.get_by_role("row").filter(has_text="gateway")
    expect(row.get_by_role("link").first).to_have_text(f"{logs:,}")
    expect(row).to_contain_text("new")
    expect(row).to_contain_text("%")
    expect(row.get_by_role("cell").nth(9)).to_have_text(re.compile(r"^\d+$"))
    expect(page.get_by_role("img", name=re.compile("Rows per .*, by service"))).to_be_visible()
    row.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"/logs\?is=service_name%3Dgateway"))


def test_the_selection_is_kept_in_the_address(page: Page) -> None:
    page.goto("/volume")
    page.get_by_role("combobox", name="Signal").select_option("metrics")
    expect(page).to_have_url(re.compile("signal=metrics"))
    row = page.get_by_role("row").filter(has_text="gateway")
    expect(row.get_by_role("link")).to_have_count(0)
    page.get_by_role("combobox", name="Group by").select_option("signal")
    expect(page.get_by_role("list", name="Legend")).to_have_text("metrics")
    page.get_by_role("combobox", name="Sort by").select_option("service")
    expect(page.get_by_role("row").nth(1)).to_contain_text("cart")
    page.reload()
    expect(page.get_by_role("list", name="Legend")).to_have_text("metrics")
    page.go_back()
    expect(page).not_to_have_url(re.compile("order="))


def test_a_price_per_gigabyte_gives_a_monthly_cost(page: Page) -> None:
    """From the measured bytes per row; unknown without a lake."""
    page.goto("/volume")
    cost = page.get_by_role("region", name="Storage cost")
    expect(cost).to_contain_text("This node has no lake")
    expect(cost).to_contain_text("unknown")
    weighed = lake_status()
    weighed["tables"] = [
        {**weighed["tables"][0], "table": table, "rows": 1000, "bytes": 40_000}
        for table in ("logs", "spans", "metrics")
    ]
    alter_response(page, "status", lambda found: found.update(lake=weighed))
    page.goto("/volume?price=1&keep=10")
    expect(cost).not_to_contain_text("unknown")
    shown = cost.locator(".result dd")
    before = float(shown.inner_text().replace(",", ""))
    cost.get_by_label("Price per GB and month").fill("10")
    expect(page).to_have_url(re.compile("price=10"))
    ten_times = pytest.approx(10 * before, rel=0.01)
    eventually(page, lambda: float(shown.inner_text().replace(",", "")) == ten_times)


def test_an_empty_time_range_links_to_the_start_page(page: Page) -> None:
    page.goto("/volume?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z")
    expect(page.get_by_text("No data in this time range.")).to_be_visible()
    page.get_by_role("link", name="send data").click()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with open_page(browser, node.url, theme=theme) as page:
        page.goto("/volume")
        expect(page.get_by_role("region", name="Storage cost")).to_be_visible()
        assert accessibility_violations(page) == []


def test_hostile_names_are_shown_as_text(browser: Browser, node: Node) -> None:
    """On a phone."""

    def rename(found: dict[str, Any]) -> None:
        for volume in found["volumes"]:
            if volume["service"] == "gateway":
                volume["service"] = HOSTILE

    with open_page(browser, node.url, width=360) as page:
        alter_response(page, "volumes*", rename)
        page.goto("/volume")
        expect(page.get_by_role("cell").get_by_text("<img src=x")).to_be_visible()
        assert page.evaluate("document.querySelectorAll('#screen img').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
