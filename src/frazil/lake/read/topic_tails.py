"""TopicTails: decoded rows of topics that are in the log only, cached for the next query.

Each record is decoded once. Rows that the table holds by now are evicted, and so are the least
recently used topics when the cache is too large.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
import pyarrow as pa

from frazil.errors import TooLarge
from frazil.lake.append.log_source import bytes_behind
from frazil.lake.append.slice import RECORDS
from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.window_reader import WindowRows
from frazil.lake.tables.record_rows import table_of
from frazil.log import ReadableLog, ReadableTopic

CACHE_BYTES_MAX = 64 * 1024 * 1024
"""Limit of all cached topics together, between queries."""
MERGE_ROWS = 4096
"""Smaller batches are merged with the next one: a batch costs a query as much as a few hundred
rows."""


@dataclass(slots=True)
class _CachedTopic:
    """Cached rows of one topic: contiguous batches by partition."""

    topic_id: UUID | None = None
    """Another topic with the same name has other rows."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: dict[int, tuple[WindowRows, ...]] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(rows.batch.nbytes for parts in self.rows.values() for rows in parts)


class TopicTails:
    """Thread-safe. Readers of the same topic wait for each other."""

    def __init__(self, log: ReadableLog, bytes_max: int) -> None:
        """`bytes_max` limits the rows of one topic."""
        self._log = log
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._cache: dict[str, _CachedTopic] = {}
        """Least recently used first."""

    def read(
        self, topic: ReadableTopic, begins: Mapping[int, int], check: Callable[[], None]
    ) -> tuple[WindowRows, ...]:
        """Return every durable row from these offsets on. Calls `check` regularly, which may
        raise; rows read so far stay cached.

        Raise `OutOfRange` if the log has deleted some, and `TooLarge` if they are too many.
        """
        with self._lock:
            cached = self._cache.pop(topic.name, None)
            if cached is None or cached.topic_id != topic.topic_id:
                cached = _CachedTopic(topic.topic_id)
            self._cache[topic.name] = cached
        try:
            with (
                cached.lock,
                closing(LogTail(self._log, topic.name, table_of(topic.name), RECORDS)) as tail,
            ):
                return self._read(tail, topic, cached, begins, check)
        finally:
            self._evict()

    def _read(
        self,
        tail: LogTail,
        topic: ReadableTopic,
        cached: _CachedTopic,
        begins: Mapping[int, int],
        check: Callable[[], None],
    ) -> tuple[WindowRows, ...]:
        views = {p.index: p.view for p in topic.partitions}
        self._check_size(topic, sum(bytes_behind(views[p], begin) for p, begin in begins.items()))
        cached.rows = {
            p: _from_offset(cached.rows.get(p, ()), begin) for p, begin in begins.items()
        }
        for partition, begin in begins.items():
            parts = cached.rows[partition]
            at = parts[-1].end if parts else begin
            while at < views[partition].last_stable_offset:
                rows = tail.read(partition, at)
                assert rows is not None, "durable records are readable"
                at = rows.end
                # A new dict each time: `_evict` reads it in other threads.
                cached.rows = {**cached.rows, partition: _appended(cached.rows[partition], rows)}
                self._check_size(topic, cached.size_bytes)
                check()
        return tuple(_from(rows, begins[p]) for p, parts in cached.rows.items() for rows in parts)

    def _check_size(self, topic: ReadableTopic, size_bytes: int) -> None:
        if size_bytes > self._bytes_max:
            raise TooLarge(
                f"more than {self._bytes_max} bytes of {topic.name} are not in the lake yet, the "
                "limit query.topic_bytes_max: fill the lake (`frazil flush`, or lake.flush_bytes), "
                "or query a snapshot (FOR SYSTEM_VERSION AS OF)"
            )

    def _evict(self) -> None:
        with self._lock:
            sizes = {name: cached.size_bytes for name, cached in self._cache.items()}
            total = sum(sizes.values())
            for name, size_bytes in sizes.items():
                if total <= CACHE_BYTES_MAX:
                    break
                del self._cache[name]
                total -= size_bytes


def _from_offset(parts: tuple[WindowRows, ...], begin: int) -> tuple[WindowRows, ...]:
    """Return the cached rows from an offset on; none if rows are missing before them, because an
    earlier query had a newer view."""
    rest = tuple(rows for rows in parts if rows.end > begin)
    return rest if rest and rest[0].begin <= begin else ()


def _appended(parts: tuple[WindowRows, ...], rows: WindowRows) -> tuple[WindowRows, ...]:
    """Append rows; merge them with the last batch if that is small."""
    if not parts or parts[-1].batch.num_rows >= MERGE_ROWS:
        return (*parts, rows)
    batch = pa.concat_batches([parts[-1].batch, rows.batch])
    return (*parts[:-1], replace(rows, begin=parts[-1].begin, batch=batch))


def _from(rows: WindowRows, begin: int) -> WindowRows:
    """Return the rows at or above an offset. They are sorted, so this is a slice without a copy."""
    if rows.begin >= begin:
        return rows
    first = int(np.searchsorted(rows.batch.column("_offset").to_numpy(), begin))
    return replace(rows, begin=begin, batch=rows.batch.slice(first))
