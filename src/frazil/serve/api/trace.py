"""Questions about one trace, over HTTP: all of it, its outline, a span, where something is."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.httpd import HttpError, Response
from frazil.query import (
    Ask,
    Line,
    LogRow,
    Outline,
    find_in_trace,
    logs_of_trace,
    outline,
    span_of_trace,
    subtree,
    trace,
    waterfall,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Pairs, SpanId, Text, TraceId
from frazil.serve.http.request import ApiRequest, pairs_of


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which trace."""

    trace_id: TraceId
    """32 hexadecimal digits."""
    logs: bool = False
    """With what was logged in it?"""
    below: SpanId | None = None
    """Only this span, and what is below it."""


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One trace as lines, in the order of a waterfall."""

    trace_id: str
    span_count: int
    is_cut: bool
    """Are there more spans than are shown?"""
    lines: list[Line]
    logs: list[LogRow]


class OutlineRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which trace."""

    trace_id: TraceId
    """32 hexadecimal digits."""


class SpanRequest(OutlineRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which span of which trace."""

    span_id: SpanId
    """16 hexadecimal digits."""


class SpanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one span."""

    span: Mapping[str, Any]
    event_offset_nano: list[int]
    """How long after the start of the span each of its events was."""


class FindRequest(OutlineRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to find in a trace: spans that fit all of this."""

    search: Text = ""
    """A part of a name, a value or an event, in capitals or not."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""


class FindAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Spans that fit, the first first."""

    span_ids: list[str]


async def one(desk: Handler, asked: TraceRequest, request: ApiRequest) -> Response:
    """One trace as a waterfall, with what was logged in it."""

    def question(ask: Ask) -> TraceAnswer:
        if asked.below is None:
            found = trace(ask, asked.trace_id)
        else:
            found = subtree(ask, asked.trace_id, asked.below)
        if found is None:
            raise _no_such_trace(asked.trace_id, asked.below)
        return TraceAnswer(
            trace_id=found.trace_id,
            span_count=found.span_count,
            is_cut=found.is_cut,
            lines=waterfall(found),
            logs=logs_of_trace(ask, asked.trace_id) if asked.logs else [],
        )

    return await desk.answer(request, question)


async def columns(desk: Handler, asked: OutlineRequest, request: ApiRequest) -> Response:
    """One trace as columns: small enough for traces of any size, without attributes."""

    def question(ask: Ask) -> Outline:
        found = outline(ask, asked.trace_id)
        if found is None:
            raise _no_such_trace(asked.trace_id)
        return found

    return await desk.answer(request, question)


async def one_span(desk: Handler, asked: SpanRequest, request: ApiRequest) -> Response:
    """All that is known of one span."""

    def question(ask: Ask) -> SpanAnswer:
        span = span_of_trace(ask, asked.trace_id, asked.span_id)
        if span is None:
            raise _no_such_trace(asked.trace_id, asked.span_id)
        begin = span["time_unix_nano"]
        offsets = [event["time_unix_nano"] - begin for event in span["events"]]
        return SpanAnswer(span=span, event_offset_nano=offsets)

    return await desk.answer(request, question)


async def find_spans(desk: Handler, asked: FindRequest, request: ApiRequest) -> Response:
    """The spans of a trace that have a text or a value somewhere."""
    filters = pairs_of(asked.filter, "filter")

    def question(ask: Ask) -> FindAnswer:
        found = find_in_trace(ask, asked.trace_id, search=asked.search, filters=filters)
        return FindAnswer(span_ids=found)

    return await desk.answer(request, question)


def _no_such_trace(trace_id: str, span_id: str | None = None) -> HttpError:
    span = "span" if span_id is None else f"span {span_id}"
    return HttpError(HTTPStatus.NOT_FOUND, f"no {span} of a trace {trace_id} is here")
