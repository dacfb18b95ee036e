"""KeyedTable: all partitions of a table, as one. KeyedView: its rows at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from frazil.disk import Disk
from frazil.errors import Conflict, Malformed, OutOfRange, Overloaded
from frazil.settings import TablesConfig
from frazil.tables.change_log import ChangeLog
from frazil.tables.definition import TableDefinition
from frazil.tables.definition_file import partition_folder
from frazil.tables.fold import OnUnfit, PartitionFold
from frazil.tables.keys.kernels import NO_ROW, Longs
from frazil.tables.keys.key_block import block_of
from frazil.tables.keys.key_index import bytes_for
from frazil.tables.rows.mapped_pages import MappedPages
from frazil.tables.rows.row_segment import empty_batch
from frazil.tables.seed import seed_partition
from frazil.tables.topic_feed import FeedCodec
from frazil.tables.view import Key, RowsView, key_array_of
from frazil.tables.writer import Token, partitions_of

Pressure = Literal["normal", "high", "full"]
PRESSURE_HIGH = 0.9
"""Share of `tables.key_bytes_max` above which a table reports pressure."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyedView:
    """The rows of a table, each partition as of an offset. Any thread may use it."""

    definition: TableDefinition
    partitions: tuple[RowsView, ...]

    @property
    def _key_types(self) -> list[pa.DataType]:
        return [column.field().type for column in self.definition.key_columns]

    @property
    def offsets(self) -> Token:
        """The end offset of each partition."""
        return {number: view.end_offset for number, view in enumerate(self.partitions)}

    @property
    def first_offsets(self) -> Token:
        """The earliest offset that `as_of` takes, of each partition."""
        return {number: view.first_offset for number, view in enumerate(self.partitions)}

    @property
    def live_count(self) -> int:
        return sum(view.live_count for view in self.partitions)

    def as_of(self, offsets: Mapping[int, int]) -> KeyedView:
        """Return the rows as of these offsets; partitions that are not named stay as they are."""
        views = [
            view.as_of(offsets.get(number, view.end_offset))
            for number, view in enumerate(self.partitions)
        ]
        return KeyedView(self.definition, tuple(views))

    def get(self, key: Key) -> dict[str, object] | None:
        """Return the row of a key, None if there is none."""
        return self.partitions[self.partition_of(key)].get(key)

    def history(self, key: Key) -> pa.RecordBatch:
        """Return the versions of one key that are still known, in the order of the log:
        `_change` (insert, update, delete), `_offset`, and the columns after the change, or before
        it if the row was deleted. `_change` is null of a version made before `first_offsets`."""
        return self.partitions[self.partition_of(key)].history(key)

    def partition_of(self, key: Key) -> int:
        """Return the partition that has a key, or would have it."""
        if len(self.partitions) == 1:
            return 0
        return int(self._owners(key_array_of(self._key_types, [key]))[0])

    def _owners(self, keys: pa.Array) -> Longs:
        """Return the partition of each canonical key."""
        if self.definition.feed is None:
            return partitions_of(self.definition, keys)
        # Whoever writes to the topic has chosen the partitions.
        owners: Longs = np.zeros(len(keys), np.int64)
        block = block_of(keys)
        for number, view in enumerate(self.partitions):
            owners[view.find(block) != NO_ROW] = number
        return owners

    def get_many(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return the rows of the keys that exist, in the order of the keys."""
        array = key_array_of(self._key_types, keys)
        owners = self._owners(array)
        parts, places = [], []
        for number in np.unique(owners).tolist():
            positions = np.flatnonzero(owners == number)
            view, mine = self.partitions[number], array.take(pa.array(positions))
            parts.append(view.get_many(mine))
            places.append(positions[view.find(block_of(mine)) != NO_ROW])
        if not parts:
            return empty_batch(self.definition.schema)
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate(places))
        return pa.concat_batches(parts).take(pa.array(order))

    def take(self, keys: Sequence[tuple[object, ...]]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the keys that exist, in no order, with their `_offset`. A key is a
        tuple, also if it has one column."""
        single = len(self.definition.key) == 1
        array = key_array_of(self._key_types, [key[0] if single else key for key in keys])
        owners = self._owners(array)
        for number in np.unique(owners).tolist():
            mine = array.take(pa.array(np.flatnonzero(owners == number)))
            yield self.partitions[number].take(mine)

    def scan(self, lower: Key | None, upper: Key | None) -> Iterator[pa.RecordBatch]:
        """Yield the live rows with `lower` <= key < `upper`, in no order."""
        for view in self.partitions:
            yield from view.scan(lower, upper)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the live rows."""
        for view in self.partitions:
            yield from view.batches(columns)


class KeyedTable:
    """The folds of a table. Owned by one thread; `view`, `check_new_keys` and what they return may
    be used by any."""

    def __init__(
        self,
        disk: Disk,
        log: ChangeLog,
        definition: TableDefinition,
        config: TablesConfig | None = None,
        codec: FeedCodec | None = None,
        on_unfit: OnUnfit | None = None,
    ) -> None:
        """`codec` reads the records of a topic that feeds the table; `on_unfit` is told which are
        no changes."""
        assert codec is not None or definition.feed is None
        self.definition = definition
        self._codec = None if definition.feed is None else codec
        self._on_unfit = on_unfit
        self._config = config or TablesConfig()
        self._disk = disk
        self._log = log
        self._pages = MappedPages(self._config.mapped_bytes_max)
        self.folds = tuple(self._open_fold(number) for number in range(definition.partitions))

    def _open_fold(self, partition: int) -> PartitionFold:
        definition = self.definition
        folder = partition_folder(definition.name, partition)
        log = self._log.partition(definition.topic, partition)
        return PartitionFold(
            self._disk,
            folder,
            definition,
            log,
            self._config,
            self._pages,
            self._codec,
            self._on_unfit,
        )

    def view(self) -> KeyedView:
        """Return the rows as of the last step."""
        return KeyedView(self.definition, tuple(fold.view for fold in self.folds))

    def step(self) -> int:
        """Apply new changes, and seal what is large. Returns how many offsets were applied."""
        count = self.apply()
        self.maintain()
        return count

    def apply(self) -> int:
        """Apply new changes. Returns how many offsets were applied. After an error the table cannot
        be used any more: open it again."""
        if self.definition.feed is None or len(self.folds) == 1:
            return sum(fold.step() for fold in self.folds)
        return sum(self._step_fed(fold) for fold in self.folds)

    def _step_fed(self, fold: PartitionFold) -> int:
        """Step a partition, whose keys no other one may have: then nobody could tell which row is
        the later one."""
        before = fold.state.row_count
        count = fold.step()
        for segment in fold.state.segments:
            rows = segment.batch.num_rows
            if not rows or segment.row_at(rows - 1) < before:
                continue
            for other in self.folds:
                if other is fold:
                    continue
                is_both = other.view.find(segment.keys) != NO_ROW
                if is_both.any():
                    is_both &= fold.view.find(segment.keys) != NO_ROW
                if is_both.any():
                    position = int(np.argmax(is_both))
                    row = segment.batch.slice(position, 1).select(self.definition.key)
                    raise Conflict(
                        f"partitions {other.log.index} and {fold.log.index} of topic "
                        f"{fold.log.topic} both have the key {row.to_pylist()[0]}; a topic that "
                        "feeds a table has to be partitioned by key"
                    )
        return count

    def maintain(self) -> None:
        """Seal what is large. Raises `OSError`; it can be repeated then."""
        for fold in self.folds:
            fold.maintain()

    def catch_up(self) -> None:
        """Step until everything that is durable is applied."""
        while any(fold.lag > 0 for fold in self.folds):
            self.step()

    def checkpoint(self) -> None:
        """Save all partitions: the next start reads nothing of the log."""
        for fold in self.folds:
            fold.checkpoint()

    def compact(self, horizons: Mapping[int, int]) -> bool:
        """Rewrite row files without what died below these offsets, by partition: once for each, at
        most. Returns whether there was something to do; then there may be more."""
        done = [self.folds[number].compact(horizon) for number, horizon in horizons.items()]
        return any(done)

    def seed(
        self, partition: int, batches: Iterable[pa.RecordBatch], *, end_offset: int, next_row: int
    ) -> int:
        """Replace what a partition has by its rows as of an offset, as the lake has them, because
        the log no longer has what its files lack (`PartitionFold.needs_seed`). Returns how many
        rows there are. Raises what `seed_partition` does, and `OutOfRange` if the log does not go
        on from there. Views taken before stay as they are."""
        log = self.folds[partition].log.view
        if not log.start_offset <= end_offset <= log.last_stable_offset:
            raise OutOfRange(
                f"rows as of {end_offset} cannot seed table {self.definition.name}: the log has "
                f"the changes from {log.start_offset} to {log.last_stable_offset}"
            )
        folds = list(self.folds)
        folds[partition].close()
        try:
            return seed_partition(
                self._disk,
                self.definition,
                partition,
                batches,
                end_offset=end_offset,
                next_row=next_row,
                config=self._config,
            )
        finally:  # what is in files may have changed, also after an error
            folds[partition] = self._open_fold(partition)
            self.folds = tuple(folds)

    def release_memory(self) -> None:
        """Give back memory of mapped files and of the last seals, as when there is nothing to
        do."""
        for fold in self.folds:
            fold.release_memory()

    def history(self, key: Key) -> pa.RecordBatch:
        """Return the versions of one key that are still known; see `KeyedView`."""
        return self.view().history(key)

    @property
    def file_bytes(self) -> int:
        """Size of all row files."""
        return sum(fold.file_bytes for fold in self.folds)

    @property
    def mapped_bytes(self) -> int:
        """Memory of mapped row files, at most."""
        return self._pages.bytes

    def has(self, token: Token) -> bool:
        """Return whether the view has a write."""
        return all(self.folds[number].view.end_offset >= end for number, end in token.items())

    def durable(self, partitions: Iterable[int]) -> Token:
        """Return where the changes that are durable now end."""
        return {number: self.folds[number].log.view.last_stable_offset for number in partitions}

    @property
    def key_bytes(self) -> int:
        """Memory of all key indexes."""
        return sum(fold.key_bytes for fold in self.folds)

    @property
    def row_bytes(self) -> int:
        """Row versions and deaths, in memory and in files."""
        return sum(fold.state.row_bytes for fold in self.folds)

    @property
    def open_bytes(self) -> int:
        """Memory of what is in no file."""
        return sum(fold.state.open_bytes for fold in self.folds)

    @property
    def dead_rows(self) -> int:
        """Row versions that were replaced or deleted."""
        return sum(fold.state.dead_rows for fold in self.folds)

    @property
    def checkpointed_offsets(self) -> list[int]:
        """The offsets that the saved key indexes are as of."""
        return [fold.checkpointed_offset for fold in self.folds]

    @property
    def pressure(self) -> Pressure:
        """`normal`; `high` near `tables.key_bytes_max`; `full`: new keys are refused."""
        return pressure_of(self.key_bytes, self._config)

    def check_new_keys(self, partition: int, keys: pa.Array, other_bytes: int = 0) -> None:
        """Raise `Overloaded` if canonical keys need memory above `tables.key_bytes_max`. Keys that
        exist never do. What is in the log already is applied in any case: the budget is enforced
        before a write is acknowledged, never after. `other_bytes`: of other tables."""
        if self.has_room(partition, len(keys), other_bytes):
            return
        rows = self.folds[partition].view.find(block_of(keys))
        new = int(np.count_nonzero(rows == NO_ROW))
        if new and not self.has_room(partition, new, other_bytes):
            limit = self._config.key_bytes_max
            raise Overloaded(
                f"{new} new keys of table {self.definition.name} would take the key index above "
                f"tables.key_bytes_max ({limit}); raise it, or delete rows"
            )

    def has_room(self, partition: int, new: int, other_bytes: int = 0) -> bool:
        """Return whether so many new keys fit into `tables.key_bytes_max`."""
        others = other_bytes + self.key_bytes - self.folds[partition].key_bytes
        known = len(self.folds[partition].state.index)
        return others + bytes_for(known + new) <= self._config.key_bytes_max

    def change_definition(self, definition: TableDefinition) -> None:
        """Use a later version of the definition, which is durable."""
        if definition.table_id != self.definition.table_id:
            raise Malformed(f"{definition.name} is another table")
        self.definition = definition
        for fold in self.folds:
            fold.change_definition(definition)

    def close(self) -> None:
        for fold in self.folds:
            fold.close()


def partition_of(definition: TableDefinition, key: Key) -> int:
    """Return the partition of a key. Raises `Malformed` if it is not a key of this table."""
    (number,) = _owners_of(definition, [key])
    return number


def partitions_with(definition: TableDefinition, keys: Sequence[Key]) -> Iterable[int]:
    """Return the partitions that may have some keys. Raises `Malformed` if one is no key of this
    table."""
    if definition.partitions == 1 or definition.feed is not None:
        return range(definition.partitions)
    return _owners_of(definition, keys)


def _owners_of(definition: TableDefinition, keys: Sequence[Key]) -> set[int]:
    types = [column.field().type for column in definition.key_columns]
    return set(partitions_of(definition, key_array_of(types, keys)).tolist())


def pressure_of(key_bytes: int, config: TablesConfig) -> Pressure:
    """Return the pressure of key indexes on their memory."""
    share = key_bytes / config.key_bytes_max
    return "full" if share >= 1 else "high" if share >= PRESSURE_HIGH else "normal"
