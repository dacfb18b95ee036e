"""Rows on their way back: their columns, checked, and what is inside them.

`Cells` are values of a column, or of what is inside one, which know the row that they stand in:
whatever is wrong with one of them, the error says where. Rows are counted from 0.
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

SHOWN_CHARS_MAX = 60
"""How much of a wrong value an error repeats."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Values, and the numbers of their rows."""

    array: pa.Array
    name: str
    rows: Words

    def __len__(self) -> int:
        return len(self.array)

    def bad(self, index: int, why: str) -> Malformed:
        """The error that says what is wrong with a value, and where it is."""
        return Malformed(f"row {self.rows[index]}, column {self.name}: {why}")

    def check(self, is_good: Bools, why: str) -> None:
        """`Malformed` at the first that is not."""
        if not is_good.all():
            index = int(np.argmin(is_good))
            raise self.bad(index, f"{shown(self.array[index])} {why}")

    def present(self) -> Bools:
        """Which are not null."""
        return np.asarray(self.array.is_valid())

    def given(self) -> Cells:
        """The same, none of which may be null."""
        if self.array.null_count:
            self.check(self.present(), "is not a value")
        return self

    def filled(self) -> Cells:
        """The same, with an empty text for null, or 0, or false."""
        if not self.array.null_count:
            return self
        is_text = pa.types.is_string(self.array.type)
        blank = pa.scalar("" if is_text else 0).cast(self.array.type)
        return Cells(array=self.array.fill_null(blank), name=self.name, rows=self.rows)

    def numbers(self) -> NDArray[np.generic]:
        """Those of a column of numbers; where it is null, 0."""
        return np.asarray(self.filled().array)

    def take(self, indices: Words) -> Cells:
        """Some of them."""
        return Cells(
            array=self.array.take(pa.array(indices)), name=self.name, rows=self.rows[indices]
        )

    def items(self) -> tuple[Words, Cells]:
        """What is in lists or maps, and where in there each of them begins and ends. One that is
        null must be empty: Arrow allows something behind it, but not in what was taken."""
        ends = np.asarray(self.array.offsets, np.int64)
        inner = self.array.values.slice(ends[0], ends[-1] - ends[0])
        offsets = ends - ends[0]
        cells = Cells(array=inner, name=self.name, rows=np.repeat(self.rows, np.diff(offsets)))
        return offsets, cells.given()

    def member(self, name: str) -> Cells:
        """One field of structs."""
        column = f"{self.name}.{name}"
        return Cells(array=self.array.field(name), name=column, rows=self.rows)

    def pairs(self) -> tuple[Words, Cells, Cells]:
        """Keys and values of maps, and where each map begins and ends."""
        offsets, entries = self.given().items()
        keys, values = (
            Cells(array=entries.array.field(place), name=self.name, rows=entries.rows).given()
            for place in range(2)
        )
        return offsets, keys, values


class EncoderRows:
    """Columns of some rows, looked up by name."""

    def __init__(self, columns: Mapping[str, Cells], indices: Words | None = None) -> None:
        self._columns = columns
        self._indices = indices

    def __getitem__(self, name: str) -> Cells:
        cells = self._columns[name]
        return cells if self._indices is None else cells.take(self._indices)

    def take(self, indices: Words) -> EncoderRows:
        """Some of the rows."""
        return EncoderRows(
            self._columns, indices if self._indices is None else self._indices[indices]
        )


def read_columns(table: pa.Table, schema: pa.Schema, first_row: int) -> dict[str, Cells]:
    """The columns of a table that has one chunk, as the schema wants them."""
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
    """`Malformed` when text is not UTF-8, which Arrow promises but a file may not keep: one such
    row, and whoever gets the request refuses all of it."""
    try:
        cells.array.validate(full=True)
    except pa.ArrowInvalid as error:
        for index in range(len(cells)):
            try:
                cells.array.take(pa.array([index])).validate(full=True)
            except pa.ArrowInvalid as wrong:
                raise cells.bad(index, str(wrong)) from wrong
        raise Malformed(f"column {cells.name}: {error}") from error


def shown(value: object) -> str:
    """A wrong value, or the beginning of it."""
    plain = repr(value.as_py()) if isinstance(value, pa.Scalar) else repr(value)
    return plain if len(plain) <= SHOWN_CHARS_MAX else f"{plain[:SHOWN_CHARS_MAX]}..."
