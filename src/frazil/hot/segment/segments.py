"""SealedSegments: the sealed segments of one partition, in one folder.

    <folder>/00000000000000000000.arrow          a segment, named by its first offset
            /00000000000000000000.arrow.tmp      one being written, or left by a crash
            /00000000000000000000.arrow.damaged  one that was set aside
            /start.ckpt                          first offset that is not evicted

Segments never overlap. Gaps between the start and the end are filled from the log.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence

import pyarrow as pa

from frazil.disk import WriteBuffer, is_full, write_checkpoint
from frazil.hot.segment.arrow_segment import Slots, write_segment
from frazil.hot.segment.layout import ArrowSegmentHeader
from frazil.hot.segment.open_segment import for_sealing
from frazil.hot.segment.piece import Piece
from frazil.hot.segment.schema_upgrade import filled
from frazil.hot.segment.sealed import SealedSegment, SegmentFolder, sealed_of
from frazil.metrics import Counter
from frazil.model import OffsetRange

logger = logging.getLogger(__name__)

START_NAME = "start.ckpt"
START_KIND = b"HOTS"
START_VERSION = 1
START = struct.Struct("<Q")
"""The first offset that is not evicted."""
MERGE_COUNT = 16
"""Adjacent small segments per merge: a quiet day has 1440, one for each minute's seal."""

MERGED = Counter("frazil.hot.merged.segments", "Small sealed segments merged.")
EVICTED = Counter("frazil.hot.evicted.segments", "Sealed segments removed, by reason.")


class SealedSegments:
    """Changed under the sealer's lock. `pieces` is replaced as a whole, so any thread may read
    it."""

    def __init__(
        self, folder: SegmentFolder, start_offset: int, sealed: Sequence[SealedSegment]
    ) -> None:
        self.folder = folder
        self.start_offset = start_offset
        self._is_start_saved = False
        self._replace(sealed)

    def _replace(self, sealed: Sequence[SealedSegment]) -> None:
        pieces: dict[str, tuple[Piece, ...]] = {}
        for segment in sealed:
            for table, added in segment.pieces.items():
                pieces[table] = (*pieces.get(table, ()), *added)
        self.sealed = tuple(sealed)
        self.pieces = pieces

    @property
    def end_offset(self) -> int:
        return self.sealed[-1].end_offset if self.sealed else self.start_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.file.size_bytes for segment in self.sealed)

    def gaps(self) -> list[OffsetRange]:
        """Return the offsets that are missing between the start and the end."""
        begins = [segment.begin_offset for segment in self.sealed]
        ends = [self.start_offset, *(segment.end_offset for segment in self.sealed)]
        gaps = [OffsetRange(end, begin) for end, begin in zip(ends, begins, strict=False)]
        return [gap for gap in gaps if gap.begin < gap.end]

    def write(
        self,
        begin: int,
        end: int,
        created_ms: int,
        slots: Slots,
        buffer: WriteBuffer,
    ) -> SealedSegment:
        """Write a durable segment. It is not visible until `put`."""
        folder = self.folder
        header = ArrowSegmentHeader(
            identity=folder.identity, begin_offset=begin, end_offset=end, created_ms=created_ms
        )
        path = folder.path(begin)
        file = write_segment(folder.disk, path, header, slots, buffer)
        return sealed_of(folder, file)

    def put(self, new: SealedSegment) -> None:
        """Add a segment, in place of those it covers."""
        others = [
            segment
            for segment in self.sealed
            if segment.end_offset <= new.begin_offset or new.end_offset <= segment.begin_offset
        ]
        self._replace(sorted([*others, new], key=lambda segment: segment.begin_offset))

    def merge(self, bytes_max: int, buffer: WriteBuffer) -> int:
        """Merge many adjacent small segments at the end into one. Returns how many were merged.

        It takes the name of the first. The others are deleted after it is durable; a start in
        between detects that they are covered.
        """
        small: list[SealedSegment] = []
        size = 0
        for segment in reversed(self.sealed):
            size += segment.file.size_bytes
            if size > bytes_max or (small and segment.end_offset != small[0].begin_offset):
                break
            small.insert(0, segment)
        if len(small) < MERGE_COUNT:
            return 0
        created_ms = max(segment.file.header.created_ms for segment in small)
        begin, end = small[0].begin_offset, small[-1].end_offset
        self.put(self.write(begin, end, created_ms, _rows_of(small), buffer))
        self._remove(small[1:])
        MERGED.add(len(small))
        return len(small)

    def evict(self, offset: int, reason: str) -> list[SealedSegment]:
        """Hide the segments below `offset`, and save the new start. The files stay until
        `remove`."""
        evicted = [segment for segment in self.sealed if segment.end_offset <= offset]
        if evicted:
            self.start_offset = max(self.start_offset, evicted[-1].end_offset)
            self.save_start()
            self._replace(self.sealed[len(evicted) :])
            EVICTED.add(len(evicted), reason=reason, topic=self.folder.topic)
        return evicted

    def start_at(self, offset: int) -> bool:
        """Skip rows that were never in a file: they are not read from the log again. Returns False
        on a full disk; nothing is changed then."""
        before = self.start_offset
        self.start_offset = max(before, offset)
        self.save_start()
        if not self._is_start_saved:
            self.start_offset = before
        return self._is_start_saved

    def remove(self, evicted: Sequence[SealedSegment]) -> None:
        """Delete the files of evicted segments. Queries that hold their pieces read on."""
        self._remove(evicted)
        if evicted and not self._is_start_saved:
            self.save_start()  # now the disk has space

    def _remove(self, segments: Sequence[SealedSegment]) -> None:
        for segment in segments:
            self.folder.disk.unlink(segment.file.path)
        if segments:
            self.folder.disk.sync_directory(self.folder.name)

    def save_start(self) -> None:
        """Save the start offset. A full disk postpones it: deleting files must not need space."""
        path = f"{self.folder.name}/{START_NAME}"
        body = START.pack(self.start_offset)
        try:
            write_checkpoint(self.folder.disk, path, START_KIND, START_VERSION, body)
            self._is_start_saved = True
        except OSError as error:
            if not is_full(error):
                raise
            self._is_start_saved = False
            logger.warning("disk full: start of the hot tier not saved", extra={"path": path})


def _rows_of(segments: Sequence[SealedSegment]) -> dict[str, list[pa.RecordBatch]]:
    """Return the rows of adjacent segments by table, in batches for a file."""
    slots: dict[str, list[pa.RecordBatch]] = {}
    for segment in segments:
        for table, pieces in segment.pieces.items():
            for piece in pieces:
                slots.setdefault(table, []).extend(filled(piece.batches, piece.unfilled))
    return {table: for_sealing(rows) for table, rows in slots.items()}
