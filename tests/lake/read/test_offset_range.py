"""Offsets are rows: the same ones each time, from the log or from the lake, each once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from frazil.disk import RealDisk
from frazil.errors import Conflict, Malformed, OutOfRange, Unknown
from frazil.lake.append.appender import Appender
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.config import LakeConfig
from frazil.lake.pyspark.data_source import ReadTask, StreamReader, open_history
from frazil.lake.pyspark.source_options import OPTIONS, asked_of
from frazil.lake.read.offset_range import LogRangeRows
from frazil.log import Log, LogConfig, Record, TopicConfig, append_of_records
from frazil.model import KiB, Signal, SystemClock
from frazil.model.arrow import TABLES
from tests.lake.append.test_appender import run_here
from tests.lake.rows import bodies, multiset

CLOCK = SystemClock()
SMALL = LakeConfig(slice_bytes=20_000)
LOG = LogConfig(
    segment_bytes_max=8 * KiB,
    batch_bytes_max=64 * KiB,
    group_bytes_max=128 * KiB,
    queue_bytes_max=256 * KiB,
    disk_bytes_max=4096 * KiB,
    index_interval_bytes=512,
)
PARTITIONS = 2
RELEASED = TopicConfig(partitions=PARTITIONS, awaits_lake=True, retention_ms=0)
Batch = list[pa.RecordBatch]


@dataclass(slots=True)
class Folder:
    """A data folder whose node runs in this process: the readers have nothing but the path."""

    log: Log
    path: Path
    signal: str = "logs"
    seeds: Iterator[int] = field(default_factory=lambda: iter(range(1000)))

    @property
    def topic(self) -> str:
        return Signal(self.signal).topic

    @property
    def table(self) -> str:
        return Signal(self.signal).table

    def add(self, count: int) -> None:
        for number, body in enumerate(bodies(self.signal, next(self.seeds), count)):
            record = Record(offset=0, timestamp_ms=1_700_000_000_000, key=None, value=body)
            partition = number % PARTITIONS
            self.log.append(self.topic, append_of_records([record]), partition=partition).result()

    def freeze(self) -> None:
        """Into the lake, and away with what is in it."""
        with closing(open_catalog(SMALL, self.path)) as catalog:
            feed = LogSource(self.log, self.path)
            made = Appender.open(
                feed, catalog, SMALL, run=run_here, clock=CLOCK, rand=random.SystemRandom()
            )
            while made.append():
                pass
        self.log.maintain()

    def starts(self) -> list[int]:
        views = [partition.view for partition in self.log.topic(self.topic).partitions]
        return [view.start_offset for view in views]

    def reader(self, **options: str) -> StreamReader:
        given = {"path": str(self.path), "table": self.table, **options}
        return StreamReader(asked_of(given, SMALL), TABLES[self.table].names)

    def everything(self) -> Counter[str]:
        reader = self.reader()
        end = open_history(reader._asked).end()
        return read(reader, {}, {self.topic: {str(p): offset for (_, p), offset in end.items()}})


def read(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> Counter[str]:
    return multiset(batch for work in reader.partitions(start, end) for batch in reader.read(work))


def at(position: dict[str, Any]) -> dict[str, Any]:
    """How far it is, without where it began."""
    return {topic: offsets for topic, offsets in position.items() if topic != "since"}


def batches_of(reader: StreamReader) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """As Spark does: where each batch of a query begins and ends, until there is nothing new."""
    end = reader.latestOffset()
    start = reader.initialOffset()
    while start != end:
        reader.partitions(start, end)
        yield start, end
        start, end = end, reader.latestOffset()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    path = tmp_path / "data"
    with Log.open(RealDisk(path), LOG, clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in (signal.topic for signal in Signal):
            log.create_topic(topic, RELEASED)
        yield Folder(log=log, path=path)


@pytest.mark.parametrize("signal", ["logs", "traces", "metrics"])
def test_rows_are_the_same_from_the_lake(folder: Folder, signal: str) -> None:
    """Every bit of every column: from the log, then from both, then what was planned before the
    log let go of it."""
    folder.signal = signal
    folder.add(60)
    rows = folder.everything()
    assert rows.total() > 40
    assert max(rows.values()) == 1
    begin: dict[str, Any] = {folder.topic: {"0": 3, "1": 0}}
    end: dict[str, Any] = {folder.topic: {"0": 21, "1": 17}}
    reader = folder.reader()
    planned = reader.partitions(begin, end)
    assert all(
        isinstance(work, ReadTask) and isinstance(work.part, LogRangeRows) for work in planned
    )
    wanted = read(reader, begin, end)
    folder.freeze()
    assert min(folder.starts()) > 3, "the log has let go of some"
    assert folder.everything() == rows
    assert read(folder.reader(), begin, end) == wanted
    assert multiset(batch for work in planned for batch in reader.read(work)) == wanted


def test_a_task_goes_on_in_the_lake(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log lets go while a slice is read: what was handed out is not handed out again."""
    monkeypatch.setattr("frazil.lake.append.slice.REQUESTS_BYTES", 1)
    folder.add(60)
    rows = folder.everything()
    reader = folder.reader()
    reading: Batch = []
    for work in reader.partitions({}, {folder.topic: {"0": 30, "1": 30}}):
        found = reader.read(work)
        reading.append(next(found))
        folder.freeze()
        reading += found
    assert multiset(reading) == rows


@pytest.mark.parametrize("option", ["maxBytesPerTrigger", "maxOffsetsPerTrigger"])
def test_batches_are_small_and_follow_each_other(folder: Folder, option: str) -> None:
    """Through what is in the lake, and what is in the log; done again, they are the same."""
    folder.add(50)
    folder.freeze()
    folder.add(50)
    limit = "8" if option == "maxOffsetsPerTrigger" else "6000"
    reader = folder.reader(**{option: limit})
    done = {}
    for start, end in batches_of(reader):
        done[json.dumps(start)] = (start, end, read(reader, start, end))
    assert len(done) > 8
    every = Counter[str]()
    for start, end, rows in done.values():
        every += rows
        if option == "maxOffsetsPerTrigger":
            moved = [end[folder.topic][p] - start[folder.topic][p] for p in ("0", "1")]
            assert max(moved) <= 4
    assert every == folder.everything()
    folder.freeze()
    for start, end, rows in done.values():
        assert read(folder.reader(), start, end) == rows


def test_a_query_goes_on_where_spark_says(folder: Folder) -> None:
    """After a restart it hears of its position before it is asked for the next one."""
    folder.add(40)
    reader = folder.reader(maxOffsetsPerTrigger="4")
    here = {folder.topic: {"0": 11, "1": 7}}
    assert reader.partitions(here, here) == []
    assert at(reader.latestOffset()) == {folder.topic: {"0": 13, "1": 9}}


def test_where_a_query_began_is_known_after_a_restart(folder: Folder) -> None:
    """Spark asks for it again while the first batch has not ended, behind the end of that batch."""
    folder.add(10)
    reader = folder.reader(startingOffsets="latest")
    begin = reader.initialOffset()
    assert begin[folder.topic] == begin["since"][folder.topic] == {"0": 5, "1": 5}
    folder.add(4)
    end = reader.latestOffset()
    assert end["since"] == begin["since"]
    rows = read(reader, begin, end)
    folder.add(4)
    again = folder.reader(startingOffsets="latest")
    assert again.partitions(end, end) == []
    assert again.initialOffset() == begin
    assert read(again, begin, end) == rows
    assert rows.total() > 0


def test_where_a_query_begins_and_ends(folder: Folder) -> None:
    folder.add(10)
    assert at(folder.reader().initialOffset()) == {folder.topic: {"0": 0, "1": 0}}
    latest = folder.reader(startingOffsets="latest")
    assert latest.initialOffset() == latest.latestOffset()
    assert at(latest.initialOffset()) == {folder.topic: {"0": 5, "1": 5}}
    named = folder.reader(startingOffsets='{"otlp_logs": {"1": 3}}')
    assert at(named.initialOffset()) == {folder.topic: {"0": 0, "1": 3}}
    bounded = folder.reader(endingOffsets="latest")
    assert at(bounded.latestOffset()) == {folder.topic: {"0": 5, "1": 5}}
    folder.add(10)
    assert at(bounded.latestOffset()) == {folder.topic: {"0": 5, "1": 5}}
    assert at(latest.latestOffset()) == {folder.topic: {"0": 10, "1": 10}}
    named_end = folder.reader(endingOffsets='{"otlp_logs": {"0": 2, "1": 4}}')
    assert at(named_end.latestOffset()) == {folder.topic: {"0": 2, "1": 4}}


def test_a_topic_may_come_later(tmp_path: Path) -> None:
    """Nobody has sent any yet; whoever waits sees all of it then."""
    path = tmp_path / "data"
    with Log.open(RealDisk(path), LOG, clock=CLOCK, rand=random.SystemRandom()) as log:
        folder = Folder(log=log, path=path)
        log.create_topic("another")
        reader = folder.reader(startingOffsets="latest")
        assert reader.initialOffset() == reader.latestOffset() == {"since": {}}
        log.create_topic(folder.topic, RELEASED)
        folder.add(4)
        assert at(reader.latestOffset()) == {folder.topic: {"0": 2, "1": 2}}
        assert read(reader, {}, reader.latestOffset()) == folder.everything()


def test_what_is_nowhere_is_said(folder: Folder) -> None:
    """Trimmed, and not in the lake: no query goes on as if nothing had been there."""
    folder.add(60)
    reader = folder.reader()
    planned = reader.partitions({}, {folder.topic: {"0": 30, "1": 30}})
    for partition in folder.log.topic(folder.topic).partitions:
        folder.log.writer.run(partial(partition.trim, 25)).result()
    assert all(folder.starts())
    with pytest.raises(OutOfRange, match="lake holds what is below 0"):
        reader.partitions({}, {folder.topic: {"0": 30, "1": 30}})
    with pytest.raises(OutOfRange, match="are lost to this reader"):
        multiset(batch for work in planned for batch in reader.read(work))
    assert folder.reader().initialOffset()[folder.topic] == {
        str(number): start for number, start in enumerate(folder.starts())
    }


def test_another_log_is_noticed(folder: Folder) -> None:
    """The position is beyond its end."""
    folder.add(4)
    reader = folder.reader()
    reader.partitions({folder.topic: {"0": 9}}, {folder.topic: {"0": 9}})
    with pytest.raises(Conflict, match="another log"):
        reader.latestOffset()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "'path' is missing"),
        ({"path": "x"}, "'table' is missing"),
        ({"path": "x", "tabel": "logs"}, "no option 'tabel'"),
        ({"startingOffsets": "first"}, "earliest, latest, or like"),
        ({"startingOffsets": '{"otlp_logs": 3}'}, "earliest, latest, or like"),
        ({"endingOffsets": "earliest"}, "must be latest, or like"),
        ({"maxBytesPerTrigger": "0"}, "a number above 0"),
        ({"maxOffsetsPerTrigger": "many"}, "a number above 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], wanted: str) -> None:
    given = options if "path" in options or not options else {"path": "x", "table": "y", **options}
    with pytest.raises(Malformed, match=wanted):
        asked_of(given, None)


def test_options_are_what_they_are_in_any_case() -> None:
    """As everywhere in Spark."""
    for change in (str.lower, str.upper):
        given = {change(name): "1" if "max" in name else "latest" for name in OPTIONS}
        assert asked_of(given, None).starting == "latest"


def ask(folder: Path, table: str) -> Callable[[], object]:
    return lambda: open_history(asked_of({"path": str(folder), "table": table}, None))


def test_what_is_not_there_is_said(tmp_path: Path, folder: Folder) -> None:
    with pytest.raises(Unknown, match="no data folder of Frazil"):
        ask(tmp_path / "nothing", "logs")()
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(Unknown, match="there are logs, spans, metrics"):
        ask(folder.path, "dead_letters")()
    assert not (folder.path / "lake").exists(), "whoever looks makes nothing"
