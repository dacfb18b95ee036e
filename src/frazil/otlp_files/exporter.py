"""Export rows as OTLP/JSON lines, in the order of arrival.

Rows are queried in ranges of offsets, so memory stays small, and rows that arrive meanwhile are not
exported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa

from frazil.errors import Malformed, TooLarge
from frazil.model import Signal, arrow
from frazil.otlp_files.otlp_json import json_of_request

SIGNALS = ("logs", "traces", "metrics")
LINE_BYTES_MAX = 2 * 1024 * 1024
"""Size of a line with more than one row: half of what a node accepts as JSON."""
LINE_ROWS_MAX = 1000
QUERY_ROWS = 50_000
"""About how many rows one query returns."""


class SqlRows(Protocol):
    """The result of a query, of an embedded or a remote node."""

    is_cut: bool

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class SqlSource(Protocol):
    """What `frazil.open` and `frazil.connect` return."""

    def sql(self, text: str) -> SqlRows:
        """Run one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFilter:
    """Which rows to export."""

    since: datetime | None = None
    until: datetime | None = None
    service: str | None = None
    trace_id: str | None = None
    where: str | None = None
    """An SQL condition."""
    signals: tuple[str, ...] = field(default=SIGNALS)

    def conditions(self) -> list[str]:
        conditions = []
        if self.since is not None:
            conditions.append(f"time >= {_timestamp(self.since)}")
        if self.until is not None:
            conditions.append(f"time < {_timestamp(self.until)}")
        if self.service is not None:
            conditions.append(f"service_name = {_quoted(self.service)}")
        if self.trace_id is not None:
            conditions.append(f"trace_id = {_quoted(self.trace_id.lower())}")
        if self.where is not None:
            # The newline ends a trailing comment.
            conditions.append(f"({self.where}\n)")
        return conditions

    def __post_init__(self) -> None:
        if self.trace_id is not None and "metrics" in self.signals:
            raise Malformed(
                "metrics do not belong to a trace; remove the signal or the trace from the filter"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLine:
    """One request as OTLP/JSON, without newline."""

    signal: str
    text: bytes
    row_count: int


def export_lines(source: SqlSource, selection: ExportFilter) -> Iterator[ExportedLine]:
    """Yield the selected rows as lines. Raises TooLarge if the node cuts a result."""
    for signal in selection.signals:
        for rows in _rows(source, Signal(signal).table, selection.conditions()):
            for begin in range(0, rows.num_rows, LINE_ROWS_MAX):
                yield from _lines(signal, rows.slice(begin, LINE_ROWS_MAX))


def row_count(source: SqlSource, selection: ExportFilter) -> int:
    """Return the number of selected rows."""
    return sum(
        count
        for signal in selection.signals
        for _, _, _, count in _ranges(source, Signal(signal).table, selection.conditions())
    )


def _rows(source: SqlSource, table: str, conditions: list[str]) -> Iterator[pa.RecordBatch]:
    for partition, begin, end, count in _ranges(source, table, conditions):
        step = max(1, (end - begin) * QUERY_ROWS // count)
        for first in range(begin, end, step):
            last = min(first + step, end)
            range_ = f"_log_partition = {partition} AND _offset >= {first} AND _offset < {last}"
            where = _where([range_, *conditions])
            yield from _query(source, f"SELECT * FROM {table} {where} ORDER BY _offset, _row")


def _ranges(
    source: SqlSource, table: str, conditions: list[str]
) -> list[tuple[int, int, int, int]]:
    """Return partition, first offset, end offset and number of rows."""
    sql = (
        "SELECT _log_partition, MIN(_offset) AS begin_offset, MAX(_offset) + 1 AS end_offset, "
        f"COUNT(*) AS row_count FROM {table} {_where(conditions)} "
        "GROUP BY _log_partition ORDER BY _log_partition"
    )
    batches = _query(source, sql)
    return [
        (int(partition), int(begin), int(end), int(count))
        for batch in batches
        for partition, begin, end, count in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        )
    ]


def _query(source: SqlSource, sql: str) -> Iterator[pa.RecordBatch]:
    result = source.sql(sql)
    yield from result
    if result.is_cut:
        raise TooLarge(
            "a request in the log has more rows than query.rows_max; "
            "select fewer with --since, --until or --where"
        )


def _lines(signal: str, rows: pa.RecordBatch) -> Iterator[ExportedLine]:
    texts = [json_of_request(signal, request) for request in arrow.encode(signal, rows)]
    if len(texts) == 1 and (len(texts[0]) <= LINE_BYTES_MAX or rows.num_rows == 1):
        yield ExportedLine(signal=signal, text=texts[0], row_count=rows.num_rows)
        return
    half = rows.num_rows // 2
    yield from _lines(signal, rows.slice(0, half))
    yield from _lines(signal, rows.slice(half))


def _where(conditions: Iterable[str]) -> str:
    text = " AND ".join(conditions)
    return f"WHERE {text}" if text else ""


def _timestamp(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.astimezone(UTC).isoformat()}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
