"""Parquet and ORC: columns with types, read a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import Malformed
from frazil.load.formats.blocks import Block
from frazil.load.formats.typed_cast import cast_rows, check_columns, table_schema

BATCH_ROWS = 16 * 1024


def infer_parquet(stream: IO[bytes]) -> pa.Schema:
    return table_schema(_parquet(stream).schema_arrow)


def read_parquet(
    stream: IO[bytes], schema: pa.Schema, columns: Sequence[str] | None = None
) -> Iterator[Block]:
    """Yield all rows with the types of a table, or only these columns of them, of which the file
    must have one. `Malformed` if any column does not fit."""
    file = _parquet(stream)
    check_columns(file.schema_arrow, schema)
    if columns is not None:
        schema = pa.schema([field for field in schema if field.name in columns])
        columns = [name for name in file.schema_arrow.names if name in columns]
    yield from _blocks(file.iter_batches(BATCH_ROWS, columns=columns), schema)


def infer_orc(stream: IO[bytes]) -> pa.Schema:
    return table_schema(_orc(stream).schema)


def read_orc(stream: IO[bytes], schema: pa.Schema) -> Iterator[Block]:
    """Yield all rows with the types of a table. `Malformed` if the columns do not fit."""
    file = _orc(stream)
    check_columns(file.schema, schema)
    stripes = (file.read_stripe(index) for index in range(file.nstripes))
    yield from _blocks((part for stripe in stripes for part in _sliced(stripe)), schema)


def _blocks(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[Block]:
    row = 1
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield cast_rows(columns, batch.num_rows, schema, row)
        row += batch.num_rows


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for begin in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(begin, BATCH_ROWS)


def _parquet(stream: IO[bytes]) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(stream, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise Malformed(f"it is not a Parquet file: {error}") from error


def _orc(stream: IO[bytes]) -> Any:
    from pyarrow import orc

    try:
        return orc.ORCFile(pa.PythonFile(stream, mode="r"))
    except (pa.ArrowException, OSError) as error:
        raise Malformed(f"it is not an ORC file: {error}") from error
