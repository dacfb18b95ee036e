"""The lake screen, on tables filled without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

import frazil
from tests.clients.node import Node
from tests.serve.frozen import BEHIND, COLUMN, LOGS, ROUNDS, freeze
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page

NEVER = "lake.flush_age_ms=86400000"
"""No automatic commit, so that Spark does not start."""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("ui_lake") / "data"
    freeze(folder)
    with Node(folder, "--set", NEVER) as started:
        yield started


@pytest.fixture
def lake(browser: Browser, frozen: Node) -> Iterator[Page]:
    with open_page(browser, frozen.url) as opened:
        yield opened


def test_tables_are_listed_with_rows_and_lag(lake: Page) -> None:
    lake.goto("/lake")
    row = lake.get_by_role("row").filter(has_text="logs")
    expect(row).to_contain_text(f"{LOGS}")
    expect(row).to_contain_text(f"{BEHIND} (")
    lake.get_by_role("link", name="logs", exact=True).click()
    expect(lake).to_have_url(re.compile("table=logs"))
    expect(lake.get_by_role("heading", name="logs")).to_be_visible()


def test_a_snapshot_links_to_a_query_as_of_it(lake: Page, frozen: Node) -> None:
    """Its id exceeds the precision of a JavaScript number."""
    lake.goto("/lake?table=logs")
    ids = frazil.connect(frozen.url).sql(
        "SELECT CAST(snapshot_id AS VARCHAR) FROM snapshots "
        "WHERE table_name = 'logs' ORDER BY committed_at"
    )
    [first] = ids.fetchall()[0]
    snapshot = lake.get_by_role("button", name=first)
    snapshot.click()
    expect(lake.get_by_text("added-records", exact=True)).to_be_visible()
    row = lake.get_by_role("row").filter(has_text=first)
    row.get_by_role("link", name="Query this snapshot").click()
    text = lake.get_by_label("SQL", exact=True)
    expect(text).to_have_value(re.compile(f"SYSTEM_VERSION AS OF {first}"))
    read = lake.get_by_label("Scan statistics")
    expect(read).to_contain_text(f"lake {3 * ROUNDS[0]} rows")
    expect(lake.get_by_role("grid", name="Rows")).to_be_visible()


def test_a_snapshot_can_be_selected_for_a_query(lake: Page) -> None:
    lake.goto("/sql?q=SELECT%20count(*)%20AS%20n%20FROM%20logs")
    read = lake.get_by_label("Scan statistics")
    expect(read).to_contain_text(f"hot {3 * BEHIND} rows")
    expect(read).to_contain_text(f"lake {LOGS} rows")
    lake.get_by_role("button", name="Time travel").click()
    lake.get_by_role("dialog").get_by_role("row").last.get_by_role("button").click()
    lake.get_by_role("button", name="Run").click()
    expect(read).to_contain_text(f"lake {3 * ROUNDS[0]} rows")
    expect(lake.get_by_role("gridcell")).to_have_text(str(3 * ROUNDS[0]))


def test_partitions_link_to_their_files(lake: Page) -> None:
    lake.goto("/lake?table=logs&tab=partitions")
    lake.get_by_role("row").filter(has_text="time_day=").first.get_by_role("link").click()
    expect(lake).to_have_url(re.compile("partition=time_day"))
    expect(lake.get_by_role("img", name="Files by size")).to_be_visible()
    expect(lake.get_by_role("cell", name=".parquet").first).to_be_visible()


def test_schemas_show_added_columns(lake: Page) -> None:
    lake.goto("/lake?table=logs&tab=schema")
    expect(lake.get_by_role("link", name="Schema 1, current")).to_contain_text(f"+ {COLUMN}")
    expect(lake.get_by_role("cell", name=f"{COLUMN} new")).to_be_visible()
    lake.get_by_role("link", name="Schema 0").click()
    expect(lake.get_by_role("cell", name=COLUMN, exact=True)).to_have_count(0)


def test_the_copied_pyiceberg_snippet_reads_the_table(lake: Page, frozen: Node) -> None:
    lake.goto("/lake?table=logs&tab=read")
    expect(lake.get_by_role("region", name="For PyIceberg")).to_contain_text(
        f"sqlite:///{frozen.folder}/lake/catalog.db"
    )
    lake.get_by_role("button", name="Copy", exact=True).first.click()
    expect(lake.get_by_role("button", name="Copied")).to_be_visible()
    text = lake.evaluate("navigator.clipboard.readText()")
    found: dict[str, object] = {}
    exec(text, found)
    assert found["table"].scan().count() == LOGS  # type: ignore[attr-defined]


def test_flush_and_maintenance_show_their_result(lake: Page) -> None:
    """The responses are stubbed; other tests run Spark."""
    commit = {"table": "logs", "covered": [], "row_count": 1234, "dead_count": 1, "snapshot_id": 1}
    lake.route("**/api/v1/flush", lambda route: route.fulfill(json={"commits": [commit]}))
    tidied = {"table": "spans", "files_joined": 12, "files_made": 2, "snapshots_expired": 3}
    lake.route("**/api/v1/maintain", lambda route: route.fulfill(json={"tables": [tidied]}))
    lake.goto("/lake")
    lake.get_by_role("button", name="Flush now").click()
    expect(lake.get_by_text("logs: 1,234 rows committed, 1 dead letter")).to_be_visible()
    lake.get_by_role("button", name="Maintain now").click()
    told = "spans: 12 files compacted into 2, 3 snapshots expired"
    expect(lake.get_by_text(told)).to_be_visible()


def test_a_node_without_a_lake_says_why(page: Page) -> None:
    page.goto("/lake")
    expect(page.get_by_role("heading", name="No lake")).to_be_visible()
    expect(page.get_by_text("lake.enabled")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, frozen: Node, theme: Theme) -> None:
    with open_page(browser, frozen.url, theme=theme) as page:
        page.goto("/lake?table=logs")
        for tab in ("Snapshots", "Partitions", "Files", "Schema", "Properties", "Connect"):
            page.get_by_role("tab", name=tab).click()
            expect(page.get_by_role("tabpanel")).not_to_be_empty()
            assert accessibility_violations(page) == [], tab
