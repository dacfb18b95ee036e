"""Rows of a table by offset, from its data files, for offsets that are no longer in the log.

The driver selects files by their bounds. A task reads them without a catalog, a few rows at a time.
The files come from the appender or from compaction; columns are matched by field id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Conflict
from frazil.lake.append.slice import SourcePartition
from frazil.lake.files.parquet_schema import FIELD_ID
from frazil.lake.read.offset_files import files_now
from frazil.lake.scan.data_file import OFFSET_MAX, TableFile
from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.model import MiB
from frazil.model.arrow import TABLES

if TYPE_CHECKING:
    from pyiceberg.table import Table

TASK_BYTES = 32 * MiB
"""Bytes of data files per task. A file is not split."""
ROWS_MAX = 8192
"""Rows per batch: a few megabytes."""
ROW_BYTES = 256
"""Approximate size of a row in the log, so that one limit applies to log and lake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRangeRows:
    """Rows of the offsets from `begin` up to `end` in these files."""

    source: SourcePartition
    begin: int
    end: int
    paths: tuple[str, ...]
    properties: Mapping[str, str]
    """Properties of the FileIO."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, unordered. Raise `Conflict` if a file was deleted meanwhile."""
        from pyiceberg.io import load_file_io

        for path in self.paths:
            io = load_file_io(dict(self.properties), path)
            try:
                with io.new_input(path).open() as stream:
                    yield from _read_file(stream, self)
            except FileNotFoundError:
                raise Conflict(
                    f"{path} no longer exists: since the query was planned, the table was "
                    "compacted and old snapshots expired; plan again"
                ) from None


def files_of_range(table: Table, source: SourcePartition, begin: int, end: int) -> list[TableFile]:
    """Return the files of a table that may hold rows of these offsets."""
    files = [file for file in files_now(table) if file.may_hold(source.partition, begin, end)]
    return sorted(files, key=lambda file: (file.offset_min, file.location))


def end_in_files(files: Sequence[TableFile], begin: int, end: int, bytes_max: int) -> int:
    """Return the end of a range of about `bytes_max` bytes from `begin`, at least one offset."""
    low, high = begin + 1, end
    while low < high:
        middle = (low + high + 1) // 2
        if _bytes_between(files, begin, middle) <= bytes_max:
            low = middle
        else:
            high = middle - 1
    return low


def _bytes_between(files: Sequence[TableFile], begin: int, end: int) -> int:
    total = 0
    for file in files:
        # Without known bounds, all rows of a file may be of these offsets.
        file_end = end if file.offset_max == OFFSET_MAX else file.offset_max + 1
        shared = min(end, file_end) - max(begin, file.offset_min)
        if shared > 0:
            total += ROW_BYTES * file.row_count * shared // (file_end - file.offset_min)
    return total


def lake_range_rows(
    table: Table, source: SourcePartition, begin: int, end: int
) -> list[LakeRangeRows]:
    """Split the rows of these offsets into parts for tasks."""
    groups: list[list[TableFile]] = []
    for file in files_of_range(table, source, begin, end):
        if not groups or sum(f.size_bytes for f in groups[-1]) + file.size_bytes > TASK_BYTES:
            groups.append([])
        groups[-1].append(file)
    return [
        LakeRangeRows(
            source=source,
            begin=begin,
            end=end,
            paths=tuple(file.location for file in group),
            properties=dict(table.io.properties),
        )
        for group in groups
    ]


def _read_file(stream: object, part: LakeRangeRows) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(stream) as file:
        for batch in file.iter_batches(batch_size=ROWS_MAX):
            rows = as_table(batch, part.source.table)
            offsets = rows.column("_offset")
            is_in_range = pc.and_(
                pc.equal(rows.column("_log_partition"), part.source.partition),
                pc.and_(pc.greater_equal(offsets, part.begin), pc.less(offsets, part.end)),
            )
            rows = rows.filter(is_in_range)
            if rows.num_rows:
                yield rows


def as_table(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """Return rows of a file with our columns; those that it lacks are null."""
    indices = {
        int(field.metadata[FIELD_ID]): index
        for index, field in enumerate(batch.schema)
        if field.metadata and FIELD_ID in field.metadata
    }
    schema = TABLES[table]
    columns = []
    for field in schema:
        index = indices.get(FIELD_IDS[table][field.name])
        if index is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(batch.column(index).cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
