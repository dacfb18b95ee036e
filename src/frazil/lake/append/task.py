"""What one task of the appender does: a slice of the log becomes Parquet files.

1. read     the slice's requests, some at a time
2. decode   to rows, and dead letters; records of other topics are rows as they are
3. write    whenever enough rows are in memory, and at the end
4. sync     files and folders; only then does anybody hear of them

When any of that fails, no file counts, and those written are taken away. A task that is killed
leaves files behind that no table names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.disk import is_full
from frazil.errors import Overloaded
from frazil.lake.append.slice import RECORDS, Slice, SourcePartition, records_of, requests_of
from frazil.lake.files.object_store import FileStore, open_store
from frazil.lake.files.parquet_schema import file_layout_of
from frazil.lake.files.writer import TableWriter, WrittenFile
from frazil.lake.tables.record_rows import rows_of
from frazil.log import Record
from frazil.model import MiB, Signal, arrow
from frazil.model.arrow import Decode, Decoded, ExportRequest, dead_letter_rows, decode_prefix

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

ROWS_BYTES_MAX = 256 * MiB
"""Rows in memory until they are written. A task takes about twice as much, besides what one call of
the decoder needs, which is 1 GiB at most."""
DEAD_LETTERS = "dead_letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTarget:
    """Where a task writes to: the locations of both tables, as URIs."""

    rows_location: str
    dead_location: str
    name: str
    """Begins the names of its files. No two tasks share it, nor two tries of one task."""
    io: FileIO | None = field(default=None, repr=False)
    """What reaches them. May hold passwords. Folders of this machine need none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSlice:
    """All rows of the offsets from `begin` up to `end` of a partition, durable in these files."""

    source: SourcePartition
    begin: int
    end: int
    files: tuple[WrittenFile, ...]
    dead_files: tuple[WrittenFile, ...]

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.files)


def run_slice(
    slice: Slice, target: TaskTarget, *, rows_bytes_max: int = ROWS_BYTES_MAX
) -> WrittenSlice:
    """Do a task in the folders or buckets of the tables."""
    return write_slice(
        slice,
        slice.origin.read(),
        open_store(target.rows_location, target.io),
        open_store(target.dead_location, target.io),
        target.name,
        decode=arrow.decode_dictionary,
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
) -> WrittenSlice:
    """Do a task. `Conflict` and `Corrupt` as reading has them; `Overloaded` when a disk is full."""
    source = slice.source
    with ExitStack() as undo:
        rows = _Gathered(rows_disk, source.table, name, rows_bytes_max, undo)
        dead = _Gathered(dead_disk, DEAD_LETTERS, name, rows_bytes_max, undo)
        try:
            if source.signal == RECORDS:
                for records in records_of(slice, batches):
                    rows.add(rows_of(records, source.partition))
            else:
                for requests in requests_of(slice, batches):
                    for decoded in decode_all(decode, source.signal, requests):
                        rows.add(decoded.batch, decoded.saved_bytes)
                        dead.add(
                            dead_letter_rows(
                                source.topic, decoded.dead, requests, arrow.DEAD_LETTERS
                            )
                        )
            files, dead_files = rows.finish(), dead.finish()
        except OSError as error:
            if not is_full(error):
                raise
            raise Overloaded(
                f"the disk is full: offsets {slice.begin} up to {slice.end} of {source.topic}/"
                f"{source.partition} were not written to {source.table}; free room on it"
            ) from error
        undo.pop_all()
    return WrittenSlice(
        source=source,
        begin=slice.begin,
        end=slice.end,
        files=tuple(files),
        dead_files=tuple(dead_files),
    )


def decode_all(decode: Decode, signal: str, requests: list[ExportRequest]) -> Iterator[Decoded]:
    """Rows and dead letters of all these requests, in order, in as many parts as it takes."""
    begin, count = 0, len(requests)
    while begin < len(requests):
        # Not more at once than the last time: what failed before will fail again.
        some = requests[begin : begin + count]
        decoded, count = decode_prefix(decode, signal, some, arrow.TABLES[Signal(signal).table])
        yield decoded
        begin += count


class _Gathered:
    """Rows of one table that wait in memory until there are enough of them for a file."""

    def __init__(
        self, disk: FileStore, table: str, name: str, bytes_max: int, undo: ExitStack
    ) -> None:
        self._files = TableWriter(disk, file_layout_of(table), name)
        self._bytes_max = bytes_max
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        undo.callback(self._files.discard)

    def add(self, batch: pa.RecordBatch, saved_bytes: int = 0) -> None:
        """Numbers count as the texts they stand for: Parquet may have to write those."""
        whole = batch.nbytes + saved_bytes
        for part in split(batch, whole, self._bytes_max):
            size = whole * part.num_rows // batch.num_rows
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
    """A batch of such a size in parts of about `bytes_max` or less; nothing when it has no rows."""
    count = -(-size_bytes // bytes_max)
    step = max(1, -(-batch.num_rows // max(1, count)))
    for begin in range(0, batch.num_rows, step):
        yield batch.slice(begin, step)
