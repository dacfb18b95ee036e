"""InputFile: a data file of a table, read from begin to end in the columns of our layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.lake.catalog.own_files import is_own
from frazil.lake.files.parquet_damage import parquet_damage
from frazil.lake.files.parquet_schema import FIELD_ID, ParquetLayout
from frazil.lake.files.writer import GROUP_BYTES_MAX
from frazil.lake.tables.properties import PARTITION_COLUMN
from frazil.model import KiB, PromotedColumn
from frazil.model.arrow import promoted_values

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

BUFFER_BYTES = 64 * KiB
"""Read buffer per column and file."""


class InputFile:
    """A file, read from begin to end."""

    def __init__(self, path: str, io: FileIO, layout: ParquetLayout, opened: ExitStack) -> None:
        self.path = path
        self._layout = layout
        source = opened.enter_context(io.new_input(path).open())
        with parquet_damage(path):
            self._file = pq.ParquetFile(
                source,
                buffer_size=BUFFER_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
            )
        self.row_count: int = self._file.metadata.num_rows
        self._names = _names_by_id(self._file.schema_arrow)
        self.is_known = _is_known(self._file.schema_arrow, layout)
        self._computed = {
            each.column.name: each.column
            for each in layout.promoted
            if each.field_id not in self._names or not is_own(path)
        }
        """Promoted columns that only a file of ours has for certain: computed from the maps."""
        self._waiting: list[pa.RecordBatch] = []
        self._batches: Iterator[pa.RecordBatch] = iter(())

    def keys(self) -> pa.Table:
        """Read the sort columns and the time."""
        columns = list(dict.fromkeys([*self._layout.order, PARTITION_COLUMN]))
        names = [self._names[_id(self._layout.schema.field(name))] for name in columns]
        with parquet_damage(self.path):
            return self._file.read(names).select(names).rename_columns(columns)

    def batches(
        self, bytes_max: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows, or these columns of them, with about `bytes_max` in memory at most."""
        return self._read(bytes_max, columns)

    def begin(self, bytes_max: int) -> None:
        """Start reading rows, with about `bytes_max` in memory at most."""
        self._batches = self._read(bytes_max)

    def take(self, count: int) -> list[pa.RecordBatch]:
        """Return the next `count` rows."""
        taken = []
        while count:
            if not self._waiting:
                self._waiting.append(next(self._batches))
            batch = self._waiting.pop()
            if batch.num_rows > count:
                self._waiting.append(batch.slice(count))
                batch = batch.slice(0, count)
            taken.append(batch)
            count -= batch.num_rows
        return taken

    def _read(
        self, bytes_max: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        schema = self._layout.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        needed = dict.fromkeys(
            [*schema.names, *(each.map_name for each in self._computed_in(schema))]
        )
        ids = [_id(self._layout.schema.field(name)) for name in needed]
        names = [self._names[number] for number in ids if number in self._names]
        for at in range(self._file.num_row_groups):
            # A row group has at most GROUP_BYTES_MAX in memory, which bounds the size of a row.
            rows = self._file.metadata.row_group(at).num_rows
            size = max(1, rows * bytes_max // GROUP_BYTES_MAX)
            with parquet_damage(self.path):
                for batch in self._file.iter_batches(size, row_groups=[at], columns=names):
                    yield self._conformed(batch, schema)

    def _conformed(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Return the batch with these columns of the layout."""
        columns = [self._column(batch, field) for field in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        promoted = self._computed.get(field.name)
        if promoted is not None:
            maps = self._column(batch, self._layout.schema.field(promoted.map_name))
            return promoted_values(maps, promoted)
        name = self._names.get(_id(field))
        if name is None:
            return pa.nulls(batch.num_rows, field.type)
        return batch.column(name).cast(field.type)

    def _computed_in(self, schema: pa.Schema) -> list[PromotedColumn]:
        return [self._computed[name] for name in schema.names if name in self._computed]


def _names_by_id(schema: pa.Schema) -> dict[int, str]:
    """Return field id -> the file's column name; names can change, ids do not."""
    return {_id(field): field.name for field in schema if FIELD_ID in (field.metadata or {})}


def _id(field: pa.Field) -> int:
    return int(field.metadata[FIELD_ID])


def _is_known(schema: pa.Schema, layout: ParquetLayout) -> bool:
    """Return whether the columns can be written in our layout without loss."""
    ours = {_id(field): field for field in layout.schema}
    names = _names_by_id(schema)
    if len(names) != len(schema.names) or not names.keys() <= ours.keys():
        return False
    if any(not field.nullable for number, field in ours.items() if number not in names):
        return False
    return all(_ids_in(schema.field(name)) == _ids_in(ours[i]) for i, name in names.items())


def _ids_in(field: pa.Field) -> tuple[object, ...]:
    """Return the type of a field with the ids of all nested fields."""
    kind = field.type
    if pa.types.is_nested(kind):
        if pa.types.is_map(kind):
            inner = [kind.key_field, kind.item_field]
        else:
            inner = [kind.field(at) for at in range(kind.num_fields)]
        return (_id(field), kind.id, *(_ids_in(each) for each in inner))
    return (_id(field), str(kind))
