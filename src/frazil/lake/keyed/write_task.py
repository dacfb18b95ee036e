"""One task: row versions of the hand-off to a data file, sorted by key and durable.

If a step fails, the file is deleted. A killed task leaves an orphan file, which no table
references.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from frazil.disk import is_full
from frazil.errors import Overloaded
from frazil.lake.files.object_store import open_store
from frazil.lake.files.parquet_schema import ParquetLayout
from frazil.lake.files.writer import GROUP_BYTES_MAX, GROUP_ROWS_MAX, TableWriter, WrittenFile
from frazil.lake.keyed.handoff import RowsRef
from frazil.lake.keyed.schema import stored_rows

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRowsTask:
    """The input of a task."""

    rows: RowsRef
    layout: ParquetLayout
    location: str
    """URI of the table."""
    name: str
    """Prefix of the file name, unique per task and attempt."""
    io: FileIO = field(repr=False)
    """May contain passwords."""


def write_rows(work: WriteRowsTask) -> WrittenFile:
    """Run a task. Raises `Conflict` if the hand-off is gone, `Overloaded` if a disk is full."""
    rows = stored_rows(work.rows.read(), work.layout)
    return write_table(rows, work.layout, work.location, work.io, work.name)


def write_table(
    rows: pa.Table, layout: ParquetLayout, location: str, io: FileIO, name: str, *, level: int = 1
) -> WrittenFile:
    """Sort rows by key, and write them to one durable file."""
    keys = [(column, "ascending") for column in layout.order]
    order = pc.sort_indices(rows.select(layout.order), sort_keys=keys)
    # Arrow takes slowly from several chunks.
    columns = [_one_chunk(column) for column in rows.columns]
    rows = pa.Table.from_arrays(columns, schema=rows.schema)
    step = max(1, min(GROUP_ROWS_MAX, rows.num_rows * GROUP_BYTES_MAX // max(1, rows.nbytes)))
    groups = (rows.take(order.slice(begin, step)) for begin in range(0, len(order), step))
    files = TableWriter(open_store(location, io), layout, name, level=level)
    with ExitStack() as undo:
        undo.callback(files.discard)
        try:
            files.write_sorted(None, groups, min(step, rows.num_rows))
            (file,) = files.sync()
        except OSError as error:
            if not is_full(error):
                raise
            raise Overloaded(
                f"the disk is full: {rows.num_rows} rows were not written to {location}; free disk "
                "space"
            ) from error
        undo.pop_all()
    return file


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    chunks: Sequence[pa.Array] = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
