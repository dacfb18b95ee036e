"""All endpoints, grouped by tag."""

from __future__ import annotations

from functools import lru_cache, partial
from http import HTTPStatus
from typing import Annotated, Any, get_type_hints

import msgspec

from frazil.httpd import Response
from frazil.model import doc
from frazil.query import (
    Around,
    Comparison,
    FacetsAnswer,
    Heatmap,
    Hints,
    Outline,
    Pages,
    PatternsAnswer,
    SeriesAnswer,
)
from frazil.removal import RemovalReport
from frazil.results import ARROW
from frazil.rules import RuleChart
from frazil.serve.api import (
    alerts,
    connectors,
    dashboards,
    demo,
    groups,
    lake_jobs,
    lake_tables,
    loads,
    logs,
    metrics,
    queries,
    retention,
    search,
    services,
    stages,
    statements,
    status,
    table_rows,
    tables,
    tail,
    topics,
    trace,
    traces,
    views,
)
from frazil.serve.api.sql import FORMATS, SqlAnswer, sql
from frazil.serve.demo_process import DemoState
from frazil.serve.http.handler import Handler
from frazil.serve.http.openapi import EndpointGroup, describe
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of, answer_of_body
from frazil.serve.http.router import Endpoint, NoParams
from frazil.serve.status.connectors import ConnectorSummary
from frazil.serve.status.model import Status
from frazil.serve.topics.reading import MessagesAnswer
from frazil.status import ConsumerGroups

VERSION = "1"


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """Entry point of the API."""

    name: str = "Frazil"
    about: str = (
        "This is a Frazil node. Open this address with a browser, or use `frazil sql`, "
        "`frazil tail` and `frazil status`, or the API."
    )
    openapi: Annotated[str, doc("Description of the API.")] = "/openapi.json"
    sql: str = "/api/v1/sql"
    statements: str = "/api/v1/statements"
    status: str = "/api/v1/status"
    ready: str = "/readyz?verbose"


async def welcome(_: Handler, __: NoParams, ___: ApiRequest) -> Response:
    """Entry point: what this is and where to continue."""
    return answer_of(Welcome())


async def openapi(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Return this description."""
    return answer_of_body(await handler.run(description), JSON)


@lru_cache(maxsize=1)
def description() -> bytes:
    """OpenAPI description as JSON."""
    return msgspec.json.encode(describe(groups_of(), VERSION))


def endpoints_of() -> tuple[Endpoint[Any], ...]:
    """All endpoints, in the order of the description."""
    return tuple(each for group in groups_of() for each in group.endpoints)


def groups_of() -> tuple[EndpointGroup, ...]:
    """Endpoints by tag."""
    return (
        EndpointGroup(
            name="sql", about="SQL, statements, live tail and search queries.", endpoints=_SQL
        ),
        EndpointGroup(name="logs", about="Log records.", endpoints=_LOGS),
        EndpointGroup(name="traces", about="Traces and services.", endpoints=_TRACES),
        EndpointGroup(name="metrics", about="Metrics over time.", endpoints=_METRICS),
        EndpointGroup(name="topics", about="Topics, messages, consumer groups.", endpoints=_TOPICS),
        EndpointGroup(name="tables", about="Keyed tables.", endpoints=_TABLES),
        EndpointGroup(name="alerts", about="Alerts and their rules.", endpoints=_ALERTS),
        EndpointGroup(
            name="dashboards", about="Dashboards of the web page.", endpoints=_DASHBOARDS
        ),
        EndpointGroup(name="saved", about="Saved views and queries.", endpoints=_SAVED),
        EndpointGroup(name="lake", about="The Iceberg tables.", endpoints=_LAKE),
        EndpointGroup(
            name="load", about="Stages with their files, and running loads.", endpoints=_LOAD
        ),
        EndpointGroup(name="connectors", about="Sources and sinks.", endpoints=_CONNECT),
        EndpointGroup(name="demo", about="Demo data.", endpoints=_DEMO),
        EndpointGroup(
            name="operating", about="Status, health and metrics of the node.", endpoints=_OPERATING
        ),
    )


def _endpoint(method: Any, path: str, gives: Any, serve: Any, **more: Any) -> Endpoint[Any]:
    """An endpoint that takes what the second argument of `serve` is annotated with."""
    takes = [*get_type_hints(serve).values()][1]
    return Endpoint(method=method, path=path, takes=takes, gives=gives, serve=serve, **more)


_get, _post = partial(_endpoint, "GET"), partial(_endpoint, "POST")

_CONFLICT = {"statuses": (HTTPStatus.CONFLICT,)}
_MISSING = {"statuses": (HTTPStatus.NOT_FOUND,)}
_PROBE: dict[str, Any] = {"types": ("text/plain",), "is_open": True}

_SQL = (
    _post("/api/v1/sql", SqlAnswer, sql, types=tuple(FORMATS), **_CONFLICT),
    _post(
        "/api/v1/statements",
        SqlAnswer,
        statements.execute,
        types=tuple(FORMATS),
        statuses=(HTTPStatus.CONFLICT, HTTPStatus.FORBIDDEN),
        takes_statements=True,
    ),
    _get("/api/v1/tail", None, tail.tail, types=("text/event-stream",)),
    _get("/api/v1/query", search.QueryAnswer, search.query),
    _get("/api/v1/query/hints", Hints, search.hints),
    _get("/api/v1/fields", search.FieldsAnswer, search.fields),
)
_LOGS = (
    _get("/api/v1/logs", logs.LogsAnswer, logs.find),
    _get("/api/v1/logs/histogram", logs.HistogramAnswer, logs.bars),
    _get("/api/v1/logs/patterns", PatternsAnswer, logs.patterns),
    _get("/api/v1/logs/facets", FacetsAnswer, logs.values),
    _get("/api/v1/logs/pages", Pages, logs.pages),
    _get("/api/v1/logs/around", Around, logs.around, **_MISSING),
)
_TRACES = (
    _get("/api/v1/traces", traces.TracesAnswer, traces.find),
    _get("/api/v1/traces/facets", FacetsAnswer, traces.values),
    _get("/api/v1/traces/durations", traces.DurationsAnswer, traces.durations),
    _get("/api/v1/traces/lookup", traces.TracesAnswer, traces.lookup),
    _get("/api/v1/traces/{trace_id}", trace.TraceAnswer, trace.one, **_MISSING),
    _get("/api/v1/traces/{trace_id}/outline", Outline, trace.columns, **_MISSING),
    _get("/api/v1/traces/{trace_id}/spans/{span_id}", trace.SpanAnswer, trace.one_span, **_MISSING),
    _get("/api/v1/traces/{trace_id}/find", trace.FindAnswer, trace.find_spans),
    _get("/api/v1/services", services.ServicesAnswer, services.all_services),
    _get("/api/v1/services/series", services.ServiceSeriesAnswer, services.over_time),
    _get("/api/v1/services/heatmap", Heatmap, services.heatmap),
    _get("/api/v1/operations", services.OperationsAnswer, services.operations),
    _get("/api/v1/failures", services.FailuresAnswer, services.failed),
    _get("/api/v1/dependencies", services.DependenciesAnswer, services.calls),
    _get("/api/v1/deployments", services.DeploymentsAnswer, services.deploys),
    _get("/api/v1/compare", Comparison, services.comparison),
    _get("/api/v1/volumes", services.VolumesAnswer, services.amounts),
)
_METRICS = (
    _get("/api/v1/metrics", metrics.MetricsAnswer, metrics.names),
    _get("/api/v1/metrics/query", SeriesAnswer, metrics.query),
    _get("/api/v1/metrics/heatmap", Heatmap, metrics.heatmap),
    _get("/api/v1/metrics/labels", metrics.LabelsAnswer, metrics.labels),
    _get("/api/v1/metrics/exemplars", metrics.ExemplarsAnswer, metrics.examples),
)
_TOPICS = (
    _get("/api/v1/topics", topics.TopicsAnswer, topics.list_topics),
    _get("/api/v1/topics/{topic}", topics.TopicAnswer, topics.one_topic, **_MISSING),
    _get("/api/v1/topics/{topic}/messages", MessagesAnswer, topics.messages, **_MISSING),
    _get(
        "/api/v1/topics/{topic}/tail",
        None,
        topics.tail_messages,
        types=("text/event-stream",),
        **_MISSING,
    ),
    _get("/api/v1/groups", ConsumerGroups, groups.list_groups),
    _get("/api/v1/groups/describe", groups.GroupAnswer, groups.describe_group, **_MISSING),
)
_WRITES: dict[str, Any] = {
    "takes_statements": True,
    "statuses": (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.FORBIDDEN),
}
_TABLE = "/api/v1/tables/{table}"
_TABLES = (
    _get("/api/v1/tables", tables.TablesAnswer, tables.list_tables),
    _get(_TABLE, tables.TableAnswer, tables.one_table, **_MISSING),
    _endpoint("PUT", _TABLE, tables.TableAnswer, tables.put_table, body="body", **_WRITES),
    _endpoint("DELETE", _TABLE, tables.TableAnswer, tables.drop_table, **_WRITES),
    _post(
        f"{_TABLE}/rows",
        table_rows.WriteAnswer,
        table_rows.write_rows,
        body="body",
        body_types=table_rows.ROW_TYPES,
        **_WRITES,
    ),
    _post(
        f"{_TABLE}/lookup",
        table_rows.LookupAnswer,
        table_rows.lookup,
        body="body",
        types=("application/json", ARROW),
        **_MISSING,
    ),
    *(
        endpoint
        for path in (f"{_TABLE}/rows", f"{_TABLE}/rows/{{key}}")
        for endpoint in (
            _get(path, table_rows.RowAnswer, table_rows.one_row, **_MISSING),
            _endpoint("DELETE", path, table_rows.WriteAnswer, table_rows.delete_row, **_WRITES),
        )
    ),
    _get(f"{_TABLE}/history/{{key}}", table_rows.HistoryAnswer, table_rows.history, **_MISSING),
    _get(f"{_TABLE}/history", table_rows.HistoryAnswer, table_rows.history, **_MISSING),
    _get(f"{_TABLE}/changes", table_rows.ChangesAnswer, table_rows.changes, **_MISSING),
)


def _file_endpoints(path: str, module: Any, all_of: Any, list_all: Any, stored: Any) -> Any:
    """Endpoints of one kind of saved files."""
    one = f"{path}/{{name}}"
    either = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
    return (
        _get(path, all_of, list_all),
        _get(one, stored, module.one, **_MISSING),
        _endpoint("PUT", one, stored, module.put, body="body", **_CONFLICT),
        _endpoint("DELETE", one, stored, module.delete, statuses=either),
    )


_ALERTS = (
    _get("/api/v1/alerts", alerts.AlertsAnswer, alerts.alerts),
    _get("/api/v1/alerts/chart", RuleChart, alerts.chart, **_MISSING),
)
_DASHBOARDS = _file_endpoints(
    "/api/v1/dashboards",
    dashboards,
    dashboards.DashboardsAnswer,
    dashboards.list_dashboards,
    dashboards.StoredDashboard,
)
_SAVED = (
    *_file_endpoints("/api/v1/views", views, views.ViewsAnswer, views.list_views, views.StoredView),
    *_file_endpoints(
        "/api/v1/queries", queries, queries.QueriesAnswer, queries.list_queries, queries.StoredQuery
    ),
)
_LAKE = (
    _post("/api/v1/flush", lake_jobs.Flushed, lake_jobs.flush),
    _post("/api/v1/maintain", lake_jobs.Tidied, lake_jobs.maintain),
    _get("/api/v1/retention", retention.RetentionAnswer, retention.rules),
    _post("/api/v1/retention", RemovalReport, retention.apply),
    _post("/api/v1/retention/preview", retention.Previews, retention.preview),
    _post("/api/v1/erase", RemovalReport, retention.erase),
    _post("/api/v1/erase/preview", retention.Previews, retention.preview_erasure),
    _get("/api/v1/snapshots", lake_jobs.Snapshots, lake_jobs.snapshots),
    _get("/api/v1/lake", lake_tables.LakeAnswer, lake_tables.tables),
    _get("/api/v1/lake/tables/{name}", lake_tables.LakeTableAnswer, lake_tables.one, **_MISSING),
)
_BY_STATEMENTS: dict[str, Any] = {"takes_statements": True}
_LOAD = (
    _get(
        "/api/v1/stages/{stage}/files",
        stages.StageFiles,
        stages.files,
        **_MISSING,
        **_BY_STATEMENTS,
    ),
    _endpoint(
        "PUT",
        "/api/v1/stages/{stage}/files/{path}",
        stages.StageFile,
        stages.upload,
        takes_rest=True,
        takes_bytes=True,
        statuses=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        **_BY_STATEMENTS,
    ),
    _get(
        "/api/v1/stages/{stage}/preview",
        stages.PreviewAnswer,
        stages.preview,
        statuses=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        **_BY_STATEMENTS,
    ),
    _get("/api/v1/loads", loads.LoadsAnswer, loads.list_loads),
    _endpoint(
        "DELETE",
        "/api/v1/loads/{id}",
        loads.RunningLoad,
        loads.cancel_load,
        **_MISSING,
        **_BY_STATEMENTS,
    ),
)
_CONNECT = (
    _get("/api/v1/connectors", connectors.ConnectorsAnswer, connectors.list_connectors),
    _post(
        "/api/v1/connectors/restart",
        ConnectorSummary,
        connectors.restart_connector,
        **_MISSING,
        **_BY_STATEMENTS,
    ),
)
_DEMO = (
    _get("/api/v1/demo", DemoState, demo.demo_state),
    _post("/api/v1/demo", DemoState, demo.start_demo, **_CONFLICT),
    _post("/api/v1/demo/stop", DemoState, demo.stop_demo),
)
_OPERATING = (
    _get("/", Welcome, welcome, is_open=True),
    _get("/api/v1/status", Status, status.status),
    _get("/api/v1/health", status.HealthAnswer, status.health),
    _get("/metrics", None, status.metrics, types=status.METRICS_TYPES),
    _get("/openapi.json", None, openapi, is_open=True),
    _get("/livez", None, status.livez, **_PROBE),
    _get("/healthz", None, status.livez, **_PROBE),
    _get("/readyz", None, status.readyz, **_PROBE),
)
