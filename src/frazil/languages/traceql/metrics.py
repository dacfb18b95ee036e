"""Metrics of spans: rates, counts, quantiles and histograms over time.

If each row of `spans` decides for itself whether it counts, one SQL query does it all. Otherwise
the spansets of each trace are found first, and their spans are counted here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from frazil.errors import TooLarge
from frazil.languages.traceql.candidates import CANDIDATES_MAX, matching_traces
from frazil.languages.traceql.fields import FieldSql
from frazil.languages.traceql.nodes import MetricsStage, TraceqlQuery
from frazil.languages.traceql.series import (
    NANO,
    SpanExemplar,
    StepRange,
    StepRow,
    TraceqlSeries,
    ranked,
    series_of,
)
from frazil.languages.traceql.span_rows import SpanReader, group_sql
from frazil.query import Ask
from frazil.query import sql_where as where

ROWS_MAX = 200_000
"""Samples of one query, with those of its buckets."""
US = 1000
"""Nanoseconds of a microsecond."""
AGGREGATES = {"min": "min", "max": "max", "avg": "avg", "sum": "sum"}

Groups = tuple[str | None, ...]


def span_metrics(
    ask: Ask, query: TraceqlQuery, stage: MetricsStage, steps: StepRange, *, exemplar_count: int = 0
) -> list[TraceqlSeries]:
    """Return the series of a metrics query, with up to `exemplar_count` exemplars in all."""
    reader = SpanReader(query.pipeline, steps.within)
    groups = [reader.value(each) for each in stage.by]
    number = None if stage.field is None else reader.number(stage.field)
    scale = NANO if number is not None and number.is_nano else 1.0
    if reader.plain_conditions() is not None:
        table = ask(_sql(reader, stage, steps, groups, number))
        if table.num_rows > ROWS_MAX:
            raise TooLarge(
                f"the query has more than {ROWS_MAX} samples; use a longer step, or group by fewer "
                "attributes"
            )
        rows = list(_rows_of(table, stage, len(groups)))
    else:
        rows = list(_counted(ask, reader, stage, steps))
    series = ranked(series_of(rows, stage, steps, scale=scale), query.after)
    return _with_few_exemplars(series, exemplar_count)


def _sql(
    reader: SpanReader,
    stage: MetricsStage,
    steps: StepRange,
    groups: list[FieldSql],
    number: FieldSql | None,
) -> str:
    keys = [step_sql(steps), *map(group_sql, groups)]
    conditions = list(reader.plain_conditions() or ())
    if number is not None:
        conditions.append(f"{number.sql} IS NOT NULL")
        if stage.function == "histogram_over_time":
            conditions.append(f"{number.sql} > 0")
            keys.append(f"CAST(ceil(log2({number.sql})) AS BIGINT)")
    longest = "ORDER BY duration_nano DESC, trace_id"
    values = [
        *_aggregates(stage, number),
        f"first_value(trace_id {longest})",
        f"first_value(time_unix_nano {longest})",
    ]
    columns = ", ".join(f"{sql} AS c{index}" for index, sql in enumerate([*keys, *values]))
    by = ", ".join(str(index + 1) for index in range(len(keys)))
    return (
        f"SELECT {columns} FROM {reader.source()} {where(conditions)} GROUP BY {by} "
        f"ORDER BY {by} LIMIT {ROWS_MAX + 1}"
    )


def step_sql(steps: StepRange) -> str:
    """SQL of the begin of the step of a span, in microseconds."""
    if steps.is_instant:
        return str(steps.begin_us)
    return f"CAST(time AS BIGINT) / {steps.step_us} * {steps.step_us}"


def _aggregates(stage: MetricsStage, number: FieldSql | None) -> list[str]:
    """SQL of the values of a group."""
    if number is None or stage.function == "histogram_over_time":
        return ["count(*)"]
    if stage.function == "quantile_over_time":
        return [
            f"percentile_cont({share!r}) WITHIN GROUP (ORDER BY {number.sql})"
            for share in stage.quantiles
        ]
    return [f"{AGGREGATES[stage.function.partition('_')[0]]}({number.sql})"]


def _rows_of(table: pa.Table, stage: MetricsStage, group_count: int) -> Iterator[StepRow]:
    has_bucket = stage.function == "histogram_over_time"
    columns = [column.to_pylist() for column in table.columns]
    for row in zip(*columns, strict=True):
        end = 1 + group_count + has_bucket
        trace_id, time_nano = row[-2:]
        if trace_id is None:  # no span at all: a group of nothing
            continue
        yield StepRow(
            begin_us=row[0],
            groups=row[1 : 1 + group_count],
            values=row[end:-2],
            bucket=row[end - 1] if has_bucket else None,
            exemplar=SpanExemplar(trace_id, time_nano // US, 0.0),
        )


def _counted(
    ask: Ask, reader: SpanReader, stage: MetricsStage, steps: StepRange
) -> Iterator[StepRow]:
    """Count the spans of all spansets, each span once."""
    cells: dict[tuple[int, Groups], list[float]] = {}
    examples: dict[tuple[int, Groups], tuple[int, SpanExemplar]] = {}
    for trace in matching_traces(ask, reader, CANDIDATES_MAX):
        spans = trace.spans
        for span in sorted({span for spanset in trace.spansets for span in spanset.spans}):
            time_us = trace.columns["time_unix_nano"][span] // US
            groups = tuple(spans.values[each][span] for each in stage.by)
            value = 1.0 if stage.field is None else spans.numbers[stage.field][span]
            if value is None:
                continue
            key = steps.begin_of(time_us), groups
            cells.setdefault(key, []).append(value)
            duration = trace.columns["duration_nano"][span]
            if key not in examples or duration > examples[key][0]:
                examples[key] = duration, SpanExemplar(trace.trace_id, time_us, 0.0)
    for key, values in sorted(cells.items(), key=repr):
        for bucket, results in _results(stage, values):
            yield StepRow(*key, tuple(results), bucket, examples[key][1])


def _results(stage: MetricsStage, values: list[float]) -> Iterable[tuple[int | None, list[float]]]:
    """Return the values of a group; those of a histogram by the exponent of their bucket."""
    if stage.field is None:
        return [(None, [float(len(values))])]
    match stage.function:
        case "histogram_over_time":
            exponents = [math.ceil(math.log2(value)) for value in values if value > 0]
            return [(each, [float(exponents.count(each))]) for each in sorted(set(exponents))]
        case "quantile_over_time":
            return [(None, [_quantile(sorted(values), share) for share in stage.quantiles])]
        case "avg_over_time":
            return [(None, [math.fsum(values) / len(values)])]
        case "sum_over_time":
            return [(None, [math.fsum(values)])]
        case function:
            return [(None, [min(values) if function == "min_over_time" else max(values)])]


def _quantile(values: list[float], share: float) -> float:
    """Return a quantile of sorted values, interpolated linearly, as SQL's `percentile_cont`."""
    place = share * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def _with_few_exemplars(series: list[TraceqlSeries], count: int) -> list[TraceqlSeries]:
    """Keep about the same number of exemplars in each series, spread over time."""
    share = max(1, count // len(series)) if series and count else 0
    for each in series:
        found: list[Any] = each.exemplars
        kept = found[:: max(1, -(-len(found) // share))] if share else []
        found[:] = [one for one in kept if each.samples.get(_step_of(each, one)) is not None]
    return series


def _step_of(series: TraceqlSeries, exemplar: SpanExemplar) -> int:
    """Return the step of a series that an exemplar is in."""
    return max((begin for begin in series.samples if begin <= exemplar.time_us), default=-1)
