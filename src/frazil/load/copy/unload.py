"""COPY INTO a stage: the rows of a query as files.

Files appear as a whole, one after the other. If it fails in between, those that exist are named;
without OVERWRITE, no file is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from frazil.definitions import CopyIntoStage, FileCompression, FileFormat
from frazil.errors import FrazilError, Malformed, Unavailable
from frazil.load.stages.location import checked_path
from frazil.load.stages.stage import Stage
from frazil.load.stages.staged_file import StagedFile
from frazil.model import MiB

FILE_BYTES = 256 * MiB
"""Rows of one file in memory, uncompressed, unless MAX_FILE_BYTES says otherwise."""
CHUNK_ROWS = 16 * 1024
EXTENSIONS = {"parquet": "parquet", "csv": "csv", "ndjson": "ndjson"}
SUFFIXES: dict[FileCompression, str] = {
    "gzip": ".gz",
    "zstd": ".zst",
    "lz4": ".lz4",
    "brotli": ".br",
}
STREAMED = frozenset(SUFFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadResult:
    """The files that were written."""

    files: tuple[StagedFile, ...]
    row_count: int


def unload(
    statement: CopyIntoStage,
    stage: Stage,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    check: Callable[[], None] = lambda: None,
) -> UnloadResult:
    """Write rows to a stage. Calls `check` between batches, which may raise."""
    file_format = statement.file_format or stage.file_format or FileFormat(type="parquet")
    if file_format.type not in EXTENSIONS:
        raise Malformed("rows are written as PARQUET, CSV or NDJSON; set FILE_FORMAT=(TYPE=…)")
    store = stage.open()
    bytes_max = statement.max_file_bytes or FILE_BYTES
    folder = checked_path(statement.target.path.strip("/"))
    prefix = f"{folder}/" if folder else ""
    files: list[StagedFile] = []
    count = 0
    try:
        for index, tables in enumerate(_parts(batches, schema, bytes_max, check)):
            path = f"{prefix}part-{index:05d}.{_extension(file_format)}"
            chunks = _encoded(tables, schema, file_format)
            files.append(store.put(path, chunks, overwrite=statement.overwrite))
            count += sum(table.num_rows for table in tables)
    except FrazilError as error:
        if not files:
            raise
        names = ", ".join(file.path for file in files[:10])
        raise Unavailable(
            f"the unload ended early: {error}. {len(files)} files exist and can be deleted: {names}"
        ) from error
    return UnloadResult(files=tuple(files), row_count=count)


def _parts(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    bytes_max: int,
    check: Callable[[], None],
) -> Iterator[list[pa.Table]]:
    """Yield the rows of each file; one without rows if there are none."""
    tables: list[pa.Table] = []
    size, has_any = 0, False
    for batch in batches:
        check()
        for begin in range(0, batch.num_rows, CHUNK_ROWS):
            part = batch.slice(begin, CHUNK_ROWS)
            tables.append(pa.Table.from_batches([part]))
            size += part.nbytes
            if size >= bytes_max:
                yield tables
                tables, size, has_any = [], 0, True
    if tables or not has_any:
        yield tables or [schema.empty_table()]


def _extension(file_format: FileFormat) -> str:
    name = EXTENSIONS[file_format.type]
    if file_format.type == "parquet":
        return name
    return name + SUFFIXES.get(file_format.compression, "")


def _encoded(tables: list[pa.Table], schema: pa.Schema, file_format: FileFormat) -> Iterator[bytes]:
    """Yield the bytes of a file."""
    compression = file_format.compression
    if file_format.type == "parquet":
        codec = {"auto": "zstd", "none": "none"}.get(compression, compression)
        yield from _drained(
            lambda sink: pq.ParquetWriter(sink, schema, compression=codec),
            lambda writer, table: writer.write_table(table),
            tables,
        )
        return
    if compression not in ("auto", "none", *STREAMED):
        raise Malformed(
            f"{file_format.type.upper()} is written with COMPRESSION NONE, GZIP, ZSTD, LZ4 or "
            "BROTLI"
        )
    plain = _csv(tables, schema, file_format) if file_format.type == "csv" else _ndjson(tables)
    if compression in ("auto", "none"):
        yield from plain
    else:
        yield from _drained(
            lambda sink: pa.CompressedOutputStream(sink, compression),
            lambda writer, chunk: writer.write(chunk),
            plain,
        )


class _Sink:
    """Collects what Arrow writes."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._size

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        data, self._parts = b"".join(self._parts), []
        return data


def _drained(
    opens: Callable[[Any], Any], writes: Callable[[Any, Any], Any], items: Iterable[Any]
) -> Iterator[bytes]:
    """Yield what a writer of Arrow writes, as it is written."""
    sink = _Sink()
    writer = opens(pa.PythonFile(sink, mode="w"))
    for item in items:
        writes(writer, item)
        if data := sink.take():
            yield data
    writer.close()
    yield sink.take()


def _csv(tables: Iterable[pa.Table], schema: pa.Schema, file_format: FileFormat) -> Iterator[bytes]:
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise Malformed(f"column {nested[0]} is a list, map or struct; write PARQUET or NDJSON")
    is_first = True
    for table in tables:
        sink = pa.BufferOutputStream()
        options = pcsv.WriteOptions(
            include_header=is_first and file_format.header,
            delimiter=file_format.field_delimiter,
            quoting_style="needed",
        )
        pcsv.write_csv(_texts(table), sink, options)
        is_first = False
        yield sink.getvalue().to_pybytes()


def _texts(table: pa.Table) -> pa.Table:
    """Return times as ISO 8601 with Z, as they are read."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_timestamp(field.type):
            texts = [_time(value) for value in column.to_pylist()]
            columns.append(pa.array(texts, pa.string()))
        elif pa.types.is_binary(field.type) or pa.types.is_fixed_size_binary(field.type):
            columns.append(pa.array([_plain(v) for v in column.to_pylist()], pa.string()))
        else:
            columns.append(column)
    return pa.Table.from_arrays(columns, names=table.schema.names)


def _ndjson(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    for table in tables:
        lines = [json.dumps(row, default=_plain, ensure_ascii=False) for row in _rows(table)]
        yield "".join(f"{line}\n" for line in lines).encode()


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for row in table.to_pylist(maps_as_pydicts="strict"):
        yield {name: _finite(value) for name, value in row.items()}


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinities: they become strings."""
    if isinstance(value, float) and value - value != 0.0:
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return value


def _plain(value: Any) -> Any:
    """Return a value that JSON lacks, as text that is read again."""
    import base64

    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "hour"):
        return _time(value)
    return None if value is None else str(value)


def _time(value: Any) -> str | None:
    if value is None:
        return None
    text: str = value.isoformat()
    return text.replace("+00:00", "Z")
