"""TableWriter: write rows as Parquet data files of one day each, sorted and durable.

1. sort    by day, then by the table's order; equal rows keep their order
2. write   a file per day, row group by row group, with field ids, statistics, page index, page
           checksums, and bloom filters on ids
3. sync    each file, then each folder with a new file
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
from frazil.lake.files.sort import combine, compact, date_of, days_of
from frazil.lake.tables.properties import PARTITION_FIELD
from frazil.model import MiB

GROUP_ROWS_MAX = 128 * 1024
"""Rows per row group: enough to compress well, few enough to prune."""
GROUP_BYTES_MAX = 64 * MiB
"""Size of a row group in memory. Readers and this writer hold a whole row group."""
BLOOM_FALSE_POSITIVES = 0.01
COMPRESSION_LEVEL = 1
"""zstd level. Low, because compaction rewrites the files later with a higher one."""
DATA_FOLDER = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A durable data file with everything that a commit needs."""

    path: str
    """Relative to the table's location."""
    day: int | None
    """Days since 1970; the same for all rows. None in a table without days."""
    row_count: int
    size_bytes: int
    metrics: FileMetrics


class TableWriter:
    """Writes files of one table below its location. Owned by one task.

    Files may be committed only after `sync` returns. If the task fails, `discard` deletes them.
    """

    def __init__(
        self, disk: FileStore, layout: ParquetLayout, name: str, *, level: int = COMPRESSION_LEVEL
    ) -> None:
        """`name` is the prefix of file names, unique to each attempt of a task. `level` is the
        zstd level."""
        self._disk = disk
        self._level = level
        self._layout = layout
        self._name = name
        self._folders: set[str] = set()
        self._paths: list[str] = []
        self._written: list[WrittenFile] = []

    def write(self, batches: list[pa.RecordBatch], size_bytes: int) -> None:
        """Write rows to one file per day.

        Empties the list of batches, so that their memory can be freed after copying.
        `size_bytes` is their size without dictionary encoding.
        """
        rows = combine(batches, self._layout)
        rows_max = _group_rows(rows.num_rows, size_bytes)
        for day, indices in days_of(rows, self._layout.order):
            # All groups of a file get about the same size.
            step = -(-len(indices) // -(-len(indices) // rows_max))
            groups = (
                rows.take(indices.slice(begin, step)) for begin in range(0, len(indices), step)
            )
            self.write_sorted(day, groups, step)

    def sync(self) -> list[WrittenFile]:
        """Sync the folders and return the files, which are now durable."""
        for folder in sorted(self._folders):
            self._disk.sync_directory(folder)
        return self._written

    def discard(self) -> None:
        """Delete all files, as far as possible."""
        for path in self._paths:
            # A file that cannot be deleted becomes an orphan, as after a crash.
            with suppress(OSError):
                self._disk.unlink(path)

    def write_sorted(self, day: int | None, groups: Iterable[pa.Table], group_rows: int) -> None:
        """Write one file of sorted rows of one day, if the table has days. Each table becomes a row
        group of about `group_rows` rows."""
        path = f"{self._folder(day)}/{self._name}-{len(self._paths):05d}.parquet"
        nan_counts: dict[int, int] = {}
        with closing(self._disk.open(path, "create")) as file:
            self._paths.append(path)
            sink = ArrowSink(file)
            with _writer(sink, self._layout, group_rows, self._level) as writer:
                for group in groups:
                    _count_nan(group, self._layout, nan_counts)
                    writer.write_table(_renamed(compact(group), self._layout), group.num_rows)
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

    def _folder(self, day: int | None) -> str:
        """Return the folder of a day, after creating it durably on first use."""
        folder = DATA_FOLDER
        if day is not None:
            folder = f"{DATA_FOLDER}/{PARTITION_FIELD}={date_of(day)}"
        if folder not in self._folders:
            make_directories(self._disk, folder)
            self._folders.add(folder)
        return folder


def _group_rows(rows: int, size_bytes: int) -> int:
    """Return how many rows of this width fit in a row group."""
    return max(1, min(GROUP_ROWS_MAX, rows * GROUP_BYTES_MAX // max(1, size_bytes)))


def _renamed(rows: pa.Table, layout: ParquetLayout) -> pa.Table:
    """Return the rows with Iceberg's names and ids."""
    return rows.cast(layout.numbered_schema)


def _count_nan(rows: pa.Table, layout: ParquetLayout, counts: dict[int, int]) -> None:
    for leaf in layout.leaves:
        if pa.types.is_floating(leaf.kind) and not leaf.is_nested:
            count = pc.sum(pc.is_nan(rows[leaf.path])).as_py() or 0
            counts[leaf.field_id] = counts.get(leaf.field_id, 0) + count


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
        # Bounds of nested values prune nothing.
        write_statistics=[leaf.path for leaf in layout.leaves if not leaf.is_nested],
        write_page_index=True,
        write_page_checksum=True,
        sorting_columns=pq.SortingColumn.from_ordering(layout.schema, order),
        bloom_filter_options={
            path: {"ndv": group_rows, "fpp": BLOOM_FALSE_POSITIVES} for path in layout.bloom
        },
        # Other writers of these tables do not store it, so readers cannot rely on it.
        store_schema=False,
    )
