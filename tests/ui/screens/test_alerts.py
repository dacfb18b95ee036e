"""The alerts screen: what fires, rules in error, history, and the query of a rule as a chart."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.clients.node import Node
from tests.ui.conftest import HEIGHT, WIDTH
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page

RULES = """
groups:
  - name: one
    interval: 1s
    rules:
      - alert: Fires
        sql: SELECT 'a<b>' AS place, 2.5 AS value WHERE $time IS NOT NULL
        labels: {severity: page}
        annotations: {summary: "{{ $labels.place }} has {{ $value }}"}
      - alert: Waits
        sql: SELECT 1 AS value
        for: 1h
      - alert: Broken
        sql: SELECT 1 AS value FROM nowhere
"""


@pytest.fixture(scope="module")
def alerting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("alerting")
    (folder / "rules.yml").write_text(RULES)
    flags = ("--set", "lake.enabled=false", "--set", f"rules.files={folder / 'rules.yml'}")
    with Node(folder / "data", *flags) as started:
        yield started


def test_alerts_rules_and_history(browser: Browser, alerting: Node) -> None:
    with open_page(browser, alerting.url, width=WIDTH, height=HEIGHT) as page:
        page.goto("/alerts")
        row = page.get_by_role("row").filter(has_text="Fires")
        expect(row).to_contain_text("firing")
        expect(row).to_contain_text("a<b> has 2.5")
        expect(page.get_by_role("row").filter(has_text="Waits")).to_contain_text("pending")
        page.get_by_role("combobox", name="State").select_option("pending")
        expect(row).to_have_count(0)
        page.get_by_role("link", name="1 rule fails").click()
        broken = page.get_by_role("row").filter(has_text="Broken")
        expect(broken).to_contain_text("no table nowhere")
        page.goto("/alerts?show=history")
        expect(page.get_by_role("row").filter(has_text="Fires")).to_contain_text("firing")
        page.get_by_role("link", name="Fires").first.click()
        expect(page.get_by_role("region", name="Rule Fires")).to_contain_text("SELECT 'a<b>'")
        expect(page.get_by_role("img", name="Query of Fires")).to_be_visible()
        expect(page.get_by_role("img", name="Alerts of Fires")).to_be_visible()
        page.get_by_role("button", name="Close").click()
        expect(page).not_to_have_url(re.compile("rule="))


def test_a_node_without_rules_says_how_to_begin(page: Page) -> None:
    page.goto("/alerts")
    expect(page.get_by_role("region", name="No rules")).to_contain_text("rules/*.yml")


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible(browser: Browser, alerting: Node, theme: Theme) -> None:
    with open_page(browser, alerting.url, width=390, height=HEIGHT, theme=theme) as page:
        page.goto("/alerts?show=rules&rule=Fires")
        expect(page.get_by_role("img", name="Query of Fires")).to_be_visible()
        assert accessibility_violations(page) == []
