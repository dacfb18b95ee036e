"""Parquet files of a table's rows: one day each, sorted, durable before anybody is told.

1. sort    by day, then by the table's order; rows that are alike keep their order
2. write   a file for each day, row group by row group, with field ids, statistics, page index,
           checksums of pages, and bloom filters on ids
3. sync    each file, then each folder that has a new name in it
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.disk import make_directories
from frazil.lake.files.column_stats import FileMetrics, metrics_of
from frazil.lake.files.object_store import FileStore
from frazil.lake.files.parquet_schema import ParquetLayout
from frazil.lake.files.sink import ArrowSink
from frazil.lake.files.sort import combined, date_of, days_of, picked
from frazil.lake.tables.properties import PARTITION_FIELD
from frazil.model import MiB

GROUP_ROWS_MAX = 128 * 1024
"""Rows of a row group: enough to compress well, few enough to skip many of them."""
GROUP_BYTES_MAX = 64 * MiB
"""In memory. A row group is what readers, and we, hold at once."""
BLOOM_FALSE_POSITIVES = 0.01
COMPRESSION_LEVEL = 1
"""Of zstd. Compaction writes the files anew, and may take its time."""
DATA_FOLDER = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A durable data file, and all that a commit has to know of it."""

    path: str
    """Below the table's location."""
    day: int
    """Days since 1970, the same for all its rows."""
    row_count: int
    size_bytes: int
    metrics: FileMetrics


class TableWriter:
    """Writes files of one table below its location. Belongs to one task.

    Until `sync` returns, nothing that it has written may be committed. When the task fails,
    `discard` takes everything away: nobody has been told of it.
    """

    def __init__(
        self, disk: FileStore, layout: ParquetLayout, name: str, *, level: int = COMPRESSION_LEVEL
    ) -> None:
        """`name` begins the names of the files; no two tasks, nor two tries of one, share it.
        `level` is that of the compression."""
        self._disk = disk
        self._level = level
        self._layout = layout
        self._name = name
        self._folders: set[str] = set()
        self._paths: list[str] = []
        self._written: list[WrittenFile] = []

    def write(self, batches: list[pa.RecordBatch], size_bytes: int) -> None:
        """Write rows, all of which are in memory. One file for each day there is.

        Takes the batches out of the list, so that their memory may go when it is copied.
        `size_bytes` is what they take if no number stands for a text.
        """
        rows = combined(batches, self._layout)
        fitting = _group_rows(rows.num_rows, size_bytes)
        for day, places in days_of(rows, self._layout.order):
            # All groups of a file are about as large.
            step = -(-len(places) // -(-len(places) // fitting))
            groups = (
                picked(rows, places.slice(begin, step)) for begin in range(0, len(places), step)
            )
            self.write_sorted(day, groups, step)

    def sync(self) -> list[WrittenFile]:
        """Make the names of all files durable, too. These are the files."""
        for folder in sorted(self._folders):
            self._disk.sync_directory(folder)
        return self._written

    def discard(self) -> None:
        """Take all files away, as far as the disk lets us."""
        for path in self._paths:
            # What cannot be removed is an orphan, as after a kill, and is removed as such.
            with suppress(OSError):
                self._disk.unlink(path)

    def write_sorted(self, day: int, groups: Iterable[pa.Table], group_rows: int) -> None:
        """Write a file of rows of one day that are in order. Each table becomes a row group; most
        of them have about `group_rows` rows."""
        path = f"{self._folder(day)}/{self._name}-{len(self._paths):05d}.parquet"
        nan_counts: dict[int, int] = {}
        with closing(self._disk.open(path, "create")) as file:
            self._paths.append(path)
            sink = ArrowSink(file)
            with _writer(sink, self._layout, group_rows, self._level) as writer:
                for group in groups:
                    _count_nan(group, self._layout, nan_counts)
                    writer.write_table(_renamed(group, self._layout), group.num_rows)
            sink.drain()
            file.sync()
        footer = writer.writer.metadata
        written = WrittenFile(
            path=path,
            day=day,
            row_count=footer.num_rows,
            size_bytes=sink.tell(),
            metrics=metrics_of(footer, self._layout, nan_counts),
        )
        self._written.append(written)

    def _folder(self, day: int) -> str:
        """The folder of a day. It is made once, durably, with those above it."""
        folder = f"{DATA_FOLDER}/{PARTITION_FIELD}={date_of(day)}"
        if folder not in self._folders:
            make_directories(self._disk, folder)
            self._folders.add(folder)
        return folder


def _group_rows(rows: int, size_bytes: int) -> int:
    """How many rows of this width a row group holds."""
    return max(1, min(GROUP_ROWS_MAX, rows * GROUP_BYTES_MAX // max(1, size_bytes)))


def _renamed(rows: pa.Table, layout: ParquetLayout) -> pa.Table:
    """The same rows under Iceberg's names and ids."""
    return rows.cast(layout.numbered_schema)


def _count_nan(rows: pa.Table, layout: ParquetLayout, counts: dict[int, int]) -> None:
    for leaf in layout.leaves:
        if pa.types.is_floating(leaf.kind) and not leaf.is_nested:
            found = pc.sum(pc.is_nan(rows[leaf.path])).as_py() or 0
            counts[leaf.field_id] = counts.get(leaf.field_id, 0) + found


def _writer(
    sink: ArrowSink, layout: ParquetLayout, group_rows: int, level: int
) -> pq.ParquetWriter:
    order = [(name, "ascending") for name in layout.order]
    return pq.ParquetWriter(
        sink,
        layout.numbered_schema,
        compression="zstd",
        compression_level=level,
        use_dictionary=layout.with_dictionary,
        # Nobody looks for a value in any map or list by its least and greatest one.
        write_statistics=[leaf.path for leaf in layout.leaves if not leaf.is_nested],
        write_page_index=True,
        write_page_checksum=True,
        sorting_columns=pq.SortingColumn.from_ordering(layout.schema, order),
        bloom_filter_options={
            path: {"ndv": group_rows, "fpp": BLOOM_FALSE_POSITIVES} for path in layout.bloom
        },
        # Other writers of these tables do not store it, so readers cannot count on it.
        store_schema=False,
    )
