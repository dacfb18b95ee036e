"""Metrics of spans, as range and as one value."""

from __future__ import annotations

import datetime

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.languages import (
    CompareStage,
    SpanExemplar,
    StepRange,
    TraceqlQuery,
    TraceqlSeries,
    compare_spans,
    parse_traceql,
    span_metrics,
    step_range,
    whole_range,
)
from frazil.query import Ask
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.trace_params import bounded_range, duration, number
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of

STEPS_DEFAULT = 100
"""Steps of a range, about, if the request names no step."""
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
"""Lengths of steps by default."""
US_PER_MS = 1000
EXEMPLARS_MAX = 1000


async def query_range(handler: Handler, call: DoorRequest) -> Response:
    """Return a value for each step."""
    query = _query(call)
    since, until = bounded_range(call, handler.context.clock)
    step = duration(call, "step") or _step(until - since)
    steps = step_range(since, until, step)
    exemplars = min(number(call, "exemplars", 0), EXEMPLARS_MAX)

    def load(ask: Ask) -> Response:
        series = _series(ask, query, steps, exemplars)
        return answer_of({"series": [_of_range(each) for each in series], "metrics": {}})

    return await handler.load(call.request, load)


async def query_instant(handler: Handler, call: DoorRequest) -> Response:
    """Return one value for the whole time range."""
    query = _query(call)
    since, until = bounded_range(call, handler.context.clock)
    steps = whole_range(since, until)

    def load(ask: Ask) -> Response:
        series = _series(ask, query, steps, 0)
        return answer_of({"series": [_of_instant(each) for each in series], "metrics": {}})

    return await handler.load(call.request, load)


def _query(call: DoorRequest) -> TraceqlQuery:
    text = call.first("q") or call.first("query") or call.required("q")
    query = parse_traceql(text)
    if query.metrics is None:
        raise Malformed("the query makes no metrics; add a stage such as | rate()")
    return query


def _step(length: datetime.timedelta) -> datetime.timedelta:
    wanted = length.total_seconds() / STEPS_DEFAULT
    return datetime.timedelta(seconds=next((s for s in STEPS_S if s >= wanted), STEPS_S[-1]))


def _series(
    ask: Ask, query: TraceqlQuery, steps: StepRange, exemplar_count: int
) -> list[TraceqlSeries]:
    stage = query.metrics
    assert stage is not None, "checked with the request"
    if isinstance(stage, CompareStage):
        return compare_spans(ask, query, stage, steps)
    return span_metrics(ask, query, stage, steps, exemplar_count=exemplar_count)


def _labels(series: TraceqlSeries) -> list[dict[str, object]]:
    return [{"key": key, "value": value} for key, value in series.labels]


def _of_range(series: TraceqlSeries) -> dict[str, object]:
    """Return a series as the message TimeSeries in protobuf's JSON."""
    return {
        "labels": _labels(series),
        "samples": [
            {"timestampMs": str(time_us // US_PER_MS), "value": value}
            for time_us, value in sorted(series.samples.items())
        ],
        "exemplars": [_exemplar(each) for each in series.exemplars],
    }


def _exemplar(exemplar: SpanExemplar) -> dict[str, object]:
    return {
        "labels": [{"key": "trace:id", "value": {"stringValue": exemplar.trace_id}}],
        "value": exemplar.value,
        "timestampMs": str(exemplar.time_us // US_PER_MS),
    }


def _of_instant(series: TraceqlSeries) -> dict[str, object]:
    return {"labels": _labels(series), "value": next(iter(series.samples.values()))}
