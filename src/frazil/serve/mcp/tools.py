"""The nine tools: the parameters of each, and what it returns."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from frazil.errors import Malformed, Unknown
from frazil.model import NS_PER_MS
from frazil.query import (
    Cursor,
    LogFilter,
    LogRow,
    NamedField,
    Outline,
    SpanFilter,
    TimeRange,
    TraceSummary,
    dependencies,
    fields_of,
    find_in_trace,
    find_logs,
    find_traces,
    log_conditions,
    metric_names,
    metric_series,
    outline,
    services,
    span_conditions,
    span_of_trace,
)
from frazil.results import Limits, json_of, json_rows
from frazil.serve.http.request import pairs_of, seconds_of
from frazil.serve.mcp.answer import ToolAnswer, rows_of
from frazil.serve.mcp.sources import McpSource
from frazil.serve.mcp.tool_params import (
    DescribeParams,
    LogsParams,
    MetricParams,
    NamesParams,
    Params,
    RangeParams,
    SqlParams,
    TraceParams,
    TracesParams,
)

STEPS = 30
"""Default number of steps of a metric."""
SQL_ROWS_MAX = 10_000
"""Rows that are counted; those after them are not."""
LISTED_MAX = 1000
TELEMETRY = ("logs", "spans", "metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    title: str
    description: str
    takes: type[Params]
    call: Callable[[McpSource, Any], ToolAnswer]


def overview(source: McpSource, params: RangeParams) -> ToolAnswer:
    """Services, the busiest first, and the rows of each table."""
    within = params.within(source)
    found = services(source.ask, within=within)
    found.sort(key=lambda each: (-each.error_count, -each.request_count, each.name))
    conditions = " AND ".join(within.conditions())
    counts = {
        table: source.ask(
            f"SELECT count(*) AS rows, max(time) AS newest FROM {table} WHERE {conditions}"
        ).to_pylist()[0]
        for table in TELEMETRY
    }
    return ToolAnswer(
        rows_name="services",
        rows=rows_of(found),
        total=len(found),
        is_at_least=len(found) >= LISTED_MAX,
        narrow="give a shorter time range; for one service use search_logs or find_traces",
        page=source.page("services", {"from": params.since, "to": params.until}),
        facts={"tables": msgspec.json.decode(json_of(counts))},
    )


def describe_data(source: McpSource, params: DescribeParams) -> ToolAnswer:
    """Tables; or the columns of one, and its attributes by frequency."""
    columns = source.ask(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
    ).to_pylist()
    page = source.page("sql", {})
    if params.table is None:
        names: dict[str, int] = {}
        for column in columns:
            names[column["table_name"]] = names.get(column["table_name"], 0) + 1
        tables = [{"table": name, "columns": count} for name, count in names.items()]
        return ToolAnswer(
            rows_name="tables",
            rows=rows_of(tables),
            total=len(tables),
            narrow="name a table to see its columns",
            page=page,
        )
    rows: list[object] = [
        {"name": column["column_name"], "type": column["data_type"]}
        for column in columns
        if column["table_name"] == params.table
    ]
    if not rows:
        raise Unknown(f"there is no table {params.table}; call describe_data without a table")
    rows += _attributes(source, params)
    return ToolAnswer(
        rows_name="fields",
        rows=rows_of(rows),
        total=len(rows),
        is_at_least=len(rows) >= LISTED_MAX,
        narrow="use sql over information_schema.columns, or give a shorter time range",
        page=page,
        facts={"table": params.table},
    )


def _attributes(source: McpSource, params: DescribeParams) -> list[NamedField]:
    if params.table not in TELEMETRY:
        return []
    fields = fields_of(source.ask, params.table, within=params.within(source), limit=LISTED_MAX)
    return [field for field in fields if field.kind != "column"]


def sql(source: McpSource, params: SqlParams) -> ToolAnswer:
    """The rows of a query. All are counted, up to a limit."""
    rows: list[bytes] = []
    count = 0
    with source.run(params.sql, Limits(rows_max=SQL_ROWS_MAX)) as result:
        for batch in result:
            count += batch.num_rows
            rows += json_rows(batch.slice(0, params.limit - len(rows)))
        columns = [f"{field.name} {field.type}" for field in result.schema]
    return ToolAnswer(
        rows_name="rows",
        rows=rows,
        total=count,
        is_at_least=result.is_cut,
        narrow="add conditions, a LIMIT, fewer columns, or aggregate",
        page=source.page("sql", {"q": params.sql}),
        facts={"columns": columns},
    )


def search_logs(source: McpSource, params: LogsParams) -> ToolAnswer:
    """Log records, newest or oldest first."""
    filters = pairs_of(params.filter, "filter")
    if params.service is not None:
        filters.setdefault("service_name", []).append(params.service)
    which = LogFilter(
        within=params.within(source),
        filters=filters,
        min_severity=params.severity,
        trace_id=params.trace_id,
        query=params.query,
    )
    after = None if params.after is None else Cursor.parse(params.after)
    rows = find_logs(source.ask, limit=params.limit, order=params.order, after=after, **which)
    conditions = log_conditions(**which)
    if after is not None:
        conditions += after.after(is_descending=params.order == "newest")
    return ToolAnswer(
        rows_name="logs",
        rows=rows_of([_log(row) for row in rows]),
        total=_count(source, "count(*)", "logs", conditions),
        narrow="give a shorter time range, a service, a severity or more words; or pass after",
        page=_search_page(source, "logs", params),
        cursors=[row.cursor for row in rows],
    )


def _search_page(source: McpSource, screen: str, params: LogsParams | TracesParams) -> str | None:
    """Return the address of a search."""
    service = [f"service_name={params.service}"] if params.service else []
    return source.page(
        screen,
        {
            "q": params.query,
            "is": [*service, *params.filter],
            "from": params.since,
            "to": params.until,
        },
    )


def _log(row: LogRow) -> dict[str, object]:
    """A record without what is empty or said twice."""
    found = {
        "time": row.time,
        "service": row.service_name,
        "severity": row.severity,
        "body": row.body,
        "event_name": row.event_name,
        "trace_id": row.trace_id,
        "span_id": row.span_id,
        "attributes": row.attributes,
        "resource_attributes": row.resource_attributes,
    }
    return {name: value for name, value in found.items() if value not in (None, "", {})}


def _count(source: McpSource, what: str, table: str, conditions: list[str]) -> int:
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    count: int = source.ask(f"SELECT {what} AS n FROM {table}{where}")["n"][0].as_py()
    return count


def find_traces_tool(source: McpSource, params: TracesParams) -> ToolAnswer:
    """Traces with a span that matches."""
    least = params.min_duration_ms
    which = SpanFilter(
        within=params.within(source),
        service=params.service,
        operation=params.operation,
        min_duration_nano=None if least is None else int(least * NS_PER_MS),
        tags=pairs_of(params.filter, "filter"),
        only_errors=params.errors,
        query=params.query,
    )
    found = find_traces(
        source.ask, order=params.order, limit=params.limit, after=params.after, **which
    )
    total = _count(source, "count(DISTINCT trace_id)", "spans", span_conditions(**which))
    return ToolAnswer(
        rows_name="traces",
        rows=rows_of([_summary(each) for each in found]),
        total=total,
        narrow="give a shorter time range, a service, an operation, a duration; or pass after",
        page=_search_page(source, "traces", params),
        cursors=[each.cursor for each in found],
    )


def _summary(each: TraceSummary) -> dict[str, object]:
    return {
        "trace_id": each.trace_id,
        "start": each.start,
        "duration_ms": each.duration_nano / NS_PER_MS,
        "root": f"{each.root_service}: {each.root_name}",
        "spans": each.span_count,
        "errors": each.error_count,
        "services": each.services,
    }


def get_trace(source: McpSource, params: TraceParams) -> ToolAnswer:
    """The outline of a trace; or spans of it, with all attributes."""
    page = source.page(f"trace/{params.trace_id.lower()}", {})
    if params.span_ids:
        return _spans(source, params, page)
    found = outline(source.ask, params.trace_id)
    if found is None:
        raise Unknown(f"there is no trace {params.trace_id}; find_traces lists those there are")
    rows = _outline_rows(found)
    if params.search:
        hits = set(find_in_trace(source.ask, params.trace_id, search=params.search))
        rows = [row for row in rows if row["span_id"] in hits]
    return ToolAnswer(
        rows_name="outline",
        rows=rows_of(rows),
        total=len(rows),
        is_at_least=found.is_cut,
        narrow="pass search, or span_ids to see the attributes of single spans",
        page=page,
        facts={
            "trace_id": found.trace_id,
            "begin": found.begin,
            "duration_ms": found.duration_nano / NS_PER_MS,
            "spans": found.span_count,
            "errors": len(found.failed),
        },
    )


def _outline_rows(found: Outline) -> list[dict[str, object]]:
    """One row per span, in waterfall order: its depth shows what is inside what."""
    depths: list[int] = []
    failed, critical = set(found.failed), set(found.critical[::3])
    rows: list[dict[str, object]] = []
    for at, above in enumerate(found.parent):
        depths.append(0 if above < 0 else depths[above] + 1)
        row: dict[str, object] = {
            "span_id": found.span_id[at],
            "depth": depths[at],
            "service": found.services[found.service[at]],
            "name": found.names[found.name[at]],
            "offset_ms": found.offset_nano[at] / NS_PER_MS,
            "duration_ms": found.length_nano[at] / NS_PER_MS,
            "self_ms": found.self_nano[at] / NS_PER_MS,
        }
        if at in failed:
            row["is_error"] = True
        if at in critical:
            row["is_critical"] = True
        rows.append(row)
    return rows


def _spans(source: McpSource, params: TraceParams, page: str | None) -> ToolAnswer:
    found = [span_of_trace(source.ask, params.trace_id, span_id) for span_id in params.span_ids]
    missing = [
        span_id for span_id, span in zip(params.span_ids, found, strict=True) if span is None
    ]
    if missing:
        raise Unknown(f"trace {params.trace_id} has no span {missing[0]}; see its outline")
    return ToolAnswer(
        rows_name="spans",
        rows=rows_of(found),
        total=len(found),
        narrow="pass fewer span_ids",
        page=page,
        facts={"trace_id": params.trace_id.lower()},
    )


def metric_names_tool(source: McpSource, params: NamesParams) -> ToolAnswer:
    """Metrics by name, with type, unit and services."""
    found = metric_names(
        source.ask, within=params.within(source), search=params.search, limit=LISTED_MAX
    )
    return ToolAnswer(
        rows_name="metrics",
        rows=rows_of(found[: params.limit]),
        total=len(found),
        is_at_least=len(found) >= LISTED_MAX,
        narrow="pass search, a part of the name",
        page=source.page("explore", {"from": params.since, "to": params.until}),
    )


def query_metrics(source: McpSource, params: MetricParams) -> ToolAnswer:
    """Series of a metric, those with the most values first."""
    within = params.within(source)
    within = replace(within, until=within.until or source.now())
    step = _step(within) if params.step is None else seconds_of(params.step, "step")
    found = metric_series(
        source.ask,
        params.name,
        within=within,
        step=step,
        aggregate=params.aggregate,
        group_by=params.group_by,
        filters=pairs_of(params.filter, "filter"),
        limit=params.limit,
    )
    if found.metric_type is None:
        raise Unknown(f"{params.name} has no points in this time; metric_names lists metrics")
    return ToolAnswer(
        rows_name="series",
        rows=rows_of(found.series),
        total=None if found.is_cut else len(found.series),
        narrow="group by fewer labels, add a filter, or give a longer step",
        page=source.page("explore", {"from": params.since, "to": params.until}),
        facts={
            "name": params.name,
            "type": found.metric_type,
            "unit": found.unit,
            "aggregate": params.aggregate,
            "step_s": step.total_seconds(),
        },
    )


def _step(within: TimeRange) -> datetime.timedelta:
    assert within.since is not None and within.until is not None
    if within.until <= within.since:
        raise Malformed("until must be after since")
    seconds = (within.until - within.since).total_seconds()
    return datetime.timedelta(seconds=max(1, round(seconds / STEPS)))


def dependencies_tool(source: McpSource, params: RangeParams) -> ToolAnswer:
    """Calls between services."""
    found = dependencies(source.ask, within=params.within(source))
    return ToolAnswer(
        rows_name="dependencies",
        rows=rows_of(found),
        total=len(found),
        narrow="give a shorter time range",
        page=source.page("services", {"from": params.since, "to": params.until}),
    )


def _tool(
    name: str,
    title: str,
    call: Callable[[McpSource, Any], ToolAnswer],
    takes: type[Params],
    description: str,
) -> Tool:
    return Tool(name=name, title=title, description=description, takes=takes, call=call)


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        _tool(
            "overview",
            "Overview",
            overview,
            RangeParams,
            "Start here: services with requests, errors and latencies, most errors first, and how "
            "many logs, spans and metric points there are.",
        ),
        _tool(
            "describe_data",
            "Describe tables",
            describe_data,
            DescribeParams,
            "List the tables, or the columns and most frequent attributes of one. Call it before "
            "writing SQL.",
        ),
        _tool(
            "sql",
            "SQL query",
            sql,
            SqlParams,
            "Run one read-only SQL query (DataFusion). Attributes are maps: "
            "attributes['http.route']. time_bucket('1 minute', time) and "
            "percentile(duration_nano, 0.99) exist. Prefer counts and groups to many rows.",
        ),
        _tool(
            "search_logs",
            "Search logs",
            search_logs,
            LogsParams,
            "Find log records by words, service, severity, attributes or trace, with how many "
            "there are.",
        ),
        _tool(
            "find_traces",
            "Find traces",
            find_traces_tool,
            TracesParams,
            "Find traces with a span that matches: service, operation, duration, errors, "
            "attributes. order=longest finds slow ones.",
        ),
        _tool(
            "get_trace",
            "One trace",
            get_trace,
            TraceParams,
            "First the outline of a trace: its spans with depth, times, errors, critical path. "
            "Then call it with span_ids for their attributes and events.",
        ),
        _tool(
            "metric_names",
            "List metrics",
            metric_names_tool,
            NamesParams,
            "List metrics with type, unit and services.",
        ),
        _tool(
            "query_metrics",
            "Query a metric",
            query_metrics,
            MetricParams,
            "One metric over time, combined per step and grouped by labels.",
        ),
        _tool(
            "dependencies",
            "Service dependencies",
            dependencies_tool,
            RangeParams,
            "Which service calls which, with counts, errors and latencies.",
        ),
    )
}
