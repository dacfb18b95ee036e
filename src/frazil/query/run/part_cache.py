"""PartCache: turns references into rows, in a worker process. Segment files stay mapped.

A file that was removed or replaced since the reference was made raises `FileGone`; the engine then
sends new references.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from frazil.disk import RealDisk, descriptor_path
from frazil.errors import Corrupt
from frazil.hot import (
    ArrowSegment,
    Extent,
    conformed,
    open_segment,
    read_extent,
    unfilled_columns,
)
from frazil.query.run.copied_rows import with_all_columns
from frazil.query.run.frozen_files import frozen_part
from frazil.query.run.references import FileRef, PieceRef, Position, RowRefs, ScanRefs, SealedRef
from frazil.query.run.row_segment_cache import FileGone, RowSegmentCache
from frazil.query.scan.table_rows import FilePart, PiecePart, ScanParts
from frazil.query.scan.tiers import batch_from

SEGMENTS_MAX = 4096
FILES_MAX = 65_536


class PartCache:
    """Owned by the worker's main thread. Parts of unchanged files are the same objects each time,
    so that counts kept for them stay valid."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self._segments: OrderedDict[tuple[str, int], ArrowSegment] = OrderedDict()
        self._pieces: dict[tuple[str, int], dict[tuple[int, int | None], PiecePart]] = {}
        """By segment; then by stream and offset."""
        self._files: OrderedDict[tuple[str, FileRef], FilePart] = OrderedDict()
        self._rows = RowSegmentCache()

    def scans(
        self, refs: RowRefs, files: Sequence[int], schemas: Mapping[str, pa.Schema]
    ) -> dict[str, tuple[ScanParts, ...]]:
        """Return what is read of each table. `files` are memory files, which are closed; `schemas`
        are those of the tables that the query names."""
        with ExitStack() as stack:
            for file in files:
                stack.callback(os.close, file)
            return {
                table: tuple(self._scan(scan, files, schemas[table]) for scan in scans)
                for table, scans in refs.tables.items()
            }

    def _scan(self, refs: ScanRefs, files: Sequence[int], schema: pa.Schema) -> ScanParts:
        pieces = [self._piece(ref, files, schema) for ref in refs.pieces]
        pieces += [self._rows.part(ref, schema) for ref in refs.segments if ref.live is None]
        pieces += [frozen_part(refs.root or "", ref, refs.columns, schema) for ref in refs.frozen]
        versions = [ref for ref in refs.segments if ref.live is not None]
        return ScanParts(
            pieces=tuple(piece for piece in pieces if piece.batches),
            versions=tuple(self._rows.versions(ref, files[0], schema) for ref in versions),
            files=tuple(self._file(refs.root or "", ref) for ref in refs.files),
            root=refs.root if refs.files else None,
            schema=None if refs.schema is None else pa.ipc.read_schema(pa.py_buffer(refs.schema)),
            where=refs.where,
        )

    def _file(self, root: str, ref: FileRef) -> FilePart:
        key = (root, ref)
        part = self._files.get(key)
        if part is None:
            part = self._files[key] = FilePart(
                path=ref.path,
                row_count=ref.row_count,
                time_min_us=ref.time_min_us,
                time_max_us=ref.time_max_us,
                unfilled=ref.unfilled,
            )
            if len(self._files) > FILES_MAX:
                self._files.popitem(last=False)
        return part

    def _piece(self, ref: PieceRef, files: Sequence[int], schema: pa.Schema) -> PiecePart:
        if ref.sealed is not None:
            return self._sealed(ref, ref.sealed, schema)
        batches: list[pa.RecordBatch] = []
        if ref.shared is not None:
            file = files[ref.shared.memory]
            batches += [read_extent(file, Extent(*extent)) for extent in ref.shared.extents]
        if ref.copied is not None:
            batches += (with_all_columns(b, schema) for b in _copied(files[0], ref.copied))
        return _part(ref, batches)

    def _sealed(self, ref: PieceRef, sealed: SealedRef, schema: pa.Schema) -> PiecePart:
        key = (sealed.path, sealed.check)
        segment = self._segments.get(key)
        if segment is None:
            segment = self._segments[key] = _open(sealed)
            self._pieces[key] = {}
            if len(self._segments) > SEGMENTS_MAX:
                self._drop(next(iter(self._segments)))
        else:
            self._segments.move_to_end(key)
        pieces = self._pieces[key]
        part = pieces.get((sealed.stream, ref.from_offset))
        if part is None:
            written = segment.streams[sealed.stream].batches
            batches = [conformed(batch, schema) for batch in written]
            unfilled = unfilled_columns(written[0].schema, schema) if written else ()
            if ref.from_offset is not None:
                batches = [batch_from(batch, ref.from_offset) for batch in batches]
            part = pieces[sealed.stream, ref.from_offset] = _part(ref, batches, unfilled)
        return part

    def drop_missing(self) -> None:
        """Unmap files that were removed, so that the disk gets their space back."""
        for key in list(self._segments):
            if not Path(key[0]).exists():
                self._drop(key)
        self._rows.drop_missing()

    def _drop(self, key: tuple[str, int]) -> None:
        del self._segments[key], self._pieces[key]


def _open(sealed: SealedRef) -> ArrowSegment:
    path = Path(sealed.path)
    if not path.exists():
        raise FileGone(sealed.path)
    try:
        segment = open_segment(RealDisk(path.parent), path.name, is_verified=True)
    except (FileNotFoundError, Corrupt):
        raise FileGone(sealed.path) from None
    if segment.check != sealed.check:
        raise FileGone(sealed.path)
    return segment


def _copied(file: int, position: Position) -> list[pa.RecordBatch]:
    begin, length = position
    with pa.memory_map(descriptor_path(file)) as source:
        source.seek(begin)
        buffer = source.read_buffer(length)
    return list(pa.ipc.open_stream(buffer))


def _part(
    ref: PieceRef, batches: Sequence[pa.RecordBatch], unfilled: tuple[str, ...] = ()
) -> PiecePart:
    return PiecePart(
        batches=tuple(batch for batch in batches if batch.num_rows),
        row_count=ref.row_count,
        time_min_us=ref.time_min_us,
        time_max_us=ref.time_max_us,
        unfilled=unfilled,
    )
