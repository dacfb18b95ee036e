"""Questions over HTTP, answered as Python answers them from what was sent."""

from __future__ import annotations

import datetime
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.demo.records import Sent, SentRow
from tests.serve.served import Served, fill, get, served

WORDS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
ERROR, SERVER, CONSUMER = 2, 2, 5
"""A status and kinds of a span, in protobuf."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def severity(told: SentRow) -> str:
    return WORDS[(told.record.severity_number - 1) // 4]


def identity(told: SentRow) -> tuple[Any, ...]:
    record = told.record
    is_text = record.body.WhichOneof("value") == "string_value"
    body = record.body.string_value if is_text else None
    return told.service, record.time_unix_nano, record.span_id.hex(), severity(told), body


def shown(row: dict[str, Any]) -> tuple[Any, ...]:
    body = row["body"] if row["body_type"] == "string" else None
    span_id = row["span_id"] or ""
    return row["service_name"], row["time_unix_nano"], span_id, row["severity"], body


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_have_every_log_once(there: Served, sent: Sent, order: str) -> None:
    """In order, however small the pages are."""
    rows: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        more: dict[str, Any] = {} if cursor is None else {"after": cursor}
        page = get(there, "logs", limit=70, order=order, **more)
        rows += page["logs"]
        cursor = page["cursor"]
        if cursor is None:
            break
        assert cursor == rows[-1]["cursor"]
    assert Counter(map(shown, rows)) == Counter(map(identity, sent.logs))
    times = [row["time_unix_nano"] // 1000 for row in rows]
    assert times == sorted(times, reverse=order == "newest")


FILTERS: list[tuple[dict[str, Any], Any]] = [
    ({"filter": "service_name=gateway"}, lambda told: told.service == "gateway"),
    (
        {"filter": ["service_name=gateway", "service_name=cart"]},
        lambda told: told.service in ("gateway", "cart"),
    ),
    ({"exclude": "service_name=gateway"}, lambda told: told.service != "gateway"),
    ({"severity": "WARN"}, lambda told: told.record.severity_number >= 13),
    (
        {"filter": "severity=INFO", "exclude": "resource.host.name=node-a"},
        lambda told: severity(told) == "INFO" and told.resource["host.name"] != "node-a",
    ),
    ({"search": "GET"}, lambda told: "GET" in told.record.body.string_value.split()),
]


@pytest.mark.parametrize(("asked", "fits"), FILTERS, ids=[str(each[0]) for each in FILTERS])
def test_filters_histogram_and_facets_agree(
    there: Served, sent: Sent, asked: dict[str, Any], fits: Any
) -> None:
    """With each other, and with a loop over what was sent."""
    wanted = [told for told in sent.logs if fits(told)]
    assert 0 < len(wanted) < len(sent.logs)
    rows = get(there, "logs", limit=1000, **asked)["logs"]
    assert len(wanted) < 1000
    assert Counter(map(shown, rows)) == Counter(map(identity, wanted))
    bars = get(there, "logs/histogram", step="5s", **asked)
    assert bars["step_s"] == 5
    assert {(bar["time"], bar["severity"]): bar["count"] for bar in bars["bars"]} == Counter(
        (moment(told.record.time_unix_nano // 5_000_000_000 * 5_000_000_000), severity(told))
        for told in wanted
    )
    name = ["service_name", "severity", "resource.host.name"]
    found = {
        each["name"]: dict(each["values"])
        for each in get(there, "logs/facets", name=name, limit=100, **asked)["facets"]
    }
    assert found["service_name"] == Counter(told.service for told in wanted)
    assert found["severity"] == Counter(map(severity, wanted))
    assert found["resource.host.name"] == Counter(told.resource["host.name"] for told in wanted)


def moment(nanos: int) -> str:
    when = EPOCH + datetime.timedelta(microseconds=nanos // 1000)
    return when.isoformat().replace("+00:00", "Z")


def test_since_is_inclusive_and_until_exclusive(there: Served, sent: Sent) -> None:
    times = sorted(told.record.time_unix_nano // 1000 for told in sent.logs)
    since, until = times[len(times) // 3], times[2 * len(times) // 3]
    rows = get(there, "logs", since=moment(since * 1000), until=moment(until * 1000), limit=1000)[
        "logs"
    ]
    assert len(rows) == sum(since <= time < until for time in times)


def test_neighbors_of_a_record(there: Served) -> None:
    """Its neighbours are those of the list."""
    rows = get(there, "logs", limit=21, order="oldest")["logs"]
    around = get(there, "logs/around", at=rows[10]["cursor"], count=10)
    assert around == {"before": rows[:10], "row": rows[10], "after": rows[11:]}
    assert there.ask("GET", "/api/v1/logs/around?at=1-0-0-0").status == 404


def traces(sent: Sent) -> dict[str, list[SentRow]]:
    found: dict[str, list[SentRow]] = {}
    for told in sent.spans:
        found.setdefault(told.record.trace_id.hex(), []).append(told)
    return found


def test_pages_have_every_trace_once(there: Served, sent: Sent) -> None:
    wanted, found, cursor = traces(sent), [], None
    while True:
        page = get(there, "traces", limit=9, **({} if cursor is None else {"after": cursor}))
        found += page["traces"]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert len(found) == len(wanted)
    for each in found:
        spans = wanted[each["trace_id"]]
        assert each["span_count"] == len(spans)
        assert each["error_count"] == sum(told.record.status.code == ERROR for told in spans)
        assert each["services"] == sorted({told.service for told in spans})
        begin = min(told.record.start_time_unix_nano for told in spans)
        end = max(told.record.end_time_unix_nano for told in spans)
        assert (each["start_unix_nano"], each["duration_nano"]) == (begin, end - begin)


def test_traces_by_error_and_duration(there: Served, sent: Sent) -> None:
    failed = {
        t for t, spans in traces(sent).items() if any(s.record.status.code == ERROR for s in spans)
    }
    rows = get(there, "traces", errors="true", limit=1000)["traces"]
    assert {row["trace_id"] for row in rows} == failed
    slow = {
        told.record.trace_id.hex()
        for told in sent.spans
        if told.service == "checkout"
        and told.record.end_time_unix_nano - told.record.start_time_unix_nano >= 50_000_000
    }
    rows = get(there, "traces", service="checkout", min_duration_ms=50, limit=1000)["traces"]
    assert slow
    assert {row["trace_id"] for row in rows} == slow


@pytest.mark.parametrize("order", ["longest", "spans", "errors"])
def test_traces_in_every_order(there: Served, sent: Sent, order: str) -> None:
    def measure(row: dict[str, Any]) -> int:
        names = {"longest": "duration_nano", "spans": "span_count", "errors": "error_count"}
        return int(row[names[order]])

    found, cursor = [], None
    while True:
        more: dict[str, Any] = {} if cursor is None else {"after": cursor}
        page = get(there, "traces", order=order, limit=40, **more)
        found += page["traces"]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert {row["trace_id"] for row in found} == traces(sent).keys()
    assert len(found) == len(traces(sent))
    assert [measure(row) for row in found] == sorted(map(measure, found), reverse=True)


def test_traces_by_conditions_on_the_whole_trace(there: Served, sent: Sent) -> None:
    through = ["checkout", "payment"]
    wanted = {
        trace_id
        for trace_id, spans in traces(sent).items()
        if {*through} <= {told.service for told in spans}
    }
    rows = get(there, "traces", through=through, limit=1000)["traces"]
    assert wanted
    assert {row["trace_id"] for row in rows} == wanted
    for row in rows:
        counts = Counter(told.service for told in traces(sent)[row["trace_id"]])
        assert {each["service"]: each["span_count"] for each in row["shares"]} == counts
        assert sum(each["error_count"] for each in row["shares"]) == row["error_count"]
    took = sorted(row["duration_nano"] for row in rows)
    least, most = took[0] / 1e6 + 0.001, took[-1] / 1e6 - 0.001
    bounds = {"min_trace_ms": least, "max_trace_ms": most}
    within = get(there, "traces", through=through, limit=1000, **bounds)["traces"]
    assert sorted(row["duration_nano"] for row in within) == took[1:-1]


def test_durations_of_traces_over_time(there: Served, sent: Sent) -> None:
    answer = get(there, "traces/durations", step="30s")
    assert answer["step_s"] == 30
    assert sum(dot["trace_count"] for dot in answer["dots"]) == len(traces(sent))
    failed = get(there, "traces/durations", step="30s", errors="true")["dots"]
    assert failed
    assert all(dot["is_failed"] for dot in failed)
    for dot in answer["dots"]:
        spans = traces(sent)[dot["trace_id"]]
        begin = min(told.record.start_time_unix_nano for told in spans)
        assert dot["duration_nano"] == max(t.record.end_time_unix_nano for t in spans) - begin
    said = there.ask("GET", "/api/v1/traces/durations?step=none")
    assert (said.status, said.json["error"]["kind"]) == (400, "malformed")


def test_one_trace_and_its_logs(there: Served, sent: Sent) -> None:
    trace_id, spans = max(traces(sent).items(), key=lambda each: len(each[1]))
    found = get(there, f"traces/{trace_id}", logs="true")
    assert (found["trace_id"], found["span_count"], found["is_cut"]) == (
        trace_id,
        len(spans),
        False,
    )
    assert {line["span"]["span_id"] for line in found["lines"]} == {
        told.record.span_id.hex() for told in spans
    }
    logged = [told for told in sent.logs if told.record.trace_id.hex() == trace_id]
    assert logged
    assert Counter(map(shown, found["logs"])) == Counter(map(identity, logged))
    depths = {line["span"]["span_id"]: line["depth"] for line in found["lines"]}
    for told in spans:
        parent = told.record.parent_span_id.hex()
        if parent in depths:
            assert depths[told.record.span_id.hex()] == depths[parent] + 1


def test_the_outline_of_a_trace(there: Served, sent: Sent) -> None:
    """It says of every span what its line says."""
    trace_id, spans = max(traces(sent).items(), key=lambda each: len(each[1]))
    lines = get(there, f"traces/{trace_id}")["lines"]
    found = get(there, f"traces/{trace_id}/outline")
    assert found["span_count"] == len(spans)
    assert found["span_id"] == [line["span"]["span_id"] for line in lines]
    assert found["self_nano"] == [line["self_nano"] for line in lines]
    names = [found["names"][number] for number in found["name"]]
    assert names == [line["span"]["name"] for line in lines]


def test_one_span_of_a_trace(there: Served, sent: Sent) -> None:
    told = next(told for told in sent.spans if told.record.events)
    trace_id, span_id = told.record.trace_id.hex(), told.record.span_id.hex()
    found = get(there, f"traces/{trace_id}/spans/{span_id}")
    assert found["span"]["name"] == told.record.name
    assert found["event_offset_nano"] == [
        event.time_unix_nano - told.record.start_time_unix_nano for event in told.record.events
    ]
    below = get(there, f"traces/{trace_id}", below=span_id)
    assert below["lines"][0]["span"]["span_id"] == span_id
    for path in (f"spans/{'0' * 16}", f"?below={'0' * 16}"):
        said = there.ask("GET", f"/api/v1/traces/{trace_id}/{path}".replace("/?", "?"))
        assert said.status == 404
        assert f"span {'0' * 16} of trace {trace_id}" in said.message


def test_search_in_a_trace(there: Served, sent: Sent) -> None:
    trace_id, spans = max(traces(sent).items(), key=lambda each: len(each[1]))
    wanted = {told.record.span_id.hex() for told in spans if told.service == "checkout"}
    assert wanted
    path = f"traces/{trace_id}/find"
    assert set(get(there, path, filter="service_name=checkout")["span_ids"]) == wanted
    assert wanted <= set(get(there, path, search="CHECKOUT")["span_ids"])
    assert get(there, path, search="no such text")["span_ids"] == []
    assert get(there, f"traces/{'0' * 32}/find", search="x")["span_ids"] == []


@pytest.mark.parametrize(
    ("trace_id", "status", "words"),
    [
        ("0" * 32, 404, "was not found"),
        ("f" * 31, 400, "32 hexadecimal digits"),
        ("%ff" * 32, 400, "32 hexadecimal digits"),
        ("x' OR 'a'='a", 400, "32 hexadecimal digits"),
        ("0" * 32 + "/outline", 404, "was not found"),
        ("0" * 32 + "/spans/0", 400, "16 hexadecimal digits"),
        ("0" * 32 + "/find?filter=nonsense", 400, "filter"),
    ],
)
def test_an_unknown_trace_is_404(there: Served, trace_id: str, status: int, words: str) -> None:
    said = there.ask("GET", f"/api/v1/traces/{trace_id.replace(' ', '%20')}")
    assert said.status == status
    assert words in said.message


def is_request(told: SentRow) -> bool:
    """In the shop, every call to another service has a SERVER or CONSUMER span."""
    return told.record.kind in (SERVER, CONSUMER) or not told.record.parent_span_id


def test_services_and_their_volumes(there: Served, sent: Sent) -> None:
    spans = Counter(told.service for told in sent.spans)
    requests = Counter(told.service for told in sent.spans if is_request(told))
    failed = Counter(
        told.service for told in sent.spans if is_request(told) and told.record.status.code == ERROR
    )
    logs = Counter(told.service for told in sent.logs)
    points = Counter(told.service for told in sent.points)
    found = {each["name"]: each for each in get(there, "services")["services"]}
    assert found.keys() == spans.keys() | logs.keys() | points.keys()
    for name, each in found.items():
        assert each["span_count"] == spans[name]
        assert each["request_count"] == requests[name]
        assert each["error_count"] == failed[name]
        assert each["log_count"] == logs[name]
        assert each["point_count"] == points[name]
    amounts = get(there, "volumes")["volumes"]
    for signal, wanted in (("spans", spans), ("logs", logs), ("metrics", points)):
        assert {
            each["service"]: each["row_count"] for each in amounts if each["signal"] == signal
        } == wanted
    stepped = Counter[str]()
    for each in get(there, "volumes", step="7s")["volumes"]:
        stepped[each["signal"]] += each["row_count"]
    assert stepped == {"spans": spans.total(), "logs": logs.total(), "metrics": points.total()}


def test_services_over_time(there: Served, sent: Sent) -> None:
    counts, failed = Counter[str](), Counter[str]()
    for each in get(there, "services/series", step="30s")["steps"]:
        assert datetime.datetime.fromisoformat(each["time"]).second % 30 == 0
        counts[each["service"]] += each["request_count"]
        failed[each["service"]] += each["error_count"]
    requests = [told for told in sent.spans if is_request(told)]
    assert counts == Counter(told.service for told in requests)
    wanted = Counter(told.service for told in requests if told.record.status.code == ERROR)
    assert +failed == wanted
    mailer = get(there, "services/series", step="30s", service="mailer")["steps"]
    assert {each["service"] for each in mailer} == {"mailer"}


def test_operations_and_failures(there: Served, sent: Sent) -> None:
    durations: dict[tuple[str, str], list[int]] = {}
    failed: Counter[tuple[str, str, str | None, str | None]] = Counter()
    for told in sent.spans:
        took = told.record.end_time_unix_nano - told.record.start_time_unix_nano
        if is_request(told):
            durations.setdefault((told.service, told.record.name), []).append(took)
        if told.record.status.code == ERROR:
            kind = [a.value for a in told.record.attributes if a.key == "error.type"]
            message = told.record.status.message or None
            error_type = kind[0].string_value if kind else None
            failed[told.service, told.record.name, message, error_type] += 1
    found = get(there, "operations", limit=1000)["operations"]
    assert {(each["service"], each["operation"]): each["request_count"] for each in found} == {
        name: len(took) for name, took in durations.items()
    }
    for each in found:
        took = durations[each["service"], each["operation"]]
        assert each["max_nano"] == max(took)
        if len(took) == 1:
            assert each["p50_nano"] == took[0]
        else:
            assert min(took) <= each["p50_nano"] <= each["p99_nano"] <= max(took)
    assert failed
    found = get(there, "failures", limit=1000)["failures"]
    assert {
        (each["service"], each["operation"], each["message"], each["error_type"]): each["count"]
        for each in found
    } == failed
    assert all(0 <= each["origin_count"] <= each["count"] for each in found)
    assert any(each["origin_count"] for each in found)
    counts = [each["count"] for each in found]
    assert counts == sorted(counts, reverse=True)


def test_dependencies_by_parent_spans(there: Served, sent: Sent) -> None:
    owner = {(told.record.trace_id, told.record.span_id): told.service for told in sent.spans}
    calls: Counter[tuple[str, str]] = Counter()
    for told in sent.spans:
        caller = owner.get((told.record.trace_id, told.record.parent_span_id))
        if caller is not None and caller != told.service:
            calls[caller, told.service] += 1
    found = get(there, "dependencies")["dependencies"]
    called = {
        (each["caller"], each["callee"]): each["call_count"]
        for each in found
        if not each["is_linked"]
    }
    assert called == calls


def test_dependencies_by_span_links(there: Served, sent: Sent) -> None:
    """A request counts once for each service that it has links to."""
    owner = {(told.record.trace_id, told.record.span_id): told.service for told in sent.spans}
    links: Counter[tuple[str, str]] = Counter()
    for told in filter(is_request, sent.spans):
        senders = {owner.get((link.trace_id, link.span_id)) for link in told.record.links}
        links.update((sender, told.service) for sender in senders - {None, told.service} if sender)
    assert links["checkout", "mailer"] > 0
    found = get(there, "dependencies")["dependencies"]
    linked = {
        (each["caller"], each["callee"]): each["call_count"] for each in found if each["is_linked"]
    }
    assert linked == links


def test_deployments_patterns_and_comparison(there: Served, sent: Sent) -> None:
    """Over HTTP; the functions behind them have tests of their own."""
    versions = {told.resource["service.version"] for told in sent.spans if told.service == "cart"}
    assert len(get(there, "deployments", service="cart")["deployments"]) == len(versions) - 1
    found = get(there, "logs/patterns", step="1m", limit=1000)
    assert sum(each["count"] for each in found["patterns"]) == found["row_count"] == len(sent.logs)
    requests = sum(told.service == "cart" and is_request(told) for told in sent.spans)
    compared = get(there, "compare", service="cart", since="1d")
    assert compared["current"]["request_count"] + compared["baseline"]["request_count"] <= requests
    said = there.ask("GET", "/api/v1/compare?service=cart")
    assert (said.status, "previous period" in said.message) == (400, True)


def test_metrics_and_their_labels(there: Served, sent: Sent) -> None:
    found = {each["name"]: each for each in get(there, "metrics", limit=1000)["metrics"]}
    points = Counter(told.metric.name for told in sent.points)
    assert {name: each["point_count"] for name, each in found.items()} == points
    for told in sent.points:
        each = found[told.metric.name]
        assert each["type"] == told.metric.WhichOneof("data")
        assert (each["unit"] or "") == told.metric.unit
    name = "http.server.request.duration"
    labels = {
        each["name"]: dict(each["values"])
        for each in get(there, "metrics/labels", name=name, limit=1000)["labels"]
    }
    routes = Counter(
        told.attributes["http.route"] for told in sent.points if told.metric.name == name
    )
    assert labels["http.route"] == routes


def test_a_gauge_over_time(there: Served, sent: Sent) -> None:
    """The mean of the points of each step, by Python's own."""
    names = Counter(t.metric.name for t in sent.points if t.metric.WhichOneof("data") == "gauge")
    name = names.most_common(1)[0][0]
    steps: dict[str, list[float]] = {}
    for told in sent.points:
        if told.metric.name == name:
            begin = told.record.time_unix_nano // 10_000_000_000 * 10_000_000_000
            value = getattr(told.record, told.record.WhichOneof("value"))
            steps.setdefault(moment(begin), []).append(value)
    first, last = min(steps), max(steps)
    end = datetime.datetime.fromisoformat(last) + datetime.timedelta(seconds=10)
    found = get(
        there,
        "metrics/query",
        name=name,
        aggregate="avg",
        since=first,
        until=end.isoformat(),
        step="10s",
    )
    (series,) = found["series"]
    assert dict(series["values"]) == pytest.approx(
        {when: statistics.fmean(values) for when, values in steps.items()}
    )


def test_exemplars_lead_to_traces(there: Served, sent: Sent) -> None:
    name = "http.server.request.duration"
    wanted = {
        (exemplar.trace_id.hex(), exemplar.span_id.hex(), exemplar.as_double)
        for told in sent.points
        if told.metric.name == name
        for exemplar in told.record.exemplars
    }
    found = get(there, "metrics/exemplars", name=name, limit=1000)["exemplars"]
    assert wanted
    assert {(each["trace_id"], each["span_id"], each["value"]) for each in found} == wanted


def test_without_a_lake_there_are_no_snapshots(there: Served) -> None:
    assert get(there, "snapshots") == {"snapshots": []}
    for path in ("flush", "maintain"):
        said = there.ask("POST", f"/api/v1/{path}")
        assert (said.status, said.json["error"]["kind"]) == (503, "unavailable")
        assert "lake.enabled" in said.message


def test_status_of_a_node(there: Served, sent: Sent) -> None:
    status = get(there, "status")
    assert status["lake"] is None
    assert status["hot"]["rows"]["logs"] == len(sent.logs)
    assert {topic["topic"] for topic in status["log"]["topics"]} >= {"otlp_logs", "otlp_spans"}
    health = get(there, "health")
    assert {"log", "ingest", "hot"} <= {check["component"] for check in health["checks"]}
    assert there.ask("GET", "/livez").body == b"ok\n"
    assert there.ask("GET", "/healthz").body == b"ok\n"
    ready = there.ask("GET", "/readyz?verbose")
    assert (ready.status == 200) == health["is_ready"]
    assert b"log" in ready.body
    assert there.ask("GET", "/").json["openapi"] == "/openapi.json"


def test_rows_above_the_limit_of_a_response_are_refused(tmp_path: Path) -> None:
    """However few: one request with a large attribute can make every record large."""
    with served(tmp_path, serve={"answer_bytes_max": 1 << 20}) as there:
        fill(there, 20, size=100_000)
        said = there.ask("GET", "/api/v1/logs?limit=20")
        assert said.status == 413
        assert "serve.answer_bytes_max" in said.message
        assert there.ask("GET", "/api/v1/logs?limit=2").status == 200
        said = there.sql("SELECT event_name FROM logs")
        assert said.status == 413
        assert there.sql("SELECT count(*) FROM logs").json["rows"] == [[20]]
