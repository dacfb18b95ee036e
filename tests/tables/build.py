"""Helpers for tests of keyed tables: a log and a table without threads, and the dictionary that the
table must equal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.log import Log
from frazil.model import KiB, Rand
from frazil.settings import LogConfig, TablesConfig
from frazil.tables import (
    KeyedTable,
    KeyedView,
    LogChanges,
    Operation,
    TableDefinition,
    create_table,
    find_table,
    finish_drops,
    new_definition,
    table_appends,
    table_names,
)
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

LOG = LogConfig(
    segment_bytes_max=16 * KiB,
    batch_bytes_max=256 * KiB,
    queue_bytes_max=1024 * KiB,
    disk_bytes_max=16 * 1024 * KiB,
)
SMALL = TablesConfig(seal_bytes=8 * KiB, read_bytes=2 * KiB, checkpoint_bytes=20 * KiB)
COLUMNS = (("id", "int64"), ("name", "string"), ("amount", "int32"))
Row = dict[str, object]
_SEEDS = itertools.count()


def orders(partitions: int = 1, key: Sequence[str] = ("id",)) -> TableDefinition:
    return new_definition("orders", COLUMNS, key, rand=Rand(5), partitions=partitions)


@dataclass
class Machine:
    """A log and one table on one disk."""

    disk: SimDisk
    log: Log
    table: KeyedTable

    @property
    def definition(self) -> TableDefinition:
        return self.table.definition

    def write(self, operation: Operation, rows: Sequence[Mapping[str, object]]) -> dict[int, int]:
        """Append changes, durably. Returns the token."""
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        fields = [f for f in self.definition.schema if f.name in columns]
        batch = pa.table(columns, pa.schema([f.with_nullable(True) for f in fields]))
        appends = table_appends(
            self.definition,
            operation,
            batch,
            timestamp_ms=1,
            check_keys=self.table.check_new_keys,
        )
        futures = [
            (p, self.log.append(self.definition.topic, append, partition=p))
            for p, append in appends
        ]
        self.log.writer.step()
        return {p: future.result(0).end_offset for p, future in futures}

    def upsert(self, *rows: Mapping[str, object]) -> dict[int, int]:
        return self.write(Operation.UPSERT, rows)

    def update(self, *rows: Mapping[str, object]) -> dict[int, int]:
        return self.write(Operation.UPDATE, rows)

    def delete(self, *keys: Mapping[str, object]) -> dict[int, int]:
        return self.write(Operation.DELETE, keys)

    def catch_up(self) -> KeyedView:
        self.table.catch_up()
        return self.table.view()

    def seed(self, offset: int, rand: Rand) -> int:
        """Seed the only partition from its own rows as of an offset, shuffled, as if from the
        lake."""
        past = self.catch_up().as_of({0: offset}).partitions[0]
        batches = list(past.rows_between(0, past.row_count))
        shuffled = []
        for batch in batches:
            order = list(range(batch.num_rows))
            rand.shuffle(order)
            mixed = batch.take(pa.array(order, pa.int64()))
            shuffled += [mixed.slice(0, len(order) // 2), mixed.slice(len(order) // 2)]
        rand.shuffle(shuffled)
        return self.table.seed(0, shuffled, end_offset=offset, next_row=past.row_count)

    def close(self) -> None:
        self.table.close()
        self.log.close()


def open_log(disk: SimDisk) -> Log:
    return Log.open(
        disk, LOG, clock=SimClock(), rand=Rand(next(_SEEDS)), fatal=lambda _: None, threaded=False
    )


def start(
    disk: SimDisk, definition: TableDefinition | None = None, config: TablesConfig = SMALL
) -> Machine:
    """Open the log and the table, as a node does; create it if it does not exist."""
    log = open_log(disk)
    finish_drops(disk, log)
    definition = definition or orders()
    if definition.name not in table_names(disk):
        create_table(disk, log, definition)
    definition = find_table(disk, definition.name)
    return Machine(disk, log, KeyedTable(disk, LogChanges(log), definition, config))


def rows_of(view: KeyedView) -> list[Row]:
    """All live rows, sorted by key."""
    rows = [row for batch in view.batches() for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: [row[name] for name in view.definition.key])


@dataclass
class Model:
    """A dictionary's fold of the changes of one partition, as of every offset."""

    definition: TableDefinition
    rows: dict[tuple[object, ...], Row] = field(default_factory=dict)
    past: list[dict[tuple[object, ...], Row]] = field(default_factory=list)
    """The rows as of each offset; the first is the empty table."""

    def __post_init__(self) -> None:
        self.past.append({})

    def apply(self, operation: Operation, rows: Sequence[Mapping[str, object]]) -> None:
        """Apply one record."""
        for row in rows:
            key = tuple(row[name] for name in self.definition.key)
            if operation is Operation.DELETE:
                self.rows.pop(key, None)
            elif operation is Operation.UPDATE:
                if key in self.rows:
                    self.rows[key] = {**self.rows[key], **row}
            else:
                self.rows[key] = {name: row.get(name) for name in self.definition.schema.names}
        self.past.append(dict(self.rows))

    def sorted_rows(self, offset: int = -1) -> list[Row]:
        past = self.past[offset]
        return [past[key] for key in sorted(past, key=lambda key: [*key])]
