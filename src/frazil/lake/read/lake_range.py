"""Rows of a table by their offsets, from its data files: for what the log does not have any more.

The driver plans which files may hold the offsets, by their bounds. A task reads them without a
catalog, a few rows at a time. The files are those of the appender or of a compaction; columns are
found by their ids, as Iceberg has it.
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
"""Of data files, for one task. A file is never cut."""
ROWS_MAX = 8192
"""Read at once: a few megabytes."""
ROW_BYTES = 256
"""What a row takes in the log, about: so that one limit serves for log and lake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRangeRows:
    """The rows of the offsets from `begin` up to `end` that are in these files."""

    source: SourcePartition
    begin: int
    end: int
    paths: tuple[str, ...]
    properties: Mapping[str, str]
    """Of whoever reads files: where they are, and how to get there."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """All of them, in no order. `Conflict` when a file is not there any more."""
        from pyiceberg.io import load_file_io

        for path in self.paths:
            io = load_file_io(dict(self.properties), path)
            try:
                with io.new_input(path).open() as stream:
                    yield from _read_file(stream, self)
            except FileNotFoundError:
                raise Conflict(
                    f"{path} is not there any more: the table was compacted, and its old snapshots "
                    "expired, since this was planned; plan again"
                ) from None


def cold_files(table: Table, source: SourcePartition, begin: int, end: int) -> list[TableFile]:
    """The files of a table that may hold rows of these offsets."""
    found = [file for file in files_now(table) if file.may_hold(source.partition, begin, end)]
    return sorted(found, key=lambda file: (file.offset_min, file.location))


def reach_cold(files: Sequence[TableFile], begin: int, end: int, bytes_max: int) -> int:
    """How far rows of about `bytes_max` bytes go from `begin` on: at least one offset further."""
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
        # Of a file without bounds that are known, all rows may be of these offsets.
        file_end = end if file.offset_max == OFFSET_MAX else file.offset_max + 1
        shared = min(end, file_end) - max(begin, file.offset_min)
        if shared > 0:
            total += ROW_BYTES * file.row_count * shared // (file_end - file.offset_min)
    return total


def cold_rows(table: Table, source: SourcePartition, begin: int, end: int) -> list[LakeRangeRows]:
    """Rows of these offsets, in parts for tasks."""
    groups: list[list[TableFile]] = []
    for file in cold_files(table, source, begin, end):
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


def _read_file(stream: object, wanted: LakeRangeRows) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(stream) as file:
        for batch in file.iter_batches(batch_size=ROWS_MAX):
            rows = as_table(batch, wanted.source.table)
            offsets = rows.column("_offset")
            is_wanted = pc.and_(
                pc.equal(rows.column("_log_partition"), wanted.source.partition),
                pc.and_(pc.greater_equal(offsets, wanted.begin), pc.less(offsets, wanted.end)),
            )
            kept = rows.filter(is_wanted)
            if kept.num_rows:
                yield kept


def as_table(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """Rows of a file with the columns of the model; those that it does not have are null."""
    places = {
        int(field.metadata[FIELD_ID]): place
        for place, field in enumerate(batch.schema)
        if field.metadata and FIELD_ID in field.metadata
    }
    schema = TABLES[table]
    columns = []
    for field in schema:
        place = places.get(FIELD_IDS[table][field.name])
        if place is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(batch.column(place).cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
