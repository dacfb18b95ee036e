"""Reads one file of any format: its schema, or its rows with the types of a table."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from frazil.definitions import FileFormat, FormatType
from frazil.errors import Malformed
from frazil.load.formats.avro_rows import infer_avro, read_avro
from frazil.load.formats.blocks import Block, row_error
from frazil.load.formats.columnar import infer_orc, infer_parquet, read_orc, read_parquet
from frazil.load.formats.compression import (
    compression_of,
    decompressed,
    require_plain,
    without_compression,
)
from frazil.load.formats.csv_rows import infer_csv, read_csv
from frazil.load.formats.json_documents import document_chunks
from frazil.load.formats.lines import LineChunk, line_chunks
from frazil.load.formats.ndjson import infer_ndjson, read_ndjson
from frazil.load.formats.syslog import SYSLOG_SCHEMA, read_syslog
from frazil.load.stages.stage import FileSource
from frazil.load.stages.staged_file import StagedFile

EXTENSIONS: dict[str, FormatType] = {
    "ndjson": "ndjson",
    "jsonl": "ndjson",
    "json": "json",
    "csv": "csv",
    "parquet": "parquet",
    "orc": "orc",
    "avro": "avro",
    "txt": "text",
    "log": "text",
}
LINE = "line"
"""The column of plain text."""
TEXT_SCHEMA = pa.schema([pa.field(LINE, pa.string())])
TYPED: frozenset[FormatType] = frozenset({"parquet", "orc", "avro"})


def format_of(path: str) -> FileFormat:
    """Return the format that a file has by its name. `Malformed` if the name does not say."""
    extension = without_compression(path).rpartition(".")[2].lower()
    if extension not in EXTENSIONS:
        raise Malformed(
            f"the name {path} does not say which format it has; add FILE_FORMAT=(TYPE=…), one of "
            f"{', '.join(sorted({name.upper() for name in EXTENSIONS.values()}))}"
        )
    return FileFormat(type=EXTENSIONS[extension])


def infer_file(store: FileSource, file: StagedFile, file_format: FileFormat) -> pa.Schema:
    """Return the schema of a file, before `finished`. Reads all of it, unless it has a schema."""
    with opened(store, file, file_format) as stream:
        match file_format.type:
            case "ndjson":
                return infer_ndjson(line_chunks(stream))
            case "json":
                return infer_ndjson(document_chunks(stream))
            case "csv":
                return infer_csv(stream, file_format)
            case "parquet":
                return infer_parquet(stream)
            case "orc":
                return infer_orc(stream)
            case "avro":
                return infer_avro(stream)
            case "text":
                return TEXT_SCHEMA
            case "syslog":
                return SYSLOG_SCHEMA
        raise _unsupported(file_format)


def read_file(
    store: FileSource,
    file: StagedFile,
    file_format: FileFormat,
    schema: pa.Schema,
    *,
    is_exact: bool = False,
    columns: Sequence[str] | None = None,
) -> Iterator[Block]:
    """Yield all rows of a file. `Malformed` if the file as a whole cannot be read, `Conflict` if it
    is not the one that was listed. `is_exact`: the schema was inferred from this very file.
    `columns`: only these are read, if the format is Parquet."""
    with opened(store, file, file_format) as stream:
        match file_format.type:
            case "ndjson":
                yield from read_ndjson(line_chunks(stream), schema, is_exact=is_exact)
            case "json":
                yield from read_ndjson(document_chunks(stream), schema, is_exact=is_exact)
            case "csv":
                yield from read_csv(stream, file_format, schema)
            case "parquet":
                yield from read_parquet(stream, schema, columns)
            case "orc":
                yield from read_orc(stream, schema)
            case "avro":
                yield from read_avro(stream, schema)
            case "text":
                yield from _read_text(
                    line_chunks(stream, skip_lines=file_format.skip_lines), schema
                )
            case "syslog":
                yield from read_syslog(line_chunks(stream), schema, file.time_ms)
            case _:
                raise _unsupported(file_format)


@contextmanager
def opened(store: FileSource, file: StagedFile, file_format: FileFormat) -> Iterator[IO[bytes]]:
    """Yield the bytes of a file, decompressed if it is text."""
    source = store.open(file)
    try:
        if file_format.type in TYPED:
            require_plain(file.path, file_format.compression, file_format.type.capitalize())
            yield source
        else:
            yield decompressed(source, compression_of(file.path, file_format.compression))
        store.check(file, source)
    except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
        store.check(file, source)  # bytes of two files look damaged
        raise Malformed(f"it is damaged: {error}") from error
    finally:
        source.close()


def _read_text(chunks: Iterator[LineChunk], schema: pa.Schema) -> Iterator[Block]:
    if schema.names != [LINE] and LINE not in schema.names:
        raise Malformed(f"lines of text become the column {LINE}, which the table has not")
    for chunk in chunks:
        lines = chunk.data.split(b"\n")[:-1]
        texts, numbers, errors = [], [], []
        for number, line in enumerate(lines, chunk.first_line):
            try:
                texts.append(line.removesuffix(b"\r").decode("utf-8"))
                numbers.append(number)
            except UnicodeDecodeError as error:
                errors.append(row_error(number, LINE, f"byte {error.start + 1} is not UTF-8"))
        columns = [
            pa.array(texts, pa.string()) if field.name == LINE else pa.nulls(len(texts), field.type)
            for field in schema
        ]
        rows = pa.Table.from_arrays(columns, schema=schema)
        yield Block(rows=rows, lines=numbers, errors=tuple(errors))


def _unsupported(file_format: FileFormat) -> Malformed:
    return Malformed(
        f"{file_format.type.upper()} is for COPY INTO logs, spans and metrics; other tables are "
        "loaded from other formats"
    )
