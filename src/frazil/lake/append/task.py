"""One appender task: turns a slice of the log into Parquet files.

1. read     the records of the slice, in batches
2. decode   to rows and dead letters; records of topics without a signal are stored as rows
3. write    when enough rows are in memory, and at the end
4. sync     files and folders, before the result is returned

If a step fails, the files written so far are deleted. A killed task leaves orphan files, which no
table references.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.disk import is_full
from frazil.errors import Overloaded
from frazil.lake.append.dead_letters import DEAD_LETTERS
from frazil.lake.append.slice import RECORDS, Slice, SourcePartition, records_of, request_of
from frazil.lake.files.object_store import FileStore, open_store
from frazil.lake.files.parquet_schema import ParquetLayout, file_layout_of
from frazil.lake.files.writer import TableWriter, WrittenFile
from frazil.lake.tables.promoted import PromotedField
from frazil.lake.tables.record_rows import columns_of, rows_of
from frazil.log import Record
from frazil.model import MiB, Promotions, arrow
from frazil.model.arrow import Decode, Decoded, ExportRequest, dead_letter_rows, decode_prefix
from frazil.tracing import OWN_HEADER

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

ROWS_BYTES_MAX = 256 * MiB
"""Rows buffered before a write. A task uses about twice as much memory, plus up to 1 GiB for one
call of the decoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTarget:
    """Where a task writes: the URIs of both tables."""

    rows_location: str
    dead_location: str
    name: str
    """Prefix of the file names, unique per task and attempt."""
    promoted: tuple[PromotedField, ...] = ()
    """Promoted columns of the table of the rows."""
    io: FileIO | None = field(default=None, repr=False)
    """Reads and writes the URIs; None for local folders. May hold passwords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSlice:
    """The result of a task: durable files with all rows of the offsets [begin, end)."""

    source: SourcePartition
    begin: int
    end: int
    files: tuple[WrittenFile, ...]
    dead_files: tuple[WrittenFile, ...]
    own_count: int = 0
    """Records that carry a node's own spans."""

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.files)


def run_slice(
    slice: Slice, target: TaskTarget, *, rows_bytes_max: int = ROWS_BYTES_MAX
) -> WrittenSlice:
    """Run a task against the tables' storage."""
    return write_slice(
        slice,
        slice.origin.read(),
        open_store(target.rows_location, target.io),
        open_store(target.dead_location, target.io),
        target.name,
        promoted=target.promoted,
        decode=partial(
            arrow.decode_dictionary, promotions=promotions_in(slice.source, target.promoted)
        ),
        rows_bytes_max=rows_bytes_max,
    )


def write_slice(
    slice: Slice,
    batches: Iterable[list[Record]],
    rows_disk: FileStore,
    dead_disk: FileStore,
    name: str,
    *,
    decode: Decode,
    rows_bytes_max: int,
    promoted: tuple[PromotedField, ...] = (),
) -> WrittenSlice:
    """Run a task over the records in `batches`. What `decode` returns has the promoted columns.

    Raises `Conflict` or `Corrupt` from reading, and `Overloaded` when a disk is full.
    """
    source = slice.source
    schema = columns_of(source.table, promotions_in(source, promoted))
    own_count = 0
    with ExitStack() as undo:
        layout = file_layout_of(source.table, promoted)
        rows = _RowBuffer(rows_disk, layout, name, rows_bytes_max, undo)
        dead = _RowBuffer(dead_disk, file_layout_of(DEAD_LETTERS), name, rows_bytes_max, undo)
        try:
            for records in records_of(slice, batches):
                own_count += sum(_is_own(record) for record in records)
                if source.signal == RECORDS:
                    rows.add(rows_of(records, source.partition))
                    continue
                requests = [request_of(record, source.partition) for record in records]
                for decoded in decode_all(decode, source.signal, requests, schema):
                    rows.add(decoded.batch, decoded.saved_bytes)
                    dead.add(
                        dead_letter_rows(source.topic, decoded.dead, requests, arrow.DEAD_LETTERS)
                    )
            files, dead_files = rows.finish(), dead.finish()
        except OSError as error:
            if not is_full(error):
                raise
            raise Overloaded(
                f"the disk is full: offsets {slice.begin} up to {slice.end} of {source.topic}/"
                f"{source.partition} were not written to {source.table}; free disk space"
            ) from error
        undo.pop_all()
    return WrittenSlice(
        source=source,
        begin=slice.begin,
        end=slice.end,
        files=tuple(files),
        dead_files=tuple(dead_files),
        own_count=own_count,
    )


def _is_own(record: Record) -> bool:
    return any(name == OWN_HEADER for name, _ in record.headers)


def promotions_in(source: SourcePartition, promoted: Sequence[PromotedField]) -> Promotions:
    """Return the promoted columns of the rows of a source."""
    return {source.table: tuple(each.column for each in promoted)}


def decode_all(
    decode: Decode, signal: str, requests: list[ExportRequest], schema: pa.Schema
) -> Iterator[Decoded]:
    """Yield the rows and dead letters of all requests, in order."""
    begin, count = 0, len(requests)
    while begin < len(requests):
        # Never more than the last call decoded: a larger batch would fail again.
        batch = requests[begin : begin + count]
        decoded, count = decode_prefix(decode, signal, batch, schema)
        yield decoded
        begin += count


class _RowBuffer:
    """Rows of one table, buffered until there are enough for a file."""

    def __init__(
        self, disk: FileStore, layout: ParquetLayout, name: str, bytes_max: int, undo: ExitStack
    ) -> None:
        self._files = TableWriter(disk, layout, name)
        self._bytes_max = bytes_max
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        undo.callback(self._files.discard)

    def add(self, batch: pa.RecordBatch, saved_bytes: int = 0) -> None:
        """Add rows. `saved_bytes` is what dictionary encoding saves; Parquet may not save it."""
        total_bytes = batch.nbytes + saved_bytes
        for part in split(batch, total_bytes, self._bytes_max):
            size = total_bytes * part.num_rows // batch.num_rows
            if self._batches and self._bytes + size > self._bytes_max:
                self._write()
            self._batches.append(part)
            self._bytes += size

    def finish(self) -> list[WrittenFile]:
        self._write()
        return self._files.sync()

    def _write(self) -> None:
        if self._batches:
            self._files.write(self._batches, self._bytes)
            self._bytes = 0


def split(batch: pa.RecordBatch, size_bytes: int, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Split a batch of `size_bytes` into parts of about `bytes_max`; none if it has no rows."""
    count = -(-size_bytes // bytes_max)
    step = max(1, -(-batch.num_rows // max(1, count)))
    for begin in range(0, batch.num_rows, step):
        yield batch.slice(begin, step)
