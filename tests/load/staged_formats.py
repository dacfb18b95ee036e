"""The same rows in every format and codec, and how libraries other than ours read them."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import cramjam
import fastavro
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pj
import pyarrow.parquet as pq
import zstandard
from fastavro.read import HEADER_SCHEMA
from pyarrow import orc

Codec = Literal["none", "gzip", "snappy", "zstd", "lz4", "brotli"]
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "zstd", "lz4", "brotli")
SUFFIXES = {
    "none": "",
    "gzip": ".gz",
    "snappy": ".sz",
    "zstd": ".zst",
    "lz4": ".lz4",
    "brotli": ".br",
}
TEXTS = ("ndjson", "json", "csv")
ORC_CODECS = {"none": "uncompressed", "gzip": "zlib"}
AVRO_CODECS = {"none": "null", "gzip": "deflate", "snappy": "snappy", "zstd": "zstandard"}
ALLOWED: dict[str, tuple[Codec, ...]] = {
    **dict.fromkeys(TEXTS, CODECS),
    "parquet": CODECS,
    "orc": ("none", "gzip", "snappy", "zstd", "lz4"),
    "avro": ("none", "gzip", "snappy", "zstd"),
}
"""Codecs by format. ORC has no Brotli; Avro has neither LZ4 nor Brotli."""
FORMATS = tuple(ALLOWED)
AVRO_SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "is_paid", "type": ["null", "boolean"]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
    ],
}
FIRST_DAY = datetime.date(1969, 12, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCase:
    """One file of the matrix."""

    format: str
    codec: Codec

    @property
    def folder(self) -> str:
        return f"{self.format}/{self.codec}"

    @property
    def name(self) -> str:
        return f"rows.{self.format}{SUFFIXES[self.codec] if self.format in TEXTS else ''}"

    def encode(self, count: int) -> bytes:
        """Return the file."""
        rows = rows_of(count)
        if self.format == "parquet":
            sink = io.BytesIO()
            pq.write_table(rows, sink, compression=self.codec, row_group_size=count // 3 + 1)
            return sink.getvalue()
        if self.format == "orc":
            buffer = pa.BufferOutputStream()
            orc.write_table(rows, buffer, compression=ORC_CODECS.get(self.codec, self.codec))
            return bytes(buffer.getvalue())
        if self.format == "avro":
            sink = io.BytesIO()
            is_zstd = self.codec == "zstd"
            codec = "null" if is_zstd else AVRO_CODECS[self.codec]
            fastavro.writer(sink, AVRO_SCHEMA, rows.to_pylist(), codec=codec)
            return _with_zstd(sink.getvalue()) if is_zstd else sink.getvalue()
        return _compressed(_text(self.format, rows.to_pylist()), self.codec)

    def read_by_others(self, data: bytes) -> pa.Table:
        """Return the rows as pyarrow, or fastavro, reads them."""
        if self.format == "parquet":
            return pq.read_table(io.BytesIO(data))
        if self.format == "orc":
            return orc.read_table(io.BytesIO(data))
        if self.format == "avro":
            plain = _without_zstd(data) if self.codec == "zstd" else data
            return pa.Table.from_pylist(list(fastavro.reader(io.BytesIO(plain))))
        text = _decompressed(data, self.codec)
        if self.format == "csv":
            convert = pcsv.ConvertOptions(
                strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            parse = pcsv.ParseOptions(newlines_in_values=True)
            return pcsv.read_csv(io.BytesIO(text), parse_options=parse, convert_options=convert)
        if self.format == "json":
            return pa.Table.from_pylist(json.loads(text))
        # A string that looks like a day is a string.
        options = pj.ParseOptions(explicit_schema=pa.schema([("day", pa.string())]))
        return pj.read_json(io.BytesIO(text), parse_options=options)


def cases() -> Iterator[FormatCase]:
    """All files of the matrix."""
    for name, codecs in ALLOWED.items():
        for codec in codecs:
            yield FormatCase(format=name, codec=codec)


def rows_of(count: int) -> pa.Table:
    """Return rows with nulls, quotes, line breaks, other scripts and numbers of many digits."""
    texts = ("plain", 'a "quoted", one', "two\nlines", "ключ 鍵 🗝", None, "x" * 300)
    return pa.table(
        {
            "id": pa.array([2**53 + 7 * n for n in range(count)], pa.int64()),
            "name": [texts[n % len(texts)] for n in range(count)],
            "amount": [None if n % 7 == 3 else n / 8 - 100 for n in range(count)],
            "is_paid": [None if n % 5 == 4 else n % 2 == 0 for n in range(count)],
            "day": pa.array(
                [
                    None if n % 11 == 5 else FIRST_DAY + datetime.timedelta(n % 30_000)
                    for n in range(count)
                ],
                pa.date32(),
            ),
        }
    )


def same_rows(loaded: pa.Table, others: pa.Table) -> bool:
    """Whether both have the same rows in whatever order, with the types of the loaded ones."""
    if sorted(loaded.column_names) != sorted(others.column_names):
        return False
    cast = others.select(loaded.column_names).cast(loaded.schema)
    return bool(loaded.sort_by("id").equals(cast.sort_by("id")))


def _text(name: str, rows: list[dict[str, Any]]) -> bytes:
    if name == "csv":
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(rows[0])
        writer.writerows([_csv_text(value) for value in row.values()] for row in rows)
        return text.getvalue().encode()
    lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
    joined = ",\n".join(lines) if name == "json" else "\n".join(lines)
    return (f"[{joined}]" if name == "json" else f"{joined}\n").encode()


def _csv_text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _compressed(data: bytes, codec: Codec) -> bytes:
    if codec == "none":
        return data
    if codec == "gzip":
        return gzip.compress(data)
    if codec == "snappy":
        return bytes(cramjam.snappy.compress(data))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def _with_zstd(data: bytes) -> bytes:
    """Return an Avro file with compressed blocks: fastavro lacks the library."""
    return _recoded(data, b"zstandard", zstandard.compress)


def _without_zstd(data: bytes) -> bytes:
    return _recoded(data, b"null", zstandard.decompress)


def _recoded(data: bytes, codec: bytes, change: Callable[[bytes], bytes]) -> bytes:
    source, sink = io.BytesIO(data), io.BytesIO()
    header: Any = fastavro.schemaless_reader(source, HEADER_SCHEMA, None)
    header["meta"]["avro.codec"] = codec
    fastavro.schemaless_writer(sink, HEADER_SCHEMA, header)
    while source.tell() < len(data):
        fastavro.schemaless_writer(sink, "long", fastavro.schemaless_reader(source, "long", None))
        block: Any = fastavro.schemaless_reader(source, "bytes", None)
        fastavro.schemaless_writer(sink, "bytes", change(block))
        sink.write(source.read(16))
    return sink.getvalue()


def _decompressed(data: bytes, codec: Codec) -> bytes:
    if codec == "none":
        return data
    if codec == "snappy":
        return bytes(cramjam.snappy.decompress(data))
    return bytes(pa.CompressedInputStream(pa.BufferReader(data), codec).read())
