"""StagedWriter: rows of loaded files, durable in a local file, before a keyed table takes them.

    Arrow IPC stream: schema, batches, end

Each batch is a portion that the table takes at a time. Rows of several files share batches, but a
file whose load fails leaves nothing: what was written of it is cut off again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from frazil.disk import File, RealDisk, is_full
from frazil.errors import Overloaded, Unavailable
from frazil.lake import LoadedFile
from frazil.tables import staged_batches

END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Of an Arrow IPC stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTarget:
    """Where a task writes rows."""

    root: str
    """The data folder."""
    folder: str
    """In it; exists."""
    schema: pa.Schema
    portion_bytes: int

    def writer(self, name: str) -> StagedWriter:
        return StagedWriter(self, name)


class StagedWriter:
    """Owned by one task. What it wrote is durable after `finish`."""

    def __init__(self, target: StagedTarget, name: str) -> None:
        """`name` is unique to each attempt of a task."""
        self._target = target
        self._disk = RealDisk(target.root)
        self._name = f"{name}.arrow"
        self._file: File | None = None
        self._size = 0
        self._row_count = 0
        self._settled: list[pa.Table] = []
        self._current: list[pa.Table] = []
        self._mark: tuple[int, int] | None = None
        """Size and rows before the current file, if rows of it were written."""

    def write(self, rows: pa.Table) -> None:
        """Add rows of the current file."""
        if rows.num_rows:
            self._current.append(rows)
        if _bytes(self._current) >= self._target.portion_bytes:
            if self._mark is None:
                self._write_settled()
                self._mark = self._size, self._row_count
            self._write(self._current)
            self._current = []

    def end_file(self) -> None:
        """Keep the rows of the current file."""
        self._settled += self._current
        self._current, self._mark = [], None
        if _bytes(self._settled) >= self._target.portion_bytes:
            self._write_settled()

    def drop_file(self) -> None:
        """Forget the rows of the current file."""
        self._current = []
        if self._mark is not None:
            self._size, self._row_count = self._mark
            self._opened().truncate(self._size)
            self._mark = None

    def finish(self) -> tuple[LoadedFile, ...]:
        """Write the rest, and return the file, if there are rows."""
        self._write_settled()
        if not self._row_count:
            self.discard()
            return ()
        self._append(END)
        self._opened().sync()
        self._opened().close()
        self._disk.sync_directory(self._target.folder)
        return (
            LoadedFile(
                path=self._name,
                partition=(),
                row_count=self._row_count,
                size_bytes=self._size,
                metrics={},
            ),
        )

    def discard(self) -> None:
        """Delete the file."""
        if self._file is not None:
            self._file.close()
            with suppress(OSError):  # the folder is removed when the load has ended
                self._disk.unlink(f"{self._target.folder}/{self._name}")

    def _write_settled(self) -> None:
        self._write(self._settled)
        self._settled = []

    def _write(self, tables: list[pa.Table]) -> None:
        if not tables:
            return
        for rows in pa.concat_tables(tables).combine_chunks().to_batches():
            for portion in _portions(rows, self._target.portion_bytes):
                self._append(portion.serialize().to_pybytes())
                self._row_count += portion.num_rows

    def _append(self, data: bytes) -> None:
        try:
            self._opened().append([data])
        except OSError as error:
            if is_full(error):
                raise Overloaded("the disk is full: nothing was loaded; free disk space") from error
            raise
        self._size += len(data)

    def _opened(self) -> File:
        if self._file is None:
            path = f"{self._target.folder}/{self._name}"
            try:
                self._file = self._disk.open(path, "create")
            except FileNotFoundError:
                raise Unavailable(
                    f"the folder of {path} is gone: the table was dropped, or Spark runs on other "
                    "machines, where keyed tables cannot be loaded"
                ) from None
            head = self._target.schema.serialize().to_pybytes()
            self._file.append([head])
            self._size = len(head)
        return self._file


def _portions(rows: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Yield rows in portions, halved until they are small enough or one row."""
    if rows.nbytes <= bytes_max or rows.num_rows <= 1:
        if rows.num_rows:
            yield rows
        return
    half = rows.num_rows // 2
    yield from _portions(rows.slice(0, half), bytes_max)
    yield from _portions(rows.slice(half), bytes_max)


def staged_rows(target: StagedTarget, files: Iterable[LoadedFile]) -> pa.Table:
    """Return the rows of these files, which are mapped."""
    disk = RealDisk(target.root)
    batches = [
        batch for file in files for batch in staged_batches(disk, f"{target.folder}/{file.path}")
    ]
    return pa.Table.from_batches(batches, target.schema)


def _bytes(tables: list[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)
