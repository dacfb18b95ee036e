"""SealedSegments: the sealed segments of one partition, side by side in one folder.

    <folder>/00000000000000000000.arrow          a segment, named by its first offset
            /00000000000000000000.arrow.tmp      one that is being written, or was when power went
            /00000000000000000000.arrow.damaged  one that was set aside
            /start.ckpt                          where the shelf begins: what is below was evicted

Segments never overlap. What is missing between the start and the end is a gap, to be filled from
the log.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence

import pyarrow as pa

from frazil.disk import is_full, write_checkpoint
from frazil.hot.segment.arrow_segment import Slots, write_segment
from frazil.hot.segment.layout import ArrowSegmentHeader
from frazil.hot.segment.open_segment import for_sealing
from frazil.hot.segment.piece import Piece
from frazil.hot.segment.sealed import Sealed, SegmentFolder, sealed_of
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

START_NAME = "start.ckpt"
START_KIND = b"HOTS"
START_VERSION = 1
START = struct.Struct("<Q")
"""The first offset that is not evicted."""
MERGE_COUNT = 16
"""That many small neighbours become one: a quiet day has 1440 minutes, each with its seal."""

MERGED = Counter("frazil.hot.merged.segments", "Small sealed segments joined with neighbours.")
EVICTED = Counter("frazil.hot.evicted.segments", "Sealed segments removed, by reason.")

Gap = tuple[int, int]
"""Offsets from the first up to, not including, the second."""


class SealedSegments:
    """Changed by whoever holds the tier's turn. `pieces` is replaced whole: any thread may read
    it."""

    def __init__(self, place: SegmentFolder, start_offset: int, sealed: Sequence[Sealed]) -> None:
        self.place = place
        self.start_offset = start_offset
        self._is_start_saved = False
        self._show(sealed)

    def _show(self, sealed: Sequence[Sealed]) -> None:
        pieces: dict[str, tuple[Piece, ...]] = {}
        for one in sealed:
            for table, found in one.pieces.items():
                pieces[table] = (*pieces.get(table, ()), *found)
        self.sealed = tuple(sealed)
        self.pieces = pieces

    @property
    def end_offset(self) -> int:
        return self.sealed[-1].end_offset if self.sealed else self.start_offset

    @property
    def size_bytes(self) -> int:
        return sum(one.segment.size_bytes for one in self.sealed)

    def gaps(self) -> list[Gap]:
        """What is missing between the start and the end."""
        begins = [one.begin_offset for one in self.sealed]
        ends = [self.start_offset, *(one.end_offset for one in self.sealed)]
        return [(end, begin) for end, begin in zip(ends, begins, strict=False) if end < begin]

    def write(self, begin: int, end: int, created_ms: int, slots: Slots) -> Sealed:
        """Make a segment of these rows. It is durable then, and not shown yet."""
        header = ArrowSegmentHeader(
            identity=self.place.identity, begin_offset=begin, end_offset=end, created_ms=created_ms
        )
        path = self.place.path(begin)
        return sealed_of(self.place, write_segment(self.place.disk, path, header, slots))

    def put(self, new: Sealed) -> None:
        """Show a segment, in the place of those that it covers."""
        kept = [
            one
            for one in self.sealed
            if one.end_offset <= new.begin_offset or new.end_offset <= one.begin_offset
        ]
        self._show(sorted([*kept, new], key=lambda one: one.begin_offset))

    def merge(self, bytes_max: int) -> int:
        """Make one segment of many small neighbours at the end. Returns how many went into it.

        It takes the name of the first. The others go after that is durable; a start in between
        sees that they are covered.
        """
        small: list[Sealed] = []
        size = 0
        for one in reversed(self.sealed):
            size += one.segment.size_bytes
            if size > bytes_max or (small and one.end_offset != small[0].begin_offset):
                break
            small.insert(0, one)
        if len(small) < MERGE_COUNT:
            return 0
        created_ms = max(one.segment.header.created_ms for one in small)
        begin, end = small[0].begin_offset, small[-1].end_offset
        merged = self.write(begin, end, created_ms, _joined(small))
        self.put(merged)
        self._remove(small[1:])
        MERGED.add(len(small))
        return len(small)

    def evict(self, offset: int, reason: str) -> list[Sealed]:
        """Stop showing what lies below, and say durably that nobody need look for it.

        The files stay until `remove`.
        """
        gone = [one for one in self.sealed if one.end_offset <= offset]
        if gone:
            self.start_offset = max(self.start_offset, gone[-1].end_offset)
            self.save_start()
            self._show(self.sealed[len(gone) :])
            EVICTED.add(len(gone), reason=reason, topic=self.place.topic)
        return gone

    def remove(self, gone: Sequence[Sealed]) -> None:
        """Take the files of evicted segments away. Whoever reads their rows reads on."""
        self._remove(gone)
        if gone and not self._is_start_saved:
            self.save_start()  # now there is room

    def _remove(self, gone: Sequence[Sealed]) -> None:
        for one in gone:
            self.place.disk.unlink(one.segment.path)
        if gone:
            self.place.disk.sync_directory(self.place.folder)

    def save_start(self) -> None:
        """A full disk puts it off: removing files must not wait for room."""
        path = f"{self.place.folder}/{START_NAME}"
        body = START.pack(self.start_offset)
        try:
            write_checkpoint(self.place.disk, path, START_KIND, START_VERSION, body)
            self._is_start_saved = True
        except OSError as error:
            if not is_full(error):
                raise
            self._is_start_saved = False
            logger.warning("disk full: start of the hot tier not saved", extra={"path": path})


def _joined(sealed: Sequence[Sealed]) -> dict[str, list[pa.RecordBatch]]:
    """The rows of neighbouring segments by table, in few batches."""
    slots: dict[str, list[pa.RecordBatch]] = {}
    for one in sealed:
        for table, pieces in one.pieces.items():
            slots.setdefault(table, []).extend(b for piece in pieces for b in piece.batches)
    return {table: for_sealing(rows) for table, rows in slots.items()}
