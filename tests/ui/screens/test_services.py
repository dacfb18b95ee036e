"""The services screen: failures, RED metrics and the service map."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page

SERVICES = 9
"""Services of the shop."""
NOWHERE = "\u2013"
"""Shown when the failure began in another row."""


def table(page: Page) -> Locator:
    return page.get_by_role("tabpanel").get_by_role("table").first


def names(page: Page) -> list[str]:
    return [text.strip() for text in table(page).locator("tbody th").all_inner_texts()]


def test_a_failure_links_to_its_cause(page: Page) -> None:
    """Root causes come first, with a message and a trace."""
    page.goto("/services")
    fails = page.get_by_role("region", name="Top errors")
    cause = fails.get_by_role("row").filter(has_text="no answer within 1500 ms")
    expect(cause).to_contain_text("payment")
    expect(fails.get_by_role("row").nth(1)).not_to_contain_text(NOWHERE)
    cause.get_by_role("link", name="Last trace").click()
    expect(page).to_have_url(re.compile(r"/trace/[0-9a-f]{32}\?q=status_code%3AERROR"))
    page.go_back()
    cause.get_by_role("link", name="All").click()
    expect(page).to_have_url(re.compile(r"/traces\?is=service_name%3Dpayment&is=name%3DPOST"))
    expect(page.get_by_role("list", name="Traces").get_by_role("link").first).to_contain_text(
        "POST /checkout"
    )


def test_all_failures_are_listed_on_demand(page: Page) -> None:
    page.goto("/services")
    fails = page.get_by_role("region", name="Top errors")
    expect(fails.get_by_role("row")).to_have_count(7)
    fails.get_by_role("button", name=re.compile("Show all")).click()
    expect(page).to_have_url(re.compile("all=1"))
    # Failures caused by a callee have no origin.
    passed_on = (
        fails.get_by_role("row").filter(has_text="shop.Payment/Charge").filter(has_text=NOWHERE)
    )
    expect(passed_on.first).to_be_visible()


def test_every_service_has_rate_errors_and_durations(page: Page) -> None:
    page.goto("/services")
    expect(table(page).locator("tbody tr")).to_have_count(SERVICES)
    payment = table(page).get_by_role("row").filter(has_text="payment")
    expect(payment).to_contain_text("%")
    expect(payment).to_contain_text("ms")
    for label in (
        "Requests per second of payment",
        "Error rate of payment",
        "p95 latency of payment",
    ):
        line = payment.get_by_role("img", name=f"{label} over time").locator(".line")
        expect(line).to_have_attribute("d", re.compile("(L.*){6}"))
    healthy = table(page).get_by_role("row").filter(has_text="recommendation")
    expect(healthy.get_by_role("img")).to_have_count(2)


def test_deployments_are_marked_on_charts(page: Page) -> None:
    """On the sparklines of the service, and with version and time on every chart."""
    page.goto("/services")
    checkout = table(page).get_by_role("row").filter(has_text="checkout")
    rate = checkout.get_by_role("img", name="Requests per second of checkout")
    expect(rate.locator(".mark")).to_have_count(4)
    payment = table(page).get_by_role("row").filter(has_text="payment")
    expect(payment.locator(".mark")).to_have_count(0)
    deployed = re.compile(r"checkout 1\.8\.0 deployed at [\d:]{8}, after 1\.7\.4")
    page.goto("/traces")
    expect(page.get_by_role("img", name="Trace durations")).to_have_attribute(
        "aria-label", deployed
    )
    page.goto("/logs")
    chart = page.get_by_role("img", name="Records over time")
    expect(chart).to_have_attribute("aria-label", deployed)
    expect(chart).to_have_attribute("aria-label", re.compile("catalogue 3.9.0"))
    page.goto("/logs?is=service_name%3Dcheckout")
    expect(chart).to_have_attribute("aria-label", deployed)
    expect(chart).not_to_have_attribute("aria-label", re.compile("catalogue"))


def test_services_are_sorted_and_filtered_by_name(page: Page) -> None:
    page.goto("/services")
    expect(table(page).locator("tbody tr")).to_have_count(SERVICES)
    assert names(page)[0].endswith("payment"), "the largest share of errors"
    page.get_by_role("button", name="Service", exact=True).click()
    column = page.get_by_role("tabpanel").get_by_role("columnheader", name="Service")
    expect(column).to_have_attribute("aria-sort", "ascending")
    assert names(page) == sorted(names(page))
    page.get_by_role("button", name="Service", exact=True).click()
    expect(page).to_have_url(re.compile("sort=name&up=1"))
    assert names(page) == sorted(names(page), reverse=True)
    page.keyboard.press("/")
    page.keyboard.type("CART")
    expect(table(page).locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("name=CART"))
    page.keyboard.type("x")
    page.get_by_role("link", name="Show all").click()
    expect(table(page).locator("tbody tr")).to_have_count(SERVICES)


def test_a_service_expands_to_its_operations(page: Page) -> None:
    page.goto("/services")
    page.get_by_role("button", name="checkout").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("open=checkout"))
    inside = page.locator("td.inside")
    expect(inside.get_by_role("link", name="POST /orders", exact=True)).to_be_visible()
    expect(inside).to_contain_text("the order has no price")
    page.reload()
    inside.get_by_role("link", name="POST /orders", exact=True).click()
    expect(page).to_have_url(
        re.compile(r"/traces\?is=service_name%3Dcheckout&is=name%3DPOST\+%2Forders")
    )
    page.go_back()
    page.get_by_role("button", name="checkout").click()
    expect(inside).to_have_count(0)


def test_two_versions_of_a_service_are_compared(page: Page) -> None:
    """The failed deployment shows: error rate, attributes, and a new log pattern."""
    page.goto("/services?open=checkout")
    page.get_by_label("Compare", exact=True).select_option(label="1.7.4 \u2192 1.8.0")
    expect(page).to_have_url(re.compile("compare=version"))
    shown = page.get_by_role("region", name="Comparison")
    rate = shown.get_by_role("row", name=re.compile("^Error rate [\\d.]+ % 1[\\d.]+ %"))
    expect(rate.locator(".error")).to_have_text(re.compile(r"^\+[\d,]+ %$"))
    value = shown.get_by_role("row").filter(has_text="http.response.status_code")
    expect(value.filter(has=page.get_by_role("link", name="500"))).to_have_count(1)
    pattern = shown.get_by_role("row").filter(has_text="index out of range [<*>]")
    expect(pattern).to_contain_text("1.8.0")
    page.reload()
    pattern.get_by_role("link").click()
    expect(page).to_have_url(re.compile("/logs"))
    expect(page.get_by_text("index out of range").first).to_be_visible()
    page.go_back()
    page.get_by_label("Compare", exact=True).select_option(label="Previous period")
    expect(shown.get_by_role("columnheader", name="Previous period").first).to_be_visible()


def test_a_service_links_to_its_traces_and_logs(page: Page) -> None:
    page.goto("/services?from=3h")
    page.get_by_role("link", name="Traces of payment").click()
    expect(page).to_have_url(re.compile(r"/traces\?from=3h&is=service_name%3Dpayment"))
    page.go_back()
    page.get_by_role("link", name="Logs of payment").click()
    expect(page).to_have_url(re.compile(r"/logs\?from=3h&is=service_name%3Dpayment"))


def test_the_map_has_every_service_and_every_call(page: Page) -> None:
    page.goto("/services")
    page.get_by_role("tab", name="Map").click()
    drawn = page.get_by_role("group", name="Services and their calls")
    expect(drawn.locator("a.service")).to_have_count(SERVICES)
    call = drawn.get_by_role("link", name=re.compile("^checkout calls payment"))
    expect(call.locator("title")).to_have_text(re.compile(r"per second, [\d.]+ % errors, p95 "))
    left = drawn.get_by_role("link", name=re.compile("^checkout sends messages to mailer"))
    expect(left.locator(".line")).to_have_css("stroke-dasharray", re.compile(r"\d"))
    steady = drawn.get_by_role("link", name=re.compile("^gateway calls recommendation"))
    ink = "each => getComputedStyle(each).stroke"
    assert call.locator(".line").evaluate(ink) != steady.locator(".line").evaluate(ink)
    call.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/traces\?through=checkout&through=payment"))
    page.go_back()
    drawn.get_by_role("link", name=re.compile("^payment:")).click()
    expect(page).to_have_url(re.compile("open=payment"))
    expect(page.locator("td.inside")).to_contain_text("no answer within 1500 ms")


def test_the_map_zooms_pans_and_fits(page: Page) -> None:
    page.goto("/services?tab=map")
    moved = page.get_by_role("group", name="Services and their calls").locator("> g")
    expect(moved).to_have_attribute("transform", re.compile("scale"))
    whole = moved.get_attribute("transform") or ""
    page.get_by_role("button", name="Zoom in").click()
    expect(moved).not_to_have_attribute("transform", whole)
    page.keyboard.press("0")
    expect(moved).to_have_attribute("transform", whole)
    box = page.get_by_role("group", name="Services and their calls").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] - 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + box["height"] - 60)
    page.mouse.up()
    expect(moved).not_to_have_attribute("transform", whole)
    page.get_by_role("button", name="Fit").click()
    expect(moved).to_have_attribute("transform", whole)


def test_calls_are_listed_as_a_table(page: Page) -> None:
    page.goto("/services?tab=calls")
    call = page.get_by_role("row").filter(has_text="checkout").filter(has_text="payment").last
    expect(call).to_contain_text("%")
    call.get_by_role("link", name="Traces through checkout and payment").click()
    expect(page).to_have_url(re.compile(r"/traces\?through=checkout&through=payment"))


def test_an_empty_time_range_is_reported(page: Page) -> None:
    page.goto("/services?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z")
    expect(page.get_by_text("No services in this time range.")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with open_page(browser, node.url, theme=theme) as page:
        page.goto("/services?open=checkout&all=1&compare=previous")
        expect(page.locator("td.inside")).to_contain_text("Attributes that differ most")
        expect(page.locator("td.inside")).to_contain_text("Max latency")
        assert accessibility_violations(page) == []
        page.get_by_role("tab", name="Map").click()
        expect(page.locator("a.service").first).to_be_visible()
        assert accessibility_violations(page) == []
        page.get_by_role("tab", name="Dependencies").click()
        through = page.get_by_role("link", name=re.compile("^Traces through"))
        expect(through.first).to_be_visible()
        assert accessibility_violations(page) == []


def test_the_screen_fits_a_phone(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, width=360, height=740) as page:
        for address in ("/services?open=checkout", "/services?tab=map", "/services?tab=calls"):
            page.goto(address)
            expect(page.get_by_role("region", name="Top errors")).to_be_visible()
            assert page.locator("#screen").evaluate("each => each.scrollWidth") <= 360


def test_services_have_the_same_colour_in_every_browser(browser: Browser, node: Node) -> None:
    """Whatever a browser has seen before, and in whichever order."""
    chips = "() => Object.fromEntries([...document.querySelectorAll('th[scope=row]')].map((row) =>"
    chips += " [row.innerText.trim(), row.querySelector('.swatch').style.background]))"
    found = []
    for first in ("/logs?q=service:payment", "/volume?by=service"):
        with open_page(browser, node.url) as page:
            page.goto(first)
            expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
            page.goto("/services")
            expect(page.locator("th[scope=row]").nth(8)).to_be_visible()
            found.append(page.evaluate(chips))
            assert page.evaluate("localStorage.getItem('frazil.services')") is None
    assert found[0] == found[1]
    assert len(found[0]) == len(set(found[0].values())) == 9
