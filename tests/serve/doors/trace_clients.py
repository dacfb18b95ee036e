"""What clients of Tempo and Jaeger send: Grafana's data sources, its Traces Drilldown, Perses, and
Jaeger's own page. Recorded from their sources in August 2026."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlencode

BEGIN_S = 1_790_000_000
"""When the shop of the tests begins; it sends for 20 seconds."""
RANGE = {"start": BEGIN_S - 600, "end": BEGIN_S + 600}
RANGE_US = {"start": RANGE["start"] * 10**6, "end": RANGE["end"] * 10**6}
PROTOBUF = "application/protobuf"
JSON = "application/json"

ROOTS = "nestedSetParent<0 && true"
STRUCTURE = (
    f"({{{ROOTS}}} &>> {{ kind = server }}) || ({{{ROOTS}}}) | select(status, "
    "resource.service.name, name, nestedSetParent, nestedSetLeft, nestedSetRight)"
)
EXCEPTIONS = (
    "{true && status = error} | select(resource.service.name, event.exception.message,"
    "event.exception.stacktrace,event.exception.type) with(most_recent=true)"
)
SEARCHES = (
    "{}",
    '{resource.service.name="storefront"}',
    '{resource.service.name="storefront" && name="GET /" && duration>1ms && duration<1h}',
    '{resource.service.name=~"storefront|cart" && span.http.request.method="GET"}',
    "{status=error}",
    "{kind=server && span.http.response.status_code>=200}",
    '{.service.name = "cart"} | select(span.db.system)',
    "{ kind = server } >> { kind = client }",
    '{ rootServiceName = "storefront" && traceDuration > 1ms }',
    "{} | by(resource.service.name) | count() > 1",
    STRUCTURE,
    EXCEPTIONS,
    f"{{{ROOTS}}} | select(resource.service.name,name,span.http.response.status_code)",
)
METRICS = (
    f"{{{ROOTS}}} | rate() with(sample=true)",
    f"{{{ROOTS}}} | rate() by(resource.service.name) with(sample=true)",
    f"{{{ROOTS} && status=error}} | rate() by(resource.service.name) with(sample=true)",
    f"{{{ROOTS}}} | histogram_over_time(duration) with(sample=true)",
    f"{{{ROOTS}}} | quantile_over_time(duration, 0.9) by(resource.service.name)",
    "{} | quantile_over_time(duration, .5, .9, .99)",
    "{} | count_over_time() by(span.http.response.status_code)",
    "{true} | compare({status = error})",
    "{kind=server} | compare({duration > 5ms}, 10, "
    f"{(BEGIN_S - 60) * 10**9}, {(BEGIN_S + 60) * 10**9})",
    "{} | avg_over_time(duration) by(name) | topk(5)",
)
TAGS = (
    "resource.service.name",
    "span.http.response.status_code",
    ".http.route",
    "name",
    "status",
    "kind",
    "rootName",
    "event.exception.type",
    "span.http.route",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """A request, and how its client reads the answer."""

    reads: str
    path: str
    accept: str = JSON


def _request(reads: str, path: str, accept: str = JSON, /, **parameters: object) -> ClientRequest:
    query = f"?{urlencode(parameters)}" if parameters else ""
    return ClientRequest(reads=reads, path=f"{path}{query}", accept=accept)


def tempo_requests(trace_id: str) -> Iterator[ClientRequest]:
    """Requests to Tempo, with a trace that exists."""
    yield _request("plain", "/tempo/api/echo")
    yield _request("plain", "/tempo/api/status/buildinfo")
    for query in SEARCHES:
        yield _request("search", "/tempo/api/search", q=query, limit=20, spss=3, **RANGE)
    yield _request("search", "/tempo/api/search", q="{}", limit=200, spss=10, unheard_of=1)
    yield _request("search", "/tempo/api/search", tags="service.name=cart", minDuration="1us")
    yield _request("trace_by_id", f"/tempo/api/v2/traces/{trace_id}", PROTOBUF)
    yield _request("trace_by_id", f"/tempo/api/v2/traces/{trace_id}", PROTOBUF, **RANGE)
    yield _request("trace", f"/tempo/api/traces/{trace_id}", PROTOBUF)
    yield _request("trace_by_id_json", f"/tempo/api/v2/traces/{trace_id}")
    yield _request("tags_v2", "/tempo/api/v2/search/tags", limit=5000, **RANGE)
    yield _request("tags_v2", "/tempo/api/v2/search/tags", scope="resource")
    yield _request("tags", "/tempo/api/search/tags")
    for tag in TAGS:
        path = f"/tempo/api/v2/search/tag/{quote(tag)}/values"
        yield _request("values_v2", path, q="{}", limit=5000, **RANGE)
        yield _request("values_v2", path, q="{resource.service.name = && kind=server}")
    yield _request("values", "/tempo/api/search/tag/service.name/values")
    for query in METRICS:
        steps = {"step": "60s", "exemplars": 100, **RANGE}
        yield _request("range", "/tempo/api/metrics/query_range", q=query, **steps)
        yield _request("instant", "/tempo/api/metrics/query", q=query, **RANGE)
    yield _request("range", "/tempo/api/metrics/query_range", q=METRICS[0], **RANGE)


def jaeger_requests(trace_id: str) -> Iterator[ClientRequest]:
    """Requests to Jaeger, with a trace that exists."""
    which = {"service": "storefront", "limit": 20, **RANGE_US}
    range_v3 = {
        "query.startTimeMin": "2026-09-21T14:00:00.000Z",
        "query.startTimeMax": "2026-09-21T14:30:00.000Z",
    }
    yield _request("jaeger_names", "/jaeger/api/services")
    yield _request("jaeger_names", "/jaeger/api/services/storefront/operations")
    yield _request("jaeger_operations", "/jaeger/api/operations", service="storefront")
    yield _request("jaeger_operations", "/jaeger/api/operations", service="cart", spanKind="server")
    yield _request("jaeger_traces", "/jaeger/api/traces", **which)
    yield _request("jaeger_traces", "/jaeger/api/traces", **which, lookback="1h", maxDuration="")
    yield _request("jaeger_traces", "/jaeger/api/traces", **which, operation="GET /")
    tags = '{"http.request.method":"GET","span.kind":"server"}'
    yield _request("jaeger_traces", "/jaeger/api/traces", **which, tags=tags, minDuration="1us")
    yield _request("jaeger_traces", f"/jaeger/api/traces/{trace_id}")
    yield _request("jaeger_traces", f"/jaeger/api/traces?traceID={trace_id}&traceID=1")
    end_ms, hour_ms = (BEGIN_S + 600) * 1000, 3_600_000
    dependencies = {"endTs": end_ms, "lookback": hour_ms}
    yield _request("jaeger_dependencies", "/jaeger/api/dependencies", **dependencies)
    yield _request("jaeger_v3", "/jaeger/api/v3/services")
    yield _request("jaeger_v3", "/jaeger/api/v3/operations", service="storefront")
    yield _request("jaeger_v3_traces", f"/jaeger/api/v3/traces/{trace_id}")
    snake = {"query.service_name": "storefront", "query.search_depth": 5}
    yield _request("jaeger_v3_traces", "/jaeger/api/v3/traces", **snake)
    summaries = {"query.serviceName": "storefront", "query.searchDepth": 5, **range_v3}
    yield _request("jaeger_v3", "/jaeger/api/v3/trace-summaries", **summaries)
    plus = "query.service_name=cart&query.start_time_max=2026-09-21T16:30:00+02:00"
    yield ClientRequest(reads="jaeger_v3_traces", path=f"/jaeger/api/v3/traces?{plus}")
