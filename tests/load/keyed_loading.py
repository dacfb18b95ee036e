"""Loads of a keyed table without Spark, in a process that may die at any step."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any
from uuid import UUID

from frazil.disk import Disk, RealDisk
from frazil.disk.files import File, Mode
from frazil.load import KeyedLoads, LoadResult
from frazil.log import Append, AppendResult, Log, Reader
from frazil.model import KiB, Rand, SystemClock, SystemRand
from frazil.tables import KeyedTables, Operation, TableDefinition, decode_changes, new_definition
from tests.load.loading import Loading

COLUMNS = (("id", "int64"), ("name", "string"), ("amount", "int32"))
BATCH_BYTES_MAX = 8 * KiB
"""So that a portion has 2 KiB."""


class Killed(BaseException):
    """The process has ended."""


class Countdown:
    """Dies at a step, and at every one after it."""

    def __init__(self, steps: int | None = None) -> None:
        self.steps = steps
        self.count = 0

    def step(self) -> None:
        self.count += 1
        if self.steps is not None and self.count > self.steps:
            raise Killed


class DyingDisk:
    """A disk that may die before each change."""

    def __init__(self, disk: RealDisk, countdown: Countdown) -> None:
        self._disk = disk
        self._countdown = countdown

    def open(self, path: str, mode: Mode = "read") -> File:
        if mode != "read":
            self._countdown.step()
        return self._disk.open(path, mode)

    def rename(self, old: str, new: str) -> None:
        self._countdown.step()
        self._disk.rename(old, new)

    def unlink(self, path: str) -> None:
        self._countdown.step()
        self._disk.unlink(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)


class DyingLog:
    """A log whose appends may be lost, or their responses."""

    def __init__(self, log: Log, countdown: Countdown) -> None:
        self._log = log
        self._countdown = countdown

    def append(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> Future[AppendResult]:
        self._countdown.step()
        future = self._log.append(topic, append, partition=partition, topic_id=topic_id)
        future.result()
        self._countdown.step()
        return future

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class KeyedLoading:
    """A data folder with a keyed table `t`, and files to load."""

    def __init__(
        self,
        loading: Loading,
        folder: Path,
        *,
        partitions: int = 1,
        columns: tuple[tuple[str, str], ...] = COLUMNS,
        key: tuple[str, ...] = ("id",),
        not_null: tuple[str, ...] = (),
        countdown: Countdown | None = None,
        batch_bytes_max: int = BATCH_BYTES_MAX,
    ) -> None:
        self.files = loading
        self._folder = folder
        self._batch_bytes_max = batch_bytes_max
        self._open(Countdown())
        if not self.tables.names():
            self.tables.create(
                new_definition(
                    "t", columns, key, rand=Rand(3), partitions=partitions, not_null=not_null
                )
            )
        if countdown is not None:
            self.close()
            self._open(countdown)

    def _open(self, countdown: Countdown) -> None:
        disk = RealDisk(self._folder)
        self.log = Log.open(disk, clock=SystemClock(), rand=SystemRand())
        dying: Any = DyingDisk(disk, countdown)
        log: Any = DyingLog(self.log, countdown)
        self.disk: Disk = dying
        self.tables = KeyedTables(disk, log, clock=SystemClock())
        self.tables._disk = dying
        self.loads = KeyedLoads(
            self.tables,
            str(self._folder),
            clock=SystemClock(),
            batch_bytes_max=self._batch_bytes_max,
        )

    @property
    def definition(self) -> TableDefinition:
        return self.tables.definition("t")

    def copy(self, options: str = "", source: str = "@s") -> LoadResult:
        with self.loads.copy("t", lambda: None) as keyed:
            return self.files.copy(f"COPY INTO t FROM {source} {options}", keyed=keyed)

    def upsert(self, rows: Any) -> None:
        self.tables.write("t", Operation.UPSERT, rows)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table, by key."""
        self.tables.catch_up()
        rows = [row for batch in self.tables.view("t").batches() for row in batch.to_pylist()]
        return sorted(rows, key=lambda row: [row[name] for name in self.definition.key])

    def written(self) -> list[list[dict[str, Any]]]:
        """Return all upserts of each partition, in the order of the log."""
        return [
            [
                row
                for batch in read_all(self.log, self.definition.topic, number)
                for row in decode_changes(self.definition, batch).batch.to_pylist()
            ]
            for number in range(self.definition.partitions)
        ]

    def left(self) -> list[str]:
        """Return what is left of loads that have ended."""
        names = self.disk.list("tables/t/loads")
        return [name for name in names if name != "ledger.ckpt"]

    def close(self) -> None:
        self.loads.close()
        self.tables.close()
        self.log.close()


def read_all(log: Log, topic: str, partition: int) -> list[bytes | None]:
    """Return the values of all records."""
    reader = Reader(log.partition(topic, partition), 0)
    values = []
    while batches := reader.read():
        values += [record.value for batch in batches for record in batch.records()]
    reader.close()
    return values
