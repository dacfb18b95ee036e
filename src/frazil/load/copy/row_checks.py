"""What a row must be for its table, beyond the types of its values. Each row that is not becomes an
error with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import TooLarge
from frazil.load.formats.blocks import Block, ExactError, left_out
from frazil.tables import KEY_BYTES_MAX, key_array


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRows:
    """What a keyed table takes."""

    key: tuple[str, ...]
    row_bytes_max: int


def checked(blocks: Iterable[Block], schema: pa.Schema, keyed: KeyedRows | None) -> Iterator[Block]:
    """Yield blocks without rows that lack a value, or that a keyed table does not take."""
    required = [field.name for field in schema if not field.nullable]
    for block in blocks:
        bad = _missing(block.rows, required)
        if keyed is not None:
            for found in (_damaged(block.rows), _too_large(block.rows, keyed.row_bytes_max)):
                bad = {**found, **bad}
            bad = {**_long_keys(block.rows, keyed.key, bad), **bad}
        yield left_out(block, bad)


def _missing(rows: pa.Table, required: Iterable[str]) -> dict[int, ExactError]:
    return {
        index: (name, "it must not be NULL, but the row has no value for it")
        for name in required
        if rows.column(name).null_count
        for index in pc.indices_nonzero(rows.column(name).is_null()).to_pylist()
    }


def _damaged(rows: pa.Table) -> dict[int, ExactError]:
    """Find values that Arrow should not have: files have types, but nobody checked the values."""
    bad: dict[int, ExactError] = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            for index in range(rows.num_rows):
                try:
                    column.slice(index, 1).combine_chunks().validate(full=True)
                except pa.ArrowInvalid as error:
                    bad[index] = (name, f"its value is damaged: {error}")
    return bad


def _too_large(rows: pa.Table, bytes_max: int, first: int = 0) -> dict[int, ExactError]:
    if rows.nbytes <= bytes_max:
        return {}
    if rows.num_rows == 1:
        return {first: ("", f"the row has more than {bytes_max} bytes")}
    half = rows.num_rows // 2
    return {
        **_too_large(rows.slice(0, half), bytes_max, first),
        **_too_large(rows.slice(half), bytes_max, first + half),
    }


def _long_keys(
    rows: pa.Table, key: Iterable[str], bad: dict[int, ExactError]
) -> dict[int, ExactError]:
    """Find keys that are too long. Only those of rows that are not bad already."""
    columns = [rows.column(name) for name in key]
    texts = [c for c in columns if pa.types.is_string(c.type) or pa.types.is_binary(c.type)]
    if not texts or not rows.num_rows:
        return {}
    # What the other columns take at most, with the lengths of texts.
    lengths = pa.array([16 * len(columns)] * rows.num_rows, pa.int64())
    for column in texts:
        lengths = pc.add(lengths, pc.fill_null(pc.binary_length(column), 0).cast(pa.int64()))
    suspects = pc.indices_nonzero(pc.greater(lengths, KEY_BYTES_MAX))
    found: dict[int, ExactError] = {}
    for index in suspects.to_pylist():
        if index in bad:
            continue
        try:
            key_array([column.slice(index, 1).combine_chunks() for column in columns])
        except TooLarge as error:
            found[index] = (next(iter(key)), str(error))
    return found
