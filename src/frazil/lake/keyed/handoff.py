"""Rows and deaths of one round, in files that tasks map: nothing of it goes through Spark.

    <folder>/rows.arrow    Arrow IPC file: row versions, `_offset`, `_row`, `_log_partition`
    <folder>/dead.npy      two columns: partition and row number of each death, ascending

Local files of the table are not handed over themselves: the newest rows are in none yet, and its
own compaction may remove one while a task reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from frazil.disk import RealDisk
from frazil.errors import Conflict
from frazil.lake.keyed.definition import LOG_PARTITION
from frazil.lake.keyed.source import Longs, PartitionChanges
from frazil.model import MiB

BATCH_BYTES = 8 * MiB
"""About how large a batch in the file is: the unit in which rows are given to tasks."""
ROWS_FILE, DEAD_FILE = "rows.arrow", "dead.npy"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRef:
    """Batches of a file, for one task."""

    path: str
    begin: int
    end: int
    """Numbers of batches."""
    row_count: int
    byte_count: int

    def read(self) -> list[pa.RecordBatch]:
        """Map the batches. Raises `Conflict` if the file is gone: another round has begun."""
        try:
            with pa.memory_map(self.path) as file, pa.ipc.open_file(file) as reader:
                return [reader.get_batch(number) for number in range(self.begin, self.end)]
        except FileNotFoundError as error:
            raise Conflict(f"{error}; plan again") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRef:
    """All deaths of a round."""

    path: str

    def read(self) -> tuple[Longs, Longs]:
        """Return partitions and row numbers, sorted by both."""
        try:
            both = np.load(self.path, mmap_mode="r")
        except FileNotFoundError as error:
            raise Conflict(f"{error}; plan again") from error
        return both[0], both[1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Handoff:
    """What the tasks of one round get."""

    rows: tuple[RowsRef, ...]
    dead: DeadRef
    partitions: Longs
    dead_rows: Longs
    """Partition and row number of each death, sorted by both."""


def write_handoff(folder: Path, changes: Sequence[PartitionChanges], bytes_max: int) -> Handoff:
    """Write the changes of a round; at most about `bytes_max` of rows per task."""
    clear(folder)
    changes = sorted(changes, key=lambda each: each.partition)
    rows = _write_rows(str(folder / ROWS_FILE), _numbered(changes), bytes_max)
    partitions: Longs = np.repeat(
        np.array([each.partition for each in changes], np.int64),
        np.array([len(each.dead) for each in changes], np.int64),
    )
    dead_rows: Longs = np.concatenate([np.empty(0, np.int64), *(each.dead for each in changes)])
    np.save(folder / DEAD_FILE, np.stack([partitions, dead_rows]))
    return Handoff(
        rows=rows,
        dead=DeadRef(path=str(folder / DEAD_FILE)),
        partitions=partitions,
        dead_rows=dead_rows,
    )


def clear(folder: Path) -> None:
    """Remove what an earlier round has left."""
    disk = RealDisk(folder)
    for name in disk.list(""):
        disk.unlink(name)


def _numbered(changes: Iterable[PartitionChanges]) -> Iterable[pa.RecordBatch]:
    for each in changes:
        for batch in each.batches:
            if batch.num_rows:
                number = pa.array(np.full(batch.num_rows, each.partition, np.int32))
                yield batch.append_column(LOG_PARTITION, number)


def _write_rows(
    path: str, batches: Iterable[pa.RecordBatch], bytes_max: int
) -> tuple[RowsRef, ...]:
    refs: list[RowsRef] = []
    begin = count = rows = size = 0

    def ref() -> RowsRef:
        return RowsRef(path=path, begin=begin, end=count, row_count=rows, byte_count=size)

    writer: pa.ipc.RecordBatchFileWriter | None = None
    try:
        for batch in batches:
            if writer is None:
                writer = pa.ipc.new_file(path, batch.schema)
            step = max(1, batch.num_rows * BATCH_BYTES // max(1, batch.nbytes))
            for first in range(0, batch.num_rows, step):
                part = batch.slice(first, step)
                if rows and size + part.nbytes > bytes_max:
                    refs.append(ref())
                    begin, rows, size = count, 0, 0
                writer.write_batch(part)
                count, rows, size = count + 1, rows + part.num_rows, size + part.nbytes
    finally:
        if writer is not None:
            writer.close()
    if rows:
        refs.append(ref())
    return tuple(refs)
