"""Request rate, error rate and latency: equal on every screen, in SQL, in the command and in the
API to what DuckDB computes from the same rows."""

from __future__ import annotations

import datetime
import json
import math
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import duckdb
import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, Response, expect

import frazil
from tests.clients.node import COMMAND, Node

PRECISION = 1e-6
"""Of the largest value: DataFusion interpolates to a millionth of the gap between two values."""
SHOWN = 0.006
"""Relative; three digits are shown."""
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}

# By the parent's service instead of by flags: the shop sets the flags as SDKs do, so both must
# find the same requests.
REQUESTS = """
    SELECT child.*, parent.service_name AS caller
    FROM spans AS child LEFT JOIN spans AS parent
    ON parent.trace_id = child.trace_id AND parent.span_id = child.parent_span_id
    WHERE (child.kind IN ('SERVER', 'CONSUMER') OR child.parent_span_id IS NULL
        OR parent.service_name <> child.service_name)
"""
RED = """count(*) AS requests, count(*) FILTER (status_code = 'ERROR') AS errors,
    quantile_cont(duration_nano, 0.5) AS p50, quantile_cont(duration_nano, 0.95) AS p95,
    quantile_cont(duration_nano, 0.99) AS p99, max(duration_nano) AS longest"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The rows of the node in DuckDB, and a time range that cuts them on both sides."""

    database: duckdb.DuckDBPyConnection
    since: datetime.datetime
    until: datetime.datetime

    def red(
        self, *keys: str, where: str = "true", is_cut: bool = True
    ) -> dict[Any, dict[str, Any]]:
        """Requests, errors and percentiles by `keys`, of the range or of all rows."""
        cut = "child.time_us >= ? AND child.time_us < ?" if is_cut else "true"
        found = self.database.execute(
            f"SELECT {', '.join(keys)}, {RED} FROM ({REQUESTS} AND {cut}) WHERE {where} "
            f"GROUP BY {', '.join(keys)}",
            [micros(self.since), micros(self.until)] if is_cut else [],
        ).fetchall()
        count = len(keys)
        names = ("requests", "errors", "p50", "p95", "p99", "longest")
        return {
            row[0] if count == 1 else row[:count]: dict(zip(names, row[count:], strict=True))
            for row in found
        }

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    @property
    def params(self) -> dict[str, str]:
        """The range as parameters of an address."""
        return {"from": moment(self.since), "to": moment(self.until)}


def micros(time: datetime.datetime) -> int:
    return round(time.timestamp() * 1_000_000)


def bucket(seconds: int) -> str:
    """SQL of the start of a step, in microseconds since 1970."""
    return f"time_us // {seconds}000000 * {seconds}000000"


def moment(time: datetime.datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture(scope="module")
def expected(node: Node) -> Expected:
    columns = "time, service_name, trace_id, span_id, parent_span_id, name, kind, status_code"
    spans = frazil.connect(node.url).sql(f"SELECT {columns}, duration_nano FROM spans").arrow()
    database = duckdb.connect()
    database.register("rows_of_node", pa.table(spans))
    database.execute("CREATE TABLE spans AS SELECT *, epoch_us(time) AS time_us FROM rows_of_node")
    bounds = database.execute("SELECT min(time_us), max(time_us) FROM spans").fetchall()
    first, last = (time_us // 1_000_000 for time_us in bounds[0])
    margin = (last - first) // 5
    return Expected(
        database=database,
        since=datetime.datetime.fromtimestamp(first + margin, datetime.UTC),
        until=datetime.datetime.fromtimestamp(last - margin, datetime.UTC),
    )


def check(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare an object of the API with a row of DuckDB."""
    assert found.get("request_count", found.get("call_count")) == wanted["requests"]
    assert found["error_count"] == wanted["errors"]
    for name in ("p50", "p95", "p99"):
        if f"{name}_nano" in found:
            distance = abs(found[f"{name}_nano"] - wanted[name])
            assert distance <= max(1, PRECISION * wanted["longest"]), (name, found, wanted)


def test_the_latency_heatmap_equals_duckdb(node: Node, expected: Expected, page: Page) -> None:
    """Every cell of every service; and a cell opens exactly its traces."""
    cut = {"since": moment(expected.since), "until": moment(expected.until), "step": "60s"}
    row = "CAST(floor(log10(greatest(duration_nano, 1)) * 10 + 1e-9) AS BIGINT)"
    wanted = expected.red("service_name", bucket(60), row)
    found = {}
    for service in expected.red("service_name"):
        answer = frazil.connect(node.url).get(
            "/api/v1/services/heatmap", {**cut, "service": service}
        )
        since = micros(datetime.datetime.fromisoformat(answer["since"]))
        for cell in answer["cells"]:
            low = answer["buckets"][cell["bucket"]]["low"]
            key = (service, since + 60_000_000 * cell["step"], round(10 * math.log10(low)))
            found[key] = (cell["count"], cell["error_count"])
    assert found == {key: (each["requests"], each["errors"]) for key, each in wanted.items()}

    page.goto(f"/services?{urlencode({**expected.params, 'open': 'checkout'})}")
    heatmap = page.get_by_role("group", name="Latency of checkout over time")
    heatmap.focus()
    page.keyboard.press("ArrowLeft")
    tip = heatmap.get_by_role("status")
    expect(tip).to_contain_text("requests")
    shown = int(re.match(r"\d+", tip.inner_text()).group())  # type: ignore[union-attr]
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/traces\?.*entry%3Atrue"))
    listed = page.get_by_role("list", name="Traces").get_by_role("listitem")
    expect(listed).to_have_count(shown)


def test_the_api_equals_duckdb(node: Node, expected: Expected) -> None:
    """Services, steps, operations and calls, in a time range that cuts traces."""
    client = frazil.connect(node.url)
    cut = {"since": moment(expected.since), "until": moment(expected.until)}

    def get(path: str, **more: object) -> Any:
        return client.get(f"/api/v1/{path}", {**cut, **more})[path.rpartition("/")[2]]

    services = expected.red("service_name")
    assert len(services) == 9
    found = {each["name"]: each for each in get("services") if each["request_count"]}
    assert found.keys() == services.keys()
    for name, wanted in services.items():
        check(found[name], wanted)
    operations = expected.red("service_name", "name")
    listed = {(each["service"], each["operation"]): each for each in get("operations", limit=1000)}
    assert listed.keys() == operations.keys()
    for key, wanted in operations.items():
        check(listed[key], wanted)
    calls = expected.red("caller", "service_name", where="caller <> service_name")
    direct = {
        (each["caller"], each["callee"]): each
        for each in get("dependencies")
        if not each["is_linked"]
    }
    assert direct.keys() == calls.keys()
    for key, wanted in calls.items():
        check(direct[key], wanted)
    steps = expected.red("service_name", bucket(60))
    series = client.get("/api/v1/services/series", {**cut, "step": "1m"})["steps"]
    assert len(series) == len(steps)
    for each in series:
        check(each, steps[each["service"], micros(datetime.datetime.fromisoformat(each["time"]))])


def test_sql_and_the_command_equal_duckdb(node: Node, expected: Expected) -> None:
    """The view `entry_spans` as the recipes use it, and `frazil services`."""
    services = expected.red("service_name")
    since, until = moment(expected.since), moment(expected.until)
    rows = frazil.connect(node.url).sql(
        "SELECT service_name, count(*) AS request_count, "
        "count(*) FILTER (WHERE status_code = 'ERROR') AS error_count, "
        "percentile(duration_nano, 0.5) AS p50_nano, percentile(duration_nano, 0.95) AS p95_nano, "
        "percentile(duration_nano, 0.99) AS p99_nano FROM entry_spans "
        f"WHERE time >= '{since}' AND time < '{until}' GROUP BY service_name"
    )
    found = {row["service_name"]: row for row in rows.arrow().to_pylist()}
    assert found.keys() == services.keys()
    command = [*COMMAND, "services", "--url", node.url, "--since", since, "--until", until]
    output = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    said = {each["name"]: each for each in map(json.loads, output.stdout.splitlines())}
    for name, wanted in services.items():
        check(found[name], wanted)
        check(said[name], wanted)
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "error rate" in table and "payment" in table


def nanos(text: str) -> float:
    """`1.67 s` as nanoseconds."""
    number, unit = text.split()
    return float(number) * UNITS[unit]


def check_texts(
    wanted: dict[str, Any], *, rate: str = "", share: str = "", **latencies: str
) -> None:
    """Compare what is shown with a row of DuckDB."""
    if rate:
        assert is_shown(float(rate.replace(",", "")), wanted["rate"]), (rate, wanted)
    percent = 100 * wanted["errors"] / wanted["requests"]
    found = 0.0 if share in ("\u2013", "no errors") else float(re.findall(r"[\d.]+", share)[0])
    assert abs(found - percent) <= (0.06 if percent < 10 else 0.6), (share, wanted)
    for name, text in latencies.items():
        assert is_shown(nanos(text), wanted[name]), (name, text, wanted)


def is_shown(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= SHOWN * wanted


def cells(row: Locator) -> list[str]:
    return [text.strip() for text in row.locator("th, td").all_inner_texts()]


def rated(row: dict[str, Any], seconds: float) -> dict[str, Any]:
    return {**row, "rate": row["requests"] / seconds}


def test_services_and_map_equal_duckdb(page: Page, expected: Expected) -> None:
    services = expected.red("service_name")
    page.goto(f"/services?{urlencode(expected.params)}")
    rows = page.get_by_role("tabpanel").get_by_role("table").first.locator("tbody tr")
    expect(rows).to_have_count(len(services))
    for row in rows.all():
        name, _, rate, _, share, p50, _, p95, p99, *_ = cells(row)
        wanted = rated(services.pop(name.lstrip("▸ \n").strip()), expected.seconds)
        check_texts(wanted, rate=rate, share=share, p50=p50, p95=p95, p99=p99)
    assert services == {}
    page.get_by_role("tab", name="Dependencies").click()
    calls = expected.red("caller", "service_name", where="caller <> service_name")
    listed = page.get_by_role("tabpanel").locator("tbody tr").filter(has_not_text="async")
    expect(listed).to_have_count(len(calls))
    for row in listed.all():
        caller, callee, rate, _, share, p95, p99, _ = cells(row)
        wanted = rated(calls[caller, callee], expected.seconds)
        check_texts(wanted, rate=rate, share=share, p95=p95, p99=p99)
    page.get_by_role("tab", name="Map").click()
    drawn = page.get_by_role("group", name="Services and their calls")
    expect(drawn.locator("a.service")).to_have_count(9)
    told = re.compile(r"(\S+): ([\d.,]+) requests per second, (.+) errors, p95 (.+)")
    services = expected.red("service_name")
    for text in drawn.locator("a.service title").all_text_contents():
        match = told.fullmatch(text)
        assert match is not None, text
        wanted = rated(services[match[1]], expected.seconds)
        check_texts(wanted, rate=match[2], share=match[3], p95=match[4])
    told = re.compile(r"(\S+) calls (\S+): ([\d.,]+) per second, (.+) errors, p95 (.+), p99 (.+)")
    edges = [told.fullmatch(text) for text in drawn.locator("a.call title").all_text_contents()]
    assert len([edge for edge in edges if edge]) == len(calls)
    for match in filter(None, edges):
        wanted = rated(calls[match[1], match[2]], expected.seconds)
        check_texts(wanted, rate=match[3], share=match[4], p95=match[5], p99=match[6])


def test_home_equals_duckdb(page: Page, expected: Expected) -> None:
    """Home shows the last hour, which has all rows."""
    services = expected.red("service_name", is_cut=False)
    page.goto("/")
    rows = page.get_by_role("region", name="Services in the last hour").locator("tbody tr")
    expect(rows).to_have_count(len(services))
    for row in rows.all():
        name, requests, errors, share, p95, _ = cells(row)
        wanted = services[name]
        assert int(requests.replace(",", "")) == wanted["requests"]
        assert int(errors.replace(",", "")) == wanted["errors"]
        check_texts(wanted, share=share, p95=p95)


def test_the_dashboard_template_equals_duckdb(page: Page, node: Node, expected: Expected) -> None:
    """What its panels load, step by step and by operation."""
    answers: dict[str, Any] = {}

    def keep(response: Response) -> None:
        if response.url.endswith("/api/v1/sql"):
            answers[json.loads(response.request.post_data or "{}")["sql"]] = response

    page.on("response", keep)
    page.goto(f"/dashboards?{urlencode(expected.params)}")
    page.get_by_role("button", name="New dashboard").first.click()
    page.get_by_label("Title").fill("Requests")
    page.get_by_label("Services").check()
    page.get_by_role("button", name="Create").click()
    for title in ("Operations", "p95 latency", "Error rate", "Requests per second"):
        shown = page.get_by_role("region", name=title, exact=True)
        expect(shown.get_by_role("row").nth(5)).to_be_attached()
    expect(page.locator(".busy.shown")).to_have_count(0)

    def rows_of(column: str) -> tuple[str, list[list[Any]]]:
        """SQL and rows of the panel with this column, as it was loaded last: panels load again when
        the services are known."""
        *_, found = [sql for sql in panels if f"AS {column}\n" in sql]
        return found, answers[found].json()["rows"]

    panels = [sql for sql in answers if "LIMIT 20" not in sql]
    sql, rates = rows_of("rate")
    (width,) = re.findall(r"'(\d+) seconds'", sql)
    steps = expected.red(bucket(int(width)), "service_name")
    assert len(rates) == len(steps)
    values: dict[str, Callable[[dict[str, Any]], float]] = {
        "rate": lambda row: row["requests"] / int(width),
        "error_rate": lambda row: 100 * row["errors"] / row["requests"],
        "p95": lambda row: row["p95"],
    }
    for column, value in values.items():
        for at, service, found in rows_of(column)[1]:
            step = steps[micros(datetime.datetime.fromisoformat(at)), service]
            precision = PRECISION * (step["longest"] if column == "p95" else 1)
            assert abs(found - value(step)) <= precision, (column, at, service)
    operations = expected.red("service_name", "name")
    listed = rows_of("p95_ms")[1]
    assert len(listed) == len(operations)
    for service, name, requests, errors, p50, p95 in listed:
        wanted = operations[service, name]
        assert (requests, errors) == (wanted["requests"], wanted["errors"])
        assert abs(p50 - wanted["p50"] / 1e6) <= 0.06 and abs(p95 - wanted["p95"] / 1e6) <= 0.06
    for each in node.folder.glob("dashboards/requests.json"):
        each.unlink()
