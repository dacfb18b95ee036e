"""ArrowSegment: an immutable file of rows, checked at open and then mapped.

    header | stream, its filters | stream, its filters | ... | footer | trailer

A stream has the rows of one table in one schema, as Arrow IPC, mapped and read without copying. The
footer has the stream directory, the batch manifest and column statistics. Byte layout:
`docs/formats/arrow-segment.md`.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from frazil.disk import Disk, File, Mapped, WriteBuffer
from frazil.errors import Corrupt
from frazil.hot.segment.bloom import Bloom, build_bloom
from frazil.hot.segment.column_stats import (
    OFFSET,
    SERVICE,
    TIME,
    ColumnStats,
    services_of,
    stats_of,
)
from frazil.hot.segment.dictionaries import unified
from frazil.hot.segment.ipc import EncodedStream, decode_stream, encode_stream, measure_stream
from frazil.hot.segment.layout import (
    HEADER_BYTES,
    TRAILER_BYTES,
    ArrowSegmentHeader,
    BatchEntry,
    FilterEntry,
    Footer,
    StreamEntry,
    damaged,
    decode_footer,
    decode_header,
    decode_trailer,
    encode_end,
)
from frazil.model import MiB

BOUNDED = (TIME,)
"""Columns with bounds: those by which segments are pruned."""
FILTERED = ("trace_id", "span_id")
"""Columns with a bloom filter: ids are looked up one at a time, and bounds do not prune them."""
READ_BYTES = MiB
"""Checksums read the file in blocks of this size instead of the mapping, because touched pages of
a mapping count as memory of the process."""
FINGERPRINT_BYTES = 16

Slots = Mapping[str, Sequence[pa.RecordBatch]]
"""Rows by table, in log order. Batches of one table may differ in schema."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrowStream:
    """The rows of one table in one schema."""

    slot: str
    fingerprint: bytes
    batches: tuple[pa.RecordBatch, ...]
    row_count: int
    columns: Mapping[str, ColumnStats]
    services: frozenset[str] | None
    filters: Mapping[str, Bloom]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrowSegment:
    """An opened file. Its rows stay readable while they are referenced, even if it is deleted."""

    path: str
    header: ArrowSegmentHeader
    size_bytes: int
    streams: tuple[ArrowStream, ...]
    manifest: tuple[BatchEntry, ...]
    check: int
    """CRC32C of the footer, which covers the checksums of everything else."""
    mapped: Mapped

    @property
    def begin_offset(self) -> int:
        return self.header.begin_offset

    @property
    def end_offset(self) -> int:
        return self.header.end_offset


def write_segment(
    disk: Disk,
    path: str,
    header: ArrowSegmentHeader,
    slots: Slots,
    buffer: WriteBuffer,
) -> ArrowSegment:
    """Write a segment, and return it opened once it is durable.

    It is written to a temporary file, synced, opened and renamed. After an error it may be retried,
    which writes a new file: a failed sync is never repeated.
    """
    folder, _, name = path.rpartition("/")
    scratch = f"{path}.tmp"
    if f"{name}.tmp" in disk.list(folder):
        disk.unlink(scratch)
    file = disk.open(scratch, "create")
    try:
        sections, end = _encode(header, slots, buffer)
        file.append_synced(sections, is_cached=False)
        file.append([end])
        file.sync()
        segment = open_segment(disk, scratch, is_verified=True)
        disk.rename(scratch, path)
    except (OSError, Corrupt):
        with contextlib.suppress(OSError):  # raise the first error
            disk.unlink(scratch)
        raise
    finally:
        file.close()
    disk.sync_directory(folder)
    return replace(segment, path=path)


def open_segment(disk: Disk, path: str, *, is_verified: bool = False) -> ArrowSegment:
    """Check a segment and map it: all checksums, or those of header and footer if its rows were
    verified before. Raises `Corrupt`."""
    file = disk.open(path)
    try:
        size = file.size()
        head = file.read(0, HEADER_BYTES)
        header = decode_header(head, path)
        at = max(HEADER_BYTES, size - TRAILER_BYTES)
        position, length, check = decode_trailer(file.read(at, TRAILER_BYTES), size, head, path)
        footer = decode_footer(file.read(position, length), position, check, path)
        if not is_verified:
            _check_sections(file, footer, path)
        mapped = file.map()
    finally:
        file.close()
    if len(mapped.view) != size:
        raise damaged(path, 0, f"{size} bytes", f"{len(mapped.view)}")
    streams = tuple(_open_streams(mapped.view, footer, path, is_verified=is_verified))
    mapped.release()  # pages touched while locating the batches
    return ArrowSegment(
        path=path,
        header=header,
        size_bytes=size,
        streams=streams,
        manifest=tuple(footer.batches),
        check=check,
        mapped=mapped,
    )


def fingerprint_of(schema: pa.Schema) -> bytes:
    """Return a hash of a schema: names, types, nullability and metadata."""
    return hashlib.blake2b(schema.serialize(), digest_size=FINGERPRINT_BYTES).digest()


def _encode(
    header: ArrowSegmentHeader, slots: Slots, buffer: WriteBuffer
) -> tuple[memoryview, bytes]:
    """Return header and sections, in the buffer, and the end of the file."""
    streams = [(slot, batches, measure_stream(batches)) for slot, batches in _streams_of(slots)]
    filters = [
        {name: build_bloom(column).data for name, column in _filtered(batches)}
        for _, batches, _ in streams
    ]
    head = header.encode()
    end = len(head) + sum(size for _, _, size in streams)
    end += sum(len(data) for each in filters for data in each.values())
    whole = buffer.take(end)
    whole[: len(head)] = head
    position = len(head)
    footer = Footer(streams=[], batches=[])
    for (slot, batches, size), blooms in zip(streams, filters, strict=True):
        encoded = encode_stream(batches, whole[position : position + size])
        _add_to_manifest(footer, batches, encoded, position)
        stream = _entry(slot, batches, position, size, encoded.check)
        position += size
        for column, data in blooms.items():
            whole[position : position + len(data)] = data
            stream.filters.append(FilterEntry(column, position, len(data), crc32c(bytes(data))))
            position += len(data)
        footer.streams.append(stream)
    return whole, encode_end(footer, position, head)


def _streams_of(slots: Slots) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
    """Yield batches by table and schema, in the order in which the schemas first appear."""
    for slot, batches in slots.items():
        streams: dict[pa.Schema, list[pa.RecordBatch]] = {}
        for batch in batches:
            if batch.num_rows:
                streams.setdefault(batch.schema, []).append(batch)
        for stream in streams.values():
            yield slot, unified(stream)


def _filtered(batches: list[pa.RecordBatch]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    table = pa.Table.from_batches(batches)
    for name in FILTERED:
        if name in table.schema.names:
            yield name, table[name]


def _add_to_manifest(
    footer: Footer, batches: list[pa.RecordBatch], encoded: EncodedStream, position: int
) -> None:
    stream = len(footer.streams)
    for batch, (begin, length) in zip(batches, encoded.messages, strict=True):
        offsets = pc.min_max(batch[OFFSET])
        low, high = offsets["min"].as_py(), offsets["max"].as_py()
        footer.batches.append(
            BatchEntry(stream, position + begin, length, batch.num_rows, low, high + 1)
        )


def _entry(
    slot: str, batches: list[pa.RecordBatch], position: int, length: int, check: int
) -> StreamEntry:
    """Return the directory entry of a stream, without its filters."""
    table = pa.Table.from_batches(batches)
    names = table.schema.names
    services = services_of(table[SERVICE]) if SERVICE in names else None
    return StreamEntry(
        slot=slot,
        fingerprint=fingerprint_of(table.schema),
        position=position,
        length=length,
        check=check,
        row_count=table.num_rows,
        columns=[stats_of(name, table[name]) for name in BOUNDED if name in names],
        services=None if services is None else sorted(services),
        filters=[],
    )


def _check_sections(file: File, footer: Footer, path: str) -> None:
    for position, length, check in footer.sections():
        actual = 0
        for at in range(position, position + length, READ_BYTES):
            actual = extend_crc32c(actual, file.read(at, min(READ_BYTES, position + length - at)))
        if actual != check:
            raise damaged(path, position, f"CRC32C {check:08x}", f"{actual:08x}")


def _open_streams(
    view: memoryview, footer: Footer, path: str, *, is_verified: bool
) -> Iterator[ArrowStream]:
    for number, entry in enumerate(footer.streams):
        data = pa.py_buffer(view[entry.position : entry.position + entry.length])
        try:
            batches = decode_stream(data, is_verified=is_verified)
        except (pa.ArrowException, OSError) as error:
            raise damaged(path, entry.position, "an Arrow stream", str(error)) from None
        counts = [batch.row_count for batch in footer.batches if batch.stream == number]
        if counts != [batch.num_rows for batch in batches] or sum(counts) != entry.row_count:
            raise damaged(path, entry.position, f"batches of {counts} rows", "others")
        yield ArrowStream(
            slot=entry.slot,
            fingerprint=entry.fingerprint,
            batches=tuple(batches),
            row_count=entry.row_count,
            columns={column.name: column for column in entry.columns},
            services=None if entry.services is None else frozenset(entry.services),
            filters={
                bloom.column: Bloom(view[bloom.position : bloom.position + bloom.length])
                for bloom in entry.filters
            },
        )
