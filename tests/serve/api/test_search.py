"""The search box over HTTP: what it finds, its names, its SQL, and places in a long list."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.demo.records import Sent, SentRow
from tests.serve.events import Events
from tests.serve.served import Served, get, served
from tests.serve.shop import send_shop

ERROR = 2
"""Of a span's status, in protobuf."""
SERVER = 2
"""Of a span's kind."""


def millis(told: SentRow) -> float:
    nanos: int = told.record.end_time_unix_nano - told.record.start_time_unix_nano
    return nanos / 1_000_000


def is_other(told: SentRow) -> bool:
    words = told.record.body.string_value.split()
    return told.service in ("gateway", "cart") and "GET" not in words


def is_bad(told: SentRow) -> bool:
    return bool(told.record.severity_number >= 13)


def items(told: SentRow) -> int:
    return int(told.attributes.get("cart.items", 0))


LOGS: list[tuple[str, Any]] = [
    ("service:gateway", lambda told: told.service == "gateway"),
    ("service:(gateway OR cart) -GET", is_other),
    ("severity:>=WARN OR cart.items:>3", lambda told: is_bad(told) or items(told) > 3),
    ("cart.items:* resource.host.name:node*", lambda told: items(told) > 0),
    ("cart.items:* host.name=node*", lambda told: items(told) > 0),
]


@pytest.mark.parametrize(("query", "fits"), LOGS, ids=[query for query, _ in LOGS])
def test_logs_matching_a_query(there: Served, sent: Sent, query: str, fits: Any) -> None:
    """In a list, a histogram, facets, pages, and by the SQL that says the same."""
    wanted = [told for told in sent.logs if fits(told)]
    assert 0 < len(wanted) < len(sent.logs)
    rows = get(there, "logs", query=query, limit=1000)["logs"]
    times = Counter(told.record.time_unix_nano for told in wanted)
    assert Counter(row["time_unix_nano"] for row in rows) == times
    bars = get(there, "logs/histogram", query=query, step="5s")["bars"]
    assert sum(bar["count"] for bar in bars) == len(wanted)
    facets = get(there, "logs/facets", query=query, name="service_name", limit=1)
    assert facets["total"] == len(wanted)
    services = Counter(told.service for told in wanted)
    ((service, count),) = facets["facets"][0]["values"]
    assert count == services[service] == max(services.values())
    found = get(there, "logs/pages", query=query, every=10)
    assert (found["count"], found["every"], found["is_cut"]) == (len(wanted), 10, False)
    assert found["cursors"] == [rows[at - 1]["cursor"] for at in range(10, len(rows), 10)]
    answer = get(there, "query", query=query)
    assert answer["error"] is None
    sql = answer["sql"].replace("LIMIT 100", "LIMIT 1000")
    assert len(there.sql(sql).json["rows"]) == len(wanted)


def test_traces_with_a_matching_span(there: Served, sent: Sent) -> None:
    """By its name, its status and how long it took; and the values of such spans."""
    wanted = [
        told
        for told in sent.spans
        if told.record.kind == SERVER and millis(told) > 20 and told.service != "gateway"
    ]
    query = "kind:server duration_ms:>20 -service:gateway"
    found = get(there, "traces", query=query, limit=1000)["traces"]
    assert wanted
    assert {each["trace_id"] for each in found} == {told.record.trace_id.hex() for told in wanted}
    facets = get(there, "traces/facets", query=query, name=["service_name", "kind"], limit=100)
    assert facets["total"] == len(wanted)
    assert dict(facets["facets"][0]["values"]) == Counter(told.service for told in wanted)
    assert facets["facets"][1] == {"name": "kind", "values": [["SERVER", len(wanted)]]}
    rows = there.sql(get(there, "query", table="spans", query=query)["sql"]).json["rows"]
    assert len(rows) == min(100, len(wanted))


def test_facets_of_failed_spans(there: Served, sent: Sent) -> None:
    """By the parameters that traces have; some names are there without being asked for."""
    failed = [told for told in sent.spans if told.record.status.code == ERROR]
    found = get(there, "traces/facets", errors="true")
    assert found["total"] == len(failed)
    values = {facet["name"]: dict(facet["values"]) for facet in found["facets"]}
    assert values["service_name"] == Counter(told.service for told in failed)
    assert values["status_code"] == {"ERROR": len(failed)}
    again = get(there, "traces/facets", errors="true", name="status")["facets"]
    assert again == [{"name": "status", "values": [["ERROR", len(failed)]]}]


def test_field_names_for_completion(there: Served, sent: Sent) -> None:
    found = get(there, "fields", table="logs", limit=1000)["fields"]
    counts = {field["name"]: field["count"] for field in found if field["kind"] == "attribute"}
    assert len(sent.logs) < 1000
    assert counts == Counter(key for told in sent.logs for key in told.attributes)
    assert found[0]["kind"] == "column"
    spans = get(there, "fields", table="spans", prefix="http.ro")["fields"]
    assert [field["name"] for field in spans] == ["http.route"]
    metrics = get(there, "fields", table="metrics", prefix="metric")["fields"]
    assert {"name": "metric_name", "kind": "column", "count": None} in metrics


def test_an_empty_search_and_a_trace_by_its_id(there: Served, sent: Sent) -> None:
    hints = get(there, "query/hints", table="logs", query="servce.name:gateway")
    assert "has the field servce.name" in hints["reason"]
    assert hints["suggestions"][0]["query"] in ("service.name:gateway", "service_name:gateway")
    wanted = sent.spans[0].record.trace_id.hex()
    (found,) = get(there, "traces/lookup", id=wanted[:20].upper())["traces"]
    assert found["trace_id"] == wanted
    assert get(there, "traces/lookup", id="f" * 32)["traces"] == []


def test_a_wrong_query_has_the_position_of_its_error(there: Served) -> None:
    """In the response of /query, as an error elsewhere."""
    answer = get(there, "query", query="a (b")
    assert answer["sql"] is None
    assert (answer["error"]["begin"], answer["error"]["end"]) == (2, 4)
    assert "not closed" in answer["error"]["message"]
    assert get(there, "query", query="x" * 5000)["error"]["begin"] == 4096
    for path in ("logs", "logs/histogram", "logs/facets", "logs/pages", "traces", "tail"):
        more = {"step": "1m"} if path == "logs/histogram" else {}
        said = there.ask("GET", f"/api/v1/{path}?{urlencode({'query': 'a (b', **more})}")
        assert said.status == 400
        assert "character 3 of the query" in said.message


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("query?table=metrics", "choose one of: logs, spans"),
        ("query?table=spans&search=x", "apply to logs"),
        ("query?filter=x", "write name=value"),
        ("query?since=soon", "write a time"),
        ("tail?table=metrics&query=x", "to logs and spans"),
        ("logs/pages?every=1", "Page size"),
        ("fields?limit=0", "Maximum number of names"),
    ],
)
def test_wrong_parameters_are_refused(there: Served, path: str, words: str) -> None:
    said = there.ask("GET", f"/api/v1/{path}")
    assert said.status == 400
    assert words in said.message


@pytest.mark.parametrize("since", ["15m", "999999999w", "0001-01-01T00:00:00Z"])
def test_sql_of_any_time_range_runs(there: Served, since: str) -> None:
    sql = get(there, "query", since=since, until="9999-01-01T00:00:00Z")["sql"]
    assert there.sql(sql).status == 200


def test_a_tail_sends_matching_rows(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Logs and spans, by the same words as the list."""
    with (
        served(tmp_path_factory.mktemp("tail") / "data") as opened,
        Events(opened.port, query="service:gateway -severity:>INFO") as logs,
        Events(opened.port, table="spans", query="kind:server") as spans,
    ):
        port = opened.rooms.otlp.http_port
        send_shop(port, lambda text: opened.embedded.sql(text).fetchall(), seconds=5)
        shown = [event.data for event in logs.until(5) if event.kind == "message"]
        assert {row["service_name"] for row in shown} == {"gateway"}
        kinds = [event.data for event in spans.until(5) if event.kind == "message"]
        assert {row["kind"] for row in kinds} == {"SERVER"}
