"""Freezing changes of a keyed table into Iceberg, beside Spark's MERGE INTO in the same session.

A table of KEYED_ROWS rows (1,000,000) gets rounds of 10,000 changes: 7,000 updates, 2,000 deletes,
1,000 inserts. Ours: `Freezer`, with its tasks on Spark. Stock: the same changes, as a Parquet file,
merged by `MERGE INTO` (merge-on-read) into a copy of the table. Figures are CPU time of this
process, the Spark process and its Python processes, so that a busy machine does not matter; both
ways run before they are measured, in turns. In the end both tables must hold the same rows.

Also: CPU time without Spark, wall time, and delete files and data files after all rounds. Prints
one JSON line last; exits 1 when a bar is missed.
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFileContent

from bench.keyed import COLUMNS, open_log, rows_of, scratch_folder
from frazil.disk import RealDisk
from frazil.keyed_lake import FreezeSource
from frazil.lake import Session
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.keyed.definition import LOG_PARTITION, ROW
from frazil.lake.keyed.delete_task import find_positions
from frazil.lake.keyed.freezer import Freezer
from frazil.lake.spark.jobs import TaskRunner, do_on
from frazil.model import SystemClock
from frazil.settings import LakeConfig, TablesConfig
from frazil.tables import KeyedTable, KeyedWriter, create_table, new_definition, warm
from tests.lake.keyed.world import OneTable, do_inline
from tests.lake.maintain.tables import data_files, local

ROWS = int(os.environ.get("KEYED_ROWS", "1000000"))
UPDATES, DELETES, INSERTS = 7_000, 2_000, 1_000
ROUNDS = 5
WARM_ROUNDS = 2
BATCH_ROWS = 20_000
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

    def __init__(self) -> None:
        self._rand = np.random.default_rng(1)
        self._live: Ids = np.arange(ROWS)
        self._next = ROWS
        self._version = 0

    def numbers(self, count: int) -> Ids:
        """Return some of the first row numbers."""
        return self._rand.choice(ROWS, count, replace=False)

    def draw(self) -> tuple[pa.Table, Ids]:
        """Return rows to put and keys to delete."""
        self._version += 1
        chosen = self._rand.permutation(self._live)
        deleted, updated = chosen[:DELETES], chosen[DELETES : DELETES + UPDATES]
        new: Ids = np.arange(self._next, self._next + INSERTS)
        self._next += INSERTS
        self._live = np.concatenate([chosen[DELETES:], new])
        return rows_of(np.concatenate([updated, new]), self._version), deleted


def positions_in(location: str, dead: Ids) -> None:
    """Look up dead rows in a data file, as a task does."""
    read = pq.read_table(local(location), columns=[LOG_PARTITION, ROW], use_threads=False)
    columns = [read[name].to_numpy() for name in (LOG_PARTITION, ROW)]
    positions, _ = find_positions(*columns, np.zeros(len(dead), np.int64), dead)
    assert len(positions) == len(dead)


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


def run(folder: Path) -> dict[str, float]:
    config = LakeConfig()
    warm()
    session = Session(config, spark_settings(config, folder), folder / "scratch")
    catalog = open_catalog(config, folder)
    with open_log(folder) as log:
        disk, rand = RealDisk(folder), SystemRandom()
        definition = new_definition("orders", COLUMNS, ["id"], rand=rand)
        create_table(disk, log, definition)
        table = KeyedTable(disk, log, definition, TablesConfig())
        writer = KeyedWriter(log, definition, clock=SystemClock())
        source = FreezeSource(OneTable(table), log)

        def freezer(do: TaskRunner) -> Freezer:
            place = folder / "lake" / "handoff"
            return Freezer(source, catalog, config, do, place, clock=SystemClock(), rand=rand)

        for begin in range(0, ROWS, BATCH_ROWS):
            writer.upsert(rows_of(np.arange(begin, min(ROWS, begin + BATCH_ROWS))))
        table.catch_up()
        ours = freezer(do_on(session))
        spark = session.spark()
        first_cpu, first_wall = measured(lambda: list(ours.freeze_all()), session.pid)
        columns = ", ".join(name for name, _ in COLUMNS)
        spark.sql(
            f"CREATE TABLE {TARGET} USING iceberg TBLPROPERTIES ('format-version' = '2', "
            "'write.merge.mode' = 'merge-on-read', 'write.distribution-mode' = 'none') AS "
            f"SELECT {columns} FROM frazil.frazil.orders ORDER BY id"
        )
        changes = Changes()
        samples: dict[str, list[float]] = {
            name: [] for name in ("ours", "wall", "merge", "merge_wall", "plain")
        }
        for number in range(WARM_ROUNDS + ROUNDS):
            put, deleted = changes.draw()
            writer.upsert(put)
            writer.delete(pa.table({"id": deleted}))
            table.catch_up()
            cpu, wall = measured(lambda: list(ours.freeze_all()), session.pid)
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
        plain = freezer(do_inline)
        for _ in range(ROUNDS):
            put, deleted = changes.draw()
            writer.upsert(put)
            writer.delete(pa.table({"id": deleted}))
            table.catch_up()
            samples["plain"].append(measured(lambda: list(plain.freeze_all()), None)[0])
        files = data_files(catalog.load_table("frazil.orders"))
        kinds = [file.content for file in files]
        largest = max(files, key=lambda file: file.record_count).file_path
        dead = np.sort(changes.numbers(UPDATES + DELETES))
        look_up = measured(lambda: positions_in(largest, dead), None)[0]
        table.close()
    catalog.close()
    session.close()
    return {
        "rows": ROWS,
        "first_cpu_s": round(first_cpu, 2),
        "first_wall_s": round(first_wall, 2),
        "freeze_cpu_ms": median_ms(samples["ours"]),
        "freeze_wall_ms": median_ms(samples["wall"]),
        "freeze_without_spark_cpu_ms": median_ms(samples["plain"]),
        "merge_cpu_ms": median_ms(samples["merge"]),
        "merge_wall_ms": median_ms(samples["merge_wall"]),
        "times_less_cpu": round(
            statistics.median(samples["merge"]) / statistics.median(samples["ours"]), 1
        ),
        "look_up_cpu_ms": round(1000 * look_up, 1),
        "data_files": kinds.count(DataFileContent.DATA),
        "delete_files": kinds.count(DataFileContent.POSITION_DELETES),
    }


def main() -> int:
    with scratch_folder() as folder:
        figures = run(folder.absolute())
    is_met = figures["times_less_cpu"] >= BAR and figures["delete_files"] <= figures["data_files"]
    print(json.dumps({**figures, "bar": BAR, "met": is_met}))
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
