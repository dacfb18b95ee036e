"""HotPartition: one partition of the log as rows: sealed, frozen, open.

    log ──read, decode──> open ──freeze──> frozen ──seal──> sealed
                          grows            waits for disk   a file, mapped

The rows of a request are in exactly one of the three. Reading goes in stretches: one follows the
end of the log; the others fill gaps where files are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.errors import Corrupt, OutOfRange
from frazil.hot.request_reader import requests_of
from frazil.hot.segment.open_segment import OpenSegment
from frazil.hot.segment.piece import Piece
from frazil.hot.segment.schema_upgrade import conformed
from frazil.hot.segment.segments import SealedSegments
from frazil.log import Partition, Reader, Subscriber
from frazil.metrics import Counter
from frazil.model.arrow import Decode, ExportRequest, dead_letter_rows, decode_prefix

logger = logging.getLogger(__name__)

DEAD_LETTERS = "dead_letters"

ROWS = Counter("frazil.hot.shown.rows", "Rows made visible, by table.")
LOST = Counter("frazil.hot.lost.offsets", "Offsets that neither a file nor the log holds.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTable:
    """A topic of the log and the table that its records become rows of."""

    topic: str
    table: str
    signal: str
    """What the decoder calls it."""


@dataclass(slots=True, eq=False)
class ReadRange:
    """Offsets on their way to rows, read up to `end`, or for ever."""

    offset: int
    end: int | None = None
    reader: Reader | None = None
    segment: OpenSegment | None = None
    """Its rows that are open, if there are any."""
    pending: list[ExportRequest] = field(default_factory=list)
    """Read from the log and not decoded yet: at most what one reading brought."""
    fetched_to: int = 0
    """The offset behind what is pending."""
    has_more: bool = False
    """Did the last reading stop before the end of the log?"""

    @property
    def is_read(self) -> bool:
        return self.end is not None and self.offset >= self.end

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None


class HotPartition:
    """`read` and `freeze` belong to the reading thread, `shelf` and `subscriber` to whoever holds
    the tier's turn. What both see (`frozen`, `open_pieces`) is changed under the tier's lock."""

    def __init__(
        self,
        source: TopicTable,
        log: Partition,
        subscriber: Subscriber,
        shelf: SealedSegments,
        decode: Decode,
    ) -> None:
        self.source = source
        self.log = log
        self.subscriber = subscriber
        self.shelf = shelf
        self.frozen: tuple[OpenSegment, ...] = ()
        """Oldest first."""
        self.open_pieces: list[dict[str, Piece]] = []
        self.is_behind = False
        """Is there more to read than the last step could take?"""
        self._decode = decode
        self._tail = ReadRange(shelf.end_offset)
        self._gaps = [ReadRange(begin, end) for begin, end in shelf.gaps()]
        self.watermark = self._tail.offset
        """The first offset whose rows are not visible yet."""
        self._is_gapless = not self._gaps
        self._reopen()

    def _reopen(self) -> None:
        """Make the log keep what has to be read again, and tell what it has not kept."""
        index, reach = self.log.index, self.log.view.durable_watermark
        for stretch in (*self._gaps, self._tail):
            self._skip_removed(stretch, "no file holds them")
            end = reach if stretch.end is None else stretch.end
            self.subscriber.reopen(index, stretch.offset, end)
        self.subscriber.finish(index, 0, self.shelf.start_offset)
        for sealed in self.shelf.sealed:
            self.subscriber.finish(index, sealed.begin_offset, sealed.end_offset)

    @property
    def is_whole(self) -> bool:
        """Is every row visible that the log has?"""
        return self.has_shown(self.log.view.durable_watermark)

    def has_shown(self, end: int) -> bool:
        """Is every row below this offset visible?"""
        return self.watermark >= end and self._is_gapless

    @property
    def stretches(self) -> list[ReadRange]:
        """What is being worked on: the end of the log and, beside it, one gap."""
        return [self._tail, *self._gaps[:1]]

    @property
    def unsealed_bytes(self) -> int:
        opened = [stretch.segment for stretch in self.stretches if stretch.segment is not None]
        return sum(segment.size_bytes for segment in (*opened, *self.frozen))

    def read(self, bytes_max: int, now_ns: int) -> int:
        """Take in what is new, about `bytes_max` of each stretch. Returns how many requests.

        `Corrupt` or `OSError` when the log cannot be read.
        """
        self.is_behind = False
        self._gaps = [gap for gap in self._gaps if not self._is_needless(gap)]
        return sum(self._read(stretch, bytes_max, now_ns) for stretch in self.stretches)

    def _is_needless(self, gap: ReadRange) -> bool:
        """Read to its end and frozen, or evicted before it was filled."""
        assert gap.end is not None
        is_needless = gap.segment is None and max(gap.offset, self.shelf.start_offset) >= gap.end
        if is_needless:
            gap.close()
        return is_needless

    def _read(self, stretch: ReadRange, bytes_max: int, now_ns: int) -> int:
        if stretch.is_read or not (stretch.pending or self._fetch(stretch, bytes_max)):
            return 0
        if stretch.segment is None:
            stretch.segment = OpenSegment(stretch.offset, now_ns)
        count, rows = self._decode_some(stretch.pending)
        del stretch.pending[:count]
        end = stretch.pending[0].offset if stretch.pending else stretch.fetched_to
        stretch.segment.add(rows, end)
        stretch.offset = end
        self.is_behind |= bool(stretch.pending) or stretch.end is not None or stretch.has_more
        return count

    def _fetch(self, stretch: ReadRange, bytes_max: int) -> bool:
        """Read the next requests of a stretch. False when there are none."""
        if stretch.reader is None:
            stretch.reader = Reader(self.log, stretch.offset)
        try:
            batches = stretch.reader.read(bytes_max)
        except OutOfRange:  # the log dropped its oldest before we came to it
            self._skip_removed(stretch, "the log dropped them")
            return False
        except (Corrupt, OSError):
            stretch.close()
            raise
        end = stretch.reader.offset
        stretch.fetched_to = end if stretch.end is None else min(end, stretch.end)
        stretch.has_more = sum(len(batch.payload) for batch in batches) >= bytes_max
        stretch.pending = requests_of(batches, self.log.index, stretch.offset, stretch.fetched_to)
        return bool(batches)

    def _decode_some(self, requests: list[ExportRequest]) -> tuple[int, dict[str, pa.RecordBatch]]:
        """How many of the requests were decoded, and the rows of these, by table."""
        if not requests:
            return 0, {}
        source, schemas = self.source, self.shelf.place.schemas
        schema = schemas[source.table]
        decoded, count = decode_prefix(self._decode, source.signal, requests, schema)
        rows = {source.table: conformed(decoded.batch, schema)}
        if decoded.dead:
            rows[DEAD_LETTERS] = dead_letter_rows(
                source.topic, decoded.dead, requests, schemas[DEAD_LETTERS]
            )
        for table, batch in rows.items():
            ROWS.add(batch.num_rows, table=table)
        return count, rows

    def _skip_removed(self, stretch: ReadRange, reason: str) -> None:
        """The log begins behind where we want to read: what lies between is lost."""
        begin = self.log.view.start_offset
        end = begin if stretch.end is None else min(begin, stretch.end)
        if end <= stretch.offset:
            return
        LOST.add(end - stretch.offset, topic=self.source.topic)
        logger.error(
            "offsets are lost to the hot tier",
            extra={
                "topic": self.source.topic,
                "partition": self.log.index,
                "begin": stretch.offset,
                "end": end,
                "reason": reason,
            },
        )
        stretch.close()
        stretch.offset = end

    def freeze(self, is_due: Callable[[OpenSegment], bool]) -> int:
        """Give open segments that are due, and gaps read to their end, to the sealer."""
        count = 0
        for stretch in self.stretches:
            if stretch.segment is not None and (stretch.is_read or is_due(stretch.segment)):
                self.frozen += (stretch.segment,)
                stretch.segment = None
                count += 1
        return count

    def look(self) -> None:
        """Let others see what is open now."""
        self.open_pieces = [
            self._pieces(s.segment) for s in self.stretches if s.segment is not None
        ]

    def tell(self) -> None:
        """Tell others how far they can see, once they can."""
        self.watermark = self._tail.offset
        self._is_gapless = all(gap.is_read for gap in self._gaps)

    def pieces(self, table: str) -> Iterator[Piece]:
        """The rows of a table: of files, then of memory."""
        yield from self.shelf.pieces.get(table, ())
        for shown in (*map(self._pieces, self.frozen), *self.open_pieces):
            if table in shown:
                yield shown[table]

    def _pieces(self, segment: OpenSegment) -> dict[str, Piece]:
        return segment.pieces(self.source.topic, self.log.index)

    def close(self) -> None:
        for stretch in (self._tail, *self._gaps):
            stretch.close()
