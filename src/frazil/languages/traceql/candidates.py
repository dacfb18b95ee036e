"""Finds the traces that a pipeline matches: first which may, by SQL, then each with its spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from frazil.errors import TooLarge
from frazil.languages.traceql.span_rows import (
    SpanReader,
    filter_column,
    number_column,
    value_column,
)
from frazil.languages.traceql.spansets import Spanset, TraceSpans, spansets_of
from frazil.query import Ask

CANDIDATES_MAX = 20_000
"""Traces whose spans one query examines."""
TRACES_PER_READ = 200


@dataclass(frozen=True, slots=True)
class MatchingTrace:
    """A trace with the spansets that were found in it, and all columns of its rows."""

    trace_id: str
    spansets: list[Spanset]
    columns: Mapping[str, list[Any]]
    spans: TraceSpans


def matching_traces(ask: Ask, reader: SpanReader, limit: int) -> Iterator[MatchingTrace]:
    """Yield up to `limit` matching traces, the one with the newest matching span first. `TooLarge`
    if too many traces would have to be examined."""
    is_exact = reader.plain_conditions() is not None and len(reader.conditions) == 1
    limit_of_candidates = min(limit, CANDIDATES_MAX) if is_exact else CANDIDATES_MAX + 1
    ids = ask(reader.candidates_sql(limit_of_candidates))["trace_id"].to_pylist()
    count = 0
    for begin in range(0, min(len(ids), CANDIDATES_MAX), TRACES_PER_READ):
        found = dict(_evaluated(ask, reader, ids[begin : begin + TRACES_PER_READ]))
        for trace_id in ids[begin : begin + TRACES_PER_READ]:
            if trace_id in found:
                yield found[trace_id]
                count += 1
                if count == limit:
                    return
    if len(ids) > CANDIDATES_MAX:
        raise TooLarge(
            f"more than {CANDIDATES_MAX} traces have spans that meet the conditions; use a shorter "
            "time range or more conditions"
        )


def matching_ids(ask: Ask, reader: SpanReader, limit: int) -> list[str]:
    """Return the ids of up to `limit` matching traces, the one with the newest matching span
    first."""
    if reader.plain_conditions() is not None and len(reader.conditions) == 1:
        ids: list[str] = ask(reader.candidates_sql(limit))["trace_id"].to_pylist()
        return ids
    return [trace.trace_id for trace in matching_traces(ask, reader, limit)]


def _evaluated(
    ask: Ask, reader: SpanReader, trace_ids: list[str]
) -> Iterator[tuple[str, MatchingTrace]]:
    for trace_id, rows in rows_by_trace(reader.rows(ask, trace_ids)):
        columns = rows.to_pydict()
        spans = _trace_spans(reader, columns)
        spansets = spansets_of(spans, reader.pipeline)
        if spansets:
            yield trace_id, MatchingTrace(trace_id, spansets, columns, spans)


def rows_by_trace(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Split rows, which are sorted by trace."""
    begin = 0
    for trace_id, same in groupby(rows["trace_id"].to_pylist()):
        count = sum(1 for _ in same)
        yield trace_id, rows.slice(begin, count)
        begin += count


def _trace_spans(reader: SpanReader, columns: Mapping[str, list[Any]]) -> TraceSpans:
    return TraceSpans(
        ids=columns["span_id"],
        parent_ids=columns["parent_span_id"],
        matches={each: columns[filter_column(i)] for i, each in enumerate(reader.conditions)},
        values={each: columns[value_column(i)] for i, each in enumerate(reader.values)},
        numbers={each: columns[number_column(i)] for i, each in enumerate(reader.numbers)},
    )
