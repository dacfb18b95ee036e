"""Follower: the rows of a table, old ones first, then new ones as they arrive.

    offset in the log ────────────────> read the log ─> nothing new: wait
          │ no                                │ deleted from the log meanwhile
          └> offset in the table ─> read the <┘
                                    table up to W ──> continue in the log at exactly W

The position is one offset per partition. Every read moves it from `begin` to `end`, whether the
rows come from the table or the log, so no row is skipped or repeated where the two meet. If a topic
waits for the lake, the log deletes only records that the table holds. Records of other topics may
be in neither; they are counted and skipped.

Acknowledged progress is saved under the reader's name, durably before `ack` returns. A reader that
comes back continues with the first offset that was not acknowledged.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import pyarrow as pa

from frazil.disk import Disk
from frazil.errors import Conflict, OutOfRange, Unavailable
from frazil.lake.read import reader_progress
from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.reader_progress import ReaderProgress
from frazil.lake.read.start_offset import start_of
from frazil.lake.read.table_reader import TableReader
from frazil.lake.read.window_reader import WindowRows
from frazil.log import Start
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

WAIT_S = 0.5
"""How often a waiting reader checks whether it was closed."""
CONFLICTS_MAX = 5
"""Limit of consecutive conflicts (replaced files) without a row in between."""

DROPPED = Counter("frazil.lake.dropped.offsets", "Offsets in neither log nor table, by reader.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRows:
    """All rows of the offsets from `begin` up to `end` of a partition, in order.

    `_log_partition`, `_offset` and, if the table has it, `_row` identify a row permanently: use
    them to detect rows that are read again after a crash.
    """

    partition: int
    begin: int
    end: int
    rows: pa.RecordBatch
    number: int
    after: ReaderProgress
    """Progress after these rows and all before them."""


class Follower:
    """Named reader of one table. Owned by one thread; any thread may close it."""

    def __init__(
        self,
        name: str,
        progress: ReaderProgress,
        *,
        disk: Disk,
        tail: LogTail,
        history: TableReader | None,
    ) -> None:
        self.name = name
        self._disk = disk
        self._tail = tail
        self._history = history
        self._offsets = dict(progress.offsets)
        self._dropped_count = progress.dropped_count
        self._table_rows: Generator[WindowRows] | None = None
        self._reading = threading.Lock()
        self._number = 0
        self._acked = 0
        self._turn = 0
        self._conflicts = 0
        self._is_closing = False
        self.is_closed = False

    @classmethod
    def open(
        cls, name: str, start: Start, *, disk: Disk, tail: LogTail, history: TableReader | None
    ) -> Follower:
        """Continue the reader of that name, ignoring `start`, or create it at `start`."""
        progress = reader_progress.load(disk, name, tail.table)
        if progress is None:
            offsets = {
                partition: start_of(partition, start, tail, history)
                for partition in tail.partitions
            }
            progress = ReaderProgress(table=tail.table, offsets=offsets)
            reader_progress.save(disk, name, progress)
        return cls(name, progress, disk=disk, tail=tail, history=history)

    @property
    def offsets(self) -> dict[int, int]:
        """Partition -> next offset."""
        return dict(self._offsets)

    @property
    def dropped_count(self) -> int:
        """Offsets that were in neither log nor table when they were due."""
        return self._dropped_count

    def read(self, timeout_s: float = 0.0) -> FollowedRows | None:
        """Return the next rows, or None if there are none within the timeout."""
        with self._reading:
            while not self._is_closing:
                rows = self._next()
                if rows is not None:
                    assert rows.begin == self._offsets[rows.partition], "rows are contiguous"
                    self._offsets[rows.partition] = rows.end
                    if rows.batch.num_rows:
                        return self._followed(rows)
                elif not self._tail.wait(self._offsets, min(WAIT_S, timeout_s)):
                    timeout_s -= WAIT_S
                    if timeout_s <= 0:
                        return None
        raise Unavailable(f"reader {self.name} is closed")

    def __iter__(self) -> Iterator[FollowedRows]:
        """Yield rows as they arrive, until the reader is closed."""
        while not self._is_closing:
            try:
                rows = self.read(WAIT_S)
            except Unavailable:
                if self._is_closing:
                    return
                raise
            if rows is not None:
                yield rows

    def ack(self, followed: FollowedRows) -> None:
        """Acknowledge these rows and all before them. Durable when this returns."""
        if followed.number > self._acked:
            reader_progress.save(self._disk, self.name, followed.after)
            self._acked = followed.number

    def _followed(self, rows: WindowRows) -> FollowedRows:
        self._number += 1
        return FollowedRows(
            partition=rows.partition,
            begin=rows.begin,
            end=rows.end,
            rows=rows.batch,
            number=self._number,
            after=ReaderProgress(
                table=self._tail.table,
                offsets=dict(self._offsets),
                dropped_count=self._dropped_count,
            ),
        )

    def _next(self) -> WindowRows | None:
        """Return the next rows: from a table read in progress, from the log, or from the table
        if the log no longer has them. None if all durable rows were read."""
        while True:
            rows = self._from_table()
            if rows is not None:
                return rows
            for partition in self._tail.find_partitions():
                self._offsets.setdefault(partition, 0)  # added since: from its first row on
            is_behind = False
            for _ in self._offsets:
                self._turn += 1
                partition = self._turn % len(self._offsets)
                try:
                    rows = self._tail.read(partition, self._offsets[partition])
                except OutOfRange:
                    is_behind = True
                    continue
                if rows is not None:
                    return rows
            if not is_behind:
                return None
            self._read_from_table()

    def _from_table(self) -> WindowRows | None:
        try:
            rows = None if self._table_rows is None else next(self._table_rows, None)
        except Conflict:
            # Files were replaced. Rows returned so far stay valid; the rest is in other files.
            self._conflicts += 1
            if self._conflicts > CONFLICTS_MAX:
                raise
            return None
        if rows is not None:
            self._conflicts = 0
        return rows

    def _read_from_table(self) -> None:
        """Start reading the table, because the log no longer has the next offset."""
        # Before the table is loaded: offsets deleted later are found by a later refresh.
        starts = {partition: self._tail.start(partition) for partition in self._offsets}
        ends: dict[int, int] = {}
        if self._history is not None:
            self._history.refresh()
            ends = self._history.ends()
        elif self._tail.awaits_lake:
            raise Unavailable(
                f"the next rows of reader {self.name} are no longer in the log, and the lake is "
                "not enabled: set lake.enabled and install frazil[lake]"
            )
        behind = {p: offset for p, offset in self._offsets.items() if offset < starts[p]}
        for partition, offset in behind.items():
            if offset >= ends.get(partition, 0):
                self._drop(partition, starts[partition])
        if self._history is not None:
            self._table_rows = self._history.read({p: self._offsets[p] for p in behind})

    def _drop(self, partition: int, start: int) -> None:
        count = start - self._offsets[partition]
        DROPPED.add(count, reader=self.name)
        logger.warning(
            "the log was trimmed before a reader or the lake had it",
            extra={"reader": self.name, "partition": partition, "count": count},
        )
        self._dropped_count += count
        self._offsets[partition] = start

    def close(self) -> None:
        """Close the reader. Rows that were not acknowledged are read again next time."""
        self._is_closing = True
        with self._reading:
            if self.is_closed:
                return
            self.is_closed = True
            if self._table_rows is not None:
                self._table_rows.close()
            self._tail.close()
            if self._history is not None:
                self._history.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
