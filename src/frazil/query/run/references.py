"""References to rows: what a query reads, as sent to the worker process that reads it.

sealed   path and stream of a segment file, which the worker maps
shared   extents of a memory file, which comes with the message
copied   extent of another memory file, made for this query: small or rare rows
file     path of a data file of the lake
segment  path of a row segment of a keyed table, and the bits of its live row versions
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from frazil.disk import descriptor_path, memory_file
from frazil.errors import TooLarge
from frazil.query.plan.plan import TableScans
from frazil.query.plan.predicates import ANYTHING, Conditions
from frazil.query.plan.pruning import PrunedScan
from frazil.query.run.copied_rows import matching_batches
from frazil.query.scan.keyed_tables import keyed_schema

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.query.scan.keyed_rows import KeyedScan
    from frazil.query.scan.tiers import TierRows
    from frazil.tables import RowsPart, TableDefinition

Position = tuple[int, int]
"""Position and length in a memory file."""


class SealedRef(msgspec.Struct, frozen=True, array_like=True):
    """A stream of a segment file."""

    path: str
    stream: int
    check: int


class SharedRef(msgspec.Struct, frozen=True, array_like=True):
    """Batches in a memory file of the hot tier."""

    memory: int
    """Index of the file among those sent."""
    extents: tuple[Position, ...]


class PieceRef(msgspec.Struct, frozen=True, array_like=True):
    """A piece of the hot tier. Shared rows come before copied ones."""

    row_count: int
    time_min_us: int | None
    time_max_us: int | None
    sealed: SealedRef | None
    shared: SharedRef | None
    copied: Position | None
    from_offset: int | None


class FileRef(msgspec.Struct, frozen=True, array_like=True):
    """A data file of the lake."""

    path: str
    row_count: int
    time_min_us: int | None
    time_max_us: int | None
    unfilled: tuple[str, ...] = ()
    """Promoted columns that it lacks."""


class SegmentRef(msgspec.Struct, frozen=True, array_like=True):
    """A row segment of a keyed table, in a file."""

    path: str
    check: int
    length: int
    """Row versions from the first on that belong to the query."""
    version: int
    """Of the definition whose columns the query reads."""
    live: tuple[int, int, int] | None
    """Position and length of the bits among the copied rows, and the first bit of the first byte;
    None if all row versions are live."""


class FrozenRef(msgspec.Struct, frozen=True, array_like=True):
    """A data file of a keyed table in the lake, and the file with its dead positions."""

    path: str
    deletes: str | None


class ScanRefs(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of one table, of one snapshot."""

    pieces: list[PieceRef]
    segments: list[SegmentRef] = []
    frozen: list[FrozenRef] = []
    columns: list[str] = []
    """Columns that are read of frozen files."""
    files: list[FileRef]
    root: str | None
    schema: bytes | None
    where: str | None


class RowRefs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a query reads. The first memory file sent has the copied rows."""

    tables: dict[str, list[ScanRefs]]


@contextmanager
def references_of(
    pruned: Mapping[str, PrunedScan],
    scans: Mapping[str, TableScans],
    schemas: Mapping[str, pa.Schema],
    bytes_max: int,
) -> Iterator[tuple[RowRefs, list[int]]]:
    """Yield references to the rows, and the memory files to send with them. `TooLarge` if more
    than `bytes_max` bytes would have to be copied."""
    with ExitStack() as stack:
        copies = _Copies(bytes_max)
        stack.callback(copies.close)
        memories: dict[int, int] = {}

        def memory_index(descriptor: int) -> int:
            return memories.setdefault(descriptor, len(memories) + 1)

        tables = {
            table: [
                _scan_refs(rows, scans[table], schemas[table], copies, memory_index)
                for rows in scan.tier_rows
            ]
            for table, scan in pruned.items()
        }
        copies.finish()
        yield RowRefs(tables=tables), [copies.descriptor, *memories]


def _scan_refs(
    rows: TierRows,
    scans: TableScans,
    schema: pa.Schema,
    copies: _Copies,
    memory_index: Callable[[int], int],
) -> ScanRefs:
    columns = schema.names if scans.columns is None else list(scans.columns)
    if rows.keyed is not None:
        return _keyed_refs(rows.keyed, columns or schema.names[:1], copies)
    view = rows.view
    if rows.is_frozen and view is not None:
        return ScanRefs(
            pieces=[],
            files=[],
            frozen=[FrozenRef(file.path, file.deletes) for file in rows.files],
            columns=columns or schema.names[:1],
            root=view.root,
            schema=None,
            where=None,
        )
    return ScanRefs(
        pieces=[
            _piece_ref(piece, scans.conditions, columns, copies, memory_index)
            for piece in rows.pieces
        ],
        files=[
            FileRef(
                file.path,
                file.row_count,
                file.time_min_us,
                file.time_max_us,
                () if view is None else view.unfilled(file),
            )
            for file in rows.files
        ],
        root=None if view is None else view.root,
        schema=None if view is None else view.schema.serialize().to_pybytes(),
        where=rows.where,
    )


def _piece_ref(
    piece: Piece,
    conditions: Conditions,
    columns: list[str],
    copies: _Copies,
    memory_index: Callable[[int], int],
) -> PieceRef:
    from frazil.hot import SealedLocation, SharedLocation, filled

    location, rest = piece.location, piece.batches
    sealed = shared = None
    from_offset = piece.from_offset
    if isinstance(location, SealedLocation):
        sealed = SealedRef(location.path, location.stream, location.check)
        rest = ()
    elif isinstance(location, SharedLocation) and from_offset is None:
        shared = SharedRef(
            memory_index(location.memory.descriptor),
            tuple((extent.position, extent.length) for extent in location.extents),
        )
        rest = piece.batches[len(location.extents) :]
    else:
        from_offset = None  # the batches that are copied have no other rows
        rest = filled(rest, [name for name in piece.unfilled if name in columns])
    copied = copies.add(matching_batches(rest, conditions, columns)) if rest else None
    return PieceRef(
        piece.row_count,
        piece.time_min_us,
        piece.time_max_us,
        sealed,
        shared,
        copied,
        from_offset,
    )


def _keyed_refs(scan: KeyedScan, columns: list[str], copies: _Copies) -> ScanRefs:
    """Refer to segments in files; copy the live rows of the others, which are in memory, or in a
    file that was merged with others meanwhile."""
    segments, copied = [], [batch.select(columns) for batch in scan.found]
    for part in scan.parts:
        location = part.segment.location
        if location is None or not Path(location.path).exists():
            copied.append(_live_rows(part, scan.definition, columns))
            continue
        live = None if part.live is None else copies.add_bits(part.live)
        version = scan.definition.version
        segments.append(SegmentRef(location.path, location.check, part.length, version, live))
    position = copies.add(matching_batches(copied, ANYTHING, columns)) if copied else None
    row_count = sum(batch.num_rows for batch in copied)
    return ScanRefs(
        pieces=[PieceRef(row_count, None, None, None, None, position, None)],
        segments=segments,
        files=[],
        root=None,
        schema=None,
        where=None,
    )


def _live_rows(
    part: RowsPart, definition: TableDefinition, columns: Sequence[str]
) -> pa.RecordBatch:
    """Return these columns of the live rows, in the types of the table."""
    from frazil.tables import upgraded

    fields = {field.name: field for field in keyed_schema(definition)}
    batch = part.batch
    present = batch.select([name for name in columns if name in batch.schema.names])
    rows = upgraded(present, pa.schema([fields[name] for name in columns]))
    return rows if part.live is None else rows.filter(part.live)


class _Copies:
    """The memory file of the rows that are copied for one query."""

    def __init__(self, bytes_max: int) -> None:
        self.descriptor = memory_file("frazil-query")
        self._bytes_max = bytes_max
        self._sink = pa.OSFile(descriptor_path(self.descriptor), "wb")

    def add(self, batches: Iterable[pa.RecordBatch]) -> Position | None:
        """Copy batches as one IPC stream; None if there are none."""
        begin, writer = self._sink.tell(), None
        for batch in batches:
            if self._sink.tell() + batch.nbytes > self._bytes_max:
                raise TooLarge(
                    f"the query needs a copy of more than query.apart_bytes_max "
                    f"({self._bytes_max} bytes) of rows; narrow the time, name a service, or "
                    "select fewer columns"
                )
            if writer is None:
                writer = pa.ipc.new_stream(self._sink, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            return None
        writer.close()
        return begin, self._sink.tell() - begin

    def add_bits(self, bits: pa.BooleanArray) -> tuple[int, int, int]:
        """Copy the bits of an array; return position, length, and its first bit in the first
        byte."""
        first = bits.offset // 8
        data = bits.buffers()[1].slice(first, -(-(bits.offset + len(bits)) // 8) - first)
        begin = self._sink.tell()
        self._sink.write(data)
        return begin, data.size, bits.offset % 8

    def finish(self) -> None:
        self._sink.close()

    def close(self) -> None:
        self._sink.close()
        os.close(self.descriptor)
