"""Sealed: a segment on disk together with the pieces that queries see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from google_crc32c import value as crc32c

from frazil.disk import Disk
from frazil.hot.segment.arrow_segment import ArrowSegment, ArrowStream
from frazil.hot.segment.column_stats import TIME, ColumnStats
from frazil.hot.segment.layout import damaged
from frazil.hot.segment.piece import Piece
from frazil.hot.segment.schema_upgrade import conformed


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFolder:
    """The folder of one partition, and the tables that may lie in it."""

    disk: Disk
    folder: str
    topic: str
    partition: int
    schemas: Mapping[str, pa.Schema]

    @property
    def identity(self) -> int:
        """Ties a file to this partition, so that one in the wrong folder is noticed."""
        identity: int = crc32c(f"{self.topic}/{self.partition}".encode())
        return identity

    def path(self, begin_offset: int) -> str:
        return f"{self.folder}/{begin_offset:020d}.arrow"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sealed:
    """A segment and its pieces, by table."""

    segment: ArrowSegment
    pieces: Mapping[str, tuple[Piece, ...]]

    @property
    def begin_offset(self) -> int:
        return self.segment.begin_offset

    @property
    def end_offset(self) -> int:
        return self.segment.end_offset


def sealed_of(place: SegmentFolder, segment: ArrowSegment) -> Sealed:
    """Show a segment in the schemas of today. `Corrupt` when its rows do not fit into them."""
    pieces: dict[str, tuple[Piece, ...]] = {}
    for stream in segment.streams:
        if stream.slot in place.schemas:
            try:
                piece = _piece(place, segment, stream)
            except pa.ArrowException as error:
                wanted = f"rows for table {stream.slot}"
                raise damaged(segment.path, 0, wanted, str(error)) from None
            pieces[stream.slot] = (*pieces.get(stream.slot, ()), piece)
    return Sealed(segment=segment, pieces=pieces)


def _piece(place: SegmentFolder, segment: ArrowSegment, stream: ArrowStream) -> Piece:
    schema = place.schemas[stream.slot]
    time = stream.columns.get(TIME, ColumnStats(TIME, 0))
    return Piece(
        name=segment.path,
        batches=tuple(conformed(batch, schema) for batch in stream.batches),
        row_count=stream.row_count,
        time_min_us=time.lower if isinstance(time.lower, int) else None,
        time_max_us=time.upper if isinstance(time.upper, int) else None,
        services=stream.services,
        filters=stream.filters,
        topic=place.topic,
        partition=place.partition,
        offset_begin=segment.begin_offset,
        offset_end=segment.end_offset,
    )
