"""Freezing changes of a keyed table into Iceberg, beside Spark's MERGE INTO in the same session.

A table of KEYED_ROWS rows (1,000,000) gets rounds of KEYED_CHANGES changes (10,000): 70 % updates,
20 % deletes, 10 % inserts. KEYED_ROWS=10000000 KEYED_CHANGES=100000 is the other case with a bar.
Ours: `Freezer`, as the lake uses it. Stock: the same changes, as a Parquet file, merged by `MERGE
INTO` (merge-on-read) into a copy of the table. Figures are CPU time of this process, the Spark
process and its Python processes, so that a busy machine does not matter; both ways run before they
are measured, in turns. In the end both tables must hold the same rows.

Also: CPU time with all tasks on Spark, as large rounds have them; wall time; and another table
after KEYED_COMMITS commits (1,000) with compaction every ten, as in a node: its data files,
delete files, and CPU time of commits. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import SystemRandom
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table

from bench.keyed import COLUMNS, open_log, rows_of, scratch_folder
from frazil.disk import RealDisk
from frazil.keyed_lake import FreezeSource
from frazil.lake import Session
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.keyed import freezer
from frazil.lake.keyed.freezer import Freezer
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.spark.jobs import TaskRunner, do_on
from frazil.log import Log
from frazil.model import SystemClock
from frazil.settings import LakeConfig, TablesConfig
from frazil.tables import (
    KeyedTable,
    KeyedWriter,
    LogChanges,
    create_table,
    new_definition,
    warm,
)
from tests.lake.keyed.world import OneTable, do_inline
from tests.lake.maintain.tables import data_files

ROWS = int(os.environ.get("KEYED_ROWS", "1000000"))
CHANGES = int(os.environ.get("KEYED_CHANGES", "10000"))
COMMITS = int(os.environ.get("KEYED_COMMITS", "1000"))
ROUNDS = 5
WARM_ROUNDS = 2
BATCH_ROWS = 20_000
COMMIT_ROWS, COMMIT_CHANGES, COMPACT_EVERY = 100_000, 200, 10
BAR = 20.0
"""How many times less CPU than MERGE INTO."""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
TARGET = "frazil.frazil.merged"
MERGE = f"""
    MERGE INTO {TARGET} AS t USING changes AS c ON t.id = c.id
    WHEN MATCHED AND c.is_deleted THEN DELETE
    WHEN MATCHED THEN UPDATE SET *
    WHEN NOT MATCHED AND NOT c.is_deleted THEN INSERT *
"""

Ids = np.ndarray[tuple[int], np.dtype[np.int64]]


def cpu_s(pid: int | None) -> float:
    """CPU time of this process, and of another one with all its children, dead or alive."""
    total = time.process_time()
    waiting = [] if pid is None else [pid]
    while waiting:
        each = waiting.pop()
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            children = Path(f"/proc/{each}/task/{each}/children").read_text().split()
            for thread in Path(f"/proc/{each}/task").iterdir():
                children += (thread / "children").read_text().split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) * TICK_S
        waiting += map(int, set(children))
    return total


class Changes:
    """Rounds of changes, each key in at most one change of a round."""

    def __init__(self, rows: int, count: int) -> None:
        self._rand = np.random.default_rng(1)
        self._live: Ids = np.arange(rows)
        self._next = rows
        self._version = 0
        self._deletes, self._inserts = count // 5, count // 10
        self._updates = count - self._deletes - self._inserts

    def draw(self) -> tuple[pa.Table, Ids]:
        """Return rows to put and keys to delete."""
        self._version += 1
        chosen = self._rand.permutation(self._live)
        count = self._deletes
        deleted, updated = chosen[:count], chosen[count : count + self._updates]
        new: Ids = np.arange(self._next, self._next + self._inserts)
        self._next += self._inserts
        self._live = np.concatenate([chosen[count:], new])
        return rows_of(np.concatenate([updated, new]), self._version), deleted


class FrozenTable:
    """A keyed table of a log, and its freezer."""

    def __init__(
        self, folder: Path, log: Log, catalog: Catalog, name: str, rows: int, do: TaskRunner
    ) -> None:
        disk, rand = RealDisk(folder), SystemRandom()
        self.name = name
        self._definition = new_definition(name, COLUMNS, ["id"], rand=rand)
        create_table(disk, log, self._definition)
        self._table = KeyedTable(disk, LogChanges(log), self._definition, TablesConfig())
        self._writer = KeyedWriter(log, self._definition, clock=SystemClock())
        self._freezer = Freezer(
            FreezeSource(OneTable(self._table), log),
            catalog,
            LakeConfig(),
            do,
            folder / "lake" / f"handoff-{name}",
            clock=SystemClock(),
            rand=rand,
        )
        for begin in range(0, rows, BATCH_ROWS):
            self._writer.upsert(rows_of(np.arange(begin, min(rows, begin + BATCH_ROWS))))
            self._table.catch_up()

    def write(self, put: pa.Table, deleted: Ids) -> None:
        for begin in range(0, put.num_rows, BATCH_ROWS):
            self._writer.upsert(put.slice(begin, BATCH_ROWS))
        self._writer.delete(pa.table({"id": deleted}))
        self._table.catch_up()

    def freeze(self) -> None:
        assert list(self._freezer.freeze_all())

    def close(self) -> None:
        self._table.close()


def measured(job: Callable[[], object], pid: int | None) -> tuple[float, float]:
    """Return CPU and wall seconds of a job."""
    begin, begin_cpu = time.perf_counter(), cpu_s(pid)
    job()
    return cpu_s(pid) - begin_cpu, time.perf_counter() - begin


def changes_table(put: pa.Table, deleted: Ids) -> pa.Table:
    gone = rows_of(deleted).append_column("is_deleted", pa.array([True] * len(deleted)))
    put = put.append_column("is_deleted", pa.array([False] * put.num_rows))
    return pa.concat_tables([put, gone])


def median_ms(samples: Sequence[float]) -> float:
    return round(1000 * statistics.median(samples), 1)


def kinds_of(table: Table) -> dict[str, int]:
    kinds = [file.content for file in data_files(table)]
    return {
        "data_files": kinds.count(DataFileContent.DATA),
        "delete_files": kinds.count(DataFileContent.POSITION_DELETES),
    }


def run(folder: Path) -> dict[str, float]:
    config = LakeConfig()
    warm()
    session = Session(config, spark_settings(config, folder), folder / "scratch")
    catalog = open_catalog(config, folder)
    with open_log(folder) as log:
        ours = FrozenTable(folder, log, catalog, "orders", ROWS, do_on(session))
        spark = session.spark()
        first_cpu, first_wall = measured(ours.freeze, session.pid)
        columns = ", ".join(name for name, _ in COLUMNS)
        spark.sql(
            f"CREATE TABLE {TARGET} USING iceberg TBLPROPERTIES ('format-version' = '2', "
            "'write.merge.mode' = 'merge-on-read', 'write.distribution-mode' = 'none') AS "
            f"SELECT {columns} FROM frazil.frazil.orders ORDER BY id"
        )
        changes = Changes(ROWS, CHANGES)
        samples: dict[str, list[float]] = {
            name: [] for name in ("ours", "wall", "merge", "merge_wall", "on_spark")
        }
        for number in range(WARM_ROUNDS + ROUNDS):
            put, deleted = changes.draw()
            ours.write(put, deleted)
            cpu, wall = measured(ours.freeze, session.pid)
            path = folder / f"changes-{number}.parquet"
            pq.write_table(changes_table(put, deleted), path)
            spark.read.parquet(str(path)).createOrReplaceTempView("changes")
            merge_cpu, merge_wall = measured(lambda: spark.sql(MERGE).collect(), session.pid)
            if number >= WARM_ROUNDS:
                for name, value in zip(samples, (cpu, wall, merge_cpu, merge_wall), strict=False):
                    samples[name].append(value)
        one, other = (
            spark.sql(f"SELECT count(*), sum(hash({columns})) FROM {name}").collect()
            for name in ("frazil.frazil.orders", TARGET)
        )
        assert one == other, f"{one} and {other}"
        with mock.patch.object(freezer, "SMALL_FILES_MAX", -1):
            for number in range(WARM_ROUNDS + ROUNDS):
                ours.write(*changes.draw())
                cpu, _ = measured(ours.freeze, session.pid)
                if number >= WARM_ROUNDS:
                    samples["on_spark"].append(cpu)
        ours.close()
        session.close()
        figures = many_commits(folder, log, catalog)
    catalog.close()
    return {
        "rows": ROWS,
        "changes": CHANGES,
        "first_cpu_s": round(first_cpu, 2),
        "first_wall_s": round(first_wall, 2),
        "freeze_cpu_ms": median_ms(samples["ours"]),
        "freeze_wall_ms": median_ms(samples["wall"]),
        "freeze_on_spark_cpu_ms": median_ms(samples["on_spark"]),
        "merge_cpu_ms": median_ms(samples["merge"]),
        "merge_wall_ms": median_ms(samples["merge_wall"]),
        "times_less_cpu": round(
            statistics.median(samples["merge"]) / statistics.median(samples["ours"]), 1
        ),
        **figures,
    }


def many_commits(folder: Path, log: Log, catalog: Catalog) -> dict[str, float]:
    """Commit many small rounds, with compaction now and then."""
    small = FrozenTable(folder, log, catalog, "small", COMMIT_ROWS, do_inline)
    small.freeze()
    maintenance = Maintenance(
        lambda: catalog, LakeConfig(), do_inline, clock=SystemClock(), rand=SystemRandom()
    )
    changes = Changes(COMMIT_ROWS, COMMIT_CHANGES)
    samples = []
    for number in range(COMMITS):
        small.write(*changes.draw())
        samples.append(measured(small.freeze, None)[0])
        if number % COMPACT_EVERY == COMPACT_EVERY - 1:
            maintenance.compact(small.name)
            maintenance.join_manifests(small.name)
    small.close()
    some = max(1, COMMITS // 10)
    return {
        "commits": COMMITS,
        **kinds_of(catalog.load_table(f"frazil.{small.name}")),
        "first_commits_cpu_ms": median_ms(samples[:some]),
        "last_commits_cpu_ms": median_ms(samples[-some:]),
    }


def main() -> int:
    with scratch_folder() as folder:
        figures = run(folder.absolute())
    is_met = figures["times_less_cpu"] >= BAR and figures["delete_files"] <= figures["data_files"]
    print(json.dumps({**figures, "bar": BAR, "met": is_met}))
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
