"""Keyed tables: rows by key, their history, changes as they come, and what the page says to run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import frazil
from frazil.client import Client
from tests.clients.node import Node
from tests.ui.helpers.page import IS_IDLE, THEMES, Theme, accessibility_violations, open_page

BIG = 9_007_199_254_740_993
"""An integer that JavaScript's numbers do not hold."""
REGION = "eu/west"
OVERFLOW = """() => Math.max(...[document.documentElement, document.getElementById("screen")]
    .map((box) => box.scrollWidth - box.clientWidth))"""
STOCK_KEY = "%5B%22eu%2Fwest%22%2C3%5D"
ADDRESSES = (
    "/tables",
    "/table/orders",
    "/table/orders?key=17",
    "/table/orders?tab=changes",
    "/table/orders?tab=schema",
    "/table/orders?tab=write",
    "/table/stock?tab=partitions",
    f"/table/stock?key={STOCK_KEY}",
)


def create(client: Client, name: str, columns: dict[str, str], key: list[str]) -> None:
    listed = [{"name": each, "type": kind} for each, kind in columns.items()]
    client.call("PUT", f"/api/v1/tables/{name}", {"columns": listed, "key": key, "partitions": 2})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with a table of one key column, and one of two."""
    folder = tmp_path_factory.mktemp("ui_tables") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        client = frazil.connect(started.url)
        columns = {"id": "int64", "status": "string", "total": "decimal(10,2)"}
        create(client, "orders", columns, ["id"])
        create(
            client, "stock", {"region": "string", "sku": "int64", "n": "int32"}, ["region", "sku"]
        )
        write(started, "orders", *({"id": n, "status": "new", "total": "1.50"} for n in range(40)))
        write(started, "orders", {"id": 17, "status": "paid"}, operation="update")
        write(started, "orders", {"id": 5}, operation="delete")
        write(started, "orders", {"id": BIG, "status": "<img src=x>"})
        write(started, "stock", *({"region": REGION, "sku": n, "n": n} for n in range(5)))
        write(started, "stock", {"region": REGION, "sku": 3, "n": 30}, operation="update")
        yield started


def write(node: Node, table: str, *rows: dict[str, Any], operation: str = "upsert") -> None:
    """Write rows, and wait until they can be found."""
    client = frazil.connect(node.url)
    body = "\n".join(map(json.dumps, rows)).encode()
    path = f"/api/v1/tables/{table}/rows?operation={operation}"
    headers = {"Content-Type": "application/x-ndjson"}
    answer = json.loads(client.exchange("POST", path, body, headers=headers))
    offsets = answer["token"]["offsets"]
    key = [1] if table == "orders" else [[REGION, 1]]
    client.call("POST", f"/api/v1/tables/{table}/lookup", {"keys": key, "at_least": offsets})


@pytest.fixture
def page(browser: Browser, shop: Node) -> Iterator[Page]:
    with open_page(browser, shop.url) as opened:
        yield opened


def test_a_node_without_tables_tells_how_to_create_one(browser: Browser, node: Node) -> None:
    """And what it tells can be run."""
    with open_page(browser, node.url) as page:
        page.goto("/tables")
        guide = page.get_by_role("region", name="Create a table")
        expect(guide).to_contain_text(f"curl -X PUT '{node.url}/api/v1/tables/orders'")
        guide.get_by_role("link", name="Open in SQL").click()
        editor = page.get_by_label("SQL", exact=True)
        expect(editor).to_have_value(re.compile(r"^CREATE TABLE orders \("))


def test_tables_are_listed_and_found(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("b")
    table = page.get_by_role("table", name="Tables")
    row = table.get_by_role("row").filter(has_text="stock")
    expect(row).to_contain_text(re.compile(r"ok\s*region, sku\s*3\s*5\s*2"))
    page.locator("#screen").focus()
    page.keyboard.press("/")
    page.keyboard.type("ORD")
    expect(table.get_by_role("row")).to_have_count(2)
    page.keyboard.press("Control+k")
    find = page.get_by_role("combobox", name="Find")
    find.fill("table stock")
    results = page.get_by_role("listbox", name="Results")
    expect(results.get_by_role("option").first).to_contain_text("stock")
    find.press("Enter")
    expect(page).to_have_url(re.compile("/table/stock$"))


def test_a_row_is_found_by_its_key_with_what_changed(page: Page) -> None:
    page.goto("/table/orders")
    page.get_by_label("id", exact=True).fill("17")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("key=17"))
    current = page.get_by_role("table", name="Current row")
    expect(current).to_contain_text("paid")
    history = page.get_by_role("table", name="History").locator("tbody tr")
    expect(history).to_have_count(2)
    expect(history.nth(0)).to_contain_text(re.compile(r"^update\s*20\d\d-\d\d-\d\d \d\d:\d\d"))
    changed = history.nth(0).locator("td.changed")
    expect(changed).to_have_count(1)
    expect(changed).to_have_text("paid, changed")
    expect(changed).to_have_attribute("title", "before: new")
    expect(history.nth(1)).to_contain_text("insert")
    expect(history.nth(1).locator("td.by")).to_have_text("http:anyone on this machine")
    expect(history.nth(1).locator("td.changed")).to_have_count(0)
    page.get_by_role("link", name="Query in SQL").click()
    editor = page.get_by_label("SQL", exact=True)
    expect(editor).to_have_value("SELECT *\nFROM orders\nWHERE id = 17")
    expect(page.get_by_role("grid")).to_contain_text("paid")


def test_deleted_missing_and_impossible_keys(browser: Browser, shop: Node) -> None:
    with open_page(browser, shop.url, allowed=("400",)) as page:
        page.goto("/table/orders?key=5")
        expect(page.get_by_role("region", name="Row")).to_contain_text("This row was deleted.")
        expect(page.get_by_role("table", name="History")).to_contain_text("delete")
        page.goto("/table/orders?key=12345")
        expect(page.get_by_role("region", name="Row")).to_contain_text("There is no row")
        page.goto("/table/orders?key=x")
        expect(page.get_by_role("alert")).to_contain_text("'x' is not a value of id")


def test_keys_of_several_columns_with_slashes_and_long_integers(page: Page) -> None:
    page.goto("/table/stock")
    page.get_by_label("region").fill(REGION)
    page.get_by_label("sku").fill("3")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.get_by_role("table", name="Current row")).to_contain_text("30")
    page.reload()
    expect(page.get_by_label("region")).to_have_value(REGION)
    expect(page.get_by_role("table", name="History").locator("tbody tr")).to_have_count(2)
    page.goto(f"/table/orders?key={BIG}")
    current = page.get_by_role("table", name="Current row")
    expect(current).to_contain_text(str(BIG))
    expect(current).to_contain_text("<img src=x>")
    assert page.evaluate("document.querySelectorAll('#screen img').length") == 0


def test_sample_rows_open_their_history(page: Page) -> None:
    page.goto("/table/stock")
    grid = page.get_by_role("grid")
    expect(grid.get_by_role("row")).to_have_count(6)
    grid.get_by_role("gridcell", name="30", exact=True).click()
    expect(page).to_have_url(re.compile(re.escape(STOCK_KEY)))
    expect(page.get_by_role("table", name="History")).to_be_visible()
    page.locator("#screen").focus()
    page.keyboard.press("Escape")
    expect(grid).to_be_visible()


def test_changes_appear_as_they_come_and_can_be_paused(page: Page, shop: Node) -> None:
    client = frazil.connect(shop.url)
    create(client, "live", {"id": "int64", "text": "string"}, ["id"])
    page.goto("/table/live?tab=changes")
    expect(page.get_by_text("No changes yet")).to_be_visible()
    table = client.table("live")
    table.upsert([{"id": number, "text": f"first {number}"} for number in range(3)])
    shown = page.get_by_role("table", name="Changes")
    expect(shown.locator("tbody tr")).to_have_count(3)
    expect(shown.locator("td.by").first).to_have_text("http:anyone on this machine")
    table.update([{"id": 1, "text": "second"}])
    expect(shown.locator("tbody tr").first).to_contain_text(re.compile('update.*text: "second"'))
    page.locator("#screen").focus()
    page.keyboard.press("p")
    expect(page.get_by_role("status")).to_contain_text("Paused")
    table.delete([2])
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(shown.locator("tbody tr")).to_have_count(4)
    page.keyboard.press("p")
    expect(shown.locator("tbody tr").first).to_contain_text("delete")
    shown.get_by_role("link", name="1", exact=True).first.click()
    expect(page.get_by_role("table", name="History").locator("tbody tr")).to_have_count(2)


def test_what_the_page_says_to_run_writes_to_the_table(page: Page, shop: Node) -> None:
    """In every language, in columns of every type."""
    kinds = "bool int8 uint64 float32 decimal(10,2) decimal(3,3) date timestamp timestamptz string"
    columns = {f"c{number}": kind for number, kind in enumerate((*kinds.split(), "binary"))}
    client = frazil.connect(shop.url)
    create(client, "typed", {"order": "int64", "at": "date", **columns}, ["order", "at"])
    page.goto("/table/typed?tab=write")
    expect(page.locator("#screen pre")).not_to_have_count(0)
    texts: list[str] = page.locator("#screen pre").all_inner_texts()
    shell, python, *statements = texts
    done = subprocess.run(["bash", "-ec", shell], capture_output=True, check=False, text=True)
    assert done.returncode == 0 and "error" not in done.stdout, done.stdout + done.stderr
    done = subprocess.run(
        [sys.executable, "-c", python], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "'c9': 'text'" in done.stdout
    for statement in statements:
        client.execute(statement)
    assert client.sql("SELECT count(*) FROM typed").fetchall() == [(0,)]
    page.goto("/table/typed?tab=changes")
    rows = page.get_by_role("table", name="Changes").locator("tbody tr")
    kinds_of_changes = [
        "insert",
        "delete",
        "insert",
        "update",
        "delete",
        "insert",
        "update",
        "delete",
    ]
    expect(rows).to_have_count(len(kinds_of_changes))
    shown = [text.split() for text in reversed(rows.all_inner_texts())]
    assert [words[2] for words in shown] == kinds_of_changes
    page.goto("/table/typed?tab=schema")
    definition = page.get_by_role("region", name="Statement").inner_text()
    client.execute(definition.replace("typed", "typed_again", 1))
    columns_of = client.get("/api/v1/tables/typed_again")["columns"]
    assert columns_of == client.get("/api/v1/tables/typed")["columns"]


def test_a_missing_table_is_an_error(browser: Browser, shop: Node) -> None:
    with open_page(browser, shop.url, allowed=("404",)) as page:
        page.goto("/table/nothing")
        expect(page.get_by_role("alert")).to_contain_text("there is no table nothing")


@pytest.mark.parametrize("width", [1024, 390])
def test_nothing_is_wider_than_the_window(browser: Browser, shop: Node, width: int) -> None:
    with open_page(browser, shop.url, width=width) as page:
        for path in ADDRESSES:
            page.goto(path)
            expect(page.get_by_text("Loading…")).to_have_count(0)
            page.wait_for_function(IS_IDLE)
            assert page.evaluate(OVERFLOW) <= 0, path


@pytest.mark.parametrize("theme", THEMES)
def test_the_screens_are_accessible(browser: Browser, shop: Node, theme: Theme) -> None:
    with open_page(browser, shop.url, theme=theme) as page:
        for path in ADDRESSES:
            page.goto(path)
            expect(page.get_by_text("Loading…")).to_have_count(0)
            assert accessibility_violations(page) == [], path
