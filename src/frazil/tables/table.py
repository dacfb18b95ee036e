"""KeyedTable: all partitions of a table, as one. KeyedView: its rows at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from frazil.disk import Disk
from frazil.errors import Malformed, Overloaded
from frazil.log import ReadableLog
from frazil.settings import TablesConfig
from frazil.tables.definition import TableDefinition
from frazil.tables.definition_file import partition_folder
from frazil.tables.fold import PartitionFold
from frazil.tables.keys.kernels import NO_ROW
from frazil.tables.keys.key_block import block_of
from frazil.tables.keys.key_index import bytes_for
from frazil.tables.rows.row_segment import empty_batch
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
        if len(self.partitions) == 1:
            return self.partitions[0].get(key)
        keys = key_array_of(self._key_types, [key])
        return self.partitions[int(partitions_of(self.definition, keys)[0])].get(key)

    def get_many(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return the rows of the keys that exist, in the order of the keys."""
        array = key_array_of(self._key_types, keys)
        owners = partitions_of(self.definition, array)
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
        owners = partitions_of(self.definition, array)
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
        log: ReadableLog,
        definition: TableDefinition,
        config: TablesConfig | None = None,
    ) -> None:
        self.definition = definition
        self._config = config or TablesConfig()
        self.folds = tuple(
            PartitionFold(
                disk,
                partition_folder(definition.name, number),
                definition,
                log.partition(definition.topic, number),
                self._config,
            )
            for number in range(definition.partitions)
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
        return sum(fold.step() for fold in self.folds)

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

    def has(self, token: Token) -> bool:
        """Return whether the view has a write."""
        return all(self.folds[number].end_offset >= end for number, end in token.items())

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
        others = other_bytes + self.key_bytes - self.folds[partition].key_bytes
        known = len(self.folds[partition].state.index)
        limit = self._config.key_bytes_max
        if others + bytes_for(known + len(keys)) <= limit:
            return
        rows = self.folds[partition].view.find(block_of(keys))
        new = int(np.count_nonzero(rows == NO_ROW))
        if new and others + bytes_for(known + new) > limit:
            raise Overloaded(
                f"{new} new keys of table {self.definition.name} would take the key index above "
                f"tables.key_bytes_max ({limit}); raise it, or delete rows"
            )

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


def pressure_of(key_bytes: int, config: TablesConfig) -> Pressure:
    """Return the pressure of key indexes on their memory."""
    share = key_bytes / config.key_bytes_max
    return "full" if share >= 1 else "high" if share >= PRESSURE_HIGH else "normal"
