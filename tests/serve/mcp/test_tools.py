"""The nine tools over the shop, by the official client, over HTTP and standard input."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from frazil.serve.mcp.fitting import RESPONSE_BYTES_MAX
from tests.demo.records import Sent
from tests.serve.served import Served, fill, served

T = TypeVar("T")
SINCE = "2026-01-01T00:00:00Z"
"""The shop sends telemetry of one day."""
NAMES = [
    *("overview", "describe_data", "sql", "search_logs", "find_traces", "get_trace"),
    *("metric_names", "query_metrics", "dependencies"),
]


def over(server: Any, work: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """Connect, and do something."""

    async def run() -> T:
        async with Client(server, mode=mode) as client:
            return await work(client)

    return asyncio.run(run())


def call(there: Served, name: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool over HTTP; it must succeed."""
    result = over(f"{there.url}/mcp", lambda client: client.call_tool(name, arguments))
    return content_of(result)


def content_of(result: Any) -> dict[str, Any]:
    """The content of a result, which is there twice, and fits."""
    assert isinstance(result, CallToolResult)
    (text,) = result.content
    assert isinstance(text, TextContent)
    assert not result.is_error, text.text
    content: dict[str, Any] = json.loads(text.text)
    assert content == result.structured_content
    assert len(text.text.encode()) < RESPONSE_BYTES_MAX / 2
    return content


def failure(there: Served, name: str, /, **arguments: Any) -> str:
    """What a tool says that cannot do it."""
    result = over(f"{there.url}/mcp", lambda client: client.call_tool(name, arguments))
    assert isinstance(result, CallToolResult)
    assert result.is_error
    (text,) = result.content
    assert isinstance(text, TextContent)
    return text.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_transports_have_the_same_tools(there: Served, mode: str) -> None:
    """With and without a handshake; standard input over the same node answers the same."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "frazil", "mcp", "--url", there.url]
    )

    async def look(client: Client) -> tuple[list[str], str | None, Any]:
        tools = (await client.list_tools()).tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        found = await client.call_tool("overview", {"since": SINCE})
        return [tool.name for tool in tools], client.instructions, content_of(found)

    over_http = over(f"{there.url}/mcp", look, mode)
    assert over_http[0] == NAMES
    assert over_http[1] is not None
    assert "untrusted" in over_http[1]
    assert over(command, look, mode) == over_http


def test_a_folder_has_them_without_a_node(tmp_path: Path) -> None:
    """There is no page to link to."""
    with served(tmp_path / "data") as there:
        fill(there, 5)
    words = ["mcp", "--data", str(tmp_path / "data"), "--set", "lake.enabled=false"]
    command = StdioServerParameters(command=sys.executable, args=["-m", "frazil", *words])
    text = {"sql": "SELECT count(*) FROM logs"}
    found = content_of(over(command, lambda client: client.call_tool("sql", text)))
    assert (found["rows"], found["page"]) == ([[5]], None)


def test_an_overview_counts_what_was_sent(there: Served, sent: Sent) -> None:
    found = call(there, "overview", since=SINCE)
    assert found["tables"]["logs"]["rows"] == len(sent.logs)
    assert found["tables"]["spans"]["rows"] == len(sent.spans)
    assert found["tables"]["metrics"]["rows"] == len(sent.points)
    services = {row.service for row in (*sent.logs, *sent.spans, *sent.points)}
    assert {service["name"] for service in found["services"]} == services
    assert (found["total"], found["shown"], found["is_cut"]) == (
        len(services),
        len(services),
        False,
    )
    assert found["page"] == f"{there.url}/services?from=2026-01-01T00%3A00%3A00Z"


def test_data_is_described(there: Served) -> None:
    tables = {row["table"]: row["columns"] for row in call(there, "describe_data")["tables"]}
    assert {"logs", "spans", "metrics", "sums"} <= tables.keys()
    fields = call(there, "describe_data", table="spans", since=SINCE)["fields"]
    names = {field["name"] for field in fields}
    assert {"trace_id", "duration_nano", "http_route"} <= names
    assert any(field.get("count") for field in fields)
    assert "no table nothing" in failure(there, "describe_data", table="nothing")


def test_sql_counts_the_rows_it_does_not_show(there: Served, sent: Sent) -> None:
    found = call(there, "sql", sql="SELECT service_name, body FROM logs ORDER BY time", limit=3)
    assert len(found["rows"]) == found["shown"] == 3
    assert found["columns"] == ["service_name string", "body string"]
    assert (found["total"], found["is_cut"]) == (len(sent.logs), True)
    assert "LIMIT" in found["narrow"]
    assert "no table nowhere" in failure(there, "sql", sql="SELECT * FROM nowhere")
    assert "SQL is read-only" in failure(there, "sql", sql="DROP TABLE logs")


def test_logs_are_found_page_by_page(there: Served, sent: Sent) -> None:
    """All pages together have every record once."""
    service = Counter(row.service for row in sent.logs).most_common(1)[0][0]
    wanted = sum(row.service == service for row in sent.logs)
    seen, after = 0, None
    while True:
        which = {"service": service, "since": SINCE, "limit": 200, "order": "oldest"}
        found = call(there, "search_logs", **which, **({"after": after} if after else {}))
        assert found["total"] == wanted - seen
        assert all(row["service"] == service for row in found["logs"])
        seen += found["shown"]
        after = found["after"]
        assert found["is_cut"] == (seen < wanted)
        if after is None:
            break
    assert seen == wanted


def test_a_trace_is_an_outline_then_spans(there: Served, sent: Sent) -> None:
    slowest = call(there, "find_traces", since=SINCE, order="longest", limit=1)["traces"][0]
    found = call(there, "get_trace", trace_id=slowest["trace_id"])
    rows = found["outline"]
    assert found["total"] == found["spans"] == slowest["spans"]
    assert rows[0]["depth"] == 0
    assert f"{rows[0]['service']}: {rows[0]['name']}" == slowest["root"]
    assert found["page"] == f"{there.url}/trace/{slowest['trace_id']}"
    ids = [row["span_id"] for row in rows[:2]]
    spans = call(there, "get_trace", trace_id=slowest["trace_id"], span_ids=ids)["spans"]
    assert [span["span_id"] for span in spans] == ids
    assert all("attributes" in span for span in spans)
    assert "no trace" in failure(there, "get_trace", trace_id="0" * 32)
    assert "no span" in failure(
        there, "get_trace", trace_id=slowest["trace_id"], span_ids=["0" * 16]
    )


def test_metrics_are_named_then_queried(there: Served, sent: Sent) -> None:
    found = call(there, "metric_names", since=SINCE)
    names = {row.metric.name for row in sent.points}
    assert {metric["name"] for metric in found["metrics"]} == names
    counter = next(each["name"] for each in found["metrics"] if each["is_monotonic"])
    series = call(
        there, "query_metrics", name=counter, aggregate="increase", since=SINCE, step="1d"
    )
    assert series["type"] == "sum"
    assert series["series"][0]["values"]
    assert "no points" in failure(there, "query_metrics", name="nothing", since=SINCE)


def test_dependencies_are_calls_between_services(there: Served, sent: Sent) -> None:
    found = call(there, "dependencies", since=SINCE)["dependencies"]
    services = {row.service for row in sent.spans}
    assert found
    assert all({each["caller"], each["callee"]} <= services for each in found)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("search_logs", {"since": "yesterday"}, "write a time with a zone"),
        ("search_logs", {"nonsense": 1}, "unknown field `nonsense`"),
        ("search_logs", {"query": "severity:>"}, "malformed"),
        ("search_logs", {"limit": 100_000}, "<= 200"),
        ("query_metrics", {"name": "x", "aggregate": "most"}, "choose one of: avg"),
        ("find_traces", {"after": "x"}, "not a cursor"),
    ],
)
def test_a_wrong_call_is_explained_to_the_model(
    there: Served, name: str, arguments: dict[str, Any], message: str
) -> None:
    """As a result, which a model sees, not as an error of the protocol."""
    assert message in failure(there, name, **arguments)
