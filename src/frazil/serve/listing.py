"""Everything that can be asked for, in one list."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.ingest import Answer
from frazil.query import Around, SeriesAnswer
from frazil.serve import logs, operating, tail, traces
from frazil.serve import metric_questions as metrics
from frazil.serve.answers import JSON, answer_of, answer_of_body
from frazil.serve.desk import Desk
from frazil.serve.endpoints import Endpoint, Nothing
from frazil.serve.lake_work import (
    Flushed,
    Snapshots,
    SnapshotsRequest,
    Tidied,
    flush,
    maintain,
    snapshots,
)
from frazil.serve.openapi import Group, describe
from frazil.serve.request import Request
from frazil.serve.sql import FORMATS, SqlAnswer, SqlRequest, sql
from frazil.serve.status import Status

VERSION = "1"


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """What this is, for somebody who came here by chance."""

    name: str = "Frazil"
    about: str = (
        "This is the API of a Frazil node. There is no web page yet: use `frazil sql`, "
        "`frazil tail` and `frazil status`, or the API."
    )
    openapi: str = "/openapi.json"
    """All that can be asked for, described."""
    sql: str = "/api/v1/sql"
    status: str = "/api/v1/status"
    ready: str = "/readyz?verbose"


async def welcome(_: Desk, __: Nothing, ___: Request) -> Answer:
    """What this is, and where to go on."""
    return answer_of(Welcome())


async def openapi(desk: Desk, _: Nothing, __: Request) -> Answer:
    """This description."""
    return answer_of_body(await desk.run(_description), JSON)


@lru_cache(maxsize=1)
def _description() -> bytes:
    return msgspec.json.encode(describe(groups_of(), VERSION))


def endpoints_of() -> tuple[Endpoint[Any], ...]:
    """All endpoints, in the order in which they are described."""
    return tuple(each for group in groups_of() for each in group.endpoints)


def groups_of() -> tuple[Group, ...]:
    """What belongs together."""
    return (
        Group(name="sql", about="SQL, and rows as they come.", endpoints=_SQL),
        Group(name="logs", about="Log records.", endpoints=_LOGS),
        Group(name="traces", about="Traces, and the services they go through.", endpoints=_TRACES),
        Group(name="metrics", about="Metrics over time.", endpoints=_METRICS),
        Group(name="lake", about="The Iceberg tables.", endpoints=_LAKE),
        Group(name="operating", about="How the node does.", endpoints=_OPERATING),
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
)
_LOGS = (
    _get("/api/v1/logs", logs.FindLogsRequest, logs.LogsAnswer, logs.find),
    _get("/api/v1/logs/histogram", logs.HistogramRequest, logs.HistogramAnswer, logs.bars),
    _get("/api/v1/logs/facets", logs.FacetsRequest, logs.FacetsAnswer, logs.values),
    _get("/api/v1/logs/around", logs.AroundRequest, Around, logs.around, statuses=_MISSING),
)
_TRACES = (
    _get("/api/v1/traces", traces.TracesRequest, traces.TracesAnswer, traces.find),
    _get(
        "/api/v1/traces/{trace_id}",
        traces.TraceRequest,
        traces.TraceAnswer,
        traces.one,
        statuses=_MISSING,
    ),
    _get("/api/v1/services", traces.StretchRequest, traces.ServicesAnswer, traces.all_services),
    _get("/api/v1/operations", traces.ServiceRequest, traces.OperationsAnswer, traces.operations),
    _get("/api/v1/failures", traces.ServiceRequest, traces.FailuresAnswer, traces.failed),
    _get("/api/v1/dependencies", traces.StretchRequest, traces.DependenciesAnswer, traces.calls),
    _get("/api/v1/volumes", traces.VolumesRequest, traces.VolumesAnswer, traces.amounts),
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
_LAKE: tuple[Endpoint[Any], ...] = (
    Endpoint(method="POST", path="/api/v1/flush", takes=Nothing, gives=Flushed, serve=flush),
    Endpoint(method="POST", path="/api/v1/maintain", takes=Nothing, gives=Tidied, serve=maintain),
    _get("/api/v1/snapshots", SnapshotsRequest, Snapshots, snapshots),
)
_OPERATING = (
    _get("/", Nothing, Welcome, welcome, is_open=True),
    _get("/api/v1/status", Nothing, Status, operating.status),
    _get("/api/v1/health", Nothing, operating.HealthAnswer, operating.health),
    _get("/metrics", Nothing, None, operating.metrics, types=operating.METRICS_TYPES),
    _get("/openapi.json", Nothing, None, openapi, is_open=True),
    _get("/livez", operating.ProbeRequest, None, operating.livez, **_PROBE),
    _get("/healthz", operating.ProbeRequest, None, operating.livez, **_PROBE),
    _get("/readyz", operating.ProbeRequest, None, operating.readyz, **_PROBE),
)
