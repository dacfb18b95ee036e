"""What is said once for many rows: resources, scopes and metrics, and requests made of them.

Rows that follow each other and agree on a level share one message of it: they are a run. Where a
run of one level ends, so do those of all levels below.
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
    """Messages of one level, one for each run."""

    is_new: Bools
    """Of each row: whether a run begins with it."""
    heads: pa.Array
    """Of each run: the fields of its message, but for what it is about."""
    fields: Words
    """Of each run: which field of the message above it is."""


def changes(rows: EncoderRows, names: Sequence[str], part: LevelTypes, above: Bools) -> Bools:
    """Which rows are the first, or differ from the one before them, on this level or above."""
    is_new = above.copy()
    is_new[1:] |= part.numbers[1:] != part.numbers[:-1]
    for name in names:
        for column in _comparable(rows[name]):
            is_new[1:] |= np.asarray(pc.not_equal(column[1:], column[:-1]))
    return is_new


def _comparable(cells: Cells) -> Iterator[pa.Array]:
    """Columns that have equal values in rows where this one has."""
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
    """Requests of records, which are fields of the innermost level; it comes first of the levels.
    One has more than this many bytes only when it has a single row."""
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
    """With which rows a request begins."""
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
        # What is above the first row comes along, also when it was said before.
        room = bytes_max - heads[row] + ends[row] - costs[row]
        row = max(row + 1, int(np.searchsorted(ends, room, "right")))
    return is_first
