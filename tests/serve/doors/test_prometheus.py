"""What Grafana's Prometheus source and promtool send: each request is answered, on demo data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.demo.records import NS_PER_S, START_NS, Sent
from tests.serve.served import Served

START = START_NS // NS_PER_S
END = START + 20
WITHIN = {"start": START, "end": END}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HTTP = "http_server_request_duration_seconds"
GRAPH = "traces_service_graph_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A request as a client sends it."""

    path: str
    fields: dict[str, Any] = field(default_factory=dict)
    is_form: bool = False
    may_be_empty: bool = False


def ranged(query: str, **more: Any) -> Recorded:
    """A panel or Explore."""
    fields = {"query": query, **WITHIN, "step": "5", **more}
    return Recorded(path="query_range", fields=fields, is_form=True)


def instant(query: str, time: float = END) -> Recorded:
    return Recorded(path="query", fields={"query": query, "time": time}, is_form=True)


HEALTH = (
    instant("1+1", 4),
    Recorded(path="status/buildinfo"),
    Recorded(path="rules", may_be_empty=True),
    Recorded(path="alerts", may_be_empty=True),
    Recorded(path="query_exemplars", fields={"query": "test"}, may_be_empty=True),
)
COMPLETION = (
    Recorded(path="labels", fields={**WITHIN, "limit": 40000}, is_form=True),
    Recorded(path="labels", fields={**WITHIN, "match[]": f"{HTTP}_bucket"}),
    Recorded(path="labels", fields={**WITHIN, "match[]": '{"http.server.request.duration_sum"}'}),
    Recorded(path="label/__name__/values", fields={**WITHIN, "limit": 40000}),
    Recorded(path="label/__name__/values", fields={**WITHIN, "match[]": '{job="shop/cart"}'}),
    Recorded(path="label/job/values", fields=WITHIN),
    Recorded(path="label/U__http_2e_route/values", fields=WITHIN),
    Recorded(path="label/le/values", fields={**WITHIN, "match[]": f"{HTTP}_bucket"}),
    Recorded(path="series", fields={**WITHIN, "match[]": "shop_orders_total"}, is_form=True),
    Recorded(path="series", fields={**WITHIN, "match[]": "target_info", "limit": 5}),
    Recorded(path="metadata", fields={"limit": 10000}),
    Recorded(path="metadata", fields={"metric": HTTP}),
    Recorded(path="parse_query", fields={"query": "sum by (a) (rate(up[5m])) > bool 1"}),
    Recorded(path="format_query", fields={"query": "sum(rate(up[5m]))by(job)"}),
)
EXPLORE = (
    ranged(f"sum by (job) (rate({HTTP}_count[20s]))", _panel="unknown parameters do no harm"),
    ranged(f"histogram_quantile(0.95, sum by (le) (rate({HTTP}_bucket[20s])))"),
    ranged("process_cpu_utilization_ratio", limit="2", timeout="30s", stats="all"),
    ranged("histogram_quantile(0.9, sum(rate(db_client_operation_duration_seconds[20s])))"),
    instant('{"http.server.request.duration_count"}'),
    instant("payment_provider_latency_seconds"),
    instant("increase(shop_mails_sent_total[1m])"),
    instant("shop_mail_queue_length[20s]"),
    Recorded(path="query_exemplars", fields={"query": f"rate({HTTP}_bucket[5m])", **WITHIN}),
)
DRILLDOWN = (
    Recorded(path="label/__name__/values", fields={**WITHIN, "match[]": '{job!=""}'}),
    ranged('avg(process_memory_usage_bytes{__ignore_usage__=""})'),
    ranged(f'sum by (le) (rate({HTTP}_bucket{{job=~".+", __ignore_usage__=""}}[20s]))'),
    instant("count by (job, instance) (target_info)"),
    instant(
        "sum by (job) (process_cpu_utilization_ratio) * on (job) group_left (service_version) "
        "max by (job, service_version) (target_info)"
    ),
)
SERVICE_GRAPH = (
    instant(f"sum by (client, server) (rate({GRAPH}_total{{}}[1800s]))", END + 15),
    instant(
        f"histogram_quantile(.9, sum(rate({GRAPH}_server_seconds_bucket[1800s])) "
        "by (le, client, server))",
        END + 15,
    ),
    instant("topk(5, sum(rate(traces_spanmetrics_calls_total[1800s])) by (span_name))", END + 15),
    instant(
        "histogram_quantile(.9, sum(rate(traces_spanmetrics_latency_bucket"
        '{span_kind="SPAN_KIND_SERVER"}[1800s])) by (le, span_name))',
        END + 15,
    ),
)


def send(there: Served, recorded: Recorded) -> Any:
    """Send a request; return the answer, which must be a success."""
    path, fields = f"/prometheus/api/v1/{recorded.path}", urlencode(recorded.fields, doseq=True)
    if recorded.is_form:
        said = there.ask("POST", path, fields.encode(), FORM)
    else:
        said = there.ask("GET", f"{path}?{fields}")
    assert said.status == 200, (recorded, said.body)
    assert said.json["status"] == "success"
    return said.json


@pytest.mark.parametrize(
    "recorded", (*HEALTH, *COMPLETION, *EXPLORE, *DRILLDOWN, *SERVICE_GRAPH), ids=str
)
def test_what_clients_send_is_answered(there: Served, recorded: Recorded) -> None:
    data = send(there, recorded)["data"]
    if not recorded.may_be_empty:
        assert data["result"] if recorded.path in ("query", "query_range") else data


def test_answers_are_those_of_prometheus(there: Served, sent: Sent) -> None:
    """The number of orders is the number that the shop sent, by old and by new name."""
    latest: dict[object, int] = {}
    for row in sent.points:
        if row.metric.name == "shop.orders":
            key = (row.resource["service.instance.id"], str(row.record.attributes))
            latest[key] = row.record.as_int
    for name in ("shop_orders_total", '{"shop.orders"}'):
        (found,) = send(there, instant(f"sum({name})"))["data"]["result"]
        assert found == {"metric": {}, "value": [END, str(sum(latest.values()))]}


def counted(there: Served, query: str, *labels: str) -> Counter[tuple[str, ...]]:
    """Return how much each series has grown in half an hour."""
    data = send(there, instant(f"increase({query}[1800s])", END + 15))["data"]
    found: Counter[tuple[str, ...]] = Counter()
    for each in data["result"]:
        found[tuple(each["metric"][label] for label in labels)] += round(float(each["value"][1]))
    return found


def test_metrics_of_spans_count_what_was_sent(there: Served, sent: Sent) -> None:
    """Spans by service and name; durations up to a bound; calls between services by kind."""
    names = Counter((row.service, row.record.name) for row in sent.spans)
    assert counted(there, "traces_spanmetrics_calls_total", "service", "span_name") == names
    short = sum(
        row.record.end_time_unix_nano - row.record.start_time_unix_nano <= 4_000_000
        for row in sent.spans
    )
    bucket = 'traces_spanmetrics_latency_bucket{le="0.004"}'
    assert counted(there, bucket).total() == short
    by_id = {row.record.span_id: row for row in sent.spans}
    calls = Counter(
        (caller.service, row.service)
        for row in sent.spans
        if row.record.kind in (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CONSUMER)
        and (caller := by_id.get(row.record.parent_span_id)) is not None
        and caller.record.kind in (Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_PRODUCER)
    )
    assert counted(there, f"{GRAPH}_total", "client", "server") == calls


ERRORS = [
    ("query?query=up{", 400, "bad_data", "unexpected end"),
    ("query", 400, "bad_data", "query"),
    ("query?query=up&time=yesterday", 400, "bad_data", "RFC 3339"),
    ("query?query=up&limit=-1", 400, "bad_data", "limit"),
    ("query_range?query=up&start=0&end=99999&step=1", 400, "bad_data", "11,000"),
    ("query_range?query=up&start=9&end=1&step=1", 400, "bad_data", "before start"),
    ("query_range?query=up&start=1&end=9&step=0", 400, "bad_data", "zero or negative"),
    ("series", 400, "bad_data", "match[]"),
    ("series?match[]=1%2B1", 400, "bad_data", "selector"),
    ("query?query=limit_ratio(0.5,up)", 501, "not_implemented", "limit_ratio"),
    (
        f"query?query=target_info%2Bon()target_info&time={END}",
        422,
        "execution",
        "duplicate series",
    ),
    (f"query?query=sum(target_info)&time={END}&timeout=1ms", 503, "timeout", "timed out"),
    ("nothing", 404, "not_found", "nothing"),
]


@pytest.mark.parametrize(("path", "status", "kind", "part"), ERRORS, ids=lambda each: str(each))
def test_errors_have_prometheus_form(
    there: Served, path: str, status: int, kind: str, part: str
) -> None:
    said = there.ask("GET", f"/prometheus/api/v1/{path}")
    assert (said.status, said.json["status"], said.json["errorType"]) == (status, "error", kind)
    assert part in said.json["error"]
