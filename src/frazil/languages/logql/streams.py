"""Which streams there are: their labels, values, and how much they send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frazil.errors import Malformed, TooLarge
from frazil.languages.logql.labels import STREAM_LABELS, label_sql
from frazil.languages.logql.lowering import lowered
from frazil.languages.logql.records import NS_PER_US, LineSpan, ReadRows, batches_of
from frazil.languages.logql.series import (
    LabelKey,
    LineSeries,
    LogSteps,
    key_of_pairs,
)
from frazil.languages.logql.syntax import LogSelection
from frazil.query import sql_where as where

STREAMS_MAX = 100_000
"""Streams of one answer."""
VALUES_MAX = 10_000
"""Values of a label."""

EVERY_STREAM = LogSelection(())


@dataclass(frozen=True, slots=True)
class StreamTotals:
    """A stream, with its lines and their bytes."""

    labels: LabelKey
    line_count: int
    byte_count: int


@dataclass(frozen=True, slots=True)
class StreamLabel:
    """A label that streams have, and how many values it has."""

    name: str
    value_count: int


def exact_conditions(selection: LogSelection, span: LineSpan) -> list[str]:
    """SQL of a selection without stages that only a pipeline can do."""
    lowering = lowered(selection)
    if not lowering.is_exact:
        raise Malformed("this needs a selector and line filters only; remove the other stages")
    return [*span.conditions(), *lowering.conditions]


def stream_labels(
    read: ReadRows, span: LineSpan, selection: LogSelection = EVERY_STREAM
) -> list[StreamLabel]:
    """Labels that any stream has, with the number of their values."""
    return [StreamLabel(*pair) for pair in _counts(read, span, selection, "DISTINCT ").items()]


def stream_label_names(
    read: ReadRows, span: LineSpan, selection: LogSelection = EVERY_STREAM
) -> list[str]:
    """Labels that any stream has; cheaper than to count their values."""
    return list(_counts(read, span, selection, ""))


def _counts(read: ReadRows, span: LineSpan, selection: LogSelection, what: str) -> dict[str, int]:
    counts = ", ".join(f'count({what}"{name}") AS "{name}"' for name in STREAM_LABELS)
    sql = f"SELECT {counts} FROM logs {where(exact_conditions(selection, span))}"
    row = next(batches_of(read, sql)).to_pylist()[0]
    return {name: row[name] for name in STREAM_LABELS if row[name]}


def label_values(
    read: ReadRows, name: str, span: LineSpan, selection: LogSelection = EVERY_STREAM
) -> list[str]:
    """Values of any label of the records, sorted."""
    conditions = exact_conditions(selection, span)
    sql = (
        f"SELECT DISTINCT {label_sql(name)} AS value FROM logs {where(conditions)} "
        f"LIMIT {VALUES_MAX + 1}"
    )
    values = [value for batch in batches_of(read, sql) for value in batch.column(0).to_pylist()]
    if len(values) > VALUES_MAX:
        raise TooLarge(f"{name} has more than {VALUES_MAX} values; narrow the time or the selector")
    return sorted(value for value in values if value)


def stream_totals(
    read: ReadRows,
    span: LineSpan,
    selection: LogSelection = EVERY_STREAM,
    labels: Sequence[str] = STREAM_LABELS,
) -> list[StreamTotals]:
    """FoundLines and bytes of each stream, or of records with the same labels."""
    names = list(dict.fromkeys(labels))
    columns = "".join(f"{label_sql(name)} AS c{i}, " for i, name in enumerate(names))
    by = f"GROUP BY {', '.join(str(i + 1) for i in range(len(names)))}" if names else ""
    sql = (
        f"SELECT {columns}count(*) AS lines, sum(octet_length(body)) AS size FROM logs "
        f"{where(exact_conditions(selection, span))} {by} LIMIT {STREAMS_MAX + 1}"
    )
    found = []
    for batch in batches_of(read, sql):
        for *values, lines, size in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            key = key_of_pairs((n, v or "") for n, v in zip(names, values, strict=True))
            found.append(StreamTotals(key, lines, size or 0))
    if len(found) > STREAMS_MAX:
        raise TooLarge(
            f"there are more than {STREAMS_MAX} streams; narrow the time or the selector"
        )
    return [one for one in found if one.line_count]


def volume_by_step(
    read: ReadRows, grid: LogSteps, selection: LogSelection, labels: Sequence[str]
) -> list[LineSeries]:
    """Bytes by label and step; each step begins at its time."""
    names = list(dict.fromkeys(labels))
    begin_us, step_us = grid.start_ns // NS_PER_US, max(1, grid.step_ns // NS_PER_US)
    columns = "".join(f"{label_sql(name)} AS c{i}, " for i, name in enumerate(names))
    span = LineSpan(begin_us * NS_PER_US, (begin_us + grid.count * step_us) * NS_PER_US)
    sql = (
        f"SELECT {columns}(CAST(time AS BIGINT) - {begin_us}) / {step_us} AS step, "
        f"sum(octet_length(body)) AS size FROM logs {where(exact_conditions(selection, span))} "
        f"GROUP BY {', '.join(str(i + 1) for i in range(len(names) + 1))}"
    )
    sums: dict[LabelKey, np.ndarray] = {}
    for batch in batches_of(read, sql):
        for *values, step, size in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            key = key_of_pairs((n, v or "") for n, v in zip(names, values, strict=True))
            sums.setdefault(key, np.zeros(grid.count))[step] += size or 0
    return [LineSeries(key, values, values > 0) for key, values in sums.items()]
