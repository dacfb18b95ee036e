"""Services, operations, traces and dependencies, in Jaeger's JSON."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from http import HTTPStatus

from frazil.errors import Malformed
from frazil.httpd import HttpError, Response
from frazil.languages import find_trace_ids, spans_of_traces
from frazil.query import (
    Ask,
    TimeRange,
    TypedSpan,
    dependencies,
    operation_names,
    service_names,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.jaeger.model import jaeger_trace
from frazil.serve.doors.jaeger.params import KINDS, search_v1
from frazil.serve.doors.trace_params import number, trace_id_of
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import wall_time
from frazil.serve.http.responses import answer_of

MS_PER_DAY = 86_400_000
TRACE_IDS_MAX = 100
"""Values of `traceID` in one request."""


def _envelope(data: Sequence[object]) -> Response:
    total = len(data)
    return answer_of({"data": data, "total": total, "limit": 0, "offset": 0, "errors": None})


async def services(handler: Handler, call: DoorRequest) -> Response:
    """List the services that send spans."""
    return await handler.load(call.request, lambda ask: _envelope(service_names(ask)))


async def operations_of_service(handler: Handler, call: DoorRequest) -> Response:
    """List the names of the operations of a service."""
    service = call.path_values["service"]

    def load(ask: Ask) -> Response:
        return _envelope(sorted({name for name, _ in operation_names(ask, service)}))

    return await handler.load(call.request, load)


async def operations(handler: Handler, call: DoorRequest) -> Response:
    """List the operations of a service with their kinds."""
    service, kind = call.required("service"), kind_of(call.first("spanKind"))

    def load(ask: Ask) -> Response:
        found = operation_names(ask, service, kind=kind)
        return _envelope([{"name": name, "spanKind": kind_text(each)} for name, each in found])

    return await handler.load(call.request, load)


def kind_of(text: str | None) -> str | None:
    """Return a kind of spans as in the table. `Malformed` if there is none of this name."""
    if text is None:
        return None
    if text.lower() not in KINDS:
        raise Malformed(f"the span kind is {text[:100]!r}; choose one of: {', '.join(KINDS)}")
    return text.upper()


def kind_text(kind: str) -> str:
    """Return a kind as Jaeger writes it; empty if a span has none."""
    return "" if kind == "UNSPECIFIED" else kind.lower()


async def traces(handler: Handler, call: DoorRequest) -> Response:
    """Find traces, or return those of given ids."""
    ids = [trace_id_of(text) for text in call.fields.get("traceID", ())]
    if len(ids) > TRACE_IDS_MAX:
        raise Malformed(f"there are {len(ids)} trace ids; use at most {TRACE_IDS_MAX}")
    if not ids:
        call.required("service")
    search = search_v1(call)

    def load(ask: Ask) -> Response:
        wanted = ids or find_trace_ids(
            ask, search.pipeline, within=search.within, limit=search.limit
        )
        found = spans_of_traces(ask, wanted)
        return _envelope([jaeger_trace(trace_id, spans) for trace_id, spans in found.items()])

    return await handler.load(call.request, load)


async def trace(handler: Handler, call: DoorRequest) -> Response:
    """Return one trace."""
    trace_id = trace_id_of(call.path_values["id"])

    def load(ask: Ask) -> Response:
        return _envelope([jaeger_trace(trace_id, spans_of(ask, trace_id))])

    return await handler.load(call.request, load)


def spans_of(ask: Ask, trace_id: str) -> list[TypedSpan]:
    """Return the spans of a trace. 404 if it does not exist."""
    spans = spans_of_traces(ask, [trace_id]).get(trace_id)
    if spans is None:
        raise HttpError(HTTPStatus.NOT_FOUND, f"trace not found: {trace_id}")
    return spans


async def service_dependencies(handler: Handler, call: DoorRequest) -> Response:
    """List calls between services."""
    now_ms = int(wall_time(handler.context.clock).timestamp() * 1000)
    end_ms = number(call, "endTs", now_ms)
    begin_ms = max(0, end_ms - number(call, "lookback", MS_PER_DAY))
    within = TimeRange(since=_time_of(begin_ms, "lookback"), until=_time_of(end_ms, "endTs"))

    def load(ask: Ask) -> Response:
        return _envelope(
            [
                {"parent": caller, "child": callee, "callCount": count}
                for caller, callee, count in call_counts(ask, within)
            ]
        )

    return await handler.load(call.request, load)


def call_counts(ask: Ask, within: TimeRange) -> list[tuple[str, str, int]]:
    """Return caller, callee and number of calls of services, by name."""
    counts: dict[tuple[str, str], int] = {}
    for each in dependencies(ask, within=within):
        pair = each.caller, each.callee
        counts[pair] = counts.get(pair, 0) + each.call_count
    return [(*pair, count) for pair, count in sorted(counts.items())]


def _time_of(ms: int, name: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        raise Malformed(f"{name} is too large; write milliseconds") from None


async def no_metrics(_: Handler, __: DoorRequest) -> Response:
    """Say that Jaeger's metrics are not here."""
    raise HttpError(
        HTTPStatus.NOT_IMPLEMENTED,
        "Jaeger's Monitor tab is not supported; see the services of the web page",
    )
