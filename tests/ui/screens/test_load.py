"""The load screen: files of a stage, upload, preview, COPY INTO, past loads, definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import frazil
from tests.clients.node import Node
from tests.load.loading import Loading
from tests.ui.helpers.page import IS_IDLE, THEMES, Theme, accessibility_violations, open_page

NEVER = "lake.flush_age_ms=86400000"
"""No automatic commit: Spark starts with the load."""
ORDERS = "id,name,day\n" + "".join(
    f"{n},customer {n},2026-11-{n % 28 + 1:02d}\n" for n in range(90)
)
OVERFLOW = """() => Math.max(...[document.documentElement, document.getElementById("screen")]
    .map((box) => box.scrollWidth - box.clientWidth))"""
ADDRESSES = ("/load", "/load?file=2026/orders.csv", "/load?show=history", "/load?show=definitions")
REPORT = ["file", "status", "rows", "errors", "line", "column_name", "reason"]
RUNNING = {
    "id": "load-0123456789abcdef",
    "statement": "COPY INTO orders FROM @files",
    "who": "token 1234abcd",
    "started_at": "2026-11-18T09:00:00Z",
    "step": "loading files",
    "files": 20,
    "files_done": 5,
    "bytes": 4096,
    "bytes_done": 1024,
    "rows_done": 12345,
    "tasks": 4,
    "tasks_done": 1,
    "is_cancelled": False,
}
DROP = """([target, name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name));
    for (const type of ["dragover", "drop"]) {
        target.dispatchEvent(new DragEvent(type, {dataTransfer: transfer, bubbles: true,
            cancelable: true}));
    }
}"""


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Loading:
    """A data folder with a table that was loaded from a stage, without Spark."""
    past = Loading(tmp_path_factory.mktemp("ui_load"))
    past.put("2026/orders.csv", ORDERS.encode())
    past.put("broken.ndjson", b'{"a":1}\nnot json\n')
    past.copy("COPY INTO past FROM @s FILES=('broken.ndjson') ON_ERROR=CONTINUE")
    return past


@pytest.fixture(scope="module")
def roots(past: Loading) -> Path:
    return past.files


@pytest.fixture(scope="module")
def loading(past: Loading) -> Iterator[Node]:
    roots = past.files
    folder = roots.with_name("data")
    settings = folder.with_name("frazil.toml")
    settings.write_text(f'[stages]\nroots = ["{roots}"]\n')
    with Node(folder, "--config", str(settings), "--set", NEVER) as started:
        client = frazil.connect(started.url)
        client.execute(f"CREATE STAGE files URL='file://{roots}'").arrow()
        client.execute("CREATE VIEW few AS SELECT 1 AS a").arrow()
        yield started


@pytest.fixture
def page(browser: Browser, loading: Node) -> Iterator[Page]:
    with open_page(browser, loading.url) as opened:
        yield opened


def test_from_a_dropped_file_to_a_load(page: Page) -> None:
    """Drop, preview, write the statement, check it, run it. Its response is stubbed: other tests
    run Spark."""
    page.goto("/load")
    files = page.get_by_role("table", name="Files of files")
    expect(files).to_contain_text("2026/orders.csv")
    area = page.get_by_role("region", name="Files")
    area.evaluate(f"(target, more) => ({DROP})([target, ...more])", ["dropped.csv", ORDERS])
    page.get_by_role("link", name="dropped.csv").click()
    expect(page).to_have_url(re.compile("file=dropped.csv"))
    preview = page.get_by_role("table", name="Preview")
    expect(preview.get_by_role("columnheader", name="id")).to_contain_text("BIGINT")
    expect(preview.get_by_role("cell", name="customer 7", exact=True)).to_be_visible()
    page.get_by_label("Table", exact=True).fill("orders")
    page.get_by_label("Type of id").select_option("DECIMAL(18, 2)")
    page.get_by_label("On error").select_option("leave out rows with errors")
    statement = page.get_by_role("region", name="Statement")
    expect(statement).to_have_text(
        "COPY INTO orders (id DECIMAL(18, 2), name, day)\n"
        "FROM @files FILES=('dropped.csv')\nON_ERROR=CONTINUE"
    )
    sent: list[str] = []

    def answer(route: Route) -> None:
        body = route.request.post_data_json
        assert body is not None
        text = body["sql"]
        if not text.startswith("COPY"):
            route.fallback()
            return
        sent.append(text)
        row = ["file:///in/dropped.csv", "errors", 89, 1, 4, "id", "'x' is not a number"]
        route.fulfill(json={"columns": REPORT, "rows": [row]})

    page.route("**/api/v1/statements", answer)
    page.get_by_role("button", name="Check only").click()
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text("Checked 89 rows of 1 file")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(result).to_contain_text("Loaded 89 rows of 1 file")
    expect(result).to_contain_text("'x' is not a number")
    shown = statement.text_content()
    assert sent == [f"{shown}\nVALIDATION_MODE=RETURN_ERRORS", shown]


def test_past_loads_have_their_errors(page: Page) -> None:
    page.goto("/load")
    row = page.get_by_role("table", name="Files of files").get_by_role("row")
    expect(row.filter(has_text="broken.ndjson")).to_contain_text("past")
    page.locator("#screen").focus()
    page.keyboard.press("2")
    history = page.get_by_role("table", name="Loaded files").get_by_role("row")
    expect(history.filter(has_text="broken.ndjson")).to_contain_text("line 2: it is not JSON")


def test_an_upload_replaces_nothing_unless_told(
    browser: Browser, loading: Node, roots: Path
) -> None:
    (roots / "here.csv").write_text("a\n1\n")
    with open_page(browser, loading.url, allowed=("409",)) as page:
        upload_twice(page, roots)


def upload_twice(page: Page, roots: Path) -> None:
    page.goto("/load")
    expect(page.get_by_role("link", name="here.csv")).to_be_visible()
    file: Any = {"name": "here.csv", "mimeType": "text/csv", "buffer": b"a\n2\n"}
    with page.expect_response(lambda answer: answer.status == 409):
        page.get_by_label("Upload files").set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text("exists")
    assert (roots / "here.csv").read_text() == "a\n1\n"
    with page.expect_response(lambda answer: answer.request.method == "PUT" and answer.ok):
        page.get_by_role("button", name="Replace the file").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert (roots / "here.csv").read_text() == "a\n2\n"


def test_errors_of_a_file_are_shown_before_it_is_loaded(page: Page) -> None:
    page.goto("/load?file=broken.ndjson")
    expect(page.get_by_role("list", name="Rows with errors")).to_contain_text("Line 2: it is not")


def test_a_running_load_is_shown_and_cancelled(page: Page) -> None:
    """The responses are stubbed; other tests cancel a real one."""
    cancelled: list[str] = []

    def loads(route: Route) -> None:
        shown = {**RUNNING, "is_cancelled": bool(cancelled)}
        route.fulfill(json={"loads": [shown]})

    def cancel(route: Route) -> None:
        cancelled.append(route.request.method)
        route.fulfill(json={**RUNNING, "is_cancelled": True})

    page.route("**/api/v1/loads", loads)
    page.route("**/api/v1/loads/load-0123456789abcdef", cancel)
    page.goto("/load")
    running = page.get_by_role("region", name="Running loads")
    expect(running).to_contain_text("5 of 20 files")
    expect(running).to_contain_text("12,345 rows")
    running.get_by_role("button", name="Cancel").click()
    expect(running.get_by_role("button", name="Cancelling…")).to_be_disabled()
    assert cancelled == ["DELETE"]


def test_definitions_have_their_texts(page: Page) -> None:
    page.goto("/load")
    page.locator("#screen").focus()
    page.keyboard.press("3")
    text = page.get_by_role("region", name="Definition of few")
    expect(text).to_have_text("CREATE VIEW few AS SELECT 1 AS a")
    expect(page.get_by_role("table", name="Pipes")).to_have_count(0)
    expect(page.get_by_role("table", name="Tables")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible_and_fits(browser: Browser, loading: Node, theme: Theme) -> None:
    for width in (1024, 390):
        with open_page(browser, loading.url, theme=theme, width=width) as page:
            for address in ADDRESSES:
                page.goto(address)
                page.wait_for_function(IS_IDLE)
                expect(page.get_by_text("Loading…")).to_have_count(0)
                assert accessibility_violations(page) == [], (address, width)
                assert page.evaluate(OVERFLOW) <= 0, (address, width)


def test_a_node_without_a_lake_says_why(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, allowed=("503",)) as page:
        page.goto("/load")
        expect(page.get_by_role("heading", name="No stages yet")).to_be_visible()
