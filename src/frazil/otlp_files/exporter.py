"""export: rows of tables become lines of OTLP/JSON, in the order in which they came in.

Rows are asked for by offset, some at a time: memory stays small, whatever there is, and rows that
come in meanwhile are not looked at.
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
"""Of one line, unless it is a single row: half of what a node takes in JSON."""
LINE_ROWS_MAX = 1000
QUERY_ROWS = 50_000
"""Rows that one query is about to give."""


class SqlRows(Protocol):
    """Rows of a query: `frazil.query.Result`, and what a remote node gives."""

    is_cut: bool

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class SqlSource(Protocol):
    """What `frazil.open` and `frazil.connect` give."""

    def sql(self, text: str) -> SqlRows:
        """Run one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFilter:
    """Which rows."""

    since: datetime | None = None
    until: datetime | None = None
    service: str | None = None
    trace_id: str | None = None
    where: str | None = None
    """A condition in SQL."""
    signals: tuple[str, ...] = field(default=SIGNALS)

    def conditions(self) -> list[str]:
        found = []
        if self.since is not None:
            found.append(f"time >= {_timestamp(self.since)}")
        if self.until is not None:
            found.append(f"time < {_timestamp(self.until)}")
        if self.service is not None:
            found.append(f"service_name = {_quoted(self.service)}")
        if self.trace_id is not None:
            found.append(f"trace_id = {_quoted(self.trace_id.lower())}")
        if self.where is not None:
            # On a line of its own: it may end with a comment.
            found.append(f"({self.where}\n)")
        return found

    def __post_init__(self) -> None:
        if self.trace_id is not None and "metrics" in self.signals:
            raise Malformed("metrics belong to no trace; leave them out, or leave out the trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLine:
    """One request as OTLP/JSON, without the end of the line."""

    signal: str
    text: bytes
    row_count: int


def export_lines(asked: SqlSource, choice: ExportFilter) -> Iterator[ExportedLine]:
    """All rows of a choice, as lines. `TooLarge` when the node cuts what it answers."""
    for signal in choice.signals:
        for rows in _rows(asked, Signal(signal).table, choice.conditions()):
            for begin in range(0, rows.num_rows, LINE_ROWS_MAX):
                yield from _lines(signal, rows.slice(begin, LINE_ROWS_MAX))


def row_count(asked: SqlSource, choice: ExportFilter) -> int:
    """How many rows there are now."""
    return sum(
        count
        for signal in choice.signals
        for _, _, _, count in _ranges(asked, Signal(signal).table, choice.conditions())
    )


def _rows(asked: SqlSource, table: str, conditions: list[str]) -> Iterator[pa.RecordBatch]:
    for partition, begin, end, count in _ranges(asked, table, conditions):
        step = max(1, (end - begin) * QUERY_ROWS // count)
        for first in range(begin, end, step):
            last = min(first + step, end)
            range_ = f"_log_partition = {partition} AND _offset >= {first} AND _offset < {last}"
            where = _where([range_, *conditions])
            yield from _ask(asked, f"SELECT * FROM {table} {where} ORDER BY _offset, _row")


def _ranges(asked: SqlSource, table: str, conditions: list[str]) -> list[tuple[int, int, int, int]]:
    """Partition, first offset, end and number of rows."""
    sql = (
        "SELECT _log_partition, MIN(_offset) AS begin_offset, MAX(_offset) + 1 AS end_offset, "
        f"COUNT(*) AS row_count FROM {table} {_where(conditions)} "
        "GROUP BY _log_partition ORDER BY _log_partition"
    )
    batches = _ask(asked, sql)
    return [
        (int(partition), int(begin), int(end), int(count))
        for batch in batches
        for partition, begin, end, count in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        )
    ]


def _ask(asked: SqlSource, sql: str) -> Iterator[pa.RecordBatch]:
    answer = asked.sql(sql)
    yield from answer
    if answer.is_cut:
        raise TooLarge(
            "a request in the log has more rows than query.rows_max allows in an answer; "
            "choose fewer with --since, --until or --where"
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


def _timestamp(when: datetime) -> str:
    return f"TIMESTAMP '{when.astimezone(UTC).isoformat()}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
