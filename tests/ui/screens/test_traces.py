"""The traces screen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.clients.node import Node
from tests.ui.helpers.page import (
    THEMES,
    Theme,
    accessibility_violations,
    eventually,
    is_contiguous,
    open_page,
)
from tests.ui.helpers.spans import ODD_NAMES, send_odd_traces

DURATION = re.compile(r"([\d.]+) (ns|µs|ms|s|min)")
MS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1000.0, "min": 60_000.0}


def lines(page: Page) -> Locator:
    return page.get_by_role("list", name="Traces").get_by_role("link")


def durations_ms(page: Page) -> list[float]:
    shown = lines(page).locator(".figure").all_inner_texts()
    return [float(match[1]) * MS[match[2]] for text in shown if (match := DURATION.match(text))]


def all_between(page: Page, low: float, high: float) -> bool:
    shown = durations_ms(page)
    return bool(shown) and all(low <= ms <= high for ms in shown)


def asked_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


def change(page: Page, by: Callable[[list[dict[str, Any]]], None]) -> None:
    """Pass the traces of responses through `by`."""

    def answer(route: Route) -> None:
        response = route.fetch()
        found = response.json()
        by(found["traces"])
        route.fulfill(response=response, json=found)

    page.route(re.compile(r"/api/v1/traces\?"), answer)


def test_traces_are_listed_without_any_filter(page: Page) -> None:
    page.goto("/traces")
    first = lines(page).first
    expect(first).to_contain_text(re.compile(r"storefront|mailer"))
    expect(page.get_by_role("img", name="Trace durations over time")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="found in")).to_contain_text("traces")
    first.click()
    expect(page).to_have_url(re.compile(r"/trace/[0-9a-f]{32}"))
    page.go_back()
    expect(first).to_be_visible()


def test_facet_values_are_included_and_excluded(page: Page) -> None:
    page.goto("/traces")
    facets = page.get_by_role("complementary", name="Facets")
    facets.get_by_role("button", name=re.compile(r"^payment")).click()
    expect(page).to_have_url(re.compile("is=service_name%3Dpayment"))
    expect(lines(page).first).to_contain_text("POST /checkout")
    expect(lines(page).filter(has_not_text="POST /checkout")).to_have_count(0)
    # Other values of the facet are still listed.
    expect(facets.get_by_role("button", name=re.compile(r"^storefront"))).to_be_visible()
    page.get_by_role("button", name="Remove service_name=payment").click()
    expect(lines(page).filter(has_not_text="POST /checkout").first).to_be_visible()
    mailer = facets.get_by_role("button", name=re.compile("^mailer"))
    mailer.click()
    expect(lines(page).first).to_contain_text("process orders")
    facets.get_by_role("button", name="Exclude Service mailer").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("not=service_name%3Dmailer"))
    expect(lines(page).filter(has_text="process orders")).to_have_count(0)
    # An excluded value keeps its position.
    expect(mailer).to_have_text(re.compile(r"\b0$"))
    mailer.click(modifiers=["Alt"])
    expect(page).not_to_have_url(re.compile("not="))


def test_an_excluded_value_keeps_its_position_and_focus(page: Page) -> None:
    """The same key, or a click at the same position, removes the filter."""
    page.goto("/traces")
    facets = page.get_by_role("complementary", name="Facets")
    without = facets.get_by_role("button", name="Exclude Service gateway")
    without.focus()
    page.keyboard.press("Enter")
    expect(facets.get_by_role("button", name="gateway 0", exact=True)).to_be_visible()
    expect(without).to_be_focused()
    page.keyboard.press("Enter")
    expect(facets.get_by_role("button", name=re.compile(r"^gateway \S+K$"))).to_be_visible()
    expect(without).to_be_focused()
    expect(page).not_to_have_url(re.compile("not="))


def test_a_facet_can_be_added_and_removed(page: Page) -> None:
    page.goto("/traces")
    facets = page.get_by_role("complementary", name="Facets")
    facets.get_by_label("Add facet").fill("rpc.method")
    page.keyboard.press("Enter")
    expect(facets.get_by_role("button", name=re.compile("^Charge"))).to_be_visible()
    facets.get_by_role("button", name="Remove facet rpc.method").click()
    expect(facets.get_by_role("button", name=re.compile("^Charge"))).to_have_count(0)


def test_a_facet_lists_more_values_on_demand(page: Page) -> None:
    page.goto("/traces?facets=name")
    facets = page.get_by_role("complementary", name="Facets")
    values = facets.get_by_role("button", name=re.compile("^Exclude Operation"))
    other = facets.get_by_role("button", name=re.compile("^other"))
    expect(other).to_be_visible()
    expect(values).to_have_count(8)
    other.click()
    expect(values.nth(8)).to_be_visible()
    expect(other).to_have_count(0)  # the shop has fewer than a hundred
    facets.get_by_role("button", name="fewer").click()
    expect(values).to_have_count(8)


def test_a_missing_field_can_be_included_and_excluded(page: Page) -> None:
    page.goto("/traces?facets=http_route&q=GET+OR+render")
    facets = page.get_by_role("complementary", name="Facets")
    unset = facets.get_by_role("button", name=re.compile(r"^\(not set\)"))
    unset.click()
    box = page.get_by_role("combobox", name="Search spans")
    expect(box).to_have_value("(GET OR render) -http_route:*")
    expect(unset).to_have_attribute("aria-pressed", "true")
    expect(lines(page).first).to_be_visible()
    # The routes are still listed; selecting one replaces (not set).
    facets.get_by_role("button", name=re.compile(r"^.products.\{id\}")).click()
    expect(page).to_have_url(re.compile("is=http_route%3D"))
    expect(unset).to_have_attribute("aria-pressed", "false")
    without = facets.get_by_role("button", name="Exclude Route (not set)")
    without.click()
    expect(box).to_have_value("(GET OR render) http_route:*")
    expect(without).to_have_attribute("aria-pressed", "true")
    expect(lines(page).first).to_be_visible()
    without.click()
    expect(box).to_have_value("(GET OR render)")


def test_facet_names_are_suggested_and_a_facet_stays_collapsed(page: Page) -> None:
    page.goto("/traces")
    facets = page.get_by_role("complementary", name="Facets")
    added = facets.get_by_label("Add facet")
    added.focus()
    offered = facets.locator("datalist option")
    expect(offered.locator("xpath=self::*[@value='rpc.method']")).to_have_count(1)
    # The search box has aliases for some columns; filters do not.
    added.fill("status")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("facets=status_code$"))
    titles = ("Service", "Operation", "Kind", "Route", "HTTP status", "Status")
    expect(facets.get_by_role("heading")).to_have_text([re.compile(f".{t}$") for t in titles])
    kind = facets.get_by_role("button", name="Kind", exact=True)
    kind.click()
    expect(facets.get_by_role("button", name=re.compile("^SERVER"))).to_have_count(0)
    page.reload()
    expect(kind).to_have_attribute("aria-expanded", "false")
    expect(facets.get_by_role("button", name=re.compile("^UNSET"))).to_be_visible()


def test_traces_are_filtered_by_errors_and_root_spans(page: Page) -> None:
    page.goto("/traces")
    page.get_by_role("button", name="Only errors").click()
    expect(lines(page).first).to_contain_text("failed")
    expect(lines(page).filter(has_not_text="failed")).to_have_count(0)
    page.goto("/traces?is=service_name%3Dpayment")
    expect(lines(page).first).to_be_visible()
    page.get_by_role("button", name="Root spans only").click()
    expect(page.get_by_text("No traces found")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(lines(page).first).to_be_visible()


def test_traces_are_sorted_by_duration_and_errors(page: Page) -> None:
    page.goto("/traces")
    expect(lines(page).first).to_be_visible()
    page.get_by_role("button", name="Duration", exact=True).click()
    expect(page).to_have_url(re.compile("order=longest"))
    expect(lines(page).first.locator(".figure")).to_have_text(re.compile(r" s$"))
    eventually(page, lambda: durations_ms(page) == sorted(durations_ms(page), reverse=True))
    page.get_by_role("button", name="Errors", exact=True).click()
    expect(lines(page).first).to_contain_text("failed")
    page.reload()
    expect(page.get_by_role("button", name="Errors", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(lines(page).first).to_contain_text("failed")


def test_a_duration_range_can_be_typed(page: Page) -> None:
    page.goto("/traces")
    page.get_by_label("Minimum trace duration").fill("1.2s")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("min=1200"))
    expect(lines(page).first.locator(".figure")).to_have_text(re.compile(r" s$"))
    page.get_by_label("Maximum trace duration").fill("1600")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("max=1600"))
    eventually(page, lambda: all_between(page, 1195, 1605))
    page.get_by_label("Maximum trace duration").fill("soon")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("1.5s")


def test_a_drag_narrows_time_and_duration_together(page: Page) -> None:
    page.goto("/traces?from=30m")
    expect(lines(page).first).to_be_visible()
    before = page.url
    box = page.get_by_role("img", name="Trace durations").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 30
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 200, y + 60, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("min=.*max="))
    asked = asked_of(page)
    assert asked["from"][0] < asked["to"][0]
    expect(lines(page).first).to_be_visible()
    low, high = float(asked["min"][0]), float(asked["max"][0])
    expect(page.get_by_label("Minimum trace duration")).not_to_have_value("")
    eventually(page, lambda: all_between(page, low * 0.99, high * 1.01))
    page.go_back()
    expect(page).to_have_url(before)


def test_a_dot_shows_its_trace_and_a_click_opens_it(page: Page) -> None:
    """The longest trace stands alone, so its dot can be hit."""
    page.goto("/traces?from=30m&order=longest&errors=1&min=1000")
    first = lines(page).first
    expect(first).to_be_visible()
    page.locator("#screen").focus()
    page.keyboard.press("j")  # marks the same trace in the picture
    picture = page.get_by_role("img", name="Trace durations")
    box = picture.bounding_box()
    assert box is not None
    found = False
    for step in range(0, int(box["width"]) - 70, 3):
        for height in (12, 30, 48, 66, 84, 102):
            page.mouse.move(box["x"] + 58 + step, box["y"] + height)
            if picture.locator(".tip").count():
                found = True
                break
        if found:
            break
    assert found
    expect(picture.locator(".tip")).to_contain_text("with errors")
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"/trace/[0-9a-f]{32}"))


def test_scrolling_loads_more_pages(page: Page) -> None:
    page.goto("/traces")
    told = page.get_by_role("status").filter(has_text="loaded")
    expect(told).to_contain_text("50 loaded")
    rows = page.get_by_role("list", name="Traces")
    rows.evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(told).to_contain_text("100 loaded")


def test_a_trace_that_moved_to_a_later_page_is_listed_once(page: Page) -> None:
    """A new span moved it between two requests."""
    pages: list[list[dict[str, Any]]] = []

    def repeat(traces: list[dict[str, Any]]) -> None:
        pages.append(traces)
        if len(pages) > 1:
            traces[0] = pages[0][-1]

    change(page, repeat)
    page.goto("/traces")
    told = page.get_by_role("status").filter(has_text="loaded")
    expect(told).to_contain_text("50 loaded")
    rows = page.get_by_role("list", name="Traces")
    rows.evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(told).to_contain_text("99 loaded")


def test_the_list_is_navigated_by_keyboard(page: Page) -> None:
    page.goto("/traces")
    expect(lines(page).first).to_be_visible()
    page.locator("#screen").focus()
    page.keyboard.press("j")
    expect(lines(page).nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(lines(page).nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(lines(page).nth(0)).to_be_focused()
    trace = lines(page).nth(0).get_attribute("data-trace")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/trace/{trace}"))


def test_a_trace_keeps_focus_and_height_when_newer_ones_arrive(
    browser: Browser, node: Node
) -> None:
    """On a phone, failed traces have a higher row."""

    def fail(traces: list[dict[str, Any]]) -> None:
        traces[0]["error_count"] = 3

    def precede(traces: list[dict[str, Any]]) -> None:
        fail(traces)
        traces.insert(0, {**traces[0], "trace_id": "ab" * 16, "error_count": 0})

    with open_page(browser, node.url, width=360, height=740) as page:
        change(page, fail)
        page.goto("/traces")
        expect(lines(page).first).to_contain_text("3 failed")
        page.locator("#screen").focus()
        page.keyboard.press("j")
        expect(lines(page).nth(0)).to_be_focused()
        trace = str(lines(page).nth(0).get_attribute("data-trace"))
        change(page, precede)
        page.keyboard.press("r")
        expect(lines(page).nth(1)).to_have_attribute("data-trace", trace)
        expect(lines(page).nth(1)).to_be_focused()
        eventually(page, lambda: is_contiguous(page.get_by_role("list", name="Traces")))


def test_the_search_is_carried_into_the_trace(page: Page) -> None:
    page.goto("/traces")
    expect(lines(page).first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("service_name:payment status_code:ERROR")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=service_name%3Apayment"))
    expect(lines(page).first).to_contain_text("failed")
    expect(lines(page).filter(has_not_text="POST /checkout")).to_have_count(0)
    lines(page).first.click()
    expect(page).to_have_url(re.compile(r"/trace/[0-9a-f]{32}\?.*q=service_name%3Apayment"))


def test_an_invalid_search_shows_an_error(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, allowed=("400",)) as page:
        page.goto("/traces?q=duration_nano%3A%3Ex")
        expect(page.get_by_role("alert").first).to_be_visible()


def test_traces_are_filtered_by_two_services_on_their_path(page: Page) -> None:
    page.goto("/traces?through=checkout&through=payment")
    expect(lines(page).first).to_contain_text("POST /checkout")
    page.get_by_role("button", name="Remove through payment").click()
    expect(page).to_have_url(re.compile(r"\?through=checkout$"))


def test_an_empty_time_range_is_reported(page: Page) -> None:
    page.goto("/traces?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z")
    expect(page.get_by_text("No traces found")).to_be_visible()


def test_hidden_parts_send_no_requests(page: Page) -> None:
    page.goto("/traces")
    expect(lines(page).first).to_be_visible()
    page.get_by_role("button", name="Hide durations").click()
    page.get_by_role("button", name="Facets", exact=True).click()
    expect(page).to_have_url(re.compile("side=0.*dots=0"))
    expect(page.get_by_role("img", name="Trace durations")).to_have_count(0)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlparse(request.url).path))
    page.reload()
    expect(lines(page).first).to_be_visible()
    assert {path for path in asked if path.startswith("/api/")} == {"/api/v1/traces"}


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with open_page(browser, node.url, theme=theme) as page:
        page.goto("/traces?errors=1&is=service_name%3Dpayment&not=kind%3DSERVER")
        expect(lines(page).first).to_be_visible()
        facets = page.get_by_role("complementary", name="Facets")
        expect(facets).to_contain_text("Operation")
        facets.get_by_role("button", name="Kind", exact=True).click()
        assert accessibility_violations(page) == []


def test_the_screen_fits_a_phone(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, width=360, height=740) as page:
        page.goto("/traces")
        expect(lines(page).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator("#screen").evaluate("each => each.scrollWidth") <= 360


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with odd names."""
    folder: Path = tmp_path_factory.mktemp("odd") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        send_odd_traces(started)
        yield started


@pytest.mark.parametrize("screen", ["traces", "services", "services?tab=map", "services?tab=calls"])
def test_hostile_names_are_shown_as_text(browser: Browser, odd: Node, screen: str) -> None:
    """Nothing runs, no text direction changes, and every name is shown."""
    with open_page(browser, odd.url) as page:
        page.goto(f"/{screen}")
        shown = page.locator("#screen")
        expect(shown).to_contain_text("<img src=x onerror=")
        expect(shown).to_contain_text("__proto__")
        expect(shown).not_to_contain_text("\u202e")
        expect(page).not_to_have_title(re.compile("broken"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        if screen == "traces":
            expect(lines(page)).to_have_count(len(ODD_NAMES))
            facets = page.get_by_role("complementary", name="Facets")
            facets.get_by_role("button", name=re.compile("^<img")).first.click()
            expect(lines(page)).to_have_count(1)
