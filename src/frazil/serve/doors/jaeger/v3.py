"""Version 3: services, operations, traces as OTLP, and summaries of traces."""

from __future__ import annotations

from frazil.httpd import Response
from frazil.languages import find_trace_ids, spans_of_traces
from frazil.query import (
    Ask,
    TraceSummary,
    TypedSpan,
    operation_names,
    orphan_counts,
    resource_spans,
    service_names,
    summaries,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.jaeger.params import search_v3
from frazil.serve.doors.jaeger.v1 import kind_of, kind_text, spans_of
from frazil.serve.doors.trace_params import trace_id_of
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of


async def services(handler: Handler, call: DoorRequest) -> Response:
    """List the services that send spans."""
    return await handler.load(call.request, lambda ask: answer_of({"services": service_names(ask)}))


async def operations(handler: Handler, call: DoorRequest) -> Response:
    """List the operations of a service with their kinds."""
    service = call.required("service")
    kind = kind_of(call.first("span_kind") or call.first("spanKind"))

    def load(ask: Ask) -> Response:
        found = operation_names(ask, service, kind=kind)
        listed = [{"name": name, "spanKind": kind_text(each)} for name, each in found]
        return answer_of({"operations": listed})

    return await handler.load(call.request, load)


async def traces(handler: Handler, call: DoorRequest) -> Response:
    """Find traces."""
    search = search_v3(call)

    def load(ask: Ask) -> Response:
        ids = find_trace_ids(ask, search.pipeline, within=search.within, limit=search.limit)
        found = spans_of_traces(ask, ids)
        return _result([span for spans in found.values() for span in spans])

    return await handler.load(call.request, load)


async def trace(handler: Handler, call: DoorRequest) -> Response:
    """Return one trace."""
    trace_id = trace_id_of(call.path_values["id"])
    return await handler.load(call.request, lambda ask: _result(spans_of(ask, trace_id)))


def _result(spans: list[TypedSpan]) -> Response:
    return answer_of({"result": {"resourceSpans": resource_spans(spans, str)}})


async def trace_summaries(handler: Handler, call: DoorRequest) -> Response:
    """Find traces, without their spans."""
    search = search_v3(call)

    def load(ask: Ask) -> Response:
        ids = find_trace_ids(ask, search.pipeline, within=search.within, limit=search.limit)
        orphans = orphan_counts(ask, ids)
        found = [_summary(each, orphans.get(each.trace_id, 0)) for each in summaries(ask, ids)]
        return answer_of({"summaries": found})

    return await handler.load(call.request, load)


def _summary(summary: TraceSummary, orphan_count: int) -> dict[str, object]:
    end_nano = summary.start_unix_nano + summary.duration_nano
    return {
        "traceId": summary.trace_id,
        "rootServiceName": summary.root_service,
        "rootOperationName": summary.root_name,
        "minStartTimeUnixNano": str(summary.start_unix_nano),
        "maxEndTimeUnixNano": str(end_nano),
        "spanCount": summary.span_count,
        "errorSpanCount": summary.error_count,
        "orphanSpanCount": orphan_count,
        "services": [
            {
                "name": share.service,
                "spanCount": share.span_count,
                "errorSpanCount": share.error_count,
            }
            for share in summary.shares
        ],
    }
