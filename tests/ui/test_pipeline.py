"""The pipeline: each box says how it does and what to do, with numbers that move."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Route, expect

from tests.clients.node import Node
from tests.ui.watched import THEMES, Theme, violations, watched

SNAPSHOT = 9007199254740993123
"""More than a number in a browser can hold."""
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x00" + "x" * 500


def lake() -> dict[str, Any]:
    """The status of a lake in the middle of a round."""
    commit = {
        "table": "spans",
        "snapshot_id": SNAPSHOT,
        "snapshot": str(SNAPSHOT),
        "operation": "append",
        "added_rows": 1234,
        "committed_ms": 1_794_839_000_000,
        "age_s": 12.0,
    }
    doing = {
        "work": "round",
        "step": "writes files",
        "table": None,
        "begun_ms": 1_794_839_000_000,
        "age_s": 3.0,
        "task_count": 3,
        "log_bytes": 4 * 1024 * 1024,
        "done_bytes": 1024 * 1024,
        "done_rows": 10,
    }
    table = {"table": "spans", "snapshot_id": SNAPSHOT, "rows": 5000, "bytes": 1_000_000}
    return {
        "spark": {"state": "running", "pid": 4711, "trouble": None},
        "lag_bytes": 3 * 1024 * 1024,
        "lag_age_s": 30.0,
        "flush_bytes": 128 * 1024 * 1024,
        "flush_age_ms": 60_000,
        "doing": doing,
        "last_commit": commit,
        "commits": [commit],
        "tables": [{**table, "files": 9, "small_files": 7}],
        "trouble": None,
        "given_up": None,
    }


def change(page: Page, path: str, by: Callable[[dict[str, Any]], None]) -> None:
    """Have the node answer otherwise than it would."""

    def answer(route: Route) -> None:
        try:
            response = route.fetch()
            found = response.json()
            by(found)
            route.fulfill(response=response, json=found)
        except Error:
            return  # The page is closed: the test has ended in the middle of a look.

    page.route(f"**/api/v1/{path}", answer)


def test_every_box_says_how_it_does(page: Page) -> None:
    """What is off says how to switch it on."""
    page.goto("/pipeline")
    expect(page.get_by_role("status").filter(has_text="All rooms are well.")).to_be_visible()
    river = page.get_by_role("group", name="The river")
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


def test_numbers_move_by_themselves(page: Page) -> None:
    """Looked at again and again, without anybody pressing anything."""
    looks = 0

    def count(found: dict[str, Any]) -> None:
        nonlocal looks
        looks += 1
        found["log"]["queue_batches"] = 100 + looks

    change(page, "status", count)
    page.goto("/pipeline")
    log = page.get_by_role("region", name="Log", exact=True)
    expect(log).to_contain_text("101, ")
    expect(log).to_contain_text("103, ")


def test_what_is_wrong_is_said_with_the_next_step(page: Page) -> None:
    """By a word and a shape, and the rooms that are well stay so."""

    def break_it(found: dict[str, Any]) -> None:
        for check in found["checks"]:
            if check["room"] == "log":
                check |= {"state": "failed", "why": "the log is full", "next_step": "free room"}
            if check["room"] == "hot":
                check |= {"state": "degraded", "why": "rows come late", "next_step": "look there"}

    change(page, "health", break_it)
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


def test_details_are_in_the_address(page: Page) -> None:
    page.goto("/pipeline")
    partitions = page.get_by_role("region", name="Partitions")
    expect(partitions.get_by_role("row").filter(has_text="otlp_logs")).to_be_visible()
    page.get_by_role("link", name="Subscribers").click()
    expect(page).to_have_url(re.compile("show=subscribers"))
    shown = page.get_by_role("region", name="Subscribers").filter(has=page.locator("table"))
    expect(shown).to_contain_text("hot_spans")
    page.get_by_role("link", name="Refusals").click()
    expect(page.get_by_role("region", name="Refusals")).to_contain_text("Nothing was refused")
    page.go_back()
    expect(shown).to_be_visible()


def test_a_round_its_commits_and_a_flush(page: Page) -> None:
    """What Spark does now, what it has done, and a button that has it do more."""
    change(page, "status", lambda found: found.update(lake=lake()))
    committed = {"table": "spans", "covered": [], "row_count": 4321, "dead_count": 0}
    page.route(
        "**/api/v1/flush",
        lambda route: route.fulfill(json={"commits": [{**committed, "snapshot_id": 1}]}),
    )
    page.goto("/pipeline?show=commits")
    spark = page.get_by_role("region", name="Spark")
    expect(spark).to_contain_text("running, pid 4711")
    expect(spark).to_contain_text("writes files, 1 MiB of 4 MiB, for 3 s")
    expect(spark).to_contain_text("3 MiB of 128 MiB")
    expect(page.get_by_role("region", name="Iceberg tables")).to_contain_text("9, 7 small")
    expect(page.get_by_role("region", name="Last commits")).to_contain_text(str(SNAPSHOT))
    page.get_by_role("button", name="Flush now").click()
    expect(spark.get_by_role("status")).to_contain_text("4,321 rows in 1 commit. It took")


def test_a_work_that_fails_says_why(browser: Browser, node: Node) -> None:
    with watched(browser, node.url, allowed=("429",)) as page:
        change(page, "status", lambda found: found.update(lake=lake()))
        refused = {"error": {"kind": "overloaded", "message": "16 jobs wait already"}}
        page.route("**/api/v1/maintain", lambda route: route.fulfill(status=429, json=refused))
        page.goto("/pipeline")
        page.get_by_role("button", name="Maintain now").click()
        expect(page.get_by_role("alert")).to_have_text("16 jobs wait already")


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible(browser: Browser, node: Node, theme: Theme) -> None:
    with watched(browser, node.url, theme=theme) as page:
        change(page, "status", lambda found: found.update(lake=lake()))
        for show in ("partitions", "subscribers", "tables", "commits", "refusals"):
            page.goto(f"/pipeline?show={show}")
            expect(page.get_by_role("region", name="Spark")).to_be_visible()
            assert violations(page) == []


def test_names_that_are_hostile_do_no_harm(page: Page) -> None:
    """Topics and subscribers may be called anything; the page is as wide as before."""

    def rename(found: dict[str, Any]) -> None:
        found["log"]["topics"][0]["topic"] = HOSTILE
        found["subscribers"][0]["subscriber"] = HOSTILE
        found["data"] = HOSTILE

    change(page, "status", rename)
    for show in ("partitions", "subscribers"):
        page.goto(f"/pipeline?show={show}")
        expect(page.get_by_text("<img src=x").first).to_be_visible()
        assert page.evaluate("document.querySelectorAll('#screen img').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
