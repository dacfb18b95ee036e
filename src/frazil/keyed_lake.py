"""Keyed tables and the lake, joined: what is frozen, and what is read back.

KeyedTables ──FreezeSource──> Lake ──frozen_rows──> local files that were lost
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol
from uuid import UUID

from frazil.errors import Conflict, Unavailable, Unknown
from frazil.lake import (
    FrozenPosition,
    KeyedColumn,
    KeyedDefinition,
    Lake,
    PartitionChanges,
    bytes_behind,
)
from frazil.log import ReadableLog
from frazil.tables import FrozenTables, KeyedView, RowsView, SeedRows, TableDefinition

WAIT_S = 30.0
"""How long a round waits for rows that are durable in the log; it freezes what there is then."""


class TableViews(Protocol):
    """The part of `frazil.tables.KeyedTables` that is needed here. Any thread may use it."""

    def names(self) -> list[str]: ...

    def definition(self, name: str) -> TableDefinition: ...

    def view(self, name: str) -> KeyedView: ...

    def wait(self, name: str, token: dict[int, int], timeout_s: float) -> KeyedView: ...

    def note_frozen(self, name: str, partition: int, offset: int) -> None: ...


class FreezeSource:
    """The keyed tables of a log, as the lake sees them."""

    def __init__(self, tables: TableViews, log: ReadableLog, *, wait_s: float = WAIT_S) -> None:
        self._tables = tables
        self._log = log
        self._wait_s = wait_s
        self._topic_ids: dict[str, UUID | None] = {}
        """By table id: what is frozen of a dropped table is never said of a new topic."""

    def tables(self) -> Sequence[KeyedDefinition]:
        found = []
        for name in self._tables.names():
            with suppress(Unknown):  # dropped meanwhile
                # Before the definition: a topic exists as long as its definition does.
                topic_id = self._log.topic(self._tables.definition(name).topic).topic_id
                found.append(lake_definition(self._tables.definition(name)))
                self._topic_ids.setdefault(found[-1].table_id, topic_id)
        return found

    def changes(
        self, name: str, begins: Mapping[int, FrozenPosition], bytes_max: int
    ) -> list[PartitionChanges]:
        view = self._view(name)
        changes = [
            partition_changes(name, number, rows, begins.get(number, FrozenPosition()), bytes_max)
            for number, rows in enumerate(view.partitions)
        ]
        return [each for each in changes if each.end.offset > each.begin.offset]

    def ends(self, definition: KeyedDefinition) -> Mapping[int, int]:
        return self._ends(definition.topic)

    def _ends(self, topic: str) -> dict[int, int]:
        partitions = self._log.topic(topic).partitions
        return {each.index: each.view.last_stable_offset for each in partitions}

    def _view(self, name: str) -> KeyedView:
        ends = self._ends(self._tables.definition(name).topic)
        try:
            return self._tables.wait(name, ends, self._wait_s)
        except Unavailable:
            return self._tables.view(name)

    def pending_bytes(self, definition: KeyedDefinition, offsets: Mapping[int, int]) -> int:
        try:
            partitions = self._log.topic(definition.topic).partitions
        except Unknown:
            return 0
        return sum(bytes_behind(each.view, offsets.get(each.index, 0)) for each in partitions)

    def publish(self, definition: KeyedDefinition, partition: int, offset: int) -> None:
        topic_id = self._topic_ids.get(definition.table_id)
        with suppress(Unknown):  # dropped meanwhile
            if self._tables.definition(definition.name).feed is not None:
                self._tables.note_frozen(definition.name, partition, offset)
                return
            self._log.publish(definition.topic, partition, offset, topic_id)


def partition_changes(
    name: str, number: int, view: RowsView, begin: FrozenPosition, bytes_max: int
) -> PartitionChanges:
    """Return what happened to a partition since a position, up to about `bytes_max` of rows. Raises
    as `KeyedSource.changes` does."""
    if begin.offset > view.end_offset:
        raise Unavailable(
            f"the lake has the changes of {name}/{number} up to {begin.offset}, and its local rows "
            f"are at {view.end_offset}: they are being rebuilt"
        )
    # A lake without rows gets all that are live: there is nothing that could have died.
    then = view.as_of(begin.offset) if begin.offset else None
    made = 0 if then is None else then.row_count
    if made != begin.row:
        raise Conflict(
            f"the next row of {name}/{number} at offset {begin.offset} is {begin.row} in the lake "
            f"and {made} in the local files; remove the local files of the table: they are rebuilt"
        )
    end = view.as_of(_end_offset(view, begin, bytes_max))
    return PartitionChanges(
        partition=number,
        begin=begin,
        end=FrozenPosition(end.end_offset, end.row_count),
        dead=end.died_since(end if then is None else then),
        batches=end.rows_between(begin.row, end.row_count),
    )


def _end_offset(view: RowsView, begin: FrozenPosition, bytes_max: int) -> int:
    """Return an offset up to which about `bytes_max` of row versions were made since a position."""
    sample = next(view.rows_between(begin.row, view.row_count), None)
    if sample is None:
        return view.end_offset
    rows_max = bytes_max // max(1, sample.nbytes // sample.num_rows)
    low, high = max(begin.offset + 1, view.first_offset), view.end_offset
    if low >= high or view.row_count - begin.row <= rows_max:
        return view.end_offset
    while low < high:  # the last offset with at most so many rows below it; at least one offset
        middle = (low + high + 1) // 2
        if view.as_of(middle).row_count - begin.row <= rows_max:
            low = middle
        else:
            high = middle - 1
    return low


def lake_definition(definition: TableDefinition, topic_id: str | None = None) -> KeyedDefinition:
    """Return what the lake knows of a table. `topic_id` is of a topic that is not in our log."""
    return KeyedDefinition(
        name=definition.name,
        table_id=str(definition.table_id),
        topic=definition.topic,
        topic_id=topic_id,
        partitions=definition.partitions,
        key=definition.key,
        columns=tuple(
            KeyedColumn(
                id=column.id,
                name=column.name,
                type=column.field().type,
                is_nullable=column.is_nullable,
            )
            for column in definition.columns
        ),
    )


def seed_rows(lake: Lake) -> FrozenTables:
    """Return a function that reads the rows of a partition from the current snapshot in the lake:
    None if there are none of this table. Raises `Unavailable` if the catalog does not respond,
    `Conflict` if another program has changed the table."""

    def read(definition: TableDefinition, partition: int) -> SeedRows | None:
        found = lake.frozen_rows(lake_definition(definition), partition)
        if found is None:
            return None
        position = found.position
        return SeedRows(found.batches, end_offset=position.offset, next_row=position.row)

    return read
