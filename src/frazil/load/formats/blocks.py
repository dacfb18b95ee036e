"""What readers yield: rows with the types of a table, and errors with their lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

REASON_CHARACTERS_MAX = 300
JSON_TEXT = pa.large_string()
"""Stands for a column that holds JSON texts, because its values have several types. In tables it is
a string with the comment `JSON text`."""
JSON_COMMENT = "JSON text"
ADD_HINT = "; ADD_COLUMNS=true adds it"
"""End of errors about a field that the table has not."""

ExactError = tuple[str, str]
"""Column and reason; the column may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowError:
    """A row that could not be loaded."""

    line: int
    """Counted from 1; in formats without lines, the number of the row."""
    column: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some rows of a file."""

    rows: pa.Table
    lines: Sequence[int]
    """Where each row is, as in `RowError`."""
    errors: tuple[RowError, ...] = ()

    @property
    def row_count(self) -> int:
        count: int = self.rows.num_rows
        return count


def row_error(line: int, column: str, reason: str) -> RowError:
    if len(reason) > REASON_CHARACTERS_MAX:
        reason = f"{reason[:REASON_CHARACTERS_MAX]}…"
    return RowError(line=line, column=column, reason=reason)


def without_bad(rows: pa.Table, bad: Mapping[int, ExactError], first_line: int) -> Block:
    """Return a block without bad rows. `first_line` is the line of the first row."""
    lines = range(first_line, first_line + rows.num_rows)
    return left_out(Block(rows=rows, lines=lines), bad)


def left_out(block: Block, bad: Mapping[int, ExactError]) -> Block:
    """Return a block without bad rows, which become errors."""
    if not bad:
        return block
    kept = [index for index in range(block.rows.num_rows) if index not in bad]
    errors = [row_error(block.lines[index], *reason) for index, reason in bad.items()]
    return Block(
        rows=block.rows.take(pa.array(kept, pa.int64())),
        lines=[block.lines[index] for index in kept],
        errors=tuple(sorted((*block.errors, *errors), key=lambda error: error.line)),
    )


def target_types(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the types that are written: JSON texts are strings."""
    return pa.schema([field.with_type(written_type(field.type)) for field in schema])


def written_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that is written to Parquet."""
    if kind == JSON_TEXT:
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(written_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(written_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(written_type(kind.item_type)))
    return kind
