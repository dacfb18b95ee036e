"""What the values of rows were, read from the column `_value_types`.

A row's text has a part for each level, and each part a word for each value. Rows repeat each
other, so each text is read once. A word is a number here, its place in `Types.words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frazil.model.arrow.encoder.protobuf import Bools
from frazil.model.arrow.encoder.rows import Cells, shown
from frazil.model.protobuf.memory import Words

SCALARS = ("s", "i", "d", "b", "y", "e")
STRING, INT, DOUBLE, BOOL, BYTES, EMPTY = range(len(SCALARS))
"""Places of the words that hold no others."""
NESTED = len(SCALARS)
"""From here on there are those of arrays and kvlists."""
PARTS = {"logs": 3, "spans": 3, "metrics": 4}
"""Levels of each table: resource, scope, in metrics the metric, and the record."""
OPEN, CLOSE = "[{", "]}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelTypes:
    """The words of one level, for some rows."""

    cells: Cells | None
    """The column; None when there is none, and then all values are strings."""
    numbers: Words
    """Of each row: which text its words have. Equal numbers, equal words."""
    begins: Words
    """Of each text: where its words begin in `words`."""
    counts: Words
    """Of each text: how many there are."""
    words: Words
    """Of all texts. The first is that of a string."""

    def take(self, indices: Words) -> LevelTypes:
        """Those of some of the rows."""
        return LevelTypes(
            cells=None if self.cells is None else self.cells.take(indices),
            numbers=self.numbers[indices],
            begins=self.begins,
            counts=self.counts,
            words=self.words,
        )

    def is_plain(self) -> Bools:
        """Of which rows nothing is said, as all values are strings."""
        return np.equal(self.row_counts(), 0)

    def row_counts(self) -> Words:
        """How many words each row has."""
        return self.counts[self.numbers]

    def spread(self, *sizes: Words) -> list[Words | None]:
        """The words for values in groups, where a row has so many in each; None for a group of
        nothing but strings. `Malformed` when a row has more words, or fewer."""
        is_plain = self.is_plain()
        if self.cells is None or is_plain.all():
            return [None] * len(sizes)
        totals = sum(sizes, np.zeros(len(is_plain), np.int64))
        wrong = np.flatnonzero(~is_plain & (self.row_counts() != totals))
        if len(wrong):
            row = int(wrong[0])
            has, wants = self.row_counts()[row], totals[row]
            text = shown(self.cells.array[row])
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
    """What values were, of each level, the outermost first."""

    words: list[str]
    """Every word that occurs."""
    parts: Sequence[LevelTypes]


def read_types(cells: Cells | None, row_count: int, part_count: int) -> ValueTypes:
    """From the column, or the lack of one."""
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
            raise cells.bad(row, f"{shown(line)} is not {part_count} parts of words")
        split.append([part for part in parts if part is not None])
    found = [
        _part(cells, indices, [parts[level] for parts in split], places)
        for level in range(part_count)
    ]
    return ValueTypes(words=list(places), parts=found)


def _part(
    cells: Cells, indices: Words, lines: list[list[str]], places: dict[str, int]
) -> LevelTypes:
    """One level: what the distinct texts say of it."""
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
    """The words of one part, arrays and kvlists with all that is in them; None when it is not
    made of words."""
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
    """All numbers from each begin on, so many."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(begins - before, sizes) + np.arange(int(sizes.sum()))
