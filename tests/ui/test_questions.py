"""The ten questions of docs/page.md, walked on the page: clicks are counted, answers compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import frazil
from tests.clients.node import Node
from tests.pages import ROOT

HEADING = "## Ten questions of daily work"
UNITS_NANO = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
ENTRY = "entry_spans"


def documented() -> dict[str, int]:
    """Return question -> clicks of the table in docs/page.md."""
    text = (ROOT / "docs" / "page.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \d+ \| (.+?) \| .+? \| (\d+) \| .+? \|$", text, re.MULTILINE)
    return {question: int(clicks) for question, clicks in rows}


@dataclass(slots=True)
class Visitor:
    """A person at the start page, whose clicks are counted. Typing is free."""

    page: Page
    node: Node
    clicks: int = field(default=0)

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def choose(self, target: Locator, label: str) -> None:
        """Open a list and choose from it: two clicks."""
        target.select_option(label=label)
        self.clicks += 2

    def go(self, screen: str) -> None:
        """Click a screen of the navigation."""
        navigation = self.page.get_by_role("navigation", name="Screens")
        self.click(navigation.get_by_role("link", name=screen, exact=True))

    def sql(self, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = frazil.connect(self.node.url).sql(query).arrow().to_pylist()
        return rows

    def row(self, query: str) -> dict[str, Any]:
        (found,) = self.sql(query)
        return found


def share(part: float, whole: float) -> str:
    """Return a share as the page shows it."""
    percent = 100 * part / whole
    return f"{float(f'{percent:.{1 if percent < 10 else 0}f}'):g} %"


def duration_nano(text: str) -> float:
    value, unit = text.split()
    return float(value) * UNITS_NANO[unit]


def why_checkouts_fail(you: Visitor) -> None:
    fails = you.page.get_by_role("region", name=re.compile("failed requests"))
    top = you.row(
        "SELECT service_name, status_message, count(*) AS n FROM spans AS failed "
        "WHERE status_code = 'ERROR' AND status_message <> '' AND NOT EXISTS (SELECT 1 FROM spans "
        "AS child WHERE child.trace_id = failed.trace_id AND child.status_code = 'ERROR' "
        "AND child.parent_span_id = failed.span_id) GROUP BY 1, 2 ORDER BY n DESC LIMIT 1"
    )
    first = fails.get_by_role("row").nth(1)
    expect(first).to_contain_text(top["status_message"])
    expect(first).to_contain_text(top["service_name"])
    payment = fails.get_by_role("row").filter(has_text="no answer within 1500 ms").first
    you.click(payment.get_by_role("link", name="Open trace"))
    you.click(
        you.page.get_by_role("navigation", name="Trace views").get_by_role("link", name="Logs")
    )
    trace_id = re.search("/trace/([0-9a-f]{32})", you.page.url)
    assert trace_id is not None
    cause = you.row(
        f"SELECT body FROM logs WHERE trace_id = '{trace_id[1]}' AND service_name = 'payment' "
        "AND severity_number >= 17 ORDER BY time LIMIT 1"
    )
    line = cause["body"].splitlines()[0][:60]
    expect(you.page.locator("#screen")).to_contain_text(line)
    assert "provider did not answer" in line


def why_since_the_deploy(you: Visitor) -> None:
    you.go("Services")
    you.click(you.page.get_by_role("button", name="checkout"))
    you.choose(you.page.get_by_label("Compare", exact=True), "1.7.4 \u2192 1.8.0")
    shown = you.page.get_by_role("region", name="Comparison")
    rates = [
        you.row(
            f"SELECT count(*) AS n, count(*) FILTER (WHERE status_code = 'ERROR') AS bad FROM "
            f"{ENTRY} WHERE service_name = 'checkout' "
            f"AND resource_attributes['service.version'] = '{version}'"
        )
        for version in ("1.7.4", "1.8.0")
    ]
    row = shown.get_by_role("row", name=re.compile("^Error rate"))
    for number, each in enumerate(rates):
        expect(row.get_by_role("cell").nth(number)).to_have_text(share(each["bad"], each["n"]))
    new = shown.get_by_role("row").filter(has_text="index out of range")
    expect(new.first).to_contain_text("1.8.0")
    old = you.row(
        "SELECT count(*) AS n FROM logs WHERE service_name = 'checkout' AND body LIKE "
        "'%index out of range%' AND resource_attributes['service.version'] = '1.7.4'"
    )
    assert old["n"] == 0


def which_pod_logs_this(you: Visitor) -> None:
    you.go("Logs")
    expect(you.page.get_by_role("combobox", name="Search logs")).to_be_visible()
    you.page.keyboard.press("/")
    you.page.keyboard.type('"slow query"')
    you.page.keyboard.press("Enter")
    top = you.sql(
        "SELECT k8s_pod_name AS pod, count(*) AS n FROM logs WHERE matches(body, '\"slow query\"') "
        "GROUP BY 1 ORDER BY n DESC, 1"
    )
    total = sum(each["n"] for each in top)
    expect(you.page.get_by_text(f"{total:,} records")).to_be_visible()
    facets = you.page.get_by_role("complementary", name="Facets")
    for pod in top[:2]:
        value = facets.get_by_role("button", name=re.compile(f"^{re.escape(pod['pod'])} "))
        expect(value).to_have_text(re.compile(rf"{pod['n']}$"))


def who_sends_the_most(you: Visitor) -> None:
    you.go("Volume")
    rows = " UNION ALL ".join(
        f"SELECT lower(service_name) AS service FROM {table}"
        for table in ("logs", "spans", "metrics")
    )
    top = you.row(f"SELECT service, count(*) AS n FROM ({rows}) GROUP BY 1 ORDER BY n DESC LIMIT 1")
    services = you.page.get_by_role("region", name="Services")
    first = services.get_by_role("row").nth(1)
    expect(first).to_contain_text(top["service"])
    expect(first).to_contain_text(f"{top['n']:,}")


def which_service_fails_most(you: Visitor) -> None:
    you.go("Services")
    top = you.row(
        "SELECT service_name, count(*) AS n, count(*) FILTER (WHERE status_code = 'ERROR') AS bad "
        f"FROM {ENTRY} GROUP BY 1 ORDER BY bad * 1.0 / count(*) DESC LIMIT 1"
    )
    first = you.page.get_by_role("tabpanel").get_by_role("table").first.locator("tbody tr").first
    expect(first).to_contain_text(top["service_name"])
    expect(first).to_contain_text(share(top["bad"], top["n"]))


def which_request_took_longest(you: Visitor) -> None:
    you.go("Traces")
    you.click(you.page.get_by_role("button", name="Duration", exact=True))
    expect(you.page).to_have_url(re.compile("order=longest"))
    top = you.row(
        "SELECT trace_id FROM spans GROUP BY 1 ORDER BY max(time_unix_nano + duration_nano) - "
        "min(time_unix_nano) DESC LIMIT 1"
    )
    first = you.page.get_by_role("list", name="Traces").get_by_role("link").first
    expect(first).to_have_attribute("href", re.compile(top["trace_id"]))
    you.click(first)
    expect(you.page).to_have_url(re.compile(f"/trace/{top['trace_id']}"))
    expect(you.page.get_by_role("treegrid").get_by_role("row").first).to_be_visible()


def what_the_logs_say_most(you: Visitor) -> None:
    you.go("Logs")
    you.click(you.page.get_by_role("button", name="Patterns"))
    first = you.page.get_by_role("region", name="Patterns").get_by_role("row").nth(1)
    top = you.row(
        "SELECT service_name, split_part(body, ' ', 1) AS word, count(*) AS n FROM logs "
        "GROUP BY 1, 2 ORDER BY n DESC LIMIT 1"
    )
    expect(first.get_by_role("cell").nth(1)).to_have_text(f"{top['n']:,}")
    expect(first).to_contain_text(top["service_name"])
    expect(first.get_by_role("link")).to_have_text(re.compile(f"^{top['word']} "))


def what_is_this_trace(you: Visitor) -> None:
    wanted = you.row("SELECT trace_id FROM spans WHERE status_code = 'ERROR' LIMIT 1")["trace_id"]
    you.page.keyboard.press("Control+k")
    you.page.get_by_role("combobox", name="Find").fill(wanted[:12])
    option = you.page.get_by_role("option").filter(has_text=wanted[:12])
    expect(option.first).to_be_visible()
    you.page.keyboard.press("Enter")
    expect(you.page).to_have_url(re.compile(f"/trace/{wanted}"))
    expect(you.page.get_by_role("treegrid").get_by_role("row").first).to_be_visible()


def which_operation_is_slow(you: Visitor) -> None:
    you.go("Services")
    you.click(you.page.get_by_role("button", name="catalogue"))
    inside = you.page.locator("td.inside")
    expect(inside.get_by_role("columnheader", name="Max latency")).to_be_visible()
    for each in you.sql(
        "SELECT name, CAST(percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_nano) AS BIGINT) "
        f"AS p95 FROM {ENTRY} WHERE service_name = 'catalogue' GROUP BY 1"
    ):
        row = inside.get_by_role("row").filter(
            has=you.page.get_by_role("link", name=each["name"], exact=True)
        )
        shown = row.last.get_by_role("cell").nth(4).inner_text()
        assert duration_nano(shown) == pytest.approx(each["p95"], rel=0.01)


def who_calls_payment(you: Visitor) -> None:
    you.go("Services")
    you.click(you.page.get_by_role("tab", name="Dependencies"))
    calls = you.sql(
        "SELECT caller.service_name AS caller, count(*) AS n, "
        "count(*) FILTER (WHERE callee.status_code = 'ERROR') AS bad "
        f"FROM {ENTRY} AS callee JOIN spans AS caller ON callee.trace_id = caller.trace_id "
        "AND callee.parent_span_id = caller.span_id "
        "WHERE callee.service_name = 'payment' AND caller.service_name <> 'payment' GROUP BY 1"
    )
    assert [call["caller"] for call in calls] == ["checkout"]
    rows = you.page.get_by_role("tabpanel").get_by_role("row")
    row = rows.filter(has_text="checkout").filter(has_text="payment")
    expect(row.get_by_role("cell").nth(3)).to_have_text(f"{calls[0]['n']:,}")
    expect(row.get_by_role("cell").nth(4)).to_have_text(share(calls[0]["bad"], calls[0]["n"]))


WALKS: dict[str, Callable[[Visitor], None]] = {
    "Checkouts fail. Why?": why_checkouts_fail,
    "Why does checkout fail since the deploy?": why_since_the_deploy,
    "Which pod logs this?": which_pod_logs_this,
    "Who sends the most?": who_sends_the_most,
    "Which service fails most often?": which_service_fails_most,
    "Which request took longest, and where?": which_request_took_longest,
    "What do the logs say most often?": what_the_logs_say_most,
    "What happened in this trace, of which I have an id?": what_is_this_trace,
    "Which operation of catalogue is slow?": which_operation_is_slow,
    "Who calls payment, and how often does that fail?": who_calls_payment,
}


def test_the_page_lists_the_questions_that_are_walked() -> None:
    assert list(documented()) == list(WALKS)


@pytest.mark.parametrize("question", WALKS)
def test_a_question_is_answered_in_as_many_clicks_as_documented(
    page: Page, node: Node, question: str
) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Open trace").first).to_be_visible()
    visitor = Visitor(page, node)
    WALKS[question](visitor)
    assert visitor.clicks == documented()[question]
