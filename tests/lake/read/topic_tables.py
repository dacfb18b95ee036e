"""A log with one topic that is not telemetry, and its table, filled without Spark."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from frazil.disk import RealDisk
from frazil.lake.append.appender import Appended, Appender
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.tables.record_rows import table_of
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from frazil.settings import LakeConfig, LogConfig, TopicConfig
from tests.lake.inline_tasks import run_inline

CLOCK = SystemClock()
TOPIC = "orders"
TABLE = table_of(TOPIC)
LOG = LogConfig(
    segment_bytes_max=2048,
    batch_bytes_max=64 * 1024,
    queue_bytes_max=1 << 20,
    disk_bytes_max=1 << 20,
    index_interval_bytes=256,
)
"""Segments of a few records, so that the log can be trimmed."""
LAKE = LakeConfig(slice_bytes=4000)
BEGIN_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def time_of(number: int) -> int:
    """Return the timestamp of a record. Days alternate, so files of one commit have overlapping
    offsets."""
    return BEGIN_MS + number * 1000 + number % 2 * DAY_MS


@dataclass(slots=True)
class TopicWorld:
    """A log, its catalog, and how many records were added."""

    log: Log
    folder: Path
    catalog: Catalog
    appender: Appender
    counts: list[int]
    """Records per partition."""

    @classmethod
    def open(cls, folder: Path, *, partitions: int = 1, awaits_lake: bool = True) -> TopicWorld:
        log = Log.open(RealDisk(folder), LOG, clock=CLOCK, rand=random.SystemRandom())
        config = TopicConfig(partitions=partitions, awaits_lake=awaits_lake, retention_ms=0)
        log.create_topic(TOPIC, config)
        catalog = open_catalog(LAKE, folder)
        appender = Appender.open(
            LogSource(log, folder),
            catalog,
            LAKE,
            run=run_inline,
            clock=CLOCK,
            rand=random.SystemRandom(),
        )
        return cls(log, folder, catalog, appender, [0] * partitions)

    def add(self, count: int, partition: int = 0) -> None:
        """Append records whose values are their positions."""
        pending = []
        for number in range(self.counts[partition], self.counts[partition] + count):
            record = Record(
                offset=0,
                timestamp_ms=time_of(number),
                key=b"key",
                value=b"%d/%d" % (partition, number),
                headers=(("a", b"1"), ("a", None)) if number % 2 else (),
            )
            pending.append(self.log.append(TOPIC, append_of_records([record]), partition=partition))
        for future in pending:
            future.result()
        self.counts[partition] += count

    def flush(self) -> list[Appended]:
        done: list[Appended] = []
        while new := self.appender.append():
            done += new
        return done

    def trim(self) -> int:
        """Trim the log. Return the start offset of the first partition."""
        self.log.maintain()
        return self.log.partition(TOPIC, 0).view.start_offset

    def table(self) -> Table:
        return self.catalog.load_table(f"{LAKE.namespace}.{TABLE}")

    def close(self) -> None:
        self.catalog.close()
        self.log.close()
