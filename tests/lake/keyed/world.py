"""KeyedWorld: a log, a keyed table, its fold and its Iceberg table, for tests.

`KeyedWorld.rows` is the expected content: a dictionary's fold of everything that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, TypeVar

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from frazil.disk import RealDisk
from frazil.errors import OutOfRange, Unknown
from frazil.keyed_lake import FreezeSource, lake_definition
from frazil.lake.append.appender import Appended
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.keyed.freezer import Freezer
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.spark.jobs import TaskRunner
from frazil.log import Log
from frazil.model import SystemClock
from frazil.settings import LakeConfig, LogConfig, TablesConfig
from frazil.tables import (
    KeyedTable,
    KeyedView,
    LogChanges,
    Operation,
    TableDefinition,
    create_table,
    drop_table,
    find_table,
    new_definition,
    table_appends,
    table_names,
)

NAME = "orders"
COLUMNS = (("id", "int64"), ("name", "string"), ("amount", "int32"), ("big", "uint64"))
CONFIG = LakeConfig()

Item = TypeVar("Item")
Result = TypeVar("Result")
Row = dict[str, Any]


def do_inline(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Run tasks in this process."""
    return [function(item) for item in items]


class OneTable:
    """A table as `KeyedTables` shows it, stepped by whoever asks."""

    def __init__(self, table: KeyedTable) -> None:
        self.table: KeyedTable | None = table

    def names(self) -> list[str]:
        return [] if self.table is None else [self.table.definition.name]

    def definition(self, name: str) -> TableDefinition:
        if self.table is None or name != self.table.definition.name:
            raise Unknown(f"there is no table {name}")
        return self.table.definition

    def view(self, name: str) -> KeyedView:
        self.definition(name)
        assert self.table is not None
        return self.table.view()

    def offsets_at(self, name: str, time_ms: int) -> dict[int, int]:
        raise OutOfRange("the log begins after that time")

    def load_history(self) -> Iterable[tuple[str, pa.Table]]:
        return ()

    def wait(self, name: str, token: dict[int, int], timeout_s: float) -> KeyedView:
        self.definition(name)
        assert self.table is not None
        self.table.catch_up()
        return self.table.view()

    def note_frozen(self, name: str, partition: int, offset: int) -> None:
        raise AssertionError("no topic feeds this table")


class KeyedWorld:
    """Everything of one table. Owned by a test."""

    def __init__(self, folder: Path, log: Log, *, partitions: int, do: TaskRunner) -> None:
        self.folder = folder
        self.disk = RealDisk(folder)
        self.log = log
        self.do = do
        self.partitions = partitions
        self.rows: dict[int, Row] = {}
        self.past: dict[str, dict[int, Row]] = {}
        self.views = OneTable(self._open_table())
        self.source = FreezeSource(self.views, log)
        self.catalog: Catalog = open_catalog(CONFIG, folder)
        self.freezer = self.open_freezer()

    def _open_table(self) -> KeyedTable:
        """Open the table of an earlier life, or create it."""
        rand = SystemRandom()
        if NAME not in table_names(self.disk):
            definition = new_definition(
                NAME, COLUMNS, ["id"], rand=rand, partitions=self.partitions
            )
            create_table(self.disk, self.log, definition)
        definition = find_table(self.disk, NAME)
        return KeyedTable(
            self.disk, LogChanges(self.log), definition, TablesConfig(seal_bytes=20_000)
        )

    def open_freezer(self) -> Freezer:
        return Freezer(
            self.source,
            self.catalog,
            CONFIG,
            self.do,
            self.folder / "lake" / "handoff",
            clock=SystemClock(),
            rand=SystemRandom(),
        )

    @property
    def keyed(self) -> KeyedTable:
        assert self.views.table is not None
        return self.views.table

    def drop_and_create(self) -> None:
        self.keyed.close()
        drop_table(self.disk, self.log, NAME)
        self.views.table = self._open_table()
        self.rows = {}

    def write(self, operation: Operation, rows: Sequence[Row]) -> None:
        definition = self.keyed.definition
        schema = pa.schema([f for f in definition.schema if f.name in rows[0]])
        batch = pa.Table.from_pylist(list(rows), schema)
        for partition, append in table_appends(definition, operation, batch, timestamp_ms=1):
            self.log.append(definition.topic, append, partition=partition).result()
        for row in rows:
            if operation is Operation.DELETE:
                self.rows.pop(row["id"], None)
            elif operation is Operation.UPSERT:
                empty = dict.fromkeys(self.keyed.definition.schema.names)
                self.rows[row["id"]] = {**empty, **row}
            elif row["id"] in self.rows:
                self.rows[row["id"]] = {**self.rows[row["id"]], **row}

    def change(self, rand: Random, count: int, keys: int) -> None:
        """Write random changes in several records."""
        for _ in range(rand.randint(1, 4)):
            operation = rand.choice(tuple(Operation))
            ids = [rand.randrange(keys) for _ in range(count // 4)]
            if operation is Operation.DELETE:
                self.write(operation, [{"id": number} for number in ids])
            elif operation is Operation.UPDATE:
                self.write(operation, [{"id": i, "amount": rand.randint(0, 9)} for i in ids])
            else:
                self.write(operation, [new_row(rand, number) for number in ids])

    def freeze(self) -> list[Appended]:
        return list(self.freezer.freeze_all())

    def maintenance(self) -> Maintenance:
        return Maintenance(
            lambda: self.catalog, CONFIG, self.do, clock=SystemClock(), rand=SystemRandom()
        )

    def table(self) -> Table:
        return self.catalog.load_table((CONFIG.namespace, NAME))

    def definition(self) -> Any:
        return lake_definition(self.keyed.definition)

    def close(self) -> None:
        self.keyed.close()
        self.catalog.close()


def new_row(rand: Random, number: int) -> Row:
    return {
        "id": number,
        "name": rand.choice((None, "", "ä" * rand.randint(0, 30), f"n{number}")),
        "amount": rand.randint(-(2**31), 2**31 - 1),
        "big": rand.choice((None, 0, 2**64 - 1, rand.getrandbits(64))),
    }


@contextmanager
def keyed_world(
    folder: Path, *, partitions: int = 2, do: TaskRunner = do_inline
) -> Iterator[KeyedWorld]:
    config = LogConfig(segment_bytes_max=200_000, disk_bytes_max=200_000_000)
    with Log.open(RealDisk(folder), config, clock=SystemClock(), rand=SystemRandom()) as log:
        world = KeyedWorld(folder, log, partitions=partitions, do=do)
        try:
            yield world
        finally:
            world.close()
