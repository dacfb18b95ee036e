"""CSV: all fields are read as bytes, and become values by strict casts.

An empty field is NULL, a quoted empty one is an empty string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from frazil.definitions import FileFormat
from frazil.errors import Malformed
from frazil.load.formats.blocks import (
    ADD_HINT,
    Block,
    ExactError,
    RowError,
    left_out,
    row_error,
    target_types,
)
from frazil.load.formats.json_values import name_of
from frazil.load.formats.text_cast import cast_text, infer_text
from frazil.load.formats.type_merge import merge_schemas
from frazil.model import MiB

BLOCK_BYTES = 4 * MiB
VALUE_CHARACTERS_MAX = 80


class CsvErrors:
    """Rows with another number of fields than the header. Arrow may read ahead of its batches."""

    def __init__(self) -> None:
        self._found: list[tuple[int, str]] = []

    def handle(self, row: pcsv.InvalidRow) -> str:
        reason = f"it has {row.actual_columns} fields, the header has {row.expected_columns}"
        self._found.append((row.number or 0, reason))
        return "skip"

    def take(self, first: int, count: int | None) -> list[tuple[int, str]]:
        """Return those among `count` valid rows from the row `first` on, counted from 1."""
        taken: list[tuple[int, str]] = []
        end = first if count is None else first + count
        while self._found and (count is None or self._found[0][0] < end):
            taken.append(self._found.pop(0))
            end += 1
        return taken


def infer_csv(stream: IO[bytes], file_format: FileFormat) -> pa.Schema:
    """Return the merged schema of all rows, before `finished`."""
    errors = CsvErrors()

    def schemas() -> Iterator[pa.Schema]:
        for batch in _batches(stream, file_format, errors):
            texts, _ = _texts(batch)
            yield pa.schema(
                [
                    pa.field(name, infer_text(column))
                    for name, column in zip(batch.schema.names, texts, strict=True)
                ]
            )

    return merge_schemas(schemas(), pa.string())


def read_csv(stream: IO[bytes], file_format: FileFormat, schema: pa.Schema) -> Iterator[Block]:
    """Yield all rows with the types of a table. `Malformed` if the file has other columns."""
    errors = CsvErrors()
    header = file_format.skip_lines + file_format.header
    row, breaks = 1, 0
    for batch in _batches(stream, file_format, errors):
        _check_names(batch.schema.names, schema)
        invalid = errors.take(row, batch.num_rows)
        texts, bad = _texts(batch)
        columns: list[Any] = []
        for field in schema:
            if field.name not in batch.schema.names:
                columns.append(pa.nulls(batch.num_rows, field.type))
                continue
            column = texts[batch.schema.get_field_index(field.name)]
            values, misfits = cast_text(column, field.type)
            columns.append(values)
            for index in misfits:
                text = repr(column[index].as_py())[:VALUE_CHARACTERS_MAX]
                bad.setdefault(index, (field.name, f"{text} is not {name_of(field.type)}"))
        written = target_types(schema)
        arrays = [column.cast(kind) for column, kind in zip(columns, written.types, strict=True)]
        rows = pa.Table.from_arrays(arrays, schema=written)
        first, inside = header + row + breaks, _break_count(texts)
        lines: Sequence[int] = range(first, first + batch.num_rows)
        found: list[RowError] = []
        if invalid or inside:
            lines, found = _lines(first, texts, batch.num_rows, dict(invalid), row)
        row += batch.num_rows + len(invalid)
        breaks += inside
        yield left_out(Block(rows=rows, lines=lines, errors=tuple(found)), bad)
    rest = [
        row_error(header + number + breaks, "", reason) for number, reason in errors.take(row, None)
    ]
    if rest:
        yield Block(rows=target_types(schema).empty_table(), lines=(), errors=tuple(rest))


def _lines(
    line: int, texts: list[pa.StringArray], count: int, invalid: dict[int, str], row: int
) -> tuple[list[int], list[RowError]]:
    """Return the lines of the rows of a batch that begins at `line`, and the errors of invalid
    rows, which are not in it."""
    counts = [pc.fill_null(pc.count_substring(column, "\n"), 0).to_pylist() for column in texts]
    lines: list[int] = []
    errors: list[RowError] = []
    for offset in range(count + len(invalid)):
        if row + offset in invalid:
            errors.append(row_error(line, "", invalid[row + offset]))
        else:
            lines.append(line)
            line += sum(column[len(lines) - 1] for column in counts)
        line += 1
    return lines, errors


def _batches(
    stream: IO[bytes], file_format: FileFormat, errors: CsvErrors
) -> Iterator[pa.RecordBatch]:
    if len(file_format.field_delimiter) != 1 or len(file_format.quote) > 1:
        raise Malformed("FIELD_DELIMITER and QUOTE are one character each")
    source: Any = stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
    convert = pcsv.ConvertOptions(
        null_values=["", *file_format.null_if],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        check_utf8=False,
    )
    names = _names(source, file_format)
    if names is None:
        return
    header, source = names
    convert.column_types = dict.fromkeys(header, pa.binary())
    options = pcsv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=header)
    parse = pcsv.ParseOptions(
        delimiter=file_format.field_delimiter,
        quote_char=file_format.quote or False,
        escape_char=file_format.escape or False,
        newlines_in_values=True,
        invalid_row_handler=errors.handle,
    )
    try:
        with pcsv.open_csv(source, options, parse, convert) as reader:
            yield from reader
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return
        raise Malformed(f"it is not CSV: {error}") from error


def _names(source: Any, file_format: FileFormat) -> tuple[list[str], Any] | None:
    """Return the names of the columns, and the stream after the header."""
    head = _Peeked(source)
    for _ in range(file_format.skip_lines):
        head.take_line()
    if file_format.header:
        line = head.take_record(file_format.quote.encode())
    else:
        line = head.peek_record(file_format.quote.encode())
    if not line.strip():
        return None
    fields = _fields(line, file_format)
    if not file_format.header:
        fields = [f"column_{index}" for index in range(1, len(fields) + 1)]
    if len(set(fields)) != len(fields) or "" in fields:
        twice = next(name for name in fields if not name or fields.count(name) > 1)
        raise Malformed(f"the header has the name {twice!r} twice or without text")
    return fields, pa.PythonFile(head, mode="r")


def _fields(line: bytes, file_format: FileFormat) -> list[str]:
    import csv

    try:
        text = line.decode("utf-8").removeprefix("\ufeff")
        (fields,) = csv.reader(
            [text.rstrip("\r\n")],
            delimiter=file_format.field_delimiter,
            quotechar=file_format.quote or None,
            quoting=csv.QUOTE_MINIMAL if file_format.quote else csv.QUOTE_NONE,
            escapechar=file_format.escape or None,
            strict=True,
        )
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise Malformed(f"the header is not CSV: {error}") from None
    return fields


class _Peeked:
    """A stream whose first lines were read."""

    closed = False

    def __init__(self, source: Any) -> None:
        self._source = source
        self._data = b""
        self._at = 0

    def take_line(self) -> bytes:
        while (end := self._data.find(b"\n")) < 0:
            more = self._source.read(64 * 1024)
            if not more or len(self._data) > BLOCK_BYTES:
                end = len(self._data) - 1
                break
            self._data += bytes(more)
        line, self._data = self._data[: end + 1], self._data[end + 1 :]
        return line

    def take_record(self, quote: bytes) -> bytes:
        """Take lines until quotes are balanced: a name may contain a line break."""
        record = self.take_line()
        while quote and record.count(quote) % 2 and (more := self.take_line()):
            record += more
        return record

    def peek_record(self, quote: bytes) -> bytes:
        record = self.take_record(quote)
        self._data = record + self._data
        return record

    def read(self, count: int = -1) -> bytes:
        if self._data:
            end = len(self._data) if count < 0 else count
            data, self._data = self._data[:end], self._data[end:]
            return data
        data = self._source.read(count) if count >= 0 else self._source.read()
        return bytes(data)

    def close(self) -> None:
        self.closed = True


def _texts(batch: pa.RecordBatch) -> tuple[list[pa.StringArray], dict[int, ExactError]]:
    """Return the columns as strings, and the rows that are not UTF-8."""
    texts: list[pa.StringArray] = []
    bad: dict[int, ExactError] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            texts.append(column.cast(pa.string()))
        except pa.ArrowInvalid:
            values: list[str | None] = []
            for index, value in enumerate(column.to_pylist()):
                try:
                    values.append(None if value is None else value.decode("utf-8"))
                except UnicodeDecodeError:
                    bad.setdefault(index, (name, "it is not UTF-8"))
                    values.append(None)
            texts.append(pa.array(values, pa.string()))
    return texts, bad


def _check_names(names: list[str], schema: pa.Schema) -> None:
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise Malformed(f"it has the column {unknown[0]!r}, which the table has not{ADD_HINT}")


def _break_count(texts: list[pa.StringArray]) -> int:
    return sum(pc.sum(pc.count_substring(column, "\n")).as_py() or 0 for column in texts)
