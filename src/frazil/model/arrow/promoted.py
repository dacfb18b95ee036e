"""Promoted columns: attributes that the settings name, as columns of their own.

The value of a column is a function of the text that the map has, so it can be computed for rows
that were written before the column existed. A text that is not a value of the column's type is
null: never an error, never another number.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from frazil.model.arrow.schemas import (
    BOOLEAN,
    DICTIONARY,
    DICTIONARY_TABLES,
    DOUBLE,
    LONG,
    STRING,
    TABLES,
)
from frazil.model.promotion import PromotedColumn, PromotedType, Promotions

ARROW_TYPES: Mapping[PromotedType, pa.DataType] = {
    "VARCHAR": STRING,
    "BIGINT": LONG,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
}
SQL_TYPES = {kind: name for name, kind in ARROW_TYPES.items()}
PROMOTED = b"promoted"
"""Metadata of a promoted column: whose attribute it is, and the key, as JSON."""

INTEGER = r"^-?0*[0-9]{1,19}$"
DECIMAL = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,9})?$"
NOT_ZERO = r"^-?[0.]*[1-9]"
LONG_INTEGER = r"^-?[0-9]{16,}$"
"""Integers that a double may not be able to hold."""
NAMED = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Doubles that are not numbers, as the maps have them."""
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
DIGITS_MAX = 18
"""Every integer of so many digits is a BIGINT."""


def promoted_field(column: PromotedColumn, table: str) -> pa.Field:
    """Return the column of a schema. Its metadata says what it is, also in another process."""
    metadata = {"comment": column.comment(table), PROMOTED: json.dumps([column.of, column.key])}
    return pa.field(column.name, ARROW_TYPES[column.kind], metadata=metadata)


def promotion_of(field: pa.Field) -> PromotedColumn | None:
    """Return what a column of a schema is promoted from; None for any other column."""
    entry = (field.metadata or {}).get(PROMOTED)
    if entry is None:
        return None
    of, key = json.loads(entry)
    return PromotedColumn(name=field.name, of=of, key=key, kind=SQL_TYPES[field.type])


def promoted_in(schema: pa.Schema) -> tuple[PromotedColumn, ...]:
    """Return the promoted columns of a schema."""
    return tuple(found for field in schema if (found := promotion_of(field)) is not None)


def tables_with(promotions: Promotions) -> dict[str, pa.Schema]:
    """Return the telemetry tables with these columns after their own."""
    return {name: table_with(name, promotions.get(name, ())) for name in TABLES}


@lru_cache
def table_with(
    name: str, columns: tuple[PromotedColumn, ...], *, use_dictionaries: bool = False
) -> pa.Schema:
    """Return one of these tables; with dictionary-encoded texts, as in `DICTIONARY_TABLES`."""
    base = DICTIONARY_TABLES[name] if use_dictionaries else TABLES[name]
    if not columns:
        return base
    added = [promoted_field(column, name) for column in columns]
    if use_dictionaries:
        added = [
            field.with_type(DICTIONARY) if is_shared(column) else field
            for field, column in zip(added, columns, strict=True)
        ]
    return pa.schema([*base, *added])


def is_shared(column: PromotedColumn) -> bool:
    """Return whether it has texts that a request has once for many rows."""
    return column.of != "record" and column.kind == "VARCHAR"


def with_filled(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Return the rows with these promoted columns computed from their maps."""
    columns = [
        promoted_values(batch.column(found.map_name), found)
        if field.name in names and (found := promotion_of(field)) is not None
        else batch.column(index)
        for index, field in enumerate(batch.schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def promoted_values(maps: pa.MapArray, column: PromotedColumn) -> pa.Array:
    """Return the values of a promoted column of rows with these maps."""
    return parse_texts(pc.map_lookup(maps, pa.scalar(column.key), "last"), column.kind)


def parse_texts(texts: pa.StringArray, kind: PromotedType) -> pa.Array:
    """Return texts of attributes as values of a type; null for those that are none."""
    if kind == "VARCHAR":
        return texts
    # Most attributes have few values, and parsing one costs more than finding it again.
    distinct = texts.dictionary_encode()
    if 2 * len(distinct.dictionary) > len(texts):
        return _values(texts, kind)
    return _values(distinct.dictionary, kind).take(distinct.indices)


def _values(texts: pa.StringArray, kind: PromotedType) -> pa.Array:
    if kind == "BIGINT":
        return _integers(texts)
    if kind == "DOUBLE":
        return _doubles(texts)
    is_true = pc.equal(texts, "true")
    return pc.if_else(pc.or_(is_true, pc.equal(texts, "false")), is_true, None)


def _integers(texts: pa.StringArray) -> pa.Array:
    texts = _matching(texts, INTEGER)
    is_long = pc.greater(pc.binary_length(texts), DIGITS_MAX)
    if not pc.any(is_long).as_py():
        return texts.cast(LONG)
    values = pc.if_else(is_long, None, texts).cast(LONG)
    rest = [int(_digits(text)) for text in pc.filter(texts, is_long).to_pylist()]
    fitting = [value if LONG_MIN <= value <= LONG_MAX else None for value in rest]
    return pc.replace_with_mask(values, pc.fill_null(is_long, False), pa.array(fitting, LONG))


def _doubles(texts: pa.StringArray) -> pa.Array:
    numbers = _matching(texts, DECIMAL)
    values = numbers.cast(DOUBLE)
    # A number that is too large, or too close to zero, would become another one.
    is_lost = pc.or_(
        pc.is_inf(values),
        pc.and_(pc.equal(values, 0.0), pc.match_substring_regex(numbers, NOT_ZERO)),
    )
    is_long = pc.match_substring_regex(numbers, LONG_INTEGER)
    if pc.any(is_long).as_py():
        is_lost = pc.or_(is_lost, _inexact(numbers, values, is_long))
    values = pc.if_else(is_lost, None, values)
    for name, value in NAMED.items():
        values = pc.if_else(pc.fill_null(pc.equal(texts, name), False), value, values)
    return values


def _inexact(numbers: pa.Array, values: pa.Array, is_long: pa.BooleanArray) -> pa.BooleanArray:
    """Return which long integers no double has, nor the text of one."""
    texts, doubles = (pc.filter(column, is_long).to_pylist() for column in (numbers, values))
    is_inexact = [
        _digits(text) not in (f"{value:.0f}", _shortest(value))
        for text, value in zip(texts, doubles, strict=True)
    ]
    no = pa.array([False] * len(values), BOOLEAN)
    return pc.replace_with_mask(no, pc.fill_null(is_long, False), pa.array(is_inexact, BOOLEAN))


def _digits(text: str) -> str:
    """Return an integer without leading zeros."""
    sign = "-" if text.startswith("-") else ""
    return sign + (text.removeprefix("-").lstrip("0") or "0")


def _shortest(value: float) -> str:
    """Return a whole number as the maps have it: its shortest digits, then zeros."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    digits, _, rest = mantissa.partition(".")
    if not exponent:
        return digits
    rest = "" if rest == "0" else rest
    return digits + rest.ljust(int(exponent), "0")


def _matching(texts: pa.StringArray, pattern: str) -> pa.StringArray:
    """Return the texts that match a pattern; null for the others."""
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, STRING))
