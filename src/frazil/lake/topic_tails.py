"""TopicTails: the live ends of topics as rows, kept for the next question.

A record becomes a row once, however often somebody asks. What a table holds by then is forgotten,
and so is what was asked for longest ago, when all of it is more than may be kept.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from frazil.errors import TooLarge
from frazil.lake.slices import RECORDS
from frazil.lake.tail import Tail
from frazil.lake.topics import table_of
from frazil.lake.window_rows import Rows
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
    rows: dict[int, tuple[Rows, ...]] = field(default_factory=dict)

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

    def read(self, topic: Topic, begins: Mapping[int, int]) -> tuple[Rows, ...]:
        """Every row from these offsets on that is durable now.

        `OutOfRange` when the log has let go of some; `TooLarge` when they are too many.
        """
        with self._lock:
            kept = self._kept.pop(topic.name, None) or _Kept()
            self._kept[topic.name] = kept
        with kept.lock:
            tail = Tail(self._log, topic.name, table_of(topic.name), RECORDS)
            try:
                rows = self._read(tail, topic, kept, begins)
            finally:
                tail.close()
        self._forget()
        return rows

    def _read(
        self, tail: Tail, topic: Topic, kept: _Kept, begins: Mapping[int, int]
    ) -> tuple[Rows, ...]:
        ends = {each.index: each.view.durable_watermark for each in topic.partitions}
        found: dict[int, tuple[Rows, ...]] = {}
        size_bytes = 0
        for partition, begin in begins.items():
            known = [rows for rows in kept.rows.get(partition, ()) if rows.end > begin]
            if known and known[0].begin > begin:
                known = []  # somebody asked with a later view
            size_bytes += sum(rows.batch.nbytes for rows in known)
            at = known[-1].end if known else begin
            while at < ends[partition] and (rows := tail.read(partition, at)) is not None:
                at = rows.end
                size_bytes += rows.batch.nbytes
                self._check(topic, size_bytes)
                _add(known, rows)
            found[partition] = tuple(known)
        kept.rows = found
        return tuple(_from(rows, begins[p]) for p, known in found.items() for rows in known)

    def _check(self, topic: Topic, size_bytes: int) -> None:
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


def _add(known: list[Rows], rows: Rows) -> None:
    """Put rows behind others: as new ones, or with the last ones when these are few."""
    if known and known[-1].batch.num_rows < JOINED_ROWS:
        last = known.pop()
        batch = pa.concat_batches([last.batch, rows.batch])
        rows = replace(rows, begin=last.begin, batch=batch)
    known.append(rows)


def _from(rows: Rows, begin: int) -> Rows:
    """Those at or above an offset. They lie in order, so nothing is copied."""
    if rows.begin >= begin:
        return rows
    first = int(np.searchsorted(rows.batch.column("_offset").to_numpy(), begin))
    return replace(rows, begin=begin, batch=rows.batch.slice(first))
