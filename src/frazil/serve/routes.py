"""All endpoints, grouped by tag."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Annotated, Any

import msgspec

from frazil.httpd import Response
from frazil.model import doc
from frazil.query import Around, FacetsAnswer, Outline, Pages, SeriesAnswer
from frazil.serve.api import (
    dashboards,
    lake_tables,
    logs,
    metrics,
    search,
    services,
    status,
    tail,
    trace,
    traces,
)
from frazil.serve.api.demo import demo_state, start_demo, stop_demo
from frazil.serve.api.lake_jobs import (
    Flushed,
    Snapshots,
    SnapshotsRequest,
    Tidied,
    flush,
    maintain,
    snapshots,
)
from frazil.serve.api.sql import FORMATS, SqlAnswer, SqlRequest, sql
from frazil.serve.dashboards.store import StoredDashboard
from frazil.serve.demo_process import DemoRequest, DemoState
from frazil.serve.http.handler import Handler
from frazil.serve.http.openapi import EndpointGroup, describe
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of, answer_of_body
from frazil.serve.http.router import Endpoint, NoParams
from frazil.serve.status.model import Status

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
        EndpointGroup(name="sql", about="SQL, live tail and search queries.", endpoints=_SQL),
        EndpointGroup(name="logs", about="Log records.", endpoints=_LOGS),
        EndpointGroup(name="traces", about="Traces and services.", endpoints=_TRACES),
        EndpointGroup(name="metrics", about="Metrics over time.", endpoints=_METRICS),
        EndpointGroup(
            name="dashboards", about="Dashboards of the web page.", endpoints=_DASHBOARDS
        ),
        EndpointGroup(name="lake", about="The Iceberg tables.", endpoints=_LAKE),
        EndpointGroup(name="demo", about="Demo data.", endpoints=_DEMO),
        EndpointGroup(
            name="operating", about="Status, health and metrics of the node.", endpoints=_OPERATING
        ),
    )


def _get(path: str, takes: Any, gives: Any, serve: Any, **more: Any) -> Endpoint[Any]:
    return Endpoint(method="GET", path=path, takes=takes, gives=gives, serve=serve, **more)


_MISSING = (HTTPStatus.NOT_FOUND,)
_PROBE: dict[str, Any] = {"types": ("text/plain",), "is_open": True}

_SQL: tuple[Endpoint[Any], ...] = (
    Endpoint(
        method="POST",
        path="/api/v1/sql",
        takes=SqlRequest,
        gives=SqlAnswer,
        types=tuple(FORMATS),
        statuses=(HTTPStatus.CONFLICT,),
        serve=sql,
    ),
    _get("/api/v1/tail", tail.TailRequest, None, tail.tail, types=("text/event-stream",)),
    _get("/api/v1/query", search.QueryRequest, search.QueryAnswer, search.query),
    _get("/api/v1/fields", search.FieldsRequest, search.FieldsAnswer, search.fields),
)
_LOGS = (
    _get("/api/v1/logs", logs.FindLogsRequest, logs.LogsAnswer, logs.find),
    _get("/api/v1/logs/histogram", logs.HistogramRequest, logs.HistogramAnswer, logs.bars),
    _get("/api/v1/logs/facets", logs.FacetsRequest, FacetsAnswer, logs.values),
    _get("/api/v1/logs/pages", logs.PagesRequest, Pages, logs.pages),
    _get("/api/v1/logs/around", logs.AroundRequest, Around, logs.around, statuses=_MISSING),
)
_TRACES = (
    _get("/api/v1/traces", traces.TracesRequest, traces.TracesAnswer, traces.find),
    _get("/api/v1/traces/facets", traces.SpanFacetsRequest, FacetsAnswer, traces.values),
    _get(
        "/api/v1/traces/durations",
        traces.DurationsRequest,
        traces.DurationsAnswer,
        traces.durations,
    ),
    _get(
        "/api/v1/traces/{trace_id}",
        trace.TraceRequest,
        trace.TraceAnswer,
        trace.one,
        statuses=_MISSING,
    ),
    _get(
        "/api/v1/traces/{trace_id}/outline",
        trace.OutlineRequest,
        Outline,
        trace.columns,
        statuses=_MISSING,
    ),
    _get(
        "/api/v1/traces/{trace_id}/spans/{span_id}",
        trace.SpanRequest,
        trace.SpanAnswer,
        trace.one_span,
        statuses=_MISSING,
    ),
    _get(
        "/api/v1/traces/{trace_id}/find",
        trace.FindRequest,
        trace.FindAnswer,
        trace.find_spans,
    ),
    _get(
        "/api/v1/services",
        services.TimeRangeRequest,
        services.ServicesAnswer,
        services.all_services,
    ),
    _get(
        "/api/v1/services/series",
        services.ServiceSeriesRequest,
        services.ServiceSeriesAnswer,
        services.over_time,
    ),
    _get(
        "/api/v1/operations",
        services.ServiceRequest,
        services.OperationsAnswer,
        services.operations,
    ),
    _get("/api/v1/failures", services.ServiceRequest, services.FailuresAnswer, services.failed),
    _get(
        "/api/v1/dependencies",
        services.TimeRangeRequest,
        services.DependenciesAnswer,
        services.calls,
    ),
    _get("/api/v1/volumes", services.VolumesRequest, services.VolumesAnswer, services.amounts),
)
_METRICS = (
    _get("/api/v1/metrics", metrics.MetricsRequest, metrics.MetricsAnswer, metrics.names),
    _get("/api/v1/metrics/query", metrics.MetricQueryRequest, SeriesAnswer, metrics.query),
    _get("/api/v1/metrics/labels", metrics.OneMetricRequest, metrics.LabelsAnswer, metrics.labels),
    _get(
        "/api/v1/metrics/exemplars",
        metrics.OneMetricRequest,
        metrics.ExemplarsAnswer,
        metrics.examples,
    ),
)
_DASHBOARDS: tuple[Endpoint[Any], ...] = (
    _get("/api/v1/dashboards", NoParams, dashboards.DashboardsAnswer, dashboards.list_dashboards),
    _get(
        "/api/v1/dashboards/{name}",
        dashboards.DashboardRequest,
        StoredDashboard,
        dashboards.one,
        statuses=_MISSING,
    ),
    Endpoint(
        method="PUT",
        path="/api/v1/dashboards/{name}",
        takes=dashboards.PutDashboardRequest,
        body="body",
        gives=StoredDashboard,
        statuses=(HTTPStatus.CONFLICT,),
        serve=dashboards.put,
    ),
    Endpoint(
        method="DELETE",
        path="/api/v1/dashboards/{name}",
        takes=dashboards.DeleteDashboardRequest,
        gives=StoredDashboard,
        statuses=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        serve=dashboards.delete,
    ),
)
_LAKE: tuple[Endpoint[Any], ...] = (
    Endpoint(method="POST", path="/api/v1/flush", takes=NoParams, gives=Flushed, serve=flush),
    Endpoint(method="POST", path="/api/v1/maintain", takes=NoParams, gives=Tidied, serve=maintain),
    _get("/api/v1/snapshots", SnapshotsRequest, Snapshots, snapshots),
    _get("/api/v1/lake", NoParams, lake_tables.LakeAnswer, lake_tables.tables),
    _get(
        "/api/v1/lake/tables/{name}",
        lake_tables.LakeTableRequest,
        lake_tables.LakeTableAnswer,
        lake_tables.one,
        statuses=_MISSING,
    ),
)
_DEMO: tuple[Endpoint[Any], ...] = (
    _get("/api/v1/demo", NoParams, DemoState, demo_state),
    Endpoint(
        method="POST",
        path="/api/v1/demo",
        takes=DemoRequest,
        gives=DemoState,
        statuses=(HTTPStatus.CONFLICT,),
        serve=start_demo,
    ),
    Endpoint(
        method="POST", path="/api/v1/demo/stop", takes=NoParams, gives=DemoState, serve=stop_demo
    ),
)
_OPERATING = (
    _get("/", NoParams, Welcome, welcome, is_open=True),
    _get("/api/v1/status", NoParams, Status, status.status),
    _get("/api/v1/health", NoParams, status.HealthAnswer, status.health),
    _get("/metrics", NoParams, None, status.metrics, types=status.METRICS_TYPES),
    _get("/openapi.json", NoParams, None, openapi, is_open=True),
    _get("/livez", status.ProbeRequest, None, status.livez, **_PROBE),
    _get("/healthz", status.ProbeRequest, None, status.livez, **_PROBE),
    _get("/readyz", status.ProbeRequest, None, status.readyz, **_PROBE),
)
