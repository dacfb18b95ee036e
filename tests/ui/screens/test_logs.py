"""The logs screen: find records, read them, and go on from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.cli.commands.test_ask_a_node import wait_for
from tests.clients.node import Node
from tests.ui.helpers.otlp import log, send_logs
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, eventually, open_page

ERRORS = "/logs?is=severity%3DERROR"


def lines(page: Page) -> Locator:
    return page.get_by_role("list", name="Log records", exact=True).get_by_role("listitem")


def search(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Search logs")


def record_count(page: Page) -> int:
    """Return the number of matching records, once the page has counted them."""
    status = page.get_by_role("status").filter(has_text=re.compile(r"^[\d,]+ records?$"))
    return int((status.text_content() or "").split()[0].replace(",", ""))


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_records_are_grouped_into_patterns(page: Page) -> None:
    """With counts and a trend; a pattern leads to its records."""
    page.goto("/logs?is=service_name%3Dcatalogue")
    page.get_by_role("button", name="Patterns").click()
    expect(page).to_have_url(re.compile("patterns=1"))
    shown = page.get_by_role("region", name="Patterns")
    row = shown.get_by_role("row").filter(has_text="slow query: <*> ms, no index was used")
    expect(row).to_contain_text("WARN")
    count = row.get_by_role("cell").nth(1).inner_text()
    expect(row.get_by_role("img", name="Records over time")).to_be_visible()
    row.get_by_role("link", name="slow query").click()
    expect(page.get_by_label("Search logs")).to_have_value(
        'service:"catalogue" "slow query" "ms no index was used"'
    )
    expect(page.get_by_text(f"{count} records")).to_be_visible()


def test_the_histogram_narrows_the_time_range_and_can_be_hidden(page: Page) -> None:
    page.goto("/logs?from=30m")
    severities = page.get_by_role("group", name="Severities")
    expect(severities.get_by_role("button", name="ERROR")).to_be_visible()

    def is_counted() -> bool:
        counts = re.findall(r"[\d,]+", severities.text_content() or "")
        return sum(int(count.replace(",", "")) for count in counts) == record_count(page)

    eventually(page, is_counted)
    chart = page.get_by_role("img", name="Records over time, by severity")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("from=20.*to=20"))
    expect(lines(page).first).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile("from=30m"))
    page.get_by_role("button", name="Histogram").click()
    expect(chart).to_be_hidden()
    page.reload()
    expect(lines(page).first).to_be_visible()
    expect(chart).to_be_hidden()


def test_facet_values_are_included_excluded_and_added_as_columns(page: Page) -> None:
    page.goto("/logs")
    facets = page.get_by_role("complementary", name="Facets")
    facets.get_by_role("button", name=re.compile(r"^checkout \S+$")).click()
    expect(page).to_have_url(re.compile("is=service_name%3Dcheckout"))
    expect(lines(page).first).to_contain_text("checkout")
    # Other services are still counted and can be added.
    facets.get_by_role("button", name=re.compile(r"^cart \S+$")).click()
    expect(page.get_by_role("group", name="Filters")).to_contain_text("cart")
    facets.get_by_role("button", name=re.compile(r"^INFO")).click(modifiers=["Alt"])
    expect(page).to_have_url(re.compile("not=severity%3DINFO"))
    expect(lines(page).filter(has_text="INFO")).to_have_count(0)
    page.get_by_role("button", name="Remove filter not severity: INFO").click()
    expect(page).not_to_have_url(re.compile("not="))
    facets.get_by_role("button", name="Exclude Service checkout").click()
    expect(page).to_have_url(re.compile("not=service_name%3Dcheckout"))
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Add facet").fill("resource.service.version")
    page.keyboard.press("Enter")
    added = facets.get_by_role("button", name="service.version", exact=True)
    expect(added).to_be_visible()
    facets.get_by_role("button", name="service.version as a column").click()
    expect(page.get_by_role("group", name="Columns")).to_contain_text("service.version")
    expect(lines(page).first).to_contain_text(re.compile(r"\d+\.\d+\.\d+"))
    added.click()
    expect(added).to_have_attribute("aria-expanded", "false")


def test_unlisted_facet_values_are_counted_as_other(page: Page) -> None:
    page.goto("/logs?facets=k8s_pod_name")
    facets = page.get_by_role("complementary", name="Facets")
    other = facets.get_by_role("button", name=re.compile("^other"))
    values = facets.get_by_role("button", name=re.compile("^Exclude"))
    expect(other).to_be_visible()
    shown = values.count()
    other.click()
    expect(values.nth(shown)).to_be_visible()


def test_a_missing_field_can_be_included_and_excluded(page: Page) -> None:
    page.goto("/logs?facets=exception.type")
    facets = page.get_by_role("complementary", name="Facets")
    unset = facets.get_by_role("button", name=re.compile(r"^\(not set\)"))
    unset.click()
    expect(search(page)).to_have_value("-exception.type:*")
    expect(unset).to_have_attribute("aria-pressed", "true")
    # Other values are still counted.
    expect(facets.get_by_role("button", name=re.compile("^Exclude"))).not_to_have_count(1)
    unset.click(modifiers=["Alt"])
    expect(search(page)).to_have_value("exception.type:*")
    expect(lines(page).first).to_contain_text("ERROR")
    unset.click(modifiers=["Alt"])
    expect(search(page)).to_have_value("")
    expect(unset).to_have_attribute("aria-pressed", "false")


def test_the_search_box_completes_searches_and_marks_errors(page: Page) -> None:
    page.goto("/logs")
    expect(lines(page).first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("servi")
    suggestions = page.get_by_role("listbox", name="Completions").get_by_role("option")
    # Suggestions for "s" and "se" come first, and may begin with another field.
    expect(suggestions.first).to_have_text(re.compile("^service"))
    expect(suggestions.filter(has_text=re.compile("^service_name "))).to_be_visible()
    page.keyboard.press("Tab")
    expect(search(page)).to_have_value(re.compile(r"^service\w*:$"))
    expect(suggestions.filter(has_text=re.compile("^checkout"))).to_be_visible()
    search(page).fill("service_name:")
    page.keyboard.type("pay")
    expect(suggestions).to_have_count(1)
    expect(suggestions).to_contain_text("payment")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(search(page)).to_have_value("service_name:payment ")
    page.keyboard.type("severity:>=ERROR provider")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=service_name%3Apayment"))
    expect(lines(page).first).to_contain_text("provider did not answer")
    search(page).fill("payment (timeout")
    wrong = page.locator(".search u")
    expect(wrong).to_have_text("(timeout")
    expect(search(page)).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".search .error")).to_contain_text("not closed")


def test_the_same_query_is_shown_as_sql(page: Page) -> None:
    page.goto("/logs?q=order&is=service_name%3Dcheckout")
    page.get_by_role("button", name="SQL").click()
    text = page.get_by_label("Query as SQL")
    expect(text).to_have_value(re.compile(r"matches\(body, 'order'\)"))
    expect(text).to_have_value(re.compile("service_name = 'checkout'"))
    text.fill("SELECT 1")
    page.get_by_role("link", name="Run as SQL").click()
    expect(page).to_have_url(re.compile("/sql"))
    assert query(page)["q"] == ["SELECT 1"]


def test_a_record_opens_in_place_and_its_values_become_filters(page: Page) -> None:
    page.goto(ERRORS + "&is=service_name%3Dpayment")
    lines(page).first.click(position={"x": 300, "y": 10})
    record = page.get_by_role("group", name="Record details")
    expect(record.get_by_label("Body")).to_contain_text("HttpTimeoutException")
    # A stack trace is truncated and can be expanded.
    folded = record.get_by_label("Body").inner_text().count("\n")
    record.get_by_role("button", name=re.compile(r"Show \d+ more lines")).first.click()
    eventually(page, lambda: record.get_by_label("Body").inner_text().count("\n") > folded)
    expect(page).to_have_url(re.compile("open="))
    page.reload()
    expect(record).to_be_visible()
    record.get_by_role("button", name="Copy JSON").click()
    expect(record.get_by_text("Copied")).to_be_visible()
    copied: dict[str, Any] = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied["service_name"] == "payment"
    nano = copied["time_unix_nano"]
    record.get_by_role("button", name="Raw JSON").click()
    expect(record.get_by_label("Record as JSON")).to_contain_text(str(nano))
    record.get_by_role("button", name="Raw JSON").click()
    record.get_by_role("button", name="Include host.name").click()
    expect(page).to_have_url(re.compile("is=resource.host.name"))
    expect(record).to_be_visible()
    record.get_by_role("button", name="Exclude service.version").click()
    expect(page).to_have_url(re.compile("not=resource.service.version"))
    # The open record no longer matches, but stays readable.
    expect(page.get_by_text("does not match the search")).to_be_visible()
    expect(record).to_be_visible()


def test_lines_wrap_and_column_widths_survive_a_reload(page: Page) -> None:
    page.goto(ERRORS + "&is=service_name%3Dpayment")
    row = lines(page).first
    expect(row).to_be_visible()
    narrow = row.bounding_box()
    page.get_by_role("button", name="Wrap").click()
    expect(page).to_have_url(re.compile("wrap=1"))
    assert narrow is not None
    eventually(page, lambda: (row.bounding_box() or narrow)["height"] > narrow["height"])
    edge = page.get_by_role("separator", name="Width of service")
    edge.focus()
    page.keyboard.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuenow", "132")
    box = edge.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 53, box["y"] + 8, steps=3)
    page.mouse.up()
    expect(edge).to_have_attribute("aria-valuenow", "182")
    page.reload()
    expect(edge).to_have_attribute("aria-valuenow", "182")


def test_a_record_leads_to_surrounding_logs_and_its_trace(page: Page) -> None:
    page.goto(ERRORS + "&is=service_name%3Dpayment")
    lines(page).first.click(position={"x": 300, "y": 10})
    record = page.get_by_role("group", name="Record details")
    record.get_by_role("button", name="same service").click()
    around = record.get_by_role("list", name="Context").get_by_role("listitem")
    expect(around.nth(8)).to_be_visible()
    expect(around.filter(has_text="INFO").first).to_be_visible()
    expect(around.filter(has_not_text="payment")).to_have_count(0)
    record.get_by_role("button", name="everything").click()
    expect(around.filter(has_not_text="payment").first).to_be_visible()
    page.reload()
    expect(around.filter(has_not_text="payment").first).to_be_visible()
    record.get_by_role("link", name="Open trace").click()
    expect(page).to_have_url(re.compile(r"/trace/[0-9a-f]{32}\?.*span=[0-9a-f]{16}"))


def test_the_list_is_navigated_by_keyboard(page: Page) -> None:
    page.goto(ERRORS)
    expect(lines(page).first).to_be_visible()
    page.locator("#screen").focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("o")
    record = page.get_by_role("group", name="Record details")
    expect(lines(page).first.locator(record)).to_be_visible()
    page.keyboard.press("Escape")
    expect(record).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(lines(page).nth(1).locator(record)).to_be_visible()
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile("/trace/"))
    page.go_back()
    expect(record).to_be_visible()


def test_all_rows_are_reached_in_both_orders(page: Page) -> None:
    """The list is longer than a page; its last row is the first one in the other order."""
    page.goto("/logs")
    shown = page.get_by_role("list", name="Log records", exact=True)
    expect(
        page.get_by_role("status").filter(has_text=re.compile(r"^[\d,]+ records"))
    ).to_be_visible()
    count = record_count(page)
    assert count > 2000
    shown.focus()
    page.keyboard.press("End")
    last = shown.locator(f"[aria-posinset='{count}']")
    expect(last).not_to_have_text("…")
    text = last.text_content()
    page.get_by_role("button", name="Newest first").click()
    first = shown.locator("[aria-posinset='1']")
    expect(first).to_have_text(str(text))


def test_a_link_to_a_record_far_down_scrolls_to_it(page: Page) -> None:
    page.goto("/logs")
    shown = page.get_by_role("list", name="Log records", exact=True)
    expect(
        page.get_by_role("status").filter(has_text=re.compile(r"^[\d,]+ records"))
    ).to_be_visible()
    shown.focus()
    page.keyboard.press("End")
    last = shown.get_by_role("listitem").last
    expect(last).not_to_have_text("…")
    page.keyboard.press("Enter")
    record = page.get_by_role("group", name="Record details")
    expect(record).to_be_visible()
    page.reload()
    expect(record).to_be_in_viewport()


def test_an_empty_result_offers_to_remove_the_filters(page: Page) -> None:
    page.goto("/logs?q=nosuchwordanywhere&is=service_name%3Dcart")
    expect(page.get_by_text("No log records found")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(lines(page).first).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with open_page(browser, node.url, theme=theme, allowed=("400",)) as page:
        page.goto(ERRORS + "&not=service_name%3Dmailer&sql=1")
        expect(lines(page).first).to_be_visible()
        expect(page.get_by_role("complementary", name="Facets")).to_be_visible()
        lines(page).first.click(position={"x": 300, "y": 10})
        page.get_by_role("button", name="same service").click()
        expect(page.get_by_role("list", name="Context")).to_be_visible()
        assert accessibility_violations(page) == []
        page.goto("/logs?tail=1&q=(wrong")
        expect(page.locator(".search .error")).to_be_visible()
        assert accessibility_violations(page) == []


def test_the_screen_fits_a_phone(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, width=360, height=740) as page:
        page.goto("/logs")
        expect(lines(page).first).to_be_visible()
        page.get_by_role("button", name="Facets").click()
        expect(page.get_by_role("complementary", name="Facets")).to_be_visible()
        lines(page).first.click(position={"x": 200, "y": 10})
        expect(page.get_by_role("group", name="Record details")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.fixture(scope="module")
def own_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that tests may write to."""
    folder = tmp_path_factory.mktemp("ui_logs") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        yield started


def test_live_tail_pauses_and_catches_up(browser: Browser, own_node: Node) -> None:
    with open_page(browser, own_node.url) as page:
        page.goto("/logs?tail=1&is=service_name%3Dticker&q=tick")
        status = page.get_by_role("status")
        expect(status.filter(has_text="Live")).to_be_visible()
        tailed = page.get_by_role("list", name="Live log records")
        send_logs(own_node, [log(f"tick {n}") for n in range(100)], service="ticker")
        send_logs(own_node, [log("tick of another")], service="other")
        expect(tailed.get_by_text("tick 99")).to_be_in_viewport()
        page.get_by_role("button", name="Pause").click()
        send_logs(own_node, [log("tick paused"), log("not asked for")], service="ticker")
        expect(page.get_by_role("button", name="1 new")).to_be_visible()
        expect(tailed.get_by_text("tick paused")).to_be_hidden()
        page.get_by_role("button", name="1 new").click()
        expect(tailed.get_by_text("tick paused")).to_be_in_viewport()
        # Scrolling up pauses the tail.
        tailed.hover()
        page.mouse.wheel(0, -400)
        expect(status.filter(has_text="Paused")).to_be_visible()
        send_logs(own_node, [log("tick unseen")], service="ticker")
        expect(page.get_by_role("button", name="1 new")).to_be_visible()
        page.mouse.wheel(0, 4000)
        expect(tailed.get_by_text("tick unseen")).to_be_in_viewport()
        expect(status.filter(has_text="Live")).to_be_visible()
        expect(tailed.get_by_text("another")).to_have_count(0)
        # Skipped records are counted.
        send_logs(own_node, [log(f"tick fast {n}") for n in range(2000)], service="ticker")
        expect(status.filter(has_text="arrived too fast")).to_be_visible()
        expect(tailed.get_by_text("tick fast 1999")).to_be_in_viewport()


def test_live_tail_reconnects_after_a_restart(browser: Browser, own_node: Node) -> None:
    with open_page(browser, own_node.url, allowed=("ERR_", "503")) as page:
        page.goto("/logs?tail=1&is=service_name%3Dreturner&side=0")
        status = page.get_by_role("status")
        expect(status.filter(has_text="Live")).to_be_visible()
        own_node.stop()
        expect(status.filter(has_text="Reconnecting")).to_be_visible()
        own_node.start()
        send_logs(own_node, [log("back again")], service="returner")
        expect(page.get_by_text("back again")).to_be_visible()


HOSTILE = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "javascript:window.hacked=1",
    "</pre><svg/onload=window.hacked=1>",
    "{@html window.hacked=1} {{window.hacked=1}} ${window.hacked=1}",
    "\x1b[31;1mred\x1b[0m \x1b]8;;javascript:window.hacked=1\x07click\x1b]8;;\x07",
    "evil\u202egpj.exe \u2066\u200b\ufeff",
    "nul \0 bell \x07 back \x08",
    "quote \" apostrophe ' back\\slash `tick` a=b",
    "line one\nline two\r\nline three\ttab",
    '{"a": {"__proto__": {"x": 1}}, "constructor": "y"}',
    "A" * 1_000_000,
)


def test_hostile_records_are_shown_as_text(browser: Browser, own_node: Node) -> None:
    """Hostile text in any field never runs, and the screen keeps working."""
    for text in HOSTILE:
        short = text[:2000]
        sent = log(text, {"id": short, short: short}, severity_text=short, event_name=short)
        send_logs(own_node, [sent], service=short, scope=short, resource={short: short})
    many = {f"key-{n}": f"value {n}" for n in range(10_000)}
    send_logs(own_node, [log("many attributes", many)], service="many")
    wait_for(own_node, "SELECT 1 FROM logs WHERE service_name = 'many'", 1)

    with open_page(browser, own_node.url) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.goto("/logs?not=service_name%3Dticker&facets=id&facets=service_name&facets=scope_name")
        expect(lines(page).nth(len(HOSTILE))).to_be_visible()
        record = page.get_by_role("group", name="Record details")
        for index in range(len(HOSTILE) + 1):
            row = page.locator(f"[aria-posinset='{index + 1}']")
            row.click(position={"x": 300, "y": 10})
            expect(row.locator(record)).to_be_visible()
            record.get_by_role("button", name="Raw JSON").click()
            expect(record.get_by_label("Record as JSON")).to_be_visible()
            record.get_by_role("button", name="Close record").click()
        expect(page.get_by_text("evil⟨U+202E⟩gpj.exe").first).to_be_visible()
        expect(page.get_by_text("nul ␀ bell").first).to_be_visible()
        facets = page.get_by_role("complementary", name="Facets")
        for text in HOSTILE[:-1]:
            page.goto("/logs?facets=id&" + urlencode({"is": f"id={text}"}))
            expect(lines(page)).to_have_count(1)
            lines(page).first.click(position={"x": 300, "y": 10})
            key = page.get_by_role("button", name=re.compile("^Include id$"))
            expect(key).to_be_visible()
            record.get_by_role("button", name=re.compile("as a column$")).first.click()
            record.get_by_role("button", name=re.compile("^Exclude")).first.click()
            expect(page.get_by_text("does not match the search")).to_be_visible()
            expect(facets.get_by_role("button", name=re.compile("^Exclude"))).not_to_have_count(0)
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("({}).x") is None
        assert accessibility_violations(page) == []
