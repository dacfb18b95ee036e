"""SealedSegment: a segment file and the pieces that queries see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from google_crc32c import value as crc32c

from frazil.disk import Disk, RealDisk
from frazil.hot.segment.arrow_segment import ArrowSegment, ArrowStream
from frazil.hot.segment.column_stats import TIME, ColumnStats
from frazil.hot.segment.layout import damaged
from frazil.hot.segment.piece import Piece, SealedLocation
from frazil.hot.segment.schema_upgrade import conformed, unfilled_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFolder:
    """The folder of one partition, and the schemas of its tables."""

    disk: Disk
    name: str
    topic: str
    partition: int
    schemas: Mapping[str, pa.Schema]

    @property
    def identity(self) -> int:
        """Ties a file to this partition, so that one in the wrong folder is detected."""
        identity: int = crc32c(f"{self.topic}/{self.partition}".encode())
        return identity

    def path(self, begin_offset: int) -> str:
        return f"{self.name}/{begin_offset:020d}.arrow"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SealedSegment:
    """A segment file and its pieces, by table."""

    file: ArrowSegment
    pieces: Mapping[str, tuple[Piece, ...]]

    @property
    def begin_offset(self) -> int:
        return self.file.begin_offset

    @property
    def end_offset(self) -> int:
        return self.file.end_offset


def sealed_of(folder: SegmentFolder, file: ArrowSegment) -> SealedSegment:
    """Return a file with its pieces in the current schemas. Raises `Corrupt` if they do not fit."""
    pieces: dict[str, tuple[Piece, ...]] = {}
    for number, stream in enumerate(file.streams):
        if stream.slot in folder.schemas:
            try:
                piece = _piece(folder, file, stream, number)
            except pa.ArrowException as error:
                expected = f"rows for table {stream.slot}"
                raise damaged(file.path, 0, expected, str(error)) from None
            pieces[stream.slot] = (*pieces.get(stream.slot, ()), piece)
    return SealedSegment(file=file, pieces=pieces)


def _piece(folder: SegmentFolder, file: ArrowSegment, stream: ArrowStream, number: int) -> Piece:
    schema = folder.schemas[stream.slot]
    location = None
    if isinstance(folder.disk, RealDisk):  # another process finds no file of a simulated disk
        path = folder.disk.real_path(file.path)
        location = SealedLocation(path=path, stream=number, check=file.check)
    time = stream.columns.get(TIME, ColumnStats(TIME, 0))
    return Piece(
        name=file.path,
        batches=tuple(conformed(batch, schema) for batch in stream.batches),
        row_count=stream.row_count,
        time_min_us=time.lower if isinstance(time.lower, int) else None,
        time_max_us=time.upper if isinstance(time.upper, int) else None,
        services=stream.services,
        filters=stream.filters,
        topic=folder.topic,
        partition=folder.partition,
        offset_begin=file.begin_offset,
        offset_end=file.end_offset,
        location=location,
        unfilled=unfilled_columns(stream.batches[0].schema, schema) if stream.batches else (),
    )
