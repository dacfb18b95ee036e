"""Follower: the rows of a table, from long ago up to this moment, and on as they come.

    log has the place ──────────────> read it there ─> nothing new: wait
          │ no                              │ the log let go of it meanwhile
          └> table has it ─> read up to W, <┘
                             all it holds ──> on in the log, at exactly W

A place is an offset of each partition, and every answer moves it from its beginning to its end, be
it from the table or from the log. So nothing is left out or given twice at the seam, wherever that
is when one comes to it. The log lets go only of what a table holds, if the topic awaits the lake;
of other topics something may be in neither: that is counted, and left out.

What the caller has acknowledged is saved by name, durably, before `ack` returns. Whoever comes back
gets exactly what was not, from the first row of the first such offset on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from types import TracebackType

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
"""How often to look whether somebody has closed it."""
CONFLICTS_MAX = 5
"""Files replaced under a reader, one time after the other, without a single row in between."""

DROPPED = Counter("frazil.lake.dropped.offsets", "Offsets in neither log nor table, by reader.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRows:
    """Some rows: all of the offsets from `begin` up to `end` of a partition, in order.

    `_log_partition`, `_offset` and `_row`, where the table has it, name a row for good: whoever
    keeps them can tell one that comes again after a crash.
    """

    partition: int
    begin: int
    end: int
    rows: pa.RecordBatch
    number: int
    after: ReaderProgress
    """Where the reader is when these, and all before them, are done."""


class Follower:
    """Follows one table under a name. Belongs to one thread; any may close it."""

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
        self._ahead: Generator[WindowRows] | None = None
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
        """Go on where the reader of that name was; then `start` is not looked at. A new one begins
        where it says, and is known by its name from now on."""
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
        """Partition -> the offset that comes next."""
        return dict(self._offsets)

    @property
    def dropped_count(self) -> int:
        """Offsets that were nowhere any more when they were wanted."""
        return self._dropped_count

    def read(self, timeout_s: float = 0.0) -> FollowedRows | None:
        """The next rows; None when there are none, also after so much waiting for some."""
        with self._reading:
            while not self._is_closing:
                rows = self._next()
                if rows is not None:
                    assert rows.begin == self._offsets[rows.partition], "rows follow each other"
                    self._offsets[rows.partition] = rows.end
                    if rows.batch.num_rows:
                        return self._followed(rows)
                elif not self._tail.wait(self._offsets, min(WAIT_S, timeout_s)):
                    timeout_s -= WAIT_S
                    if timeout_s <= 0:
                        return None
        raise Unavailable(f"reader {self.name} is closed")

    def __iter__(self) -> Iterator[FollowedRows]:
        """Rows as they come, without end, until it is closed."""
        while not self._is_closing:
            try:
                found = self.read(WAIT_S)
            except Unavailable:
                if self._is_closing:
                    return
                raise
            if found is not None:
                yield found

    def ack(self, followed: FollowedRows) -> None:
        """These rows are done, and all that were given before them. Durable when this returns."""
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
        """What comes next: from the table what was begun there, from the log what it has, from
        the table what the log has not. None when everything durable was given."""
        while True:
            rows = self._from_table()
            if rows is not None:
                return rows
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
            self._go_back()

    def _from_table(self) -> WindowRows | None:
        try:
            rows = None if self._ahead is None else next(self._ahead, None)
        except Conflict:
            # Files were replaced. What was given counts; the rest is in other files.
            self._conflicts += 1
            if self._conflicts > CONFLICTS_MAX:
                raise
            return None
        if rows is not None:
            self._conflicts = 0
        return rows

    def _go_back(self) -> None:
        """The log has let go of the place: look for it in the table."""
        # Before the table is looked at: what the log lets go of later, a later look finds.
        starts = {partition: self._tail.start(partition) for partition in self._offsets}
        ends: dict[int, int] = {}
        if self._history is not None:
            self._history.refresh()
            ends = self._history.ends()
        elif self._tail.awaits_lake:
            raise Unavailable(
                f"the log has let go of what reader {self.name} wants next, and there is no lake "
                "here in which it is: set lake.enabled, and install frazil[lake]"
            )
        behind = {p: offset for p, offset in self._offsets.items() if offset < starts[p]}
        for partition, offset in behind.items():
            if offset >= ends.get(partition, 0):
                self._drop(partition, starts[partition])
        if self._history is not None:
            self._ahead = self._history.read({p: self._offsets[p] for p in behind})

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
        """Give everything back. What is not acknowledged comes again."""
        self._is_closing = True
        with self._reading:
            if self.is_closed:
                return
            self.is_closed = True
            if self._ahead is not None:
                self._ahead.close()
            self._tail.close()
            if self._history is not None:
                self._history.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
