"""Rows of a query in one of five formats, streamed in pieces.

A result that is cut is never a valid document, except as a table, which says that it is cut.
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
"""Rows that determine the column widths; later rows are streamed."""
EXPANDED_ROWS_MAX = 20
"""Longer results are expanded only on request."""
PIECE_ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStyle:
    """How a table is formatted."""

    columns: int | None = None
    """Width of the terminal; None is unlimited."""
    paint: Colors = PLAIN
    is_expanded: bool | None = None
    """Whether to print one line per column. None: if there are few rows and not all columns fit."""
    has_timing: bool = True


def pieces_of(
    result: Result, format_name: str, style: TableStyle, clock: Clock, start_ns: int
) -> Iterator[bytes]:
    """Yield all rows in a format. Raises TooLarge after the rows if the result was cut and the
    format cannot say so."""
    if format_name == "table":
        for line in _table(result, style, clock, start_ns):
            yield line.encode(errors="replace") + b"\n"
        return
    yield from WRITERS[format_name](result)


def _table(result: Result, style: TableStyle, clock: Clock, start_ns: int) -> Iterator[str]:
    headings = headings_of(result.schema)
    rows = (row for batch in result for row in rows_of(batch))
    first: list[Row] = list(islice(rows, MEASURED_ROWS))
    table = Table.fitting(headings, first, style.columns, style.paint)
    is_expanded = style.is_expanded
    if is_expanded is None:
        is_expanded = table.left_out > 0 and len(first) <= EXPANDED_ROWS_MAX
    if is_expanded:
        for number, row in enumerate(chain(first, rows), 1):
            yield from record_lines(number, headings, row, style.columns, style.paint)
    else:
        yield from table.head()
        yield from map(table.row, chain(first, rows))
        yield table.foot()
        if table.left_out:
            yield f"{table.left_out} columns did not fit; select fewer, or use expanded display"
    elapsed_ms = (clock.monotonic_ns() - start_ns) // NS_PER_MS
    yield _foot(result, f" ({elapsed_ms} ms)" if style.has_timing else "")


def _foot(result: Result, timing: str) -> str:
    count = result.returned_count
    if result.is_cut:
        return f"first {count:,} rows; there are more{timing}"
    return f"{count:,} row{'' if count == 1 else 's'}{timing}"


def _json(result: Result) -> Iterator[bytes]:
    """The default response of `POST /api/v1/sql`."""
    from frazil.results import json_rows

    names = json.dumps(result.schema.names, ensure_ascii=False, separators=(",", ":"))
    yield b'{"columns":%s,"rows":[' % names.encode()
    comma = b""
    for batch in result:
        for begin in range(0, batch.num_rows, PIECE_ROWS):
            yield comma + b",".join(json_rows(batch.slice(begin, PIECE_ROWS)))
            comma = b","
    _check_complete(result)
    yield b"]}\n"


def _csv(result: Result) -> Iterator[bytes]:
    from frazil.results import csv_head, csv_of

    yield csv_head(result.schema)
    for batch in result:
        for begin in range(0, batch.num_rows, PIECE_ROWS):
            yield csv_of(batch.slice(begin, PIECE_ROWS))
    _check_complete(result)


def _arrow(result: Result) -> Iterator[bytes]:
    import pyarrow as pa

    sink = _Sink()
    writer = pa.ipc.new_stream(sink, result.schema)
    for batch in result:
        writer.write_batch(batch)
        yield sink.take()
    _check_complete(result)
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
    _check_complete(result)
    writer.close()
    yield sink.take()


WRITERS: dict[str, Callable[[Result], Iterator[bytes]]] = {
    "json": _json,
    "csv": _csv,
    "arrow": _arrow,
    "parquet": _parquet,
}


def _check_complete(result: Result) -> None:
    if result.is_cut:
        raise TooLarge(
            f"the result has more than {result.returned_count} rows, the limit of this query or "
            "query.rows_max; the output is incomplete. Add a LIMIT, or aggregate"
        )


class _Sink:
    """A file object for Arrow, from which pieces are taken."""

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
        """Nothing to flush."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken
