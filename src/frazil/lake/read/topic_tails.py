"""TopicTails: the live ends of topics as rows, kept for the next question.

A record becomes a row once, however often somebody asks. What a table holds by then is forgotten,
and so is what was asked for longest ago, when all of it is more than may be kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from frazil.errors import TooLarge
from frazil.lake.append.log_source import bytes_behind
from frazil.lake.append.slice import RECORDS
from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.window_reader import WindowRows
from frazil.lake.tables.record_rows import table_of
from frazil.log import Log, Topic

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Of all topics together, between two questions."""
JOINED_ROWS = 4096
"""Fewer are joined with those that come behind them: each batch costs a query as much as some
hundred rows."""


@dataclass(slots=True)
class _Kept:
    """The rows of one topic, by partition, each behind the one before."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: dict[int, tuple[WindowRows, ...]] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(each.batch.nbytes for rows in self.rows.values() for each in rows)


class TopicTails:
    """Any thread may ask; those who want the same topic wait for each other."""

    def __init__(self, log: Log, bytes_max: int) -> None:
        """`bytes_max` of rows is what one topic may have."""
        self._log = log
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        """What was asked for last is last."""

    def read(
        self, topic: Topic, begins: Mapping[int, int], check: Callable[[], None]
    ) -> tuple[WindowRows, ...]:
        """Every row from these offsets on that is durable now. Calls `check` now and then, which
        may raise; what was read by then is kept.

        `OutOfRange` when the log has let go of some; `TooLarge` when they are too many.
        """
        with self._lock:
            kept = self._kept.pop(topic.name, None) or _Kept()
            self._kept[topic.name] = kept
        try:
            with (
                kept.lock,
                closing(LogTail(self._log, topic.name, table_of(topic.name), RECORDS)) as tail,
            ):
                return self._read(tail, topic, kept, begins, check)
        finally:
            self._forget()

    def _read(
        self,
        tail: LogTail,
        topic: Topic,
        kept: _Kept,
        begins: Mapping[int, int],
        check: Callable[[], None],
    ) -> tuple[WindowRows, ...]:
        views = {each.index: each.view for each in topic.partitions}
        self._check_size(topic, sum(bytes_behind(views[p], begin) for p, begin in begins.items()))
        kept.rows = {p: _behind(kept.rows.get(p, ()), begin) for p, begin in begins.items()}
        for partition, begin in begins.items():
            known = kept.rows[partition]
            at = known[-1].end if known else begin
            while at < views[partition].durable_watermark:
                rows = tail.read(partition, at)
                assert rows is not None, "what is durable can be read"
                at = rows.end
                # A new one each time: others look at it meanwhile.
                kept.rows = {**kept.rows, partition: _joined(kept.rows[partition], rows)}
                self._check_size(topic, kept.size_bytes)
                check()
        return tuple(_from(rows, begins[p]) for p, known in kept.rows.items() for rows in known)

    def _check_size(self, topic: Topic, size_bytes: int) -> None:
        if size_bytes > self._bytes_max:
            raise TooLarge(
                f"more than {self._bytes_max} bytes of {topic.name} are not in the lake yet, which "
                "is query.topic_bytes_max: have it filled (`frazil flush`, or lake.flush_bytes), "
                "or ask for a snapshot of it (FOR SYSTEM_VERSION AS OF)"
            )

    def _forget(self) -> None:
        with self._lock:
            sizes = {name: kept.size_bytes for name, kept in self._kept.items()}
            total = sum(sizes.values())
            for name, size_bytes in sizes.items():
                if total <= KEPT_BYTES_MAX:
                    break
                del self._kept[name]
                total -= size_bytes


def _behind(known: tuple[WindowRows, ...], begin: int) -> tuple[WindowRows, ...]:
    """What is of use for one who wants everything from an offset on: nothing, when some are missing
    before, because somebody asked with a later view."""
    rest = tuple(rows for rows in known if rows.end > begin)
    return rest if rest and rest[0].begin <= begin else ()


def _joined(known: tuple[WindowRows, ...], rows: WindowRows) -> tuple[WindowRows, ...]:
    """Rows behind others: as new ones, or with the last ones when these are few."""
    if not known or known[-1].batch.num_rows >= JOINED_ROWS:
        return (*known, rows)
    batch = pa.concat_batches([known[-1].batch, rows.batch])
    return (*known[:-1], replace(rows, begin=known[-1].begin, batch=batch))


def _from(rows: WindowRows, begin: int) -> WindowRows:
    """Those at or above an offset. They lie in order, so nothing is copied."""
    if rows.begin >= begin:
        return rows
    first = int(np.searchsorted(rows.batch.column("_offset").to_numpy(), begin))
    return replace(rows, begin=begin, batch=rows.batch.slice(first))
