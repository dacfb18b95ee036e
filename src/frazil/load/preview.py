"""First rows of a file, read in this process: a bounded part of it, and the types of that part."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.definitions import FileFormat
from frazil.load.formats.blocks import RowError
from frazil.load.formats.compression import compression_of, decompressed
from frazil.load.formats.json_documents import document_chunks
from frazil.load.formats.reader import TYPED, format_of, infer_file, read_file
from frazil.load.formats.type_merge import finished
from frazil.load.stages.stage import FileSource
from frazil.load.stages.staged_file import StagedFile
from frazil.model import MiB

TEXT_BYTES_MAX = MiB
"""Decompressed bytes of a text that are read."""
GROUP_BYTES_MAX = 256 * MiB
"""A larger row group or stripe is not read: it would have to be read as a whole."""
READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePreview:
    """The beginning of a file."""

    file: StagedFile
    file_format: FileFormat
    schema: pa.Schema
    """DESCRIBE infers it from all files."""
    rows: pa.Table
    errors: tuple[RowError, ...]
    is_cut: bool
    """Whether the file has more rows."""
    is_whole: bool
    """Whether the schema is that of the whole file."""


def preview_file(
    store: FileSource, file: StagedFile, file_format: FileFormat | None, rows_max: int
) -> FilePreview:
    """Read the beginning of a file. `Malformed` if it is not of this format."""
    file_format = file_format or format_of(file.path)
    if file_format.type in TYPED:
        return _typed(store, file, file_format, rows_max)
    data, is_cut = _head(store, file, file_format)
    plain = replace(file_format, compression="none")
    if file_format.type == "json" and is_cut:
        chunks = document_chunks(io.BytesIO(data), is_cut=True)
        data, plain = b"".join(chunk.data for chunk in chunks), replace(plain, type="ndjson")
    elif is_cut:
        data = _whole_records(data, plain)
    part = _Part(data)
    schema = finished(infer_file(part, file, plain))
    rows, errors = _first_rows(part, file, plain, schema, rows_max)
    return FilePreview(
        file=file,
        file_format=file_format,
        schema=schema,
        rows=rows,
        errors=errors,
        is_cut=is_cut or rows.num_rows == rows_max,
        is_whole=not is_cut,
    )


class _Part:
    """Opens the beginning of a file. Implements `FileSource`."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, file: StagedFile) -> IO[bytes]:
        return io.BytesIO(self._data)

    def check(self, file: StagedFile, stream: IO[bytes]) -> None:
        """The bytes do not change."""


def _head(store: FileSource, file: StagedFile, file_format: FileFormat) -> tuple[bytes, bool]:
    """Return the first bytes, decompressed, and whether there are more."""
    with store.open(file) as source:
        stream = decompressed(source, compression_of(file.path, file_format.compression))
        data = bytearray()
        while len(data) <= TEXT_BYTES_MAX and (more := stream.read(READ_BYTES)):
            data += more
        store.check(file, source)
    return bytes(data[:TEXT_BYTES_MAX]), len(data) > TEXT_BYTES_MAX


def _whole_records(data: bytes, file_format: FileFormat) -> bytes:
    """Return lines without the last one, which is cut; in CSV, without a field that is open."""
    end = data.rfind(b"\n") + 1
    quote = file_format.quote.encode() if file_format.type == "csv" else b""
    if not quote:
        return data[:end]
    open_quotes = data.count(quote, 0, end) % 2
    while open_quotes and end:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        open_quotes = (open_quotes - data.count(quote, begin, end)) % 2
        end = begin
    return data[:end]


def _typed(
    store: FileSource, file: StagedFile, file_format: FileFormat, rows_max: int
) -> FilePreview:
    schema = finished(infer_file(store, file, file_format))
    rows, is_cut = schema.empty_table(), True
    errors: tuple[RowError, ...] = ()
    if _group_bytes(store, file, file_format) <= GROUP_BYTES_MAX:
        rows, errors = _first_rows(store, file, file_format, schema, rows_max)
        is_cut = rows.num_rows == rows_max
    return FilePreview(
        file=file,
        file_format=file_format,
        schema=schema,
        rows=rows,
        errors=errors,
        is_cut=is_cut,
        is_whole=True,
    )


def _group_bytes(store: FileSource, file: StagedFile, file_format: FileFormat) -> int:
    """Return how much has to be read for the first rows, at most."""
    if file_format.type == "avro":
        return 0
    with store.open(file) as source:
        if file_format.type == "orc":
            from pyarrow import orc

            count: int = orc.ORCFile(pa.PythonFile(source, mode="r")).nstripes
            return file.size_bytes // max(1, count)
        metadata = pq.ParquetFile(source, pre_buffer=False).metadata
        size: int = metadata.row_group(0).total_byte_size if metadata.num_row_groups else 0
        return size


def _first_rows(
    store: FileSource,
    file: StagedFile,
    file_format: FileFormat,
    schema: pa.Schema,
    rows_max: int,
) -> tuple[pa.Table, tuple[RowError, ...]]:
    """Return the rows of the first block."""
    block = next(read_file(store, file, file_format, schema, is_exact=True), None)
    if block is None:
        return schema.empty_table(), ()
    return block.rows.slice(0, rows_max), block.errors[:rows_max]
