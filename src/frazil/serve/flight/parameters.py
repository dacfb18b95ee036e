"""Values that clients bind: `?`, `$1` or `$name` in a text, and a row of values for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from frazil.errors import Malformed, TooLarge
from frazil.results import Parameters, Token, bind_parameters, tokens

ROWS_MAX = 1000
"""Rows of values; the query runs once for each."""
ROWS_BYTES_MAX = 1024 * 1024
COUNTS = ("limit", "offset")
"""A parameter after one of these words is an integer."""


def with_numbers(text: str) -> str:
    """Return a text whose `?` are `$1`, `$2`. `Malformed` if it has both forms."""
    marks = [token for token in tokens(text) if token.kind == "sign" and token.text == "?"]
    if not marks:
        return text
    if names_of(text):
        raise Malformed("the text has parameters as ? and with names; use one of the two")
    parts, at = [], 0
    for number, mark in enumerate(marks, 1):
        parts += [text[at : mark.begin], f"${number}"]
        at = mark.end
    return "".join([*parts, text[at:]])


def names_of(text: str) -> list[str]:
    """Return the names of the parameters, without `$`: numbers up to the largest, or else names in
    the order of the text."""
    names = list(dict.fromkeys(token.text for token, _ in _named(text)))
    if names and all(name.isdecimal() for name in names):
        return [str(number) for number in range(1, max(map(int, names)) + 1)]
    return names


def parameter_schema(text: str, known: pa.Schema) -> pa.Schema:
    """Return the columns of a row of values. Those without a `known` type are texts."""
    types = {field.name.removeprefix("$"): field.type for field in known}
    counts = {token.text for token, word in _named(text) if word in COUNTS}
    return pa.schema(
        [
            (f"${name}", pa.int64() if name in counts else _asked(types.get(name, pa.string())))
            for name in names_of(text)
        ]
    )


def _asked(kind: pa.DataType) -> pa.DataType:
    """Ask for times in milliseconds: JDBC's driver sends these whatever the unit is. Clients that
    choose the type themselves may send finer ones."""
    return pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) else kind


def bound_texts(
    text: str, parameters: pa.Schema, rows: Sequence[pa.RecordBatch]
) -> tuple[str, ...]:
    """Return the text once per row of values."""
    names = [name.removeprefix("$") for name in parameters.names]
    if not names:
        return (text,)
    return tuple(bind_parameters(text, _parameters(names, row)) for row in _values(names, rows))


def check_rows(rows: Sequence[pa.RecordBatch]) -> None:
    """Raise `TooLarge` if these are too many rows of values, or too large ones."""
    count = sum(batch.num_rows for batch in rows)
    if count > ROWS_MAX:
        raise TooLarge(f"{count} rows of parameters are bound; the limit is {ROWS_MAX}")
    size = sum(batch.nbytes for batch in rows)
    if size > ROWS_BYTES_MAX:
        raise TooLarge(f"parameters of {size} bytes are bound; the limit is {ROWS_BYTES_MAX}")


def _named(text: str) -> Iterator[tuple[Token, str]]:
    """Yield the token after each `$`, and the word before it."""
    before, dollar = "", None
    for token in tokens(text):
        if dollar == token.begin and token.kind in ("word", "number"):
            yield token, before
            dollar = None
            continue
        if token.kind == "sign" and token.text == "$":
            dollar = token.end
        else:
            before = token.name


def _values(names: Sequence[str], rows: Sequence[pa.RecordBatch]) -> Iterator[list[Any]]:
    count = 0
    for batch in rows:
        if batch.num_columns != len(names):
            raise Malformed(
                f"the query has {len(names)} parameters, and {batch.num_columns} values are bound"
            )
        columns = [_column(batch.column(number)) for number in range(len(names))]
        for row in zip(*columns, strict=True):
            count += 1
            yield list(row)
    if count == 0:
        raise Malformed(f"the query has {len(names)} parameters, and no values are bound")


def _parameters(names: Sequence[str], row: Sequence[Any]) -> Parameters:
    values: Mapping[str, Any] = dict(zip(names, row, strict=True))
    return values if not names[0].isdecimal() else list(row)


def _column(column: pa.Array) -> list[Any]:
    kind = column.type
    try:
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", kind.tz or "UTC"))
        elif pa.types.is_duration(kind):
            column = column.cast(pa.duration("us"))
        values: list[Any] = column.to_pylist()
    except (pa.ArrowException, ValueError) as error:
        raise Malformed(f"a parameter cannot be used: {error}; bind another type") from None
    return values
