"""The rows of a keyed table for one query: now, as of offsets or a time, or its changes.

What a query reads are row segments and, of those with dead row versions, one bit per row version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.errors import Malformed, OutOfRange, TooLarge
from frazil.query.scan.keyed_tables import KeyedPins
from frazil.query.sql.as_of import AsOf
from frazil.query.sql.changes import ChangesOf, Moment, changes_schema

if TYPE_CHECKING:
    from frazil.tables import KeyedView, RowsPart, RowsView, TableDefinition, Token

US_PER_MS = 1000
CHANGED_ROWS_MAX = 1_000_000
"""Changes that one `changes(…)` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedScan:
    """What a query reads of a keyed table: segments, or rows that were found already."""

    definition: TableDefinition
    view: KeyedView | None = None
    """The rows by key; None for changes."""
    parts: tuple[RowsPart, ...] = ()
    found: tuple[pa.RecordBatch, ...] = ()
    note: str
    """For EXPLAIN."""

    @property
    def row_count(self) -> int:
        """Live rows of the segments, and rows that were found."""
        return sum(part.row_count for part in self.parts) + sum(map(len, self.found))


def keyed_scan(pins: KeyedPins, table: str, as_of: AsOf | None) -> KeyedScan:
    """Return what to read of a keyed table. `OutOfRange` if it no longer has that moment."""
    view = pins.views[table]
    if as_of is not None:
        moment = Moment(time_us=as_of.time_us, offsets=as_of.offsets)
        view = view.as_of(offsets_of(moment, view, pins))
    parts = tuple(part for partition in view.partitions for part in partition.parts)
    return KeyedScan(
        definition=view.definition,
        view=view,
        parts=tuple(part for part in parts if part.row_count),
        note=f"as of {offsets_text(view.offsets)}",
    )


def offsets_of(moment: Moment, view: KeyedView, pins: KeyedPins) -> Token:
    """Return the offset of each partition at a moment of a table."""
    definition = view.definition
    if moment.time_us is not None:
        then = pins.source.offsets_at(definition.name, moment.time_us // US_PER_MS)
        # What is written and not folded yet belongs to no view.
        return {number: min(then[number], end) for number, end in view.offsets.items()}
    assert moment.offsets is not None
    given = {0: moment.offsets} if isinstance(moment.offsets, int) else dict(moment.offsets)
    if given.keys() != view.offsets.keys():
        raise Malformed(
            f"table {definition.name} has {definition.partitions} partitions; write an offset for "
            f"each, such as {offsets_text(view.offsets)}"
        )
    for number, offset in given.items():
        if offset > view.offsets[number]:
            raise OutOfRange(
                f"offset {offset} of table {definition.name} is not written yet, or not readable "
                f"yet: partition {number} ends at {view.offsets[number]}"
            )
    return given


def offsets_text(offsets: Token) -> str:
    """Return offsets as a text writes them after AS OF."""
    if len(offsets) == 1:
        return f"OFFSET {offsets[0]}"
    listed = ", ".join(f'"{number}": {offset}' for number, offset in sorted(offsets.items()))
    return f"OFFSET '{{{listed}}}'"


def changes_scan(pins: KeyedPins, changes: ChangesOf) -> KeyedScan:
    """Return the changes of a keyed table between two moments."""
    view = pins.views[changes.table]
    begin = offsets_of(changes.begin, view, pins)
    end = view.offsets if changes.end is None else offsets_of(changes.end, view, pins)
    if any(begin[number] > end[number] for number in begin):
        raise Malformed(
            f"changes of {changes.table}: {offsets_text(begin)} is after {offsets_text(end)}"
        )
    count = sum(
        _change_count(partition, begin[number], end[number])
        for number, partition in enumerate(view.partitions)
    )
    if count > CHANGED_ROWS_MAX:
        raise TooLarge(
            f"there are {count} changes, more than {CHANGED_ROWS_MAX}; read them in smaller ranges"
        )
    schema = changes_schema(view.definition.schema)
    return KeyedScan(
        definition=view.definition,
        found=tuple(
            pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            for batch in _changes(view, begin, end)
        ),
        note=f"changes from {offsets_text(begin)} to {offsets_text(end)}",
    )


def _change_count(partition: RowsView, begin: int, end: int) -> int:
    first, last = partition.as_of(begin), partition.as_of(end)
    return last.row_count - first.row_count + last.death_count - first.death_count


def _changes(view: KeyedView, begin: Token, end: Token) -> Iterator[pa.RecordBatch]:
    for number, partition in enumerate(view.partitions):
        batch = partition.changes(begin[number], end[number])
        if batch.num_rows:
            yield batch
