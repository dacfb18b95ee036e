"""The parameters of each tool."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from frazil.model import doc
from frazil.query import TimeRange, TraceOrder
from frazil.serve.api.metrics import Aggregate
from frazil.serve.http.params import (
    Duration,
    Filters,
    Groups,
    LogCursor,
    LogOrder,
    MinSeverity,
    Name,
    SpanId,
    Step,
    Text,
    Timestamp,
    TraceCursor,
    TraceId,
    Until,
)
from frazil.serve.http.request import timestamp_of
from frazil.serve.mcp.sources import McpSource

HOUR = "1h"
SPANS_AT_ONCE_MAX = 20

Since = Annotated[Timestamp, doc("Start: RFC 3339 with a zone, or an age: 90s, 15m, 6h, 7d.")]
Limit = Annotated[int, Meta(ge=1, le=200)]
Query = Annotated[
    Text | None, doc("Words and conditions: timeout service:cart severity:>=WARN http.route:/x")
]


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a tool."""


class RangeParams(Params, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time range."""

    since: Since = HOUR
    until: Until = None

    def within(self, source: McpSource) -> TimeRange:
        now = source.now()
        until = None if self.until is None else timestamp_of(self.until, "until", now)
        return TimeRange(since=timestamp_of(self.since, "since", now), until=until)


class DescribeParams(RangeParams, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which table."""

    table: Annotated[Name | None, doc("A table; without it, all tables are listed.")] = None


class SqlParams(Params, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One query."""

    sql: Annotated[
        str, Meta(min_length=1, description="One SELECT of DataFusion's SQL; give it a LIMIT.")
    ]
    limit: Annotated[Limit, doc("Rows in the answer.")] = 50


class LogsParams(RangeParams, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records."""

    query: Query = None
    service: Annotated[Name | None, doc("Only this service.")] = None
    severity: MinSeverity = None
    trace_id: Annotated[TraceId | None, doc("Only records of this trace.")] = None
    filter: Filters = ()
    order: LogOrder = "newest"
    limit: Annotated[Limit, doc("Records in the answer.")] = 20
    after: Annotated[LogCursor | None, doc("`after` of the answer before.")] = None


class TracesParams(RangeParams, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces: at least one span must match."""

    query: Query = None
    service: Annotated[Name | None, doc("Service of the span.")] = None
    operation: Annotated[Name | None, doc("Name of the span.")] = None
    min_duration_ms: Annotated[Duration | None, doc("Minimum duration of the span.")] = None
    errors: Annotated[bool, doc("Only failed spans.")] = False
    filter: Filters = ()
    order: Annotated[TraceOrder, doc("Newest, longest, most spans or most errors first.")] = (
        "newest"
    )
    limit: Annotated[Limit, doc("Traces in the answer.")] = 20
    after: Annotated[TraceCursor | None, doc("`after` of the answer before.")] = None


class TraceParams(Params, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which trace, and which of its spans."""

    trace_id: TraceId
    span_ids: Annotated[
        tuple[SpanId, ...],
        Meta(max_length=SPANS_AT_ONCE_MAX),
        doc("Spans to return with all attributes. Without them: the outline of all spans."),
    ] = ()
    search: Annotated[Text, doc("Only spans with this text in a name, value or event.")] = ""


class NamesParams(RangeParams, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which metrics."""

    search: Annotated[Text | None, doc("Part of the name.")] = None
    limit: Annotated[Limit, doc("Metrics in the answer.")] = 100


class MetricParams(RangeParams, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric over time."""

    name: Annotated[Name, doc("Name of the metric, from metric_names.")]
    aggregate: Annotated[
        Aggregate, doc("How to combine points; rate and increase for counters, p99 for histograms.")
    ] = "avg"
    step: Annotated[Step | None, doc("Default: 1/30 of the range.")] = None
    group_by: Annotated[Groups, doc("Labels to group by.")] = ()
    filter: Filters = ()
    limit: Annotated[Limit, doc("Series in the answer.")] = 20
