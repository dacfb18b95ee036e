"""Traces by TraceQL, or by tags."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.languages import (
    FieldExpression,
    FieldLiteral,
    FieldOperation,
    FoundSpan,
    FoundSpanset,
    FoundTrace,
    SpanAttribute,
    SpanIntrinsic,
    SpansetPipeline,
    find_by_traceql,
    parse_traceql,
    spans_with,
)
from frazil.model import NS_PER_MS
from frazil.query import Ask
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.trace_params import duration, number, time_range
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of

LIMIT_DEFAULT = 20
SPANS_DEFAULT = 3
"""Spans per spanset."""
DURATION_MS_MAX = 2**32 - 1
"""`durationMs` has 32 bits."""

_TAG = re.compile(r'\s*([^\s="]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))', re.DOTALL)
_TAG_INTRINSICS = {"name": "span:name", "root.name": "trace:rootName"}


async def search(handler: Handler, call: DoorRequest) -> Response:
    """Find traces, those with the newest matching spans first."""
    pipeline = _pipeline(call)
    within = time_range(call)
    limit = number(call, "limit", LIMIT_DEFAULT)
    spans = number(call, "spss", SPANS_DEFAULT)

    def load(ask: Ask) -> Response:
        traces = find_by_traceql(ask, pipeline, within=within, limit=limit, spans_per_spanset=spans)
        metrics = {"inspectedTraces": len(traces), "completedJobs": 1, "totalJobs": 1}
        return answer_of({"traces": [_trace(trace) for trace in traces], "metrics": metrics})

    return await handler.load(call.request, load)


def _pipeline(call: DoorRequest) -> SpansetPipeline:
    """Return the pipeline of `q`, or of `tags` and durations."""
    text = call.first("q")
    if text is not None:
        query = parse_traceql(text)
        if query.metrics is not None:
            raise Malformed("the query makes metrics; send it to api/metrics/query_range")
        return query.pipeline
    return spans_with(_tag_conditions(call))


def _tag_conditions(call: DoorRequest) -> Iterator[FieldExpression]:
    for key, value in tags_of(call.first("tags") or ""):
        field: FieldExpression = SpanAttribute("", key)
        if key in _TAG_INTRINSICS:
            field = SpanIntrinsic(_TAG_INTRINSICS[key], key)
        wanted = FieldLiteral("text", value)
        if key == "status" and value in ("ok", "error", "unset"):
            field, wanted = SpanIntrinsic("span:status", key), FieldLiteral("status", value.upper())
        yield FieldOperation("=", field, wanted)
    for name, sign in (("minDuration", ">="), ("maxDuration", "<=")):
        bound = duration(call, name)
        if bound is not None:
            nanos = bound // datetime.timedelta(microseconds=1) * 1000
            field = SpanIntrinsic("trace:duration", "traceDuration")
            yield FieldOperation(sign, field, FieldLiteral("duration", nanos))


def tags_of(text: str) -> list[tuple[str, str]]:
    """Parse tags in logfmt, such as `service.name=cart error="not found"`."""
    tags = []
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _TAG.match(text, place)
        if match is None:
            raise Malformed(f'tags are {text[:100]!r}; write key=value, or key="a value"')
        quoted = match[2]
        value = match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        tags.append((match[1], value))
        place = match.end()
    return tags


def _trace(trace: FoundTrace) -> dict[str, object]:
    """Return a trace as the message TraceSearchMetadata in protobuf's JSON."""
    summary = trace.summary
    spansets = [_spanset(spanset) for spanset in trace.spansets]
    return {
        "traceID": summary.trace_id,
        "rootServiceName": summary.root_service,
        "rootTraceName": summary.root_name,
        "startTimeUnixNano": str(summary.start_unix_nano),
        "durationMs": min(max(summary.duration_nano // NS_PER_MS, 0), DURATION_MS_MAX),
        "spanSet": spansets[0],
        "spanSets": spansets,
        "serviceStats": {
            share.service: {"spanCount": share.span_count, "errorCount": share.error_count}
            for share in summary.shares
        },
    }


def _spanset(spanset: FoundSpanset) -> dict[str, object]:
    attributes = [
        {"key": name, "value": _value(value)} for name, value in spanset.values if value is not None
    ]
    return {
        "spans": [_span(span) for span in spanset.spans],
        "matched": spanset.count,
        **({"attributes": attributes} if attributes else {}),
    }


def _value(value: str | float) -> dict[str, object]:
    if isinstance(value, str):
        return {"stringValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}


def _span(span: FoundSpan) -> dict[str, object]:
    return {
        "spanID": span.span_id,
        "name": span.name,
        "startTimeUnixNano": str(span.start_nano),
        "durationNanos": str(span.duration_nano),
        "attributes": [{"key": key, "value": value} for key, value in span.values.items()],
    }
