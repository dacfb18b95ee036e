"""OffsetRangeReader: rows of one table by offset, from the log or, once deleted there, from the
lake. For processes that do not hold the log's lock.

The rows of an offset never change: reading a range again gives the same rows from either one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.disk import RealDisk
from frazil.errors import Conflict, OutOfRange, Unknown
from frazil.lake.append.commit import next_offsets
from frazil.lake.append.log_source import slices_of
from frazil.lake.append.slice import Slice, SourcePartition, requests_of
from frazil.lake.append.task import decode_all
from frazil.lake.catalog.catalog import catalog_calls, catalog_path, open_catalog
from frazil.lake.read.lake_range import LakeRangeRows, end_in_files, files_of_range, lake_range_rows
from frazil.log import PartitionObserver, PartitionView, end_within, partition_count
from frazil.model import MiB, Signal, TopicPartition, arrow
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyiceberg.table import Table

SLICE_BYTES = 16 * MiB
"""Bytes of the log per task."""
Position = Mapping[TopicPartition, int]
"""The next offset of each partition; 0 for partitions that are missing."""


class OffsetRangeReader:
    """Owned by one thread."""

    def __init__(self, folder: str, table: str, config: LakeConfig) -> None:
        """Raise `Unknown` if the data folder or the table does not exist."""
        if not (Path(folder) / "log").is_dir():
            raise Unknown(
                f"{folder} is not a data folder of Frazil: it has no log. If Kafka is the log, use "
                "Spark's own source, `kafka`"
            )
        signals = [signal for signal in Signal if signal.table == table]
        if not signals:
            known = ", ".join(signal.table for signal in Signal)
            raise Unknown(f"there is no table {table!r}; the tables are {known}")
        (self._signal,) = signals
        self._topic, self._table = self._signal.topic, self._signal.table
        self._folder = folder
        self._disk = RealDisk(folder)
        self._config = config
        self._observers: dict[int, PartitionObserver] = {}

    def end(self) -> dict[TopicPartition, int]:
        """Return the position after the last durable record."""
        return {
            source.topic_partition: self._view_of(source).last_stable_offset
            for source in self._sources()
        }

    def earliest(self) -> dict[TopicPartition, int]:
        """Return the position of the first readable rows."""
        begins = {
            source.topic_partition: self._view_of(source).start_offset for source in self._sources()
        }
        if not any(begins.values()):
            return begins
        # The lake holds all rows from offset 0.
        with ReadOnlyLake(self._folder, self._config) as lake:
            held = lake.held(self._table)
        return {
            place: 0 if begin <= held.get(place, 0) else begin for place, begin in begins.items()
        }

    def next_end(
        self, begin: Position, bytes_max: int, offsets_max: int | None
    ) -> dict[TopicPartition, int]:
        """Return the end of the next batch of about `bytes_max` bytes, or `offsets_max` offsets."""
        sources = self._sources()
        share = max(1, bytes_max // max(1, len(sources)))
        ends = {}
        for source in sources:
            first, view = begin.get(source.topic_partition, 0), self._view_of(source)
            if first > view.last_stable_offset:
                raise Conflict(
                    f"{source.topic}/{source.partition} ends at offset {view.last_stable_offset}, "
                    f"but this stream is at {first}; this is another log, or an old copy of it"
                )
            end = self._end_in_lake(source, first, view, share)
            if end is None:
                end = end_within(view, first, share)
            if offsets_max is not None:
                end = min(end, first + max(1, offsets_max // len(sources)))
            ends[source.topic_partition] = end
        return ends

    def _end_in_lake(
        self, source: SourcePartition, begin: int, view: PartitionView, bytes_max: int
    ) -> int | None:
        """Return that end if `begin` is in the lake only, else None."""
        if begin >= view.start_offset:
            return None
        with ReadOnlyLake(self._folder, self._config) as lake:
            table = lake.table_holding(source, begin, view.start_offset)
            files = files_of_range(table, source, begin, view.start_offset)
        return end_in_files(files, begin, view.start_offset, bytes_max)

    def plan(self, begin: Position, end: Position) -> list[Part]:
        """Split all rows from one position up to another into parts for tasks."""
        return [
            part
            for source in self._sources()
            for part in self._plan(
                source,
                begin.get(source.topic_partition, 0),
                end.get(source.topic_partition, 0),
                self._view_of(source),
            )
        ]

    def _plan(
        self, source: SourcePartition, begin: int, end: int, view: PartitionView
    ) -> list[Part]:
        parts: list[Part] = []
        if begin >= end:
            return parts
        if begin < view.start_offset:
            lake_end = min(end, view.start_offset)
            with ReadOnlyLake(self._folder, self._config) as lake:
                table = lake.table_holding(source, begin, lake_end)
                parts += lake_range_rows(table, source, begin, lake_end)
            begin = lake_end
        if begin == end:
            return parts
        slices = slices_of(view, source, self._folder, begin, end, SLICE_BYTES)
        return parts + [
            LogRangeRows(slice=part, folder=self._folder, config=self._config) for part in slices
        ]

    def _sources(self) -> list[SourcePartition]:
        return [
            SourcePartition(
                table=self._table, signal=self._signal, topic=self._topic, partition=number
            )
            for number in range(partition_count(self._disk, self._topic))
        ]

    def _view_of(self, source: SourcePartition) -> PartitionView:
        number = source.partition
        if number not in self._observers:
            self._observers[number] = PartitionObserver(self._disk, source.topic, number)
        return self._observers[number].observe()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRangeRows:
    """Rows of a slice of the log, decoded when read."""

    slice: Slice
    folder: str
    config: LakeConfig

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in order. Rows deleted from the log meanwhile come from the lake."""
        slice, done = self.slice, self.slice.begin
        schema = arrow.TABLES[slice.source.table]
        try:
            for requests in requests_of(slice, slice.origin.read()):
                for decoded in decode_all(arrow.decode, slice.source.signal, requests, schema):
                    yield decoded.batch
                done = requests[-1].offset + 1
        except Conflict:
            with ReadOnlyLake(self.folder, self.config) as lake:
                table = lake.table_holding(slice.source, done, slice.end)
                parts = lake_range_rows(table, slice.source, done, slice.end)
            for part in parts:
                yield from part.read()


Part = LogRangeRows | LakeRangeRows
"""The work of one task."""


class ReadOnlyLake:
    """The lake's catalog, opened for reading. It need not exist."""

    def __init__(self, folder: str, config: LakeConfig) -> None:
        self._config = config
        self._catalog = None
        if importlib.util.find_spec("pyiceberg") is None:
            return
        path = catalog_path(config, Path(folder))
        # Opening an SQLite catalog would create it.
        if path is None or path.exists():
            self._catalog = open_catalog(config, Path(folder))

    def table(self, name: str) -> Table | None:
        """Return the current table, or None if it does not exist."""
        from pyiceberg.exceptions import NoSuchTableError

        if self._catalog is None:
            return None
        try:
            with catalog_calls(self._config):
                return self._catalog.load_table((self._config.namespace, name))
        except NoSuchTableError:
            return None

    def held(self, name: str) -> dict[TopicPartition, int]:
        """Return the first offset of each partition that a table does not hold."""
        table = self.table(name)
        return {} if table is None else next_offsets(table)

    def table_holding(self, source: SourcePartition, begin: int, end: int) -> Table:
        """Return the table. Raise `OutOfRange` if it does not hold these offsets."""
        table = self.table(source.table)
        held = 0 if table is None else next_offsets(table).get(source.topic_partition, 0)
        if table is None or held < end:
            raise OutOfRange(
                f"offsets {max(begin, held)} up to {end} of {source.topic}/{source.partition} are "
                f"no longer in the log, and the lake holds only those below {held}: they are lost "
                "to this reader. Start after them, with new startingOffsets and a new checkpoint"
            )
        return table

    def __enter__(self) -> ReadOnlyLake:
        return self

    def __exit__(self, *_: object) -> None:
        if self._catalog is not None:
            self._catalog.close()
