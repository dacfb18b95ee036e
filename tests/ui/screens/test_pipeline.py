"""The pipeline screen: health and live numbers of each stage, with the next step on failure."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page
from tests.ui.helpers.responses import HOSTILE, SNAPSHOT, alter_response, lake_status


def test_every_box_shows_its_health(page: Page) -> None:
    """A disabled component says how to enable it."""
    page.goto("/pipeline")
    expect(page.get_by_role("status").filter(has_text="All systems healthy")).to_be_visible()
    river = page.get_by_role("group", name="Pipeline")
    for name in ("OTLP in", "Log", "Hot tier", "Queries", "Subscribers"):
        expect(river.get_by_role("region", name=name, exact=True)).to_contain_text("ok")
    expect(river.get_by_role("region", name="Log", exact=True)).to_contain_text("of 10 GiB")
    expect(river.get_by_role("region", name="Log", exact=True)).to_contain_text("otlp_spans")
    expect(river.get_by_role("region", name="OTLP in")).to_contain_text("refused")
    spark = river.get_by_role("region", name="Spark")
    expect(spark).to_contain_text("off")
    expect(spark).to_contain_text("pip install 'frazil[lake]'")
    said = river.get_by_role("listitem").filter(has_text="OTLP in (ok) goes to Log (ok)")
    expect(said).to_have_count(1)


def test_numbers_refresh_automatically(page: Page) -> None:
    looks = 0

    def count(found: dict[str, Any]) -> None:
        nonlocal looks
        looks += 1
        found["log"]["queue_batches"] = 100 + looks

    alter_response(page, "status", count)
    page.goto("/pipeline")
    log = page.get_by_role("region", name="Log", exact=True)
    expect(log).to_contain_text("101, ")
    expect(log).to_contain_text("103, ")


def test_a_failed_check_shows_its_reason_and_next_step(page: Page) -> None:
    """Healthy components stay unaffected."""

    def break_it(found: dict[str, Any]) -> None:
        for check in found["checks"]:
            if check["component"] == "log":
                check |= {"state": "failed", "why": "the log is full", "next_step": "free room"}
            if check["component"] == "hot":
                check |= {"state": "degraded", "why": "rows come late", "next_step": "look there"}

    alter_response(page, "health", break_it)
    page.goto("/pipeline")
    expect(page.get_by_role("status").filter(has_text="Failed: log.")).to_be_visible()
    log = page.get_by_role("region", name="Log", exact=True)
    expect(log).to_contain_text("failed")
    expect(log).to_contain_text("the log is full")
    expect(log).to_contain_text("Next: free room")
    expect(page.get_by_role("region", name="Hot tier")).to_contain_text("degraded")
    expect(page.get_by_role("region", name="Queries")).to_contain_text("ok")
    page.goto("/")
    expect(page.get_by_role("link", name="Pipeline: Failed: log.")).to_be_visible()


def test_the_selected_details_are_kept_in_the_address(page: Page) -> None:
    page.goto("/pipeline")
    partitions = page.get_by_role("region", name="Partitions")
    expect(partitions.get_by_role("row").filter(has_text="otlp_logs")).to_be_visible()
    page.get_by_role("link", name="Subscribers").click()
    expect(page).to_have_url(re.compile("show=subscribers"))
    shown = page.get_by_role("region", name="Subscribers").filter(has=page.locator("table"))
    expect(shown).to_contain_text("hot_spans")
    page.get_by_role("link", name="Refusals").click()
    expect(page.get_by_role("region", name="Refusals")).to_contain_text("No requests refused")
    page.go_back()
    expect(shown).to_be_visible()


def test_spark_progress_commits_and_a_flush_are_shown(page: Page) -> None:
    alter_response(page, "status", lambda found: found.update(lake=lake_status()))
    committed = {"table": "spans", "covered": [], "row_count": 4321, "dead_count": 0}
    page.route(
        "**/api/v1/flush",
        lambda route: route.fulfill(json={"commits": [{**committed, "snapshot_id": 1}]}),
    )
    page.goto("/pipeline?show=commits")
    spark = page.get_by_role("region", name="Spark")
    expect(spark).to_contain_text("running, pid 4711")
    expect(spark).to_contain_text("writing files, 1 MiB of 4 MiB, for 3 s")
    expect(spark).to_contain_text("3 MiB of 128 MiB")
    expect(page.get_by_role("region", name="Iceberg tables")).to_contain_text("9, 7 small")
    expect(page.get_by_role("region", name="Last commits")).to_contain_text(str(SNAPSHOT))
    page.get_by_role("button", name="Flush now").click()
    expect(spark.get_by_role("status")).to_contain_text("4,321 rows in 1 commit. Took")


def test_a_failed_job_shows_the_reason(browser: Browser, node: Node) -> None:
    with open_page(browser, node.url, allowed=("429",)) as page:
        alter_response(page, "status", lambda found: found.update(lake=lake_status()))
        refused = {"error": {"kind": "overloaded", "message": "16 jobs wait already"}}
        page.route("**/api/v1/maintain", lambda route: route.fulfill(status=429, json=refused))
        page.goto("/pipeline")
        page.get_by_role("button", name="Maintain now").click()
        expect(page.get_by_role("alert")).to_have_text("16 jobs wait already")


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with open_page(browser, node.url, theme=theme) as page:
        alter_response(page, "status", lambda found: found.update(lake=lake_status()))
        for show in ("partitions", "subscribers", "tables", "commits", "refusals"):
            page.goto(f"/pipeline?show={show}")
            expect(page.get_by_role("region", name="Spark")).to_be_visible()
            assert accessibility_violations(page) == []


def test_hostile_names_are_shown_as_text(page: Page) -> None:
    """Names of topics and subscribers do not widen the page."""

    def rename(found: dict[str, Any]) -> None:
        found["log"]["topics"][0]["topic"] = HOSTILE
        found["subscribers"][0]["subscriber"] = HOSTILE
        found["data"] = HOSTILE

    alter_response(page, "status", rename)
    for show in ("partitions", "subscribers"):
        page.goto(f"/pipeline?show={show}")
        expect(page.get_by_text("<img src=x").first).to_be_visible()
        assert page.evaluate("document.querySelectorAll('#screen img').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
