"""Endpoints of one trace: waterfall, outline, span, search."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import msgspec

from frazil.httpd import HttpError, Response
from frazil.model import doc
from frazil.query import (
    Ask,
    Line,
    LogRow,
    find_in_trace,
    logs_of_trace,
    outline,
    span_of_trace,
    subtree,
    trace,
    waterfall,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Filters, SpanId, Text, TraceId
from frazil.serve.http.request import ApiRequest, pairs_of

T = TypeVar("T")


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which trace to return."""

    trace_id: TraceId
    logs: Annotated[bool, doc("Include the log records of the trace.")] = False
    below: Annotated[SpanId | None, doc("Only this span and its descendants.")] = None


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One trace as rows of a waterfall."""

    trace_id: str
    span_count: int
    is_cut: Annotated[bool, doc("True if the trace has more spans.")]
    lines: list[Line]
    logs: list[LogRow]


class OutlineRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which trace to return."""

    trace_id: TraceId


class SpanRequest(OutlineRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which span of which trace."""

    span_id: SpanId


class SpanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One span with all attributes."""

    span: Mapping[str, Any]
    event_offset_nano: Annotated[list[int], doc("Times of events since span start.")]


class FindRequest(OutlineRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which spans of a trace. All conditions must match."""

    search: Annotated[Text, doc("Part of a name, value or event; any case.")] = ""
    filter: Filters = ()


class FindAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Matching spans, in order of time."""

    span_ids: list[str]


async def one(handler: Handler, params: TraceRequest, request: ApiRequest) -> Response:
    """Return one trace as a waterfall, optionally with its log records."""

    def load(ask: Ask) -> TraceAnswer:
        if params.below is None:
            spans = trace(ask, params.trace_id)
        else:
            spans = subtree(ask, params.trace_id, params.below)
        found = _found(spans, params.trace_id, params.below)
        return TraceAnswer(
            trace_id=found.trace_id,
            span_count=found.span_count,
            is_cut=found.is_cut,
            lines=waterfall(found),
            logs=logs_of_trace(ask, params.trace_id) if params.logs else [],
        )

    return await handler.respond(request, load)


async def columns(handler: Handler, params: OutlineRequest, request: ApiRequest) -> Response:
    """Return one trace in columns, without attributes: compact at any size."""
    return await handler.respond(
        request, lambda ask: _found(outline(ask, params.trace_id), params.trace_id)
    )


async def one_span(handler: Handler, params: SpanRequest, request: ApiRequest) -> Response:
    """Return one span with all attributes."""

    def load(ask: Ask) -> SpanAnswer:
        row = span_of_trace(ask, params.trace_id, params.span_id)
        span = _found(row, params.trace_id, params.span_id)
        begin = span["time_unix_nano"]
        offsets = [event["time_unix_nano"] - begin for event in span["events"]]
        return SpanAnswer(span=span, event_offset_nano=offsets)

    return await handler.respond(request, load)


async def find_spans(handler: Handler, params: FindRequest, request: ApiRequest) -> Response:
    """Find the spans of a trace that contain a text or a value."""
    filters = pairs_of(params.filter, "filter")

    def load(ask: Ask) -> FindAnswer:
        span_ids = find_in_trace(ask, params.trace_id, search=params.search, filters=filters)
        return FindAnswer(span_ids=span_ids)

    return await handler.respond(request, load)


def _found(value: T | None, trace_id: str, span_id: str | None = None) -> T:
    """Return what was read, or raise 404 if it does not exist."""
    if value is None:
        span = "" if span_id is None else f"span {span_id} of "
        raise HttpError(HTTPStatus.NOT_FOUND, f"{span}trace {trace_id} was not found")
    return value
