"""ArrowSegment: one immutable file of rows, checked when it is opened and then mapped.

    header | stream, its filters | stream, its filters | ... | footer | trailer

A stream holds the rows of one table in one schema, as Arrow IPC with every buffer at a multiple
of 64, so that reading copies nothing. The footer is the directory of the streams, the manifest of
their batches, and what is known of the columns. The byte layout is
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

from frazil.disk import Buffer, Disk, File, Mapped
from frazil.errors import Corrupt
from frazil.hot.segment.aligned_ipc import decode_stream, encode_stream
from frazil.hot.segment.bloom import Bloom, build_bloom
from frazil.hot.segment.column_stats import OFFSET, SERVICE, ColumnStats, column_facts, services_of
from frazil.hot.segment.dictionaries import unified
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

FILTERED = ("trace_id", "span_id")
"""Columns of texts that people look for one at a time, and that fit no order."""
READ_BYTES = 1024 * 1024
"""Checksums are made over reads of this size, not over the mapping: mapped pages that were
touched count as the process's memory."""
FINGERPRINT_BYTES = 16

Slots = Mapping[str, Sequence[pa.RecordBatch]]
"""Rows by table, in the order of the log. Batches of one table may differ in their schema."""


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
    """An open segment. Its rows stay readable while anybody holds them, file or no file."""

    path: str
    header: ArrowSegmentHeader
    size_bytes: int
    streams: tuple[ArrowStream, ...]
    manifest: tuple[BatchEntry, ...]
    mapped: Mapped

    @property
    def begin_offset(self) -> int:
        return self.header.begin_offset

    @property
    def end_offset(self) -> int:
        return self.header.end_offset


def write_segment(disk: Disk, path: str, header: ArrowSegmentHeader, slots: Slots) -> ArrowSegment:
    """Make a segment, and return it opened, once it survives a power cut.

    Written beside its place, synced, read back, and only then given its name. After an error
    nothing of it counts, and it may be tried again: that writes another file, so that no sync is
    ever repeated.
    """
    folder, _, name = path.rpartition("/")
    scratch = f"{path}.tmp"
    if f"{name}.tmp" in disk.list(folder):
        disk.unlink(scratch)
    file = disk.open(scratch, "create")
    try:
        _write(file, header, slots)
        file.sync()
        segment = open_segment(disk, scratch)
        disk.rename(scratch, path)
    except (OSError, Corrupt):
        with contextlib.suppress(OSError):  # the first error is the one to tell
            disk.unlink(scratch)
        raise
    finally:
        file.close()
    disk.sync_directory(folder)
    return replace(segment, path=path)


def open_segment(disk: Disk, path: str) -> ArrowSegment:
    """Check every byte of a segment and map it, or raise `Corrupt`."""
    file = disk.open(path)
    try:
        size = file.size()
        head = file.read(0, HEADER_BYTES)
        header = decode_header(head, path)
        at = max(HEADER_BYTES, size - TRAILER_BYTES)
        position, length, check = decode_trailer(file.read(at, TRAILER_BYTES), size, head, path)
        footer = decode_footer(file.read(position, length), position, check, path)
        _check_sections(file, footer, path)
        mapped = file.map()
    finally:
        file.close()
    if len(mapped.view) != size:
        raise damaged(path, 0, f"{size} bytes", f"{len(mapped.view)}")
    streams = tuple(_open_streams(mapped.view, footer, path))
    mapped.release()  # finding the batches has touched a page here and there, each with neighbours
    return ArrowSegment(
        path=path,
        header=header,
        size_bytes=size,
        streams=streams,
        manifest=tuple(footer.batches),
        mapped=mapped,
    )


def fingerprint_of(schema: pa.Schema) -> bytes:
    """Tells schemas apart: names, types, what may be null, and comments."""
    return hashlib.blake2b(schema.serialize(), digest_size=FINGERPRINT_BYTES).digest()


def _write(file: File, header: ArrowSegmentHeader, slots: Slots) -> None:
    head = header.encode()
    file.append([head])
    position = len(head)
    footer = Footer(streams=[], batches=[])
    for slot, batches in _streams_of(slots):
        stream, buffers = _encode(slot, batches, position, len(footer.streams), footer.batches)
        file.append(buffers)
        position += sum(map(len, buffers))
        footer.streams.append(stream)
    file.append([encode_end(footer, position, head)])


def _streams_of(slots: Slots) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
    """Batches by slot and schema, in the order in which the schemas first came."""
    for slot, batches in slots.items():
        streams: dict[pa.Schema, list[pa.RecordBatch]] = {}
        for batch in batches:
            if batch.num_rows:
                streams.setdefault(batch.schema, []).append(batch)
        for stream in streams.values():
            yield slot, unified(stream)


def _encode(
    slot: str,
    batches: list[pa.RecordBatch],
    position: int,
    number: int,
    manifest: list[BatchEntry],
) -> tuple[StreamEntry, list[Buffer]]:
    """A stream with its filters, to be written at `position`; adds its batches to the manifest."""
    encoded = encode_stream(batches)
    for batch, (begin, length) in zip(batches, encoded.places, strict=True):
        offsets = pc.min_max(batch[OFFSET])
        low, high = offsets["min"].as_py(), offsets["max"].as_py()
        place = BatchEntry(number, position + begin, length, batch.num_rows, low, high + 1)
        manifest.append(place)
    table = pa.Table.from_batches(batches)
    names = table.schema.names
    buffers, end = encoded.buffers, position + encoded.length
    filters = []
    for column in FILTERED:
        if column in names:
            data = build_bloom(table[column]).data
            filters.append(FilterEntry(column, end, len(data), crc32c(bytes(data))))
            buffers.append(data)
            end += len(data)
    services = services_of(table[SERVICE]) if SERVICE in names else None
    entry = StreamEntry(
        slot=slot,
        fingerprint=fingerprint_of(table.schema),
        position=position,
        length=encoded.length,
        check=encoded.check,
        row_count=table.num_rows,
        columns=[column_facts(name, table[name]) for name in names],
        services=None if services is None else sorted(services),
        filters=filters,
    )
    return entry, buffers


def _check_sections(file: File, footer: Footer, path: str) -> None:
    for position, length, check in footer.sections():
        found = 0
        for at in range(position, position + length, READ_BYTES):
            found = extend_crc32c(found, file.read(at, min(READ_BYTES, position + length - at)))
        if found != check:
            raise damaged(path, position, f"CRC32C {check:08x}", f"{found:08x}")


def _open_streams(view: memoryview, footer: Footer, path: str) -> Iterator[ArrowStream]:
    for number, entry in enumerate(footer.streams):
        data = pa.py_buffer(view[entry.position : entry.position + entry.length])
        try:
            batches = decode_stream(data)
        except (pa.ArrowException, OSError) as error:
            raise damaged(path, entry.position, "an Arrow stream", str(error)) from None
        counted = [place.row_count for place in footer.batches if place.stream == number]
        if counted != [batch.num_rows for batch in batches] or sum(counted) != entry.row_count:
            raise damaged(path, entry.position, f"batches of {counted} rows", "others")
        yield ArrowStream(
            slot=entry.slot,
            fingerprint=entry.fingerprint,
            batches=tuple(batches),
            row_count=entry.row_count,
            columns={column.name: column for column in entry.columns},
            services=None if entry.services is None else frozenset(entry.services),
            filters={
                place.column: Bloom(view[place.position : place.position + place.length])
                for place in entry.filters
            },
        )
