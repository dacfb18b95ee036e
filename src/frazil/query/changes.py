"""Where a column of text changes from one row to the next: one compiled pass, without the GIL."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from frazil.query.compiling import compiled, part
from frazil.query.texts import Bytes, Ints

BLOCK_ROWS = 64
"""Rows that are compared at once: most runs are longer."""

Flags = npt.NDArray[np.bool_]


@compiled
def mark_changes(offsets: Ints, letters: Bytes, is_new: Flags) -> None:
    """Mark the rows whose text is not that of the row before.

    Rows of one length that are all the same have the same bytes again and again: then a block of
    them, moved by that length, lies on itself. That is compared without a branch, many at a time.
    """
    row = 1
    while row < len(is_new):
        end = min(row + BLOCK_ROWS, len(is_new))
        length = offsets[row] - offsets[row - 1]
        begins, ends = offsets[row:end], offsets[row + 1 : end + 1]
        lengths = np.int32(0)
        for at in range(len(begins)):
            lengths |= (ends[at] - begins[at]) ^ length
        differences = np.uint8(0)
        if lengths == 0:
            some = letters[offsets[row - 1] : offsets[end - 1]]
            moved = letters[offsets[row] : offsets[end]]
            for at in range(len(some)):
                differences |= some[at] ^ moved[at]
        if lengths != 0 or differences != 0:
            _mark_one_by_one(offsets, letters, is_new, row, end)
        row = end


@part
def _mark_one_by_one(offsets: Ints, letters: Bytes, is_new: Flags, row: int, end: int) -> None:
    one = np.uint64(1)
    for at in range(row, end):
        before = np.uint64(offsets[at - 1])
        here = np.uint64(offsets[at])
        stop = np.uint64(offsets[at + 1])
        is_same = here - before == stop - here
        while is_same and here < stop:
            is_same = letters[before] == letters[here]
            before += one
            here += one
        if not is_same:
            is_new[at] = True
