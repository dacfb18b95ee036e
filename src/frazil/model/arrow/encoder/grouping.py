"""Messages shared by many rows (resources, scopes, metrics), and requests made of them.

Consecutive rows that agree on a level share one message of it: a run. Where a run of one level
ends, the runs of all levels below end, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.model.arrow.encoder.protobuf import (
    BYTES,
    Bools,
    column_of,
    gathered,
    inside,
    joined,
    lengths_of,
    of_column,
    together,
)
from frazil.model.arrow.encoder.rows import Cells, EncoderRows
from frazil.model.arrow.encoder.value_types import LevelTypes
from frazil.model.protobuf.memory import Words

WRAP_BYTES_MAX = 1 + 10
"""Tag and length of a message."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MessageLevel:
    """Messages of one level, one per run of rows."""

    is_new: Bools
    """Per row: whether it starts a run."""
    heads: pa.Array
    """Per run: the fields of its message except the nested ones."""
    fields: Words
    """Per run: its field number in the parent message."""


def changes(rows: EncoderRows, names: Sequence[str], part: LevelTypes, above: Bools) -> Bools:
    """Return which rows are the first, or differ from the row before, on this level or above."""
    is_new = above.copy()
    is_new[1:] |= part.numbers[1:] != part.numbers[:-1]
    for name in names:
        for column in _comparable(rows[name]):
            is_new[1:] |= np.asarray(pc.not_equal(column[1:], column[:-1]))
    return is_new


def _comparable(cells: Cells) -> Iterator[pa.Array]:
    """Yield columns that are equal exactly where these cells are."""
    if not pa.types.is_map(cells.array.type):
        yield cells.filled().array
        return
    offsets, *sides = cells.pairs()
    for side in sides:
        column = side.array.cast(BYTES)
        yield gathered(column, offsets)
        lengths = lengths_of(column)
        yield gathered(column_of(lengths.view(np.uint8), np.full(len(lengths), 8)), offsets)


def requests(records: pa.Array, levels: Sequence[MessageLevel], bytes_max: int) -> Iterator[bytes]:
    """Yield requests of records, which are fields of the innermost level, the first of `levels`.
    A request exceeds `bytes_max` only with a single row."""
    count = len(records)
    is_first = _cut(lengths_of(records), levels, bytes_max)
    column, begins = records, np.arange(count)
    for level in levels:
        is_new = level.is_new | is_first
        starts = np.flatnonzero(is_new)
        runs = np.cumsum(level.is_new)[starts] - 1
        within = gathered(column, np.searchsorted(begins, np.append(starts, count)))
        message = together(of_column(level.heads.take(pa.array(runs))), of_column(within))
        column, begins = joined(inside(level.fields[runs], message)), starts
    starts = np.flatnonzero(is_first)
    whole = gathered(column, np.searchsorted(begins, np.append(starts, count)))
    yield from (request.as_py() for request in whole)


def _cut(lengths: Words, levels: Sequence[MessageLevel], bytes_max: int) -> Bools:
    """Return the rows that start a request."""
    costs = lengths.copy()
    heads = np.zeros(len(lengths), np.int64)
    for level in levels:
        cost = (lengths_of(level.heads) + WRAP_BYTES_MAX)[np.cumsum(level.is_new) - 1]
        costs += np.where(level.is_new, cost, 0)
        heads += np.where(level.is_new, 0, cost)
    ends = np.cumsum(costs)
    is_first = np.zeros(len(lengths), np.bool_)
    row = 0
    while row < len(lengths):
        is_first[row] = True
        # A request repeats the levels above its first row.
        room = bytes_max - heads[row] + ends[row] - costs[row]
        row = max(row + 1, int(np.searchsorted(ends, room, "right")))
    return is_first
