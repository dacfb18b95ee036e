"""HotPartition: one partition of the log as rows: open, frozen, sealed.

The rows of a request are in exactly one of the three states. One range reads the end of the log;
others fill gaps where segment files are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.errors import Corrupt, OutOfRange
from frazil.hot.request_reader import requests_of
from frazil.hot.segment.open_segment import OpenSegment
from frazil.hot.segment.piece import Piece
from frazil.hot.segment.schema_upgrade import conformed
from frazil.hot.segment.segments import SealedSegments
from frazil.log import ProgressKeeper, ReadablePartition, Reader
from frazil.metrics import Counter
from frazil.model.arrow import Decode, ExportRequest, dead_letter_rows, decode_prefix

logger = logging.getLogger(__name__)

DEAD_LETTERS = "dead_letters"

ROWS = Counter("frazil.hot.shown.rows", "Rows made visible, by table.")
LOST = Counter("frazil.hot.lost.offsets", "Offsets that are neither in a segment nor in the log.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTable:
    """A topic of the log and the table of its rows."""

    topic: str
    table: str
    signal: str
    """Signal name for the decoder."""


@dataclass(slots=True, eq=False)
class ReadRange:
    """Offsets being read: up to `end`, or without an end."""

    offset: int
    end: int | None = None
    reader: Reader | None = None
    segment: OpenSegment | None = None
    """The open rows, if any."""
    pending: list[ExportRequest] = field(default_factory=list)
    """Requests read and not decoded yet; at most those of one read."""
    fetched_to: int = 0
    """The offset after the pending requests."""
    has_more: bool = False
    """Whether the last read stopped before the end that the log had when it began."""
    log_end: int = 0
    """Where the log ended at the last read."""
    is_overtaking: bool = False
    """Whether the last read got more than was written since the one before."""

    @property
    def is_read(self) -> bool:
        return self.end is not None and self.offset >= self.end

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None


class HotPartition:
    """`read` and `freeze` belong to the reading thread, `segments` and `subscriber` to the holder
    of the sealer's lock. `frozen` and `open_pieces`, used by both, are changed under the lock
    `VisibleSegments.swap`."""

    def __init__(
        self,
        source: TopicTable,
        log: ReadablePartition,
        subscriber: ProgressKeeper,
        segments: SealedSegments,
        decode: Decode,
        helper: Executor,
    ) -> None:
        """`helper` decodes a half of what is read while a backlog shrinks."""
        self.source = source
        self.log = log
        self.subscriber = subscriber
        self.segments = segments
        self.frozen: tuple[OpenSegment, ...] = ()
        """Oldest first."""
        self.open_pieces: list[dict[str, Piece]] = []
        self.is_behind = False
        """Whether the last read left something unread."""
        self._decode = decode
        self._helper = helper
        self._tail = ReadRange(segments.end_offset)
        self._gaps = [ReadRange(gap.begin, gap.end) for gap in segments.gaps()]
        self.watermark = self._listed_to = self._tail.offset
        """The first offset whose rows are not visible yet."""
        self._is_gapless = self._is_listed_gapless = not self._gaps
        self._uncached_to = self._tail.offset
        self._reopen()

    def _reopen(self) -> None:
        """Make the log keep what must be read again, and report what it no longer has."""
        index, log_end = self.log.index, self.log.view.last_stable_offset
        for read_range in (*self._gaps, self._tail):
            self._skip_removed(read_range, "no segment has them")
            end = log_end if read_range.end is None else read_range.end
            self.subscriber.reopen(index, read_range.offset, end)
        self.subscriber.finish(index, 0, self.segments.start_offset)
        for segment in self.segments.sealed:
            self.subscriber.finish(index, segment.begin_offset, segment.end_offset)

    @property
    def first_offset(self) -> int:
        """The first offset of rows in files or in memory."""
        opened = [each.segment for each in self.ranges if each.segment is not None]
        begins = [segment.begin_offset for segment in (*opened, *self.frozen)]
        begins += [segment.begin_offset for segment in self.segments.sealed]
        return min(begins, default=self._tail.offset)

    @property
    def is_complete(self) -> bool:
        """Whether every row of the log is visible."""
        return self.is_visible(self.log.view.last_stable_offset)

    def is_visible(self, end: int) -> bool:
        """Return whether every row below offset `end` is visible."""
        return self.watermark >= end and self._is_gapless

    @property
    def ranges(self) -> list[ReadRange]:
        """The ranges being read: the end of the log, and one gap."""
        return [self._tail, *self._gaps[:1]]

    @property
    def unsealed_bytes(self) -> int:
        opened = [each.segment for each in self.ranges if each.segment is not None]
        return sum(segment.size_bytes for segment in (*opened, *self.frozen))

    def read(self, bytes_max: int, now_ns: int) -> int:
        """Read and decode about `bytes_max` of each range. Returns the number of requests.

        Raises `Corrupt` or `OSError` if the log cannot be read.
        """
        self.is_behind = False
        self._gaps = [gap for gap in self._gaps if not self._is_closed(gap)]
        return sum(self._read(read_range, bytes_max, now_ns) for read_range in self.ranges)

    def _is_closed(self, gap: ReadRange) -> bool:
        """Close a gap that is read and frozen, or was evicted before it was filled."""
        assert gap.end is not None
        is_closed = gap.segment is None and max(gap.offset, self.segments.start_offset) >= gap.end
        if is_closed:
            gap.close()
        return is_closed

    def _read(self, read_range: ReadRange, bytes_max: int, now_ns: int) -> int:
        if read_range.is_read or not (read_range.pending or self._fetch(read_range, bytes_max)):
            return _reveal(read_range)  # what was hidden for more to come
        if read_range.segment is None:
            is_hidden = read_range.has_more and read_range.end is None
            read_range.segment = OpenSegment(read_range.offset, now_ns, is_hidden=is_hidden)
        pending, segment = read_range.pending, read_range.segment
        total = 0
        for count, rows in self._decode_pending(read_range):
            del pending[:count]
            end = pending[0].offset if pending else read_range.fetched_to
            segment.add(rows, end)
            for table, batch in rows.items():
                ROWS.add(batch.num_rows, table=table)
            read_range.offset = end
            total += count
        is_behind = bool(pending) or read_range.end is not None or read_range.has_more
        if not is_behind:
            _reveal(read_range)
        self.is_behind |= is_behind
        return total

    def _fetch(self, read_range: ReadRange, bytes_max: int) -> bool:
        """Read the next requests of a range. Returns False if there are none."""
        if read_range.reader is None:
            read_range.reader = Reader(self.log, read_range.offset)
        log_end = self.log.view.last_stable_offset
        try:
            batches = read_range.reader.read(bytes_max)
        except OutOfRange:  # the log dropped its oldest records first
            self._skip_removed(read_range, "the log dropped them")
            return False
        except (Corrupt, OSError):
            read_range.close()
            raise
        end = read_range.reader.offset
        begin = read_range.offset
        read_range.fetched_to = end if read_range.end is None else min(end, read_range.end)
        read_range.has_more = end < log_end
        read_range.is_overtaking = end - begin > log_end - read_range.log_end
        read_range.log_end = log_end
        read_range.pending = requests_of(batches, self.log.index, begin, read_range.fetched_to)
        return end > begin

    def _decode_pending(
        self, read_range: ReadRange
    ) -> Iterator[tuple[int, dict[str, pa.RecordBatch]]]:
        """Yield rows of the first pending requests, and how many requests they are of.

        A backlog is decoded by two threads, unless it still grows: then the processors are needed
        for what is written.
        """
        requests = read_range.pending
        if not (read_range.has_more and read_range.is_overtaking and len(requests) > 1):
            yield self._decode_some(requests)
            return
        half = len(requests) // 2
        others = self._helper.submit(self._decode_some, requests[half:])
        count, rows = self._decode_some(requests[:half])
        after = others.result()
        yield count, rows
        if count == half:
            yield after

    def _decode_some(self, requests: list[ExportRequest]) -> tuple[int, dict[str, pa.RecordBatch]]:
        """Return how many of the requests were decoded, and their rows by table."""
        if not requests:
            return 0, {}
        source, schemas = self.source, self.segments.folder.schemas
        schema = schemas[source.table]
        decoded, count = decode_prefix(self._decode, source.signal, requests, schema)
        rows = {source.table: conformed(decoded.batch, schema)}
        if decoded.dead:
            rows[DEAD_LETTERS] = dead_letter_rows(
                source.topic, decoded.dead, requests, schemas[DEAD_LETTERS]
            )
        return count, rows

    def _skip_removed(self, read_range: ReadRange, reason: str) -> None:
        """Skip and report offsets that the log no longer has."""
        begin = self.log.view.start_offset
        end = begin if read_range.end is None else min(begin, read_range.end)
        if end <= read_range.offset:
            return
        LOST.add(end - read_range.offset, topic=self.source.topic)
        logger.error(
            "offsets are lost to the hot tier",
            extra={
                "topic": self.source.topic,
                "partition": self.log.index,
                "begin": read_range.offset,
                "end": end,
                "reason": reason,
            },
        )
        read_range.close()
        read_range.offset = end

    def reveal(self) -> int:
        """Show open rows that are hidden. Returns how many segments."""
        return sum(map(_reveal, self.ranges))

    def freeze(self, is_due: Callable[[OpenSegment], bool]) -> int:
        """Pass open segments that are due, and gaps that are read, to the sealer."""
        count = 0
        for read_range in self.ranges:
            segment = read_range.segment
            if segment is not None and (read_range.is_read or is_due(segment)):
                self.frozen += (segment,)
                read_range.segment = None
                count += 1
        return count

    def update_open_pieces(self) -> None:
        self.open_pieces = []
        self._listed_to = self._tail.offset
        for read_range in self.ranges:
            segment = read_range.segment
            if segment is None:
                continue
            if segment.is_hidden:
                self._listed_to = segment.begin_offset
            else:
                self.open_pieces.append(self._pieces(segment))
        self._is_listed_gapless = all(gap.is_read for gap in self._gaps)

    def advance_watermark(self) -> None:
        """Call after the pieces were published."""
        self.watermark = self._visible_to()
        self._is_gapless = self._is_listed_gapless

    def _visible_to(self) -> int:
        """Return the offset at which the first hidden segment begins, or the rows end."""
        hidden = (segment.begin_offset for segment in self.frozen if segment.is_hidden)
        return min(hidden, default=self._listed_to)

    def pieces(self, table: str) -> Iterator[Piece]:
        """Yield the rows of a table: from files, then from memory up to the first that are
        hidden."""
        yield from self.segments.pieces.get(table, ())
        end = self._visible_to()
        frozen = (self._pieces(segment) for segment in self.frozen if not segment.is_hidden)
        for pieces in (*frozen, *self.open_pieces):
            if table in pieces and pieces[table].offset_begin < end:
                yield pieces[table]

    def _pieces(self, segment: OpenSegment) -> dict[str, Piece]:
        return segment.pieces(self.source.topic, self.log.index)

    def uncache_log(self, end: int) -> None:
        """Drop segments of the log below `end` from the page cache, once."""
        if end <= self._uncached_to:
            return
        for segment in self.log.view.segments[:-1]:
            info = segment.info
            if info.end_offset > end:
                break
            if info.base_offset >= self._uncached_to:
                self.log.disk.uncache(segment.path)
                self._uncached_to = info.end_offset

    def close(self) -> None:
        for read_range in (self._tail, *self._gaps):
            read_range.close()


def _reveal(read_range: ReadRange) -> int:
    """Show the open rows of a range if they are hidden. Returns how many segments."""
    segment = read_range.segment
    if segment is None or not segment.is_hidden:
        return 0
    segment.reveal()
    return 1
