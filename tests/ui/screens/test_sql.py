"""The SQL screen: editor, result, plan, history and export."""

from __future__ import annotations

import io
import re
from pathlib import Path
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

import frazil
from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page

COUNTS = "SELECT service_name, count(*) AS n FROM logs GROUP BY 1 ORDER BY n DESC"
WRONG = ("status of 400",)
"""Browsers log every failed response to the console."""
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e\u0000'\"{{7*7}}"


def address(sql: str, **more: str) -> str:
    return f"/sql?{urlencode({'q': sql, **more})}"


def grid(page: Page) -> Locator:
    return page.get_by_role("grid", name="Rows")


def editor(page: Page) -> Locator:
    return page.get_by_label("SQL", exact=True)


def write(page: Page, text: str) -> None:
    """Replace the editor's text."""
    editor(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_query_is_typed_and_run_by_keyboard(page: Page, node: Node) -> None:
    page.goto("/sql")
    write(page, COUNTS)
    page.keyboard.press("Control+Enter")
    wanted = frazil.connect(node.url).sql(COUNTS).fetchall()
    expect(grid(page)).to_contain_text(str(wanted[0][1]))
    expect(grid(page).get_by_role("row")).to_have_count(len(wanted) + 1)
    expect(page).to_have_url(re.compile("q=SELECT"))
    page.reload()
    expect(grid(page)).to_contain_text(str(wanted[0][1]))


def test_only_the_selected_text_runs(page: Page) -> None:
    page.goto("/sql")
    write(page, "SELECT 1 AS one; SELECT 2 AS two")
    page.keyboard.press("Home")
    for _ in range(len("SELECT 1 AS one")):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("columnheader", name="one")).to_be_visible()
    expect(editor(page)).to_have_value(re.compile("SELECT 2 AS two"))


def test_an_error_is_shown_and_underlined(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, allowed=WRONG) as page:
        page.goto(address("SELECT time,\n  bodi FROM logs"))
        expect(page.get_by_role("alert")).to_contain_text("did you mean body?")
        expect(page.locator(".wrong")).to_have_text("bodi")
        write(page, "SELECT body FROM logs LIMIT 1")
        page.keyboard.press("Control+Enter")
        expect(grid(page)).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_tables_columns_and_attribute_keys_are_completed(page: Page) -> None:
    page.goto("/sql")
    offers = page.get_by_role("listbox", name="Completions")
    write(page, "SELECT 1 FROM sp")
    page.keyboard.type("a")
    expect(offers).to_contain_text("spans")
    page.keyboard.press("Escape")
    write(page, "SELECT  FROM spans")
    page.keyboard.press("Home")
    for _ in "SELECT ":
        page.keyboard.press("ArrowRight")
    page.keyboard.type("durat")
    expect(offers).to_contain_text("duration_nano")
    page.keyboard.press("Escape")
    page.keyboard.type("ion_nano, attributes['http.ro")
    expect(offers).to_contain_text("http.route")
    page.keyboard.press("Enter")
    expect(editor(page)).to_have_value(re.compile(r"attributes\['http.route'\] FROM"))


def test_completions_appear_once_the_schema_is_loaded(page: Page) -> None:
    held: list[Route] = []
    page.route("**/api/v1/sql", lambda route: held.append(route))
    page.goto("/sql")
    write(page, "SELECT 1 FROM sp")
    page.keyboard.type("a")
    offers = page.get_by_role("listbox", name="Completions")
    expect(offers).to_be_hidden()
    for route in held:
        route.continue_()
    expect(offers).to_contain_text("spans")


def test_a_click_in_the_schema_tree_inserts_the_name(page: Page) -> None:
    page.goto("/sql")
    tree = page.get_by_role("complementary", name="Tables")
    tree.get_by_label("Search tables and columns").fill("severity_n")
    tree.get_by_role("button", name="severity_number").click()
    expect(editor(page)).to_have_value("severity_number")


def test_an_empty_editor_shows_example_queries(page: Page) -> None:
    page.goto("/sql")
    page.get_by_role("link", name="Slowest operations").click()
    expect(page.get_by_role("columnheader", name="p99_ms")).to_be_visible()
    expect(editor(page)).to_have_value(re.compile(r"percentile\(duration_nano"))


def test_64_bit_integers_are_exact(page: Page) -> None:
    page.goto(address("SELECT 9223372036854775807 AS large, CAST(NULL AS VARCHAR) AS nothing"))
    expect(grid(page)).to_contain_text("9223372036854775807")
    expect(grid(page).get_by_role("gridcell", name="null")).to_be_visible()


def test_only_visible_rows_of_a_large_result_are_rendered(page: Page) -> None:
    page.goto(address("SELECT time, name, attributes FROM spans LIMIT 100000", rows="100000"))
    expect(page.get_by_text("100,000 rows")).to_be_visible()
    assert grid(page).get_by_role("row").count() < 100
    grid(page).focus()
    page.keyboard.press("Control+End")
    expect(grid(page).locator("[aria-rowindex='100001']")).to_be_visible()
    assert grid(page).get_by_role("row").count() < 100


def test_a_truncated_result_says_so(page: Page) -> None:
    page.goto(address("SELECT name FROM spans", rows="1000"))
    expect(page.get_by_text("1,000 rows (truncated")).to_be_visible()


def test_a_column_header_sorts_and_the_address_keeps_it(page: Page) -> None:
    page.goto(address("SELECT n, 10 - n AS m FROM (VALUES (1), (2), (9)) AS t(n)"))
    first = grid(page).get_by_role("gridcell").first
    expect(first).to_have_text("1")
    page.get_by_role("columnheader", name="m").click()
    expect(first).to_have_text("9")
    expect(page).to_have_url(re.compile("sort=1"))
    page.get_by_role("columnheader", name="m").click()
    expect(first).to_have_text("1")
    page.get_by_role("columnheader", name="m").click()
    page.go_back()
    page.go_back()
    expect(first).to_have_text("9")


def test_a_cell_opens_in_full_and_is_copied(page: Page) -> None:
    page.goto(
        address("SELECT attributes FROM spans WHERE attributes['http.route'] = '/search' LIMIT 3")
    )
    grid(page).get_by_role("gridcell").first.click()
    value = page.get_by_role("complementary", name="Value")
    expect(value).to_contain_text("http.route /search")
    expect(page).to_have_url(re.compile("cell=0.0"))
    value.get_by_role("button", name="Copy cell").click()
    expect(value.get_by_role("button", name="Copied")).to_be_visible()
    assert '"http.route":"/search"' in page.evaluate("navigator.clipboard.readText()")
    grid(page).focus()
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile("cell=1.0"))
    page.keyboard.press("Escape")
    expect(value).to_be_hidden()


def test_trace_and_span_ids_link_to_the_trace(page: Page) -> None:
    page.goto(address("SELECT trace_id, span_id FROM spans WHERE kind = 'SERVER' LIMIT 1"))
    expect(grid(page).get_by_role("link")).to_have_count(2)
    trace, span = grid(page).get_by_role("link").all_text_contents()
    grid(page).get_by_role("link", name=span, exact=True).click()
    expect(page).to_have_url(re.compile(rf"/trace/{trace}\?.*span={span}"))


def test_a_result_is_shown_as_a_chart(page: Page) -> None:
    buckets = "SELECT time_bucket('1 minute', time) AS minute, service_name, count(*) AS n "
    page.goto(address(f"{buckets} FROM logs GROUP BY 1, 2 ORDER BY 1", view="chart"))
    expect(page.get_by_role("img", name="Result over time")).to_be_visible()
    expect(page.get_by_label("Series")).to_have_value("service_name")
    expect(page.get_by_role("listitem").filter(has_text="payment")).to_be_visible()
    page.get_by_label("X axis").select_option("service_name")
    expect(page).to_have_url(re.compile("x=service_name"))
    expect(page.get_by_role("cell", name="payment").first).to_be_visible()


def test_the_plan_is_shown_as_a_tree(page: Page) -> None:
    page.goto(address(COUNTS))
    expect(grid(page)).to_be_visible()
    page.get_by_role("button", name="Explain").click()
    plan = page.get_by_role("region", name="Plan")
    expect(plan.get_by_role("heading", name="Scan")).to_be_visible()
    expect(plan).to_contain_text("Aggregate")
    expect(page).to_have_url(re.compile("view=plan"))


def test_scan_statistics_show_hot_and_lake_rows(page: Page, node: Node) -> None:
    page.goto(address("SELECT count(*) FROM logs"))
    [[count]] = frazil.connect(node.url).sql("SELECT count(*) FROM logs").fetchall()
    read = page.get_by_label("Scan statistics")
    expect(read).to_contain_text(f"hot {count:,} rows")
    expect(read).to_contain_text("lake 0 rows")


def test_a_query_can_be_cancelled(page: Page, node: Node) -> None:
    slow = "SELECT sum(length(a.body || b.body)) FROM logs a CROSS JOIN logs b CROSS JOIN logs c"
    page.goto(address(slow))
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled after")).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_visible()


@pytest.mark.parametrize("name", ["CSV", "Parquet", "Arrow"])
def test_the_whole_result_is_exported(page: Page, name: str) -> None:
    """Including rows beyond the displayed ones."""
    page.goto(address("SELECT name FROM spans LIMIT 2500", rows="1000"))
    expect(page.get_by_text("1,000 rows")).to_be_visible()
    with page.expect_download() as coming:
        page.get_by_role("button", name=name).click()
    content = Path(coming.value.path()).read_bytes()
    if name == "CSV":
        rows = len(content.splitlines()) - 1
    elif name == "Parquet":
        rows = pq.read_table(io.BytesIO(content)).num_rows
    else:
        rows = pa.ipc.open_stream(content).read_all().num_rows
    assert rows == 2500


def test_the_history_is_searched(page: Page) -> None:
    page.goto(address("SELECT 1 AS first_query"))
    expect(grid(page)).to_be_visible()
    write(page, "SELECT 2 AS second_query")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("columnheader", name="second_query")).to_be_visible()
    page.get_by_role("button", name="History", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Search history").fill("first_q")
    expect(dialog.get_by_role("button", name="second_query")).to_have_count(0)
    dialog.get_by_role("button", name="first_query").click()
    expect(editor(page)).to_have_value("SELECT 1 AS first_query")


def test_time_travel_adds_an_as_of_clause(browser: Browser, node: Node) -> None:
    """Without a lake there are no snapshots, but a time can be used."""
    with open_page(browser, node.url, allowed=("503",)) as page:
        page.goto(address("SELECT count(*) FROM logs"))
        page.get_by_role("button", name="Time travel").click()
        expect(page.get_by_role("alert")).to_contain_text("no lake")
        page.get_by_label("Rows as of a time").fill("2026-01-02 03:04")
        page.get_by_role("button", name="Apply").click()
        expect(editor(page)).to_have_value(
            "SELECT count(*) FROM logs FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-02 03:04:00.000'"
        )


def test_hostile_values_are_shown_as_text(page: Page) -> None:
    """In a name, a cell, a map, the panel and a chart."""
    quoted = HOSTILE.replace("\u0000", "").replace("'", "''")
    name = quoted.replace('"', '""')
    page.goto(
        address(f"SELECT '{quoted}' AS \"{name}\", map(['{quoted}'], ['{quoted}']) AS m, 1 AS n")
    )
    expect(grid(page).get_by_role("gridcell").first).to_contain_text("<img src=x onerror")
    expect(grid(page).get_by_role("gridcell").first).to_contain_text("U+202E")
    grid(page).get_by_role("gridcell").nth(1).click()
    expect(page.get_by_role("complementary", name="Value")).to_contain_text("<script>alert(2)")
    page.get_by_role("tab", name="Chart").click()
    expect(page.get_by_role("cell", name="<img src=x").first).to_be_visible()
    assert page.locator("#screen img, #screen script").count() == 0


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with open_page(browser, node.url, theme=theme, allowed=(*WRONG, "503")) as page:
        page.goto("/sql")
        expect(page.get_by_role("heading", name="Example queries")).to_be_visible()
        expect(editor(page)).to_be_visible()
        assert accessibility_violations(page) == []
        page.goto(address("SELECT time, body, attributes, trace_id FROM logs LIMIT 50", cell="0.2"))
        expect(page.get_by_role("complementary", name="Value")).to_be_visible()
        assert accessibility_violations(page) == []
        page.get_by_role("tab", name="Chart").click()
        assert accessibility_violations(page) == []
        page.goto(address(COUNTS, view="chart"))
        expect(page.get_by_role("cell", name="payment").first).to_be_visible()
        assert accessibility_violations(page) == []
        page.get_by_role("tab", name="Plan").click()
        expect(page.get_by_role("heading", name="Scan")).to_be_visible()
        assert accessibility_violations(page) == []
        page.get_by_role("button", name="History", exact=True).click()
        assert accessibility_violations(page) == []
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Time travel").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
        assert accessibility_violations(page) == []
        page.goto(address("SELECT bodi FROM logs"))
        expect(page.get_by_role("alert")).to_be_visible()
        assert accessibility_violations(page) == []


def test_the_screen_fits_a_phone(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, width=360, height=740) as page:
        page.goto(address("SELECT * FROM spans LIMIT 20"))
        expect(grid(page)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 360
