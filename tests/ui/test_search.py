"""Finding things: fields as people type them, pasted trace ids, empty results, Ctrl+K."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

import frazil
from tests.clients.node import Node
from tests.ui.conftest import wait_until_queryable
from tests.ui.helpers.otlp import log, send_logs
from tests.ui.helpers.page import open_page

RANGE = "from=1h"


@pytest.fixture
def trace_id(node: Node) -> str:
    rows = frazil.connect(node.url).ask("SELECT min(trace_id) AS id FROM spans").to_pylist()
    return str(rows[0]["id"])


@pytest.mark.parametrize("query", ["service.name:checkout", "service.name=checkout severity>=INFO"])
def test_resource_attributes_are_found_by_their_plain_name(page: Page, query: str) -> None:
    page.goto(f"/logs?{RANGE}&q={quote(query)}")
    rows = page.get_by_label("Log records").get_by_role("listitem")
    expect(rows.first).to_contain_text("checkout")
    page.goto(f"/traces?{RANGE}&q={quote('host.name:* duration>100ms')}")
    expect(page.get_by_label("Traces").get_by_role("listitem").first).to_be_visible()


@pytest.mark.parametrize("way", ["address", "box", "traces address", "palette", "prefix"])
def test_a_pasted_trace_id_opens_the_trace(page: Page, trace_id: str, way: str) -> None:
    """Also outside the time range, in capitals, or the first digits of it."""
    if way == "address":
        page.goto(f"/trace/{trace_id[:20]}")
    elif way == "traces address":
        page.goto(f"/traces?from=5m&q={trace_id}")
    else:
        page.goto("/traces?from=5m")
        box = page.get_by_label("Search spans")
        expect(box).to_be_visible()
        if way == "palette":
            page.keyboard.press("Control+k")
            page.get_by_role("combobox", name="Find").fill(f"00-{trace_id}-{'ab' * 8}-01")
            expect(page.get_by_role("option").first).to_contain_text("Trace")
        else:
            box.fill(trace_id[:24].upper() if way == "prefix" else f" {trace_id} ")
        page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/trace/{trace_id}"))
    expect(page.get_by_role("treegrid").get_by_role("row").first).to_be_visible()


def test_a_misspelled_field_is_one_click_from_rows(page: Page) -> None:
    page.goto(f"/logs?{RANGE}&q=servce.name:checkout")
    status = page.get_by_role("status")
    expect(status.filter(has_text="No log record in this time range has the field")).to_be_visible()
    page.get_by_role("button", name="Did you mean service.name?").or_(
        page.get_by_role("button", name="Did you mean service_name?")
    ).first.click()
    expect(page).to_have_url(re.compile("q=service[._]name"))
    expect(page.get_by_label("Log records").get_by_role("listitem").first).to_be_visible()


def test_a_range_without_rows_leads_to_the_nearest_that_has_some(page: Page) -> None:
    page.goto("/traces?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z&q=service:payment")
    expect(page.get_by_text("No matching span in this time range")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Show 20")).click()
    expect(page.get_by_label("Traces").get_by_role("listitem").first).to_be_visible()


@pytest.mark.parametrize("screen", ["logs", "traces"])
def test_an_error_is_shown_once_without_an_old_count(
    browser: Browser, node: Node, screen: str
) -> None:
    with open_page(browser, node.url, allowed=("400",)) as page:
        page.goto(f"/{screen}?{RANGE}")
        count = page.get_by_text(re.compile(r"\d (records|loaded)"))
        expect(count).to_be_visible()
        page.get_by_role("main").get_by_role("combobox").first.fill("service:(cart")
        page.keyboard.press("Enter")
        error = page.get_by_text("this ( is not closed")
        expect(page.get_by_role("alert")).to_contain_text("this ( is not closed")
        expect(error).to_have_count(1)
        expect(count).to_have_count(0)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("ui-search") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        send_logs(
            started,
            [log("both", {"zone": "record"})],
            service="shop",
            resource={"zone": "resource", "k8s.pod.name": "shop-1"},
        )
        wait_until_queryable(started)
        yield started


def test_an_ambiguous_name_is_said(browser: Browser, other: Node) -> None:
    with open_page(browser, other.url) as page:
        page.goto("/logs?q=zone:record k8s.pod.name=shop-1")
        expect(page.get_by_label("Log records").get_by_role("listitem")).to_have_count(1)
        expect(page.get_by_role("note")).to_contain_text("attribute.zone or resource.zone")


def test_the_palette_finds_services_metrics_dashboards_and_views(
    browser: Browser, node: Node
) -> None:
    with open_page(browser, node.url) as page:
        page.goto(f"/logs?{RANGE}&q=service:payment")
        page.get_by_role("button", name="Views").click()
        page.get_by_label("View name").fill("Payment logs")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="Payment logs")).to_be_visible()
        page.goto("/dashboards")
        page.get_by_role("button", name="New dashboard").first.click()
        page.get_by_label("Title").fill("Palette board")
        page.get_by_role("button", name="Create").click()
        expect(page).to_have_url(re.compile("/dashboard/"))
        for typed, kind, address in (
            ("checkout", "Service", "/services.*open=checkout"),
            ("payment logs", "Saved view", "/logs.*payment"),
            ("palette board", "Dashboard", "/dashboard/"),
            ("http.server.request", "Metric", "/explore.*http.server.request.duration"),
        ):
            page.keyboard.press("Control+k")
            page.get_by_role("combobox", name="Find").fill(typed)
            expect(page.get_by_role("option").first).to_contain_text(kind)
            page.keyboard.press("Enter")
            expect(page).to_have_url(re.compile(address))
