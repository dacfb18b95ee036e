"""The rows of a query in one of five formats, as pieces that are written as they come.

What ends in the middle is no whole document in any format but the table, which says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from frazil.cli.terminal.cells import headings_of, rows_of
from frazil.cli.terminal.colors import Colors
from frazil.cli.terminal.table import PLAIN, Row, Table, record_lines
from frazil.errors import TooLarge
from frazil.model import NS_PER_MS, Clock

if TYPE_CHECKING:
    from frazil.results import Result

MEASURED_ROWS = 1000
"""Rows that a table is fitted to; those behind them are drawn as they come."""
EXPANDED_ROWS_MAX = 20
"""More rows are not shown with a line for each column unless somebody wants that."""
PIECE_ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStyle:
    """How a table is drawn."""

    columns: int | None = None
    """Of the terminal; None is as wide as the rows are."""
    paint: Colors = PLAIN
    is_expanded: bool | None = None
    """A line for each column? None: when there are few rows, and columns for which there is no
    room beside each other."""
    has_timing: bool = True


def pieces_of(
    result: Result, how: str, looks: TableStyle, clock: Clock, begun_ns: int
) -> Iterator[bytes]:
    """All rows in one of the formats. `TooLarge`, behind the rows, when there were more than the
    limit allows and the format has no place to say so."""
    if how == "table":
        for line in _table(result, looks, clock, begun_ns):
            yield line.encode(errors="replace") + b"\n"
        return
    yield from WRITERS[how](result)


def _table(result: Result, looks: TableStyle, clock: Clock, begun_ns: int) -> Iterator[str]:
    headings = headings_of(result.schema)
    rows = (row for batch in result for row in rows_of(batch))
    first: list[Row] = list(islice(rows, MEASURED_ROWS))
    table = Table.fitting(headings, first, looks.columns, looks.paint)
    is_expanded = looks.is_expanded
    if is_expanded is None:
        is_expanded = table.left_out > 0 and len(first) <= EXPANDED_ROWS_MAX
    if is_expanded:
        for number, row in enumerate(chain(first, rows), 1):
            yield from record_lines(number, headings, row, looks.columns, looks.paint)
    else:
        yield from table.head()
        yield from map(table.row, chain(first, rows))
        yield table.foot()
        if table.left_out:
            yield f"{table.left_out} columns more than fit; name fewer, or show rows expanded"
    elapsed_ms = (clock.monotonic_ns() - begun_ns) // NS_PER_MS
    yield _foot(result, f" ({elapsed_ms} ms)" if looks.has_timing else "")


def _foot(result: Result, timing: str) -> str:
    count = result.returned_count
    if result.is_cut:
        return f"the first {count:,} rows, there are more{timing}"
    return f"{count:,} row{'' if count == 1 else 's'}{timing}"


def _json(result: Result) -> Iterator[bytes]:
    """What `POST /api/v1/sql` answers by default."""
    from frazil.results import json_rows

    names = json.dumps(result.schema.names, ensure_ascii=False, separators=(",", ":"))
    yield b'{"columns":%s,"rows":[' % names.encode()
    comma = b""
    for batch in result:
        for begin in range(0, batch.num_rows, PIECE_ROWS):
            yield comma + b",".join(json_rows(batch.slice(begin, PIECE_ROWS)))
            comma = b","
    _refuse_part(result)
    yield b"]}\n"


def _csv(result: Result) -> Iterator[bytes]:
    from frazil.results import csv_head, csv_of

    yield csv_head(result.schema)
    for batch in result:
        for begin in range(0, batch.num_rows, PIECE_ROWS):
            yield csv_of(batch.slice(begin, PIECE_ROWS))
    _refuse_part(result)


def _arrow(result: Result) -> Iterator[bytes]:
    import pyarrow as pa

    sink = _Sink()
    writer = pa.ipc.new_stream(sink, result.schema)
    for batch in result:
        writer.write_batch(batch)
        yield sink.take()
    _refuse_part(result)
    writer.close()
    yield sink.take()


def _parquet(result: Result) -> Iterator[bytes]:
    import pyarrow.parquet as pq

    from frazil.results import GROUP_ROWS, row_groups

    sink = _Sink()
    writer = pq.ParquetWriter(sink, result.schema, compression="zstd")
    for table in row_groups(result):
        writer.write_table(table, row_group_size=GROUP_ROWS)
        yield sink.take()
    _refuse_part(result)
    writer.close()
    yield sink.take()


WRITERS: dict[str, Callable[[Result], Iterator[bytes]]] = {
    "json": _json,
    "csv": _csv,
    "arrow": _arrow,
    "parquet": _parquet,
}


def _refuse_part(result: Result) -> None:
    if result.is_cut:
        raise TooLarge(
            f"the result has more than {result.returned_count} rows, the limit of this query or "
            "query.rows_max; what was written is only a part of it. Add a LIMIT, or aggregate"
        )


class _Sink:
    """What Arrow writes to, and pieces are taken from."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._position += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """There is nothing behind it."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken
