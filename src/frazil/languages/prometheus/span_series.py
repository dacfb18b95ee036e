"""Series computed from spans: metrics of spans and of the service graph, as Tempo writes them.

    traces_spanmetrics_calls_total, traces_spanmetrics_latency_{bucket,sum,count}
        service, span_name, span_kind, status_code
    traces_service_graph_request_total, _failed_total,
    traces_service_graph_request_{server,client}_seconds_{bucket,sum,count}
        client, server

Each point is the increase within `STEP_MS`, at its end, so `rate` and `increase` are exact. A call
is a span of a server or consumer whose parent is a span of a client or producer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.languages.prometheus.matching import SeriesFilter, test_of
from frazil.languages.prometheus.names import NAME
from frazil.languages.prometheus.point_groups import PointGroup
from frazil.languages.prometheus.spread_points import LE, bound_text
from frazil.languages.promql.points import LabelMatcher, LabelSet
from frazil.query import Ask

STEP_MS = 15_000
CALLER_AGE_MS = 600_000
"""How much earlier or later than a call its caller may have begun."""
BOUNDS_S = tuple(0.002 * 2**power for power in range(14))
"""Upper bounds of the buckets of durations, 2 ms to 16 s."""
NS_PER_S = 1_000_000_000
US_PER_MS = 1000


class _Value(Enum):
    """What a series counts."""

    CALLS = "count(*)"
    FAILURES = "sum(is_failed)"
    SECONDS = "sum(duration)"
    BUCKETS = "buckets"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanSeries:
    """Series with one name."""

    name: str
    labels: tuple[str, ...]
    source: str
    """SQL with those labels, `time`, `duration` in seconds and `is_failed`, in a time range."""
    value: _Value
    help: str

    @property
    def every_label(self) -> tuple[str, ...]:
        """Return the labels, with that of buckets."""
        return (*self.labels, LE) if self.value is _Value.BUCKETS else self.labels

    @property
    def family_name(self) -> str:
        """Return the name without the suffix of a histogram's part."""
        if self.prometheus_type == "counter":
            return self.name
        return self.name.rpartition("_")[0]

    @property
    def prometheus_type(self) -> str:
        return "histogram" if "seconds" in self.name or "latency" in self.name else "counter"


_SPAN_LABELS = ("service", "span_name", "span_kind", "status_code")
_SPANS = (
    "SELECT service_name AS service, name AS span_name, concat('SPAN_KIND_', kind) AS span_kind, "
    "concat('STATUS_CODE_', status_code) AS status_code, time, "
    f"duration_nano / {float(NS_PER_S)} AS duration, 0 AS is_failed FROM spans WHERE {{callee}}"
)
_CALL_LABELS = ("client", "server")
_CALLS = (
    "SELECT caller.service_name AS client, callee.service_name AS server, callee.time AS time, "
    f"{{side}}.duration_nano / {float(NS_PER_S)} AS duration, "
    "CASE WHEN callee.status_code = 'ERROR' OR caller.status_code = 'ERROR' THEN 1 ELSE 0 END "
    "AS is_failed FROM (SELECT * FROM spans WHERE {callee} AND kind IN ('SERVER', 'CONSUMER')) "
    "AS callee JOIN (SELECT * FROM spans WHERE {caller} AND kind IN ('CLIENT', 'PRODUCER')) "
    "AS caller ON callee.trace_id = caller.trace_id AND callee.parent_span_id = caller.span_id"
)


def _histogram(name: str, labels: tuple[str, ...], source: str, about: str) -> list[SpanSeries]:
    values = (("bucket", _Value.BUCKETS), ("sum", _Value.SECONDS), ("count", _Value.CALLS))
    return [
        SpanSeries(name=f"{name}_{suffix}", labels=labels, source=source, value=value, help=about)
        for suffix, value in values
    ]


def _counter(
    name: str, labels: tuple[str, ...], source: str, about: str, value: _Value = _Value.CALLS
) -> SpanSeries:
    return SpanSeries(name=name, labels=labels, source=source, value=value, help=about)


_SERVER, _CLIENT = _CALLS.replace("{side}", "callee"), _CALLS.replace("{side}", "caller")
_GRAPH = "traces_service_graph_request"
SPAN_SERIES = (
    _counter("traces_spanmetrics_calls_total", _SPAN_LABELS, _SPANS, "Spans."),
    *_histogram("traces_spanmetrics_latency", _SPAN_LABELS, _SPANS, "Durations of spans."),
    _counter(f"{_GRAPH}_total", _CALL_LABELS, _SERVER, "Calls between services."),
    _counter(f"{_GRAPH}_failed_total", _CALL_LABELS, _SERVER, "Failed calls.", _Value.FAILURES),
    *_histogram(f"{_GRAPH}_server_seconds", _CALL_LABELS, _SERVER, "Durations at the server."),
    *_histogram(f"{_GRAPH}_client_seconds", _CALL_LABELS, _CLIENT, "Durations at the client."),
)


def find_span_series(matchers: Sequence[LabelMatcher]) -> list[SpanSeries]:
    """Return the series whose names match, and that may have the labels."""
    tests = [(matcher.name, test_of(matcher)) for matcher in matchers]
    return [
        series
        for series in SPAN_SERIES
        if all(
            test(series.name if name == NAME else "")
            for name, test in tests
            if name not in series.every_label
        )
    ]


def read_span_series(
    ask: Ask,
    series: SpanSeries,
    matchers: Sequence[LabelMatcher],
    after_ms: int,
    until_ms: int,
) -> PointGroup:
    """Return the points of the series, which are increases, in (after_ms, until_ms]."""
    first_ms = after_ms // STEP_MS * STEP_MS
    rows = ask(_sql(series, first_ms, until_ms))
    times = rows["step"].to_numpy().astype(np.int64) * STEP_MS
    keys = list(zip(*(rows[name].to_pylist() for name in series.labels), strict=True))
    places: dict[tuple[str, ...], int] = {}
    numbers = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
    sets = [_label_set(series, key) for key in places]
    values = rows["value"].to_numpy().astype(np.float64)
    if series.value is _Value.BUCKETS:
        sets, numbers, times, values = _buckets(sets, numbers, times, values, rows["bucket"])
    wanted = SeriesFilter(matchers)
    is_within = times <= until_ms
    return PointGroup(
        labels=[labels if wanted.selects(labels) else None for labels in sets],
        is_delta=[True] * len(sets),
        numbers=numbers[is_within].astype(np.int32),
        times_ms=times[is_within],
        ranks=np.zeros(int(is_within.sum()), np.int64),
        values=values[is_within],
    )


def _label_set(series: SpanSeries, key: Sequence[str]) -> LabelSet:
    labels = dict(zip(series.labels, key, strict=True))
    return tuple(sorted((name, value) for name, value in (*labels.items(), (NAME, series.name))))


def _sql(series: SpanSeries, first_ms: int, until_ms: int) -> str:
    """SQL of the value in each step; steps are counted from 1970 and named by their end."""
    source = series.source.format(
        callee=_between(first_ms, until_ms),
        caller=_between(first_ms - CALLER_AGE_MS, until_ms + CALLER_AGE_MS),
    )
    step = f"(CAST(time AS BIGINT) + {STEP_MS * US_PER_MS - 1}) / {STEP_MS * US_PER_MS} AS step"
    labels = ", ".join(series.labels)
    groups = f"step, {labels}"
    value = series.value.value
    if series.value is _Value.BUCKETS:
        groups, value = f"{groups}, bucket", "count(*)"
    cases = " ".join(
        f"WHEN duration <= {bound!r} THEN {place}" for place, bound in enumerate(BOUNDS_S)
    )
    bucket = f"CASE {cases} ELSE {len(BOUNDS_S)} END AS bucket"
    failed = "is_failed = 1" if series.value is _Value.FAILURES else "true"
    return (
        f"SELECT {groups}, CAST({value} AS DOUBLE) AS value FROM "
        f"(SELECT {step}, {labels}, duration, is_failed, {bucket} FROM ({source}) WHERE {failed}) "
        f"GROUP BY {groups}"
    )


def _between(after_ms: int, until_ms: int) -> str:
    since_us, until_us = after_ms * US_PER_MS + 1, until_ms * US_PER_MS
    return f"time >= to_timestamp_micros({since_us}) AND time <= to_timestamp_micros({until_us})"


def _buckets(
    sets: Sequence[LabelSet], numbers: Any, times: Any, values: Any, bucket: pa.ChunkedArray
) -> tuple[list[LabelSet], Any, Any, Any]:
    """Return a series per bucket, each with the number of durations up to its bound."""
    size = len(BOUNDS_S) + 1
    cells, cell = np.unique(np.column_stack([numbers, times]), axis=0, return_inverse=True)
    counts = np.zeros((len(cells), size), np.float64)
    np.add.at(counts, (cell.ravel(), bucket.to_numpy()), values)
    bounds = [bound_text(bound) for bound in (*BOUNDS_S, float("inf"))]
    named = [tuple(sorted((*labels, (LE, bound)))) for labels in sets for bound in bounds]
    series = (cells[:, :1] * size + np.arange(size)).ravel()
    return named, series, np.repeat(cells[:, 1], size), counts.cumsum(axis=1).ravel()
