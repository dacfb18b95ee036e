"""The trace screen: waterfall, spans, logs, statistics and flame graph."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.cli import shop
from tests.cli.commands.test_ask_a_node import wait_for
from tests.clients.node import Node
from tests.ui.conftest import wait_until_queryable
from tests.ui.helpers.page import (
    THEMES,
    Theme,
    accessibility_violations,
    eventually,
    is_contiguous,
    open_page,
)
from tests.ui.helpers.spans import resource, span

HOSTILE_TRACE = "bb" * 16
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "javascript:alert(1)",
    "\u202edlrow\u202c\u0000\u001b[31m",
    "{{7*7}} ${7*7} %00 ' OR 1=1 --",
    "e\u0301" * 3000,
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with a trace of known values and a hostile one."""
    folder = tmp_path_factory.mktemp("trace") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        shop.send(started)
        send_hostile(started)
        wait_for(started, "SELECT 1 FROM spans", 5 + len(HOSTILE))
        wait_for(started, "SELECT 1 FROM logs", shop.LOG_COUNT + 1)
        yield started


def send_hostile(node: Node) -> None:
    """Send a trace with hostile text in every text field."""

    def texts(harm: str) -> list[dict[str, Any]]:
        return [{"key": key, "value": {"stringValue": harm}} for key in (harm, "plain")]

    spans = [
        {
            "traceId": HOSTILE_TRACE,
            "spanId": f"{number + 1:016x}",
            "parentSpanId": f"{number:016x}" if number else "",
            "name": harm,
            "startTimeUnixNano": str(shop.BEGIN),
            "endTimeUnixNano": str(shop.BEGIN + shop.MS),
            "attributes": texts(harm),
            "status": {"code": 2, "message": harm},
            "traceState": "a=b",
            "events": [{"name": harm, "attributes": texts(harm)}],
            "links": [{"traceId": shop.TRACE, "spanId": shop.ROOT, "attributes": texts(harm)}],
        }
        for number, harm in enumerate(HOSTILE)
    ]
    resources = [
        {
            "resource": {
                "attributes": [
                    *texts(harm),
                    {"key": "service.name", "value": {"stringValue": harm}},
                ]
            },
            "scopeSpans": [{"scope": {"name": harm, "attributes": texts(harm)}, "spans": [span]}],
        }
        for harm, span in zip(HOSTILE, spans, strict=True)
    ]
    shop.post(node, "traces", {"resourceSpans": resources})
    shop.send_logs(
        node, [shop.log("".join(HOSTILE), 17, traceId=HOSTILE_TRACE, spanId=f"{1:016x}")]
    )


@pytest.fixture
def small(browser: Browser, known: Node) -> Iterator[Page]:
    """A page of that node."""
    with open_page(browser, known.url) as opened:
        yield opened


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row", name=name)


def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Span", exact=True)


def part_of_panel(page: Page, name: str) -> Locator:
    return page.get_by_role("navigation", name="Span details").get_by_role("link", name=name)


def open_known(page: Page, query: str = "") -> None:
    page.goto(f"/trace/{shop.TRACE}{query}")
    expect(page.get_by_role("treegrid")).to_be_visible()


def copied(page: Page, button: str) -> str:
    pressed = page.get_by_role("button", name=button).element_handle()
    pressed.click()
    page.wait_for_function("(button) => button.textContent.includes('Copied')", arg=pressed)
    return str(page.evaluate("navigator.clipboard.readText()"))


def failed_checkout(node: Node) -> str:
    """Return the id of a shop trace with a failure deep inside."""
    query = urllib.parse.urlencode({"errors": "true", "service": "payment", "limit": 100})
    with urllib.request.urlopen(f"{node.url}/api/v1/traces?{query}", timeout=60) as answer:
        found = json.load(answer)["traces"]
    return str(max(found, key=lambda each: each["span_count"])["trace_id"])


def test_the_header_summarizes_the_trace(small: Page) -> None:
    open_known(small)
    summary = small.get_by_role("region", name="Summary")
    for words in ("shop buy", shop.TRACE, "Duration 100 ms", "Spans 4", "Errors 1", "Depth 3"):
        expect(summary).to_contain_text(re.compile(re.escape(words).replace("\\ ", r"\s*")))
    expect(summary).to_contain_text("1 span has a missing parent")
    summary.get_by_role("button", name="Show first").click()
    expect(row(small, "bank audit")).to_have_attribute("aria-selected", "true")
    summary.get_by_title("Show the next error").click()
    expect(row(small, "bank charge")).to_have_attribute("aria-selected", "true")


def test_rows_form_a_tree_that_expands_and_collapses(small: Page) -> None:
    open_known(small)
    expect(small.get_by_role("treegrid")).to_have_attribute("aria-rowcount", "4")
    expect(row(small, "bank charge")).to_have_attribute("aria-level", "3")
    small.keyboard.press("]")
    expect(small.get_by_role("treegrid")).to_have_attribute("aria-rowcount", "2")
    expect(small).to_have_url(re.compile("level=0"))
    small.get_by_role("button", name="expand one level").click()
    expect(small.get_by_role("treegrid")).to_have_attribute("aria-rowcount", "3")
    small.reload()
    expect(small.get_by_role("treegrid")).to_have_attribute("aria-rowcount", "3")
    small.keyboard.press("[")
    expect(row(small, "bank charge")).to_be_visible()
    box = row(small, "shop call the bank").bounding_box()
    assert box is not None
    small.mouse.click(box["x"] + 8 + 12 + 4, box["y"] + 11)
    expect(row(small, "shop call the bank")).to_have_attribute("aria-expanded", "false")
    expect(row(small, "bank charge")).to_be_hidden()
    small.go_back()
    expect(row(small, "bank charge")).to_be_visible()


def test_a_click_opens_the_span_panel(small: Page) -> None:
    open_known(small)
    row(small, "bank charge").click()
    expect(small).to_have_url(re.compile(f"span={shop.FAILED}"))
    for words in ("bank charge", "Duration 40 ms", "Start +20 ms", "% of trace 40 %"):
        expect(panel(small)).to_contain_text(re.compile(re.escape(words).replace("\\ ", r"\s*")))
    expect(panel(small)).to_contain_text("ERROR")
    part_of_panel(small, "Events").click()
    expect(panel(small)).to_contain_text("NoMoney the account is empty")
    expect(panel(small)).to_contain_text("10 ms after start")
    small.reload()
    expect(panel(small)).to_contain_text("NoMoney")
    panel(small).get_by_role("button", name="Close panel").click()
    expect(panel(small)).to_be_hidden()
    small.go_back()
    expect(panel(small)).to_be_visible()


def test_spans_are_navigated_by_keyboard(small: Page) -> None:
    open_known(small)
    small.keyboard.press("j")
    expect(row(small, "shop buy")).to_have_attribute("aria-selected", "true")
    small.keyboard.press("ArrowDown")
    small.keyboard.press("j")
    expect(row(small, "bank charge")).to_have_attribute("aria-selected", "true")
    expect(small).to_have_url(re.compile(f"span={shop.FAILED}"))
    small.keyboard.press("ArrowLeft")
    small.keyboard.press("ArrowLeft")
    expect(row(small, "bank charge")).to_be_hidden()
    small.keyboard.press("e")
    expect(row(small, "bank charge")).to_have_attribute("aria-selected", "true")
    small.keyboard.press("Enter")
    expect(panel(small)).to_be_focused()
    small.keyboard.press("Escape")
    expect(panel(small)).to_be_hidden()
    expect(small.get_by_role("treegrid")).to_be_focused()
    small.keyboard.press("?")
    expect(small.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("next error")


def test_find_counts_steps_through_and_filters_matches(small: Page) -> None:
    open_known(small)
    small.keyboard.press("/")
    small.keyboard.type("bank")
    expect(small.get_by_role("search")).to_contain_text("3 matches")
    small.keyboard.press("Enter")
    expect(row(small, "shop call the bank")).to_have_attribute("aria-selected", "true")
    expect(small.get_by_role("search")).to_contain_text("1 of 3 matches")
    small.keyboard.press("Shift+Enter")
    expect(row(small, "bank audit")).to_have_attribute("aria-selected", "true")
    small.get_by_label("Find in trace").fill("NoMoney")
    expect(small.get_by_role("search")).to_contain_text("1 match")
    small.get_by_label("Find in trace").fill("service=bank")
    expect(small.get_by_role("search")).to_contain_text("2 matches")
    small.get_by_role("button", name="Only matches").click()
    expect(row(small, "bank audit")).to_be_visible()
    small.get_by_label("Find in trace").fill("charge")
    expect(row(small, "bank audit")).to_be_hidden()
    expect(row(small, "shop buy")).to_be_visible()
    expect(small).to_have_url(re.compile("q=charge&only=1"))


def test_the_address_restores_a_search(small: Page) -> None:
    open_known(small, "?q=who%3D%22%1B%5B31mme%22")
    expect(small.get_by_role("search")).to_contain_text("1 match")
    expect(row(small, "bank audit")).to_contain_text("found")


def test_the_minimap_selects_a_window_and_a_double_click_resets_it(small: Page) -> None:
    open_known(small)
    minimap = small.get_by_role("slider", name="Visible time range")
    box = minimap.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2

    def drag(low: float, high: float) -> None:
        small.mouse.move(box["x"] + low * box["width"], middle)
        small.mouse.down()
        small.mouse.move(box["x"] + high * box["width"], middle, steps=4)
        small.mouse.up()

    drag(0.25, 0.5)
    expect(minimap).to_have_attribute("aria-valuetext", re.compile(r"2[45](\.\d)? ms to (50|49.9)"))
    expect(small).to_have_url(re.compile(r"low=2\d{7}&high=(4|5)\d{7}"))
    drag(0.375, 0.575)
    expect(minimap).to_have_attribute("aria-valuetext", re.compile(r"4[45](\.\d)? ms to (70|69.9)"))
    small.get_by_role("treegrid").focus()
    small.keyboard.press("+")
    expect(small).to_have_url(re.compile(r"low=5\d{7}&high=6\d{7}"))
    expect(minimap).to_have_attribute("aria-valuetext", re.compile(r"5\d(\.\d)? ms to 6"))
    minimap.dblclick(position={"x": 5, "y": 20})
    expect(minimap).to_have_attribute("aria-valuetext", "all of 100 ms")
    expect(small).not_to_have_url(re.compile("low="))


def test_the_wheel_zooms_around_the_pointer(small: Page) -> None:
    open_known(small)
    minimap = small.get_by_role("slider", name="Visible time range")
    row(small, "bank charge").hover(position={"x": 900, "y": 10})
    small.keyboard.down("Control")
    small.mouse.wheel(0, -400)
    small.keyboard.up("Control")
    expect(minimap).not_to_have_attribute("aria-valuetext", "all of 100 ms")
    zoomed = minimap.get_attribute("aria-valuetext")
    small.keyboard.down("Shift")
    small.mouse.wheel(0, 200)
    small.keyboard.up("Shift")
    expect(minimap).not_to_have_attribute("aria-valuetext", str(zoomed))


def test_the_critical_path_can_be_shown(small: Page) -> None:
    open_known(small)
    before = small.get_by_role("treegrid").screenshot()
    small.keyboard.press("c")
    expect(small.get_by_role("button", name="Critical path")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(small).to_have_url(re.compile("critical=1"))
    eventually(small, lambda: small.get_by_role("treegrid").screenshot() != before)


def test_attributes_can_be_filtered_and_link_to_logs(page: Page, node: Node) -> None:
    page.goto(f"/trace/{failed_checkout(node)}")
    page.get_by_role("treegrid").focus()
    page.keyboard.press("e")
    page.keyboard.press("Enter")
    attributes = panel(page).get_by_role("table", name="Span")
    expect(attributes).to_be_visible()
    panel(page).get_by_label("Filter attributes").fill("service.version")
    expect(attributes).to_be_hidden()
    resource = panel(page).get_by_role("table", name="Resource: service, host, process")
    resource.get_by_role("button").click()
    link = resource.get_by_role("link", name="Find logs")
    assert "is=resource.service.version%3D" in str(link.get_attribute("href"))
    assert "from=" in str(link.get_attribute("href"))
    resource.get_by_role("link", name="Find in this trace").click()
    expect(page.get_by_role("search")).to_contain_text(re.compile(r"of [1-9]\d*\s+match"))
    logs = panel(page).get_by_role("link", name="Open in logs")
    assert re.search(r"is=trace_id.*is=span_id", str(logs.get_attribute("href")))


def test_span_links_open_other_traces(small: Page) -> None:
    open_known(small, f"?span={shop.ORPHAN}&show=links")
    panel(small).get_by_role("link", name=re.compile(shop.OTHER)).click()
    expect(small).to_have_url(re.compile(f"/trace/{shop.OTHER}"))
    expect(row(small, "shop look")).to_have_attribute("aria-selected", "true")


def test_logs_and_spans_link_to_each_other(small: Page) -> None:
    small.goto(f"/trace/{shop.TRACE}?tab=logs")
    logs = small.get_by_role("list", name="Trace logs")
    expect(logs.get_by_role("listitem")).to_have_count(3)
    expect(logs.get_by_role("button", name=re.compile("from nowhere"))).to_be_disabled()
    logs.get_by_role("button", name=re.compile("no money")).click()
    expect(small).to_have_url(re.compile(f"span={shop.FAILED}"))
    part_of_panel(small, "Logs").click()
    expect(panel(small).get_by_role("list", name="Span logs")).to_contain_text("no money")


def test_log_lines_of_any_height_do_not_overlap(small: Page) -> None:
    """The line of the selected span is visible, however far down it is."""

    def answer(route: Route) -> None:
        response = route.fetch()
        found = response.json()
        found["logs"] = [
            {
                **found["logs"][0],
                "cursor": f"line {number}",
                "body": "\n".join(["once more"] * (1 + number % 4)),
                "span_id": shop.FAILED if number == 250 else shop.ROOT,
            }
            for number in range(300)
        ]
        route.fulfill(response=response, json=found)

    small.route(re.compile(r"/api/v1/logs\?"), answer)
    small.goto(f"/trace/{shop.TRACE}?tab=logs&span={shop.FAILED}")
    logs = small.get_by_role("list", name="Trace logs")
    chosen = logs.locator("[aria-posinset='251']")
    expect(chosen).to_be_in_viewport(ratio=0.9)
    eventually(small, lambda: is_contiguous(logs))
    expect(chosen).to_be_in_viewport(ratio=0.9)
    last = logs.locator("[aria-posinset='300']")

    def is_at_the_end() -> bool:
        # The end moves while lines turn out higher than estimated.
        logs.evaluate("element => element.scrollTo(0, element.scrollHeight)")
        return last.is_visible()

    eventually(small, is_at_the_end)
    eventually(small, lambda: is_contiguous(logs))


def test_log_dots_show_their_record_on_hover(small: Page) -> None:
    open_known(small)
    box = row(small, "shop buy").bounding_box()
    split = small.get_by_role("separator", name="Name column width").bounding_box()
    expect(small.get_by_role("link", name="Logs 3")).to_be_visible()
    assert box is not None
    assert split is not None
    left = split["x"] + 3 + 6
    small.mouse.move(left + 0.15 * (box["x"] + box["width"] - left - 6), box["y"] + 18)
    expect(small.get_by_text("INFO at 22:13:20.015000")).to_be_visible()
    small.mouse.down()
    small.mouse.up()
    expect(panel(small).get_by_role("list", name="Span logs")).to_contain_text("basket")


def test_statistics_sort_and_link_back_to_spans(small: Page) -> None:
    small.goto(f"/trace/{shop.TRACE}?tab=statistics")
    table = small.get_by_role("region", name="Statistics")
    first = table.get_by_role("row").nth(1)
    expect(first).to_contain_text("buy")
    small.get_by_role("button", name="By service").click()
    expect(table.get_by_role("row")).to_have_count(3)
    expect(first).to_contain_text(re.compile(r"shop\s*2\s*0\s*60 ms\s*160 ms\s*60 ms\s*100 ms"))
    table.get_by_role("button", name="Errors").click()
    expect(first).to_contain_text("bank")
    small.reload()
    expect(first).to_contain_text("bank")
    first.get_by_role("link").click()
    expect(small.get_by_role("search")).to_contain_text("2 matches")


def test_the_flame_graph_zooms_and_keeps_the_selected_span(small: Page) -> None:
    small.goto(f"/trace/{shop.TRACE}?tab=flame&span={shop.FAILED}")
    flame = small.get_by_role("region", name="Flame graph")
    box = flame.bounding_box()
    assert box is not None
    small.mouse.click(box["x"] + 20, box["y"] + 3.5 * 20)
    expect(small).to_have_url(re.compile(f"span={shop.FAILED}.*box={shop.FAILED}"))
    small.get_by_role("button", name="Show all").click()
    expect(small).not_to_have_url(re.compile("box="))
    expect(panel(small)).to_contain_text("charge")
    flame.get_by_role("button", name="shop: call the bank").press("Enter")
    expect(small).to_have_url(re.compile(f"box={shop.CALL}"))


def test_spans_are_copied_as_text_json_and_markdown(small: Page) -> None:
    open_known(small, f"?span={shop.CALL}")
    expect(panel(small)).to_contain_text("UNSET")
    line = copied(small, "Copy line")
    assert line.startswith("shop: call the bank, internal, 60 ms (self 20 ms), at +10 ms of 100 ms")
    span = json.loads(copied(small, "Copy JSON"))
    assert span["time_unix_nano"] == str(shop.BEGIN + 10 * shop.MS)
    tree = json.loads(copied(small, "Subtree as JSON"))
    assert [each["name"] for each in tree["spans"]] == ["call the bank", "charge"]
    told = copied(small, "Subtree as Markdown")
    assert "\n  - **bank** charge (+10 ms, 40 ms, self 40 ms) **failed**\n" in told
    assert "`exception.type`: `NoMoney`" in told


def test_a_key_jumps_to_the_next_error(page: Page, node: Node) -> None:
    page.goto(f"/trace/{failed_checkout(node)}")
    expect(page.get_by_role("region", name="Summary")).to_contain_text("payment")
    page.keyboard.press("]")
    page.keyboard.press("e")
    expect(page.get_by_role("row", selected=True)).to_contain_text("failed")
    expect(page.get_by_role("row", selected=True)).to_be_in_viewport()


def test_an_unknown_trace_shows_an_error(browser: Browser, known: Node) -> None:
    with open_page(browser, known.url, allowed=("404",)) as page:
        page.goto(f"/trace/{'0' * 32}")
        expect(page.get_by_role("alert")).to_contain_text("trace 0000")
        expect(page.get_by_role("link", name="All traces")).to_be_visible()


@pytest.mark.parametrize("tab", ["waterfall", "flame", "statistics", "logs"])
def test_hostile_text_is_shown_as_text(small: Page, tab: str) -> None:
    small.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    small.goto(f"/trace/{HOSTILE_TRACE}?tab={tab}&span={1:016x}")
    for part in ("Events", "Links", "Logs", "Attributes"):
        part_of_panel(small, part).click()
        expect(panel(small)).to_contain_text("onerror=alert(1)")
    assert small.locator("main img, main script, main iframe").count() == 0
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert small.evaluate(overflow) <= 0
    assert small.locator("a[href^='javascript']").count() == 0


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, known: Node, theme: Theme) -> None:
    with open_page(browser, known.url, theme=theme) as page:
        for tab, show in (
            ("waterfall&q=bank", "events"),
            ("flame", "attributes"),
            ("statistics", "links"),
            ("logs", "logs"),
        ):
            page.goto(f"/trace/{shop.TRACE}?span={shop.FAILED}&tab={tab}&show={show}")
            expect(panel(page)).to_contain_text("ERROR")
            expect(panel(page)).not_to_contain_text("Loading")
            assert accessibility_violations(page) == []


def test_the_screen_fits_a_phone(browser: Browser, known: Node) -> None:
    with open_page(browser, known.url, width=360, height=740) as page:
        open_known(page, f"?span={shop.FAILED}")
        expect(panel(page)).to_contain_text("ERROR")
        expect(row(page, "bank charge")).to_be_visible()
        for tab in ("Flame graph", "Statistics", "Logs"):
            page.get_by_role("navigation", name="Views").get_by_role("link", name=tab).click()
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.evaluate(overflow) <= 0


def chain(trace_id: str, took_ms: dict[str, float], begin_ns: int) -> list[dict[str, Any]]:
    """A root with children of these names and durations, one after the other."""
    spans = [span(trace_id, 1, "GET /order", begin_ns, int(sum(took_ms.values()) * 1e6))]
    for number, (name, took) in enumerate(took_ms.items(), 2):
        child = span(trace_id, number, name, begin_ns, int(took * 1e6))
        spans.append({**child, "parentSpanId": spans[0]["spanId"]})
        begin_ns += int(took * 1e6)
    return spans


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A slow trace (aaaa…), a fast one (bbbb…), one of several thousand spans (cccc…)."""
    begin_ns = time.time_ns() - 60_000_000_000
    fast = {"load": 10.0, "price": 20.0, "send": 5.0}
    slow = {"load": 10.2, "price": 200.0, "tax": 7.0}
    many = {f"step {number}": 1.0 for number in range(4000)}
    sent = [
        resource("shop", each)
        for digit, took in (("a", slow), ("b", fast), ("c", many))
        for each in chain(digit * 32, took, begin_ns)
    ]
    with Node(tmp_path_factory.mktemp("compared") / "data", "--set", "lake.enabled=false") as node:
        request = urllib.request.Request(
            f"http://127.0.0.1:{node.http_port}/v1/traces",
            data=json.dumps({"resourceSpans": sent}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            assert response.status == 200
        wait_until_queryable(node)
        yield node


def test_two_traces_are_compared(browser: Browser, compared: Node) -> None:
    """With a fast trace of the same root operation, with a pasted id, and by link."""
    with open_page(browser, compared.url) as page:
        page.goto(f"/trace/{'a' * 32}")
        page.get_by_role("link", name="Compare").click()
        page.get_by_role("button", name="Fast trace").focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"with={'b' * 32}"))
        rows = page.get_by_role("list", name="Differences").get_by_role("listitem")
        expect(rows).to_have_count(5)
        assert [" ".join(text.split()) for text in rows.all_inner_texts()] == [
            "GET /order shop 35 ms 217 ms +182 ms 0 ▲ Slower",
            "load shop 10 ms 10.2 ms +200 µs +200 µs",
            "price shop 20 ms 200 ms +180 ms +180 ms ▲ Slower",
            "send shop 5 ms \u2013 \u22125 ms \u22125 ms \u2212 Removed",
            "tax shop \u2013 7 ms +7 ms +7 ms + Added",
        ]
        page.get_by_role("button", name="Removed 1").click()
        expect(rows).to_have_count(1)
        page.reload()
        expect(rows).to_have_count(1)
        page.get_by_role("link", name="Swap").click()
        expect(page).to_have_url(re.compile(f"/trace/{'b' * 32}.*with={'a' * 32}"))
        expect(rows.nth(2)).to_contain_text("Faster")
        page.get_by_label("Trace to compare with").fill("c" * 20)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Removed 4,000")).to_be_visible()
        expect(rows.first).to_contain_text("GET /order")
        page.get_by_label("Trace to compare with").fill("nosuch")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("not a trace id")


@pytest.mark.parametrize("theme", THEMES)
def test_a_comparison_fits_a_phone_and_is_accessible(
    browser: Browser, compared: Node, theme: Theme
) -> None:
    with open_page(browser, compared.url, width=390, height=760, theme=theme) as page:
        page.goto(f"/trace/{'a' * 32}?tab=compare&with={'b' * 32}")
        expect(page.get_by_text("Slower").last).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert accessibility_violations(page) == []
