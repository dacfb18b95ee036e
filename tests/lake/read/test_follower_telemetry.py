"""Table and log return the same telemetry rows, bit for bit and in the same order."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.disk import RealDisk
from frazil.errors import Conflict, Unavailable
from frazil.lake.append.appender import Appender
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.read.followers import Followers
from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.prefetch import ReadLimits
from frazil.lake.read.table_reader import TableReader
from frazil.log import Log, Record, append_of_records
from frazil.model import Signal, SystemClock
from frazil.settings import LakeConfig, TopicConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.lake.inline_tasks import run_inline
from tests.lake.maintain.tables import compact
from tests.lake.rows import bodies, rows_of

CLOCK = SystemClock()
CONFIG = LakeConfig(slice_bytes=20_000)
COUNT = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_table_and_log_return_the_same_rows(folder: Path) -> None:
    """Before and after compaction, with windows of different sizes."""
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for number, signal in enumerate(Signal):
            log.create_topic(signal.topic, TopicConfig(awaits_lake=True))
            for body in bodies(signal, number, COUNT):
                record = Record(offset=0, timestamp_ms=CLOCK.wall_ms(), key=None, value=body)
                log.append(signal.topic, append_of_records([record]))
        log.append("otlp_logs", append_of_records([record])).result()
        catalog = open_catalog(CONFIG, folder)
        Appender.open(
            LogSource(log, folder),
            catalog,
            CONFIG,
            run=run_inline,
            clock=CLOCK,
            rand=random.SystemRandom(),
        ).append()
        for topic, table in ((signal.topic, signal.table) for signal in Signal):
            live = from_log(LogTail.open(log, topic))
            assert len(live) > 5
            assert from_table(folder, table, ReadLimits()) == live
            compact(catalog.load_table(f"frazil.{table}"), "compacted")
            assert from_table(folder, table, ReadLimits(window_bytes=20_000, ahead_files=1)) == live
            assert from_table(folder, table, ReadLimits()) == live
        catalog.close()


def from_log(tail: LogTail) -> list[str]:
    batches: list[pa.RecordBatch] = []
    offset = 0
    while (rows := tail.read(0, offset)) is not None:
        batches.append(rows.batch)
        offset = rows.end
    tail.close()
    return [row for batch in batches for row in rows_of(batch)]


def from_table(folder: Path, table: str, limits: ReadLimits) -> list[str]:
    reader = TableReader.open(open_catalog(CONFIG, folder), CONFIG, table, limits=limits)
    parts = list(reader.read({0: 0}))
    reader.close()
    assert [rows.begin for rows in parts] == [0, *(rows.end for rows in parts[:-1])]
    return [row for rows in parts for row in rows_of(rows.batch)]


def test_partitions_that_are_added_are_followed(folder: Path) -> None:
    """By a reader that is open, and by one that comes back."""
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        log.create_topic("otlp_logs", TopicConfig())
        followers = Followers(log, RealDisk(folder), None)
        record = Record(offset=0, timestamp_ms=1, key=None, value=logs(log_record(1)))
        for count in (2, 3):
            with followers.follow("logs", "one", "latest") as reader:
                assert reader.read() is None
                log.add_partitions("otlp_logs", count)
                appended = append_of_records([record])
                log.append("otlp_logs", appended, partition=count - 1).result()
                rows = reader.read()
                assert rows is not None and (rows.partition, rows.begin) == (count - 1, 0)
                reader.ack(rows)
        log.add_partitions("otlp_logs", 4)
        log.append("otlp_logs", append_of_records([record]), partition=3).result()
        with followers.follow("logs", "one", "latest") as reader:
            rows = reader.read()
            assert rows is not None and rows.partition == 3
            assert reader.read() is None


def test_a_reader_is_open_once(folder: Path) -> None:
    """It may be opened by table or topic, and is closed with the folder."""
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        log.create_topic("otlp_logs", TopicConfig())
        followers = Followers(log, RealDisk(folder), None)
        with followers.follow("logs", "one", "earliest") as one:
            with pytest.raises(Conflict, match="open already"):
                followers.follow("logs", "one", "earliest")
            with pytest.raises(Conflict, match="open already"):
                followers.forget("one")
            assert one.read() is None
        two = followers.follow("otlp_logs", "one", "earliest")
        followers.close()
        assert two.is_closed
        with pytest.raises(Unavailable):
            followers.follow("logs", "one", "earliest")
