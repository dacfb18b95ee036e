"""A range of offsets has the same rows from the log and from the lake, each once."""

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
from frazil.lake.pyspark.data_source import ReadTask, StreamReader, open_reader
from frazil.lake.pyspark.source_options import OPTIONS, parse_options
from frazil.lake.read.offset_range import LogRangeRows
from frazil.log import Log, Record, append_of_records
from frazil.model import KiB, Signal, SystemClock
from frazil.model.arrow import TABLES
from frazil.settings import LakeConfig, LogConfig, TopicConfig
from tests.lake.inline_tasks import run_inline
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
    """A data folder with an open log. Readers get only its path."""

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
        """Commit everything to the lake, and delete it from the log."""
        with closing(open_catalog(SMALL, self.path)) as catalog:
            source = LogSource(self.log, self.path)
            appender = Appender.open(
                source, catalog, SMALL, run=run_inline, clock=CLOCK, rand=random.SystemRandom()
            )
            while appender.append():
                pass
        self.log.maintain()

    def starts(self) -> list[int]:
        views = [partition.view for partition in self.log.topic(self.topic).partitions]
        return [view.start_offset for view in views]

    def reader(self, **options: str) -> StreamReader:
        values = {"path": str(self.path), "table": self.table, **options}
        return StreamReader(parse_options(values, SMALL), TABLES[self.table].names)

    def everything(self) -> Counter[str]:
        reader = self.reader()
        end = open_reader(reader._options).end()
        return read(reader, {}, {self.topic: {str(p): offset for (_, p), offset in end.items()}})


def read(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> Counter[str]:
    return multiset(batch for work in reader.partitions(start, end) for batch in reader.read(work))


def at(position: dict[str, Any]) -> dict[str, Any]:
    """Return a position without `since`."""
    return {topic: offsets for topic, offsets in position.items() if topic != "since"}


def batches_of(reader: StreamReader) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield start and end of each batch, as Spark requests them, until nothing is new."""
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
def test_lake_and_log_return_the_same_rows(folder: Folder, signal: str) -> None:
    """Bit for bit: from the log, then from both, then with a plan made before the log was
    trimmed."""
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
    expected = read(reader, begin, end)
    folder.freeze()
    assert min(folder.starts()) > 3, "the log has deleted some"
    assert folder.everything() == rows
    assert read(folder.reader(), begin, end) == expected
    assert multiset(batch for work in planned for batch in reader.read(work)) == expected


def test_a_task_continues_in_the_lake(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the log is trimmed while a slice is read, no row is returned twice."""
    monkeypatch.setattr("frazil.lake.append.slice.REQUESTS_BYTES", 1)
    folder.add(60)
    rows = folder.everything()
    reader = folder.reader()
    reading: Batch = []
    for work in reader.partitions({}, {folder.topic: {"0": 30, "1": 30}}):
        rest = reader.read(work)
        reading.append(next(rest))
        folder.freeze()
        reading += rest
    assert multiset(reading) == rows


@pytest.mark.parametrize("option", ["maxBytesPerTrigger", "maxOffsetsPerTrigger"])
def test_batches_are_limited_and_contiguous(folder: Folder, option: str) -> None:
    """They cover lake and log, and return the same rows when repeated."""
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


def test_a_restarted_query_continues_at_its_checkpoint(folder: Folder) -> None:
    """Spark passes the position to `partitions` before it asks for the latest offset."""
    folder.add(40)
    reader = folder.reader(maxOffsetsPerTrigger="4")
    position = {folder.topic: {"0": 11, "1": 7}}
    assert reader.partitions(position, position) == []
    assert at(reader.latestOffset()) == {folder.topic: {"0": 13, "1": 9}}


def test_the_initial_offset_survives_a_restart(folder: Folder) -> None:
    """Spark asks for it again if the first batch has not finished."""
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


def test_starting_and_ending_offsets(folder: Folder) -> None:
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


def test_a_topic_may_be_created_later(tmp_path: Path) -> None:
    """A query that started before reads it from its first row."""
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


def test_lost_offsets_are_an_error(folder: Folder) -> None:
    """Rows that were trimmed and are not in the lake are never skipped silently."""
    folder.add(60)
    reader = folder.reader()
    planned = reader.partitions({}, {folder.topic: {"0": 30, "1": 30}})
    for partition in folder.log.topic(folder.topic).partitions:
        folder.log.writer.run(partial(partition.trim, 25)).result()
    assert all(folder.starts())
    with pytest.raises(OutOfRange, match="lake holds only those below 0"):
        reader.partitions({}, {folder.topic: {"0": 30, "1": 30}})
    with pytest.raises(OutOfRange, match="are lost to this reader"):
        multiset(batch for work in planned for batch in reader.read(work))
    assert folder.reader().initialOffset()[folder.topic] == {
        str(number): start for number, start in enumerate(folder.starts())
    }


def test_a_position_beyond_the_log_is_an_error(folder: Folder) -> None:
    folder.add(4)
    reader = folder.reader()
    reader.partitions({folder.topic: {"0": 9}}, {folder.topic: {"0": 9}})
    with pytest.raises(Conflict, match="another log"):
        reader.latestOffset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "'path' is missing"),
        ({"path": "x"}, "'table' is missing"),
        ({"path": "x", "tabel": "logs"}, "no option 'tabel'"),
        ({"startingOffsets": "first"}, "earliest, latest, or JSON like"),
        ({"startingOffsets": '{"otlp_logs": 3}'}, "earliest, latest, or JSON like"),
        ({"endingOffsets": "earliest"}, "must be latest, or JSON like"),
        ({"maxBytesPerTrigger": "0"}, "a positive integer"),
        ({"maxOffsetsPerTrigger": "many"}, "a positive integer"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, str], message: str) -> None:
    values = options if "path" in options or not options else {"path": "x", "table": "y", **options}
    with pytest.raises(Malformed, match=message):
        parse_options(values, None)


def test_option_names_are_case_insensitive() -> None:
    for change in (str.lower, str.upper):
        values = {change(name): "1" if "max" in name else "latest" for name in OPTIONS}
        assert parse_options(values, None).starting == "latest"


def opening(folder: Path, table: str) -> Callable[[], object]:
    return lambda: open_reader(parse_options({"path": str(folder), "table": table}, None))


def test_a_missing_folder_or_table_is_an_error(tmp_path: Path, folder: Folder) -> None:
    with pytest.raises(Unknown, match="not a data folder of Frazil"):
        opening(tmp_path / "nothing", "logs")()
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(Unknown, match="the tables are logs, spans, metrics"):
        opening(folder.path, "dead_letters")()
    assert not (folder.path / "lake").exists(), "a reader creates nothing"
