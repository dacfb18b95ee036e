"""Read the column `_value_types`: the types of values before they became text.

A row has a part per level, and each part a type word per value. Rows repeat each other, so each
distinct text is parsed once. A word is represented by its index in `ValueTypes.words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frazil.model.arrow.encoder.protobuf import Bools
from frazil.model.arrow.encoder.rows import Cells, excerpt
from frazil.model.protobuf.memory import Words

SCALARS = ("s", "i", "d", "b", "y", "e")
STRING, INT, DOUBLE, BOOL, BYTES, EMPTY = range(len(SCALARS))
"""Indices of the scalar words."""
NESTED = len(SCALARS)
"""Indices from here on are arrays and kvlists."""
PARTS = {"logs": 3, "spans": 3, "metrics": 4}
"""Levels of each table: resource, scope, metric (metrics only), record."""
OPEN, CLOSE = "[{", "]}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelTypes:
    """Type words of one level, for some rows."""

    cells: Cells | None
    """The column; None if there is none, then all values are strings."""
    numbers: Words
    """Per row: number of its text. Equal numbers mean equal words."""
    begins: Words
    """Per text: where its words start in `words`."""
    counts: Words
    """Per text: its number of words."""
    words: Words
    """Words of all texts. The first is that of a string."""

    def take(self, indices: Words) -> LevelTypes:
        """Return the types of these rows."""
        return LevelTypes(
            cells=None if self.cells is None else self.cells.take(indices),
            numbers=self.numbers[indices],
            begins=self.begins,
            counts=self.counts,
            words=self.words,
        )

    def is_plain(self) -> Bools:
        """Return which rows have only strings."""
        return np.equal(self.row_counts(), 0)

    def row_counts(self) -> Words:
        """Return the number of words per row."""
        return self.counts[self.numbers]

    def spread(self, *sizes: Words) -> list[Words | None]:
        """Return the words of values in groups of these sizes per row; None for a group of only
        strings. Raises `Malformed` if a row has more or fewer words."""
        is_plain = self.is_plain()
        if self.cells is None or is_plain.all():
            return [None] * len(sizes)
        totals = sum(sizes, np.zeros(len(is_plain), np.int64))
        wrong = np.flatnonzero(~is_plain & (self.row_counts() != totals))
        if len(wrong):
            row = int(wrong[0])
            has, wants = self.row_counts()[row], totals[row]
            text = excerpt(self.cells.array[row])
            raise self.cells.bad(row, f"{text} has {has} words for {wants} values")
        begins = self.begins[self.numbers]
        spread: list[Words | None] = []
        for size in sizes:
            places = np.where(np.repeat(is_plain, size), 0, _ranges(begins, size))
            spread.append(self.words[places])
            begins = begins + size
        return spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueTypes:
    """Types of values per level, outermost first."""

    words: list[str]
    """All distinct words."""
    parts: Sequence[LevelTypes]


def read_types(cells: Cells | None, row_count: int, part_count: int) -> ValueTypes:
    """Parse the column; without one, all values are strings."""
    words = list(SCALARS)
    if cells is None:
        nothing = np.zeros(row_count, np.int64)
        plain = LevelTypes(
            cells=None, numbers=nothing, begins=nothing[:1], counts=nothing[:1], words=nothing[:1]
        )
        return ValueTypes(words=words, parts=[plain] * part_count)
    encoded = cells.array.fill_null("|" * (part_count - 1)).dictionary_encode()
    indices = np.asarray(encoded.indices, np.int64)
    lines = encoded.dictionary.to_pylist()
    places = {word: place for place, word in enumerate(words)}
    split: list[list[list[str]]] = []
    for number, line in enumerate(lines):
        parts = [words_of(part) for part in line.split("|")]
        if len(parts) != part_count or None in parts:
            row = int(np.argmax(indices == number))
            raise cells.bad(row, f"{excerpt(line)} is not {part_count} parts of words")
        split.append([part for part in parts if part is not None])
    levels = [
        _part(cells, indices, [parts[level] for parts in split], places)
        for level in range(part_count)
    ]
    return ValueTypes(words=list(places), parts=levels)


def _part(
    cells: Cells, indices: Words, lines: list[list[str]], places: dict[str, int]
) -> LevelTypes:
    """Return the types of one level."""
    distinct: dict[tuple[str, ...], int] = {}
    numbers = np.array(
        [distinct.setdefault(tuple(line), len(distinct)) for line in lines], np.int64
    )
    counts = np.array([len(line) for line in distinct], np.int64)
    flat = [STRING]
    flat += [places.setdefault(word, len(places)) for line in distinct for word in line]
    return LevelTypes(
        cells=cells,
        numbers=numbers[indices],
        begins=np.cumsum(counts) - counts + 1,
        counts=counts,
        words=np.array(flat, np.int64),
    )


def words_of(part: str) -> list[str] | None:
    """Split a part into words, arrays and kvlists with their contents; None if it is invalid."""
    words = []
    begin = 0
    closing: list[str] = []
    for place, letter in enumerate(part):
        if letter in OPEN:
            closing.append(CLOSE[OPEN.index(letter)])
        elif letter in CLOSE:
            if not closing or closing.pop() != letter:
                return None
        elif letter not in SCALARS:
            return None
        if not closing:
            words.append(part[begin : place + 1])
            begin = place + 1
    return None if closing else words


def _ranges(begins: Words, sizes: Words) -> Words:
    """Return consecutive numbers, `sizes` of them from each begin on."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(begins - before, sizes) + np.arange(int(sizes.sum()))
