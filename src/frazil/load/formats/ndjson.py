"""NDJSON: one object per line.

Arrow reads chunks of lines fast. It is trusted only where it is exact: a chunk with anything
unusual (a type that changes, a number that a double cannot hold, a line that is no object) is read
again by `json_values`, which decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from frazil.load.formats.blocks import (
    JSON_TEXT,
    Block,
    ExactError,
    RowError,
    left_out,
    row_error,
    target_types,
    without_bad,
)
from frazil.load.formats.json_values import name_of, parse_row, rows_to_table, schema_of_rows
from frazil.load.formats.lines import LineChunk
from frazil.load.formats.text_cast import (
    EXACT_CHARACTERS,
    EXACT_INT_MAX,
    big_or_small,
    cast_text,
    exact_float,
)
from frazil.load.formats.type_merge import merge_schemas

FRACTION = re.compile(
    rb"(?<=[:,\[\s])-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)(?=[,}\]\s])"
)
LONG_FRACTION = re.compile(rb"\.[0-9]{9,}")
SMALL_MAX = 1e7
"""With at most seven digits before the point, only a long fraction makes a number inexact."""
DIGITS = frozenset(b"0123456789")
NEWLINE, RETURN, OPEN, CLOSE, ZERO, SMALL_E, CASE = b"\n\r{}0e\x20"
AFTER_OBJECT = re.compile(rb"\}[ \t\r]*[nN]")
"""Arrow ends the process for a `null` that is not inside an object."""
DEEP = b"[" * 64
"""Arrow parses recursively."""
ROWS_MAX = 8192
"""Rows parsed by Python at a time."""


def infer_ndjson(chunks: Iterable[LineChunk]) -> pa.Schema:
    """Return the merged schema of all lines, before `finished`. Lines that are not objects do not
    count."""
    return merge_schemas((_infer_chunk(chunk) for chunk in chunks), JSON_TEXT)


def read_ndjson(
    chunks: Iterable[LineChunk], schema: pa.Schema, *, is_exact: bool = False
) -> Iterator[Block]:
    """Yield all rows with the types of a table. `is_exact`: the schema was inferred from this file,
    so every double is known to be exact."""
    carriers = _carriers(schema)
    for chunk in chunks:
        block = None if carriers is None else _fast(chunk, schema, carriers, is_exact)
        if block is None:
            yield from _slow(chunk, schema)
        else:
            yield block


def _infer_chunk(chunk: LineChunk) -> pa.Schema:
    rows = _arrow_rows(chunk, None)
    if rows is None or not _has_exact_numbers(rows, chunk.data):
        parsed = []
        for line in chunk.data.split(b"\n"):
            if line.strip():
                try:
                    parsed.append(parse_row(line))
                except ValueError:
                    continue  # an error of the load
        return schema_of_rows(parsed)
    return pa.schema(
        [
            pa.field(name, _found(column))
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        ]
    )


def _found(column: pa.ChunkedArray | pa.Array) -> pa.DataType:
    """Return the type of values that Arrow found, before `finished`."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pa.string()  # a string that looks like a time is a string
    if pa.types.is_integer(kind):
        return big_or_small(column)
    if isinstance(column, pa.ChunkedArray) and pa.types.is_nested(kind):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        return kind
    if pa.types.is_list(kind):
        return pa.list_(_found(column.flatten()))
    if pa.types.is_struct(kind):
        return pa.struct(
            [pa.field(f.name, _found(c)) for f, c in zip(kind, column.flatten(), strict=True)]
        )
    return kind


def _arrow_rows(chunk: LineChunk, schema: pa.Schema | None) -> pa.Table | None:
    """Return the rows that Arrow finds, one per line; None if it may not be trusted with them."""
    data = chunk.data
    count = _line_count(data)
    if not count or DEEP in data or AFTER_OBJECT.search(data):
        return None
    try:
        data.decode("utf-8")
        rows = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=schema,
                unexpected_field_behavior="infer" if schema is None else "error",
            ),
        )
        rows.validate()  # with objects without fields, its arrays may be too short
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if rows.num_rows != count or any(_has_empty(kind) for kind in rows.schema.types):
        return None
    return rows


def _line_count(data: bytes) -> int:
    """Return the number of lines if each begins and ends as an object does, else 0."""
    if len(data) < len(b"{}\n") or data[-1] != NEWLINE:
        return 0
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == NEWLINE)
    last = text[ends - 1]  # what is before a newline at the start is a newline, and refused
    returns = ends[last == RETURN]
    are_closed = np.count_nonzero(last == CLOSE) + np.count_nonzero(text[returns - 2] == CLOSE)
    are_open = int(text[0] == OPEN) + np.count_nonzero(text[ends[:-1] + 1] == OPEN)
    return len(ends) if are_closed == are_open == len(ends) else 0


def _has_empty(kind: pa.DataType) -> bool:
    """Return whether there is an object without fields."""
    if pa.types.is_struct(kind) and not kind.num_fields:
        return True
    return any(_has_empty(kind.field(index).type) for index in range(kind.num_fields))


def _has_exact_numbers(rows: pa.Table, data: bytes) -> bool:
    """Return whether every double is spelled so."""
    doubles = [leaf for column in rows.columns for leaf in _doubles(column)]
    if not doubles:
        return True
    largest = _largest(doubles)
    if largest is None or largest >= EXACT_INT_MAX:
        return False
    return all(exact_float(token.decode()) is not None for token in _risky(data, largest))


def _risky(data: bytes, largest: float) -> Iterator[bytes]:
    """Yield numbers that may lose digits as doubles. Strings may look like some."""
    if largest >= SMALL_MAX or _may_have_exponents(data):
        for token in FRACTION.findall(data):
            if len(token) > EXACT_CHARACTERS or b"e" in token or b"E" in token:
                yield token
        return
    for found in LONG_FRACTION.finditer(data):
        begin = found.start()
        while data[begin - 1] in DIGITS:
            begin -= 1
        yield data[begin : found.end()]


def _may_have_exponents(data: bytes) -> bool:
    """Return whether an `e` follows a digit anywhere."""
    text = np.frombuffer(data, np.uint8)
    before = text[np.flatnonzero(text | CASE == SMALL_E) - 1]  # before the first: a newline
    return bool((before - ZERO < len(DIGITS)).any())  # unsigned: what is below wraps


def _largest(doubles: Iterable[pa.ChunkedArray | pa.Array]) -> float | None:
    """Return the largest absolute value; None if there is a NaN."""
    largest = 0.0
    for values in doubles:
        if pc.any(pc.is_nan(values)).as_py():
            return None
        largest = max(largest, pc.max(pc.abs(values)).as_py() or 0.0)
    return largest


def _doubles(column: pa.ChunkedArray | pa.Array) -> Iterator[pa.ChunkedArray | pa.Array]:
    kind = column.type
    if pa.types.is_floating(kind):
        yield column
    elif pa.types.is_nested(kind):
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        parts = column.flatten() if pa.types.is_struct(kind) else [column.flatten()]
        for part in parts:
            yield from _doubles(part)


def _carriers(schema: pa.Schema) -> pa.Schema | None:
    """Return the types that Arrow reads the columns as; None if it cannot."""
    fields = []
    for field in schema:
        kind = _carrier(field.type)
        if kind is None:
            return None
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _carrier(kind: pa.DataType) -> pa.DataType | None:
    if kind in (pa.bool_(), pa.int64(), pa.float64(), pa.string()):
        return kind
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        inner = _carrier(kind.value_type)
        return None if inner != kind.value_type else pa.list_(kind.value_field.with_type(inner))
    if pa.types.is_struct(kind):
        inner = [_carrier(field.type) for field in kind]
        are_same = all(i == f.type for i, f in zip(inner, kind, strict=True))
        return kind if are_same else None
    return None


def _fast(chunk: LineChunk, schema: pa.Schema, carriers: pa.Schema, is_exact: bool) -> Block | None:
    rows = _arrow_rows(chunk, carriers)
    if rows is None or not (is_exact or _has_exact_numbers(rows, chunk.data)):
        return None
    columns: list[Any] = []
    bad: dict[int, ExactError] = {}
    for field in schema:
        column = rows.column(field.name)
        if column.type == field.type:
            columns.append(column)
            continue
        texts = column.combine_chunks()
        if pa.types.is_integer(field.type):
            texts = texts.cast(pa.string())
        values, misfits = cast_text(texts, field.type)
        for index in misfits:
            bad.setdefault(
                index, (field.name, f"{texts[index].as_py()!r} is not {name_of(field.type)}")
            )
        columns.append(values)
    table = pa.Table.from_arrays(columns, schema=target_types(schema))
    return without_bad(table, bad, chunk.first_line)


def _slow(chunk: LineChunk, schema: pa.Schema) -> Iterator[Block]:
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    errors: list[RowError] = []
    for number, line in enumerate(chunk.data.split(b"\n")[:-1], chunk.first_line):
        if not line.strip():
            continue
        try:
            rows.append(parse_row(line))
            numbers.append(number)
        except ValueError as error:
            errors.append(row_error(number, "", str(error)))
        if len(rows) >= ROWS_MAX:
            yield _block(rows, numbers, errors, schema)
            rows, numbers, errors = [], [], []
    if rows or errors:
        yield _block(rows, numbers, errors, schema)


def _block(
    rows: list[dict[str, Any]], numbers: list[int], errors: list[RowError], schema: pa.Schema
) -> Block:
    table, bad = rows_to_table(rows, schema)
    return left_out(Block(rows=table, lines=numbers, errors=tuple(errors)), bad)
