"""LoadWriter: writes rows of loaded files as Parquet data files, in a task.

Rows of several files share data files, but a file whose load fails leaves nothing: its rows join
the shared ones when it has ended. A file too large for that gets data files of its own.

If the table has a sort order, the rows that are written at a time are sorted, and are a data file
of their own: maintenance merges those that are small.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.disk import is_full, make_directories
from frazil.errors import Overloaded
from frazil.lake.files.object_store import FileStore, NewFile, open_store
from frazil.lake.files.sink import ArrowSink
from frazil.lake.loaded.load_table import LoadTarget, arrow_schema
from frazil.lake.tables.properties import TARGET_BYTES
from frazil.model import MiB

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder

FLUSH_BYTES = 64 * MiB
"""Rows in memory before they are written."""
GROUP_ROWS_MAX = 256 * 1024
OPEN_FILES_MAX = 64
"""Partitions that are written at the same time; more are closed and opened again."""
COMPRESSION_LEVEL = 1
DATA_FOLDER = "data"
BLOOM = "write.parquet.bloom-filter-enabled.column."
"""Table property of a column with a bloom filter."""
BLOOM_FALSE_POSITIVES = 0.01

SortKey = tuple[str, str, str]
"""Column, direction, and place of NULLs, in Arrow's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """A durable data file with everything that a commit needs."""

    path: str
    """Relative to the table's location."""
    partition: tuple[Any, ...]
    row_count: int
    size_bytes: int
    metrics: dict[str, Any]
    sort_order_id: int | None = None
    """The sort order that all of its rows are in; None if they are in none."""


class LoadWriter:
    """Owned by one task. Files may be committed after `finish` returns."""

    def __init__(self, target: LoadTarget, name: str, *, flush_bytes: int = FLUSH_BYTES) -> None:
        """`name` is the prefix of file names, unique to each attempt of a task."""
        self._layout = _Layout(target, name)
        self._flush_bytes = flush_bytes
        self._shared = _DataFiles(self._layout)
        self._own: _DataFiles | None = None
        self._settled: list[pa.Table] = []
        self._current: list[pa.Table] = []
        self._done: list[LoadedFile] = []

    def write(self, rows: pa.Table) -> None:
        """Add rows of the current file."""
        if rows.num_rows:
            self._current.append(rows)
        if _bytes(self._settled) + _bytes(self._current) < self._flush_bytes:
            return
        self._write_settled()
        if _bytes(self._current) >= self._flush_bytes:
            if self._own is None:
                self._own = _DataFiles(self._layout)
            self._own.write(self._current)
            self._current = []

    def end_file(self) -> None:
        """Keep the rows of the current file."""
        if self._own is None:
            self._settled += self._current
        else:
            self._own.write(self._current)
            self._done += self._own.close()
        self._own, self._current = None, []

    def drop_file(self) -> None:
        """Forget the rows of the current file."""
        if self._own is not None:
            self._own.discard()
        self._own, self._current = None, []

    def finish(self) -> tuple[LoadedFile, ...]:
        """Write the rest, and return all files, which are durable."""
        self._write_settled()
        self._done += self._shared.close()
        self._layout.sync()
        return tuple(self._done)

    def discard(self) -> None:
        """Delete all files, as far as possible."""
        self.drop_file()
        self._shared.discard()
        self._layout.unlink(file.path for file in self._done)

    def _write_settled(self) -> None:
        self._shared.write(self._settled)
        self._settled = []


def target_layout(target: LoadTarget) -> tuple[pa.Schema, bool]:
    """Return the columns of data files, with field ids, and whether rows are sorted."""
    layout = _Layout(target, "")
    return layout.schema, layout.order_id is not None


def write_sorted(target: LoadTarget, name: str, rows: pa.Table) -> tuple[LoadedFile, ...]:
    """Write all rows at a time, in the sort order of the table. Returns durable files."""
    layout = _Layout(target, name)
    files = _DataFiles(layout)
    with ExitStack() as undo:
        undo.callback(files.discard)
        files.write([rows])
        written = files.close()
        layout.sync()
        undo.pop_all()
    return tuple(written)


class _Layout:
    """Where and how the files of a task are written."""

    def __init__(self, target: LoadTarget, name: str) -> None:
        from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.table.sorting import SortOrder

        self.iceberg: Schema = Schema.model_validate_json(target.schema_json)
        self.spec: PartitionSpec = PartitionSpec.model_validate_json(target.spec_json)
        self.schema = arrow_schema(self.iceberg)
        self.statistics = compute_statistics_plan(self.iceberg, target.properties)
        self.ids = parquet_path_to_id_mapping(self.iceberg)
        order = SortOrder.model_validate_json(target.order_json)
        self.sort_keys = sort_keys_of(order, self.iceberg)
        self.order_id = order.order_id if self.sort_keys else None
        self.bloom = [
            field.name
            for field in self.iceberg.fields
            if target.properties.get(f"{BLOOM}{field.name}") == "true"
        ]
        self.disk: FileStore = open_store(target.location, target.io)
        self._name = name
        self._count = 0
        self._folders: set[str] = set()

    def next_path(self, folder: str) -> str:
        folder = f"{DATA_FOLDER}/{folder}".rstrip("/")
        if folder not in self._folders:
            make_directories(self.disk, folder)
            self._folders.add(folder)
        self._count += 1
        return f"{folder}/{self._name}-{self._count:05d}.parquet"

    def sync(self) -> None:
        for folder in sorted(self._folders):
            self.disk.sync_directory(folder)

    def unlink(self, paths: Any) -> None:
        for path in paths:
            with suppress(OSError):  # then it is an orphan, as after a crash
                self.disk.unlink(path)


class _DataFiles:
    """Data files that are being written, one per partition."""

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout
        self._open: dict[tuple[Any, ...], _DataFile] = {}
        self._written: list[LoadedFile] = []

    def write(self, tables: list[pa.Table]) -> None:
        """Write rows, and start new files where those are large enough."""
        if not tables:
            return
        rows = pa.concat_tables(tables).cast(self._layout.schema)
        if self._layout.order_id is not None:
            rows = rows.take(sort_indices(rows, self._layout.sort_keys))
        try:
            for key, folder, part in _partitions(rows, self._layout):
                file = self._open.pop(key, None) or _DataFile(self._layout, key, folder)
                self._open[key] = file  # the last one written is the last
                file.write(part)
                if file.size_bytes >= TARGET_BYTES or self._layout.order_id is not None:
                    self._close(key)
                elif len(self._open) > OPEN_FILES_MAX:
                    self._close(next(iter(self._open)))
        except OSError as error:
            if is_full(error):
                raise Overloaded("the disk is full: nothing was loaded; free disk space") from error
            raise

    def close(self) -> list[LoadedFile]:
        for key in list(self._open):
            self._close(key)
        return self._written

    def discard(self) -> None:
        for file in self._open.values():
            file.abandon()
        self._layout.unlink(
            [*(file.path for file in self._written), *(file.path for file in self._open.values())]
        )
        self._open, self._written = {}, []

    def _close(self, key: tuple[Any, ...]) -> None:
        self._written.append(self._open[key].close())
        del self._open[key]


class _DataFile:
    """One Parquet file."""

    def __init__(self, layout: _Layout, partition: tuple[Any, ...], folder: str) -> None:
        self._layout = layout
        self._partition = partition
        self.path = layout.next_path(folder)
        self._file: NewFile = layout.disk.open(self.path, "create")
        self._sink = ArrowSink(self._file)
        self._writer = pq.ParquetWriter(
            self._sink,
            layout.schema,
            compression="zstd",
            compression_level=COMPRESSION_LEVEL,
            write_page_index=True,
            write_page_checksum=True,
            store_schema=False,
            bloom_filter_options={
                name: {"ndv": GROUP_ROWS_MAX, "fpp": BLOOM_FALSE_POSITIVES} for name in layout.bloom
            },
        )

    @property
    def size_bytes(self) -> int:
        return self._sink.tell()

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, GROUP_ROWS_MAX)

    def close(self) -> LoadedFile:
        from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata

        self._writer.close()
        self._sink.drain()
        self._file.sync()
        self._file.close()
        footer = self._writer.writer.metadata
        statistics = data_file_statistics_from_parquet_metadata(
            footer, self._layout.statistics, self._layout.ids
        )
        return LoadedFile(
            path=self.path,
            partition=self._partition,
            row_count=footer.num_rows,
            size_bytes=self._sink.tell(),
            metrics=statistics.to_serialized_dict(),
            sort_order_id=self._layout.order_id,
        )

    def abandon(self) -> None:
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._file.close()


def _partitions(rows: pa.Table, layout: _Layout) -> list[tuple[tuple[Any, ...], str, pa.Table]]:
    """Return the rows by partition: its values, its folder, and the rows."""
    if not layout.spec.fields:
        return [((), "", rows)]
    from pyiceberg.typedef import Record

    keys: list[list[Any]] = []
    codes = np.zeros(rows.num_rows, np.int64)
    for field in layout.spec.fields:
        source = layout.iceberg.find_field(field.source_id)
        name = layout.iceberg.find_column_name(field.source_id)
        column = _internal(rows.column(name).combine_chunks()).dictionary_encode()
        transform = field.transform.transform(source.field_type)
        values = [transform(value) for value in column.dictionary.to_pylist()]
        distinct = list(dict.fromkeys((*values, None)))
        of_value = np.array([distinct.index(value) for value in (*values, None)], np.int64)
        indices = column.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
        codes = codes * len(distinct) + of_value[indices]
        keys.append(distinct)
    found = []
    for code in np.unique(codes):
        parts, rest = [], int(code)
        for distinct in reversed(keys):
            rest, index = divmod(rest, len(distinct))
            parts.append(distinct[index])
        key = tuple(reversed(parts))
        folder = layout.spec.partition_to_path(Record(*key), layout.iceberg)
        found.append((key, folder, rows.filter(pa.array(codes == code))))
    return found


def sort_keys_of(order: SortOrder, schema: Schema) -> list[SortKey]:
    """Return the columns of a sort order; none if it has transforms or nested fields, by which we
    do not sort."""
    from pyiceberg.table.sorting import NullOrder, SortDirection
    from pyiceberg.transforms import IdentityTransform

    names = {field.field_id: field.name for field in schema.fields}
    if not all(
        isinstance(field.transform, IdentityTransform) and field.source_id in names
        for field in order.fields
    ):
        return []
    return [
        (
            names[field.source_id],
            "ascending" if field.direction == SortDirection.ASC else "descending",
            "at_start" if field.null_order == NullOrder.NULLS_FIRST else "at_end",
        )
        for field in order.fields
    ]


def sort_indices(rows: pa.Table, keys: list[SortKey]) -> pa.Array:
    """Return the order of rows. Rows with equal keys stay in their order."""
    order = pa.array(np.arange(rows.num_rows))
    for name, direction, nulls in reversed(keys):  # the least significant key first
        column = rows.column(name).take(order)
        step = pc.array_sort_indices(column.combine_chunks(), order=direction, null_placement=nulls)
        order = order.take(step)
    return order


def _internal(column: pa.Array) -> pa.Array:
    """Return dates and times as the integers that Iceberg's transforms take."""
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return column.cast(pa.int64())
    return column


def _bytes(tables: list[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)
