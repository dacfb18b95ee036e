"""The metrics screen: all five kinds over time, labels and exemplars."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from playwright.sync_api import Browser, Locator, Page, expect

import frazil
from tests.cli.commands.test_ask_a_node import wait_for
from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, eventually, open_page

DURATION = "http.server.request.duration"
KINDS = [
    ("process.memory.usage", "gauge", ["avg"], "MiB"),
    ("shop.orders", "counter", ["rate"], "/s"),
    ("shop.carts.open", "sum", ["sum"], ""),
    (DURATION, "histogram", ["p50", "p90", "p99"], "s"),
    ("db.client.operation.duration", "exp. histogram", ["p50", "p90", "p99"], "s"),
    ("payment_provider_latency_seconds", "summary", ["p50", "p90", "p99"], "s"),
]
EVIL = '<img src=x onerror="window.hacked=1">\u202e\x00"\'&{{7*7}}'
SEEN = 10
"""Minimum pixels of a line in its exact colour; most are antialiased."""
EXEMPLAR = "rgb(255, 212, 59)"
DOT = 40
"""Index of a pixel inside a dot, not at its edge."""
LINES = 60
"""More than the chart draws."""


def chart(page: Page) -> Locator:
    return page.get_by_role("img", name=re.compile("over time"))


def legend(page: Page) -> Locator:
    return page.get_by_role("group", name="Series").locator("tbody tr")


def places_of(page: Page, color: str) -> list[list[int]]:
    """Return the positions of a colour on the chart, in CSS pixels."""
    found: list[list[int]] = chart(page).evaluate(
        """(chart, color) => {
          const canvas = chart.querySelector("canvas");
          const { width, height } = canvas;
          const copy = Object.assign(document.createElement("canvas"), { width, height });
          const context = copy.getContext("2d", { willReadFrequently: true });
          context.drawImage(canvas, 0, 0);
          const data = context.getImageData(0, 0, width, height).data;
          const wanted = color.match(/\\d+/g).map(Number);
          const scale = canvas.getBoundingClientRect().width / width;
          const places = [];
          for (let i = 0; i < data.length; i += 4) {
            if (wanted.every((value, k) => Math.abs(data[i + k] - value) < 6) && data[i + 3] > 200)
              places.push([((i / 4) % width) * scale, Math.floor(i / 4 / width) * scale]);
          }
          return places;
        }""",
        color,
    )
    return found


def swatch(page: Page, row: int = 0) -> str:
    return str(
        legend(page)
        .nth(row)
        .locator(".swatch")
        .evaluate("(swatch) => getComputedStyle(swatch).backgroundColor")
    )


def test_metrics_are_listed_and_found_by_name_or_description(page: Page) -> None:
    page.goto("/explore")
    metrics = page.get_by_role("list", name="Metrics")
    expect(metrics.get_by_role("link", name=re.compile("shop.orders"))).to_contain_text("counter")
    expect(page.get_by_text("11 metrics")).to_be_visible()
    page.get_by_label("Search metrics").fill("not empty")
    expect(metrics.get_by_role("link")).to_have_count(1)
    expect(page).to_have_url(re.compile("search=not"))
    metrics.get_by_role("link", name=re.compile("shop.carts.open")).click()
    expect(page.get_by_role("heading", name="shop.carts.open")).to_be_visible()
    expect(page.get_by_label("Search metrics")).to_have_value("not empty")


@pytest.mark.parametrize(("name", "kind", "aggregates", "unit"), KINDS)
def test_every_metric_kind_is_charted(
    page: Page, name: str, kind: str, aggregates: list[str], unit: str
) -> None:
    """With its default aggregates, its unit, and visible pixels."""
    page.goto(f"/explore?metric={name}")
    expect(page.get_by_role("region", name="Metric", exact=True).locator("header")).to_contain_text(
        kind
    )
    choices = page.get_by_role("group", name="Aggregate")
    for aggregate in aggregates:
        pressed = choices.get_by_role("button", name=aggregate, exact=True)
        expect(pressed).to_have_attribute("aria-pressed", "true")
    expect(legend(page)).to_have_count(len(aggregates))
    expect(legend(page).first.locator("td").last).to_contain_text(re.compile(rf"\d.*{unit}"))
    eventually(page, lambda: len(places_of(page, swatch(page))) >= SEEN)
    has_rate = choices.get_by_role("button", name="rate", exact=True)
    expect(has_rate).to_have_count(0 if kind in ("gauge", "sum") else 1)
    assert_sql_runs(page, name)


def assert_sql_runs(page: Page, name: str) -> None:
    """Assert that the copied SQL and curl command work."""
    sql = copied(page, "SQL", "SELECT")
    assert name in sql
    said = page.request.post("/api/v1/sql", data={"sql": sql})
    assert said.status == 200, said.text()
    assert said.json()["rows"]
    for command in copied(page, "curl", "curl").splitlines():
        asked = page.request.get(command.removeprefix("curl '").removesuffix("'"))
        assert asked.status == 200, asked.text()


def copied(page: Page, what: str, word: str) -> str:
    page.get_by_role("button", name=f"Copy as {what}").click()
    has_it = f"async () => (await navigator.clipboard.readText()).includes('{word}')"
    page.wait_for_function(has_it)
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_quantiles_combine_and_other_aggregates_do_not(page: Page) -> None:
    page.goto(f"/explore?metric={DURATION}")
    expect(legend(page)).to_have_count(3)
    page.get_by_role("button", name="p95", exact=True).first.click()
    expect(legend(page)).to_have_count(4)
    expect(page).to_have_url(re.compile("agg=p50&agg=p90&agg=p95&agg=p99"))
    page.get_by_role("button", name="rate", exact=True).click()
    expect(legend(page)).to_have_count(1)
    expect(legend(page).locator("td").last).to_contain_text("/s")
    page.go_back()
    expect(legend(page)).to_have_count(4)


def test_labels_group_and_filter_and_survive_a_reload(page: Page) -> None:
    page.goto(f"/explore?metric={DURATION}&agg=rate")
    page.get_by_label("Group by a label").select_option("service_name")
    expect(legend(page)).to_have_count(5)
    labels = page.get_by_role("region", name="Labels")
    labels.get_by_role("button", name="Include resource.service.name checkout").click()
    expect(legend(page)).to_have_count(1)
    expect(legend(page)).to_contain_text("checkout")
    page.get_by_role("button", name=re.compile("^resource.service.name=checkout")).click()
    expect(legend(page)).to_have_count(5)
    page.get_by_label("Label to filter by").select_option("service_name")
    page.get_by_label("Operator").select_option("not")
    page.get_by_label("Value").fill("checkout")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(legend(page)).to_have_count(4)
    page.get_by_role("button", name="stacked").click()
    page.get_by_label("Step").select_option("1m")
    page.reload()
    expect(legend(page)).to_have_count(4)
    expect(page.get_by_role("button", name="stacked")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Step")).to_have_value("1m")
    expect(page.get_by_role("button", name="not service_name=checkout")).to_be_visible()


def test_a_legend_row_shows_one_line_alone(page: Page) -> None:
    page.goto(f"/explore?metric={DURATION}&agg=rate&by=service_name&exemplars=0")
    expect(legend(page)).to_have_count(5)
    first, second = swatch(page, 0), swatch(page, 1)
    legend(page).nth(1).get_by_role("button").click()
    expect(page).to_have_url(re.compile("only="))
    expect(legend(page).first).to_have_class(re.compile("off"))
    eventually(page, lambda: not places_of(page, first))
    assert len(places_of(page, second)) >= SEEN
    legend(page).nth(1).get_by_role("button").click()
    expect(page).not_to_have_url(re.compile("only="))


def test_exemplars_link_to_their_traces_from_list_and_chart(page: Page) -> None:
    page.goto(f"/explore?metric={DURATION}&agg=p99")
    exemplars = page.get_by_role("region", name="Exemplars")
    link = exemplars.get_by_role("link").first
    expect(link).to_have_attribute("href", re.compile(r"/trace/[0-9a-f]{32}\?.*span=[0-9a-f]{16}"))
    expect(legend(page)).to_have_count(1)
    eventually(page, lambda: len(places_of(page, EXEMPLAR)) > DOT)
    x, y = places_of(page, EXEMPLAR)[DOT]
    box = chart(page).locator("canvas").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + y)
    expect(page).to_have_url(re.compile(r"/trace/[0-9a-f]{32}\?.*span="))
    page.go_back()
    link.click()
    expect(page).to_have_url(re.compile(r"/trace/[0-9a-f]{32}\?.*span="))


def test_a_drag_over_the_chart_narrows_the_time_range(page: Page) -> None:
    page.goto("/explore?metric=process.cpu.utilization&from=30m")
    expect(legend(page)).to_have_count(1)
    box = chart(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=20.*&to=20"))
    page.go_back()
    expect(page).to_have_url(re.compile("from=30m"))


def test_a_metric_is_added_to_a_dashboard(page: Page) -> None:
    page.goto(f"/explore?metric={DURATION}&agg=p99&by=service_name")
    page.get_by_role("button", name="Add to dashboard").click()
    dialog = page.get_by_role("dialog", name="Add to dashboard")
    dialog.get_by_label("Panel title").fill("From the explorer")
    dialog.get_by_role("button", name="Add", exact=True).click()
    dialog.get_by_role("link", name="Open dashboard").click()
    panel = page.get_by_role("region", name="From the explorer")
    expect(panel.get_by_role("group", name="Series").locator("tbody tr")).to_have_count(5)
    name = urllib.parse.urlsplit(page.url).path.rpartition("/")[2]
    assert page.request.delete(f"/api/v1/dashboards/{name}").status == 200


def test_an_empty_result_says_what_to_do(page: Page) -> None:
    page.goto("/explore?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z&metric=shop.orders")
    expect(page.get_by_text("No metrics in this time range.")).to_be_visible()
    expect(page.get_by_text("No points of shop.orders")).to_be_visible()
    page.goto("/explore?metric=shop.orders&filter=service_name=nobody")
    expect(page.get_by_text("Remove a filter")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible_and_fits_a_phone(
    browser: Browser, node: Node, theme: Theme
) -> None:
    address = f"/explore?metric={DURATION}&by=service_name&filter=url.scheme=http"
    with open_page(browser, node.url, theme=theme) as page:
        page.goto(address)
        expect(
            page.get_by_role("region", name="Exemplars").get_by_role("link").first
        ).to_be_visible()
        expect(legend(page).first).to_be_visible()
        assert accessibility_violations(page) == []
        page.get_by_role("button", name="Add to dashboard").click()
        assert accessibility_violations(page) == []
    with open_page(browser, node.url, theme=theme, width=360, height=740) as page:
        page.goto(address)
        expect(legend(page).first).to_be_visible()
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 360


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with hostile metrics."""
    with Node(tmp_path_factory.mktemp("hostile") / "data", "--set", "lake.enabled=false") as node:
        send(node, hostile_metrics())
        wait_for(node, "SELECT 1 FROM metrics LIMIT 1000", LINES * 3)
        yield node


def hostile_metrics() -> ExportMetricsServiceRequest:
    now_ns = time.time_ns()
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    add(resource.resource.attributes, "service.name", EVIL)
    scope = resource.scope_metrics.add()
    for name in (EVIL, "many", "x" * 1000):
        metric = scope.metrics.add(name=name, unit=EVIL, description=EVIL * 50)
        for number in range(LINES):
            point = metric.gauge.data_points.add(
                time_unix_nano=now_ns - number * 1_000_000_000, as_double=number
            )
            add(point.attributes, "host", f"{EVIL}{number}")
            add(point.attributes, EVIL, "y" * 3000)
    return request


def add(attributes: Any, key: str, value: str) -> None:
    pair = attributes.add(key=key.replace("\x00", ""))
    pair.value.string_value = value.replace("\x00", "")


def send(node: Node, request: ExportMetricsServiceRequest) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", node.http_port, timeout=30)
    headers = {"Content-Type": "application/x-protobuf"}
    connection.request("POST", "/v1/metrics", request.SerializeToString(), headers)
    assert connection.getresponse().status == 200
    connection.close()


def test_hostile_names_and_labels_are_shown_as_text(browser: Browser, hostile: Node) -> None:
    """Nothing runs, no text direction changes, nothing overflows."""
    with open_page(browser, hostile.url) as page:
        page.goto("/explore")
        links = page.get_by_role("list", name="Metrics").get_by_role("link")
        expect(links).to_have_count(3)
        for number in range(3):
            links.nth(number).click()
            expect(legend(page).first).to_be_visible()
            expect(page.get_by_role("region", name="Labels")).to_contain_text("⟨U+202E⟩")
        page.get_by_label("Group by a label").select_option("host")
        expect(page.get_by_text("More than 50 series")).to_be_visible()
        expect(legend(page)).to_have_count(50)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img[src=x]").count() == 0
        assert "\u202e" not in page.locator("body").inner_text()
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 1280
        assert accessibility_violations(page) == []


def test_legend_values_match_the_api(page: Page, node: Node) -> None:
    page.goto("/explore?metric=shop.carts.open&agg=max")
    with page.expect_response(re.compile("metrics/query")) as asked:
        page.get_by_role("button", name="Refresh", exact=True).click()
    expect(legend(page)).to_have_count(1)
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(asked.value.url).query))
    answer = frazil.connect(node.url).get("/api/v1/metrics/query", query)
    assert json.loads(asked.value.text())["series"] == answer["series"]
    most = max(value for _, value in answer["series"][0]["values"])
    expect(legend(page).locator("td").nth(3)).to_have_text(f"{most:g}")


@pytest.mark.parametrize("theme", THEMES)
def test_a_histogram_is_drawn_as_a_heatmap(browser: Browser, node: Node, theme: Theme) -> None:
    """Its counts are those of the metric; the keyboard chooses cells, also on a phone."""
    with open_page(browser, node.url, width=390, height=760, theme=theme) as page:
        page.goto("/explore?metric=http.server.request.duration&from=1h")
        with page.expect_response(re.compile("metrics/heatmap")) as response:
            page.get_by_role("button", name="heatmap").click()
        cells = response.value.json()["cells"]
        heatmap = page.get_by_role("group", name="by bucket over time")
        heatmap.focus()
        page.keyboard.press("ArrowRight")
        expect(heatmap.get_by_role("status")).to_contain_text("values")
        expect(heatmap).to_have_attribute("aria-label", re.compile(r"[\d,]+ values"))
        assert cells
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert accessibility_violations(page) == []
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("from=20"))
    with open_page(browser, node.url) as page:
        page.goto("/explore?metric=process.memory.usage&look=heatmap")
        expect(page.get_by_role("button", name="bars")).to_be_visible()
        expect(page.get_by_role("button", name="heatmap")).to_have_count(0)
