"""Cells: checked columns, and the values inside them.

Cells know the row of each value, so that errors can name it. Rows are counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from frazil.errors import Malformed
from frazil.model.arrow.encoder.protobuf import Bools
from frazil.model.protobuf.memory import Words

EXCERPT_CHARS_MAX = 60
"""Characters of a wrong value in an error."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Values, and the numbers of their rows."""

    array: pa.Array
    name: str
    rows: Words

    def __len__(self) -> int:
        return len(self.array)

    def bad(self, index: int, why: str) -> Malformed:
        """Return an error with the row, the column and what is wrong."""
        return Malformed(f"row {self.rows[index]}, column {self.name}: {why}")

    def check(self, is_good: Bools, why: str) -> None:
        """Raise `Malformed` at the first value that is not good."""
        if not is_good.all():
            index = int(np.argmin(is_good))
            raise self.bad(index, f"{excerpt(self.array[index])} {why}")

    def present(self) -> Bools:
        """Return which are not null."""
        return np.asarray(self.array.is_valid())

    def given(self) -> Cells:
        """Return itself. Raises `Malformed` if one is null."""
        if self.array.null_count:
            self.check(self.present(), "is not a value")
        return self

    def filled(self) -> Cells:
        """Return the cells with null replaced by "", 0 or false."""
        if not self.array.null_count:
            return self
        is_text = pa.types.is_string(self.array.type)
        blank = pa.scalar("" if is_text else 0).cast(self.array.type)
        return Cells(array=self.array.fill_null(blank), name=self.name, rows=self.rows)

    def numbers(self) -> NDArray[np.generic]:
        """Return the numbers; 0 for null."""
        return np.asarray(self.filled().array)

    def take(self, indices: Words) -> Cells:
        """Return the cells at these indices."""
        return Cells(
            array=self.array.take(pa.array(indices)), name=self.name, rows=self.rows[indices]
        )

    def items(self) -> tuple[Words, Cells]:
        """Return the items of lists or maps, and their offsets. A null list must be empty: Arrow
        allows items behind it, but not after `take`."""
        ends = np.asarray(self.array.offsets, np.int64)
        inner = self.array.values.slice(ends[0], ends[-1] - ends[0])
        offsets = ends - ends[0]
        cells = Cells(array=inner, name=self.name, rows=np.repeat(self.rows, np.diff(offsets)))
        return offsets, cells.given()

    def member(self, name: str) -> Cells:
        """Return one field of structs."""
        column = f"{self.name}.{name}"
        return Cells(array=self.array.field(name), name=column, rows=self.rows)

    def pairs(self) -> tuple[Words, Cells, Cells]:
        """Return offsets, keys and values of maps."""
        offsets, entries = self.given().items()
        keys, values = (
            Cells(array=entries.array.field(place), name=self.name, rows=entries.rows).given()
            for place in range(2)
        )
        return offsets, keys, values


class EncoderRows:
    """Columns of rows, by name."""

    def __init__(self, columns: Mapping[str, Cells], indices: Words | None = None) -> None:
        self._columns = columns
        self._indices = indices

    def __getitem__(self, name: str) -> Cells:
        cells = self._columns[name]
        return cells if self._indices is None else cells.take(self._indices)

    def take(self, indices: Words) -> EncoderRows:
        """Return the rows at these indices."""
        return EncoderRows(
            self._columns, indices if self._indices is None else self._indices[indices]
        )


def read_columns(table: pa.Table, schema: pa.Schema, first_row: int) -> dict[str, Cells]:
    """Return the columns of a table, cast to the schema."""
    numbers = np.arange(first_row, first_row + table.num_rows)
    return {
        field.name: _read_column(table.column(field.name), field, numbers)
        for field in schema
        if field.name in table.column_names
    }


def _read_column(column: pa.ChunkedArray, field: pa.Field, rows: Words) -> Cells:
    if column.type != field.type:
        try:
            column = column.cast(field.type)
        except pa.ArrowInvalid as error:
            raise Malformed(
                f"rows {rows[0]} to {rows[-1]}, column {field.name}: {error}"
            ) from error
        except pa.ArrowNotImplementedError as error:
            raise Malformed(f"column {field.name} is of {column.type}, not {field.type}") from error
    cells = Cells(array=column.combine_chunks(), name=field.name, rows=rows)
    _check_whole(cells)
    return cells if field.nullable else cells.given()


def _check_whole(cells: Cells) -> None:
    """Raise `Malformed` if text is not UTF-8, which Arrow requires but a file may violate: one
    such row would make a server reject the whole request."""
    try:
        cells.array.validate(full=True)
    except pa.ArrowInvalid as error:
        for index in range(len(cells)):
            try:
                cells.array.take(pa.array([index])).validate(full=True)
            except pa.ArrowInvalid as wrong:
                raise cells.bad(index, str(wrong)) from wrong
        raise Malformed(f"column {cells.name}: {error}") from error


def excerpt(value: object) -> str:
    """Return a wrong value, shortened."""
    plain = repr(value.as_py()) if isinstance(value, pa.Scalar) else repr(value)
    return plain if len(plain) <= EXCERPT_CHARS_MAX else f"{plain[:EXCERPT_CHARS_MAX]}..."
